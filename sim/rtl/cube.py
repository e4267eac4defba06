"""Whole matrices through a compiled matrix unit: the order of beats, and the cycles they took."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from vitruvian.hdl.cube import MatrixUnit, MatrixUnitConfig, Start

from . import CompiledModel, compile_unit
from .tiles import (
    INT8,
    Phase,
    bus_words,
    cut_fractals,
    cut_operands,
    cut_sparse,
    join_fractals,
    phases_of,
)

__all__ = ["CubeProduct", "bus_words", "matmul"]

#: Beats of a stream, about: enough for the fill to be nothing, few enough for all cores to have
#: some. Streams do not depend on the number of threads, so neither do the cycles.
STREAM_BEATS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class CubeProduct:
    """A product that a matrix unit computed.

    Attributes
    ----------
    d : (..., M, N) ndarray
        Codes of the unit's output format, pairs of them, or int32; from `sim.rtl.m3xu` values.
    beats, steps : int
        Pairs of tiles sent in, and passes through the multipliers.
    cycles : int
        Clock cycles until the last result has come, by the hand-shakes; of all streams together.
    streams : int
        Parts that the product was cut into; each fills and empties the pipeline once.
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
    places=None,
    stall_rate: float = 0.0,
    threads: int = 1,
) -> CubeProduct:
    """``C + A · B``, or ``C ⊕ (A ⊗ B)``, on the compiled RTL of a unit, of any size.

    Edges are filled up with what changes no bit of the result; see `sim.rtl.tiles`. Tiles go round
    the accumulator slots, so that the unit takes a step a cycle, if there are pipeline + 1 tiles
    (complex: pairs) or each takes as many steps a beat.

    Parameters
    ----------
    a : (..., M, K) ndarray
        Codes of ``precision``, or int8. Codes of complex elements have the real part in the low
        half: ``array.view(np.uint64)`` of complex64.
    b : (..., K, N) ndarray
    c : (..., M, N) ndarray, optional
        Codes of the output format (complex: likewise pairs), or int32. Zero, or the identity of ⊕,
        by default.
    precision, operation : str
        One of ``config.precisions``, and one of ``config.operations``; on a unit with ``fp32`` all
        operations but mma are on that.
    places : (..., M, K) ndarray of int, optional
        On a unit with sparsity: the places of A's values in their groups of four. B has 2·K rows.
    stall_rate : float
        Probability that a stream idles in a cycle.
    threads : int
        Instances of the model, each on a core of its own.

    Raises
    ------
    TypeError
        For arrays that are not codes of the right width.
    ValueError
        For shapes that do not fit, or a precision or operation that the unit does not have.
    """
    config.terms(precision)
    if operation not in config.operations:
        names = ", ".join(config.operations)
        raise ValueError(f"operation must be one of {names}, not {operation!r}")
    if config.one_pair and operation != "mma" and precision != "fp32":
        raise ValueError(
            f"precision must be 'fp32' with {operation} on a unit with fp32, not {precision!r}"
        )
    is_complex = precision in config.complex_precisions
    bits = config.operand_bits(precision) * (2 if is_complex else 1)
    a, b = _codes(a, bits, "a"), _codes(b, bits, "b")
    if (places is not None) != config.sparsity:
        wanted = "given on a unit with sparsity" if config.sparsity else "None on a dense unit"
        raise ValueError(f"places must be {wanted}")
    rows = 2 if config.sparsity else 1
    if a.ndim < 2 or b.ndim < 2 or rows * a.shape[-1] != b.shape[-2] or not a.size or not b.size:
        k = "2·K" if config.sparsity else "K"
        raise ValueError(
            f"a and b must be (M, K) and ({k}, N) with one K and without an empty axis, "
            f"not {a.shape} and {b.shape}"
        )
    if places is not None:
        places = np.asarray(places)
        if places.dtype.kind not in "iu":
            raise TypeError(f"places must be an array of integers, not of {places.dtype}")
        if places.shape != a.shape or (places > 3).any() or (places < 0).any():
            raise ValueError(f"places must be within 0 to 3, of the shape {a.shape} of a")
    shape = a.shape[-2], b.shape[-1]
    leads = [a.shape[:-2], b.shape[:-2]]
    if c is not None:
        c = _codes(c, config.result_bits(precision) * (2 if is_complex else 1), "c")
        if c.shape[-2:] != shape:
            raise ValueError(f"c must be (M, N) = {shape}, not {c.shape}")
        leads.append(c.shape[:-2])
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a positive number, not {threads!r}")
    if not 0 <= stall_rate < 1:
        raise ValueError(f"stall_rate must be within [0, 1), not {stall_rate!r}")
    lead = np.broadcast_shapes(*leads)
    run = _Run(config, a, b, c, precision, operation, lead, places)
    ends = list(pairwise(run.bounds()))
    with ThreadPoolExecutor(threads) as pool:
        cycles = sum(pool.map(lambda span: run.stream(span[0], span[1], stall_rate), ends))
    codes = run.d.astype(f"<u{config.result_bits(precision) // 8}", copy=False)
    d = join_fractals(codes, *shape).reshape(*lead, *shape)
    beats = run.tiles * len(run.phases)
    steps = run.tiles * sum(config.steps(phase.precision) for phase in run.phases)
    if precision == INT8:
        d = d.view(np.int32)
    return CubeProduct(d=d, beats=beats, steps=steps, cycles=cycles, streams=len(ends))


