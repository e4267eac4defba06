"""The compiled engine of one pair of iterations: the steps of ``sim.sparse.reference``.

All loops run over the index arrays of the matrix in both orders (CSC and CSR). An entry is a
nonzero, or a block of nonzeros in blocked storage; ``work`` counts its nonzeros. A row holds a run
of its entries on chip, from the first that the IS core has not consumed up to, not including,
``row_next``; a column that the CSR loader brings early holds a run from its begin to ``col_next``.

``common.compiling`` decides whether the loops run compiled or as plain Python. Numba's
cache notices changes of this file alone, so the loops must not depend on other modules.
"""

from typing import NamedTuple

import numpy as np

#: The columns of the result; bytes unless the name says otherwise.
COLUMNS = (
    "cycles",
    "csc",
    "reload",
    "prefetch",
    "vectors",
    "results",
    "csr_space",
    "csc_space",
    "held",
    "os_operations",
    "is_operations",
    "evicted",
    "repacked",
)

#: The columns of the log of requests, and its kinds: entries from ``first`` up to, not including,
#: ``last`` that the CSC loader brings, that the CSR loader brings again or ahead, and columns whose
#: results are written.
REQUEST_COLUMNS = ("step", "kind", "first", "last")
CSC, RELOAD, PREFETCH, RESULT = range(4)

# Places of the counters that helpers change: reserved and consumed bytes of CSR space, reserved
# bytes of CSC space, the same for columns ahead of the CSC loader, the highest row that may have a
# reservation, nonzeros that the IS core could use, bytes evicted, moved by a repacking, length
# of the list of rows with consumed data, bytes of rows on chip and not consumed, lengths of rings.
_CSR, _DEAD, _CSC, _AHEAD, _TOP, _READY, _EVICTED, _MOVED, _MARKED, _HELD = range(10)
_QUEUE_HEAD, _QUEUE_SIZE, _LOST_HEAD, _LOST_SIZE = 10, 11, 12, 13
_STATE = 14


class EngineProgram(NamedTuple):
    """A matrix and a machine as arrays and integers.

    Attributes
    ----------
    col_first, col_rows : (n + 1,), (nnz,) ndarray
        CSC: the rows of column c are col_rows[col_first[c] : col_first[c + 1]], ascending.
    row_first, row_cols : (n + 1,), (nnz,) ndarray
        CSR, likewise.
    col_work, row_work : (nnz + 1,) ndarray of int64
        Prefix sums of the nonzeros of the entries in either order; (1,) if each entry has one.
    bounds : (subs + 1,) ndarray of int64
        Sub-tensor s consists of the columns (or rows) from bounds[s] to bounds[s + 1].
    vectors, ewise_cycles : (subs + 3,) ndarray of int64
        Bytes of vectors and index arrays, and cycles of the e-wise core, in each step.
    nonzero_bytes, entry_bytes : int
        Bytes for each nonzero and for each entry.
    capacity, threshold : int
        Bytes of the buffer, and of consumed data above which a repacking starts.
    pes, rate, per : int
        Processing elements of a core; the memory transfers ``rate`` bytes in ``per`` cycles.
    os_features, is_features : int
        Operations of the OS core and of the IS core for each nonzero.
    result, last_result : int
        Bytes of the results of a column, and of the last column.
    """

    col_first: np.ndarray
    col_rows: np.ndarray
    row_first: np.ndarray
    row_cols: np.ndarray
    col_work: np.ndarray
    row_work: np.ndarray
    bounds: np.ndarray
    vectors: np.ndarray
    ewise_cycles: np.ndarray
    nonzero_bytes: int
    entry_bytes: int
    capacity: int
    threshold: int
    pes: int
    rate: int
    per: int
    os_features: int
    is_features: int
    result: int
    last_result: int


