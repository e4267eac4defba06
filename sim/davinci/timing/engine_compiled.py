"""The compiled engine: the times of ``sim.davinci.timing.reference``, bit for bit.

Instructions that use no bus need no clock: their times follow from those of others, and the engine
computes them as soon as these are known, queue by queue. Only the events on buses are processed in
order of time. Between two such events every time that can be known is known, so nothing can start
before the next event. The rounding is that of the reference.

``compiling`` decides whether the loops run compiled or as plain Python. Numba's cache notices
changes of this file alone, so the loops must not depend on other modules.
"""

import math

import numpy as np

from vitruvian.common.compiling import allocates_nothing

#: Queues of a core; number 0 (unit S) is the program queue itself.
QUEUES = 8

# Kinds of instructions, as in ``sim.davinci.isa.instruction``.
_NORMAL, _SET, _WAIT, _BARRIER_ALL = 0, 1, 2, 4

# Words of a block of the program.
_WORDS = 4

# Phases of a queue's transfer: none, in its initialisation, on the bus.
_IDLE, _COMING, _MOVING = 0, 1, 2


@allocates_nothing
def run(program, state):
    """Compute the start, end and issue time of each instruction into ``state``.

    It is compiled without the counts of references that Numba keeps for a function's arrays, and a
    queue's state is in local variables: 1.15 to 1.25 times the rate.

    Parameters
    ----------
    program : Instructions
    state : State
        As ``state_before`` returns it.
    """
    first, unit, kind, init = program.first, program.unit, program.kind, program.init
    data, drain, bus, rate = program.data, program.drain, program.bus, program.rate
    need_first, need, lag, begin = program.need_first, program.need, program.lag, program.begin
    totals, dispatch, gang, places = program.totals, program.dispatch, program.gang, program.places
    handover, producer, posted = program.handover, program.producer, program.posted
    word_at, word_count, word_cycle = program.word_at, program.word_count, program.word_cycle
    turn, prepare, room, room_lag = program.turn, program.prepare, program.room, program.room_lag
    word_base = program.word_base
    arrive, demand = program.arrive, program.demand
    order, wake_first, wake, block = program.order, program.wake_first, program.wake, program.block
    gang_first, gang_cores = program.gang_first, program.gang_cores
    start, end, issued, head = state.start, state.end, state.issued, state.head
    tail, free, queue_drained_at, drained_at = (
        state.tail,
        state.free,
        state.queue_drained_at,
        state.drained_at,
    )
    following, taken, last_taken, stuck = (
        state.following,
        state.taken,
        state.last_taken,
        state.stuck,
    )
    handed, spent, drains, phase = state.handed, state.spent, state.drains, state.phase
    when, left, speed, since = state.when, state.left, state.speed, state.since
    part, live, dirty, member = state.part, state.live, state.dirty, state.member
    limit, share, pace, stack = state.limit, state.share, state.pace, state.stack
    inside, begun, present, unfinished = state.inside, state.begun, state.present, state.unfinished
    ended, over = state.ended, state.over
    cores = len(begin)
    interlocked, worded = len(producer) > 0, len(prepare) > 0
    lives = depth = presents = overs = 0  # entries of ``live``, ``stack``, ``present``, ``over``
    gangs = len(unfinished)
    released = gangs if gangs < places or places == 0 else places
    # Gangs numbered below ``places`` begin at once, and each of the others when a gang has ended.
    for c in range(cores):
        if gang[c] < released:
            begun[c] = True
            present[presents] = c
            presents += 1
            depth = _push(stack, inside, depth, c * QUEUES)

    # Before the first event. No transfer arrives at −1, so that the first round only starts queues.
    now = np.int64(-1)
    while True:
        # Everything that can be known without the clock.
        while depth:
            depth -= 1
            q = stack[depth]
            inside[q] = False
            c = q // QUEUES
            if not begun[c]:  # a flag between cores can wake a core that has not begun
                continue
            if q % QUEUES == 0:
                # A program queue issues instructions; it executes scalar ones and barriers itself.
                stop = first[c + 1]
                while following[c] < stop:
                    i = following[c]
                    u = int(unit[i])
                    if worded and u != 0 and kind[i] != _BARRIER_ALL:
                        # The words of an instruction need room in the queue of its unit; the last
                        # one's comes last.
                        count, base = word_count[i], word_base[i]
                        last = room[base + count - 1]
                        stuck[c] = last >= 0 and taken[last] < 0
                        if stuck[c]:
                            break
                        time = free[q]
                        for k in range(count):
                            if room[base + k] >= 0:
                                least = taken[room[base + k]] + room_lag[base + k]
                            else:
                                least = time
                            time = _hand(time, least, word_at[i] + k, 1, word_cycle, turn, spent, c)
                        free[q] = handed[c] = time
                        issued[i] = time + arrive
                    # A barrier or wait that cannot end yet is tried again, but was issued at its
                    # first try.
                    if issued[i] < 0:
                        issued[i] = free[q]
                        if worded:
                            time, count = free[q], word_count[i]
                            time = _hand(time, time, word_at[i], count, word_cycle, turn, spent, c)
                            handed[c] = time
                            # A scalar instruction passes the queue of S. The dispatcher carries a
                            # barrier out itself, while its word waits.
                            barrier = kind[i] == _BARRIER_ALL
                            free[q] = time - word_cycle if barrier else time + word_cycle
                    if u != 0 and kind[i] != _BARRIER_ALL:
                        tail[q + u] += 1
                        p = q + u  # as in ``_push``; see above
                        if not inside[p]:
                            inside[p] = True
                            stack[depth] = p
                            depth += 1
                        free[q] += dispatch
                        following[c] += 1
                        continue
                    time = free[q]
                    start[i] = time
                    if kind[i] == _BARRIER_ALL:
                        time = _drained(head, tail, free, queue_drained_at, q, time)
                        drains[c] = time < 0
                    elif kind[i] == _WAIT:
                        time = _ready(need_first, need, end, lag, i, time)
                    if time < 0:
                        break
                    end[i] = time + init[i]
                    free[q] = end[i]
                    if worded and kind[i] == _BARRIER_ALL:
                        handed[c] = _hand(
                            end[i] - word_cycle, end[i], word_at[i], 1, word_cycle, turn, spent, c
                        )
                    following[c] += 1
                    if kind[i] == _SET:
                        depth = _wake(wake_first, wake, stack, inside, depth, i, q)
                continue
            # The state of the queue is kept in local variables, since stores to arrays might change
            # those that are loaded again.
            at, stop, now_free, now_drained = head[q], tail[q], free[q], queue_drained_at[q]
            if phase[q] != _IDLE:
                stop = at
            while at < stop:
                i = order[at]
                what = kind[i]
                # With words, a queue waits for a flag while its unit still works.
                early = worded and what == _WAIT
                time = issued[i]
                if now_free > time and not early:
                    time = now_free
                if worded and last_taken[q] >= 0 and last_taken[q] + prepare[i] > time:
                    time = last_taken[q] + prepare[i]
                # A set or barrier starts when the results of all earlier instructions are there.
                if what == _NORMAL:
                    if interlocked and producer[i] >= 0 and drained_at[producer[i]] > time:
                        time = drained_at[producer[i]]
                elif what != _WAIT and now_drained > time and not posted[i]:
                    time = now_drained
                start[i] = time
                if what == _WAIT:
                    time = _ready(need_first, need, end, lag, i, time)
                    if time < 0:
                        break
                if worded:
                    last_taken[q] = time
                    taken[i] = time if time > now_free else now_free
                    if stuck[c]:
                        depth = _push(stack, inside, depth, c * QUEUES)
                time += init[i]
                if bus[i] >= 0:
                    phase[q] = _COMING
                    when[q] = time
                    lives = _insert(live, lives, q)
                    break
                end[i] = time
                if not early or time > now_free:
                    now_free = time
                at += 1
                if what == _NORMAL:
                    if time + drain[i] > now_drained:
                        now_drained = time + drain[i]
                    if interlocked:
                        drained_at[i] = now_drained
                elif what == _SET:
                    if now_drained > time and posted[i]:
                        end[i] = now_drained
                    depth = _wake(wake_first, wake, stack, inside, depth, i, q)
            head[q], free[q], queue_drained_at[q] = at, now_free, now_drained
            if drains[c] and head[q] == tail[q]:
                depth = _push(stack, inside, depth, c * QUEUES)

        # Gangs that end now, and those that take their places. The end of a gang is known when all
        # of its queues are empty, and may be still to come.
        if released < gangs:
            kept = 0
            for k in range(presents):
                c = present[k]
                time = _ended(following, first, head, tail, free, queue_drained_at, c)
                if time < 0:
                    present[kept] = c
                    kept += 1
                    continue
                g = gang[c]
                unfinished[g] -= 1
                if time > ended[g]:
                    ended[g] = time
                if unfinished[g] == 0:
                    over[overs] = g
                    overs += 1
            presents = kept
            kept = 0
            for k in range(overs):
                g = over[k]
                if ended[g] > now or released == gangs:
                    over[kept] = g
                    kept += 1
                    continue
                for m in range(gang_first[released], gang_first[released + 1]):
                    c = gang_cores[m]
                    begun[c] = True
                    present[presents] = c
                    presents += 1
                    for q in range(c * QUEUES, (c + 1) * QUEUES):
                        free[q] = ended[g] + handover
                        queue_drained_at[q] = free[q]
                    depth = _push(stack, inside, depth, c * QUEUES)
                released += 1
            overs = kept
            if depth:
                continue

        # Transfers that arrive at their bus now, then the shares of all buses with a change.
        for k in range(lives):
            q = live[k]
            if phase[q] == _COMING and when[q] == now:
                i = order[head[q]]
                phase[q] = _MOVING
                left[q] = data[i]
                since[q] = now
                part[q] = 0.0
                dirty[bus[i]] = True
        for b in range(len(totals)):
            if not dirty[b]:
                continue
            dirty[b] = False
            # Collect the transfers on bus b and their rates; see eq. 2.6 for the remaining time.
            active = 0
            for k in range(lives):
                q = live[k]
                i = order[head[q]]
                if phase[q] == _MOVING and bus[i] == b:
                    if not block:
                        rest = left[q] - (now - since[q]) * speed[q]
                        left[q] = rest if rest > 0.0 else 0.0
                        since[q] = now
                    member[active] = q
                    limit[active] = rate[i]
                    active += 1
            if active == 0:
                continue
            # Share the bus with the operations of ``reference.shares``: each transfer gets an equal
            # part, and what a slow one cannot use goes to the others.
            # The last column holds for all larger numbers of transfers.
            spare = totals[b, min(active, totals.shape[1]) - 1]
            for k in range(active):
                share[k] = -1.0
            unshared = active
            if demand.shape[1]:  # a memory with several ports
                _share_ports(demand, order, head, member, limit, share, pace, active)
                unshared = 0
            while unshared:
                equal = spare / unshared
                fixed = 0
                for k in range(active):
                    if share[k] < 0.0 and limit[k] <= equal:
                        share[k] = limit[k]
                        fixed += 1
                        spare -= limit[k]
                if fixed == 0:
                    for k in range(active):
                        if share[k] < 0.0:
                            share[k] = equal
                    break
                unshared -= fixed
            for k in range(active):
                q = member[k]
                if not block:
                    speed[q] = share[k] / limit[k]
                    when[q] = now + np.int64(math.ceil(left[q] / speed[q]))
                # A share holds for a whole block, so that only transfers between two blocks get a
                # new one.
                elif part[q] == 0.0:
                    speed[q] = share[k] / limit[k]
                    # The last block of a transfer is shorter.
                    whole = math.ceil(block / limit[k])
                    part[q] = whole if whole < left[q] else left[q]
                    when[q] = now + np.int64(math.ceil(part[q] / speed[q]))

        # The next event of the buses, and the transfers and blocks that end at it.
        if lives:
            now = _next_event(when, live, lives)
            if released < gangs and overs:
                time = _next_event(ended, over, overs)
                if time < now:
                    now = time
        elif released < gangs and overs:
            now = _next_event(ended, over, overs)
        else:
            return
        kept = 0
        for k in range(lives):
            q = live[k]
            if when[q] == now and phase[q] == _MOVING:
                i = order[head[q]]
                dirty[bus[i]] = True
                # Another block follows, whose share is computed with those of the others.
                if block and left[q] > part[q]:
                    left[q] -= part[q]
                    part[q] = 0.0
                else:
                    phase[q] = _IDLE
                    end[i] = now
                    free[q] = now
                    if now + drain[i] > queue_drained_at[q]:
                        queue_drained_at[q] = now + drain[i]
                    if interlocked:
                        drained_at[i] = queue_drained_at[q]
                    head[q] += 1
                    inside[q] = True
                    stack[depth] = q
                    depth += 1
                    continue
            live[kept] = q
            kept += 1
        lives = kept


