"""Operands of instructions: views into buffers, and the exact bytes that an access touches."""

import math
import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.golden.core.encoding import CARRIERS
from vitruvian.golden.vector.formats import DTYPES as _ELEMENTS

#: NumPy type of the elements of each dtype. Those of ``CARRIERS``, which only a Cube computes with,
#: are held as what carries them: TF32 as FP32, whose 13 lowest bits do not count, FP8 as codes.
#: An element of ``FOURS`` is a byte of two integers of 4 bits (``golden.vector.fours``), which only
#: the Cube and conversions compute with; only the simulator has them.
FOURS = "int4x2"
DTYPES: dict[str, np.dtype[Any]] = _ELEMENTS | {
    name: _ELEMENTS[carrier] for name, carrier in CARRIERS.items()
}
DTYPES[FOURS] = _ELEMENTS["uint8"]
#: Dtypes of numbers whose elements NumPy may hold as integers.
_CODED = frozenset(("bf16", *CARRIERS, FOURS))

#: Bytes of a block of a local buffer, of a fractal (16×16 FP16), and of a vector repeat.
BLOCK_BYTES, FRACTAL_BYTES, REPEAT_BYTES = 32, 512, 256
#: Bytes of the places of a sparse product's fractal: 16 columns of 32 numbers of two bits.
PLACE_BYTES = 128


def dtype_bytes(dtype: str) -> int:
    """Return the number of bytes of one element.

    Raises
    ------
    ValueError
        If ``DTYPES`` lacks the name.
    """
    try:
        return DTYPES[dtype].itemsize
    except (KeyError, TypeError):
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}") from None


def per_block(dtype: str) -> int:
    """Return the numbers in a block of 32 bytes; an element of ``FOURS`` is two numbers."""
    return BLOCK_BYTES // DTYPES[dtype].itemsize * (2 if dtype == FOURS else 1)


def is_integer(dtype: str) -> bool:
    """Return True if the elements of a dtype are integers, and not the codes of other numbers."""
    return DTYPES[dtype].kind in "iu" and dtype not in _CODED


