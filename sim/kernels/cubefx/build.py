"""Programs of Cube-fx, and the results that they must compute."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div, check_int, one_of, round_up
from vitruvian.sim.davinci import Chip, Program, View
from vitruvian.sim.davinci.chip.model import CoreKind
from vitruvian.sim.kernels.cubefx import cube_and_vector_cores, golden, unified_core
from vitruvian.sim.kernels.cubefx.cube_and_vector_cores import (
    CubeCore,
    VectorCore,
    Workspace,
    pieces_of,
)
from vitruvian.sim.kernels.cubefx.layout import packed_coefficients, unpacked_results, window
from vitruvian.sim.kernels.cubefx.mapping import SIDE, Mapping, best
from vitruvian.sim.kernels.cubefx.unified_core import CubeFxTensors, UnifiedCore
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost

#: The largest power that is allowed. FP16 ends at 65504, and a computed power near it is up to
#: 1.1 per cent too large: its exponent, about 11, has two roundings of 2⁻¹¹ each.
_MOST_POWER = 60000.0


@dataclass(frozen=True)
class CubeFx:
    """Options of Cube-fx.

    Attributes
    ----------
    merged : int or None
        Number t of sequence matrices in a block-diagonal one; None takes the best (eq. 4.11), and 1
        is the naive mapping.
    signs : bool or None
        If False, all inputs must be 0 or more, as the thesis takes them, and no instructions for
        signs are emitted. None finds out from the data.
    halvings : int or None
        The powers are those of x / 2**halvings; the coefficients are scaled to match. None takes
        the smallest number with which no power overflows.
    double_buffer : bool
        If False, no unit works ahead of the next one.
    pieces : int
        Pieces of the loop on chips with separate Cube and vector cores (two in Alg. 8). Cores with
        all units take a piece for each loop step.
    """

    merged: int | None = None
    signs: bool | None = None
    halvings: int | None = None
    double_buffer: bool = True
    pieces: int = 2

    def __post_init__(self) -> None:
        if self.merged is not None:
            check_int("merged", self.merged, 1, SIDE)
        if self.halvings is not None:
            check_int("halvings", self.halvings, 0, 14)
        check_int("pieces", self.pieces, 1, SIDE)
        one_of("double_buffer", str(self.double_buffer), ("True", "False"))


@dataclass(frozen=True, eq=False)
class _Problem:
    """The inputs and coefficients of a program.

    Attributes
    ----------
    x : (count,) ndarray of float16, or None
    count : int
    coefficients : (j, k) ndarray of float16
        Those of the powers of x / 2**halvings.
    mapping : Mapping
    signs : bool
    halvings : int
    """

    x: np.ndarray | None
    count: int
    coefficients: np.ndarray
    mapping: Mapping
    signs: bool
    halvings: int

    def padded(self, size: int) -> np.ndarray | None:
        """Return the inputs, filled with zeros to a size."""
        return None if self.x is None else np.pad(self.x, (0, size - self.count))


def build(
    x: np.ndarray | int,
    coefficients: Any,
    chip: Chip,
    *,
    cores: int | None = 1,
    options: CubeFx | None = None,
) -> KernelInstance:
    """Build a program that computes Σ_p c_p·x^p for all inputs and functions.

    Parameters
    ----------
    x : (N,) ndarray of float16, or int
        Finite inputs; or their number, for a program without data.
    coefficients : (j, k) array_like of float
        The coefficients of each function, from that of the power 0 on. They are rounded to FP16
        after scaling.
    cores : int or None
        Number of cores, or of groups of a Cube core and its vector cores; None takes all. The
        thesis takes one.
    options : CubeFx, optional

    Returns
    -------
    KernelInstance
        The tensor "y", whose view is (j, N).

    Raises
    ------
    ValueError
        If a shape or number is not allowed, an input is not finite, a power or coefficient exceeds
        FP16, or the matrices do not fit the memories.
    """
    problem = _problem(x, coefficients, options := options or CubeFx())
    kind = chip.kind()
    program = Program(chip, f"Cube-fx, {_shown(problem)}")
    group_count = _groups(chip, kind, cores)
    body = _on_unified_cores if _is_complete(kind) else _on_separate_cores
    view = body(program, problem, options, group_count)
    if problem.x is None:
        return KernelInstance(program, {}, {"y": view})
    return KernelInstance(program, {"y": lambda: _expected(problem)}, {"y": view})


def needs(
    count: int, mapping: Mapping, chip: Chip, cores: int | None = 1, signs: bool = True
) -> SimulationCost:
    """Return an upper bound of the cost of simulating Cube-fx with double buffers.

    Parameters
    ----------
    count : int
        Number of inputs.
    cores : int or None
        As ``build`` takes it.
    signs : bool
        True if inputs may be negative.

    Raises
    ------
    ValueError
        If the number of cores is not allowed, or the matrices do not fit the memories.
    """
    kind = chip.kind()
    groups = _groups(chip, kind, cores)
    if _is_complete(kind):
        row_limit = unified_core.most_rows(kind, mapping, signs, 2)
    else:
        row_limit = cube_and_vector_cores.most_rows(chip.kind("cube"), mapping, signs, 2)
    rows, tiles = _tiling(count, row_limit, groups)
    segments = mapping.loops * (mapping.power_columns + mapping.result_columns)
    # Counted in programs for both chips; the tests compare them with the bound.
    steps = mapping.loops * (31 + 2 * mapping.power_columns)
    blocks = tiles * rows // SIDE
    return SimulationCost(
        instructions=min(groups, tiles) * 200 + tiles * (40 + steps),
        nbytes=blocks * SIDE**2 * (8 + 4 * segments),
        products=2 * blocks * mapping.mac_count * SIDE**3,
    )


def _is_complete(kind: CoreKind) -> bool:
    """Return True if a kind of core has the Cube and the vector unit."""
    return kind.buffers.keys() >= {"L1", "L0A", "L0B", "L0C", "UB"}


def _shown(problem: _Problem) -> str:
    mapping = problem.mapping
    merged = f", {mapping.merged} merged" if mapping.merged > 1 else ""
    signs = ", signs" if problem.signs else ""
    return (
        f"{problem.count:,} inputs, {mapping.functions} functions, order {mapping.order}"
        f"{merged}{signs}"
    )


def _problem(x: np.ndarray | int, coefficients: Any, options: CubeFx) -> _Problem:
    table = np.asarray(coefficients, np.float64)
    if table.ndim != 2 or 0 in table.shape or not np.isfinite(table).all():
        raise ValueError(
            "coefficients must be (functions, order) finite numbers, each 1 or more, "
            f"not {table.shape}"
        )
    j, k = table.shape
    halvings, signs = options.halvings, options.signs
    data, count = None, x
    if isinstance(x, np.ndarray):
        data, count = x, x.size
        if x.ndim != 1 or x.dtype != np.float16 or not count:
            raise ValueError(f"x must be (N,) of float16, N 1 or more, not {x.shape} of {x.dtype}")
        if not np.isfinite(x).all():
            raise ValueError("x must be finite numbers, not NaN or infinite ones")
        halvings, signs = _ranges(x, k, halvings, signs)
    check_int("N", count, 1)
    halvings, signs = halvings or 0, bool(signs)
    with np.errstate(over="ignore"):
        # Inputs are halved, x = x′·2^h, so that c·x^p = (c·2^(hp))·x′^p: coefficients grow as
        # powers shrink.
        scaled = (table * 2.0 ** (halvings * np.arange(k))).astype(np.float16)
    if not np.isfinite(scaled).all():
        raise ValueError(_too_large(table, data, halvings))
    mapping = best(k, j) if options.merged is None else Mapping(k, j, options.merged)
    return _Problem(data, int(count), scaled, mapping, signs, halvings)


def _too_large(table: np.ndarray, x: np.ndarray | None, halvings: int) -> str:
    """Return the message for coefficients that exceed FP16 if inputs are halved so often."""
    exponent, powers = -1, np.arange(table.shape[1])
    with np.errstate(over="ignore"):
        # The largest number of halvings for which all scaled coefficients are finite.
        while np.isfinite((table * 2.0 ** ((exponent + 1) * powers)).astype(np.float16)).all():
            exponent += 1
    if exponent < 0:
        return f"coefficients must be at most 65504, not {np.abs(table).max():g}"
    if x is None:
        return f"halvings must be at most {exponent} for these coefficients, not {halvings}"
    limit = 2.0**exponent * _MOST_POWER ** (1 / (table.shape[1] - 1))
    return (
        f"x must be at most {limit:.5g} in magnitude for Cube-fx with these coefficients of order "
        f"{table.shape[1]}, not {float(np.abs(x).max()):g}; a lower order or another method allows "
        "more"
    )


def _ranges(
    x: np.ndarray, order: int, halvings: int | None, signs: bool | None
) -> tuple[int, bool]:
    """Return the number of halvings and True if signs are needed, after checks of the inputs."""
    largest = float(np.abs(x).max())
    fitting = 0
    # The highest power of the largest input must stay within FP16.
    while (largest / 2**fitting) ** (order - 1) > _MOST_POWER:
        fitting += 1
    if halvings is not None and halvings < fitting:
        raise ValueError(
            f"halvings must be at least {fitting} for |x| up to {largest:g} and order {order}, "
            f"not {halvings}"
        )
    # −0 counts as negative: its sign bit becomes a factor as well.
    negative = bool(np.signbit(x).any())
    if negative and signs is False:
        raise ValueError(f"x must be 0 or more without signs, not {float(x.min()):g}")
    return fitting if halvings is None else halvings, negative if signs is None else signs


def _expected(problem: _Problem) -> np.ndarray:
    x = problem.padded(round_up(problem.count, SIDE))
    assert x is not None
    merged, halvings = problem.mapping.merged, problem.halvings
    return golden.taylor(x, problem.coefficients, merged, halvings)[:, : problem.count]


def _groups(chip: Chip, kind: CoreKind, cores: int | None) -> int:
    cores = kind.count if cores is None else cores
    if not 1 <= cores <= kind.count:
        raise ValueError(f"cores must be 1 … {kind.count} on {chip.name}, not {cores!r}")
    return cores


def _tiling(count: int, row_limit: int, cores: int) -> tuple[int, int]:
    """Return the rows of 16 inputs of a tile, at most ``row_limit``, and the number of tiles."""
    blocks = ceil_div(count, SIDE**2)  # of 16 rows
    tiles = -(-blocks * SIDE // row_limit)
    # All cores get as many tiles, unless there are fewer blocks of inputs than that.
    tiles = min(round_up(tiles, cores), blocks)
    # Tiles of equal size; the last one may have fewer inputs, and is padded.
    each = ceil_div(blocks, tiles)
    return each * SIDE, ceil_div(blocks, each)


def _tensors(
    program: Program, problem: _Problem, rows: int, tiles: int
) -> tuple[View, View, list[View]]:
    """Add the inputs, the results and the matrices (coefficients last) to global memory."""
    mapping = problem.mapping
    data, shape = problem.padded(tiles * rows * SIDE), (tiles, rows * SIDE)
    x = program.tensor("x", shape, "fp16", None if data is None else data.reshape(shape))
    exponents = np.arange(mapping.order)
    contents = {"sequence": window(mapping, exponents)}
    if problem.signs:
        # −1 for odd powers: times 2 for a negative input it gives −2, and y + y·(−2) is −y.
        contents["parity"] = window(mapping, -(exponents % 2))
    contents["coefficients"] = packed_coefficients(mapping, problem.coefficients)
    matrices = [
        program.tensor(name, matrix.shape, "fp16", None if data is None else matrix)
        for name, matrix in contents.items()
    ]
    stored = (tiles, mapping.loops, mapping.result_columns, rows, SIDE)
    return x, program.tensor("y", stored, "fp16"), matrices


def _on_unified_cores(
    program: Program, problem: _Problem, options: CubeFx, cores: int
) -> Callable[[np.ndarray], np.ndarray]:
    mapping, slots = problem.mapping, 2 if options.double_buffer else 1
    row_limit = unified_core.most_rows(program.chip.kind(), mapping, problem.signs, slots)
    rows, tiles = _tiling(problem.count, row_limit, cores)
    x, y, matrices = _tensors(program, problem, rows, tiles)
    tensors = CubeFxTensors(x, matrices[:-1], matrices[-1], y)
    for index in range(cores):
        part = range(tiles * index // cores, tiles * (index + 1) // cores)
        if part:
            core, halvings = program.core(index), problem.halvings
            UnifiedCore(core, mapping, rows, tensors, halvings=halvings, slots=slots).emit(part)
    return lambda results: unpacked_results(mapping, results, problem.count)


def _on_separate_cores(
    program: Program, problem: _Problem, options: CubeFx, groups: int
) -> Callable[[np.ndarray], np.ndarray]:
    mapping, slots = problem.mapping, 2 if options.double_buffer else 1
    cube, vector = program.chip.kind("cube"), program.chip.kind("vector")
    row_limit = cube_and_vector_cores.most_rows(cube, mapping, problem.signs, slots)
    rows, tiles = _tiling(problem.count, row_limit, groups)
    x, y, matrices = _tensors(program, problem, rows, tiles)
    pieces = pieces_of(mapping.loops, options.pieces)
    for index in range(groups):
        part = slice(tiles * index // groups, tiles * (index + 1) // groups)
        count = part.stop - part.start
        if not count:
            continue
        inputs, copies = (count, rows * SIDE), len(matrices) - 1
        segments = (mapping.loops, count, mapping.power_columns * SIDE * rows)
        space = Workspace(
            x=x[part],
            matrices=matrices[:-1],
            coefficients=matrices[-1],
            logarithms=[
                program.tensor(f"{name}{index}", inputs, "fp16")
                for name in ("logarithms", "negative")[:copies]
            ],
            exponents=[
                program.tensor(f"{name}{index}", segments, "fp16")
                for name in ("exponents", "factors")[:copies]
            ],
            powers=program.tensor(f"powers{index}", segments, "fp16"),
            y=y[part],
        )
        CubeCore(program.core(index, cube.name), mapping, rows, space, slots).emit(pieces)
        for number in range(vector.per_group):
            core = program.core(index * vector.per_group + number, vector.name)
            body = VectorCore(core, number, vector.per_group, mapping, space, problem.halvings)
            body.emit(pieces)
    return lambda results: unpacked_results(mapping, results, problem.count)
