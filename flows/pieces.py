"""Elaborate a variant and cut it into the pieces that are synthesised; known ones from the cache.

Elaboration is Python all through and takes seconds; its result depends on the sources of `golden`,
`hdl` and `flows.hierarchy`, on Amaranth and on the component's attributes: that is the key.
"""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import golden
import hdl
from flows import hierarchy
from flows.cache import ResultCache, digest
from flows.hierarchy import Design, Part
from flows.unit import Variant
from hdl.elaborate import snake, state_of, to_rtlil


def known_parts(variant: Variant, per_module: bool) -> list[Part] | None:
    """Return the pieces of `variant` if it was cut before, else None.

    Raises
    ------
    UserError
        The variant cannot be built.
    """
    component = variant.build()
    setattr(component, "_MustUse__used", True)  # noqa: B010 Amaranth warns of what is not elaborated
    found = _store(component).get(_key(component, per_module))
    return None if found is None else [Part(**part) for part in found]


def parts_of(variant: Variant, per_module: bool) -> list[Part]:
    """Elaborate `variant` and cut it at its shared components, or at every module."""
    component = variant.build()
    shared = {snake(cls.__name__) for cls in variant.unit.shared}
    design = Design(to_rtlil(component, shared=variant.unit.shared))
    parts = design.parts(lambda path, label: per_module or label in shared)
    _store(component).put(_key(component, per_module), [vars(part) for part in parts])
    return parts


def _store(component: Any) -> ResultCache:
    """Return where pieces are kept: nowhere for components whose sources are not in the key."""
    ours = type(component).__module__.split(".")[0] == "hdl"
    return ResultCache(kind="parts", enabled=ours)


def _key(component: Any, per_module: bool) -> str:
    return digest(_sources(), state_of(component), per_module, version("amaranth"))


@cache
def _sources() -> str:
    """Return the hash of every source file that elaboration reads."""
    packages = [Path(str(package.__file__)).parent for package in (golden, hdl)]
    files = sorted(file for package in packages for file in package.rglob("*.py"))
    texts = [file.read_bytes() for file in (*files, Path(hierarchy.__file__))]
    return digest(*texts)
