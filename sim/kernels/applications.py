"""The applications of Tang 2024, Table 2.4: from global memory to global memory, double-buffered.

The lanes of the vector unit process 128 positions of a softmax, or 16 channels of a max pooling, in
parallel, so that the scalar unit never has to read a value.

References
----------
Tang 2024, Table 2.4; the layout of pooling (N·C1, H, W, 16) is that of Rohwedder 2021.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.golden import vector
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View
from vitruvian.sim.kernels import gemm, matmul
from vitruvian.sim.kernels.kernel import (
    Kernel,
    KernelInstance,
    SimulationCost,
    matrix_kind,
    vector_cores,
    vector_kind,
)
from vitruvian.sim.kernels.layout import unpack_c
from vitruvian.sim.kernels.ring import Ring, together
from vitruvian.sim.kernels.tiling import Tiling, blocks_of, choose, plan

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: A function that emits the work on a piece: (core, result, operand, intermediate buffer).
Body = Callable[[Core, View, View, View], object]


def _stream(
    core: Core, x: View, y: View, pieces: range, body: Body, between: tuple[int, ...] = (16,)
) -> None:
    """Emit y[p] = body(x[p]) for some pieces; loads and stores overlap the work on other pieces.

    Parameters
    ----------
    x, y : View
        The tensors in global memory; the first axis counts the pieces.
    pieces : range
        The pieces of this core.
    between : tuple of int
        The shape of the intermediate buffer.
    """
    ins = [core.allocate("UB", x.shape[1:], x.dtype, "in") for _ in "01"]
    outs = [core.allocate("UB", y.shape[1:], y.dtype, "out") for _ in "01"]
    room = core.allocate("UB", between, x.dtype, "between")
    # While V works on a piece, MTE2 loads the next one and MTE3 stores the previous one.
    full, done = Ring(core, MTE2, V), Ring(core, V, MTE3)
    for p in pieces:
        with full.write() as slot:
            core.copy(ins[slot], x[p])
        with together(full.read(), done.write()) as (source, target):
            body(core, outs[target], ins[source], room)
        with done.read() as slot:
            core.copy(y[p], outs[slot])
    full.close()
    done.close()


def _distribute(cores: list[Core], pieces: int) -> Iterator[tuple[Core, range]]:
    """Divide the pieces among the cores as equally as possible."""
    for number, core in enumerate(cores):
        part = range(pieces * number // len(cores), pieces * (number + 1) // len(cores))
        if part:
            yield core, part


def _streamed(
    name: str,
    chip: Chip,
    cores: int | None,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    data: np.ndarray | None,
    golden: Callable[[np.ndarray], np.ndarray],
    dtypes: tuple[str, str],
    body: Body,
    between: tuple[int, ...] = (16,),
) -> KernelInstance:
    """Build a kernel that streams over the first axis of x; the last piece may be padded.

    Parameters
    ----------
    shapes : (tuple of int, tuple of int)
        The shapes of x and y.
    data : ndarray or None
        The contents of x, or None for a program without data.
    golden : callable
        Computes y from x.
    dtypes : (str, str)
        The dtypes of x and y.
    body : callable
        Emits the work on a piece.
    between : tuple of int
        The shape of the intermediate buffer.
    """
    program = Program(chip, name)
    some = vector_cores(program, cores)
    gx = program.tensor("x", shapes[0], dtypes[0], data)
    gy = program.tensor("y", shapes[1], dtypes[1])
    for core, part in _distribute(some, shapes[0][0]):
        _stream(core, gx, gy, part, body, between)
    if data is None:
        return KernelInstance(program, {})
    return KernelInstance(program, {"y": lambda: golden(data)})


def _needs(chip: Chip, cores: int | None, pieces: int, each: int, elements: int) -> SimulationCost:
    """Return the cost of a stream: ``each`` instructions per piece, ``elements`` in total."""
    count = vector_kind(chip).count if cores is None else cores
    # A piece has 10 instructions besides its own: two copies and eight flags around them. A core
    # marks four slots as free at first, and waits for them in the end.
    return SimulationCost(pieces * (each + 10) + 8 * min(count, pieces), 24 * elements)


#: Elements of a piece of the elementwise kernels.
_PIECE = 4096


def _elements(
    name: str, title: str, dtypes: tuple[str, str], body: Body, golden: Callable
) -> Kernel:
    def make(
        size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
    ) -> KernelInstance:
        (count,) = size
        shape = (ceil_div(count, _PIECE), _PIECE)
        x = None
        if seed is not None:
            rng = np.random.default_rng(seed)
            x = np.zeros(shape, vector.DTYPES[dtypes[0]])
            x.reshape(-1)[:count] = rng.normal(0, 100, count).astype(x.dtype)
        title_ = f"{name} {count}"
        return _streamed(title_, chip, cores, (shape, shape), x, golden, dtypes, body)

    def needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
        pieces = ceil_div(size[0], _PIECE)
        return _needs(chip, cores, pieces, 1, pieces * _PIECE)

    return Kernel(name, title, ("elements",), (32768,), make, needs)


def _cast(source: str, target: str) -> Kernel:
    def body(core: Core, y: View, x: View, _: View) -> None:
        core.vconv(y, x)

    name = f"cast-{source}-{target}"
    title = f"{source.upper()} to {target.upper()}"
    return _elements(
        name, title, (source, target), body, lambda x: vector.convert(x, source, target)
    )


def _softmax(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    """Build a softmax over n classes at pieces · 128 positions; x is (pieces, n, 128)."""
    pieces, classes = size
    if classes > 128:
        raise ValueError(f"classes of softmax must be 1 … 128, not {classes}")
    shape, x = (pieces, classes, 128), None
    if seed is not None:
        x = np.random.default_rng(seed).normal(0, 2, shape).astype(np.float16)

    def body(core: Core, y: View, a: View, room: View) -> None:
        # The divisions of the previous piece read ``room``.
        core.pipe_barrier(V)
        # The maximum is subtracted first, so that no power overflows.
        core.vmax(room, a[0], a[classes - 1])
        for n in range(1, classes - 1):
            core.pipe_barrier(V)
            core.vmax(room, room, a[n])
        core.pipe_barrier(V)
        for n in range(classes):
            core.vsub(y[n], a[n], room)
        core.pipe_barrier(V)
        core.vexp(y.reshape(y.size), y.reshape(y.size))
        core.pipe_barrier(V)
        if classes == 1:
            # Powers are not negative, so this maximum with zero copies them.
            core.vmaxs(room, y[0], 0.0)
        else:
            core.vadd(room, y[0], y[1])
        for n in range(2, classes):
            core.pipe_barrier(V)
            core.vadd(room, room, y[n])
        core.pipe_barrier(V)
        for n in range(classes):
            core.vdiv(y[n], y[n], room)

    return _streamed(
        f"softmax {pieces}×{classes}×128",
        chip,
        cores,
        (shape, shape),
        x,
        lambda x: np.stack([_softmax_golden(piece) for piece in x]),
        ("fp16", "fp16"),
        body,
        (128,),
    )


def _softmax_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    pieces, classes = size
    return _needs(chip, cores, pieces, 6 * classes + 4, pieces * classes * 128)


def _softmax_golden(x: np.ndarray) -> np.ndarray:
    """Compute softmax over the first axis in the kernel's order, each operation rounded."""
    top = x[0]
    for row in x[1:]:
        top = vector.maximum(top, row)
    powers = vector.exp(vector.sub(x, np.broadcast_to(top, x.shape)))
    total = powers[0]
    for row in powers[1:]:
        total = vector.add(total, row)
    return vector.div(powers, np.broadcast_to(total, x.shape))


