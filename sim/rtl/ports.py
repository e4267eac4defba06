"""Ports of a compiled model, and their conversion between bits and NumPy arrays.

This module does not import Amaranth, because simulators that use a compiled model do not need it
and it takes long to import.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A scalar field of a port, or an array of equal scalar fields.

    Attributes
    ----------
    path : tuple of str
        Names of the nested fields, the outermost first; empty for a port without a structure.
    offset, width : int
        Position of the least significant bit of element 0, and width of an element, in bits.
    signed : bool
        True if the field is a two's complement number.
    dims : tuple of (int, int)
        Number of elements and stride in bits of each array dimension, the outermost first.
    """

    path: tuple[str, ...] = ()
    offset: int = 0
    width: int
    signed: bool = False
    dims: tuple[tuple[int, int], ...] = ()

    @property
    def words(self) -> int:
        """Number of 64-bit words of an element."""
        return ceil_div(self.width, 64)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value of one vector; wide elements have a last axis of 64-bit words."""
        counts = tuple(count for count, _ in self.dims)
        return counts + ((self.words,) if self.words > 1 else ())

    @property
    def dtype(self) -> np.dtype:
        """The smallest NumPy integer that holds an element."""
        bits = next((n for n in (8, 16, 32, 64) if n >= self.width), 64)
        return np.dtype(f"{'i' if self.signed and self.words == 1 else 'u'}{bits // 8}")

    def pieces(self) -> list[tuple[int, int]]:
        """Return bit position and width of the pieces of all elements, in the order of memory.

        An element that is wider than 64 bits has several pieces.
        """
        pieces = []
        for index in product(*(range(count) for count, _ in self.dims)):
            at = self.offset + sum(
                i * stride for i, (_, stride) in zip(index, self.dims, strict=True)
            )
            for word in range(self.words):
                pieces.append((at + 64 * word, min(64, self.width - 64 * word)))
        return pieces

    def to_memory(self, value: Any, *, name: str) -> np.ndarray:
        """Check an array and return it in the dtype and memory order that the driver reads.

        Parameters
        ----------
        value : (N, *shape) array_like of integers
        name : str
            Name of the port, for messages.

        Raises
        ------
        TypeError
            If the array does not consist of integers.
        ValueError
            If the shape is wrong, or a number does not fit the width of the field.
        """
        label = ".".join((name, *self.path))
        array = np.asarray(value)
        is_bit = array.dtype.kind == "b" and self.width == 1
        is_object = array.dtype == object and self.words == 1
        if array.dtype.kind not in "iu" and not (is_bit or is_object):
            raise TypeError(f"{label} must be an array of integers, not of {array.dtype}")
        if array.shape and array.shape[1:] != self.shape:
            want = ", ".join(("N", *map(str, self.shape)))
            raise ValueError(f"{label} must have the shape ({want}), not {array.shape}")
        # A signed array of the field's width holds two's complement codes: the bits stay as they
        # are. In every other case a negative number in an unsigned field is an error.
        if array.dtype.kind == "i" and not self.signed and array.dtype.itemsize * 8 == self.width:
            array = array.view(array.dtype.str.replace("i", "u"))
        # A dtype of exactly the field's width cannot hold a number that is too large.
        if array.dtype != self.dtype or self.width % 8 or self.words > 1:
            self._check_range(array, label)
        return np.asarray(array, dtype=self.dtype, order="C")

    def _check_range(self, array: np.ndarray, label: str) -> None:
        if not array.size:
            return
        if self.words > 1:
            # All words but the highest use their 64 bits.
            top = self.width - 64 * (self.words - 1)
            if array.dtype != np.uint64:
                raise TypeError(f"{label} must be uint64 words, low word first, not {array.dtype}")
            array, low, high = array[..., -1], 0, 2**top - 1
        elif self.signed:
            low, high = -(2 ** (self.width - 1)), 2 ** (self.width - 1) - 1
        else:
            low, high = 0, 2**self.width - 1
        smallest, largest = int(array.min()), int(array.max())
        if smallest < low or largest > high:
            wrong = smallest if smallest < low else largest
            raise ValueError(f"{label} must be within {low}..{high}, not {wrong!r}")


@dataclass(frozen=True, kw_only=True)
class Port:
    """A Verilog port with its name, its width in bits and its fields."""

    name: str
    width: int
    leaves: tuple[Leaf, ...]

    def to_memory(self, value: Any, *, label: str | None = None) -> list[np.ndarray]:
        """Return a checked array for each leaf, in the order of ``leaves``.

        Parameters
        ----------
        value : array_like or mapping
            An array for a plain port, nested mappings or a structured array for a structure.
        label : str, optional
            Name for messages; the name of the port by default.

        Raises
        ------
        TypeError, ValueError
            If a field is missing or unknown, or an array does not fit; see ``Leaf.to_memory``.
        """
        label = label or self.name
        names = {leaf.path for leaf in self.leaves}
        if names == {()}:
            return [self.leaves[0].to_memory(value, name=label)]
        flat = dict(_flatten(value))
        if set(flat) != names:
            want = ", ".join(".".join(path) for path in sorted(names))
            have = ", ".join(".".join(path) or repr(type(value)) for path in sorted(flat))
            raise ValueError(f"{label} must be a mapping with the fields {want}, not {have}")
        return [leaf.to_memory(flat[leaf.path], name=label) for leaf in self.leaves]

    def allocate(self, count: int) -> list[np.ndarray]:
        """Return an uninitialised array for ``count`` values of each leaf."""
        return [np.empty((count, *leaf.shape), dtype=leaf.dtype) for leaf in self.leaves]

    def from_memory(self, arrays: list[np.ndarray]) -> Any:
        """Return the array of a plain port, or nested dicts of arrays for a structure."""
        if self.leaves[0].path == ():
            return arrays[0]
        result: dict[str, Any] = {}
        for leaf, array in zip(self.leaves, arrays, strict=True):
            inner = result
            for key in leaf.path[:-1]:
                inner = inner.setdefault(key, {})
            inner[leaf.path[-1]] = array
        return result


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream: its payload port, and the names of its ports ``valid`` and ``ready``.

    A name is None if the signal is always 1 and has no port.
    """

    name: str
    payload: Port
    valid: str | None
    ready: str | None


