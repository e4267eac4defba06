"""Depthwise convolution on the vector unit: each channel has a kernel of its own.

The Cube would multiply a kernel by 16 channels to get one, so the lanes of the vector unit are the
better place: an Im2Col load brings one pixel of every patch to UB, and one instruction adds its
product with the weights of 16 channels to the results of up to 127 fractals, 128 lanes at a time.
On vector cores without Im2Col, the instruction reads the pixels at their distance (``strided``).

References
----------
Rohwedder 2021, §3.3: Im2Col to the unified buffer.
"""

import math

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import to_nc1hwc0
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.kernels.convolution.areas import (
    Area,
    check_fits,
    choose_area,
    fractals_of,
    items_of,
)
from vitruvian.sim.kernels.convolution.dense import ConvOperands, check_operands
from vitruvian.sim.kernels.convolution.shape import C0, ConvShape, ConvTile
from vitruvian.sim.kernels.convolution.strided import (
    PaddedTiles,
    items_seconds,
    padded_bytes,
    pieces_of,
)
from vitruvian.sim.kernels.kernel import is_split, vector_cores
from vitruvian.sim.kernels.pooling.blocks import BlockRows, rectangle
from vitruvian.sim.kernels.pooling.emit import Emitter
from vitruvian.sim.kernels.ring import Ring, together, uses_of

V, MTE1, MTE2, MTE3 = Unit.V, Unit.MTE1, Unit.MTE2, Unit.MTE3

#: Bytes of a fractal of FP16, and of the 16 channels of a pixel.
_FRACTAL = 512
_PIXEL = 32
#: Most fractals of a tile: an instruction has at most 255 repeats, two for each fractal.
_MOST = 127


def choose(shape: ConvShape, chip: Chip, cores: int) -> Area:
    """Return the tile that keeps the busiest core busy for the least time.

    Raises
    ------
    ValueError
        If not even one pixel fits the buffers.
    """
    p = shape.patches
    return choose_area(
        p.rows,
        p.columns,
        p.rows * p.columns if is_split(chip) else _MOST * 16,
        lambda area: check_area(shape, area, chip),
        lambda area: _seconds(shape, area, chip, cores),
    )


def check_area(shape: ConvShape, area: Area, chip: Chip) -> None:
    """Raise ValueError if a tile does not fit the buffers of a chip."""
    if is_split(chip):
        p = shape.patches
        count = min(area.rows, p.rows) * min(area.columns, p.columns)
        bytes_ = 2 * padded_bytes(shape, area) + 2 * (count + shape.taps + 1) * _PIXEL
        check_fits({"UB": bytes_ + 128}, chip)
        return
    fractals = fractals_of(shape, area)
    needs = {
        "L1": 2 * math.prod(shape.reach(area.rows, area.columns)) * _PIXEL,
        "UB": 4 * fractals * _FRACTAL + 2 * (shape.taps + 1) * _PIXEL,
    }
    check_fits(needs, chip)
    if fractals > _MOST:
        raise ValueError(f"tiles must have at most {_MOST} fractals, not {fractals}")


def _seconds(shape: ConvShape, area: Area, chip: Chip, cores: int) -> float:
    """Estimate the time of the busiest core by its slower one of MTE1 and V."""
    fractals = fractals_of(shape, area)
    if is_split(chip):
        lane = chip.vector.get("vmla", chip.vector[""])
        load = padded_bytes(shape, area) / float(chip.route("GM", "UB").rate.bytes_per_s)
        # The pipeline drains before each position of the kernel, since it reads the last sums.
        start = pieces_of(shape, area) * float(lane.start_s) + float(lane.drain_s)
        work = shape.taps * (start + 2 * fractals * float(lane.repeat_s))
        return items_seconds(items_of(shape, area), cores, load, work)
    route, lane = chip.route("L1", "UB", "im2col"), chip.vector.get("vmla", chip.vector[""])
    load = float(route.init_s) + fractals * _FRACTAL / float(route.rate.bytes_per_s)
    add = float(lane.init_s) + 2 * fractals * float(lane.repeat_s)
    items = items_of(shape, area)
    # One load more: the first one has nothing to overlap with.
    return (ceil_div(items, cores) * shape.taps + 1) * max(load, add)


def instructions(shape: ConvShape, area: Area, chip: Chip) -> int:
    """Return an upper bound of the number of instructions."""
    items = items_of(shape, area)
    if is_split(chip):
        each = pieces_of(shape, area)
        return items * ((1 + each) * shape.taps + 24 + each)
    return items * (8 * shape.taps + 24)