def _maxpool(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    """Build a max pooling of w × w windows with stride s over h × h pixels with 16 channels."""
    images, side, window, step = size
    if window > side:
        raise ValueError(f"window of maxpool must be within the {side} pixels, not {window}")
    # This product is the repeat stride between rows of windows, a field of eight bits.
    if side * step > 255:
        raise ValueError(f"side · step of maxpool must be at most 255 blocks, not {side * step}")
    out = (side - window) // step + 1
    shapes, x = ((images, side, side, 16), (images, out, out, 16)), None
    if seed is not None:
        x = np.random.default_rng(seed).normal(size=shapes[0]).astype(np.float16)

    def body(core: Core, y: View, a: View, _: View) -> None:
        first = True
        for dh in range(window):
            for dw in range(window):
                # The maximum so far is an operand of the next one.
                if not first:
                    core.pipe_barrier(V)
                for column in range(0, out, 8):
                    # A block holds the channels of a pixel, a repeat up to eight pixels of a row.
                    many = min(8, out - column)
                    old = y[0, column]
                    new = a[dh, dw + column * step]
                    strides = {"dst": (1, out), "src0": (1, out), "src1": (step, step * side)}
                    # The first element of the window initialises dst: max(x, x) is a copy.
                    if first:
                        old, strides["src0"] = new, strides["src1"]
                    mask = (1 << 16 * many) - 1
                    core.vmax(y[0, column], old, new, repeat=out, mask=mask, strides=strides)
                first = False

    def golden(x: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), (1, 2))
        return np.ascontiguousarray(windows[:, ::step, ::step].max(axis=(-2, -1)))

    name = f"maxpool {images}×{side}×{side}×16, {window}×{window}/{step}"
    return _streamed(name, chip, cores, shapes, x, golden, ("fp16", "fp16"), body)


