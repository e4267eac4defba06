"""The compiled engine; see `compiling` for when it is. Numba's cache looks at this file alone.

Instructions that use no bus need no clock: their times follow from those of others, and are found
as soon as these are known, queue by queue. Only buses are followed in the order of time. Between
two moments of the buses every time that can be known is known, so nothing can begin earlier than
the next moment. The rounding is that of `sim.davinci.timing.reference`.
"""

import math

import numpy as np

__all__ = ["match", "run"]

#: Queues of a core; number 0 (unit S) is the program queue itself.
QUEUES = 8

_SET, _WAIT, _BARRIER_ALL = 1, 2, 4

_NONE, _COMING, _MOVING = 0, 1, 2


def match(kind, flag, flags):
    """Needs of waits: the n-th wait of each flag needs its n-th set.

    Parameters
    ----------
    kind : (n,) ndarray of int8
    flag : (n,) ndarray of int64
        Number of the flag that an instruction sets or waits for; anything for the others.
    flags : int

    Returns
    -------
    need_first, need : as in `Lowered`
    """
    n = len(kind)
    count = np.zeros(flags + 1, np.int64)
    waits = 0
    for i in range(n):
        if kind[i] == _SET:
            count[flag[i] + 1] += 1
        elif kind[i] == _WAIT:
            waits += 1
    first = np.cumsum(count)
    sets = np.empty(first[flags], np.int64)
    filled = first[:-1].copy()
    for i in range(n):
        if kind[i] == _SET:
            sets[filled[flag[i]]] = i
            filled[flag[i]] += 1
    taken = first[:-1].copy()
    need_first = np.empty(n + 1, np.int64)
    need = np.empty(waits, np.int64)
    at = 0
    for i in range(n):
        need_first[i] = at
        if kind[i] == _WAIT:
            f = flag[i]
            need[at] = sets[taken[f]] if taken[f] < first[f + 1] else -1
            taken[f] += 1
            at += 1
    need_first[n] = at
    return need_first, need


