"""Conversion between the values of a port and Python integers, for cocotb benches."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from vitruvian.sim.rtl.ports import Leaf, Port


def pack(port: Port, value: Any) -> int:
    """Return the bits of a port as a number.

    Parameters
    ----------
    value : int, sequence or mapping
        A number for a plain port, nested sequences for an array, a mapping for a structure.

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
        for index, at in _positions(leaf):
            element = inner
            for i in index:
                element = element[i]
            number = int(element)
            # A signed field also accepts the unsigned number that has the same bits.
            if not -(1 << leaf.width - 1) * leaf.signed <= number < 1 << leaf.width:
                raise ValueError(f"{port.name} must fit {leaf.width} bits, not {number!r}")
            bits |= (number & (1 << leaf.width) - 1) << at
    return bits


def unpack(port: Port, bits: int) -> Any:
    """Return the value of a port from its bits; the inverse of ``pack``.

    The result is a number, nested lists for an array, or nested dicts for a structure.
    """
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


def _positions(leaf: Leaf) -> list[tuple[tuple[int, ...], int]]:
    """Return the index and the bit position of every element."""
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
