"""A memory of designs by unit and parameters, which makes a second elaboration unnecessary."""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.common.cache import cache_root, digest, entry, locked
from vitruvian.common.files import write_whole

if TYPE_CHECKING:
    from amaranth.lib import wiring

#: Packages whose sources determine a unit and its Verilog. One of them is golden, because it
#: defines the parameter objects of units.
_SOURCES = ("vitruvian.hdl", "vitruvian.golden", "vitruvian.sim.rtl")


@lru_cache
def source_digest() -> str:
    """Return a hash of Amaranth's version and all sources on which a unit of ``hdl`` can depend."""
    parts: list[object] = [importlib.metadata.version("amaranth")]
    for package in _SOURCES:
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            for path in sorted(Path(place).rglob("*.py")):
                parts += [str(path.relative_to(place)), path.read_text()]
    return digest(*parts)


def identity_of(unit: Callable[..., Any], parameters: Mapping[str, Any]) -> str | None:
    """Return a text that determines ``unit(**parameters)`` together with the sources.

    The result is None if the unit is not part of ``hdl``, or if the ``repr`` of a parameter
    contains a memory address and so does not describe the parameter.
    """
    identity = f"{unit.__module__}.{getattr(unit, '__qualname__', unit)}({dict(parameters)!r})"
    return (
        identity
        if unit.__module__.startswith("vitruvian.hdl.") and " at 0x" not in identity
        else None
    )


def unit_verilog(unit: "Callable[..., wiring.Component]", /, **parameters: Any) -> str:
    """Return the Verilog of ``unit(**parameters)``, from the cache if possible.

    The top module is called ``top``.

    Raises
    ------
    ValueError
        If ``unit`` is not part of ``hdl``, or the ``repr`` of a parameter does not describe it
        completely.
    """
    from .emit import to_verilog

    identity = identity_of(unit, parameters)
    if identity is None:
        raise ValueError(
            f"unit must be part of hdl and its parameters must have a full repr, not {unit!r}"
        )

    def build(folder: Path) -> dict[str, Any]:
        (folder / "top.v").write_text(to_verilog(unit(**parameters)))
        return {}

    folder, _ = entry("verilog", digest(identity, source_digest()), build)
    return (folder / "top.v").read_text()


def remembered(identity: str, find: Callable[[], str]) -> str:
    """Return the cache key of the model with this identity.

    Parameters
    ----------
    identity : str
        Text that determines the model together with the sources.
    find : callable
        Function that computes the key. It is called only if the key for this identity and these
        sources is not stored yet, and not in two processes at the same time.
    """
    path = cache_root() / "alias" / digest(identity, source_digest())
    key = _stored(path)
    if key is not None:
        return key
    with ExitStack() as stack:
        with suppress(OSError):  # a store that is read-only
            stack.enter_context(locked(cache_root() / "locks" / f"alias-{path.name}"))
        key = _stored(path)  # another process may have found it while this one waited
        if key is None:
            key = find()
            with suppress(OSError):  # a store that is read-only or full
                write_whole(path, key)
    return key


def _stored(path: Path) -> str | None:
    try:
        key = path.read_text()
    except OSError:
        return None
    return key if len(key) == len(path.name) else None
