"""Faster elaboration with Amaranth, with the same result.

Amaranth 0.5 computes the width of an expression or a layout recursively on every request, and it
checks the type of every bit of every value. Its expressions are abstract base classes, which
answer ``isinstance`` in Python. While the block of ``quick`` runs, widths are cached, the check is
skipped and expressions answer as other classes do. An expression whose parts change is copied, not
built anew. The RTLIL does not change, because expressions and layouts are immutable, all bits come
from Amaranth itself, parts keep their widths, and no class is registered as an expression without
being derived from it; a test compares both texts.
"""

from abc import ABCMeta
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import _ast, _nir, _xfrm
from amaranth.lib import data

_KNOWN = "_vitruvian_known"
_NAMES_A_DOMAIN = "_vitruvian_names_a_domain"
#: The expressions that an expression contains, by its class; others contain none.
_OPERANDS: dict[Any, Callable[[Any], Sequence[Any]]] = {
    _ast.Operator: lambda value: value.operands,
    _ast.Slice: lambda value: [value.value],
    _ast.Part: lambda value: [value.value, value.offset],
    _ast.Concat: lambda value: value.parts,
    _ast.SwitchValue: lambda value: [value.test, *(result for _, result in value.cases)],
}


class _Derived(ABCMeta):
    """Abstract base classes whose only instances are those of classes derived from them."""

    __instancecheck__ = type.__instancecheck__


@contextmanager
def quick() -> Iterator[None]:
    """Speed up Amaranth's classes while the block runs."""
    abstract = [kind for kind in _derived(_ast.Value) if type(kind) is ABCMeta]
    changes: list[tuple[Any, str, Any]] = [
        (_ast.Operator, "shape", _remembered(_ast.Operator.shape)),
        (_ast.Concat, "shape", _remembered(_ast.Concat.shape)),
        (_nir.Value, "__new__", _new_value),
        (_xfrm.ValueTransformer, "on_Operator", _copying("_operands", several=True)),
        (_xfrm.ValueTransformer, "on_Concat", _copying("_parts", several=True)),
        (_xfrm.ValueTransformer, "on_Slice", _copying("_value", several=False)),
    ]
    for meta in (type(_ast.Const), type(_ast.Signal)):
        changes.append((meta, "__instancecheck__", type.__instancecheck__))
    for layout in (data.StructLayout, data.ArrayLayout):
        size: Any = layout.size
        changes.append((layout, "size", property(_remembered(size.fget))))
    with _changed(changes):
        for kind in abstract:
            kind.__class__ = _Derived
        try:
            yield
        finally:
            for kind in abstract:
                kind.__class__ = ABCMeta


@contextmanager
def _changed(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set attributes of classes while the block runs."""
    originals = [(owner, name, owner.__dict__.get(name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in originals:
            if value is None:  # a base class has the attribute
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _derived(base: Any) -> Iterator[Any]:
    """Yield a class and all classes derived from it."""
    yield base
    for kind in base.__subclasses__():
        yield from _derived(kind)


@contextmanager
def sharing() -> Iterator[None]:
    """Let each expression stay one object in a netlist while the block runs.

    Amaranth copies expressions when it puts the signals of clocks and resets into them, so that an
    expression that is used twice becomes cells twice. Here an expression without such a signal is
    not copied. The netlist has the same paths with fewer cells, but its RTLIL has another text.
    """
    convert = _xfrm.DomainLowerer.on_value

    def convert_some(self: Any, value: Any) -> Any:
        return convert(self, value) if _names_a_domain(value) else value

    with _changed([(_xfrm.DomainLowerer, "on_value", convert_some)]):
        yield


def _names_a_domain(value: Any) -> bool:
    """Return True if an expression contains the clock or the reset of a domain."""
    memory = value.__dict__
    known = memory.get(_NAMES_A_DOMAIN)
    if known is None:
        operands = _OPERANDS.get(type(value))
        named = isinstance(value, _ast.ClockSignal | _ast.ResetSignal)
        known = named or (operands is not None and any(map(_names_a_domain, operands(value))))
        memory[_NAMES_A_DOMAIN] = known
    return known


def _remembered(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``method`` with a cache in each (immutable) object."""

    def answer(self: Any) -> Any:
        known = self.__dict__.get(_KNOWN)
        if known is None:
            known = self.__dict__[_KNOWN] = method(self)
        return known

    return answer


def _copying(name: str, *, several: bool) -> Callable[[Any, Any], Any]:
    """Return a method that transforms an expression's parts, in the attribute ``name``.

    Amaranth builds the expression anew from its parts and checks them. They have their widths
    still, so that the rest of the expression, with its cached width, can be copied.
    """

    def transformed(self: Any, value: Any) -> Any:
        parts = getattr(value, name)
        result = object.__new__(type(value))
        own = result.__dict__
        own.update(value.__dict__)
        own[name] = tuple(map(self.on_value, parts)) if several else self.on_value(parts)
        return result

    return transformed


def _new_value(cls: type, nets: Any = ()) -> Any:
    """Create a ``_nir.Value`` without the type check of every net."""
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)
