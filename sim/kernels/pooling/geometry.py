"""Tiles of a pooling: which windows and which pixels a tile holds, along one axis and in both.

Along an axis, window o covers the pixels o·stride − padding … + extent − 1. A tile of the forward
kernels owns windows and holds the pixels that these cover; a tile of the backward kernels owns
pixels and holds all windows that touch them, so that every pixel's sum is complete in one tile.
"""

from dataclasses import dataclass
from itertools import pairwise

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import Patches

#: Largest stride of Im2Col and Col2Im.
MOST_STRIDE = 63


@dataclass(frozen=True)
class AxisTile:
    """A tile along one axis.

    Attributes
    ----------
    windows : (int, int)
        The first window and one past the last.
    pixels : (int, int)
        The first pixel of the image and one past the last.
    pad : (int, int)
        Pixels that the windows cover before the first and after the last pixel of the tile: in the
        padding of the image or, of a backward tile, in other tiles.
    """

    windows: tuple[int, int]
    pixels: tuple[int, int]
    pad: tuple[int, int]

    @property
    def count(self) -> int:
        """The number of windows."""
        return self.windows[1] - self.windows[0]

    @property
    def length(self) -> int:
        """The number of pixels of the image."""
        return self.pixels[1] - self.pixels[0]

    @property
    def padded(self) -> int:
        """The number of pixels with the padding."""
        return self.pad[0] + self.length + self.pad[1]


@dataclass(frozen=True)
class PoolingTile:
    """A tile of rows and columns.

    Attributes
    ----------
    rows, columns : AxisTile
    """

    rows: AxisTile
    columns: AxisTile

    @property
    def count(self) -> int:
        """The number of windows."""
        return self.rows.count * self.columns.count

    def patches(self, whole: Patches) -> Patches:
        """Return the patches of this tile, whose image is the pixels of the tile.

        Parameters
        ----------
        whole : Patches
            The patches of the image.
        """
        # The stride does not matter along an axis with one window; the field has six bits.
        down, across = (
            min(stride, MOST_STRIDE) if part.count == 1 else stride
            for part, stride in zip((self.rows, self.columns), whole.stride, strict=True)
        )
        made = Patches(
            height=self.rows.length,
            width=self.columns.length,
            kernel=whole.kernel,
            stride=(down, across),
            pad=(*self.rows.pad, *self.columns.pad),
            dilation=whole.dilation,
        )
        if made.count != self.count:
            raise ValueError(
                f"stride must be at most {MOST_STRIDE} where windows have gaps, not {whole.stride}"
            )
        return made


def forward_axis(whole: Patches, axis: int, limit: int) -> list[AxisTile]:
    """Return tiles of at most ``limit`` windows, whose numbers of windows differ by one at most.

    Parameters
    ----------
    whole : Patches
        The patches of the image.
    axis : {0, 1}
        0 for rows, 1 for columns.
    """
    count, size, stride, before, extent = _axis(whole, axis)
    parts = ceil_div(count, limit)
    found = []
    for part in range(parts):
        first, last = count * part // parts, count * (part + 1) // parts
        start, end = first * stride - before, (last - 1) * stride - before + extent
        pixels = max(start, 0), min(end, size)
        found.append(AxisTile((first, last), pixels, (pixels[0] - start, end - pixels[1])))
    return found


def backward_axis(whole: Patches, axis: int, limit: int) -> list[AxisTile]:
    """Return tiles of at most ``limit`` pixels, or of ``limit`` strides if windows have gaps.

    Parameters
    ----------
    axis : {0, 1}
    """
    count, size, stride, before, extent = _axis(whole, axis)
    if stride <= extent:
        parts = ceil_div(size, limit)
        edges = [size * part // parts for part in range(parts + 1)]
    else:
        # A tile begins where a window begins, because its first window must not begin behind it.
        starts = range(limit * stride - before, count * stride - before, limit * stride)
        edges = [0, *(edge for edge in starts if 0 < edge < size), size]
    found = []
    for begin, end in pairwise(edges):
        # The first window whose last pixel is at ``begin`` or behind it.
        first = max(0, ceil_div(begin + before - extent + 1, stride))
        last = min(count, (end - 1 + before) // stride + 1)
        if first >= last:
            # Pixels between windows that have gaps.
            found.append(AxisTile((0, 0), (begin, end), (0, 0)))
            continue
        start, stop = first * stride - before, (last - 1) * stride - before + extent
        found.append(AxisTile((first, last), (begin, end), (begin - start, max(stop - end, 0))))
    return found


def tiles(rows: list[AxisTile], columns: list[AxisTile]) -> list[PoolingTile]:
    """Return the tiles of an image, row by row."""
    return [PoolingTile(row, column) for row in rows for column in columns]


def _axis(whole: Patches, axis: int) -> tuple[int, int, int, int, int]:
    """Return windows, pixels, stride, padding before the image, and extent of a window."""
    return (
        (whole.rows, whole.columns)[axis],
        (whole.height, whole.width)[axis],
        whole.stride[axis],
        whole.pad[2 * axis],
        whole.extent[axis],
    )
