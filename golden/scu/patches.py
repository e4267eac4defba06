"""The geometry of an image's patches, which Im2Col and Col2Im share."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div, check_int

#: Patches in a fractal
ROWS = 16

_Pixels = tuple[np.ndarray, np.ndarray, np.ndarray]
_Fractal = tuple[int, np.ndarray, np.ndarray, np.ndarray]
_Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Patches:
    """The patches that a kernel covers in an image, numbered row by row.

    Parameters
    ----------
    height, width : int
        Size I_h × I_w in pixels of the image, or of the tile of it that is stored.
    kernel : (int, int)
        Rows and columns of the kernel, K_h and K_w.
    stride : (int, int)
        Distance in pixels from one patch to the next, S_h and S_w.
    pad : (int, int, int, int)
        Pixels of padding at the top, bottom, left and right of the image.
    dilation : (int, int)
        Distance in pixels from one element of a patch to the next, in rows and in columns.

    Raises
    ------
    TypeError, ValueError
        If a parameter does not hold integers of at least 1 (``pad``: 0), or if the kernel does not
        fit into the padded image.

    References
    ----------
    Rohwedder 2021, §3.3, equation 3.1, which has no dilation. A dilation D extends the kernel to
    (K − 1)·D + 1 pixels.
    """

    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        check_int("height", self.height, 1)
        check_int("width", self.width, 1)
        for name, count, low in (
            ("kernel", 2, 1),
            ("stride", 2, 1),
            ("pad", 4, 0),
            ("dilation", 2, 1),
        ):
            value: Any = getattr(self, name)
            if not issubclass(type(value), tuple) or len(value) != count:
                raise TypeError(f"{name} must be a tuple of {count} ints, not {value!r}")
            for number in value:
                check_int(name, number, low)
        if self.rows < 1 or self.columns < 1:
            high, wide = self.extent
            raise ValueError(
                f"kernel must fit into the padded image, not {high} × {wide} pixels into "
                f"{self.height + sum(self.pad[:2])} × {self.width + sum(self.pad[2:])}"
            )

    @property
    def extent(self) -> _Pair:
        """The size (rows, columns) in pixels of a patch, including dilation."""
        (kh, kw), (dh, dw) = self.kernel, self.dilation
        return (kh - 1) * dh + 1, (kw - 1) * dw + 1

    @property
    def rows(self) -> int:
        """The number of rows of patches, O_h."""
        return (self.height + self.pad[0] + self.pad[1] - self.extent[0]) // self.stride[0] + 1

    @property
    def columns(self) -> int:
        """The number of patches in a row, O_w."""
        return (self.width + self.pad[2] + self.pad[3] - self.extent[1]) // self.stride[1] + 1

    @property
    def count(self) -> int:
        """The number of patches, O_h·O_w."""
        return self.rows * self.columns

    @property
    def fractals(self) -> int:
        """The number of fractals that hold all patches at one position of the kernel."""
        return ceil_div(self.count, ROWS)

    def corner(self, number: int) -> _Pair:
        """Return (row, column) of the first pixel of a patch, negative in the padding."""
        row, column = divmod(number, self.columns)
        return row * self.stride[0] - self.pad[0], column * self.stride[1] - self.pad[2]

    def pixels(self, position: _Pair, kernel_position: _Pair, count: int) -> _Pixels:
        """Return the pixels of consecutive patches at one position of the kernel.

        The next patch is one stride to the right. If that does not fit into the padded image, it
        is the first patch of the next row, one stride further down.

        Parameters
        ----------
        position : (int, int)
            Row and column of the first patch's first pixel; that is (x, y) of Rohwedder 2021 minus
            the padding.
        kernel_position : (int, int)
            Row and column in the kernel, (x_k, y_k).
        count : int
            Number of patches.

        Returns
        -------
        rows, columns : (count,) ndarray of int64
        inside : (count,) ndarray of bool
            True if the pixel belongs to the image. It is False in the padding and for patches after
            the last one.

        Raises
        ------
        ValueError
            If ``position`` is above the padded image or leaves no room for a patch in the padded
            width, or if ``kernel_position`` is outside the kernel.
        """
        return _pixels(self, tuple(position), self._within(kernel_position), count)

    def numbers(self) -> np.ndarray:
        """Return the numbers of the pixels of all patches at every position of the kernel.

        Returns
        -------
        (Kh·Kw, P, 16) ndarray of int64
            row·W + column of each pixel, with P = ``fractals``; −1 in the padding and after the
            last patch.
        """
        return _numbers(self)

    def walk(
        self, position: _Pair, kernel_position: _Pair, channel: int, repeat: int, mode: int
    ) -> list[_Fractal]:
        """Return the fractals of an instruction with repetitions.

        Parameters
        ----------
        position : (int, int)
            Row and column of the first patch's first pixel.
        kernel_position : (int, int)
            Row and column in the kernel.
        channel : int
            Group of channels.
        repeat : int
            Number of fractals.
        mode : int
            0: a repetition goes on to the next position of the kernel, and after the last one to
            the next group of channels. 1: a repetition goes on to the next 16 patches.

        Returns
        -------
        list of (channel, rows, columns, inside)
            For each fractal its group of channels and the pixels of 16 patches, as ``pixels``
            returns them.

        Raises
        ------
        ValueError
            If ``mode`` is not 0 or 1, or as for ``pixels``.
        """
        if mode not in (0, 1):
            raise ValueError(f"mode must be 0 or 1, not {mode!r}")
        if mode == 1:
            pixels = self.pixels(position, kernel_position, ROWS * repeat)
            parts = [np.split(values, repeat) for values in pixels]
            return [(channel, *part) for part in zip(*parts, strict=True)]
        (kh, kw), (y, x) = self.kernel, self._within(kernel_position)
        first = (channel * kh + y) * kw + x
        fractals: list[_Fractal] = []
        for step in range(first, first + repeat):
            group, index = divmod(step, kh * kw)
            fractals.append((group, *self.pixels(position, divmod(index, kw), ROWS)))
        return fractals

    def _within(self, kernel_position: _Pair) -> _Pair:
        kh, kw = kernel_position
        if not (0 <= kh < self.kernel[0] and 0 <= kw < self.kernel[1]):
            raise ValueError(
                f"kernel_position must be within {self.kernel}, not {kernel_position!r}"
            )
        return kh, kw


@lru_cache(64)
def _numbers(patches: Patches) -> np.ndarray:
    (kh, kw), start = patches.kernel, patches.corner(0)
    count = ROWS * patches.fractals
    parts = [_pixels(patches, start, (y, x), count) for y in range(kh) for x in range(kw)]
    rows, columns, inside = (np.stack(axis) for axis in zip(*parts, strict=True))
    numbers = np.where(inside, rows * patches.width + columns, -1)
    numbers.flags.writeable = False  # the cache returns the same array again
    return numbers.reshape(kh * kw, patches.fractals, ROWS)


@lru_cache(4096)
def _pixels(patches: Patches, position: _Pair, kernel_position: _Pair, count: int) -> _Pixels:
    (row, column), (kh, kw) = position, kernel_position
    top, bottom, left, right = patches.pad
    high, wide = patches.extent
    last = patches.width + right - wide
    if row < -top or not -left <= column <= last:
        raise ValueError(
            f"position must be at least {-top} and from {-left} to {last}, not {position!r}"
        )
    # ``position`` may be in the middle of a row of patches; later rows start at −left.
    (sh, sw), (dh, dw) = patches.stride, patches.dilation
    first = (last - column) // sw + 1  # patches in the first row
    lines, offsets = np.divmod(np.arange(count) - first, patches.columns)
    lines = np.where(lines < 0, 0, lines + 1)
    rows = row + lines * sh
    columns = np.where(lines == 0, column + np.arange(count) * sw, offsets * sw - left)
    inside = rows <= patches.height + bottom - high
    rows, columns = rows + kh * dh, columns + kw * dw
    inside &= (rows >= 0) & (rows < patches.height) & (columns >= 0) & (columns < patches.width)
    for array in (rows, columns, inside):
        array.flags.writeable = False  # the cache returns the same arrays again
    return rows, columns, inside
