"""Arrivals and slews of a netlist that changes a cell at a time.

``flows.asic.sta`` times a whole netlist. A sizer tries thousands of changes, and after each one
this module follows only the nets that change. The delays are those of ``flows.asic.sta``.
"""

from typing import Any, NamedTuple

import numpy as np

#: Changes of an arrival or a slew below this end there, ps.
_SMALL_PS = 0.02


class Circuit(NamedTuple):
    """A netlist and its library as arrays; the arrays change with the netlist.

    K kinds of cells with up to S pins, I instances, N nets, E ends of paths. An axis of length 2 is
    that of the edges: falling, rising. Clocks arrive when they do at the begin, whatever changes,
    and their sinks are left out.

    Attributes
    ----------
    first : (K + 1,) ndarray of int64
        The arcs of kind k are first[k] to first[k + 1] - 1.
    arcs : (A, 6) ndarray of int64
        Output pin, input pin (-1: the clock), edge at the input, edge at the output, delay table
        and slew table of each arc.
    caps : (K, S, 2) ndarray of float
        Capacitance of each input pin, fF.
    slews, loads, values, size
        The tables, as in ``flows.asic.lookup.TableSet``.
    wire : ndarray of float
        Capacitance of the wires of a net by its number of sinks, fF.
    kind, rank : (I,) ndarray of int64
        Kind of each instance, and its place in a topological order.
    pins : (I, S) ndarray of int64
        Nets of the pins of each instance, -1 without one.
    driver, slot : (N,) ndarray of int64
        Instance and pin that drive each net; driver -1 for nothing that starts a path, -2 for a
        port.
    port_ff : (N,) ndarray of float
        Load of each net at ports, fF.
    begin, count : (N,) ndarray of int64
        The sinks of net n are rows begin[n] to begin[n] + count[n] - 1 of ``sinks``.
    sinks : (P, 2) ndarray of int64
        Instance and pin of each sink.
    before : (B, 3) ndarray of int64
        Edge, delay table and slew table for each arc of the cell that drives the inputs.
    load, arrival, slew : (N, 2) ndarray of float
        Load in fF, latest arrival and largest slew in ps.
    ends : (E, 4) ndarray of int64
        Instance (-1: a port), its data pin or the port's net, and the two set-up tables or -1.
    clock : (I, 2) ndarray of float
        Arrival and slew of the clock at each instance, ps.
    """

    first: np.ndarray
    arcs: np.ndarray
    caps: np.ndarray
    slews: np.ndarray
    loads: np.ndarray
    values: np.ndarray
    size: np.ndarray
    wire: np.ndarray
    kind: np.ndarray
    rank: np.ndarray
    pins: np.ndarray
    driver: np.ndarray
    slot: np.ndarray
    port_ff: np.ndarray
    begin: np.ndarray
    count: np.ndarray
    sinks: np.ndarray
    before: np.ndarray
    load: np.ndarray
    arrival: np.ndarray
    slew: np.ndarray
    ends: np.ndarray
    clock: np.ndarray


def _look_up(c: Circuit, table: Any, slew: Any, load: Any) -> Any:
    i, j = 0, 0
    while i < c.size[table, 0] - 2 and c.slews[table, i + 1] <= slew:
        i += 1
    while j < c.size[table, 1] - 2 and c.loads[table, j + 1] <= load:
        j += 1
    x = (slew - c.slews[table, i]) / (c.slews[table, i + 1] - c.slews[table, i])
    y = (load - c.loads[table, j]) / (c.loads[table, j + 1] - c.loads[table, j])
    low = c.values[table, i, j] + x * (c.values[table, i + 1, j] - c.values[table, i, j])
    high = c.values[table, i, j + 1] + x * (
        c.values[table, i + 1, j + 1] - c.values[table, i, j + 1]
    )
    return low + y * (high - low)


def _evaluate(c: Circuit, net: int) -> None:
    """Compute load, arrival and slew of a net from what is in front of it."""
    for edge in range(2):
        load = c.port_ff[net] + c.wire[c.count[net]]
        for k in range(c.begin[net], c.begin[net] + c.count[net]):
            load += c.caps[c.kind[c.sinks[k, 0]], c.sinks[k, 1], edge]
        c.load[net, edge] = load
        c.arrival[net, edge] = -np.inf
        c.slew[net, edge] = 0.0
    inst = c.driver[net]
    if inst == -2:
        for k in range(len(c.before)):
            edge = c.before[k, 0]
            load = c.load[net, edge]
            delay = _look_up(c, c.before[k, 1], 0.0, load) - _look_up(c, c.before[k, 1], 0.0, 0.0)
            c.arrival[net, edge] = max(c.arrival[net, edge], delay)
            c.slew[net, edge] = max(c.slew[net, edge], _look_up(c, c.before[k, 2], 0.0, load))
    if inst < 0:
        return
    kind = c.kind[inst]
    for a in range(c.first[kind], c.first[kind + 1]):
        if c.arcs[a, 0] != c.slot[net]:
            continue
        start, slew = c.clock[inst, 0], c.clock[inst, 1]
        if c.arcs[a, 1] >= 0:
            source = c.pins[inst, c.arcs[a, 1]]
            if source < 0:
                continue
            start, slew = c.arrival[source, c.arcs[a, 2]], c.slew[source, c.arcs[a, 2]]
            if start == -np.inf:
                continue
        edge = c.arcs[a, 3]
        load = c.load[net, edge]
        arrival = start + _look_up(c, c.arcs[a, 4], slew, load)
        c.arrival[net, edge] = max(c.arrival[net, edge], arrival)
        c.slew[net, edge] = max(c.slew[net, edge], _look_up(c, c.arcs[a, 5], slew, load))


