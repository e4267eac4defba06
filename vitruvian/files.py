"""Files: inputs of bounded size, and outputs that are written completely or not at all.

An output is checked before the work begins.
"""

import argparse
import os
import stat
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from vitruvian.errors import UserError

__all__ = [
    "MOST_BYTES",
    "OutputPath",
    "differing",
    "open_whole",
    "output_path",
    "read_whole",
    "reason_of",
    "write_all",
    "write_whole",
]

#: Largest size in bytes of a file that ``read_whole`` reads by default.
MOST_BYTES = 256 << 20


def read_whole(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file of bounded size.

    Parameters
    ----------
    path : str or Path
    most : int
        Largest allowed size, bytes. Never more than one byte beyond it is read.

    Raises
    ------
    UserError
        If the file does not exist, cannot be read, is a folder, a device or a pipe, or is larger.
        The message is one line that begins with the path.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{path} must be a regular file, not a device or pipe")
            data = file.read(most + 1)
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {reason_of(error)}") from None
    if len(data) > most:
        raise UserError(f"{path} must have at most {_limit(most)}")
    return data


def _limit(count: int) -> str:
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits and count % (1 << bits) == 0:
            return f"{count >> bits} {unit}"
    return f"{count} bytes"


def reason_of(error: BaseException) -> str:
    """Return the reason of an error without the number and the file's name of an ``OSError``.

    The text is one line, such as "No such file or directory".
    """
    text = error.strerror if isinstance(error, OSError) else None
    return " ".join((text or str(error)).split()) or type(error).__name__


class OutputPath(str):
    """The name of a file that a command writes, which ``output_path`` has checked."""


def output_path(*suffixes: str, stdout: bool = False, folder: bool = False) -> Callable[[str], str]:
    """Return a function that checks the value of an option that names an output file.

    The function creates and removes a file in the same folder at once, so that a command refuses a
    path that it cannot write to before it works for minutes. If the folder does not exist, the
    function tries its nearest parent that does; ``write_whole`` creates the missing folders later.

    Parameters
    ----------
    *suffixes : str
        Endings that the file name may have, such as ".svg". Any ending is allowed by default.
    stdout : bool
        If True, "-" is allowed and means standard output.
    folder : bool
        If True, the option names a folder of output files, which need not exist yet.

    Returns
    -------
    path : callable
        Function that returns its argument as an ``OutputPath``, or as it is if it names a folder or
        standard output; it raises ``argparse.ArgumentTypeError`` if the path is not allowed.
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
            reason = reason_of(error)
            kind = "folder that files can be written to" if folder else "file that can be written"
            raise argparse.ArgumentTypeError(f"must be a {kind}, not {text!r} ({reason})") from None
        return text if folder else OutputPath(text)

    return path


def _try(target: Path) -> None:
    """Raise OSError or ValueError unless a file can be created at ``target``."""
    if "\0" in str(target):
        raise ValueError("it contains a null character")
    if not target.name or target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is write-protected")
    if _is_direct(target):
        return
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    # Permissions alone do not show that the folder has room for a file, so one is created.
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_whole(path: str | Path, data: bytes | str) -> None:
    """Write a file completely or not at all; see ``open_whole``.

    Parameters
    ----------
    path : str or Path
        Name of the file.
    data : bytes or str
        Contents; a str is encoded as UTF-8.

    Raises
    ------
    OSError
        If the file cannot be written. No part of it is left behind.
    """
    with open_whole(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def differing(texts: Mapping[Path, bytes | str]) -> list[Path]:
    """Return the paths at which there is something else than these contents.

    Parameters
    ----------
    texts : mapping of Path to bytes or str
        Contents by the names of the files; a str is encoded as UTF-8.
    """
    found: list[Path] = []
    for path, text in texts.items():
        data = text.encode() if isinstance(text, str) else text
        if not path.exists():
            continue
        # The size comes first, so that no large file is read for nothing.
        if not path.is_file() or path.stat().st_size != len(data) or path.read_bytes() != data:
            found.append(path)
    return found


def write_all(texts: Mapping[Path, bytes | str]) -> None:
    """Write several files, all of them or none.

    All contents are written to temporary files before the first file gets its name, so that a full
    disk or a folder without permission leaves the old files as they were.

    Parameters
    ----------
    texts : mapping of Path to bytes or str
        Contents by the names of the files; a str is encoded as UTF-8.

    Raises
    ------
    OSError
        If a file cannot be written. No new file and no new folder is left behind.
    """
    for path in texts:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder", str(path))
    with ExitStack() as stack:
        for path, text in texts.items():
            file = stack.enter_context(open_whole(path))
            file.write(text.encode() if isinstance(text, str) else text)
            file.flush()


@contextmanager
def open_whole(path: str | Path) -> Generator[BinaryIO]:
    """Open a temporary file that is renamed to ``path`` when the block ends without an exception.

    The permissions of the file follow the umask, and missing folders are created. A device such as
    /dev/null, a pipe, and the file behind /dev/stdout cannot be renamed to; they are written
    directly.

    Raises
    ------
    OSError
        If the file cannot be written. No part of it and no new folder is left behind.
    """
    if _is_direct(Path(path)):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(path).resolve()  # a symbolic link is kept; the file that it names is replaced
    made: list[Path] = []
    name = None
    try:
        _make_folders(target.parent, made)
        # The name is cut, because one of the largest length would leave no room for random letters.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.")
        with os.fdopen(handle, "wb") as file:
            yield file
        # ``mkstemp`` creates files for their owner only. The umask can only be read by setting it.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        for folder in reversed(made):
            with suppress(OSError):  # another process has put a file into it
                folder.rmdir()
        # A full disk has no name in its error, and the temporary file's name tells a user nothing.
        if isinstance(error, OSError) and error.filename in (None, name):
            error.filename = str(path)
        raise


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Create a folder and those above it, and append the ones that did not exist to ``made``."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process creates it at the same time
            each.mkdir()
            made.append(each)
    folder.mkdir(exist_ok=True)


def _is_direct(path: Path) -> bool:
    """Return whether ``path`` is a device, a pipe or an open file, which cannot be replaced."""
    # /dev/stdout leads to /proc/self/fd/1, which is a regular file if the output is redirected.
    system = str(path.absolute()).startswith(("/dev/", "/proc/"))
    return path.exists() and not path.is_dir() and (system or not path.is_file())