@dataclass(frozen=True, slots=True)
class View:
    """An operand: elements of one dtype in one buffer.

    Attributes
    ----------
    buffer : str
        "GM", or a buffer of the core: "L1", "L0A", "L0B", "L0C", "UB", "BT", "FB".
    offset : int
        First byte, from the start of the buffer.
    dtype : str
        A name in ``DTYPES``.
    shape : tuple of int
    strides : tuple of int
        Bytes from one element to the next along each axis, as in NumPy.
    name : str
        Name of the tensor that the view is a part of, for messages.
    """

    buffer: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    name: str = ""

    def __str__(self) -> str:
        shape = "×".join(map(str, self.shape)) or "1"
        label = f" {self.name}" if self.name else ""
        return f"{self.buffer}[{self.offset}]{label} {shape} {self.dtype}"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return DTYPES[self.dtype].itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the elements alone, without the gaps between them."""
        return self.size * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """True if the elements follow each other without a gap, the last axis fastest."""
        return self.strides == contiguous(self.shape, DTYPES[self.dtype].itemsize)

    @property
    def span(self) -> "Span":
        """The bytes of all elements."""
        # Axes that follow each other without a gap become one run, so that equal places have equal
        # spans.
        axes = tuple(zip(self.shape, self.strides, strict=True))
        run, levels = _simplified(self.itemsize, axes)
        return Span(self.buffer, self.offset, run, levels)

    def __getitem__(self, key: Any) -> "View":
        """Slice as NumPy does, with integers, slices of a step of 1 or more, and an ellipsis.

        Raises
        ------
        IndexError, ValueError
            If an index is outside the shape, there are too many of them, or a step is below 1.
        """
        keys = key if isinstance(key, tuple) else (key,)
        dots = keys.count(Ellipsis)
        if dots > 1 or len(keys) - dots > len(self.shape):
            raise IndexError(f"index must have at most {len(self.shape)} axes, not {key!r}")
        if dots:
            at = keys.index(Ellipsis)
            fill = (slice(None),) * (len(self.shape) - len(keys) + 1)
            keys = keys[:at] + fill + keys[at + 1 :]
        offset, shape, strides = self.offset, [], []
        # There may be fewer keys than axes: the axes behind the keys stay as they are.
        for k, n, stride in zip(keys, self.shape, self.strides, strict=False):
            if isinstance(k, slice):
                first, last, step = k.indices(n)
                if step < 1:
                    raise ValueError(f"step must be 1 or more, not {k.step!r}")
                for bound in (k.start, k.stop):
                    if bound is not None and not -n <= bound <= n:
                        raise IndexError(f"index must be within an axis of {n}, not {bound!r}")
                shape.append(len(range(first, last, step)))
                strides.append(stride * step)
                offset += first * stride
            else:
                if not -n <= k < n:
                    raise IndexError(f"index must be within an axis of {n}, not {k!r}")
                # Python's remainder makes a negative index count from the end.
                offset += (k % n) * stride
        kept = len(keys)
        shape, strides = (*shape, *self.shape[kept:]), (*strides, *self.strides[kept:])
        return View(self.buffer, offset, self.dtype, shape, strides, self.name)

    def reshape(self, *shape: int) -> "View":
        """Return the same elements in another shape; the view must be contiguous.

        Raises
        ------
        ValueError
            If the numbers of elements differ, or the view has gaps.
        """
        size = math.prod(map(operator.index, shape))
        if size != self.size:
            raise ValueError(f"shape must have {self.size} elements, not {shape!r} with {size}")
        if not self.is_contiguous:
            raise ValueError(f"view must be contiguous to be reshaped, not {self}")
        if shape == self.shape:
            return self
        strides = contiguous(shape, self.itemsize)
        return View(self.buffer, self.offset, self.dtype, shape, strides, self.name)

    def astype(self, dtype: str) -> "View":
        """Return a flat view of the same bytes as another dtype; the view must be contiguous.

        Raises
        ------
        ValueError
            If the bytes do not divide into whole elements, or the view has gaps.
        """
        width = dtype_bytes(dtype)
        if not self.is_contiguous or self.nbytes % width:
            raise ValueError(f"view must be whole contiguous elements of {dtype}, not {self}")
        shape = (self.nbytes // width,)
        return View(self.buffer, self.offset, dtype, shape, contiguous(shape, width), self.name)


@lru_cache(4096)
def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the byte strides of a dense array, the last axis fastest."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of one buffer: a contiguous run that is repeated in nested levels.

    The bytes are ``start + Σ i_l · stride_l + b`` for every ``0 ≤ i_l < count_l`` and
    ``0 ≤ b < run``. Bursts have one level, vector accesses two (blocks in a repeat, repeats).

    Attributes
    ----------
    buffer : str
    start : int
        First byte.
    run : int
        Contiguous bytes; 0 is an empty span.
    levels : tuple of (count, stride)
        Outermost first; strides in bytes, possibly 0 or overlapping.
    """

    buffer: str
    start: int
    run: int
    levels: tuple[tuple[int, int], ...] = ()

    @property
    def nbytes(self) -> int:
        """Number of bytes, with a byte that is touched twice counted twice."""
        total = self.run
        for count, _ in self.levels:
            total *= count
        return total

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self._bounds()[1]

    @property
    def first(self) -> int:
        """The lowest byte; it is ``start`` unless a stride is negative."""
        return self._bounds()[0]

    def _bounds(self) -> tuple[int, int]:
        low, high = self.start, self.start + self.run
        for count, stride in self.levels:
            reach = max(count - 1, 0) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    def simplified(self) -> "Span":
        """Return the same bytes with as few levels as possible.

        Levels of one item are removed, and levels that continue the run or each other are merged.
        """
        run, levels = _simplified(self.run, self.levels)
        return Span(self.buffer, self.start, run, levels)

    def intervals(self) -> np.ndarray:
        """Return the bytes as disjoint intervals in rising order.

        Returns
        -------
        (N, 2) ndarray of int64
            The first byte of each interval, and one past its last byte.
        """
        if not self.nbytes:
            return np.zeros((0, 2), np.int64)
        starts = np.array([self.start], np.int64)
        for count, stride in self.levels:
            starts = (starts[:, None] + stride * np.arange(count, dtype=np.int64)).ravel()
        # An interval begins where a run does not touch the previous one. Its last run is the one
        # before the next beginning.
        starts = np.unique(starts)
        heads = np.ones(len(starts), bool)
        heads[1:] = starts[1:] > starts[:-1] + self.run
        first = starts[heads]
        last = np.append(starts[:-1][heads[1:]], starts[-1]) + self.run
        return np.stack([first, last], axis=1)

    def overlap(self, other: "Span") -> tuple[int, int] | None:
        """Return the first interval of bytes that both spans touch, or None."""
        apart = self.first >= other.end or other.first >= self.end
        if self.buffer != other.buffer or apart or not self.nbytes or not other.nbytes:
            return None
        first, second = self.intervals(), other.intervals()
        # For each interval of ``other``, the first interval of this span that ends after it begins.
        at = np.searchsorted(first[:, 1], second[:, 0], side="right")
        hit = (at < len(first)) & (first[np.minimum(at, len(first) - 1), 0] < second[:, 1])
        if not hit.any():
            return None
        j = int(np.argmax(hit))
        i = int(at[j])
        return int(max(first[i, 0], second[j, 0])), int(min(first[i, 1], second[j, 1]))

    def __str__(self) -> str:
        return f"{self.buffer}[{self.first}:{self.end}]"


@lru_cache(4096)
def _simplified(
    run: int, levels: tuple[tuple[int, int], ...]
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the run and the levels of ``Span.simplified``; most spans of a kernel share them."""
    # From the innermost level outwards: overlapping or adjacent runs become a longer run.
    merged: list[tuple[int, int]] = []
    for count, stride in reversed(levels):
        if count == 0:
            return 0, ()
        if count == 1 or stride == 0:
            continue
        if not merged and 0 < stride <= run:
            run += (count - 1) * stride
        elif merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * count, merged[-1][1])
        else:
            merged.append((count, stride))
    return run, tuple(reversed(merged))
