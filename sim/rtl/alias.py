"""Short cuts past elaboration: which design a unit with given parameters is, from last time."""

import importlib.metadata
import importlib.util
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from .cache import cache_root, digest

__all__ = ["remembered", "source_digest"]

#: Packages whose sources determine a unit; golden for its parameter objects.
_SOURCES = ("hdl", "golden")


@lru_cache
def source_digest() -> str:
    """Hash of every source file a unit of ``hdl`` can depend on, and of Amaranth's version."""
    parts: list[object] = [importlib.metadata.version("amaranth")]
    for package in _SOURCES:
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            for path in sorted(Path(place).rglob("*.py")):
                parts += [str(path.relative_to(place)), path.read_text()]
    return digest(*parts)


def remembered(identity: str, find: Callable[[], str]) -> str:
    """The key that ``find`` gave for ``identity`` and these sources; asked again when unknown."""
    path = cache_root() / "alias" / digest(identity, source_digest())
    try:
        key = path.read_text()
        if len(key) == len(path.name):
            return key
    except OSError:
        pass
    key = find()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(key)
    os.replace(temporary, path)
    return key