@dataclass(frozen=True, kw_only=True)
class Interface:
    """All ports of a unit except clock and reset."""

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    streams_in: tuple[Stream, ...] = ()
    streams_out: tuple[Stream, ...] = ()

    @property
    def has_streams(self) -> bool:
        """True if the unit has a stream."""
        return bool(self.streams_in or self.streams_out)

    def verilog_names(self) -> list[str]:
        """Return the names of all ports that the Verilog must have."""
        names = [port.name for port in self.inputs + self.outputs]
        for stream in self.streams_in + self.streams_out:
            names += [n for n in (stream.payload.name, stream.valid, stream.ready) if n]
        return names


def plain_port(name: str, width: int, *, lanes: int = 1, signed: bool = False) -> Port:
    """Return a port that has one field, or ``lanes`` equal fields side by side.

    Parameters
    ----------
    width : int
        Width of the whole port in bits.
    lanes : int
        Number of fields.
    signed : bool
        True if the fields are two's complement numbers.

    Raises
    ------
    ValueError
        If the width is not a positive multiple of the number of lanes.
    """
    if width < 1 or lanes < 1 or width % lanes:
        raise ValueError(
            f"width of {name} must be a positive multiple of its lanes, not {width!r} of {lanes!r}"
        )
    each = width // lanes
    dims = ((lanes, each),) if lanes > 1 else ()
    return Port(name=name, width=width, leaves=(Leaf(width=each, signed=signed, dims=dims),))


def _flatten(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, (*path, str(key)))
    elif isinstance(value, np.ndarray) and value.dtype.names:
        for key in value.dtype.names:
            yield from _flatten(value[key], (*path, key))
    else:
        yield path, value
