"""Output files: checked before the work begins, and written whole or not at all."""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_whole", "output_path", "write_whole"]


def output_path(*suffixes: str, stdout: bool = False, folder: bool = False) -> Callable[[str], str]:
    """Return a parser for an option that names a file (or a folder of files) to be written.

    The parser makes and removes a file in the folder at once, so that a command refuses a place
    that it cannot write to before it works for minutes. `write_whole` makes missing folders; the
    parser tries the nearest folder that exists.

    Parameters
    ----------
    *suffixes : str
        Endings that the file name may have, such as ".svg"; any ending if none is given.
    stdout : bool
        Whether "-" is allowed and means standard output.
    folder : bool
        Whether the option names a folder, which need not exist yet.
    """

    def path(text: str) -> str:
        if stdout and text == "-":
            return text
        target = Path(text)
        if suffixes and not target.name.lower().endswith(suffixes):
            raise argparse.ArgumentTypeError(
                f"must be a file whose name ends in {' or '.join(suffixes)}, not {text!r}"
            )
        try:
            _try(target / "file" if folder else target)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            kind = "folder that files can be written to" if folder else "file that can be written"
            raise argparse.ArgumentTypeError(f"must be a {kind}, not {text!r} ({reason})") from None
        return text

    return path


def _try(target: Path) -> None:
    """Raise OSError or ValueError unless a file can be made at `target`."""
    if "\0" in str(target):
        raise ValueError("it holds a null character")
    if not target.name or target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is write-protected")
    if _is_direct(target):
        return
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_whole(path: str | Path, data: bytes | str) -> None:
    """Write `data` so that the file is there whole or not at all; see `open_whole`.

    Raises
    ------
    OSError
        If the file cannot be written; nothing is left behind then.
    """
    with open_whole(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def open_whole(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends, and not if the block raises.

    The file has the mode of the umask. Folders that do not exist are made. A device (/dev/null), a
    pipe, or whatever /dev/stdout stands for is written to directly.

    Raises
    ------
    OSError
        If the file cannot be written; nothing is left behind then.
    """
    if _is_direct(Path(path)):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(path).resolve()  # a symbolic link stays, and its file is replaced
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _is_direct(path: Path) -> bool:
    """Return whether a place cannot be replaced by another file: a device, a pipe, an open file."""
    system = str(path.absolute()).startswith(("/dev/", "/proc/"))
    return path.exists() and not path.is_dir() and (system or not path.is_file())
