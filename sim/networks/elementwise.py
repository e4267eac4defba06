"""Programs without data for operations on each element, and for layer normalisation.

They stream pieces through the Unified Buffer: while the vector unit works on a piece, MTE2 loads
the next one and MTE3 stores the previous one. Times alone can be computed.
"""

from collections.abc import Callable

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View
from vitruvian.sim.kernels.kernel import vector_cores
from vitruvian.sim.kernels.ring import Ring, together

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Elements of a piece.
_PIECE = 4096

#: A step of a recipe: (core, result, operands, buffer for values that are needed later).
_Step = Callable[[Core, View, list[View], View], object]


def _first(step: Callable[[Core, View, View], object]) -> _Step:
    """Return a step that works on the first operand."""
    return lambda core, y, x, room: step(core, y, x[0])


def _again(step: Callable[[Core, View], object]) -> _Step:
    """Return a step that works on the result of the step before it."""
    return lambda core, y, x, room: step(core, y)


_HARD_SIGMOID: tuple[_Step, ...] = (
    _first(lambda c, y, x: c.vadds(y, x, 3.0)),
    _again(lambda c, y: c.vrelu(y, y)),
    _again(lambda c, y: c.vmins(y, y, 6.0)),
    _again(lambda c, y: c.vmuls(y, y, 1 / 6)),
)

#: 1 − 1 / (eʸ + 1), the sigmoid of y.
_SIGMOID: tuple[_Step, ...] = (
    _again(lambda c, y: c.vexp(y, y)),
    _again(lambda c, y: c.vadds(y, y, 1.0)),
    _again(lambda c, y: c.vrec(y, y)),
    _again(lambda c, y: c.vmuls(y, y, -1.0)),
    _again(lambda c, y: c.vadds(y, y, 1.0)),
)

#: The operands and the vector instructions of each operation.
RECIPES: dict[str, tuple[int, tuple[_Step, ...]]] = {
    "relu": (1, (_first(lambda c, y, x: c.vrelu(y, x)),)),
    "scale": (1, (_first(lambda c, y, x: c.vmuls(y, x, 0.125)),)),
    "add": (2, (lambda c, y, x, r: c.vadd(y, x[0], x[1]),)),
    "add_relu": (2, (lambda c, y, x, r: c.vaddrelu(y, x[0], x[1]),)),
    "mul": (2, (lambda c, y, x, r: c.vmul(y, x[0], x[1]),)),
    "hard_sigmoid": (1, _HARD_SIGMOID),
    "hard_swish": (1, (*_HARD_SIGMOID, lambda c, y, x, r: c.vmul(y, y, x[0]))),
    "sigmoid": (1, (_first(lambda c, y, x: c.vmuls(y, x, 1.0)), *_SIGMOID)),
    # tanh x = 2 · sigmoid 2x − 1.
    "tanh": (
        1,
        (
            _first(lambda c, y, x: c.vmuls(y, x, 2.0)),
            *_SIGMOID,
            _again(lambda c, y: c.vmuls(y, y, 2.0)),
            _again(lambda c, y: c.vadds(y, y, -1.0)),
        ),
    ),
    # x · sigmoid(2 √(2/π) (x + 0.044715 x³)), the usual approximation by tanh.
    "gelu": (
        1,
        (
            _first(lambda c, y, x: c.vmul(y, x, x)),
            lambda c, y, x, r: c.vmul(y, y, x[0]),
            _again(lambda c, y: c.vmuls(y, y, 0.044715)),
            lambda c, y, x, r: c.vadd(y, y, x[0]),
            _again(lambda c, y: c.vmuls(y, y, 1.5957691)),
            *_SIGMOID,
            lambda c, y, x, r: c.vmul(y, y, x[0]),
        ),
    ),
}


def instructions(operation: str, elements: int) -> int:
    """Return an upper bound of the number of instructions of ``build_elementwise``.

    Parameters
    ----------
    operation : str
        A key of ``RECIPES``, or another operation of few steps on one operand.
    """
    operands, steps = RECIPES.get(operation, (1, ()))
    return ceil_div(elements, _PIECE) * (operands + 2 * len(steps) + 12) + 16