def build(
    shape: ConvShape,
    *,
    chip: Chip | str = "ascend910",
    cores: int | None = None,
    area: Area | None = None,
    bias: bool = False,
    relu: bool = False,
    data: ConvOperands | None = None,
) -> Program:
    """Build y = depthwise convolution of x with w in FP16.

    Parameters
    ----------
    shape : ConvShape
        ``groups``, ``channels`` and ``filters`` are equal.
    chip : Chip or str
        A chip with a vector unit.
    cores : int, optional
        By default, all cores of the chip.
    area : Area, optional
        By default, that of ``choose``.
    bias, relu : bool
        If True, add a bias, or replace negative results by 0.
    data : ConvOperands, optional
        Without them, only times can be computed.

    Returns
    -------
    Program
        Its tensors are x (N, C1, H, W, 16), w (C1, Kh·Kw + 1, 16), whose last row is the bias, and
        y (N, C1, Oh, Ow, 16).

    Raises
    ------
    ValueError
        If the shape is not depthwise, or the chip, the tile, the cores or the data are invalid.
    """
    s, p = shape, shape.patches
    if not s.channels == s.filters == s.groups:
        sizes = f"{s.channels} channels, {s.filters} filters, {s.groups} groups"
        raise ValueError(f"a depthwise convolution must have as many of each, not {sizes}")
    chip = load_chip(chip) if isinstance(chip, str) else chip
    name = f"depthwise {s.images}×{s.channels}×{s.height}×{s.width}"
    program = Program(chip, f"{name} {s.kernel[0]}×{s.kernel[1]}")
    some = vector_cores(program, cores)
    area = choose(s, chip, len(some)) if area is None else area
    check_area(s, area, chip)
    x = w = None
    if data is not None:
        check_operands(s, data, bias)
        x, w = np.ascontiguousarray(to_nc1hwc0(data.x)), _weights(data)
    c1 = ceil_div(s.channels, C0)
    gx = program.tensor("x", (s.images, c1, s.height, s.width, C0), "fp16", x)
    gw = program.tensor("w", (c1, s.taps + 1, C0), "fp16", w)
    gy = program.tensor("y", (s.images, c1, p.rows, p.columns, C0), "fp16")
    tiles = s.tiles(area.rows, area.columns)
    # Channels change last, so that the weights of 16 channels are loaded once for all images.
    items = [(c, n, t) for c in range(c1) for n in range(s.images) for t in tiles]
    used = min(len(some), len(items))
    for number in range(used):
        part = items[len(items) * number // used : len(items) * (number + 1) // used]
        emitter = _StridedEmitter if is_split(chip) else _DepthwiseEmitter
        emitter(some[number], s, part, (gx, gw, gy), bias=bias, relu=relu).emit()
    return program


def _weights(data: ConvOperands) -> np.ndarray:
    """Return (C1, Kh·Kw + 1, 16): the weights of each position, then the bias or zeros."""
    w = data.w[:, 0]
    bias = np.zeros(len(w), np.float16) if data.b is None else data.b
    rows = np.concatenate([w.reshape(len(w), -1), bias[:, None]], axis=1)
    # A row for each channel becomes a column of 16 channels.
    return np.ascontiguousarray(to_nc1hwc0(rows[..., None])[:, :, 0])


class _DepthwiseEmitter:
    """The emitter of the instructions of one core."""

    def __init__(
        self,
        core: Core,
        shape: ConvShape,
        items: list[tuple[int, int, ConvTile]],
        tensors: tuple[View, View, View],
        *,
        bias: bool,
        relu: bool,
    ) -> None:
        self.core, self.shape, self.items = core, shape, items
        self.bias, self.relu = bias, relu
        self.x, self.w, self.y = tensors
        self.taps = self.w.shape[1] - 1
        self._allocate()

    def _allocate(self) -> None:
        """Allocate the buffers and plan the uses of their slots."""
        core, items = self.core, self.items
        pixels = max(tile.pixels for *_, tile in items)
        fractals = max(tile.fractals for *_, tile in items)
        self.l1 = core.allocate("L1", (2, pixels * C0), "fp16", "x in L1")
        self.weights = core.allocate("UB", (2, *self.w.shape[1:]), "fp16", "weights")
        self.columns = core.allocate("UB", (2, fractals * 256), "fp16", "pixels of patches")
        self.sums = core.allocate("UB", (2, fractals * 256), "fp16", "y in UB")
        ones = range(len(items))
        self.in_x = Ring(core, MTE2, MTE1, plan=uses_of(ones, 2))
        # The weights go to UB past L1, so that V and not MTE1 waits for them.
        self.in_w = Ring(core, MTE2, V, plan=uses_of((c for c, *_ in items), 2))
        self.patches = Ring(core, MTE1, V, plan=uses_of(range(len(items) * self.taps), 2))
        self.outs = Ring(core, V, MTE3, plan=uses_of(ones, 2))

    def emit(self) -> None:
        """Emit all output tiles of the core."""
        for channel, image, tile in self.items:
            w = self.in_w.next()
            with self.in_x.write() as slot:
                source = self.x[image, channel, slice(*tile.down), slice(*tile.across)]
                pixels = self.l1[slot, : tile.pixels * C0]
                self.core.copy(pixels.reshape(*source.shape), source)
            if w.load:
                with self.in_w.write(w):
                    self.core.copy(self.weights[w.slot], self.w[channel])
            with together(self.in_x.read(), self.in_w.read(w)):
                self._tile(image, channel, tile, pixels, self.weights[w.slot])

    def _tile(self, image: int, channel: int, tile: ConvTile, pixels: View, weights: View) -> None:
        core, size = self.core, tile.fractals * 256
        with self.outs.write() as out:
            sums = self.sums[out, :size]
            for tap in range(self.taps):
                with self.patches.write() as slot:
                    columns = self.columns[slot, :size]
                    core.im2col(
                        columns,
                        pixels,
                        tile.patches,
                        position=tile.corner(0),
                        kernel_position=divmod(tap, tile.patches.kernel[1]),
                        mode=1,
                    )
                with self.patches.read():
                    # The first product overwrites the sums, which saves clearing them.
                    self._lanes(core.vmla if tap else core.vmul, sums, columns, weights[tap])
            if self.bias:
                self._lanes(core.vadd, sums, sums, weights[self.taps])
            if self.relu:
                core.pipe_barrier(V)
                core.vrelu(sums, sums, repeat=2 * tile.fractals)
        with self.outs.read():
            part = self.y[image, channel, slice(*tile.rows), slice(*tile.columns)]
            core.copy(part, sums[: tile.count * C0].reshape(*part.shape))

    def _lanes(self, operation, sums: View, columns: View, weights: View) -> None:
        """Emit an operation on all pixels; all blocks of a repeat read the same 16 weights."""
        self.core.pipe_barrier(V)
        # A repeat covers 8 pixels, a block of 16 channels each; strides of 0 give all of them the
        # same weights.
        strides = {"dst": (1, 8), "src0": (1, 8), "src1": (0, 0)}
        operation(sums, columns, weights, repeat=sums.size // 128, strides=strides)


class _StridedEmitter(_DepthwiseEmitter):
    """The emitter of a vector core without Im2Col, whose instructions read pixels at a distance."""

    def _allocate(self) -> None:
        core, items = self.core, self.items
        self.weights = core.allocate("UB", (2, *self.w.shape[1:]), "fp16", "weights")
        most = max(tile.count for *_, tile in items)
        self.sums = core.allocate("UB", (2, most, C0), "fp16", "y in UB")
        self.images = PaddedTiles(core, self.shape, self.x, [(n, c, t) for c, n, t in items])
        # The tiles of images have the registers before.
        self.in_w = Ring(core, MTE2, V, first=2, plan=uses_of((c for c, *_ in items), 2))
        self.outs = Ring(core, V, MTE3, plan=uses_of(range(len(items)), 2))

    def emit(self) -> None:
        """Emit all output tiles of the core."""
        core, emit = self.core, Emitter(self.core)
        for number, (channel, image, tile) in enumerate(self.items):
            w = self.in_w.next()
            if w.load:
                with self.in_w.write(w):
                    core.copy(self.weights[w.slot], self.w[channel])
            self.images.begin(number)
            rows, columns = self.images.windows(number)
            with together(self.in_w.read(w), self.outs.write()) as (_, out):
                sums, weights = self.sums[out, : tile.count], self.weights[w.slot]
                dense = (sums, BlockRows(columns))
                for tap in range(self.taps):
                    core.pipe_barrier(V)
                    # All blocks of an instruction read the same 16 weights.
                    same = (weights[tap : tap + 1], BlockRows(0, 0))
                    views = {"dst": dense, "src0": self.images.at(number, tap), "src1": same}
                    rectangle(emit, "vmla" if tap else "vmul", views, rows, columns)
                if self.bias:
                    core.pipe_barrier(V)
                    same = (weights[self.taps : self.taps + 1], BlockRows(0, 0))
                    views = {"dst": dense, "src0": dense, "src1": same}
                    rectangle(emit, "vadd", views, rows, columns)
                if self.relu:
                    core.pipe_barrier(V)
                    core.vrelu(sums.reshape(sums.size), sums.reshape(sums.size))
            with self.outs.read():
                part = self.y[image, channel, slice(*tile.rows), slice(*tile.columns)]
                core.copy(part, sums.reshape(*part.shape))
