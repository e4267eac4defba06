"""Depthwise convolution on the Cube in five steps.

The paper's operator goes from global memory to L1, by Im2Col to L0A, and through the Cube to UB
and back. The weights of 16 channels are a diagonal matrix for each position of the kernel. A turn
of the loop computes two tiles of an output of 16 channels.

The last step differs from the paper's, which merges stores of 30 KB. In the simulator such stores
lose 3 % to their initialisation, and loads keep the bus busy meanwhile. So this step merges loads
of single rows, too, which is what limits the bandwidth here.

References
----------
Zhou et al. 2025, §5.2, Fig. 11 and 12.
"""

from collections.abc import Iterator

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import from_nc1hwc0, to_nc1hwc0
from vitruvian.sim.davinci import Core, Program, Unit, View
from vitruvian.sim.kernels.convolution import ConvShape, golden
from vitruvian.sim.kernels.convolution.dense import load_patches
from vitruvian.sim.kernels.convolution.shape import ConvTile
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost, cores_of
from vitruvian.sim.kernels.layout import pack_b
from vitruvian.sim.kernels.ring import Ring, Use, uses_of
from vitruvian.sim.papers.zhou25.case import CaseStep, CaseStudy

V, M, MTE1, MTE2, MTE3 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3

#: Names of the steps in the order of the paper.
_STEPS = ("baseline", "AIS", "RUS", "PP", "ITG")
#: Side and stride of the kernel, output rows of a tile, and rows of fractals of a product.
_KERNEL, _STRIDE, _ROWS, _PART = 3, 2, 14, 7
_TAPS = _KERNEL * _KERNEL


def _shape(groups: int, side: int) -> ConvShape:
    """Return a convolution of 16 channels; each of the groups is one."""
    return ConvShape(
        images=groups,
        channels=16,
        height=side,
        width=side,
        filters=16,
        kernel=(_KERNEL, _KERNEL),
        stride=(_STRIDE, _STRIDE),
        pad=(1, 1, 1, 1),
    )


def _make(size: tuple[int, ...], step: str, program: Program, seed: int | None) -> KernelInstance:
    groups, side = size
    s = _shape(groups, side)
    p = s.patches
    x = w = None
    if seed is not None:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(groups, 16, side, side)).astype(np.float16)
        w = rng.normal(size=(groups, 16, _KERNEL, _KERNEL)).astype(np.float16)
    packed = None if x is None else np.ascontiguousarray(to_nc1hwc0(x))[:, 0]
    gx = program.tensor("x", (groups, side, side, 16), "fp16", packed)
    gw = program.tensor(
        "w", (groups, _TAPS, 16, 16), "fp16", None if w is None else _diagonals(w)[:, :, 0]
    )
    gy = program.tensor("y", (groups, p.rows, p.columns, 16), "fp16")
    (core,) = cores_of(program, 1)
    _CaseEmitter(core, s, (gx, gw, gy), _STEPS.index(step)).emit()
    if x is None or w is None:
        return KernelInstance(program, {})
    return KernelInstance(
        program,
        {"y": lambda: _golden(s, x, w)},
        {"y": lambda y: np.ascontiguousarray(from_nc1hwc0(y[:, None], 16))},
    )


def _diagonals(w: np.ndarray) -> np.ndarray:
    """Return (groups, taps, 1, 16, 16) fractals: each position has a diagonal matrix of weights."""
    return np.stack([pack_b(np.concatenate([np.diag(v) for v in g.reshape(16, -1).T])) for g in w])