def build_elementwise(operation: str, elements: int, chip: Chip) -> Program:
    """Build an operation on each of some FP16 elements, for all cores of a chip.

    Parameters
    ----------
    operation : str
        A key of ``RECIPES``.
    chip : Chip
        A chip whose cores have all units.
    """
    operands, steps = RECIPES[operation]
    pieces = ceil_div(elements, _PIECE)
    # A short operation has one piece of its own size, in whole blocks.
    size = min(_PIECE, round_up(elements, 16))
    program = Program(chip, f"{operation} {elements}")
    gx = [program.tensor(f"x{i}", (pieces, size), "fp16") for i in range(operands)]
    gy = program.tensor("y", (pieces, size), "fp16")
    cores = vector_cores(program, None)
    for number, core in enumerate(cores):
        part = range(pieces * number // len(cores), pieces * (number + 1) // len(cores))
        if part:
            _stream(core, gx, gy, part, steps)
    return program


def _stream(core: Core, gx: list[View], gy: View, part: range, steps: tuple[_Step, ...]) -> None:
    size = gy.shape[1:]
    ins = [[core.allocate("UB", size, "fp16", "in") for _ in gx] for _ in "01"]
    outs = [core.allocate("UB", size, "fp16", "out") for _ in "01"]
    # A vector that some recipes need besides their result.
    room = core.allocate("UB", size, "fp16", "room")
    full, done = Ring(core, MTE2, V), Ring(core, V, MTE3)
    for piece in part:
        with full.write() as slot:
            for target, source in zip(ins[slot], gx, strict=True):
                core.copy(target, source[piece])
        with together(full.read(), done.write()) as (slot, out):
            for index, step in enumerate(steps):
                # Each step reads the result of the one before.
                if index:
                    core.pipe_barrier(V)
                step(core, outs[out], ins[slot], room)
        with done.read() as slot:
            core.copy(gy[piece], outs[slot])
    full.close()
    done.close()


#: Rows that one lane each normalises.
_LANES = 128


def layer_norm_instructions(rows: int, features: int) -> int:
    """Return an upper bound of the number of instructions of ``build_layer_norm``."""
    chunks = features // _chunk(features)
    return ceil_div(rows, _LANES) * (2 * chunks * 16 + 64) + 16


def _chunk(features: int) -> int:
    """Return the features of a piece, which divide all features."""
    # 96 rows of 128 lanes are 24 KiB: two slots of x and of y, and both sums, fit UB.
    return max(d for d in range(1, 97) if features % d == 0)


def build_layer_norm(rows: int, features: int, chip: Chip) -> Program:
    """Build a layer normalisation without its scale and shift, for all cores of a chip.

    A lane of the vector unit normalises a row, so x is (rows / 128, features, 128), as in the
    softmax kernel. The first pass over x adds values and squares; the second one normalises.

    Parameters
    ----------
    chip : Chip
        A chip whose cores have all units.
    """
    pieces = ceil_div(rows, _LANES)
    chunk = _chunk(features)
    program = Program(chip, f"layer norm {rows}×{features}")
    gx = program.tensor("x", (pieces, features // chunk, chunk, _LANES), "fp16")
    gy = program.tensor("y", gx.shape, "fp16")
    cores = vector_cores(program, None)
    for number, core in enumerate(cores):
        part = range(pieces * number // len(cores), pieces * (number + 1) // len(cores))
        if part:
            _normalise(core, gx, gy, part, features)
    return program


def _normalise(core: Core, gx: View, gy: View, part: range, features: int) -> None:
    chunks, chunk = gx.shape[1], gx.shape[2]
    ins = [core.allocate("UB", (chunk, _LANES), "fp16", "in") for _ in "01"]
    outs = [core.allocate("UB", (chunk, _LANES), "fp16", "out") for _ in "01"]
    sums = core.allocate("UB", (chunk, _LANES), "fp16", "sums")
    squares = core.allocate("UB", (chunk, _LANES), "fp16", "squares")
    room = core.allocate("UB", (_LANES,), "fp16", "room")
    full, done = Ring(core, MTE2, V), Ring(core, V, MTE3)
    # A repeat stride of 0 gives every row of 128 lanes the same row of statistics.
    broadcast = {"dst": (1, 8), "src0": (1, 8), "src1": (1, 0)}
    for piece in part:
        core.pipe_barrier(V)
        core.vdup(sums, 0.0)
        core.vdup(squares, 0.0)
        core.pipe_barrier(V)
        # The rows do not fit the buffer, so that x is loaded twice.
        for second in (False, True):
            for number in range(chunks):
                with full.write() as slot:
                    core.copy(ins[slot], gx[piece, number])
                if not second:
                    with full.read() as slot:
                        core.vadd(sums, sums, ins[slot])
                        core.vmla(squares, ins[slot], ins[slot])
                        core.pipe_barrier(V)
                    continue
                with together(full.read(), done.write()) as (slot, out):
                    core.vsub(outs[out], ins[slot], sums, repeat=chunk, strides=broadcast)
                    core.pipe_barrier(V)
                    core.vmul(outs[out], outs[out], squares, repeat=chunk, strides=broadcast)
                with done.read() as out:
                    core.copy(gy[piece, number], outs[out])
            if not second:
                _statistics(core, sums, squares, room, features)
    full.close()
    done.close()


def _statistics(core: Core, sums: View, squares: View, room: View, features: int) -> None:
    """Emit the mean of each lane into the first row of ``sums``, and 1/σ into that of squares."""
    many = sums.shape[0]
    while many > 1:
        # An odd row in the middle stays as it is and takes part in the next halving.
        half = many // 2
        for view in (sums, squares):
            core.vadd(view[:half], view[:half], view[many - half : many])
        core.pipe_barrier(V)
        many -= half
    mean, square = sums[0], squares[0]
    core.vmuls(mean, mean, 1 / features)
    core.vmuls(square, square, 1 / features)
    core.pipe_barrier(V)
    # σ² = E[x²] − E[x]².
    core.vmul(room, mean, mean)
    core.pipe_barrier(V)
    core.vsub(square, square, room)
    core.pipe_barrier(V)
    # The usual ε of layer normalisations keeps 1/σ finite.
    core.vadds(square, square, 1e-5)
    core.pipe_barrier(V)
    core.vrsqrt(square, square)
    core.pipe_barrier(V)
