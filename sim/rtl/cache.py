"""A content-addressed store of builds: whole entries or none, one builder at a time.

An entry is a folder named by the hash of everything that determines it. It is built beside its
place under a file lock and renamed into it, so an interrupted build leaves only a ``.partial``
folder that the next builder of the same entry deletes.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["cache_root", "digest", "entry", "locked"]

_META = "meta.json"


def cache_root() -> Path:
    """``$VITRUVIAN_CACHE``, or ``build/cache`` in the working directory."""
    return Path(os.environ.get("VITRUVIAN_CACHE") or Path("build") / "cache").absolute()


def digest(*parts: object) -> str:
    """Hash of the texts of ``parts``: the name of what they determine."""
    state = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str) else repr(part)
        data = text.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:32]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` (made when absent) against other processes and threads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


def entry(kind: str, key: str, build: Callable[[Path], dict[str, Any]]) -> tuple[Path, dict]:
    """Return the folder and the facts of an entry, building it when it is absent or damaged.

    Parameters
    ----------
    kind : str
        Folder under the root.
    key : str
        Result of :func:`digest`.
    build : callable
        Fills the folder it is given and returns facts that JSON can hold.

    Returns
    -------
    folder : Path
    facts : dict
        What ``build`` returned, plus ``cached``: whether it was there before.
    """
    folder = cache_root() / kind / key
    facts = _read(folder)
    if facts is not None:
        return folder, facts | {"cached": True}
    with locked(cache_root() / "locks" / f"{kind}-{key}"):
        facts = _read(folder)  # another process may have built it while this one waited
        if facts is not None:
            return folder, facts | {"cached": True}
        partial = folder.with_name(key + ".partial")
        for stale in (partial, folder):
            if stale.exists():
                shutil.rmtree(stale)
        partial.mkdir(parents=True)
        try:
            facts = build(partial)
            files = {
                str(path.relative_to(partial)): _checksum(path)
                for path in sorted(partial.rglob("*"))
                if path.is_file()
            }
            (partial / _META).write_text(json.dumps({"files": files, "facts": facts}))
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return folder, facts | {"cached": False}


def _read(folder: Path) -> dict[str, Any] | None:
    """The facts of a whole entry; None when anything is missing or changed."""
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
