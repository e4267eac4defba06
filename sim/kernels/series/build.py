"""Programs that evaluate functions of many inputs by one of the methods.

The inputs are dealt to the cores and cut into pieces of whole repeats. Pieces are loaded and stored
through double buffers while the vector unit computes. Every function of a piece is evaluated by
itself, as the thesis does; the piece is loaded once.

References
----------
Tang 2024, §4.4.2.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div, check_int, one_of
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View
from vitruvian.sim.davinci.chip.model import CoreKind
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost
from vitruvian.sim.kernels.ring import Ring, uses_of
from vitruvian.sim.kernels.series.cordic import CIRCULAR, LARGEST_ANGLE, Cordic
from vitruvian.sim.kernels.series.cordic_compare import ComparingCordic
from vitruvian.sim.kernels.series.functions import SeriesFunction
from vitruvian.sim.kernels.series.lanes import BLOCK, LANES, LaneEmitter
from vitruvian.sim.kernels.series.motzkin import Motzkin
from vitruvian.sim.kernels.series.polynomials import (
    Estrin,
    Horner,
    Naive,
    SeriesMethod,
    SeriesPiece,
)

#: The methods by name.
METHODS: dict[str, type[SeriesMethod]] = {
    "horner": Horner,
    "estrin": Estrin,
    "naive": Naive,
    "motzkin": Motzkin,
    "cordic": Cordic,
    "cordic-compare": ComparingCordic,
}

#: The iterations of CORDIC by default, as in Table 4.1.
ITERATIONS = 8

#: The largest number of repeats of an instruction, and that of pieces of a core.
_MOST_REPEATS = 255
#: Repeats of the smallest piece that is cut off only for the sake of a double buffer: computing on
#: it takes longer than an instruction's start-up on the chips.
_SMALL = 32

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3


def evaluators(
    method: str,
    functions: Sequence[SeriesFunction],
    order: int,
    *,
    fused: bool = False,
    iterations: int = ITERATIONS,
) -> list[SeriesMethod]:
    """Return a method for each function.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.
    order : int
        The number of coefficients of each polynomial; CORDIC does not use it.
    fused : bool
        See ``SeriesMethod``.
    iterations : int
        The iterations of CORDIC.

    Raises
    ------
    TypeError, UserError
        If a name is unknown, a number is out of range, or the method cannot evaluate a function.
    """
    chosen = METHODS[one_of("method", method, METHODS)]
    if not functions:
        raise UserError("functions must be one or more, not none")
    if issubclass(chosen, Cordic):
        return [chosen(f, order, iterations=iterations) for f in functions]
    for function in functions:
        function.half(order)
    return [chosen(f, order, fused) for f in functions]


def golden(
    method: str,
    x: np.ndarray,
    functions: Sequence[SeriesFunction],
    order: int,
    *,
    fused: bool = False,
    iterations: int = ITERATIONS,
) -> np.ndarray:
    """Return what the kernel computes.

    Parameters
    ----------
    method, functions, order, fused, iterations
        As ``evaluators`` takes them.
    x : (N,) ndarray of float16

    Returns
    -------
    (len(functions), N) ndarray of float16
    """
    each = evaluators(method, functions, order, fused=fused, iterations=iterations)
    return np.stack([one.golden(x) for one in each])


def vector_kind(chip: Chip) -> CoreKind:
    """Return the first kind of core of a chip that has a vector unit.

    Raises
    ------
    UserError
        If no core has one.
    """
    for kind in chip.kinds.values():
        if Unit.V in kind.units and "UB" in kind.buffers:
            return kind
    raise UserError(f"chip must have cores with a vector unit, unlike {chip.name}")


def pieces_of(repeats: int, limit: int) -> list[int]:
    """Return the sizes of the pieces of a core in repeats; they differ by at most one.

    Parameters
    ----------
    repeats : int
        Repeats of 128 inputs that the core computes.
    limit : int
        The largest number of repeats that fits.
    """
    count = ceil_div(repeats, limit)
    # A second piece is loaded, and a first one stored, while the other one is computed.
    count = max(count, min(4, repeats // _SMALL), 1)
    return [repeats * (n + 1) // count - repeats * n // count for n in range(count)]


def most_repeats(kind: CoreKind, each: Sequence[SeriesMethod]) -> int:
    """Return the repeats of the largest piece whose buffers fit the Unified Buffer.

    Raises
    ------
    UserError
        If not even one repeat fits.
    """
    # Two slots each of x and of y, and the scratch of the method that needs most.
    buffers = 4 + max(one.scratch for one in each)
    nbytes = kind.buffers["UB"].nbytes
    rows = sum(len(one.table) for one in each)
    limit = min((nbytes - rows * 2 * BLOCK) // (buffers * 2 * LANES), _MOST_REPEATS)
    if limit < 1:
        raise UserError(
            f"functions must be few enough for the {nbytes} bytes of UB, not {len(each)} with "
            f"{rows} constants"
        )
    return limit


def needs(
    each: Sequence[SeriesMethod], count: int, chip: Chip, cores: int | None = 1
) -> SimulationCost:
    """Return an upper bound of the cost of ``build``.

    Parameters
    ----------
    each : sequence of SeriesMethod
        The result of ``evaluators``.
    count : int
        The number of inputs.
    chip, cores
        As ``build`` takes them.
    """
    kind = vector_kind(chip)
    repeats = ceil_div(count, LANES)
    workers = min(_workers(kind, cores), repeats)
    sizes = pieces_of(ceil_div(repeats, workers), most_repeats(kind, each))
    vectors = sum(one.on_repeats(size) for one in each for size in sizes)
    # A barrier before each instruction at most; five instructions for a store and for a load.
    instructions = workers * (2 * vectors + len(sizes) * (5 * len(each) + 5) + 4)
    return SimulationCost(instructions, 16 * repeats * LANES * (len(each) + 1))


def _workers(kind: CoreKind, cores: int | None) -> int:
    """Return the number of vector units of some cores or groups."""
    limit = kind.count // kind.per_group
    return kind.per_group * (limit if cores is None else check_int("cores", cores, 1, limit))


def build(
    method: str,
    x: np.ndarray | int,
    functions: Sequence[SeriesFunction],
    order: int,
    chip: Chip,
    *,
    cores: int | None = 1,
    fused: bool = False,
    iterations: int = ITERATIONS,
) -> KernelInstance:
    """Build the evaluation of some functions of an array.

    Parameters
    ----------
    method, functions, order, fused, iterations
        As ``evaluators`` takes them.
    x : (N,) ndarray of float16, or int
        The inputs; or their number, for a program without data.
    cores : int or None
        The number of cores; of a chip with separate Cube and vector cores, that of groups, all of
        whose vector cores compute. None takes all.

    Returns
    -------
    KernelInstance
        The result "y" has a row of N numbers for each function.

    Raises
    ------
    TypeError, UserError
        If an argument is wrong; CORDIC takes finite inputs only, up to ``LARGEST_ANGLE`` for
        trigonometric functions.
    """
    each = evaluators(method, functions, order, fused=fused, iterations=iterations)
    data = None if isinstance(x, int) else x
    if data is not None:
        _check_inputs(data, each)
    count = check_int("the number of inputs", x if isinstance(x, int) else int(x.size), 1)
    kind = vector_kind(chip)
    repeats = ceil_div(count, LANES)
    workers = min(_workers(kind, cores), repeats)
    names = ",".join(f.name for f in functions)
    program = Program(chip, f"{method} {names} of {count}")
    padded = None
    if data is not None:
        # The kernel computes whole repeats; the view of y leaves out what lies behind the inputs.
        padded = np.zeros(repeats * LANES, np.float16)
        padded[:count] = data
    gx = program.tensor("x", (repeats * LANES,), "fp16", padded)
    gy = program.tensor("y", (len(each), repeats * LANES), "fp16")
    tables = np.concatenate([one.table for one in each])
    gt = None
    if len(tables):
        # An operand that all lanes share is a block of 16 equal numbers, read with strides of 0.
        blocks = np.repeat(tables[:, None], BLOCK, axis=1).view(np.float16)
        gt = program.tensor("table", blocks.shape, "fp16", None if data is None else blocks)
    for number in range(workers):
        first, last = (repeats * (number + n) // workers for n in range(2))
        core = program.core(number, kind.name)
        _emit_core(core, each, gx[first * LANES : last * LANES], gy, first * LANES, gt)
    if data is None:
        return KernelInstance(program, {})
    return KernelInstance(
        program,
        {"y": partial(_golden, each, data)},
        {"y": lambda y: np.ascontiguousarray(y[:, :count])},
    )


def _golden(each: list[SeriesMethod], x: np.ndarray) -> np.ndarray:
    return np.stack([one.golden(x) for one in each])


def _check_inputs(x: np.ndarray, each: list[SeriesMethod]) -> None:
    if x.dtype != np.float16 or x.ndim != 1:
        raise TypeError(f"x must be a vector of float16, not {x.dtype} of shape {x.shape}")
    for one in each:
        if isinstance(one, Cordic):
            limit = LARGEST_ANGLE if one.function.name in CIRCULAR else np.inf
            wrong = ~(np.isfinite(x) & (np.abs(x) <= limit))
            if wrong.any():
                allowed = "finite" if limit == np.inf else f"numbers within ±{limit:g}"
                raise UserError(
                    f"inputs of {one.function.name} by cordic must be {allowed}, "
                    f"not {x[int(np.argmax(wrong))]}"
                )


def _emit_core(
    core: Core, each: list[SeriesMethod], x: View, y: View, first: int, table: View | None
) -> None:
    """Emit the evaluation on one core.

    Parameters
    ----------
    x : View
        The inputs of this core.
    y : View
        The results of all cores, (functions, inputs).
    first : int
        The index of the core's first input.
    table : View or None
        The constants of all methods, (rows, 16).
    """
    constants: list[View] = []
    rows = 0 if table is None else table.shape[0]
    if table is not None:
        near = core.allocate("UB", table.shape, "fp16", "table")
        constants = [near[n] for n in range(rows)]
    scratch = max(one.scratch for one in each)
    sizes = [LANES * n for n in pieces_of(x.size // LANES, most_repeats(core.kind, each))]
    largest = max(sizes)
    ins = core.allocate("UB", (2, largest), "fp16", "x in UB")
    outs = core.allocate("UB", (2, largest), "fp16", "y in UB")
    others = core.allocate("UB", (max(scratch, 1), largest), "fp16", "scratch") if scratch else None
    if table is not None:
        # No flag of its own: MTE2 moves in order, so that V has the table when it has the first
        # piece.
        core.copy(near, table)
    full = Ring(core, MTE2, V, plan=uses_of(range(len(sizes)), 2))
    done = Ring(core, V, MTE3, plan=uses_of(range(len(sizes) * len(each)), 2))
    lanes, start = LaneEmitter(core), 0
    for size in sizes:
        with full.write() as slot:
            core.copy(ins[slot, :size], x[start : start + size])
        # x is loaded once for all functions, whose results leave one after the other.
        with full.read() as slot:
            at = 0
            for number, one in enumerate(each):
                rest = [others[n, :size] for n in range(one.scratch)] if others is not None else []
                rows = len(one.table)
                with done.write() as out:
                    result, own = outs[out, :size], constants[at : at + rows]
                    one.emit(lanes, SeriesPiece(result, ins[slot, :size], rest, own))
                at += rows
                with done.read() as out:
                    core.copy(y[number, first + start : first + start + size], outs[out, :size])
        start += size