def _share_ports(demand, order, head, member, limit, share, pace, active):
    """Share the ports of a memory with the operations of ``reference.port_shares``.

    ``pace`` is the part of its full speed that each port leaves to a transfer.
    """
    ports = demand.shape[1]
    for k in range(active):
        for p in range(ports):
            pace[k, p] = 1.0
    for _ in range(2):
        for p in range(ports):
            spare = 1.0
            unshared = 0
            for k in range(active):
                share[k] = 0.0
                if demand[order[head[member[k]]], p] > 0.0:
                    share[k] = -1.0
                    unshared += 1
            while unshared:
                equal = spare / unshared
                fixed = 0
                for k in range(active):
                    if share[k] >= 0.0:
                        continue
                    need = 1.0
                    for other in range(ports):
                        if other != p and pace[k, other] < need:
                            need = pace[k, other]
                    need *= demand[order[head[member[k]]], p]
                    if need <= equal:
                        share[k] = need
                        spare -= need
                        fixed += 1
                if fixed == 0:
                    for k in range(active):
                        if share[k] < 0.0:
                            share[k] = equal
                    break
                unshared -= fixed
            for k in range(active):
                need = demand[order[head[member[k]]], p]
                if need > 0.0:
                    pace[k, p] = min(share[k] / need, 1.0)
    for k in range(active):
        least = 1.0
        for p in range(ports):
            if pace[k, p] < least:
                least = pace[k, p]
        share[k] = least * limit[k]


