"""2-D convolution on the Cube: Im2Col loads on the left, kernels as fractals on the right.

MTE2 loads a tile of the image and the weights of some input channels to L1. MTE1 loads patches to
L0A with Im2Col and weights to L0B, and the Cube adds their products in L0C. The results, converted
to FP16, go to global memory as ``exits`` says. Every buffer has two slots or more, so that all
units work at the same time.

References
----------
Rohwedder 2021, §3.2 and §3.3.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import round_up
from vitruvian.golden.scu import kernel_matrix, to_nc1hwc0
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.kernels.convolution.shape import C0, ConvShape, ConvTile
from vitruvian.sim.kernels.convolution.tiling import ConvPlan, ConvTiling, Item, choose
from vitruvian.sim.kernels.exits import Exit
from vitruvian.sim.kernels.kernel import matrix_cores, products_need_barrier
from vitruvian.sim.kernels.layout import pack_b
from vitruvian.sim.kernels.ring import Ring, Use, ordered, together, uses_of

V, M, MTE1, MTE2 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2


@dataclass(frozen=True, eq=False)
class ConvOperands:
    """The operands of a convolution.

    Attributes
    ----------
    x : (N, C, H, W) ndarray of float16
    w : (F, C / groups, Kh, Kw) ndarray of float16
    b : (F,) ndarray of float16, optional
        The bias of each output channel.
    """

    x: np.ndarray
    w: np.ndarray
    b: np.ndarray | None = None


@dataclass(frozen=True)
class Buffering:
    """The use of the buffers; the case studies turn off what makes the kernel fast.

    Attributes
    ----------
    slots : int
        Slots of each buffer, 1 or 2; with 1, a unit waits until another one has read its result.
    keep_weights : bool
        If False, weights are loaded again for every output tile.
    """

    slots: int = 2
    keep_weights: bool = True


def image_fractals(x: np.ndarray, groups: int) -> np.ndarray:
    """Convert images to (N, groups, C1, H, W, 16); each group is padded to whole fractals."""
    n, c, h, w = x.shape
    return np.ascontiguousarray(to_nc1hwc0(x.reshape(n, groups, c // groups, h, w)))


def weight_fractals(w: np.ndarray, groups: int) -> np.ndarray:
    """Convert kernels to (groups, C1·Kh·Kw, N1, 16, 16), the fractals of L0B."""
    parts = np.split(w, groups)
    return np.stack([pack_b(np.ascontiguousarray(kernel_matrix(part))) for part in parts])


def bias_channels(b: np.ndarray, groups: int) -> np.ndarray:
    """Convert a bias to (groups, N1, 16) of float32, padded with zeros."""
    each = b.reshape(groups, -1)
    padded = np.zeros((groups, round_up(each.shape[1], C0)), np.float32)
    padded[:, : each.shape[1]] = each
    return padded.reshape(groups, -1, C0)


def result(y: np.ndarray, filters: int) -> np.ndarray:
    """Return the tensor y of a program of ``build`` as (N, F, Oh, Ow)."""
    n, groups, n1, rows, columns, _ = y.shape
    channels = y.transpose(0, 1, 2, 5, 3, 4).reshape(n, groups, n1 * C0, rows, columns)
    whole = channels[:, :, : filters // groups]
    return np.ascontiguousarray(whole).reshape(n, filters, rows, columns)


def build(
    shape: ConvShape,
    *,
    chip: Chip | str = "ascend910",
    cores: int | None = None,
    tiling: ConvTiling | None = None,
    bias: bool = False,
    relu: bool = False,
    buffering: Buffering | None = None,
    data: ConvOperands | None = None,
) -> Program:
    """Build y = convolution of x with w, FP16 with sums in FP32.

    Parameters
    ----------
    chip : Chip or str
        A chip with a Cube.
    cores : int, optional
        By default, all cores of the chip.
    tiling : ConvTiling, optional
        By default, that of ``choose``.
    bias : bool
        If True, add a bias; the sums in L0C start with it.
    relu : bool
        If True, negative results become 0.
    buffering : Buffering, optional
        By default, two slots of each buffer, and weights that stay in L1 if they fit.
    data : ConvOperands, optional
        Without them, only times can be computed. ``b`` is there if ``bias`` is True.

    Returns
    -------
    Program
        Its tensors are x (N, groups, C1, H, W, 16), w (groups, C1·Kh·Kw, N1, 16, 16),
        b (groups, N1, 16) and y (N, groups, N1, Oh, Ow, 16); ``result`` converts y.

    Raises
    ------
    ValueError
        If the chip, the tiling, the number of cores, the buffering or the data are invalid.
    """
    chip = load_chip(chip) if isinstance(chip, str) else chip
    buffering = Buffering() if buffering is None else buffering
    if buffering.slots not in (1, 2) or (bias and buffering.slots == 1):
        allowed = "2 with a bias" if bias else "1 or 2"
        raise ValueError(f"slots must be {allowed}, not {buffering.slots!r}")
    s, p = shape, shape.patches
    name = f"conv2d {s.images}×{s.channels}×{s.height}×{s.width}, {s.filters} filters"
    program = Program(chip, f"{name} {s.kernel[0]}×{s.kernel[1]}")
    some = matrix_cores(program, cores)
    plan = ConvPlan(s, choose(s, chip, len(some)) if tiling is None else tiling, chip, len(some))
    x = w = b = None
    if data is not None:
        check_operands(s, data, bias)
        x, w = image_fractals(data.x, s.groups), weight_fractals(data.w, s.groups)
        b = None if data.b is None else bias_channels(data.b, s.groups)
    gx = program.tensor("x", (s.images, s.groups, s.c1, s.height, s.width, C0), "fp16", x)
    gw = program.tensor("w", (s.groups, s.c1 * s.taps, s.n1, 16, 16), "fp16", w)
    gb = program.tensor("b", (s.groups, s.n1, C0), "fp32", b) if bias else None
    gy = program.tensor("y", (s.images, s.groups, s.n1, p.rows, p.columns, C0), "fp16")
    for number in range(plan.cores):
        _DenseEmitter(
            some[number], plan, plan.part(number), (gx, gw, gb, gy), relu, buffering
        ).emit()
    return program


def check_operands(s: ConvShape, data: ConvOperands, bias: bool) -> None:
    """Raise ValueError if operands do not have the sizes of the shape."""
    x, w = (s.images, s.channels, s.height, s.width), (s.filters, s.channels // s.groups, *s.kernel)
    for name, array, size in (("x", data.x, x), ("w", data.w, w), ("b", data.b, (s.filters,))):
        if array is None:
            continue
        if array.shape != size or array.dtype != np.float16:
            expected, shown = "×".join(map(str, size)), "×".join(map(str, array.shape))
            raise ValueError(f"{name} must be {expected} of float16, not {shown} of {array.dtype}")
    if bias != (data.b is not None):
        raise ValueError(f"bias must be {data.b is not None} with these data, not {bias}")


class _DenseEmitter:
    """The emitter of the instructions of one core."""

    def __init__(
        self,
        core: Core,
        plan: ConvPlan,
        items: list[Item],
        tensors: tuple[View, View, View | None, View],
        relu: bool,
        buffering: Buffering,
    ) -> None:
        self.core, self.plan, self.items, self.relu = core, plan, items, relu
        self.loaded = False  # True when the biases are in L1
        self.x, self.w, self.b, self.y = tensors
        s, t = plan.shape, plan.tiling
        two, taps = buffering.slots, s.taps
        slots = plan.weight_slots if buffering.keep_weights else two
        self.l1_x = core.allocate("L1", (two, plan.image_bytes // 2), "fp16", "x in L1")
        self.l1_w = core.allocate("L1", (slots, t.channels * taps * t.filters, 256), "fp16", "w")
        self.l0a = core.allocate("L0A", (two, plan.fractals * t.depth, 256), "fp16", "A")
        self.l0b = core.allocate("L0B", (two, t.depth * t.filters, 256), "fp16", "B")
        self.l0c = core.allocate("L0C", (two, plan.fractals * t.filters, 256), "fp32", "C")
        self._rings(two, slots, buffering.keep_weights)
        #: True if the Cube takes the bias from its table, and False if it is in the sums before.
        self.table = self.b is not None and not self.exit.by_vector
        if self.b is not None and self.table:
            self.l1_b = core.allocate("L1", self.b.shape, "fp32", "biases")
            self.bt = core.allocate("BT", (2, t.filters * C0), "fp32", "bias")
        elif self.b is not None:
            self.ub_b = core.allocate("UB", self.b.shape[1:], "fp32", "bias")

    def _rings(self, two: int, slots: int, keep: bool) -> None:
        """Plan the uses of all slots: what is still there is not loaded again."""
        core, plan = self.core, self.plan
        parts = [
            (item, t, k)
            for item in self.items
            for t, chunk in enumerate(plan.chunks)
            for k in range(len(plan.steps(len(chunk))))
        ]
        chunks = [(item, t) for item, t, k in parts if k == 0]
        ones = uses_of(range(len(self.items)), two)
        # Keys name the contents of slots: an image's tile needs no filters (``j``) in its key, and
        # weights need neither the image nor the tile of pixels. Equal keys in turn share a load.
        x, w = [(*i[:3], t) for i, t in chunks], [(i[1], i[3], t) for i, t in chunks]
        # Numbered keys are all different, so that no weights are found in L1.
        w = w if keep else list(enumerate(w))
        a, b = [(*i[:3], t, k) for i, t, k in parts], [(i[1], i[3], t, k) for i, t, k in parts]
        # Two rings between the same units need different registers: those from 2 on are free.
        self.in_x = Ring(core, MTE2, MTE1, plan=uses_of(x, two))
        self.in_w = Ring(core, MTE2, MTE1, first=2, plan=uses_of(w, slots))
        self.left = Ring(core, MTE1, M, plan=uses_of(a, two))
        self.right = Ring(core, MTE1, M, first=2, plan=uses_of(b, two))
        elements = plan.pixels * plan.tiling.filters * C0
        self.exit = Exit(core, elements, "fp16", two, plan=ones)
        if self.exit.by_vector:
            # The sums that hold a bias; those of ``exit`` say that they have been read.
            self.biases = Ring(core, V, M, first=2, back=False)
        else:
            self.biases = Ring(core, MTE1, M, first=4, plan=ones)

    def emit(self) -> None:
        """Emit all output tiles of the core."""
        group = None
        pending = None
        for number, item in enumerate(self.items):
            if self.b is not None and not self.table:
                if item[1] != group:
                    group = item[1]
                    self._load_bias(self.b[group], number > 0)
                self._start(item, number % 2)
            # The bias of this tile comes first, so that the Cube need not wait for the last one.
            if pending is not None:
                self._out(pending)
            self._product(item, number % 2)
            pending = item
        if pending is not None:
            self._out(pending)

    def _load_bias(self, bias: View, again: bool) -> None:
        core = self.core
        # V must have read the last group's bias before the next one replaces it.
        if again:
            ordered(core, V, MTE2)
        core.copy(self.ub_b, bias)
        ordered(core, MTE2, V)

    def _start(self, item: Item, slot: int) -> None:
        """Write the bias to all rows of the sums."""
        core, tile, filters = self.core, self.plan.tiles[item[2]], self.plan.filters(item[3])
        core.pipe_barrier(V)
        for i, n in enumerate(filters):
            rows = 16 * tile.fractals
            # The bursts all begin at the same 16 numbers: each row of L0C has the biases of 16
            # filters.
            target = self.l0c[slot, i * tile.fractals]
            core.copy(target, self.ub_b[n], bursts=rows, burst_bytes=64, dst_stride=64)
        # The wait for a free slot is that of ``sums``, so that the ring of biases only signals.
        self.biases.write(Use(slot)).end()

    def _product(self, item: Item, slot: int) -> None:
        """Emit the loads and products of a tile."""
        core, plan = self.core, self.plan
        image, group, number, j = item
        tile, filters = plan.tiles[number], plan.filters(j)
        # With a bias in the sums, the first product adds to it as all others do.
        taps, first = plan.shape.taps, self.b is None or self.table
        with self.exit.sums.write() as sums:
            if self.b is not None and not self.table:
                self.biases.read(Use(slot)).begin()
            for chunk in plan.chunks:
                x, w = self.in_x.next(), self.in_w.next()
                pixels = self.l1_x[x.slot, : len(chunk) * tile.pixels * C0]
                if x.load:
                    with self.in_x.write(x):
                        if self.b is not None and self.table and not self.loaded:
                            core.copy(self.l1_b, self.b)
                            self.loaded = True
                        self._load_image(pixels, self.x[image, group], chunk, tile)
                blocks, wide = range(chunk.start * taps, chunk.stop * taps), len(filters)
                weights = self.l1_w[w.slot, : len(blocks) * wide]
                if w.load:
                    with self.in_w.write(w):
                        part = self.w[
                            group, blocks.start : blocks.stop, filters.start : filters.stop
                        ]
                        core.copy(weights.reshape(*part.shape), part)
                # MTE1 waits for both operands in L1, and frees them when all steps have been loaded
                # to L0.
                with together(self.in_x.read(x), self.in_w.read(w)):
                    if self.table and first:
                        with self.biases.write() as place:
                            part = self.l1_b[group, filters.start : filters.stop]
                            core.copy(self.bt[place, : part.size], part.reshape(part.size))
                    for steps in plan.steps(len(chunk)):
                        self._step(tile, pixels, weights, steps, wide, sums, first)
                        first = False

    def _load_image(self, dst: View, image: View, chunk: range, tile: ConvTile) -> None:
        """Load a rectangle of some groups of channels, with one transfer if its rows are whole."""
        part = image[chunk.start : chunk.stop, slice(*tile.down), slice(*tile.across)]
        dst = dst.reshape(*part.shape)
        # A move has one stride. Rows that are not whole need it, so that each group of channels
        # takes a move of its own.
        if part.shape[2] == image.shape[2]:
            self.core.copy(dst, part)
            return
        for c in range(len(chunk)):
            self.core.copy(dst[c], part[c])

    def _step(
        self,
        tile: ConvTile,
        pixels: View,
        weights: View,
        steps: range,
        wide: int,
        slot: int,
        first: bool,
    ) -> None:
        """Emit one product with its loads."""
        core, m, deep = self.core, tile.fractals, len(steps)
        a, b = self.left.next(), self.right.next()
        left, right = self.l0a[a.slot, : m * deep], self.l0b[b.slot, : deep * wide]
        if a.load:
            with self.left.write(a):
                load_patches(core, left, pixels, tile, steps, self.plan.shape.taps)
        if b.load:
            with self.right.write(b):
                core.load(right, weights[steps.start * wide : steps.stop * wide])
        with together(self.left.read(a), self.right.read(b)):
            # A product reads the sums that the last one still writes if C has few fractals.
            if not first and products_need_barrier(m, wide):
                core.pipe_barrier(M)
            m, k, n = tile.count, 16 * deep, 16 * wide
            if first and self.table:
                with self.biases.read() as place:
                    bias, init = self.bt[place, :n], "bias"
                    core.mmad(self.l0c[slot], left, right, m=m, k=k, n=n, init=init, bias=bias)
            else:
                init = "zero" if first else "accumulate"
                core.mmad(self.l0c[slot], left, right, m=m, k=k, n=n, init=init)

    def _out(self, item: Item) -> None:
        """Move the sums of a tile to global memory."""
        image, group, number, j = item
        tile, filters = self.plan.tiles[number], self.plan.filters(j)
        part = self.y[
            image, group, filters.start : filters.stop, slice(*tile.rows), slice(*tile.columns)
        ]
        self.exit.store(part, self.l0c, relu=self.relu)


def load_patches(
    core: Core,
    dst: View,
    pixels: View,
    tile: ConvTile,
    steps: range,
    taps: int,
    rows: range | None = None,
) -> None:
    """Load fractals of patches to L0A, row of fractals by row, with as few loads as possible.

    Parameters
    ----------
    dst : View
        One fractal for each row of fractals and step along K, steps fastest.
    pixels : View
        The tile's input in L1.
    steps : range
        Positions of the kernel, counted over the groups of channels in L1.
    taps : int
        Positions of the kernel.
    rows : range, optional
        Rows of fractals, by default all of the tile.
    """
    rows = range(tile.fractals) if rows is None else rows
    m, deep, p = len(rows), len(steps), tile.patches
    # A load repeats along K (mode 0) or along the pixels (mode 1): the fewer loads win.
    if m <= deep:
        channel, tap = divmod(steps.start, taps)
        where = {"channel": channel, "kernel_position": divmod(tap, p.kernel[1])}
        for i, row in enumerate(rows):
            position, part = tile.corner(16 * row), dst[i * deep : (i + 1) * deep]
            core.im2col(part, pixels, p, repeat=deep, position=position, mode=0, **where)
        return
    for i, step in enumerate(steps):
        channel, tap = divmod(step, taps)
        core.im2col(
            dst[i],
            pixels,
            p,
            repeat=m,
            position=tile.corner(16 * rows.start),
            kernel_position=divmod(tap, p.kernel[1]),
            channel=channel,
            mode=1,
            dst_stride=512 * deep,
        )
