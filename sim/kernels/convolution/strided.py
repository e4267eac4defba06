"""Tiles of images with their padding in the Unified Buffer, whose patches are pixels at a distance.

The vector cores of the Ascend 910B have no Im2Col. They do not need its layout: the block stride of
an instruction is the distance of eight neighbouring patches, and the repeat stride that of two rows
of patches, so one instruction reads the pixels of many patches at one position of the kernel.
"""

from collections.abc import Sequence

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.convolution.areas import Area
from vitruvian.sim.kernels.convolution.shape import C0, ConvShape, ConvTile
from vitruvian.sim.kernels.pooling.blocks import BlockRows, parts
from vitruvian.sim.kernels.pooling.emit import behind

V, MTE2 = Unit.V, Unit.MTE2

_PIXEL = 32


def padded_size(shape: ConvShape, rows: int, columns: int) -> tuple[int, int]:
    """Return the rows and columns of pixels that so many patches cover, padding included.

    Rows that are loaded whole may be wider than that.
    """
    p = shape.patches
    down = (rows - 1) * p.stride[0] + p.extent[0]
    across = (columns - 1) * p.stride[1] + p.extent[1]
    return down, max(across, p.pad[2] + p.width) if columns == p.columns else across


def padded_bytes(shape: ConvShape, area: Area) -> int:
    """Return the bytes of the largest tile with its padding."""
    p = shape.patches
    down, across = padded_size(shape, min(area.rows, p.rows), min(area.columns, p.columns))
    return down * across * _PIXEL


def pieces_of(shape: ConvShape, area: Area) -> int:
    """Return the instructions that reach all patches of a tile at one position of the kernel."""
    p = shape.patches
    rows, columns = min(area.rows, p.rows), min(area.columns, p.columns)
    _, width = padded_size(shape, rows, columns)
    pixels = BlockRows(p.stride[0] * width, p.stride[1])
    return sum(1 for _ in parts(rows, columns, BlockRows(columns), pixels))


class PaddedTiles:
    """Two slots with a tile each: one is loaded while the vector unit works on the other.

    Parameters
    ----------
    x : View
        Images in global memory, (N, C1, H, W, 16).
    items : sequence of (image, channel, tile)
        The tiles in the order of their use.
    """

    def __init__(
        self, core: Core, shape: ConvShape, x: View, items: Sequence[tuple[int, int, ConvTile]]
    ) -> None:
        self.core, self.shape, self.x, self.items = core, shape, x, items
        sizes = [self._size(tile) for *_, tile in items]
        most = max(down * across for down, across in sizes)
        self.slots = core.allocate("UB", (2, most, C0), "fp16", "padded pixels")
        self._load(0)

    def _size(self, tile: ConvTile) -> tuple[int, int]:
        rows, columns = (part[1] - part[0] for part in (tile.rows, tile.columns))
        return padded_size(self.shape, rows, columns)

    def _load(self, number: int) -> None:
        """Emit the load of a tile into zeros; the vector unit has ended its work on the slot."""
        core, slot = self.core, number % 2
        image, channel, tile = self.items[number]
        down, across = self._size(tile)
        left, (height, width) = tile.patches.pad[2], (tile.patches.height, tile.patches.width)
        # Rows of the image that lie between the first row of the first patch and the last one.
        first, last = max(tile.top, 0), min(height, tile.top + down)
        room = self.slots[slot, : down * across]
        if last - first < down or width < across:
            core.pipe_barrier(V)
            core.vdup(room.reshape(room.size), 0.0)
        core.set_flag(V, MTE2, slot)
        core.wait_flag(V, MTE2, slot)
        if first < last:
            rows = tile.down[0] + first, tile.down[0] + last
            core.copy(
                behind(room, (first - tile.top) * across + left),
                self.x[image, channel, slice(*rows), slice(*tile.across)],
                bursts=last - first,
                burst_bytes=width * _PIXEL,
                dst_stride=across * _PIXEL,
                src_stride=self.x.shape[3] * _PIXEL,
            )
        core.set_flag(MTE2, V, slot)

    def begin(self, number: int) -> View:
        """Emit the load of the next tile and the wait for this one, and return its pixels."""
        if number + 1 < len(self.items):
            self._load(number + 1)
        slot = number % 2
        self.core.wait_flag(MTE2, V, slot)
        return self.slots[slot]

    def at(self, number: int, tap: int) -> tuple[View, BlockRows]:
        """Return the pixels of all patches of a tile at one position of the kernel."""
        tile, p = self.items[number][2], self.shape.patches
        _, across = self._size(tile)
        y, x = divmod(tap, p.kernel[1])
        first = y * p.dilation[0] * across + x * p.dilation[1]
        view = self.slots[number % 2]
        return behind(view, first), BlockRows(p.stride[0] * across, p.stride[1])

    def windows(self, number: int) -> tuple[int, int]:
        """Return the rows and columns of patches of a tile."""
        tile = self.items[number][2]
        return tile.rows[1] - tile.rows[0], tile.columns[1] - tile.columns[0]


def items_seconds(items: int, cores: int, load: float, work: float) -> float:
    """Return an estimate of the seconds of the busiest core, whose loads overlap its work."""
    return ceil_div(items, cores) * max(load, work) + load