def _push(stack, inside, depth, q):
    """Put a queue on the worklist unless it is there; return the length of the worklist."""
    if not inside[q]:
        inside[q] = True
        stack[depth] = q
        depth += 1
    return depth


def _wake(wake_first, wake, stack, inside, depth, i, q):
    """Put the queues that wait for set i on the worklist; the set's own queue q runs already."""
    for k in range(wake_first[i], wake_first[i + 1]):
        p = wake[k]
        if p != q and not inside[p]:
            inside[p] = True
            stack[depth] = p
            depth += 1
    return depth


def _ready(need_first, need, end, lag, i, time):
    """Return the later of ``time`` and when wait i sees its last set; −1 if not known yet."""
    for k in range(need_first[i], need_first[i + 1]):
        j = need[k]
        if j < 0 or end[j] < 0:
            return -1
        if end[j] + lag[i] > time:
            time = end[j] + lag[i]
    return time


def _hand(time, least, at, count, cycle, turn, spent, c):
    """Hand words over, the last one at ``least`` at the earliest; return its time.

    A place for a block is free when the last word of an earlier one has been handed over, and then
    has the first word of the next one after a turn.
    """
    blocks = spent.shape[1]
    for word in range(at, at + count):
        time += cycle
        block = word // _WORDS
        if word % _WORDS == 0 and block >= blocks and spent[c, block % blocks] + turn > time:
            time = spent[c, block % blocks] + turn
        if word == at + count - 1 and least > time:
            time = least
        if word % _WORDS == _WORDS - 1:
            spent[c, block % blocks] = time
    return time


def _drained(head, tail, free, queue_drained_at, q, time):
    """Return the later of ``time`` and the end of all that queue q has issued; −1 if not known."""
    for u in range(q + 1, q + QUEUES):
        if head[u] < tail[u]:
            return -1
        if free[u] > time:
            time = free[u]
        if queue_drained_at[u] > time:
            time = queue_drained_at[u]
    return time


def _ended(following, first, head, tail, free, queue_drained_at, c):
    """Return the time at which core c has executed all its instructions; −1 if not known."""
    if following[c] < first[c + 1]:
        return -1
    q = c * QUEUES
    return _drained(head, tail, free, queue_drained_at, q, free[q])


def _insert(live, lives, q):
    """Insert a queue into the ascending list of those with a transfer; return its length.

    The order matters for the results, since the shares of a bus are rounded sums.
    """
    at = lives
    while at > 0 and live[at - 1] > q:
        live[at] = live[at - 1]
        at -= 1
    live[at] = q
    return lives + 1


def _next_event(when, live, lives):
    """Return the earliest time of the queues or gangs in a list."""
    time = when[live[0]]
    for k in range(1, lives):
        if when[live[k]] < time:
            time = when[live[k]]
    return time
