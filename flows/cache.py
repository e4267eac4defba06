"""A content-addressed store of results on disk that survives interrupted writes.

An entry is one gzip-compressed JSON document named by the SHA-256 of everything that determines
it. It is written to a temporary file and renamed, so a reader sees a whole entry or none; an entry
that does not read back (a full disk, a killed process) counts as absent and is written again.
"""

import argparse
import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cache_root() -> Path:
    """Return the cache directory: ``$VITRUVIAN_CACHE`` or ``build/cache`` under the work dir."""
    return Path(os.environ.get("VITRUVIAN_CACHE") or Path("build") / "cache")


def digest(*parts: object) -> str:
    """Return the SHA-256 (hex) of `parts`, each taken as text and kept apart from the next."""
    total = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, bytes) else str(part).encode()
        total.update(len(text).to_bytes(8, "little") + text)
    return total.hexdigest()


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write `data` to `path` so that the file is there whole or not at all.

    A device (/dev/null), a pipe, or whatever /dev/stdout stands for is written to directly; a
    symbolic link stays, and its file is replaced.
    """
    if _is_direct(path):
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _is_direct(path: Path) -> bool:
    """Return whether a place cannot be replaced by another file: a device, a pipe, an open file."""
    system = str(path.absolute()).startswith(("/dev/", "/proc/"))
    return path.exists() and not path.is_dir() and (system or not path.is_file())


def output_path(*, stdout: bool = False, folder: bool = False) -> Callable[[str], str]:
    """Return a reader of an option that names a file (or a folder of files) to be written.

    The place is tried at once, by making and removing a file in the nearest folder that exists, so
    that a command refuses it before it works for minutes.

    Parameters
    ----------
    stdout : bool
        Whether "-" is allowed and means standard output.
    folder : bool
        Whether the option names a folder, which need not exist.
    """

    def path(text: str) -> str:
        if stdout and text == "-":
            return text
        try:
            _try(Path(text) / "file" if folder else Path(text))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            kind = "folder that files can be written to" if folder else "file that can be written"
            raise argparse.ArgumentTypeError(f"must be a {kind}, not {text!r} ({reason})") from None
        return text

    return path


def _try(target: Path) -> None:
    """Raise OSError unless a file can be made where `target` is to be."""
    if "\0" in str(target):
        raise ValueError("it holds a null character")
    if not target.name or target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    if target.exists():
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "it is write-protected")
        if _is_direct(target):
            return
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


class ResultCache:
    """JSON documents by key under ``cache_root() / kind``.

    Parameters
    ----------
    kind : str
        Name of the sub-directory, one per producer.
    enabled : bool
        False: `get` finds nothing and `put` stores nothing.
    """

    def __init__(self, *, kind: str, enabled: bool = True):
        self._folder = cache_root() / kind
        self._enabled = enabled

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json.gz"

    def get(self, key: str) -> Any | None:
        """Return the document stored under `key`, or None if there is none that reads back."""
        if not self._enabled:
            return None
        try:
            return json.loads(gzip.decompress(self._path(key).read_bytes()))
        except (OSError, EOFError, ValueError, gzip.BadGzipFile):
            return None

    def put(self, key: str, document: Any) -> None:
        """Store `document` (JSON) under `key`."""
        if self._enabled:
            data = json.dumps(document, separators=(",", ":")).encode()
            write_atomic(self._path(key), gzip.compress(data, compresslevel=3, mtime=0))
