"""Patches added back to images: by Col2Im in the unified buffer, or by additions at a distance.

Vector cores without Col2Im add the patches to an image with padding, with block strides.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.kernels.convolution.areas import Area, check_fits, choose_area
from vitruvian.sim.kernels.convolution.shape import C0, ConvShape
from vitruvian.sim.kernels.kernel import is_split, vector_cores, vector_kind
from vitruvian.sim.kernels.pooling.blocks import BlockRows, parts, rectangle
from vitruvian.sim.kernels.pooling.emit import Emitter, behind
from vitruvian.sim.kernels.ring import Ring, uses_of

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

_FRACTAL = 512
_PIXEL = 32
#: Most fractals of a Col2Im, and so of a tile.
_MOST = 255


@dataclass(frozen=True)
class FoldTile:
    """Rectangle of pixels of an image, and the patches that overlap it.

    Attributes
    ----------
    down, across : (int, int)
        First row and column of pixels, and one past the last ones.
    rows, columns : (int, int)
        First row and column of patches, and one past the last ones.
    patches : Patches or None
        The patches on the rectangle; None if no patch overlaps it.
    top : int
        Row of the first patch's first pixel, counted from the rectangle's first row.
    """

    down: tuple[int, int]
    across: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]
    patches: Patches | None
    top: int

    @property
    def pixels(self) -> int:
        """The number of pixels."""
        return (self.down[1] - self.down[0]) * (self.across[1] - self.across[0])

    @property
    def count(self) -> int:
        """The number of patches that overlap the rectangle."""
        if self.patches is None:
            return 0
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])

    @property
    def fractals(self) -> int:
        """The number of fractals that hold these patches at one position of the kernel."""
        return ceil_div(self.count, 16)

    @property
    def inside(self) -> tuple[int, int]:
        """Row and column of the rectangle in the pixels of ``padded``."""
        if self.patches is None:
            return 0, 0
        return max(-self.top, 0), max(self.patches.pad[2], 0)

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of pixels with those that patches have beyond the rectangle."""
        rows, columns = self.down[1] - self.down[0], self.across[1] - self.across[0]
        if self.patches is None:
            return rows, columns
        p, (above, left) = self.patches, self.inside
        down = (self.rows[1] - self.rows[0] - 1) * p.stride[0] + p.extent[0]
        across = (self.columns[1] - self.columns[0] - 1) * p.stride[1] + p.extent[1]
        first, start = max(self.top, 0), max(-p.pad[2], 0)
        return max(above + rows, first + down), max(left + columns, start + across)


