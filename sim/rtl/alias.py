"""Short cuts past elaboration: which design a unit with given parameters is, from last time."""

import importlib.metadata
import importlib.util
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cache import cache_root, digest, entry

if TYPE_CHECKING:
    from amaranth.lib import wiring

__all__ = ["identity_of", "remembered", "source_digest", "unit_verilog"]

#: Packages whose sources determine a unit and its Verilog; golden for its parameter objects.
_SOURCES = ("vitruvian.hdl", "vitruvian.golden", "vitruvian.sim.rtl")


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


def identity_of(unit: Callable[..., Any], parameters: Mapping[str, Any]) -> str | None:
    """Text that, with the sources, determines ``unit(**parameters)``; None if there is none."""
    identity = f"{unit.__module__}.{getattr(unit, '__qualname__', unit)}({dict(parameters)!r})"
    return (
        identity
        if unit.__module__.startswith("vitruvian.hdl.") and " at 0x" not in identity
        else None
    )


def unit_verilog(unit: "Callable[..., wiring.Component]", /, **parameters: Any) -> str:
    """Verilog of ``unit(**parameters)`` with top module ``top``; from the cache if it is there.

    Raises
    ------
    ValueError
        If ``unit`` is not of ``hdl`` or a parameter's ``repr`` does not say all about it.
    """
    from .emit import to_verilog

    identity = identity_of(unit, parameters)
    if identity is None:
        raise ValueError(f"unit must be of hdl, with parameters that print whole, not {unit!r}")

    def build(folder: Path) -> dict[str, Any]:
        (folder / "top.v").write_text(to_verilog(unit(**parameters)))
        return {}

    folder, _ = entry("verilog", digest(identity, source_digest()), build)
    return (folder / "top.v").read_text()


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
