"""Where the patches of an image are: the geometry that Im2Col and Col2Im share."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vitruvian.validate import check_int

__all__ = ["ROWS", "Patches"]

#: Patches of a fractal.
ROWS = 16


@dataclass(frozen=True, kw_only=True)
class Patches:
    """The patches of an image under a kernel, row after row.

    Parameters
    ----------
    height, width : int
        Of the image (or of the tile of it that is there), I_h and I_w.
    kernel : (int, int)
        Rows and columns, K_h and K_w.
    stride : (int, int)
        From patch to patch, S_h and S_w.
    pad : (int, int, int, int)
        Top, bottom, left, right: pixels beyond the image that patches may reach.
    dilation : (int, int)
        From one pixel of a patch to the next.

    Raises
    ------
    TypeError, ValueError
        For what is no number of at least 1 (padding: 0), and an image without a patch.

    References
    ----------
    Rohwedder 2021, §3.3, equation 3.1; it has no dilation, which stretches the kernel to
    (K − 1)·D + 1 pixels.
    """

    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)

    def __post_init__(self):
        check_int("height", self.height, 1)
        check_int("width", self.width, 1)
        for name, count, low in (
            ("kernel", 2, 1),
            ("stride", 2, 1),
            ("pad", 4, 0),
            ("dilation", 2, 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, tuple) or len(value) != count:
                raise TypeError(f"{name} must be {count} ints, not {value!r}")
            for one in value:
                check_int(name, one, low)
        if self.rows < 1 or self.columns < 1:
            high, wide = self.extent
            raise ValueError(
                f"kernel must fit into the padded image, not {high} × {wide} pixels into "
                f"{self.height + sum(self.pad[:2])} × {self.width + sum(self.pad[2:])}"
            )

    @property
    def extent(self):
        """(rows, columns) of the image that a patch spans."""
        (kh, kw), (dh, dw) = self.kernel, self.dilation
        return (kh - 1) * dh + 1, (kw - 1) * dw + 1

    @property
    def rows(self):
        """Patches in the image's height, O_h."""
        return (self.height + self.pad[0] + self.pad[1] - self.extent[0]) // self.stride[0] + 1

    @property
    def columns(self):
        """Patches in the image's width, O_w."""
        return (self.width + self.pad[2] + self.pad[3] - self.extent[1]) // self.stride[1] + 1

    @property
    def count(self):
        """Patches, O_h·O_w."""
        return self.rows * self.columns

    @property
    def fractals(self):
        """Fractals that hold all patches at one position of the kernel."""
        return -(-self.count // ROWS)

    def corner(self, number):
        """(row, column) of the first pixel of a patch, negative in the padding."""
        row, column = divmod(number, self.columns)
        return row * self.stride[0] - self.pad[0], column * self.stride[1] - self.pad[2]

    def pixels(self, position, kernel_position, count):
        """The pixels of consecutive patches at one position of the kernel.

        The next patch is a stride to the right; if it does not fit into the padded image any more,
        the next is the first one a stride further down.

        Parameters
        ----------
        position : (int, int)
            First pixel of the first patch, (x, y) of the thesis less the padding.
        kernel_position : (int, int)
            (x_k, y_k)
        count : int

        Returns
        -------
        rows, columns : (count,) ndarray of int64
        inside : (count,) ndarray of bool
            Whether the pixel is one of the image: not in the padding, nor of a patch after the
            last one.

        Raises
        ------
        ValueError
            For a position from which no patch fits into the padded width or that is above it, or
            one that is not in the kernel.
        """
        return _pixels(self, tuple(position), self._within(kernel_position), count)

    def _pixels(self, position, kernel_position, count):
        (row, column), (kh, kw) = position, kernel_position
        top, bottom, left, right = self.pad
        high, wide = self.extent
        last = self.width + right - wide
        if row < -top or not -left <= column <= last:
            raise ValueError(
                f"position must be at least {-top} and from {-left} to {last}, not {position!r}"
            )
        (sh, sw), (dh, dw) = self.stride, self.dilation
        first = (last - column) // sw + 1  # patches in the first row
        lines, places = np.divmod(np.arange(count) - first, self.columns)
        lines = np.where(lines < 0, 0, lines + 1)
        rows = row + lines * sh
        columns = np.where(lines == 0, column + np.arange(count) * sw, places * sw - left)
        inside = rows <= self.height + bottom - high
        rows, columns = rows + kh * dh, columns + kw * dw
        inside &= (rows >= 0) & (rows < self.height) & (columns >= 0) & (columns < self.width)
        for array in (rows, columns, inside):
            array.flags.writeable = False  # they are given out again
        return rows, columns, inside

    def walk(self, position, kernel_position, channel, repeat, mode):
        """The fractals of an instruction that repeats.

        Mode 0 goes to the next position of the kernel, then to the next group of channels; mode 1
        to the next 16 patches.

        Returns
        -------
        list of (channel, rows, columns, inside)
            As ``pixels`` gives them, 16 patches each.

        Raises
        ------
        ValueError
            For a mode that is neither.
        """
        if mode not in (0, 1):
            raise ValueError(f"mode must be 0 or 1, not {mode!r}")
        if mode == 1:
            pixels = self.pixels(position, kernel_position, ROWS * repeat)
            parts = [np.split(values, repeat) for values in pixels]
            return [(channel, *part) for part in zip(*parts, strict=True)]
        (kh, kw), (y, x) = self.kernel, self._within(kernel_position)
        first = (channel * kh + y) * kw + x
        fractals = []
        for step in range(first, first + repeat):
            group, place = divmod(step, kh * kw)
            fractals.append((group, *self.pixels(position, divmod(place, kw), ROWS)))
        return fractals

    def _within(self, kernel_position):
        kh, kw = kernel_position
        if not (0 <= kh < self.kernel[0] and 0 <= kw < self.kernel[1]):
            raise ValueError(
                f"kernel position must be within {self.kernel}, not {kernel_position!r}"
            )
        return kh, kw


@lru_cache(4096)
def _pixels(patches, position, kernel_position, count):
    return patches._pixels(position, kernel_position, count)
