"""2-D convolution on Cube cores with a unit FIX, such as those of the 910B.

A convolution is a matrix product: its rows are the output pixels of all images, its columns the
filters, and its depth the input channels times the positions of the kernel. Every core computes a
part of the images and filters, base tile by base tile. L1 has two slots with the pixels and the
weights of ``step_k`` base tiles along the depth. MTE1 loads patches of the pixels to L0A with
Im2Col and weights to L0B, which have two slots with one base tile each, and L0C holds one tile of
the result, which FIX converts to FP16 and writes to global memory.

References
----------
The convolution example of pto-isa (hicann): the grid of cores, base tiles, steps, double buffers
and tensor layouts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered
from vitruvian.sim.kernels.cache import Piece, Transfer
from vitruvian.sim.kernels.convolution.dense import ConvOperands, image_fractals, weight_fractals
from vitruvian.sim.kernels.convolution.shape import C0, ConvShape
from vitruvian.sim.kernels.kernel import products_need_barrier
from vitruvian.sim.kernels.ring import Ring, Use
from vitruvian.sim.kernels.steps import Step, cube_kind, emit_steps, lower_steps, with_misses

M, MTE1, MTE2, FIX = Unit.M, Unit.MTE1, Unit.MTE2, Unit.FIX

#: L0C holds one tile of the result.
_SUMS = Use(0)


@dataclass(frozen=True)
class ConvBlocking:
    """The division of a convolution among cores and into tiles.

    Attributes
    ----------
    down, across : int
        The grid of cores: parts of the images, and parts of the filters.
    m, k, n : int
        Size of a base tile: output pixels, depth and filters, multiples of 16.
    step_k : int
        Number of base tiles along the depth in a slot of L1.
    """

    down: int = 4
    across: int = 6
    m: int = 128
    k: int = 48
    n: int = 256
    step_k: int = 3


def build(
    shape: ConvShape,
    *,
    chip: Chip | str = "ascend910b",
    blocking: ConvBlocking | None = None,
    data: ConvOperands | None = None,
) -> Program:
    """Build y = convolution of x with w, FP16 with sums in FP32.

    Parameters
    ----------
    blocking : ConvBlocking, optional
    data : ConvOperands, optional
        Without them, only times can be computed. There must be no bias.

    Returns
    -------
    Program
        Its tensors are x (N, C1, H, W, 16), w (C1·Kh·Kw, N1, 16, 16) and y (N, N1, Oh·Ow, 16);
        ``result`` converts y.

    Raises
    ------
    ValueError
        If the shape has groups, or the blocking or the data do not fit.
    """
    chip = load_chip(chip) if isinstance(chip, str) else chip
    blocking = blocking or ConvBlocking()
    _check(shape, chip, blocking, data)
    program = Program(chip, _name(shape))
    tensors = _tensors(program, shape, data)
    for index, steps in _steps(shape, chip, blocking).items():
        core = program.core(index, cube_kind(chip))
        emit_steps(_ConvEmitter(core, shape, blocking, tensors), steps)
    return program


def lower_conv(
    shape: ConvShape, *, chip: Chip, blocking: ConvBlocking | None = None
) -> tuple[Lowered, list[CoreStream]]:
    """Lower the program of ``build`` without data; each distinct step is built only once.

    Raises
    ------
    ValueError
        As in ``build``.
    """
    blocking = blocking or ConvBlocking()
    _check(shape, chip, blocking, None)
    program = Program(chip, _name(shape))
    core = program.core(0, cube_kind(chip))
    body = _ConvEmitter(core, shape, blocking, _tensors(program, shape, None))
    return lower_steps(chip, body, _steps(shape, chip, blocking))


def result(y: np.ndarray, shape: ConvShape) -> np.ndarray:
    """Return the tensor y of a program of ``build`` as (N, F, Oh, Ow)."""
    p = shape.patches
    n, n1, _, _ = y.shape
    channels = y.transpose(0, 1, 3, 2).reshape(n, n1 * C0, p.rows, p.columns)
    return np.ascontiguousarray(channels[:, : shape.filters])


def _name(s: ConvShape) -> str:
    return f"convolution {s.images}×{s.channels}×{s.height}×{s.width}, {s.filters} filters"


def _check(s: ConvShape, chip: Chip, b: ConvBlocking, data: ConvOperands | None) -> None:
    if s.groups != 1:
        raise ValueError(f"groups of a convolution on Cube cores must be 1, not {s.groups}")
    if data is not None and data.b is not None:
        raise ValueError("data of a convolution on Cube cores must be without a bias")
    for name, size in (("m", b.m), ("k", b.k), ("n", b.n)):
        if size < 1 or size % 16:
            raise ValueError(f"{name} must be a multiple of 16, not {size!r}")
    kind = chip.kind(cube_kind(chip))
    if min(b.down, b.across, b.step_k) < 1 or b.down * b.across > kind.count:
        raise ValueError(f"grid must have 1 … {kind.count} cores, not {b.down}×{b.across}")
    # Two slots in L1 (FP16), two in L0A and L0B (FP16), one in L0C (FP32); see the module.
    need = {
        "L1": 4 * (_pixels(s, b) + b.step_k * b.k * b.n),
        "L0A": 4 * b.m * b.k,
        "L0B": 4 * b.k * b.n,
        "L0C": 4 * b.m * b.n,
    }
    for name, nbytes in need.items():
        room = kind.buffers[name].nbytes
        if nbytes > room:
            raise ValueError(f"base tiles must fit the {room} bytes of {name}, not take {nbytes}")


def _pixels(s: ConvShape, b: ConvBlocking) -> int:
    """Return the elements of the pixels in a slot of L1, at most."""
    p = s.patches
    lines = ceil_div(b.m - 1, p.columns) + 1  # rows of output pixels that a tile touches, at most
    rows = min((lines - 1) * p.stride[0] + p.extent[0], s.height)
    groups = min(ceil_div(b.step_k * b.k // C0 - 1, s.taps) + 1, s.c1)
    return groups * rows * s.width * C0


def _tensors(program: Program, s: ConvShape, data: ConvOperands | None) -> tuple[View, View, View]:
    x, w = None, None
    if data is not None:
        x, w = image_fractals(data.x, 1)[:, 0], weight_fractals(data.w, 1)[0]
    return (
        program.tensor("x", (s.images, s.c1, s.height, s.width, C0), "fp16", x),
        program.tensor("w", (s.c1 * s.taps, s.n1, C0, C0), "fp16", w),
        program.tensor("y", (s.images, s.n1, s.patches.count, C0), "fp16"),
    )


@dataclass(frozen=True, kw_only=True)
class _ConvStep(Step):
    """A step: the load of pixels and weights to L1, and all products computed from them.

    The depth is counted in fractals, positions of the kernel fastest.
    """

    image: int
    at: int  # first output pixel of the image
    rows: int
    filters: range  # groups of 16
    depth: range
    lines: range  # rows of the image
    groups: range  # groups of 16 input channels
    start: tuple[int, int]  # row (counted from the first line) and column of the first patch
    patches: Patches
    slot: int
    parity: int  # L0 slot of the first product
    last: bool

    @property
    def key(self) -> tuple:
        """All properties that affect the times of the step, and the positions that are checked."""
        place = (
            self.depth.start - self.groups.start * self.patches.kernel[0] * self.patches.kernel[1]
        )
        return (
            self.rows,
            len(self.filters),
            len(self.depth),
            len(self.groups),
            place,
            self.start,
            self.patches,
            self.slot,
            self.parity,
            self.depth.start == 0,
            self.last,
            self.missed,
        )

    @property
    def loads(self) -> Sequence[Transfer]:
        """The lines of pixels, and the weights."""
        line, weights = 32 * self.patches.width, 512 * len(self.filters) * len(self.depth)
        pixels = [(("x", self.image, c, row), line) for c in self.groups for row in self.lines]
        return [pixels, [(("w", self.depth.start, self.filters.start), weights)]]

    @property
    def stores(self) -> Sequence[Piece]:
        """The tile of the result, after the last step."""
        if not self.last:
            return []
        return [
            (("y", self.image, self.at, self.filters.start), 32 * self.rows * len(self.filters))
        ]


def _steps(s: ConvShape, chip: Chip, b: ConvBlocking) -> dict[int, list[_ConvStep]]:
    """Return the steps of each core that has a part of the result, by the index of the core."""
    images = [s.images * i // b.down for i in range(b.down + 1)]
    filters = [s.n1 * j // b.across for j in range(b.across + 1)]
    parts = {}
    for index in range(b.down * b.across):
        i, j = divmod(index, b.across)
        some, columns = range(*images[i : i + 2]), range(*filters[j : j + 2])
        if some and columns:
            parts[index] = list(_part_steps(s, b, some, columns))
    return with_misses(chip, parts)


def _part_steps(
    s: ConvShape, b: ConvBlocking, images: range, filters: range
) -> Iterator[_ConvStep]:
    """Yield all steps of a core's part of the result."""
    deep, each = b.step_k * b.k // C0, b.k // C0
    total, count, products = s.c1 * s.taps, 0, 0
    for image in images:
        for at in range(0, s.patches.count, b.m):
            rows = min(b.m, s.patches.count - at)
            lines, start, patches = _lines(s, at, rows)
            for j in range(filters.start, filters.stop, b.n // C0):
                for k in range(0, total, deep):
                    depth = range(k, min(k + deep, total))
                    yield _ConvStep(
                        image=image,
                        at=at,
                        rows=rows,
                        filters=range(j, min(j + b.n // C0, filters.stop)),
                        depth=depth,
                        lines=lines,
                        groups=range(k // s.taps, ceil_div(depth.stop, s.taps)),
                        start=start,
                        patches=patches,
                        slot=count % 2,
                        parity=products % 2,
                        last=depth.stop == total,
                    )
                    count += 1
                    products += ceil_div(len(depth), each)


def _lines(s: ConvShape, at: int, rows: int) -> tuple[range, tuple[int, int], Patches]:
    """Return the rows of an image that some output pixels need.

    Returns
    -------
    lines : range
    start : (int, int)
        Row, counted from the first line, and column of the first patch's first pixel.
    patches : Patches
        Those of the lines.
    """
    p = s.patches
    (top, left), (bottom, _) = p.corner(at), p.corner(at + rows - 1)
    first = min(max(top, 0), s.height - 1)
    end = max(min(bottom + p.extent[0], s.height), first + 1)
    pad = (max(first - top, 0), max(bottom + p.extent[0] - end, 0), *p.pad[2:])
    patches = Patches(
        height=end - first,
        width=s.width,
        kernel=p.kernel,
        stride=p.stride,
        pad=pad,
        dilation=p.dilation,
    )
    return range(first, end), (top - first, left), patches


class _ConvEmitter:
    """The emitter of the instructions of one core."""

    def __init__(
        self, core: Core, shape: ConvShape, blocking: ConvBlocking, tensors: tuple[View, View, View]
    ) -> None:
        self.core, self.shape, self.b = core, shape, blocking
        self.x, self.w, self.y = tensors
        b, pixels = blocking, _pixels(shape, blocking)
        weights = b.step_k * b.k * b.n
        self.x1 = [core.allocate("L1", (pixels,), "fp16", "pixels") for _ in "01"]
        self.w1 = [core.allocate("L1", (weights,), "fp16", "weights") for _ in "01"]
        self.a0 = [core.allocate("L0A", (b.m * b.k,), "fp16", "patches") for _ in "01"]
        self.b0 = [core.allocate("L0B", (b.k * b.n,), "fp16", "weights") for _ in "01"]
        self.c0 = core.allocate("L0C", (b.m * b.n,), "fp32", "result")

    def begin(self) -> None:
        """Mark every slot as free."""
        core = self.core
        self.in_l1, self.in_l0 = Ring(core, MTE2, MTE1), Ring(core, MTE1, M)
        self.sums = Ring(core, M, FIX, 1)

    def end(self) -> None:
        """Wait until every slot is free."""
        for ring in (self.in_l1, self.in_l0, self.sums):
            ring.close()

    def step(self, s: _ConvStep) -> None:
        """Emit the loads and products of a step, and the store of the result after the last."""
        core, use = self.core, Use(s.slot)
        pixels = len(s.groups) * len(s.lines) * self.shape.width * C0
        x1 = self.x1[s.slot][:pixels]
        w1 = self.w1[s.slot][: len(s.depth) * len(s.filters) * 256]
        x = self.x[s.image, s.groups.start : s.groups.stop, s.lines.start : s.lines.stop]
        w = self.w[s.depth.start : s.depth.stop, s.filters.start : s.filters.stop]
        with self.in_l1.write(use):
            core.copy(x1, x, missed=s.missed[0])
            core.copy(w1, w, missed=s.missed[1])
        self.in_l1.read(use).begin()
        each = self.b.k // C0
        for number, k in enumerate(range(0, len(s.depth), each)):
            self._product(s, x1, w1, k, Use((s.parity + number) % 2))
        if s.last:
            self.sums.write(_SUMS).end()
            with self.sums.read(_SUMS):
                y = self.y[s.image, s.filters.start : s.filters.stop, s.at : s.at + s.rows]
                n, stride = C0 * len(s.filters), self.y.strides[1]
                core.matrix_out(y, self.c0, m=s.rows, n=n, dst_stride=stride)

    def _product(self, s: _ConvStep, x1: View, w1: View, k: int, use: Use) -> None:
        """Emit one product with its loads to L0; ``k`` counts fractals from the step's first."""
        core, depth = self.core, min(self.b.k // C0, len(s.depth) - k)
        a0, b0 = self.a0[use.slot], self.b0[use.slot]
        filters, rows = len(s.filters), round_up(s.rows, C0)
        with self.in_l0.write(use):
            self._load_patches(s, a0, x1, k, depth)
            core.load(b0, w1[k * filters * 256 :], repeat=depth * filters)
            if k + depth == len(s.depth):  # the last product of the step has read the slot in L1
                self.in_l1.read(Use(s.slot)).end()
        with self.in_l0.read(use):
            # The first product of a tile overwrites L0C, so FIX must have read the previous tile.
            begins = s.depth.start + k == 0
            if begins:
                self.sums.write(_SUMS).begin()
            elif products_need_barrier(rows // C0, filters):
                core.pipe_barrier(M)
            init = "zero" if begins else "accumulate"
            core.mmad(self.c0, a0, b0, m=s.rows, k=depth * C0, n=filters * C0, init=init)

    def _load_patches(self, s: _ConvStep, a0: View, x1: View, k: int, depth: int) -> None:
        """Emit the loads of patches to L0A, one column of fractals at a time."""
        taps = self.shape.taps
        for column in range(depth):
            channel, tap = divmod(s.depth.start + k + column, taps)
            self.core.im2col(
                a0[column * 256 :],
                x1,
                s.patches,
                repeat=ceil_div(s.rows, C0),
                position=s.start,
                kernel_position=divmod(tap, self.shape.kernel[1]),
                channel=channel - s.groups.start,
                mode=1,
                dst_stride=512 * depth,
            )
