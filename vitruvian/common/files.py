"""Files: inputs of bounded size, and outputs that are written completely or not at all.

An output is checked before the work begins.
"""

import argparse
import bz2
import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from vitruvian.common.errors import UserError

#: Bytes of an input file, unpacked, that a reader takes unless it states another bound
MOST_BYTES = 1 << 28

#: Bytes that are read at once
_CHUNK = 1 << 20

#: Kinds of files that have no end or no bytes
_DEVICES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_bounded(
    path: str | os.PathLike[str],
    *,
    thing: str = "input",
    limit: int = MOST_BYTES,
    unpack: bool = False,
    unpacked_limit: int = MOST_BYTES,
) -> bytes:
    """Return the content of a file, or refuse a file that is too large or has no end.

    Never more than the bound is held in memory twice, whatever the file says or unpacks to.

    Parameters
    ----------
    path : str or path
        A regular file, or a pipe. A folder, a device and a socket are refused.
    thing : str
        Name of the input, for messages.
    limit : int
        Largest number of bytes of the file.
    unpack : bool
        If True, a content that gzip or bzip2 packed is unpacked. Its first bytes tell, and not the
        name of the file.
    unpacked_limit : int
        Largest number of bytes after unpacking, and of those that come through a pipe.

    Raises
    ------
    UserError
        If the file is none of these or too large, or if its packed content is damaged.
    OSError
        If the file cannot be opened or read.
    """
    status = os.stat(path)
    for is_kind, kind in _DEVICES:
        if is_kind(status.st_mode):
            raise UserError(f"{thing} must be a file, not {kind}")
    if not stat.S_ISREG(status.st_mode):
        limit = min(limit, unpacked_limit)  # a pipe may have no end
    if status.st_size > limit:
        raise UserError(
            f"{thing} must have at most {shown_size(limit)}, not {shown_size(status.st_size)}"
        )
    with open(path, "rb") as file:
        content = _at_most(file, limit, f"{thing} must have at most {shown_size(limit)}")
    packed = content.startswith((b"\x1f\x8b", b"BZh"))
    if not (unpack and packed):
        return content
    opened = gzip.open if content.startswith(b"\x1f\x8b") else bz2.open
    with opened(io.BytesIO(content)) as unpacked:
        message = (
            f"{thing} must unpack to at most {shown_size(unpacked_limit)}; unpack a larger one"
        )
        try:
            return _at_most(unpacked, unpacked_limit, f"{message} first")
        except (EOFError, zlib.error, OSError) as error:
            raise UserError(f"{thing} must be packed without damage: {error}") from None


def _at_most(file: BinaryIO | gzip.GzipFile | bz2.BZ2File, limit: int, message: str) -> bytes:
    """Return the rest of an open file, or raise UserError when it has more than ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    while part := file.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise UserError(message)
    return b"".join(parts)


def shown_size(nbytes: int) -> str:
    """Return a number of bytes for a message."""
    return f"{nbytes >> 20:,} MiB" if nbytes >= 1 << 20 else f"{nbytes:,} bytes"


def read_whole(path: str | os.PathLike[str], limit: int = MOST_BYTES) -> bytes:
    """Return the content of a file that messages name by its path; see ``read_bounded``.

    Raises
    ------
    UserError
        If the file does not exist or cannot be read, too. The message begins with the path.
    """
    try:
        return read_bounded(path, thing=str(path), limit=limit)
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {reason_of(error)}") from None


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
        if isinstance(error, OSError) and error.errno and error.filename in (None, name):
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