def _golden(s: ConvShape, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Compute each group of channels as a dense convolution with weights on the diagonal."""
    results = []
    one = _shape(1, s.height)
    for image, weights in zip(x, w, strict=True):
        kernels = np.zeros((16, 16, _KERNEL, _KERNEL), np.float16)
        kernels[np.arange(16), np.arange(16)] = weights
        results.append(golden.dense(one, image[None], kernels)[0])
    return np.stack(results)


class _CaseEmitter:
    """The emitter of one of the steps.

    Parameters
    ----------
    tensors : (View, View, View)
        x, w and y.
    step : int
        Every change up to this one is made.
    """

    def __init__(
        self, core: Core, shape: ConvShape, tensors: tuple[View, View, View], step: int
    ) -> None:
        self.core, self.shape = core, shape
        self.x, self.w, self.y = tensors
        self.early, self.flags, self.ping_pong, self.merged = (step >= n for n in (1, 2, 3, 4))
        tiles = shape.tiles(_ROWS, shape.patches.columns)
        pairs = [tiles[i : i + 2] for i in range(0, len(tiles), 2)]
        self.turns = [(g, pair) for g in range(shape.images) for pair in pairs]
        slots = 2 if self.ping_pong else 1
        pixels = max(t.pixels for t in tiles)
        count, fractals = max(t.count for t in tiles), max(t.fractals for t in tiles)
        self.l1_x = core.allocate("L1", (2, pixels * 16), "fp16", "x in L1")
        self.l1_w = core.allocate("L1", (2, _TAPS, 256), "fp16", "w in L1")
        self.l0a = core.allocate("L0A", (slots, _PART * _TAPS, 256), "fp16", "A")
        self.l0b = core.allocate("L0B", (slots, _TAPS, 256), "fp16", "B")
        self.l0c = core.allocate("L0C", (slots, fractals * 256), "fp32", "C")
        tiles_of_store = 2 if self.merged else 1
        self.ub = core.allocate("UB", (slots, tiles_of_store * count * 16), "fp16", "y in UB")
        self._rings(slots)

    def _rings(self, slots: int) -> None:
        core = self.core
        tiles = [tile for _, pair in self.turns for tile in pair]
        parts = sum(len(list(_parts(tile))) for tile in tiles)
        stores = len(self.turns) if self.merged else len(tiles)
        self.left = Ring(core, MTE1, M, plan=uses_of(range(parts), slots))
        self.right = Ring(core, MTE1, M, first=2, plan=uses_of(range(len(tiles)), slots))
        self.sums = Ring(core, M, V, plan=uses_of(range(len(tiles)), slots))
        self.outs = Ring(core, V, MTE3, plan=uses_of(range(stores), slots))
        # Without two buffers, one flag says that both halves of L1 are free, so that the flags of
        # the two directions do not belong to the same slots.
        self.halves = Ring(core, MTE2, MTE1, back=False)
        self.read_halves = Ring(core, MTE1, MTE2, back=False)
        self._plan_halves()

    def _plan_halves(self) -> None:
        """Plan the flags that say that halves of L1 have been read, by turn and half."""
        self.waits: dict[tuple[int, int], int] = {}
        self.releases: dict[tuple[int, int], int] = {}
        last: dict[int, tuple[int, int]] = {}
        for turn, (_, pair) in enumerate(self.turns):
            if not self.ping_pong and turn:
                # Both halves are free at once, after the last tile of the turn before.
                self.waits[turn, 0], self.releases[last[0]] = 0, 0
            for half in range(len(pair)):
                if self.ping_pong and half in last:
                    self.waits[turn, half], self.releases[last[half]] = half, half
                last[half if self.ping_pong else 0] = turn, half

    def emit(self) -> None:
        """Emit all turns of the loop."""
        for turn, (group, pair) in enumerate(self.turns):
            out = self.outs.next()
            if self.early:
                for half, tile in enumerate(pair):
                    self._load(turn, group, half, tile)
            for half, tile in enumerate(pair):
                if not self.early:
                    self._load(turn, group, half, tile)
                if half and not self.merged:
                    out = self.outs.next()
                self._tile(turn, half, tile)
                self._result(group, pair, half, out)

    def _load(self, turn: int, group: int, half: int, tile: ConvTile) -> None:
        """Load the input of a tile and its weights from global memory."""
        core = self.core
        if (turn, half) in self.waits:
            self.read_halves.read(Use(self.waits[turn, half])).begin()
        source = self.x[group, slice(*tile.down)]
        pixels = self.l1_x[half, : tile.pixels * 16].reshape(*source.shape)
        if self.merged:
            core.copy(pixels, source)
        else:
            for row in range(source.shape[0]):
                core.copy(pixels[row], source[row])
        core.copy(self.l1_w[half].reshape(_TAPS, 16, 16), self.w[group])
        self.halves.write(Use(half)).end()

    def _tile(self, turn: int, half: int, tile: ConvTile) -> None:
        """Multiply the patches of a tile by the weights, some rows of fractals at a time."""
        core, c = self.core, self.sums.next()
        self.c = c
        self.halves.read(Use(half)).begin()
        with self.right.write() as b:
            core.load(self.l0b[b], self.l1_w[half])
        with self.right.read() as b:
            if self.flags:
                self.sums.write(c).begin()
            for rows in _parts(tile):
                m = len(rows)
                with self.left.write() as a:
                    pixels, left = self.l1_x[half, : tile.pixels * 16], self.l0a[a, : m * _TAPS]
                    load_patches(core, left, pixels, tile, range(_TAPS), _TAPS, rows)
                with self.left.read() as a:
                    sums, left = self.l0c[c.slot, rows.start * 256 :], self.l0a[a, : m * _TAPS]
                    core.mmad(sums, left, self.l0b[b], m=16 * m, k=16 * _TAPS, n=16, init="zero")
        if (turn, half) in self.releases:
            self.read_halves.write(Use(self.releases[turn, half])).end()

    def _result(self, group: int, pair: list[ConvTile], half: int, out) -> None:
        """Move the result of a tile to UB and, if it is not merged with another, store it."""
        core, tile = self.core, pair[half]
        first = pair[0].count * 16 if self.merged and half else 0
        if self.flags:
            self.sums.write(self.c).end()
            self.sums.read(self.c).begin()
            if not (self.merged and half):
                self.outs.write(out).begin()
        else:
            core.pipe_barrier()
        core.matrix_out(self.ub[out.slot, first:], self.l0c[self.c.slot], m=tile.count, n=16)
        stored = pair if self.merged else [tile]
        if self.flags:
            self.sums.read(self.c).end()
            if tile is not stored[-1]:
                return
            self.outs.write(out).end()
            self.outs.read(out).begin()
        else:
            core.pipe_barrier()
        part = self.y[group, stored[0].rows[0] : stored[-1].rows[1]]
        core.copy(part, self.ub[out.slot, : part.size].reshape(*part.shape))
        if self.flags:
            self.outs.read(out).end()
        else:
            core.pipe_barrier()


def _parts(tile: ConvTile) -> Iterator[range]:
    """Yield the rows of fractals of each product."""
    for first in range(0, tile.fractals, _PART):
        yield range(first, min(first + _PART, tile.fractals))


def _needs(size: tuple[int, ...]) -> SimulationCost:
    groups, side = size
    columns = ceil_div(side, _STRIDE)
    tiles, parts = ceil_div(columns, _ROWS), -(-_ROWS * columns // (16 * _PART))
    # A tile loads 29 rows or less; each product takes Im2Col loads and flags.
    of_tile = _STRIDE * _ROWS + 30 + parts * (_PART + 2) * _TAPS
    return SimulationCost(groups * tiles * of_tile, 16 * groups * side**2 * 16)


CASE = CaseStudy(
    name="depthwise",
    title="depthwise convolution, 3 × 3 with stride 2, on the Cube",
    sizes=("groups of 16 channels", "side"),
    # An input of 112 × 112 pixels, as the second block of MobileNetV3 has it.
    size=(8, 112),
    chip="ascend310",
    metric="MTE-GM",
    steps=(
        CaseStep(
            "baseline", "Each of the two loads of a turn stands before the work that needs it."
        ),
        CaseStep("AIS", "The second load moves up behind the first one, before the work on that."),
        CaseStep("RUS", "Flags between two units replace barriers that stop all units."),
        CaseStep(
            "PP", "Each buffer has two halves, one of which is filled while the other is read."
        ),
        CaseStep(
            "ITG",
            "One transfer loads the rows of a tile, and one stores the results of two.",
        ),
    ),
    make=_make,
    section="§5.2",
    needs=_needs,
)
