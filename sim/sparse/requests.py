"""The bursts that a sweep moves through the memory's interface, in the order of the requests.

The layout of addresses is assumed, since the thesis has none. Values, coordinates, pointers and
each vector are arrays of their own, for either order of the matrix. They follow each other in
memory, and each begins at a multiple of 4 KiB. In a step, the loaders ask one after the other: the
columns for the OS core, the index arrays, the elements of x, the vectors of element-wise
operations, rows that were lost, rows ahead, and last the results. A loader keeps the last burst of
an array, so that successive runs do not move their common burst twice. Elements of x stay on chip
for the sweep, so that a burst of x is moved once. A burst of results is written when its last
element is complete.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.engine_compiled import CSC, RESULT
from vitruvian.sim.sparse.layout import entry_bytes, index_bytes
from vitruvian.sim.sparse.lowering import first_uses, spread, sub_tensor_bounds
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.schedule import Sweep

#: Arrays begin at multiples of this.
PAGE_BYTES = 4096

# How a stream avoids to move a burst twice: it keeps the last one, or all, or waits for the last
# element of a burst.
_LAST, _ALL, _COMPLETE = range(3)


class _Ranges(NamedTuple):
    """Ranges of bytes of an array that a loader moves."""

    steps: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    write: bool = False
    keeps: int = _LAST


@dataclass(frozen=True, eq=False)
class Requests:
    """Bursts in the order of their requests.

    Attributes
    ----------
    steps : (n,) ndarray of int64
        Step of the sweep.
    atoms : (n,) ndarray of int64
        Address in bursts.
    writes : (n,) ndarray of bool
    asked : int
        Bytes that the loaders need, and writers have; bursts move more.
    """

    steps: np.ndarray
    atoms: np.ndarray
    writes: np.ndarray
    asked: int


class _Memory:
    """The places of arrays, and the runs of each loader."""

    def __init__(self) -> None:
        self.end = 0
        self.runs: list[_Ranges] = []

    def array(self, nbytes: int) -> int:
        """Return the first address of a new array."""
        begin = self.end
        self.end = -(-(begin + nbytes) // PAGE_BYTES) * PAGE_BYTES
        return begin

    def stream(self, steps: np.ndarray, lengths: np.ndarray, *, write: bool = False) -> None:
        """Add an array that is moved from its begin to its end, some bytes in each step."""
        ends = np.cumsum(lengths)
        place = self.array(int(ends[-1]))
        keeps = _COMPLETE if write else _LAST
        self.runs.append(_Ranges(steps, place + ends - lengths, place + ends, write, keeps))


def matrix_requests(
    pattern: Pattern,
    architecture: Architecture,
    sweep: Sweep,
    log: np.ndarray | None,
    *,
    atom: int,
    joined: int = 1,
) -> Requests:
    """Return the requests of a sweep that passes a matrix through the chip.

    Parameters
    ----------
    log : (requests, 4) ndarray of int64 or None
        Of the engine for a sweep of kind "oei"; None for the others.
    atom : int
        Bytes of a burst.
    joined : int
        Steps in which a loader asks for all its bytes before the next loader's turn.
    """
    memory, value = _Memory(), architecture.value_bytes
    bounds, _ = sub_tensor_bounds(pattern, architecture)
    subs = len(bounds) - 1
    steps = np.arange(subs)
    edges = np.minimum(bounds * pattern.side, pattern.columns)
    orders = [(pattern.col_first, pattern.col_work)]
    if log is None:
        entries = pattern.col_first[bounds]
        log = np.stack([steps, np.full(subs, CSC), entries[:-1], entries[1:]], 1).astype(np.int64)
    else:
        orders.append((pattern.row_first, pattern.row_work))
    columns, *rows = [
        _entry_runs(memory, pattern, architecture, work, log[_of_order(log, number)])
        for number, (_, work) in enumerate(orders)
    ]
    memory.runs += columns
    for _ in orders:
        memory.stream(steps, index_bytes(pattern, architecture, bounds))
    _gathers(memory, pattern, bounds, value * sweep.os_features)
    _vectors(memory, sweep.read, edges, steps + 1, value)
    for runs in rows:
        memory.runs += runs
    _results(memory, pattern, sweep, log, subs, value)
    _vectors(memory, sweep.written, edges, steps + 2, value, write=True)
    return _bursts(memory.runs, atom, joined)


def vector_requests(
    architecture: Architecture, sweep: Sweep, *, atom: int, joined: int = 1
) -> Requests:
    """Return the requests of a sweep of vectors, as many values at a time as a sub-tensor has."""
    memory, value = _Memory(), architecture.value_bytes
    parts = max(1, -(-max(sweep.read, sweep.written) // architecture.sub_tensor))
    edges = np.arange(parts + 1)
    for total, write in ((sweep.read, False), (sweep.written, True)):
        if total:
            memory.stream(np.arange(parts), value * spread(total, edges), write=write)
    return _bursts(memory.runs, atom, joined)


def _of_order(log: np.ndarray, number: int) -> np.ndarray:
    """Return which requests are for entries by columns (number 0) or by rows (1)."""
    kinds = log[:, 1]
    return kinds == CSC if number == 0 else (kinds != CSC) & (kinds != RESULT)


def _entry_runs(
    memory: _Memory,
    pattern: Pattern,
    architecture: Architecture,
    work: np.ndarray,
    log: np.ndarray,
) -> list[_Ranges]:
    """Return the runs of the arrays that entries consist of."""
    nonzero, entry = entry_bytes(pattern, architecture)
    value = architecture.value_bytes
    steps, _, first, last = log.T
    nonzeros = [each if len(work) == 1 else work[each] for each in (first, last)]
    arrays = [
        (value, pattern.nonzeros, nonzeros),
        (nonzero - value, pattern.nonzeros, nonzeros),
        (entry, pattern.entries, [first, last]),
    ]
    runs = []
    for width, count, (begin, end) in arrays:
        if width:
            place = memory.array(width * count)
            runs.append(_Ranges(steps, place + width * begin, place + width * end))
    return runs


def _gathers(memory: _Memory, pattern: Pattern, bounds: np.ndarray, width: int) -> None:
    """Add the elements of x, in the order of their numbers within a step."""
    rows, steps, elements = first_uses(pattern, bounds)
    place = memory.array(width * pattern.elements)
    order = np.lexsort((rows, steps))
    begins = place + width * pattern.side * rows[order]
    memory.runs.append(_Ranges(steps[order], begins, begins + width * elements[order], False, _ALL))


def _vectors(
    memory: _Memory,
    total: int,
    edges: np.ndarray,
    steps: np.ndarray,
    value: int,
    *,
    write: bool = False,
) -> None:
    """Add vectors with an element for each column, and one array for what is left over."""
    whole, rest = divmod(total, int(edges[-1]))
    for count in [int(edges[-1])] * whole + [rest] * (rest > 0):
        memory.stream(steps, value * spread(count, edges), write=write)


def _results(
    memory: _Memory, pattern: Pattern, sweep: Sweep, log: np.ndarray, subs: int, value: int
) -> None:
    """Add the results of an input-stationary product."""
    if not sweep.is_features:
        return
    width = value * sweep.is_features
    if sweep.kind == "stream":
        # They are complete after the last column, and are written in the last of four steps more.
        memory.stream(np.array([subs + 3]), np.array([width * pattern.elements]), write=True)
        return
    steps, _, first, last = log[log[:, 1] == RESULT].T
    place = memory.array(width * pattern.columns)
    begins = place + width * pattern.side * first
    ends = place + width * np.minimum(pattern.side * last, pattern.columns)
    memory.runs.append(_Ranges(steps, begins, ends, True, _COMPLETE))


def _bursts(runs: list[_Ranges], atom: int, joined: int) -> Requests:
    """Return the bursts of all runs, ordered by turns and then as the runs are."""
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    asked = 0
    for run in runs:
        some = run.ends > run.begins
        steps, begins, ends = run.steps[some], run.begins[some], run.ends[some]
        asked += int((ends - begins).sum())
        first = begins // atom
        counts = (ends - 1) // atom - first + 1
        before = np.cumsum(counts) - counts
        atoms = np.repeat(first - before, counts) + np.arange(int(counts.sum()))
        steps = np.repeat(steps, counts)
        kept = _kept(atoms, run.keeps)
        parts.append((steps[kept], atoms[kept], np.full(int(kept.sum()), run.write)))
    if not parts:
        none = np.zeros(0, np.int64)
        return Requests(none, none, none.astype(bool), 0)
    steps, atoms, writes = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(steps // joined, kind="stable")
    return Requests(steps[order], atoms[order].astype(np.int64), writes[order], asked)


def _kept(atoms: np.ndarray, keeps: int) -> np.ndarray:
    """Return which bursts of a stream are moved."""
    kept = np.ones(len(atoms), bool)
    if keeps == _LAST:
        kept[1:] = atoms[1:] != atoms[:-1]
        return kept
    kept[:] = False
    if keeps == _ALL:
        kept[np.unique(atoms, return_index=True)[1]] = True
    else:
        kept[len(atoms) - 1 - np.unique(atoms[::-1], return_index=True)[1]] = True
    return kept
