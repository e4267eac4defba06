"""Port values as Python integers: packing and unpacking for cocotb, one value at a time."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from vitruvian.sim.rtl.ports import Leaf, Port

__all__ = ["pack", "unpack"]


def pack(port: Port, value: Any) -> int:
    """Bits of a port: ``value`` is a number, nested sequences for arrays, mappings for structures.

    Raises
    ------
    ValueError
        If a field is missing, or a number does not fit.
    """
    bits = 0
    for leaf in port.leaves:
        inner = value
        for key in leaf.path:
            if not isinstance(inner, Mapping) or key not in inner:
                raise ValueError(f"{port.name} must have the field {'.'.join(leaf.path)}")
            inner = inner[key]
        for index, at in _places(leaf):
            element = inner
            for i in index:
                element = element[i]
            number = int(element)
            if not -(1 << leaf.width - 1) * leaf.signed <= number < 1 << leaf.width:
                raise ValueError(f"{port.name} must fit {leaf.width} bits, not {number!r}")
            bits |= (number & (1 << leaf.width) - 1) << at
    return bits


def unpack(port: Port, bits: int) -> Any:
    """What :func:`pack` was given: a number, nested lists, or nested dicts of those."""
    result: dict[str, Any] = {}
    for leaf in port.leaves:
        value = _nested(leaf, bits, ())
        if not leaf.path:
            return value
        inner = result
        for key in leaf.path[:-1]:
            inner = inner.setdefault(key, {})
        inner[leaf.path[-1]] = value
    return result


def _places(leaf: Leaf) -> list[tuple[tuple[int, ...], int]]:
    """(index, bit position) of every element."""
    return [
        (index, leaf.offset + sum(i * s for i, (_, s) in zip(index, leaf.dims, strict=True)))
        for index in product(*(range(count) for count, _ in leaf.dims))
    ]


def _nested(leaf: Leaf, bits: int, index: Sequence[int]) -> Any:
    if len(index) < len(leaf.dims):
        count = leaf.dims[len(index)][0]
        return [_nested(leaf, bits, (*index, i)) for i in range(count)]
    at = leaf.offset + sum(i * s for i, (_, s) in zip(index, leaf.dims, strict=True))
    number = bits >> at & (1 << leaf.width) - 1
    if leaf.signed and number >> leaf.width - 1:
        number -= 1 << leaf.width
    return number