def run(program, logs):
    """Return what happens in each step, and the requests if ``logs`` is True.

    Returns
    -------
    steps : (steps, len(COLUMNS)) ndarray of int64
    requests : (requests, len(REQUEST_COLUMNS)) ndarray of int64
        In the order in which they arise; empty if ``logs`` is False.
    """
    (
        col_first,
        col_rows,
        row_first,
        row_cols,
        col_work,
        row_work,
        bounds,
        vectors,
        ewise_cycles,
        nonzero_bytes,
        entry_bytes,
        capacity,
        threshold,
        pes,
        rate,
        per,
        os_features,
        is_features,
        result,
        last_result,
    ) = program
    n, subs = len(col_first) - 1, len(bounds) - 1
    # Columns that are converted ahead of their step take a quarter of the buffer at most.
    quarter = capacity // 4
    row_next = row_first[:-1].astype(np.int64)
    row_done = row_next.copy()  # the first entry that the IS core has not consumed
    row_kept = row_next.copy()  # the first entry of the row's reservation
    col_next = col_first[:-1].astype(np.int64)
    has = np.zeros(n, np.bool_)  # rows with a reservation
    marked = np.zeros(n, np.bool_)  # rows in ``marks``: those with consumed data to reclaim
    marks = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)  # ring of rows with data that the IS core can consume
    queued = np.zeros(n, np.bool_)
    lost = np.empty(n, np.int64)  # ring of rows that need entries again which have passed
    missing = np.zeros(n, np.bool_)
    state = np.zeros(_STATE, np.int64)
    state[_TOP] = -1
    col_left = np.empty(n, np.int64)
    log = np.zeros((64 if logs else 0, len(REQUEST_COLUMNS)), np.int64)
    logged = 0
    results = 0  # bytes of results that are complete and not yet written
    for c in range(n):
        col_left[c] = col_first[c + 1] - col_first[c]
        if col_left[c] == 0:
            results += result if c < n - 1 else last_result
            log, logged = _note(log, logged, 0, RESULT, c, c + 1)
    # Rows that were lost may need steps behind the last sub-tensor; the table grows if they do.
    table = np.zeros((subs + 16, len(COLUMNS)), np.int64)
    passed = 0  # columns below this one have been loaded
    eligible = 0  # rows below this one have their element of the e-wise result
    finished = 0  # rows below this one have been consumed completely
    left = len(col_rows)
    s = 0
    while s < subs + 3 or left > 0 or results > 0:
        if s == len(table):
            longer = np.zeros((2 * s, len(COLUMNS)), np.int64)
            longer[:s] = table
            table = longer
        state[_EVICTED] = 0
        state[_MOVED] = 0

        # Columns that the OS core has consumed leave at once.
        if 2 <= s < subs + 2:
            a, b = col_first[bounds[s - 2]], col_first[bounds[s - 1]]
            state[_CSC] -= _size(col_work, nonzero_bytes, entry_bytes, a, b)

        # Rows whose element of the e-wise result is there since the last step.
        following = bounds[min(max(s - 2, 0), subs)]
        for r in range(eligible, following):
            if row_next[r] > row_done[r]:
                state[_READY] += _work(row_work, row_done[r], row_next[r])
                _push(queue, queued, state, _QUEUE_HEAD, r)
            if row_next[r] < row_first[r + 1] and row_cols[row_next[r]] < passed:
                _push(lost, missing, state, _LOST_HEAD, r)
        eligible = following
        while finished < eligible and row_done[finished] == row_first[finished + 1]:
            finished += 1
        ready = state[_READY]

        # The CSC loader brings the columns of a sub-tensor, and the rows get their entries.
        csc = 0
        if s < subs:
            first, last = bounds[s], bounds[s + 1]
            need = 0
            for c in range(first, last):
                size = _size(col_work, nonzero_bytes, entry_bytes, col_first[c], col_first[c + 1])
                # A column of which entries were prefetched has its space already.
                if col_next[c] > col_first[c]:
                    state[_AHEAD] -= size
                else:
                    need += size
            _room(
                need, 0, eligible, capacity, row_first, row_work, nonzero_bytes, entry_bytes,
                row_next, row_done, row_kept, has, marks, marked, lost, missing, state,
            )  # fmt: skip
            state[_CSC] += need
            for c in range(first, last):
                csc += _size(col_work, nonzero_bytes, entry_bytes, col_next[c], col_first[c + 1])
                log, logged = _note(log, logged, s, CSC, col_next[c], col_first[c + 1])
                for k in range(col_first[c], col_first[c + 1]):
                    r = col_rows[k]
                    i = row_next[r]
                    if i == row_first[r + 1] or row_cols[i] > c:
                        continue  # the CSR loader has brought it already
                    fits = row_cols[i] == c
                    if fits and not has[r]:
                        size = _size(
                            row_work, nonzero_bytes, entry_bytes, row_done[r], row_first[r + 1]
                        )
                        low = eligible if r < eligible else r + 1
                        fits = _room(
                            size, low, eligible, capacity, row_first, row_work, nonzero_bytes,
                            entry_bytes, row_next, row_done, row_kept, has, marks, marked, lost,
                            missing, state,
                        )  # fmt: skip
                        if fits:
                            _reserve(r, size, row_done, row_kept, has, state)
                    if fits:
                        row_next[r] = i + 1
                        state[_HELD] += _size(row_work, nonzero_bytes, entry_bytes, i, i + 1)
                        if r < eligible:
                            state[_READY] += _work(row_work, i, i + 1)
                            _push(queue, queued, state, _QUEUE_HEAD, r)
                    elif r < eligible:
                        _push(lost, missing, state, _LOST_HEAD, r)
            passed = last

        # The CSR loader brings entries that rows have lost, as far as there is room.
        reload = 0
        for _ in range(state[_LOST_SIZE]):
            r = _pop(lost, missing, state, _LOST_HEAD)
            i = row_next[r]
            if i == row_first[r + 1] or row_cols[i] >= passed:
                continue
            if not has[r]:
                size = _size(row_work, nonzero_bytes, entry_bytes, row_done[r], row_first[r + 1])
                fits = _room(
                    size, eligible, eligible, capacity, row_first, row_work, nonzero_bytes,
                    entry_bytes, row_next, row_done, row_kept, has, marks, marked, lost, missing,
                    state,
                )  # fmt: skip
                if not fits:
                    _push(lost, missing, state, _LOST_HEAD, r)
                    continue
                _reserve(r, size, row_done, row_kept, has, state)
            while i < row_first[r + 1] and row_cols[i] < passed:
                i += 1
            size = _size(row_work, nonzero_bytes, entry_bytes, row_next[r], i)
            reload += size
            log, logged = _note(log, logged, s, RELOAD, row_next[r], i)
            state[_HELD] += size
            state[_READY] += _work(row_work, row_next[r], i)
            row_next[r] = i
            _push(queue, queued, state, _QUEUE_HEAD, r)

        # The traffic estimator: cycles of the step (X), and the bytes that remain (R).
        vector = vectors[s] if s < subs + 3 else 0
        wrote = results
        results = 0
        total = csc + reload + vector + wrote
        cycles = max(1, -(-total * per // rate))
        operations = 0
        if 1 <= s <= subs:
            operations = _work(col_work, col_first[bounds[s - 1]], col_first[bounds[s]])
            operations *= os_features
            cycles = max(cycles, -(-operations // pes))
        if s < subs + 3:
            cycles = max(cycles, ewise_cycles[s])
        if s >= subs + 2:
            cycles = max(cycles, -(-ready * is_features // pes))
        spare = cycles * rate // per - total

        # The CSR loader prefetches: a row gets as many entries as the rows before it have fetched
        # on average, P(r), so that the IS core's load is balanced.
        prefetch = 0
        fetched = 0
        r = finished
        while r < eligible and spare >= nonzero_bytes + entry_bytes:
            fetched += row_next[r] - row_first[r]
            share = max(1, -(-fetched // (r - finished + 1)))
            while share > 0 and row_next[r] < row_first[r + 1]:
                i = row_next[r]
                size = _size(row_work, nonzero_bytes, entry_bytes, i, i + 1)
                if size > spare:
                    break
                if not has[r]:
                    whole = _size(
                        row_work, nonzero_bytes, entry_bytes, row_done[r], row_first[r + 1]
                    )
                    if state[_CSR] + state[_CSC] + whole > capacity:
                        break
                    _reserve(r, whole, row_done, row_kept, has, state)
                row_next[r] = i + 1
                spare -= size
                prefetch += size
                log, logged = _note(log, logged, s, PREFETCH, i, i + 1)
                share -= 1
                state[_HELD] += size
                state[_READY] += _work(row_work, i, i + 1)
                _push(queue, queued, state, _QUEUE_HEAD, r)
                # The column gets the entry if that is the next one of the column.
                c = row_cols[i]
                k = col_next[c]
                if k < col_first[c + 1] and col_rows[k] == r:
                    keeps = k > col_first[c]
                    if not keeps:
                        whole = _size(col_work, nonzero_bytes, entry_bytes, k, col_first[c + 1])
                        keeps = (
                            state[_CSR] + state[_CSC] + whole <= capacity
                            and state[_AHEAD] + whole <= quarter
                        )
                        if keeps:
                            state[_CSC] += whole
                            state[_AHEAD] += whole
                    if keeps:
                        col_next[c] = k + 1
            r += 1
        csr_space, csc_space, held = state[_CSR], state[_CSC], state[_HELD]

        # The IS core consumes, of what was there at the begin of the step, the oldest first.
        quota = min(ready, cycles * pes // is_features)
        consumed = 0
        while state[_QUEUE_SIZE] > 0:
            r = queue[state[_QUEUE_HEAD]]
            i = row_done[r]
            while i < row_next[r]:
                work = _work(row_work, i, i + 1)
                if consumed + work > quota:
                    break
                consumed += work
                c = row_cols[i]
                col_left[c] -= 1
                if col_left[c] == 0:
                    results += result if c < n - 1 else last_result
                    log, logged = _note(log, logged, s + 1, RESULT, c, c + 1)
                i += 1
            if i > row_done[r]:
                size = _size(row_work, nonzero_bytes, entry_bytes, row_done[r], i)
                state[_DEAD] += size
                state[_HELD] -= size
                left -= i - row_done[r]
                row_done[r] = i
                if not marked[r]:
                    marked[r] = True
                    marks[state[_MARKED]] = r
                    state[_MARKED] += 1
            # The quota ended within the row, which stays the first of the queue.
            if i < row_next[r]:
                break
            _pop(queue, queued, state, _QUEUE_HEAD)
        state[_READY] -= consumed
        if state[_DEAD] > threshold:
            _repack(
                row_first, row_work, nonzero_bytes, entry_bytes, row_done, row_kept, has, marks,
                marked, state,
            )  # fmt: skip

        table[s, 0] = cycles
        table[s, 1] = csc
        table[s, 2] = reload
        table[s, 3] = prefetch
        table[s, 4] = vector
        table[s, 5] = wrote
        table[s, 6] = csr_space
        table[s, 7] = csc_space
        table[s, 8] = held
        table[s, 9] = operations
        table[s, 10] = consumed * is_features
        table[s, 11] = state[_EVICTED]
        table[s, 12] = state[_MOVED]
        s += 1
    return table[:s], log[:logged]


def _note(log, logged, step, kind, first, last):
    """Append a request to a log that is in use, or extend the last one; return log and length."""
    if len(log) == 0 or first == last:
        return log, logged
    before = logged - 1
    if logged > 0 and log[before, 0] == step and log[before, 1] == kind:
        if log[before, 3] == first:
            log[before, 3] = last
            return log, logged
    if logged == len(log):
        longer = np.zeros((2 * logged, len(REQUEST_COLUMNS)), np.int64)
        longer[:logged] = log
        log = longer
    log[logged, 0] = step
    log[logged, 1] = kind
    log[logged, 2] = first
    log[logged, 3] = last
    return log, logged + 1


def _work(prefix, a, b):
    """Return the nonzeros of the entries from a to b."""
    return b - a if len(prefix) == 1 else prefix[b] - prefix[a]


def _size(prefix, nonzero_bytes, entry_bytes, a, b):
    """Return the bytes of the entries from a to b."""
    return _work(prefix, a, b) * nonzero_bytes + (b - a) * entry_bytes


def _push(ring, inside, state, head, r):
    """Append a row to a ring, unless it is there."""
    if not inside[r]:
        inside[r] = True
        ring[(state[head] + state[head + 1]) % len(ring)] = r
        state[head + 1] += 1


def _pop(ring, inside, state, head):
    """Remove and return the first row of a ring."""
    r = ring[state[head]]
    inside[r] = False
    state[head] = (state[head] + 1) % len(ring)
    state[head + 1] -= 1
    return r


def _reserve(r, size, row_done, row_kept, has, state):
    """Reserve the space of a row."""
    has[r] = True
    row_kept[r] = row_done[r]
    state[_CSR] += size
    if r > state[_TOP]:
        state[_TOP] = r


def _repack(
    row_first, row_work, nonzero_bytes, entry_bytes, row_done, row_kept, has, marks, marked, state
):
    """Reclaim the space of all consumed entries, and count the bytes that move for it."""
    for m in range(state[_MARKED]):
        r = marks[m]
        marked[r] = False
        if has[r]:
            state[_CSR] -= _size(row_work, nonzero_bytes, entry_bytes, row_kept[r], row_done[r])
            row_kept[r] = row_done[r]
            has[r] = row_done[r] < row_first[r + 1]
    state[_MARKED] = 0
    state[_DEAD] = 0
    state[_MOVED] += state[_HELD]


def _room(
    need, low, eligible, capacity, row_first, row_work, nonzero_bytes, entry_bytes, row_next,
    row_done, row_kept, has, marks, marked, lost, missing, state,
):  # fmt: skip
    """Make room for ``need`` bytes: by repacking, or by evicting rows from ``low``, highest first.

    Return False if there is no room nevertheless.
    """
    if state[_CSR] + state[_CSC] + need <= capacity:
        return True
    if state[_DEAD] > 0:
        _repack(
            row_first, row_work, nonzero_bytes, entry_bytes, row_done, row_kept, has, marks,
            marked, state,
        )  # fmt: skip
    while state[_CSR] + state[_CSC] + need > capacity:
        while state[_TOP] >= low and not has[state[_TOP]]:
            state[_TOP] -= 1
        r = state[_TOP]
        if r < low:
            return False
        # Nothing of the row is consumed and still kept: the buffer has just been repacked.
        size = _size(row_work, nonzero_bytes, entry_bytes, row_done[r], row_next[r])
        state[_CSR] -= _size(row_work, nonzero_bytes, entry_bytes, row_kept[r], row_first[r + 1])
        state[_HELD] -= size
        state[_EVICTED] += size
        if r < eligible and row_next[r] > row_done[r]:
            state[_READY] -= _work(row_work, row_done[r], row_next[r])
            _push(lost, missing, state, _LOST_HEAD, r)
        row_next[r] = row_done[r]
        has[r] = False
    return True
