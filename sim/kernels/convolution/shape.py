"""The sizes of a convolution, and the part of an image that a tile of its result needs."""

from dataclasses import dataclass
from functools import cached_property

from vitruvian.common.validate import ceil_div, check_int
from vitruvian.golden.scu import Patches

#: Channels in a group, C0, and rows or columns of a fractal.
C0 = 16


@dataclass(frozen=True, kw_only=True)
class ConvTile:
    """Rectangle of output pixels, and the rectangle of input pixels that it is computed from.

    Attributes
    ----------
    rows, columns : (int, int)
        First output row and column, and one past the last ones.
    down, across : (int, int)
        First input row and column, and one past the last ones; at least one of each.
    patches : Patches
        The tile's patches in the input rectangle. It may count more rows of patches than the tile
        has, but never more columns.
    top : int
        Row of the first patch's first pixel, counted from the first input row.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    down: tuple[int, int]
    across: tuple[int, int]
    patches: Patches
    top: int

    @property
    def count(self) -> int:
        """The number of output pixels."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])

    @property
    def fractals(self) -> int:
        """The number of fractals that hold the patches at one position of the kernel."""
        return ceil_div(self.count, C0)

    @property
    def pixels(self) -> int:
        """The number of input pixels."""
        return self.patches.height * self.patches.width

    def corner(self, number: int) -> tuple[int, int]:
        """Return (row, column) of the first pixel of a patch in the input rectangle."""
        row, column = divmod(number, self.columns[1] - self.columns[0])
        p = self.patches
        return row * p.stride[0] + self.top, column * p.stride[1] - p.pad[2]


@dataclass(frozen=True, kw_only=True)
class ConvShape:
    """Sizes and parameters of a 2-D convolution.

    Parameters
    ----------
    images, channels, height, width : int
        Size of the input, N × C × H × W.
    filters : int
        Channels of the output.
    kernel, stride, dilation : (int, int)
        In rows and in columns.
    pad : (int, int, int, int)
        Rows and columns of zeros at the top, bottom, left and right.
    groups : int
        Groups of channels, each of which is a convolution of its own.

    Raises
    ------
    TypeError, ValueError
        If a number is too small, if ``groups`` does not divide ``channels`` and ``filters``, or if
        the kernel does not fit into the padded image.
    """

    images: int
    channels: int
    height: int
    width: int
    filters: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def __post_init__(self) -> None:
        for name in ("images", "channels", "filters", "groups"):
            check_int(name, getattr(self, name), 1)
        for name in ("channels", "filters"):
            if getattr(self, name) % self.groups:
                count = getattr(self, name)
                raise ValueError(f"groups must divide {count} {name}, not {self.groups!r}")
        _ = self.patches  # it checks the others

    @cached_property
    def patches(self) -> Patches:
        """The patches of a whole image."""
        return Patches(
            height=self.height,
            width=self.width,
            kernel=self.kernel,
            stride=self.stride,
            pad=self.pad,
            dilation=self.dilation,
        )

    @property
    def c1(self) -> int:
        """Groups of 16 input channels in a group of the convolution."""
        return -(-self.channels // self.groups // C0)

    @property
    def n1(self) -> int:
        """Groups of 16 output channels in a group of the convolution."""
        return -(-self.filters // self.groups // C0)

    @property
    def taps(self) -> int:
        """The number of positions of the kernel, Kh·Kw."""
        return self.kernel[0] * self.kernel[1]

    @property
    def products(self) -> int:
        """Multiply-accumulates of the Cube, those of padded channels included."""
        m = self.images * self.groups * self.patches.count
        return m * self.c1 * C0 * self.taps * self.n1 * C0

    def tiles(self, rows: int, columns: int) -> list[ConvTile]:
        """Cut the output of an image into tiles of at most rows × columns pixels, row by row.

        Raises
        ------
        ValueError
            As for ``reach``.
        """
        self.reach(rows, columns)
        p = self.patches
        return [
            self._tile((r, min(r + rows, p.rows)), (c, min(c + columns, p.columns)))
            for r in range(0, p.rows, rows)
            for c in range(0, p.columns, columns)
        ]

    def reach(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the most input rows and columns that a tile of rows × columns pixels needs.

        Raises
        ------
        ValueError
            If rows are cut into columns, and the padding is as wide as the kernel or wider.
        """
        p = self.patches
        down = (min(rows, p.rows) - 1) * p.stride[0] + p.extent[0]
        across = (columns - 1) * p.stride[1] + p.extent[1]
        # Whole rows are read even if the last pixels are not needed: they are one burst.
        if columns >= p.columns:
            across = p.width
        elif max(p.pad[2:]) >= p.extent[1]:
            raise ValueError(
                f"pad of a convolution with {p.columns} output columns must be below the kernel's "
                f"{p.extent[1]} pixels, not {max(p.pad[2:])}"
            )
        return min(down, p.height), min(across, p.width)

    def _tile(self, rows: tuple[int, int], columns: tuple[int, int]) -> ConvTile:
        p = self.patches
        # What the windows cover beyond the image becomes the padding of the tile.
        top, first, last, below = _needed(rows, p.stride[0], p.extent[0], p.pad[0], p.height)
        left, west, east, right = _needed(columns, p.stride[1], p.extent[1], p.pad[2], p.width)
        # Whole rows are one burst, see ``reach``.
        if columns == (0, p.columns):
            west, east = 0, p.width
        patches = Patches(
            height=last - first,
            width=east - west,
            kernel=p.kernel,
            stride=p.stride,
            pad=(max(first - top, 0), max(below - last, 0), west - left, max(right - east, 0)),
            dilation=p.dilation,
        )
        return ConvTile(
            rows=rows,
            columns=columns,
            down=(first, last),
            across=(west, east),
            patches=patches,
            top=top - first,
        )


def _needed(
    part: tuple[int, int], stride: int, extent: int, pad: int, size: int
) -> tuple[int, int, int, int]:
    """Return the pixels that patches of an axis cover, and those of them in the image.

    Parameters
    ----------
    part : (int, int)
        The first patch, and one past the last.
    stride, extent, pad, size : int
        Pixels from patch to patch, of a patch, before the image, and of the image.

    Returns
    -------
    start, first, last, end : int
        The patches cover start … end − 1, the image has first … last − 1 of them. If all are
        padding, one pixel of the image is returned.
    """
    start, end = part[0] * stride - pad, (part[1] - 1) * stride - pad + extent
    first = min(max(start, 0), size - 1)
    return start, first, max(min(end, size), first + 1), end
