"""Elaborate a variant and cut it into the pieces that are synthesised, with a cache.

Elaboration is pure Python and takes seconds. Its result depends on the sources of ``golden``,
``hdl`` and ``flows.asic.hierarchy``, on Amaranth's version and on the component's attributes; a
hash of all these is the key of the cache.
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from vitruvian import golden, hdl
from vitruvian.common.cache import ResultCache, digest
from vitruvian.flows.asic import hierarchy
from vitruvian.flows.asic.hierarchy import Design, SynthesisedPart
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described, snake, state_of, to_rtlil

#: Where a unit is cut: at the sub-components that it shares, at every module, or nowhere.
Cut = Literal["shared", "modules", "whole"]


def known_parts(variant: Variant, cut: Cut) -> list[SynthesisedPart] | None:
    """Return the pieces of ``variant`` from the cache, or None if they are not stored.

    Raises
    ------
    UserError
        If the variant cannot be built.
    """
    component = only_described(variant.build())
    stored = _store(component).get(_key(component, variant.unit.shared, cut))
    return None if stored is None else [SynthesisedPart(**part) for part in stored]


def parts_of(variant: Variant, cut: Cut) -> list[SynthesisedPart]:
    """Elaborate ``variant`` and cut it at its shared components, at every module, or nowhere.

    Raises
    ------
    UserError
        If the variant cannot be built.
    """
    component = variant.build()
    shared = {snake(cls.__name__) for cls in variant.unit.shared}
    design = Design(to_rtlil(component, shared=variant.unit.shared))
    # ``cut`` receives the instance path and the label; only the label decides here.
    where = {"shared": lambda _, label: label in shared, "modules": lambda *_: True}
    parts = design.parts(where.get(cut, lambda *_: False))
    _store(component).put(_key(component, variant.unit.shared, cut), [vars(part) for part in parts])
    return parts


def _store(component: Any) -> ResultCache:
    """Return the cache of pieces; it is disabled for components whose sources the key omits."""
    ours = type(component).__module__.startswith("vitruvian.hdl.")
    return ResultCache(kind="parts", enabled=ours)


def _key(component: Any, shared: Sequence[type], cut: Cut) -> str:
    names = [cls.__qualname__ for cls in shared]
    return digest(_sources(), state_of(component), names, cut, version("amaranth"))


@cache
def _sources() -> str:
    """Return the hash of every source file that elaboration depends on."""
    packages = [Path(str(package.__file__)).parent for package in (golden, hdl)]
    files = sorted(file for package in packages for file in package.rglob("*.py"))
    texts = [file.read_bytes() for file in (*files, Path(hierarchy.__file__))]
    return digest(*texts)
