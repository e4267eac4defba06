"""The buffer of the OEI pipeline as lists: which columns and rows pass in each step, and the space.

The elements of a matrix enter column by column. In step s, the columns of sub-tensor s enter, and
the rows of the sub-tensors up to s − 2 leave with all their elements of the sub-tensors up to
s − 1. So a row leaves in several parts if some of its elements come later than the row's turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The elements of a column: pairs of a row and the code of a value.
Column = Sequence[tuple[int, int]]


def schedule(subs: int) -> list[tuple[int | None, int | None, int | None]]:
    """Return the sub-tensors of the OS, the element-wise and the IS stage in each step.

    Parameters
    ----------
    subs : int
        Number of sub-tensors.

    Returns
    -------
    list of (int or None, int or None, int or None)
        None for a stage that has nothing to do.

    References
    ----------
    Zhang 2024, §4.4.4, Fig. 4.16.
    """

    def index(s: int) -> int | None:
        return s if 0 <= s < subs else None

    return [(index(s), index(s - 1), index(s - 2)) for s in range(subs + 2)]


@dataclass(frozen=True, kw_only=True)
class CSCBeats:
    """Beats of columns with N lanes.

    Attributes
    ----------
    values : (T, N) ndarray of uint64, codes
    rows : (T, N) ndarray of int
    present, last : (T, N) ndarray of bool
        True for a lane with an element, and for the last lane of a column.
    """

    values: np.ndarray
    rows: np.ndarray
    present: np.ndarray
    last: np.ndarray


def csc_beats(columns: Sequence[Column], lanes: int, width: int) -> CSCBeats:
    """Return the beats of a matrix; each sub-tensor of ``width`` columns begins a new beat.

    Within a sub-tensor, each column begins in the lane after the one before. A column without an
    element takes a lane for its mark.
    """
    cells: list[tuple[int, int, bool, bool]] = []
    for c, column in enumerate(columns):
        if c % width == 0:
            cells += [(0, 0, False, False)] * (-len(cells) % lanes)
        for k, (row, value) in enumerate(column):
            cells.append((value, row, True, k + 1 == len(column)))
        if not column:
            cells.append((0, 0, False, True))
    cells += [(0, 0, False, False)] * (-len(cells) % lanes)
    values, rows, present, last = zip(*cells, strict=True)
    shape = (-1, lanes)
    return CSCBeats(
        values=np.array(values, np.uint64).reshape(shape),
        rows=np.array(rows).reshape(shape),
        present=np.array(present).reshape(shape),
        last=np.array(last).reshape(shape),
    )


@dataclass(frozen=True, kw_only=True)
class CSRBeats:
    """Beats of rows with N lanes.

    Attributes
    ----------
    values : (T, N) ndarray of uint64, codes
        Zero in a lane without an element.
    columns : (T, N) ndarray of int
    present : (T, N) ndarray of bool
    rows, steps : (T,) ndarray of int
        The row of each beat, and the step in which it leaves.
    """

    values: np.ndarray
    columns: np.ndarray
    present: np.ndarray
    rows: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True, kw_only=True)
class BufferSchedule:
    """The elements that leave CSR space in a pass, and the space that they need.

    Attributes
    ----------
    beats : CSRBeats
        The beats of all steps; if the pass is refused, those of the steps before.
    refused_at : int or None
        The step in which a row finds no space, although all rows of the step have left.
    """

    beats: CSRBeats
    refused_at: int | None


class _BufferSpace:
    """CSR space: the reservations in their order."""

    def __init__(self, counts: Sequence[int], capacity: int):
        self.counts, self.capacity = counts, capacity
        self.queue: list[int] = []

    def free(self, delivered: Sequence[int]) -> None:
        """Free the oldest rows as long as they have been delivered completely."""
        while self.queue and delivered[self.queue[0]] == self.counts[self.queue[0]]:
            self.queue.pop(0)

    def reserve(self, row: int) -> bool:
        """Reserve the space of a row; return False if it does not fit."""
        self.queue.append(row)
        return sum(self.counts[r] for r in self.queue) <= self.capacity


def csr_beats(columns: Sequence[Column], lanes: int, width: int, capacity: int) -> BufferSchedule:
    """Return the beats of rows that leave the buffer in a pass over a matrix.

    Parameters
    ----------
    columns : sequence of Column
        The columns of a square matrix, whose number is a multiple of ``width``.
    lanes : int
        Largest number of elements of a beat.
    width : int
        Columns of a sub-tensor.
    capacity : int
        Elements in CSR space.

    Notes
    -----
    The rows of a step leave before the columns of the same step reserve space. In hardware both
    happen at the same time, and a column waits for the rows, so the outcome is the same.
    """
    size = len(columns)
    counts = [0] * size
    for column in columns:
        for row, _ in column:
            counts[row] += 1
    held: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    delivered = [0] * size
    space = _BufferSpace(counts, capacity)
    out: list[tuple[int, int, list[tuple[int, int]]]] = []
    refused_at = None
    for step, (arriving, _, leaving) in enumerate(schedule(size // width)):
        # Rows of earlier steps as well: their late elements leave as soon as they arrive.
        for row in range((leaving + 1) * width if leaving is not None else 0):
            part, held[row] = held[row], []
            delivered[row] += len(part)
            for k in range(0, len(part), lanes):
                out.append((step, row, part[k : k + lanes]))
        space.free(delivered)
        fits = True
        for c in range(arriving * width, (arriving + 1) * width) if arriving is not None else ():
            for row, value in columns[c]:
                if not held[row] and not delivered[row]:
                    # The first element of a row reserves room for all of them, so that no row is
                    # ever cut off.
                    fits = fits and space.reserve(row)
                held[row].append((c, value))
        if not fits:
            refused_at = step
            break
    values, cols = np.zeros((len(out), lanes), np.uint64), np.zeros((len(out), lanes), int)
    present = np.zeros((len(out), lanes), bool)
    for t, (_, _, part) in enumerate(out):
        for k, (c, value) in enumerate(part):
            values[t, k], cols[t, k], present[t, k] = value, c, True
    return BufferSchedule(
        beats=CSRBeats(
            values=values,
            columns=cols,
            present=present,
            rows=np.array([row for _, row, _ in out], int),
            steps=np.array([step for step, _, _ in out], int),
        ),
        refused_at=refused_at,
    )