def run(
    first, unit, kind, init, data, bus, rate, need_first, need, lag, begin, totals, dispatch, block
):
    """Start, end and dispatch times; −1 where it never came to that. See `Lowered`."""
    n, cores = len(unit), len(begin)
    on = unit.astype(np.int64)  # not compiled, eight bits would not do for the number of a queue
    start = np.full(n, -1, np.int64)
    end = np.full(n, -1, np.int64)
    issued = np.full(n, -1, np.int64)
    all_queues = cores * QUEUES

    # The instructions of each queue, and who waits for a set.
    queue_first = np.zeros(all_queues + 1, np.int64)
    wake_first = np.zeros(n + 1, np.int64)
    for c in range(cores):
        for i in range(first[c], first[c + 1]):
            queue_first[c * QUEUES + on[i] + 1] += 1
            for k in range(need_first[i], need_first[i + 1]):
                if need[k] >= 0:
                    wake_first[need[k] + 1] += 1
    queue_first = np.cumsum(queue_first)
    wake_first = np.cumsum(wake_first)
    order = np.empty(n, np.int64)
    wake = np.empty(wake_first[n], np.int64)
    place = queue_first[:-1].copy()
    wake_at = wake_first[:-1].copy()
    for c in range(cores):
        for i in range(first[c], first[c + 1]):
            q = c * QUEUES + on[i]
            order[place[q]] = i
            place[q] += 1
            for k in range(need_first[i], need_first[i + 1]):
                if need[k] >= 0:
                    wake[wake_at[need[k]]] = q
                    wake_at[need[k]] += 1

    head = queue_first[:-1].copy()  # next of each queue
    tail = queue_first[:-1].copy()  # one past the last that has been handed out
    free = np.empty(all_queues, np.int64)  # when a queue's last instruction ended
    for q in range(all_queues):
        free[q] = begin[q // QUEUES]
    next_ = first[:-1].copy()  # next of each program queue
    drains = np.zeros(cores, np.bool_)  # a barrier of all units waits

    # Transfers: at most one of each queue.
    state = np.zeros(all_queues, np.int8)
    when = np.zeros(all_queues, np.int64)  # when it comes to the bus, then when it ends there
    left = np.zeros(all_queues, np.float64)
    speed = np.zeros(all_queues, np.float64)
    since = np.zeros(all_queues, np.int64)
    part = np.zeros(all_queues, np.float64)  # of a block; 0 is one whose share is to be found
    live = np.empty(all_queues, np.int64)
    lives = 0
    dirty = np.zeros(len(totals), np.bool_)
    got = np.empty(all_queues, np.float64)

    stack = np.empty(all_queues, np.int64)
    inside = np.zeros(all_queues, np.bool_)
    depth = 0
    now = np.int64(-1)
    for c in range(cores):
        stack[depth] = c * QUEUES
        inside[c * QUEUES] = True
        depth += 1

    while True:
        # Whatever can be known without a clock.
        while depth:
            depth -= 1
            q = stack[depth]
            inside[q] = False
            c = q // QUEUES
            if q % QUEUES == 0:
                while next_[c] < first[c + 1]:
                    i = next_[c]
                    u = on[i]
                    if issued[i] < 0:
                        issued[i] = free[q]
                    if u != 0 and kind[i] != _BARRIER_ALL:
                        p = q + u
                        tail[p] += 1
                        if not inside[p]:
                            inside[p] = True
                            stack[depth] = p
                            depth += 1
                        free[q] += dispatch
                        next_[c] += 1
                        continue
                    start[i] = issued[i]
                    time = free[q]
                    if kind[i] == _BARRIER_ALL:
                        ready = True
                        for p in range(q + 1, q + QUEUES):
                            if head[p] < tail[p]:
                                ready = False
                            elif free[p] > time:
                                time = free[p]
                        drains[c] = not ready
                        if not ready:
                            break
                    elif kind[i] == _WAIT:
                        ready = True
                        for k in range(need_first[i], need_first[i + 1]):
                            j = need[k]
                            if j < 0 or end[j] < 0:
                                ready = False
                            elif end[j] + lag[i] > time:
                                time = end[j] + lag[i]
                        if not ready:
                            break
                    end[i] = time + init[i]
                    free[q] = end[i]
                    next_[c] += 1
                    if kind[i] == _SET:
                        for k in range(wake_first[i], wake_first[i + 1]):
                            p = wake[k]
                            if not inside[p] and p != q:
                                inside[p] = True
                                stack[depth] = p
                                depth += 1
                continue
            while head[q] < tail[q] and state[q] == _NONE:
                i = order[head[q]]
                time = free[q] if free[q] > issued[i] else issued[i]
                start[i] = time
                if kind[i] == _WAIT:
                    ready = True
                    for k in range(need_first[i], need_first[i + 1]):
                        j = need[k]
                        if j < 0 or end[j] < 0:
                            ready = False
                        elif end[j] + lag[i] > time:
                            time = end[j] + lag[i]
                    if not ready:
                        break
                time += init[i]
                if bus[i] >= 0:
                    state[q] = _COMING
                    when[q] = time
                    at = lives
                    while at > 0 and live[at - 1] > q:
                        live[at] = live[at - 1]
                        at -= 1
                    live[at] = q
                    lives += 1
                    break
                end[i] = time
                free[q] = time
                head[q] += 1
                if kind[i] == _SET:
                    for k in range(wake_first[i], wake_first[i + 1]):
                        p = wake[k]
                        if not inside[p] and p != q:
                            inside[p] = True
                            stack[depth] = p
                            depth += 1
            if drains[c] and head[q] == tail[q] and not inside[c * QUEUES]:
                inside[c * QUEUES] = True
                stack[depth] = c * QUEUES
                depth += 1

        # Transfers that come to their bus at this moment, then the shares of all that has changed.
        for k in range(lives):
            q = live[k]
            if state[q] == _COMING and when[q] == now:
                i = order[head[q]]
                state[q] = _MOVING
                left[q] = data[i]
                since[q] = now
                part[q] = 0.0
                dirty[bus[i]] = True
        for b in range(len(totals)):
            if not dirty[b]:
                continue
            dirty[b] = False
            active = 0
            for k in range(lives):
                q = live[k]
                if state[q] == _MOVING and bus[order[head[q]]] == b:
                    if not block:
                        rest = left[q] - (now - since[q]) * speed[q]
                        left[q] = rest if rest > 0.0 else 0.0
                        since[q] = now
                    active += 1
            if active == 0:
                continue
            # Equal parts; what a slow one leaves goes to the others.
            spare = totals[b, min(active, totals.shape[1]) - 1]
            open_ = active
            for k in range(lives):
                got[live[k]] = -1.0
            while open_:
                share = spare / open_
                fixed = 0
                for k in range(lives):
                    q = live[k]
                    i = order[head[q]]
                    if state[q] == _MOVING and bus[i] == b and got[q] < 0.0 and rate[i] <= share:
                        got[q] = rate[i]
                        fixed += 1
                        spare -= rate[i]
                if fixed == 0:
                    for k in range(lives):
                        q = live[k]
                        if state[q] == _MOVING and bus[order[head[q]]] == b and got[q] < 0.0:
                            got[q] = share
                    break
                open_ -= fixed
            for k in range(lives):
                q = live[k]
                i = order[head[q]]
                if state[q] != _MOVING or bus[i] != b:
                    continue
                if not block:
                    speed[q] = got[q] / rate[i]
                    when[q] = now + np.int64(math.ceil(left[q] / speed[q]))
                elif part[q] == 0.0:
                    speed[q] = got[q] / rate[i]
                    whole = math.ceil(block / rate[i])
                    part[q] = whole if whole < left[q] else left[q]
                    when[q] = now + np.int64(math.ceil(part[q] / speed[q]))

        # The next moment of the buses, and what ends at it.
        if lives == 0:
            return start, end, issued
        now = when[live[0]]
        for k in range(1, lives):
            if when[live[k]] < now:
                now = when[live[k]]
        kept = 0
        for k in range(lives):
            q = live[k]
            if when[q] == now and state[q] == _MOVING:
                i = order[head[q]]
                dirty[bus[i]] = True
                if block and left[q] > part[q]:
                    left[q] -= part[q]
                    part[q] = 0.0
                else:
                    state[q] = _NONE
                    end[i] = now
                    free[q] = now
                    head[q] += 1
                    inside[q] = True
                    stack[depth] = q
                    depth += 1
                    continue
            live[kept] = q
            kept += 1
        lives = kept