def follow(
    c: Circuit,
    nets: np.ndarray,
    chain: np.ndarray,
    heads: np.ndarray,
    log: np.ndarray,
    old: np.ndarray,
) -> int:
    """Compute nets again, and everything behind them that changes.

    Parameters
    ----------
    nets : ndarray of int64
        Nets whose driver or load has changed.
    chain : (N,) ndarray of int64
        Filled with -2; for the list of waiting nets.
    heads : (R,) ndarray of int64
        Filled with -1, for each rank.
    log, old : (L,) ndarray of int64, (L, 6) ndarray of float
        Receive the nets that change, and their load, arrival and slew before that.

    Returns
    -------
    int
        Number of entries of the log, or -1 if it was too short.
    """
    low, high = len(heads), 0
    for net in nets:
        rank = c.rank[c.driver[net]] if c.driver[net] >= 0 else 0
        if chain[net] == -2:
            chain[net] = heads[rank]
            heads[rank] = net
            low, high = min(low, rank), max(high, rank)
    used = 0
    rank = low
    while rank <= high:
        net = heads[rank]
        if net < 0:
            rank += 1
            continue
        heads[rank] = chain[net]
        chain[net] = -2
        if used == len(log):
            used = -1
        if used < 0:
            continue
        for edge in range(2):
            old[used, edge] = c.load[net, edge]
            old[used, 2 + edge] = c.arrival[net, edge]
            old[used, 4 + edge] = c.slew[net, edge]
        log[used] = net
        _evaluate(c, net)
        changed = False
        for edge in range(2):
            before, now = old[used, 2 + edge], c.arrival[net, edge]
            if before != now and not abs(before - now) <= _SMALL_PS:
                changed = True
            if abs(old[used, 4 + edge] - c.slew[net, edge]) > _SMALL_PS:
                changed = True
        used += 1
        if not changed:
            continue
        for k in range(c.begin[net], c.begin[net] + c.count[net]):
            inst = c.sinks[k, 0]
            kind = c.kind[inst]
            for a in range(c.first[kind], c.first[kind + 1]):
                target = c.pins[inst, c.arcs[a, 0]]
                if target >= 0 and chain[target] == -2 and c.arcs[a, 1] >= 0:
                    chain[target] = heads[c.rank[inst]]
                    heads[c.rank[inst]] = target
                    high = max(high, c.rank[inst])
    return used


def undo(c: Circuit, log: np.ndarray, old: np.ndarray, used: int) -> None:
    """Restore what ``follow`` changed."""
    for entry in range(used - 1, -1, -1):
        for edge in range(2):
            c.load[log[entry], edge] = old[entry, edge]
            c.arrival[log[entry], edge] = old[entry, 2 + edge]
            c.slew[log[entry], edge] = old[entry, 4 + edge]


def late(c: Circuit, limit: float, result: np.ndarray) -> None:
    """Write the longest path, the time of all ends beyond a limit, and the worst end.

    ``result`` receives these three, in ps; the last is 2 × end + edge.
    """
    result[0], result[1], result[2] = -np.inf, 0.0, -1.0
    for end in range(len(c.ends)):
        inst = c.ends[end, 0]
        net = c.ends[end, 1] if inst < 0 else c.pins[inst, c.ends[end, 1]]
        if net < 0:
            continue
        worst, at = -np.inf, 0
        for edge in range(2):
            time = c.arrival[net, edge]
            if time > -np.inf and c.ends[end, 2 + edge] >= 0:
                time += _look_up(c, c.ends[end, 2 + edge], c.clock[inst, 1], c.slew[net, edge])
                time -= c.clock[inst, 0]
            if time > worst:
                worst, at = time, edge
        if worst > limit:
            result[1] += worst - limit
        if worst > result[0]:
            result[0], result[2] = worst, 2.0 * end + at


def trace(c: Circuit, net: Any, edge: Any, path: np.ndarray) -> int:
    """Write the longest path to an edge of a net: (instance, input pin) of each step, last first.

    The pin is -1 for a clock.

    Returns
    -------
    int
        Number of steps, at most the length of ``path``.
    """
    used = 0
    while used < len(path) and c.driver[net] >= 0:
        inst = c.driver[net]
        path[used, 0], path[used, 1] = inst, -1
        used += 1
        kind, best, source, start = c.kind[inst], -np.inf, -1, 0
        for a in range(c.first[kind], c.first[kind + 1]):
            if c.arcs[a, 0] != c.slot[net] or c.arcs[a, 3] != edge or c.arcs[a, 1] < 0:
                continue
            before = c.pins[inst, c.arcs[a, 1]]
            if before < 0 or c.arrival[before, c.arcs[a, 2]] == -np.inf:
                continue
            time = c.arrival[before, c.arcs[a, 2]] + _look_up(
                c, c.arcs[a, 4], c.slew[before, c.arcs[a, 2]], c.load[net, edge]
            )
            if time > best:
                best, source, start = time, before, c.arcs[a, 2]
                path[used - 1, 1] = c.arcs[a, 1]
        if source < 0:
            break
        net, edge = source, start
    return used