def _overlapping(
    part: tuple[int, int], stride: int, extent: int, pad: int, count: int
) -> tuple[int, int]:
    """Return the first patch of an axis that overlaps some pixels, and one past the last."""
    first = max(0, (part[0] + pad - extent) // stride + 1)
    return first, min(count, ceil_div(part[1] + pad, stride))


@lru_cache(256)
def tiles_of(patches: Patches, area: Area) -> tuple[FoldTile, ...]:
    """Cut an image into tiles, row by row.

    Parameters
    ----------
    patches : Patches
        The patches of the image.
    area : Area
        Most rows of pixels. The columns count too; but if they are fewer than the image has, they
        are rounded up to whole strides, as a tile must begin where a patch does.
    """
    p = patches
    across = [0]
    if area.columns < p.width:
        step = ceil_div(area.columns, p.stride[1]) * p.stride[1]
        # A cut must lie where a patch begins, and the first patch begins ``pad`` pixels before the
        # image.
        across += [c for c in range(step - p.pad[2], p.width, step) if c > 0]
    return tuple(
        _tile(p, (r, min(r + area.rows, p.height)), (c, end))
        for r in range(0, p.height, area.rows)
        for c, end in zip(across, [*across[1:], p.width], strict=True)
    )


def _tile(p: Patches, down: tuple[int, int], across: tuple[int, int]) -> FoldTile:
    rows = _overlapping(down, p.stride[0], p.extent[0], p.pad[0], p.rows)
    left, right, columns = p.pad[2], p.pad[3], (0, p.columns)
    if across != (0, p.width):
        columns = _overlapping(across, p.stride[1], p.extent[1], p.pad[2], p.columns)
        # Patches reach beyond the rectangle. These pixels count as padding, which Col2Im leaves
        # out.
        left = across[0] - (columns[0] * p.stride[1] - p.pad[2])
        end = (columns[1] - 1) * p.stride[1] - p.pad[2] + p.extent[1]
        right = max(end - across[1], 0)
    if rows[0] >= rows[1] or columns[0] >= columns[1]:
        return FoldTile(down, across, rows, columns, None, 0)
    # Negative if the first patch begins above the rectangle, positive if windows have gaps.
    top = rows[0] * p.stride[0] - p.pad[0] - down[0]
    below = (rows[1] - 1) * p.stride[0] - p.pad[0] + p.extent[0] - down[1]
    inner = Patches(
        height=down[1] - down[0],
        width=across[1] - across[0],
        kernel=p.kernel,
        stride=p.stride,
        pad=(max(-top, 0), max(below, 0), left, right),
        dilation=p.dilation,
    )
    return FoldTile(down, across, rows, columns, inner, top)


def choose(shape: ConvShape, chip: Chip, cores: int) -> Area:
    """Return the tile of pixels with the least estimated time.

    Raises
    ------
    ValueError
        If not even one pixel fits the buffers.
    """
    lane, route = chip.vector[""], chip.route("GM", "UB")

    def check(area: Area) -> None:
        tiles = tiles_of(shape.patches, area)
        if is_split(chip):
            most = max(t.padded[0] * t.padded[1] for t in tiles)
            patches = max(max(t.count for t in tiles), 1)
            check_fits({"UB": 2 * (most + patches) * _PIXEL}, chip)
            return
        fractals = max(t.fractals for t in tiles)
        pixels = max(t.pixels for t in tiles)
        check_fits({"UB": 2 * pixels * _PIXEL + 2 * max(fractals, 1) * _FRACTAL}, chip)
        if fractals > _MOST:
            raise ValueError(f"patches of a tile must fit {_MOST} fractals, not {fractals}")

    def seconds(area: Area) -> float:
        tiles = tiles_of(shape.patches, area)
        nbytes = max(t.fractals for t in tiles) * _FRACTAL
        load = float(route.init_s) + nbytes / float(route.rate.bytes_per_s)
        add = float(lane.init_s + lane.latency_s) + nbytes / 256 * float(lane.repeat_s)
        if is_split(chip):
            add += max(map(_pieces, tiles)) * float(lane.start_s) + float(lane.drain_s)
        items = shape.images * ceil_div(shape.channels, C0) * len(tiles)
        # One load more than the others: the first one has no addition to overlap with.
        return (ceil_div(items, cores) * shape.taps + 1) * max(load, add)

    # A tile has at most as many pixels as half of UB holds; its patches need the rest.
    limit = vector_kind(chip).buffers["UB"].nbytes // (2 * _PIXEL)
    return choose_area(shape.height, shape.width, limit, check, seconds)


def _pieces(tile: FoldTile) -> int:
    """Return the additions at a distance of all patches of a tile at one position."""
    if tile.patches is None:
        return 1
    rows, columns = tile.rows[1] - tile.rows[0], tile.columns[1] - tile.columns[0]
    return sum(1 for _ in parts(rows, columns, BlockRows(columns), _pitches(tile)))


def _pitches(tile: FoldTile) -> BlockRows:
    """Return the distances of the pixels of neighbouring patches."""
    assert tile.patches is not None
    down, across = tile.patches.stride
    return BlockRows(down * tile.padded[1], across)


def instructions(shape: ConvShape, area: Area, chip: Chip) -> int:
    """Return an upper bound of the number of instructions."""
    tiles = tiles_of(shape.patches, area)
    # Clearing takes an instruction for every 255 repeats of 128 numbers, which are 2,040 pixels.
    passes = max(t.padded[0] * t.padded[1] for t in tiles) // 2040 + 2
    each = max(map(_pieces, tiles)) if is_split(chip) else 1
    items = shape.images * ceil_div(shape.channels, C0) * len(tiles)
    return items * ((7 + each) * shape.taps + 8 + passes)


def build(
    shape: ConvShape,
    *,
    chip: Chip | str = "ascend910",
    cores: int | None = None,
    area: Area | None = None,
    data: np.ndarray | None = None,
) -> Program:
    """Build y = images to which patches are added.

    A pixel starts with +0. Its addends follow in the order of the kernel's positions, row by row,
    and every sum is rounded to FP16, as ``golden.scu.col2im`` does.

    Parameters
    ----------
    shape : ConvShape
        Of the convolution that has these patches; ``filters`` and ``groups`` have no meaning here.
    chip : Chip or str
        A chip with a vector unit.
    cores : int, optional
        By default, all cores of the chip.
    area : Area, optional
        Pixels of a tile, by default those of ``choose``.
    data : (N, C1, Kh·Kw, Oh, Ow, 16) ndarray of float16, optional

    Returns
    -------
    Program
        Its tensors are x, which is ``data``, and y (N, C1, H, W, 16).
    """
    chip = load_chip(chip) if isinstance(chip, str) else chip
    s, p = shape, shape.patches
    program = Program(chip, f"fold {s.images}×{s.channels}×{s.height}×{s.width}")
    some = vector_cores(program, cores)
    area = choose(s, chip, len(some)) if area is None else area
    c1 = ceil_div(s.channels, C0)
    gx = program.tensor("x", (s.images, c1, s.taps, p.rows, p.columns, C0), "fp16", data)
    gy = program.tensor("y", (s.images, c1, s.height, s.width, C0), "fp16")
    tiles = tiles_of(p, area)
    items = [(n, c, t) for n in range(s.images) for c in range(c1) for t in tiles]
    used = min(len(some), len(items))
    for number in range(used):
        part = items[len(items) * number // used : len(items) * (number + 1) // used]
        _emit(some[number], part, gx, gy, s)
    return program


def _emit(
    core: Core, items: list[tuple[int, int, FoldTile]], x: View, y: View, shape: ConvShape
) -> None:
    """Emit the tiles of a core."""
    fractals = max(max(t.fractals for *_, t in items), 1)
    columns = core.allocate("UB", (2, fractals * 256), "fp16", "patches")
    strided, emit = is_split(core.program.chip), Emitter(core)
    sizes = [t.padded[0] * t.padded[1] if strided else t.pixels for *_, t in items]
    pixels = core.allocate("UB", (2, max(sizes), C0), "fp16", "y in UB")
    loads = sum(shape.taps for *_, t in items if t.patches is not None)
    into = Ring(core, MTE2, V, plan=uses_of(range(loads), 2))
    outs = Ring(core, V, MTE3, plan=uses_of(range(len(items)), 2))
    for n, c, tile in items:
        with outs.write() as out:
            width = tile.padded[1] if strided else tile.across[1] - tile.across[0]
            image = pixels[out, : tile.padded[0] * width if strided else tile.pixels]
            # A pixel that no patch covers keeps this zero.
            core.vdup(image.reshape(image.size), 0.0)
            for tap in range(shape.taps if tile.patches is not None else 0):
                with into.write() as slot:
                    source = x[n, c, tap, slice(*tile.rows), slice(*tile.columns)]
                    core.copy(columns[slot, : tile.count * C0].reshape(*source.shape), source)
                with into.read() as slot:
                    # Each addition reads the sums of the last one.
                    core.pipe_barrier(V)
                    assert tile.patches is not None
                    if strided:
                        _add(emit, image, columns[slot], tile, divmod(tap, shape.kernel[1]))
                        continue
                    core.col2im(
                        image.reshape(image.size),
                        columns[slot],
                        tile.patches,
                        repeat=tile.fractals,
                        position=(tile.top, -tile.patches.pad[2]),
                        kernel_position=divmod(tap, shape.kernel[1]),
                    )
        with outs.read():
            target = y[n, c, slice(*tile.down), slice(*tile.across)]
            if not strided:
                core.copy(target, image.reshape(*target.shape))
                continue
            above, left = tile.inside
            core.copy(
                target,
                behind(image, above * width + left),
                bursts=target.shape[0],
                burst_bytes=target.shape[1] * _PIXEL,
                dst_stride=y.shape[3] * _PIXEL,
                src_stride=width * _PIXEL,
            )


def _add(
    emit: Emitter, image: View, columns: View, tile: FoldTile, position: tuple[int, int]
) -> None:
    """Emit the additions of the patches of a tile at one position of the kernel."""
    p = tile.patches
    assert p is not None
    rows, count = tile.rows[1] - tile.rows[0], tile.columns[1] - tile.columns[0]
    first = max(tile.top, 0) + position[0] * p.dilation[0]
    start = max(-p.pad[2], 0) + position[1] * p.dilation[1]
    pixels = behind(image, first * tile.padded[1] + start), _pitches(tile)
    views = {
        "dst": pixels,
        "src0": pixels,
        "src1": (columns.reshape(columns.size // C0, C0), BlockRows(count)),
    }
    rectangle(emit, "vadd", views, rows, count)