def _codes(array, bits: int, name: str) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype.kind not in "iu" or 8 * array.dtype.itemsize != bits:
        raise TypeError(f"{name} must be codes of {bits} bits, not {array.dtype.name}")
    return array


@lru_cache(maxsize=16)
def _model(config: MatrixUnitConfig) -> CompiledModel:
    return compile_unit(MatrixUnit, config=config)


class _Run:
    """One product: operands cut into tiles, and results as they come."""

    def __init__(
        self,
        config: MatrixUnitConfig,
        a,
        b,
        c,
        precision: str,
        operation: str,
        lead: tuple[int, ...],
        places: np.ndarray | None = None,
    ):
        self.config, self.operation = config, operation
        self.phases: list[Phase] = phases_of(config, precision, a.shape[-1], operation)
        self.parts = 2 if precision in config.complex_precisions else 1
        left = a.reshape(-1, *a.shape[-2:])
        right = b.reshape(-1, *b.shape[-2:]).swapaxes(-1, -2)
        self.index = None
        if places is None:
            self.left, self.right = cut_operands(config, left, right, precision, operation)
        else:
            places = places.reshape(left.shape)
            cut = cut_sparse(config, left, places, right, operation)
            self.left, self.right, self.index = cut
        self.rows, self.columns = self.left.shape[1], self.right.shape[1]
        bits = config.result_bits(precision)
        self.c = None if c is None else cut_fractals(config, c.reshape(-1, *c.shape[-2:]), bits)
        self.places = [None if x is None else _places(x.shape[:-2], lead) for x in (a, b, c)]
        batch = int(np.prod(lead))
        self.tiles = batch * self.rows * self.columns
        word = np.dtype(f"<u{config.word_bits // 8}")
        self.d = np.empty((batch, self.rows, self.columns, self.parts, config.m, config.n), word)
        self.slots = config.slot_count // self.parts
        self.model = _model(config)

    def bounds(self) -> list[int]:
        """Where streams begin, in tiles: whole rounds of the slots, as equal as can be."""
        rounds = -(-self.tiles // self.slots)
        count = min(-(-self.tiles * len(self.phases) // STREAM_BEATS), rounds)
        return [min(rounds * n // count * self.slots, self.tiles) for n in range(count + 1)]

    def stream(self, begin: int, end: int, stall_rate: float) -> int:
        """Run some of the tiles; returns the cycles."""
        config = self.config
        tile, phase = self._order(begin, end)
        batch, row, column = self._where(tile)
        at_a, at_b, at_c = self.places
        assert at_a is not None and at_b is not None  # C alone may be missing
        kinds = {p: config.precisions.index(p) for p in config.precisions}
        codes = np.array([kinds[p.precision] for p in self.phases], np.uint8)
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
        """Tile and phase of every beat: tiles in equal groups, within a group K outermost."""
        count, depth = end - begin, len(self.phases)
        groups = -(-count // self.slots)
        edges = count * np.arange(groups + 1) // groups
        size = np.diff(edges)
        tile = np.arange(count)
        group = np.repeat(np.arange(groups), size)
        place = (tile + (depth - 1) * edges[group])[:, None]
        place = place + np.arange(depth) * size[group][:, None]
        order = np.empty(count * depth, np.int64)
        order[place.ravel()] = np.arange(count * depth)
        return begin + order // depth, order % depth

    def _first_and_last(self) -> tuple[np.ndarray, np.ndarray]:
        """Which phases a sum starts in, and which it ends in."""
        split = np.array([p.part is not None for p in self.phases])
        number = np.arange(len(self.phases))
        starts, ends = number == 0, number == len(number) - 1
        if split.any():
            ends = split
            starts = split if split.all() else starts
        return starts, ends

    def _fractals(self, tile, phase, chosen) -> tuple[np.ndarray, ...]:
        """Batch, row, column and part of every C or D fractal of the beats in the chosen phases."""
        here = chosen[phase]
        tile, phase = tile[here], phase[here]
        part = np.array([p.part or 0 for p in self.phases])[phase]
        if self.parts == 2 and self.phases[phase[0]].part is None:
            tile, part = np.repeat(tile, 2), np.tile([0, 1], len(tile))
        return *self._where(tile), part

    def _where(self, tile: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Batch, row and column of tiles."""
        rest, column = np.divmod(tile, self.columns)
        batch, row = np.divmod(rest, self.rows)
        return batch, row, column


def _places(lead: tuple[int, ...], whole: tuple[int, ...]) -> np.ndarray:
    """Number of an operand's matrix for every matrix of the product."""
    count = int(np.prod(lead))
    return np.broadcast_to(np.arange(count).reshape(lead), whole).reshape(-1)
