"""A content-addressed store of builds and results, shared by processes.

An entry is a folder whose name is the hash of everything that determines its contents. It is built
in a temporary folder beside its final one, under a file lock, and renamed when it is complete. So
an entry is either complete or absent, and only one process builds it. An interrupted build leaves
at most a ``.partial`` folder, which ``sweep`` or the next builder of the same entry deletes.

A store that exists need not be writable: only an entry that is missing needs a place.

The store holds shared libraries that are loaded into this process. Their checksums are stored with
them and protect against damage, not against an attacker: anyone who can write to the store can run
code as the user who reads it. A store that another user owns, or that every user can write to, is
therefore refused.
"""

import errno
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from vitruvian.common import workers
from vitruvian.common.files import reason_of, write_whole
from vitruvian.common.interrupt import at_hard_end

_META = "meta.json"
_PARTIAL = ".partial"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_BYTES = 1 << 16  # a disk with less free space than this is full
#: Entries whose checksums this process has compared; see ``verified_entry``.
_seen: set[Path] = set()


class CacheError(OSError):
    """The store cannot be used. The message says why and names VITRUVIAN_CACHE."""


def cache_root() -> Path:
    """Return ``$VITRUVIAN_CACHE``, or ``build/cache`` in the working directory."""
    return Path(os.environ.get("VITRUVIAN_CACHE") or Path("build") / "cache").absolute()


def check_cache(*, write: bool = True) -> Path:
    """Create the root of the store if it does not exist, check that it is usable, and return it.

    Parameters
    ----------
    write : bool
        If False, a store that exists need not be writable.

    Raises
    ------
    CacheError
        If ``trusted_root`` raises it, or if no file can be created in the store.
    """
    root = trusted_root()
    if not write and root.is_dir():
        return root
    probe = root / f".probe-{os.getpid()}"
    try:
        if not root.exists():
            root.mkdir(parents=True, exist_ok=True)
            root.chmod(stat.S_IMODE(root.stat().st_mode) & ~stat.S_IWOTH)  # a umask of 0
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise _refusal(error) from None
    return root


def _refusal(error: OSError) -> CacheError:
    """Return the error for a store that cannot be written to."""
    root = str(cache_root())
    if error.errno in _FULL:
        return CacheError(
            f"VITRUVIAN_CACHE must be a folder with free space, not {root!r}, whose disk is full; "
            "free space there, or set VITRUVIAN_CACHE to a folder on another disk"
        )
    return CacheError(
        f"VITRUVIAN_CACHE must be a folder in which files can be created, not {root!r} "
        f"({reason_of(error)})"
    )


@contextmanager
def storing() -> Generator[None]:
    """Turn each ``OSError`` of a block that writes to the store into a ``CacheError``."""
    try:
        yield
    except CacheError:
        raise
    except OSError as error:
        raise _refusal(error) from None


def trusted_root() -> Path:
    """Return the root of the store unless another user may have written to it.

    Raises
    ------
    CacheError
        If another user (other than root) owns the store; if every user can write to it; or, when
        VITRUVIAN_CACHE does not name it, if another user owns the working directory or ``build``.
    """
    root = cache_root()
    # Whoever owns a folder above the store could put another folder in its place.
    above = () if os.environ.get("VITRUVIAN_CACHE") else (root.parent, root.parent.parent)
    for folder in (root, *above):
        try:
            status = folder.stat()
        except OSError:
            continue  # it does not exist yet
        # Root can change every file anyway, so a store of root needs no mistrust.
        if status.st_uid not in (0, os.geteuid()):
            reason = f"another user owns {str(folder)!r}"
        elif folder == root and status.st_mode & stat.S_IWOTH:
            reason = f"every user can write to {str(folder)!r}"
        else:
            continue
        raise CacheError(f"VITRUVIAN_CACHE must be a folder that only you can write to: {reason}")
    return root


def digest(*parts: object) -> str:
    """Return the hash of ``parts``, as 32 hexadecimal digits.

    Strings and bytes are hashed as they are, other objects by their ``repr``. The length of each
    part is hashed as well, so that ("ab", "c") and ("a", "bc") differ.
    """
    state = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str) else repr(part)
        data = part if isinstance(part, bytes) else text.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:32]


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold an exclusive lock on ``path`` against other processes and threads.

    The file is created if it does not exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


