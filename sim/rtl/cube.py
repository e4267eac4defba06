"""Products of whole matrices on a compiled matrix unit, and the clock cycles that they take."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.hdl.cube import MatrixUnit, MatrixUnitConfig, Start

from . import CompiledModel, compile_unit
from .tiles import (
    INT8,
    Phase,
    cut_fractals,
    cut_operands,
    cut_sparse,
    join_fractals,
    phases_of,
)

#: Approximate number of beats in a stream. It is large enough that filling the pipeline costs
#: nothing, and small enough that every core gets a stream. The streams, and therefore the cycles,
#: do not depend on the number of threads.
STREAM_BEATS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class CubeProduct:
    """The product that a matrix unit computed, and its costs.

    Attributes
    ----------
    d : (..., M, N) ndarray
        Codes of the unit's output format, pairs of such codes for complex results, or int32.
        Results of ``sim.rtl.m3xu`` hold values instead of codes.
    beats : int
        Pairs of A and B fractals that were sent into the unit.
    steps : int
        Passes through the multipliers.
    cycles : int
        Clock cycles from reset to the hand-shake of the last result, summed over all streams.
    streams : int
        Number of parts into which the product was cut. Each part fills and drains the pipeline
        once.
    """

    d: np.ndarray
    beats: int
    steps: int
    cycles: int
    streams: int


def matmul(
    config: MatrixUnitConfig,
    a,
    b,
    c=None,
    *,
    precision: str = "fp16",
    operation: str = "mma",
    indices=None,
    stall_rate: float = 0.0,
    threads: int = 1,
) -> CubeProduct:
    """Compute ``C + A · B``, or ``C ⊕ (A ⊗ B)``, for any size on the compiled RTL of a unit.

    Matrices are padded to whole fractals with codes that change no bit of the result; see
    ``sim.rtl.tiles``. Successive tiles of D use successive accumulator slots. So the unit executes
    one step in every cycle if a stream has at least pipeline + 1 tiles (for complex elements,
    pairs of tiles), or if each beat takes that many steps.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    a : (..., M, K) ndarray
        Codes of ``precision``, or int8. A code of a complex element has the real part in its low
        half, as in ``array.view(np.uint64)`` for an array of complex64.
    b : (..., K, N) ndarray
        Codes of the same type. On a unit with sparsity, B has 2·K rows.
    c : (..., M, N) ndarray, optional
        Codes of the output format (for complex elements, pairs of codes as in ``a``), or int32. By
        default, C is zero, or the identity of ⊕.
    precision : str
        One of ``config.precisions``. On a unit with ``fp32``, all operations except mma work on
        ``fp32``.
    operation : str
        One of ``config.operations``.
    indices : (..., M, K) ndarray of int, optional
        On a unit with sparsity, the position 0 to 3 of each value of A in its group of four.
    stall_rate : float
        Probability that a stream is idle in a cycle, at least 0 and less than 1.
    threads : int
        Number of instances of the model; each runs on its own core.

    Returns
    -------
    product : CubeProduct

    Raises
    ------
    TypeError
        If an array does not consist of codes of the right width.
    ValueError
        If shapes do not match, the unit lacks the precision or the operation, ``indices`` is wrong
        for the unit, or ``stall_rate`` or ``threads`` is out of range.
    """
    operands = _checked(config, a, b, c, indices, precision=precision, operation=operation)
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive number, not {threads!r}")
    if not 0 <= stall_rate < 1:
        raise ValueError(f"stall_rate must be within [0, 1), not {stall_rate!r}")
    lead = operands.lead
    run = _TileRun(config, operands)
    # The streams do not depend on the number of threads, and neither do the cycles.
    ends = list(pairwise(run.bounds()))
    with ThreadPoolExecutor(threads) as pool:
        cycles = sum(pool.map(lambda span: run.stream(span[0], span[1], stall_rate), ends))
    codes = run.d.astype(f"<u{config.result_bits(precision) // 8}", copy=False)
    d = join_fractals(codes, *operands.shape).reshape(*lead, *operands.shape)
    if precision == INT8:
        d = d.view(np.int32)
    return CubeProduct(
        d=d,
        beats=run.tiles * len(run.phases),
        steps=run.tiles * sum(config.steps(phase.precision) for phase in run.phases),
        cycles=cycles,
        streams=len(ends),
    )


@dataclass(frozen=True, kw_only=True)
class _TileOperands:
    """The operands of a product, which fit each other and the unit; see ``matmul``."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    indices: np.ndarray | None
    precision: str
    operation: str

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (M, N) of the result."""
        return self.a.shape[-2], self.b.shape[-1]

    @property
    def lead(self) -> tuple[int, ...]:
        """The batch axes of the result."""
        return np.broadcast_shapes(
            *(x.shape[:-2] for x in (self.a, self.b, self.c) if x is not None)
        )


def _checked(
    config: MatrixUnitConfig, a, b, c, indices, *, precision: str, operation: str
) -> _TileOperands:
    """Return the operands as arrays; raise what ``matmul`` documents if they do not fit."""
    config.terms(precision)
    if operation not in config.operations:
        names = ", ".join(config.operations)
        raise ValueError(f"operation must be one of {names}, not {operation!r}")
    if config.one_pair and operation != "mma" and precision != "fp32":
        raise ValueError(
            f"precision must be 'fp32' with {operation} on a unit with fp32, not {precision!r}"
        )
    parts = 2 if precision in config.complex_precisions else 1
    a, b = (_codes(x, parts * config.operand_bits(precision), n) for x, n in ((a, "a"), (b, "b")))
    if (indices is not None) != config.sparsity:
        rule = "given on a unit with sparsity" if config.sparsity else "None on a dense unit"
        raise ValueError(f"indices must be {rule}")
    # With 2:4 sparsity, A has half of the values along K.
    rows = 2 if config.sparsity else 1
    if a.ndim < 2 or b.ndim < 2 or rows * a.shape[-1] != b.shape[-2] or not a.size or not b.size:
        k = "2·K" if config.sparsity else "K"
        raise ValueError(
            f"a and b must be (M, K) and ({k}, N) with the same K and without an empty axis, "
            f"not {a.shape} and {b.shape}"
        )
    if indices is not None:
        indices = np.asarray(indices)
        if indices.dtype.kind not in "iu":
            raise TypeError(f"indices must be an array of integers, not of {indices.dtype}")
        if indices.shape != a.shape or (indices > 3).any() or (indices < 0).any():
            raise ValueError(f"indices must be from 0 to 3 and have the shape {a.shape} of a")
    shape = a.shape[-2], b.shape[-1]
    if c is not None:
        c = _codes(c, parts * config.result_bits(precision), "c")
        if c.shape[-2:] != shape:
            raise ValueError(f"c must be (M, N) = {shape}, not {c.shape}")
    return _TileOperands(a=a, b=b, c=c, indices=indices, precision=precision, operation=operation)


def _codes(array, bits: int, name: str) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype.kind not in "iu" or 8 * array.dtype.itemsize != bits:
        raise TypeError(f"{name} must be codes of {bits} bits, not {array.dtype.name}")
    return array


@lru_cache(maxsize=16)
def _model(config: MatrixUnitConfig) -> CompiledModel:
    return compile_unit(MatrixUnit, config=config)


class _TileRun:
    """A product in progress: its operands cut into fractals, and the results so far."""

    def __init__(self, config: MatrixUnitConfig, operands: _TileOperands):
        a, b, c, indices = operands.a, operands.b, operands.c, operands.indices
        precision, operation, lead = operands.precision, operands.operation, operands.lead
        self.config, self.operation = config, operation
        self.phases: list[Phase] = phases_of(config, precision, a.shape[-1], operation)
        self.parts = 2 if precision in config.complex_precisions else 1
        left = a.reshape(-1, *a.shape[-2:])
        right = b.reshape(-1, *b.shape[-2:]).swapaxes(-1, -2)
        self.index = None
        if indices is None:
            self.left, self.right = cut_operands(config, left, right, precision, operation)
        else:
            indices = indices.reshape(left.shape)
            cut = cut_sparse(config, left, indices, right, operation)
            self.left, self.right, self.index = cut
        self.rows, self.columns = self.left.shape[1], self.right.shape[1]
        bits = config.result_bits(precision)
        self.c = None if c is None else cut_fractals(config, c.reshape(-1, *c.shape[-2:]), bits)
        self.batch_index = [
            None if x is None else _batch_index(x.shape[:-2], lead) for x in (a, b, c)
        ]
        batch = int(np.prod(lead))
        self.tiles = batch * self.rows * self.columns
        word = np.dtype(f"<u{config.word_bits // 8}")
        self.d = np.empty((batch, self.rows, self.columns, self.parts, config.m, config.n), word)
        self.slots = config.slot_count // self.parts
        self.model = _model(config)

    def bounds(self) -> list[int]:
        """Return the number of the first tile of each stream, and the number of tiles at the end.

        A stream consists of whole rounds of the slots, and streams are as equal as possible.
        """
        rounds = ceil_div(self.tiles, self.slots)
        # At most a stream for each round of slots, however short it is.
        count = min(-(-self.tiles * len(self.phases) // STREAM_BEATS), rounds)
        # Multiplied before it is divided, so that the streams differ by one round at most.
        return [min(rounds * n // count * self.slots, self.tiles) for n in range(count + 1)]

    def stream(self, begin: int, end: int, stall_rate: float) -> int:
        """Compute the tiles from ``begin`` to ``end`` and return the number of clock cycles."""
        config = self.config
        tile, phase = self._order(begin, end)
        batch, row, column = self._where(tile)
        at_a, at_b, at_c = self.batch_index
        assert at_a is not None and at_b is not None  # only C is optional
        kinds = {p: config.precisions.index(p) for p in config.precisions}
        codes = np.array([kinds[p.precision] for p in self.phases], np.uint8)
        # A complex tile has two slots side by side.
        slot = tile % self.slots * self.parts
        slot = slot + np.array([p.part or 0 for p in self.phases])[phase]
        starts, ends = self._first_and_last()
        first = Start.ZERO if self.c is None else Start.FROM_C
        beats = {
            "a": self.left[at_a[batch], row, phase],
            "b": self.right[at_b[batch], column, phase],
            "start": np.where(starts[phase], first.value, Start.ACCUMULATE.value).astype(np.uint8),
            "slot": slot.astype(np.uint8),
            "emit": ends[phase].astype(np.uint8),
        }
        if self.index is not None:
            beats["index"] = self.index[at_a[batch], row, phase]
        if not config.slot_bits:
            del beats["slot"]
        if config.precision_bits:
            beats["precision"] = codes[phase]
        if config.operation_bits:
            code = config.operations.index(self.operation)
            beats["operation"] = np.full(len(phase), code, np.uint8)
        addends = np.zeros((0, config.m, config.n), self.d.dtype)
        if self.c is not None and at_c is not None:
            batch, row, column, part = self._fractals(tile, phase, starts)
            addends = self.c[at_c[batch], row, column, part]
        batch, row, column, part = self._fractals(tile, phase, ends)
        result = self.model.stream(
            inputs={"i": beats, "c": addends},
            outputs={"o": len(part)},
            stall_rate=stall_rate,
        )
        self.d[batch, row, column, part] = result.outputs["o"]
        return int(result.output_cycles["o"][-1]) + 1

    def _order(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the tile and the phase of every beat.

        The tiles are dealt into groups of nearly equal size, at most one tile for each slot. Within
        a group, all tiles execute a phase before the first tile executes the next one, so that as
        many beats as possible lie between two beats that use the same slot.
        """
        count, depth = end - begin, len(self.phases)
        # Groups of equal size keep the pipeline filled: a short last group would wait for its own
        # results.
        groups = ceil_div(count, self.slots)
        edges = count * np.arange(groups + 1) // groups
        size = np.diff(edges)
        tile = np.arange(count)
        group = np.repeat(np.arange(groups), size)
        # The position of a tile's first beat: all beats of the groups before, and the tiles before
        # in its own group.
        place = (tile + (depth - 1) * edges[group])[:, None]
        place = place + np.arange(depth) * size[group][:, None]
        order = np.empty(count * depth, np.int64)
        order[place.ravel()] = np.arange(count * depth)
        return begin + order // depth, order % depth

    def _first_and_last(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two bool arrays by phase: where a sum starts, and where a sum ends."""
        split = np.array([p.part is not None for p in self.phases])
        number = np.arange(len(self.phases))
        starts, ends = number == 0, number == len(number) - 1
        # Phases with a part end a result each, the others add to both.
        if split.any():
            ends = split
            starts = split if split.all() else starts
        return starts, ends

    def _fractals(self, tile, phase, chosen) -> tuple[np.ndarray, ...]:
        """Return batch, row, column and part of each C or D fractal of beats in chosen phases."""
        selected = chosen[phase]
        tile, phase = tile[selected], phase[selected]
        part = np.array([p.part or 0 for p in self.phases])[phase]
        # One beat starts or ends both parts of a complex tile.
        if self.parts == 2 and self.phases[phase[0]].part is None:
            tile, part = np.repeat(tile, 2), np.tile([0, 1], len(tile))
        return *self._where(tile), part

    def _where(self, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the batch, the row and the column of each tile."""
        rest, column = np.divmod(tile, self.columns)
        batch, row = np.divmod(rest, self.rows)
        return batch, row, column


def _batch_index(lead: tuple[int, ...], whole: tuple[int, ...]) -> np.ndarray:
    """Return which matrix of an operand belongs to each matrix of the product.

    Parameters
    ----------
    lead, whole : tuple of int
        Batch axes of the operand, and of the product to which they are broadcast.

    Returns
    -------
    (matrices of the product,) ndarray of int
    """
    count = int(np.prod(lead))
    return np.broadcast_to(np.arange(count).reshape(lead), whole).reshape(-1)
