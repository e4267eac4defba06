"""Faster elaboration with Amaranth, with the same result.

Amaranth 0.5 computes the width of an expression or a layout recursively on every request, and it
checks the type of every bit of every value. While the block of ``quick`` runs, widths are cached
and the check is skipped. The RTLIL does not change, because expressions and layouts are immutable
and all bits come from Amaranth itself; a test compares both texts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import _ast, _nir
from amaranth.lib import data

_KNOWN = "_vitruvian_known"


@contextmanager
def quick() -> Iterator[None]:
    """Speed up Amaranth's classes while the block runs."""
    changes: list[tuple[Any, str, Any]] = [
        (_ast.Operator, "shape", _remembered(_ast.Operator.shape)),
        (_ast.Concat, "shape", _remembered(_ast.Concat.shape)),
        (_nir.Value, "__new__", _new_value),
    ]
    for layout in (data.StructLayout, data.ArrayLayout):
        size: Any = layout.size
        changes.append((layout, "size", property(_remembered(size.fget))))
    originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in originals:
            setattr(owner, name, value)


def _remembered(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``method`` with a cache in each (immutable) object."""

    def answer(self: Any) -> Any:
        known = self.__dict__.get(_KNOWN)
        if known is None:
            known = self.__dict__[_KNOWN] = method(self)
        return known

    return answer


def _new_value(cls: type, nets: Any = ()) -> Any:
    """Create a ``_nir.Value`` without the type check of every net."""
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)