def entry(
    kind: str, key: str, build: Callable[[Path], dict[str, Any]]
) -> tuple[Path, dict[str, Any]]:
    """Return an entry, and build it first if it is absent or damaged.

    Parameters
    ----------
    kind : str
        Name of the folder below the root that holds entries of this kind.
    key : str
        Result of ``digest``.
    build : callable
        Function that receives an empty folder, fills it, and returns a dict of facts that JSON can
        represent.

    Returns
    -------
    folder : Path
        Folder of the complete entry.
    facts : dict
        Result of ``build``, and the bool ``cached``, which is True if the entry existed before.

    Raises
    ------
    CacheError
        If the store cannot be used; see ``check_cache``.
    """
    folder = trusted_root() / kind / key
    facts = _read(folder)
    if facts is not None:
        return folder, facts | {"cached": True}
    check_cache()
    with _storing_lock(folder):
        facts = _read(folder)  # another process may have built it while this one waited
        if facts is not None:
            return folder, facts | {"cached": True}
        half = folder.with_name(key + _PARTIAL)
        for stale in (half, folder):
            if stale.exists():
                shutil.rmtree(stale)
        with storing():
            half.mkdir(parents=True)
        remove = partial(shutil.rmtree, half, ignore_errors=True)
        workers.tell("compiling")
        with at_hard_end(remove):
            try:
                facts = build(half)
                files = {
                    str(path.relative_to(half)): _checksum(path)
                    for path in sorted(half.rglob("*"))
                    if path.is_file()
                }
                with storing():
                    (half / _META).write_text(json.dumps({"files": files, "facts": facts}))
                    half.rename(folder)
            except Exception as error:
                full = _is_full(half, error)
                remove()
                if full:
                    raise _refusal(OSError(errno.ENOSPC, "")) from error
                raise
            except BaseException:
                remove()
                raise
    return folder, facts | {"cached": False}


@contextmanager
def _storing_lock(folder: Path) -> Generator[None]:
    """Hold the lock of an entry; an ``OSError`` of the lock itself becomes a ``CacheError``."""
    with ExitStack() as stack:
        with storing():
            stack.enter_context(locked(_lock_of(folder)))
        yield


def _is_full(folder: Path, error: Exception) -> bool:
    """Return whether a builder failed because the disk of ``folder`` is full.

    The tools that it runs, such as a compiler, report this in texts of their own.
    """
    if isinstance(error, CacheError):
        return False
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    if os.strerror(errno.ENOSPC) in str(error):
        return True
    with suppress(OSError):
        return shutil.disk_usage(folder).free < _FULL_BYTES
    return False


def verified_entry(kind: str, key: str, build: Callable[[Path], dict[str, Any]]) -> Path:
    """Return the folder of a large entry, whose checksums this process compares only once.

    The parameters are those of ``entry``.
    """
    folder = trusted_root() / kind / key
    if folder not in _seen or not (folder / _META).is_file():
        entry(kind, key, build)
        _seen.add(folder)
    return folder


def sweep() -> None:
    """Delete the partial folders of builders that were killed.

    The folder of a builder that still runs is locked and stays.
    """
    with suppress(OSError):
        for half in cache_root().glob(f"*/*{_PARTIAL}"):
            with suppress(OSError), open(_lock_of(half), "a") as handle:
                # A builder holds this lock while it works, so a free lock means that it has ended.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(half, ignore_errors=True)


def _lock_of(folder: Path) -> Path:
    """Return the lock file of an entry, given its final or its partial folder."""
    return (
        folder.parents[1] / "locks" / f"{folder.parent.name}-{folder.name.removesuffix(_PARTIAL)}"
    )


def _read(folder: Path) -> dict[str, Any] | None:
    """Return the facts of a complete entry, or None if a file of it is missing or changed."""
    try:
        meta = json.loads((folder / _META).read_text())
        for name, checksum in meta["files"].items():
            if _checksum(folder / name) != checksum:
                return None
        return dict(meta["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _checksum(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


class ResultCache:
    """A dictionary of JSON documents in the store, in the folder ``cache_root() / kind``.

    Documents are read and never run, so the store need not be a trusted one.

    Parameters
    ----------
    kind : str
        Name of the folder; each producer of documents has its own.
    enabled : bool
        If False, ``get`` always returns None and ``put`` does nothing.
    """

    def __init__(self, *, kind: str, enabled: bool = True):
        self._folder = cache_root() / kind
        self._enabled = enabled

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json.gz"

    def get(self, key: str) -> Any | None:
        """Return the document of ``key``, or None if it is absent or cannot be read."""
        if not self._enabled:
            return None
        try:
            return json.loads(gzip.decompress(self._path(key).read_bytes()))
        # A damaged document counts as absent, because its producer can compute it again.
        except (OSError, EOFError, ValueError, gzip.BadGzipFile):
            return None

    def put(self, key: str, document: Any) -> None:
        """Store ``document``, which JSON must be able to represent, under ``key``.

        A store that is read-only or full keeps no document, because its producer can compute it
        again.
        """
        if self._enabled:
            data = json.dumps(document, separators=(",", ":")).encode()
            with suppress(OSError):
                write_whole(self._path(key), gzip.compress(data, compresslevel=3, mtime=0))