def _maxpool_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    images, side, window, step = size
    # ``_maxpool`` refuses this size; no cost is reported for it.
    if window > side:
        return SimulationCost(0)
    # For each position in the window: an instruction for every 8 columns, and a barrier.
    each = window * window * (ceil_div((side - window) // step + 1, 8) + 1)
    return _needs(chip, cores, images, each, images * side * side * 16)


def _cube_kernel(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    return _matmul(size, chip, 1 if cores is None else cores, seed, (1, 1, 1, 1))


def _cube_kernel_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    return _matmul_needs(size, chip, 1 if cores is None else cores, (1, 1, 1, 1))


def _matmul(
    size: tuple[int, ...],
    chip: Chip,
    cores: int | None,
    seed: int | None,
    tiling: tuple[int, ...] | None = None,
) -> KernelInstance:
    m, k, n = size
    data = None if seed is None else matmul.operands(m, k, n, seed=seed)
    cut = None if tiling is None else Tiling(*tiling)
    program = matmul.build(m, k, n, chip=chip, cores=cores, data=data, tiling=cut)
    if data is None:
        return KernelInstance(program, {})
    return KernelInstance(
        program, {"c": lambda: matmul.expected(*data)}, {"c": lambda c: unpack_c(c, m, n)}
    )


def _matmul_needs(
    size: tuple[int, ...], chip: Chip, cores: int | None, tiling: tuple[int, ...] | None = None
) -> SimulationCost:
    m, k, n = size
    blocks, cores = blocks_of(m, k, n), matrix_kind(chip).count if cores is None else cores
    cut = choose(chip, blocks, cores) if tiling is None else Tiling(*tiling)
    p = plan(chip, blocks, cut, cores)
    tiles = sum((i1 - i0) * (j1 - j0) for i0, i1, j0, j1 in p.across)
    # Upper bounds of ``matmul``: instructions of a step, of a tile's end, and of a core's flags.
    instructions = tiles * (14 * p.k.tiles + 10) + 40 * len(p.across)
    return SimulationCost(instructions, _operand_bytes(m, k, n), m * k * n)


def _operand_bytes(m: int, k: int, n: int) -> int:
    """Return the bytes of A, B and C in all copies: drawn, packed, in memory and compared."""
    m, k, n = (round_up(x, 16) for x in (m, k, n))
    return 16 * (m * k + k * n + m * n)


def _blocking(
    chip: Chip, cores: int | None, tiling: tuple[int, ...] | None
) -> tuple[int, gemm.Blocking]:
    """Return the cores and the blocking; the default grid has up to four rows of cores."""
    cores = chip.kind(gemm.cube_kind(chip)).count if cores is None else cores
    down = min(4, cores)
    names = ("down", "across", "m", "k", "n", "step_k")
    given = tiling or (down, cores // down)
    blocking = replace(gemm.Blocking(), **dict(zip(names, given, strict=False)))
    if blocking.down * blocking.across > cores:
        grid = f"{blocking.down}×{blocking.across}"
        raise ValueError(f"grid must have 1 … {cores} cores, not {grid}")
    return cores, blocking


def _gemm(
    size: tuple[int, ...],
    chip: Chip,
    cores: int | None,
    seed: int | None,
    tiling: tuple[int, ...] | None = None,
) -> KernelInstance:
    m, k, n = size
    _, blocking = _blocking(chip, cores, tiling)
    data = None if seed is None else matmul.operands(m, k, n, seed=seed)
    program = gemm.build(m, k, n, chip=chip, blocking=blocking, data=data, im2col=False)
    if data is None:
        return KernelInstance(program, {})
    return KernelInstance(program, {"c": lambda: matmul.expected(*data, out="fp32")})


def _gemm_needs(
    size: tuple[int, ...], chip: Chip, cores: int | None, tiling: tuple[int, ...] | None = None
) -> SimulationCost:
    m, k, n = size
    _, b = _blocking(chip, cores, tiling)
    rows, columns = ceil_div(m, b.down), ceil_div(n, b.across)
    tiles = b.down * b.across * ceil_div(rows, b.m) * ceil_div(columns, b.n)
    products = ceil_div(k, b.k) * 9 + ceil_div(k, 16)  # of a tile, with the loads of their fractals
    each = products + 6 * ceil_div(k, b.k * b.step_k) + 4
    instructions = tiles * each + 10 * b.down * b.across
    return SimulationCost(instructions, _operand_bytes(m, k, n), m * k * n)


#: Names of the numbers of a ``matmul.Tiling`` and of a ``gemm.Blocking``.
_TILING = ("mTiles", "kTiles", "nTiles", "bNum")
_BLOCKING = ("down", "across", "m", "k", "n", "stepK")


KERNELS = (
    Kernel(
        "matmul",
        "tiled matrix product, Alg. 3",
        ("M", "K", "N"),
        (256, 256, 256),
        _matmul,
        _matmul_needs,
        tiling=_TILING,
    ),
    Kernel(
        "gemm",
        "matrix product on Cube cores (910B)",
        ("M", "K", "N"),
        (512, 256, 1536),
        _gemm,
        _gemm_needs,
        tiling=_BLOCKING,
    ),
    Kernel(
        "cubeKer",
        "matrix product without tiling",
        ("M", "K", "N"),
        (96, 96, 96),
        _cube_kernel,
        _cube_kernel_needs,
    ),
    _elements(
        "reluKer",
        "ReLU",
        ("fp16", "fp16"),
        lambda core, y, x, _: core.vrelu(y, x),
        vector.relu,
    ),
    _cast("fp16", "fp32"),
    _cast("fp32", "fp16"),
    _cast("fp16", "int32"),
    _cast("int8", "fp16"),
    Kernel(
        "softmax", "over classes", ("pieces of 128", "classes"), (8, 16), _softmax, _softmax_needs
    ),
    Kernel(
        "maxpool",
        "max pooling",
        ("images", "side", "window", "step"),
        (4, 32, 3, 2),
        _maxpool,
        _maxpool_needs,
    ),
)
