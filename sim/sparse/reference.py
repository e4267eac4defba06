"""The steps of a pair of iterations by sets and lists: the definition of the compiled engine.

Each rule of Zhang 2024 §4.4.4 is a method. The entries that a row holds on chip are a set of its
columns, and every space is a dictionary of bytes, so that nothing depends on pointers into arrays.
"""

from collections import deque

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.sparse.engine_compiled import (
    COLUMNS,
    CSC,
    PREFETCH,
    RELOAD,
    REQUEST_COLUMNS,
    RESULT,
    EngineProgram,
)


def run_reference(program: EngineProgram) -> tuple[np.ndarray, np.ndarray]:
    """Return what happens in each step, and the requests, as ``engine_compiled.run`` does.

    Raises
    ------
    RuntimeError
        If more is reserved than the buffer's capacity.
    """
    machine = _Machine(program)
    steps = []
    while len(steps) < machine.subs + 3 or machine.left or machine.results:
        steps.append(machine.step(len(steps)))
    requests = np.array(machine.log, np.int64).reshape(-1, len(REQUEST_COLUMNS))
    return np.array(steps, np.int64).reshape(-1, len(COLUMNS)), requests


class _Machine:
    def __init__(self, program: EngineProgram) -> None:
        self.program = program
        self.n, self.subs = len(program.col_first) - 1, len(program.bounds) - 1
        first, rows = program.col_first, program.col_rows
        self.columns = [rows[first[c] : first[c + 1]].tolist() for c in range(self.n)]
        self.rows: list[list[int]] = [[] for _ in range(self.n)]
        self.work: dict[tuple[int, int], int] = {}
        position = 0
        for c, column in enumerate(self.columns):
            for r in column:
                self.rows[r].append(c)
                prefix = program.col_work
                # An entry may be a block with several nonzeros; a prefix of one element means that
                # none is.
                weight = 1 if len(prefix) == 1 else int(prefix[position + 1] - prefix[position])
                self.work[r, c] = weight
                position += 1
        self.chip: list[set[int]] = [set() for _ in range(self.n)]
        self.consumed: list[set[int]] = [set() for _ in range(self.n)]
        self.csr_space: dict[int, int] = {}  # reserved bytes by row
        self.csc_space: dict[int, int] = {}  # reserved bytes by column
        self.early: list[set[int]] = [set() for _ in range(self.n)]  # of columns, by prefetching
        self.dead = 0
        self.queue: deque[int] = deque()
        self.lost: deque[int] = deque()
        self.passed = self.eligible = 0
        self.left = len(self.work)
        self.log: list[list[int]] = []
        self.results = sum(self.result(c) for c in range(self.n) if not self.columns[c])
        for c in range(self.n):
            if not self.columns[c]:
                self.note(0, RESULT, c, c + 1)
        self.evicted = self.repacked = 0

    def result(self, c: int) -> int:
        """Return the bytes of a column's results."""
        return self.program.result if c < self.n - 1 else self.program.last_result

    def note(self, step: int, kind: int, first: int, last: int) -> None:
        """Append a request to the log; one that continues the last request extends it."""
        if first == last:
            return
        if self.log and self.log[-1][:2] == [step, kind] and self.log[-1][3] == first:
            self.log[-1][3] = last
        else:
            self.log.append([step, kind, first, last])

    def note_row(self, step: int, kind: int, r: int, cols: list[int]) -> None:
        """Note a request for successive entries of a row."""
        first = int(self.program.row_first[r]) + self.rows[r].index(cols[0])
        self.note(step, kind, first, first + len(cols))

    def size(self, r: int, cols: set[int] | list[int]) -> int:
        """Return the bytes of some entries of a row."""
        nonzero, entry = self.program.nonzero_bytes, self.program.entry_bytes
        return sum(self.work[r, c] * nonzero + entry for c in cols)

    def column_size(self, c: int, rows: set[int] | list[int]) -> int:
        """Return the bytes of some entries of a column."""
        return sum(self.size(r, [c]) for r in rows)

    def rest(self, r: int) -> list[int]:
        """Return the columns of a row's entries that are neither consumed nor on chip."""
        return [c for c in self.rows[r] if c not in self.consumed[r] and c not in self.chip[r]]

    def ready(self) -> int:
        """Return the nonzeros that the IS core can use."""
        return sum(self.work[r, c] for r in range(self.eligible) for c in self.chip[r])

    def free(self) -> int:
        """Return the bytes of the buffer that are not reserved."""
        used = sum(self.csr_space.values()) + sum(self.csc_space.values())
        if used > self.program.capacity:
            limit = self.program.capacity
            raise RuntimeError(f"buffer must hold at most {limit} bytes, not {used}")
        return self.program.capacity - used

    def room(self, need: int, low: int) -> bool:
        """Make room by repacking, then by evicting the highest rows from ``low``."""
        if self.free() < need and self.dead:
            self.repack()
        while self.free() < need:
            r = max((r for r in self.csr_space if r >= low), default=-1)
            if r < 0:
                return False
            # An eligible row that is evicted must be loaded again, because the IS core needs it
            # now.
            if r < self.eligible and self.chip[r]:
                _append(self.lost, r)
            self.evicted += self.size(r, self.chip[r])
            self.chip[r] = set()
            del self.csr_space[r]
        return True

    def repack(self) -> None:
        """Reclaim the space of consumed entries."""
        for r in list(self.csr_space):
            left = [c for c in self.rows[r] if c not in self.consumed[r]]
            self.csr_space[r] = self.size(r, left)
            if not left:
                del self.csr_space[r]
        self.dead = 0
        self.repacked += sum(self.size(r, self.chip[r]) for r in range(self.n))

    def reserve(self, r: int, low: int | None) -> bool:
        """Reserve the space of a row's unconsumed entries; evict only if ``low`` is given."""
        if r not in self.csr_space:
            need = self.size(r, [c for c in self.rows[r] if c not in self.consumed[r]])
            if not (self.free() >= need if low is None else self.room(need, low)):
                return False
            self.csr_space[r] = need
        return True

    def store(self, r: int, c: int) -> None:
        """Store an entry in CSR space."""
        self.chip[r].add(c)
        if r < self.eligible:
            _append(self.queue, r)

    def load_columns(self, s: int, first: int, last: int) -> int:
        """Load the columns of a sub-tensor; return the bytes from memory."""
        new = {c: self.column_size(c, self.columns[c]) for c in range(first, last)}
        new = {c: nbytes for c, nbytes in new.items() if c not in self.csc_space}
        self.room(sum(new.values()), 0)
        self.csc_space.update(new)
        nbytes = 0
        for c in range(first, last):
            nbytes += self.column_size(c, set(self.columns[c]) - self.early[c])
            start, end = (int(each) for each in self.program.col_first[c : c + 2])
            self.note(s, CSC, start + len(self.early[c]), end)
            for r in self.columns[c]:
                if c in self.chip[r] or c in self.consumed[r]:
                    continue
                # A row that is needed now may displace all rows that are not; another one only rows
                # behind it.
                low = self.eligible if r < self.eligible else r + 1
                # Entries are stored in order: one behind a gap is loaded again later, with its row.
                if self.rest(r)[0] == c and self.reserve(r, low):
                    self.store(r, c)
                elif r < self.eligible:
                    _append(self.lost, r)
        self.passed = last
        return nbytes

    def reload(self, s: int) -> int:
        """Load entries that rows have lost; return the bytes from memory."""
        nbytes = 0
        waiting = list(self.lost)
        self.lost.clear()
        for r in waiting:
            again = [c for c in self.rest(r) if c < self.passed]
            if not again:
                continue
            if not self.reserve(r, self.eligible):
                _append(self.lost, r)
                continue
            nbytes += self.size(r, again)
            self.note_row(s, RELOAD, r, again)
            for c in again:
                self.store(r, c)
        return nbytes

    def prefetch(self, s: int, spare: int) -> int:
        """Prefetch row data into the bandwidth that remains; return the bytes."""
        before, fetched = spare, 0
        finished = next((r for r in range(self.n) if self.open(r)), self.n)
        for r in range(finished, self.eligible):
            if spare < self.program.nonzero_bytes + self.program.entry_bytes:
                break
            fetched += len(self.rows[r]) - len(self.rest(r))
            # No row gets far ahead of the others: each takes at most the mean of the rows up to it.
            share = max(1, ceil_div(fetched, r - finished + 1))
            for c in self.rest(r)[:share]:
                nbytes = self.size(r, [c])
                if nbytes > spare or not self.reserve(r, None):
                    break
                spare -= nbytes
                self.note_row(s, PREFETCH, r, [c])
                self.store(r, c)
                self.convert(r, c)
        return before - spare

    def open(self, r: int) -> bool:
        """Return True if the IS core has not consumed a row completely."""
        return len(self.consumed[r]) < len(self.rows[r])

    def convert(self, r: int, c: int) -> None:
        """Keep a prefetched entry for the OS core too, if it is the next one of its column."""
        column, early = self.columns[c], self.early[c]
        if len(early) == len(column) or column[len(early)] != r:
            return
        if not early:
            # Columns that are converted early take a quarter of the buffer at most, as a sub-tensor
            # does.
            ahead = sum(v for k, v in self.csc_space.items() if k >= self.passed)
            whole = self.column_size(c, column)
            if whole > self.free() or ahead + whole > self.program.capacity // 4:
                return
            self.csc_space[c] = whole
        early.add(r)

    def consume(self, s: int, quota: int) -> int:
        """Let the IS core consume at most ``quota`` nonzeros; return their number."""
        done = 0
        while self.queue:
            r = self.queue[0]
            for c in sorted(self.chip[r]):
                if done + self.work[r, c] > quota:
                    return done
                done += self.work[r, c]
                self.chip[r].remove(c)
                self.consumed[r].add(c)
                self.dead += self.size(r, [c])
                self.left -= 1
                if all(c in self.consumed[other] for other in self.columns[c]):
                    self.results += self.result(c)
                    self.note(s + 1, RESULT, c, c + 1)
            self.queue.popleft()
        return done

    def step(self, s: int) -> list[int]:
        """Execute a step; return its row of the result."""
        p, bounds = self.program, self.program.bounds.tolist()
        self.evicted = self.repacked = 0
        if 2 <= s < self.subs + 2:
            # The OS core has used these columns in the last step.
            for c in range(bounds[s - 2], bounds[s - 1]):
                del self.csc_space[c]
        following = bounds[min(max(s - 2, 0), self.subs)]
        for r in range(self.eligible, following):
            if self.chip[r]:
                _append(self.queue, r)
            if any(c < self.passed for c in self.rest(r)):
                _append(self.lost, r)
        self.eligible = following
        # Before the loads, since a core uses in a step what was there when it began.
        ready = self.ready()
        csc = self.load_columns(s, bounds[s], bounds[s + 1]) if s < self.subs else 0
        reload = self.reload(s)
        vectors = int(p.vectors[s]) if s < self.subs + 3 else 0
        wrote, self.results = self.results, 0
        total = csc + reload + vectors + wrote
        operations = 0
        if 1 <= s <= self.subs:
            loaded = range(bounds[s - 1], bounds[s])
            nonzeros = sum(self.work[r, c] for c in loaded for r in self.columns[c])
            operations = nonzeros * p.os_features
        cycles = max(1, -(-total * p.per // p.rate), ceil_div(operations, p.pes))
        if s < self.subs + 3:
            cycles = max(cycles, int(p.ewise_cycles[s]))
        if s >= self.subs + 2:
            cycles = max(cycles, -(-ready * p.is_features // p.pes))
        # What the bandwidth of the step's cycles leaves over.
        prefetch = self.prefetch(s, cycles * p.rate // p.per - total)
        spaces = sum(self.csr_space.values()), sum(self.csc_space.values())
        held = sum(self.size(r, self.chip[r]) for r in range(self.n))
        consumed = self.consume(s, min(ready, cycles * p.pes // p.is_features)) * p.is_features
        if self.dead > p.threshold:
            self.repack()
        return [
            *(cycles, csc, reload, prefetch, vectors, wrote, *spaces, held),
            *(operations, consumed, self.evicted, self.repacked),
        ]


def _append(rows: deque[int], r: int) -> None:
    if r not in rows:
        rows.append(r)
