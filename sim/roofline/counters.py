"""Counters of an operator: the work and the active time of each component.

They come from a report of the simulator (``counters_of``) or from a file (``profile``).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO, Chip
from vitruvian.sim.davinci.chip.parts import Route
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.report.busy import active_time, union_time
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.report.work import counted, moved_bytes
from vitruvian.sim.roofline.components import (
    SCALAR,
    Component,
    bus_component,
    components_of,
    fast_operations,
    lane_item,
)

#: The two definitions of a component's active time; see ``counters_of``.
ACTIVE = ("busy", "queue")


@dataclass(frozen=True)
class Count:
    """The counters of one component.

    Attributes
    ----------
    component : Component
    work : mapping of str to float
        Operations by precision, or bytes by path.
    active_s : float
        Seconds during which the component worked.
    """

    component: Component
    work: Mapping[str, float]
    active_s: float


@dataclass(frozen=True)
class Counters:
    """The counters of one operator.

    Attributes
    ----------
    name : str
        Name of the operator.
    chip : str
        Name of the chip.
    scope : str
        The cores that are counted, such as "aicore 0" or "32 of aicore".
    total_s : float
        Seconds that the operator took, without its launch.
    counts : sequence of Count
        The components that had work, in the order of the units; buses follow.
    resolution_s : float
        Seconds by which each time may differ from the exact one, because a file holds few digits.
    lacks : str
        The counters that the file does not have, in one line; "" if they come from a report.
    """

    name: str
    chip: str
    scope: str
    total_s: float
    counts: Sequence[Count]
    resolution_s: float = 0.0
    lacks: str = ""


def counters_of(
    report: Report, core: str = "busiest", *, active: str = "busy", buses: bool = True
) -> Counters:
    """Count the work and the active time of each component of a simulated program.

    The total time lasts from the end of the launch until the results of the last instruction are
    there.

    Parameters
    ----------
    core : str
        The core to count, such as "aicore 0"; "busiest" for the one whose busiest unit works
        longest; or "all" for the sum over all cores of the kind of the busiest one. If blocks run
        in rounds, the counters of a core are those of all its blocks, and the name of a block
        stands for its core.
    active : {"busy", "queue"}
        The active time of a component: the time during which it executes instructions, from the
        start of one until its results are there, as ``Report.units`` has it; or the time during
        which its queue holds any. Waits count only in the second case. A profiler reports
        the first one. In the simulator queues have no limit, so that a queue is hardly ever empty
        before its last instruction has ended, and the second one says little.
    buses : bool
        If True, also count each bus that several units use.

    Returns
    -------
    Counters

    Raises
    ------
    ValueError
        If the core is unknown, or the program has no instructions.
    """
    if active not in ACTIVE:
        raise ValueError(f"active must be one of {', '.join(ACTIVE)}, not {active!r}")
    if not report.times.total:
        raise ValueError(f"report must have instructions that take time, not {report.name!r}")
    chosen = _choose(report, core)
    kind = report.streams[chosen[0][0]].kind
    parts = [c for blocks in chosen for c in blocks]
    lowered, times = report.lowered, report.times
    total = times.total - int(lowered.begin.min())
    components = components_of(report.chip, kind, len(chosen))
    fast = fast_operations(report.chip)
    # A bus carries the transfers of all cores, whichever of them is analysed.
    counted = range(len(report.streams)) if buses else parts
    tallies = {c: _tally(report.chip, report.streams[c].instructions, fast) for c in counted}
    work = _work(report.chip, (tallies[c] for c in parts))
    counts = []
    for unit in Unit:
        if unit.name not in components:
            continue
        time = active_time(lowered, times, unit, parts, queue=active == "queue")
        if time or work[unit]:
            counts.append(Count(components[unit.name], dict(work[unit]), time / ATTO))
    if buses:
        counts += _buses(report, tallies.values())
    scope = core if core != "busiest" else str(report.streams[chosen[0][0]])
    if core != "all" and len(parts) > 1:
        scope = f"{scope} and {len(parts) - 1} other blocks of its core"
    elif core == "all":
        scope = f"{len(chosen)} of {kind}"
    return Counters(report.name, report.chip.name, scope, total / ATTO, counts)


def _choose(report: Report, core: str) -> list[list[int]]:
    """Return the cores that ``counters_of`` counts, each as the indices of its streams."""
    streams, cores = report.streams, report.cores()
    names = [str(stream) for stream in streams]
    if core in names:
        return [next(c for c in cores if names.index(core) in c)]
    if core not in ("busiest", "all"):
        allowed = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        raise ValueError(f"core must be busiest, all or one of {allowed}, not {core!r}")
    busiest = max(
        cores, key=lambda c: max(active_time(report.lowered, report.times, u, c) for u in Unit)
    )
    if core == "busiest":
        return [busiest]
    return [c for c in cores if streams[c[0]].kind == streams[busiest[0]].kind]


#: The work of some instructions: for each unit, amounts by (path, operation) of a transfer, or by
#: (item, "") of a computation.
_Tally = list[dict[tuple[str, str], float]]


def _tally(chip: Chip, program: Sequence[Instruction], fast: frozenset[str]) -> _Tally:
    """Add up the work of a core's instructions.

    The loop runs over millions of instructions, so it looks up no paths and hashes no enums.
    """
    found: _Tally = [defaultdict(float) for _ in Unit]
    # Paths whose time and bus depend on the bytes written, which a conversion makes fewer.
    written = {f"{r.source}->{r.target}" for r in chip.routes.values() if r.counts_written}
    for instr, times in counted(program):
        unit, amount = instr.unit, instr.work
        if instr.path:
            if nbytes := moved_bytes(instr):
                if instr.path in written:
                    nbytes = sum(span.nbytes for span in instr.writes)
                found[unit][instr.path, instr.op] += times * nbytes
        elif amount.operations:
            item = amount.precision
            if instr.op in fast:
                item = _fast_item(chip, instr)
            found[unit][item, ""] += times * amount.operations
        elif unit == Unit.S and instr.kind == Kind.NORMAL:
            cycles = instr.fields.get("cycles") if instr.op == "scalar" else None
            found[unit][SCALAR, ""] += times * (1 if cycles is None else cycles)
    return found


def _fast_item(chip: Chip, instr: Instruction) -> str:
    """Return the item of an operation that the chip executes faster than others."""
    dtypes = {name: view.dtype for name, view in instr.operands.items()}
    result = dtypes.get("dst", "")
    first = next((dtypes[x] for x in ("src0", "src", "a") if x in dtypes), result)
    return lane_item(chip, instr.op, first, result, instr.work.precision)


def _route(chip: Chip, path: str, operation: str) -> Route:
    source, target = path.split("->")
    return chip.route(source, target, operation)


def _work(chip: Chip, tallies: Iterable[_Tally]) -> list[dict[str, float]]:
    """Return the work of each unit by item, over some cores."""
    work: list[dict[str, float]] = [defaultdict(float) for _ in Unit]
    for tally in tallies:
        for unit, amounts in zip(Unit, tally, strict=True):
            for (name, operation), amount in amounts.items():
                item = _route(chip, name, operation).name if operation else name
                work[unit][item] += amount
    return work


def _buses(report: Report, tallies: Iterable[_Tally]) -> list[Count]:
    """Return the counters of the bus that transfers of several units share."""
    lowered, times = report.lowered, report.times
    core_of = np.repeat(np.arange(len(report.streams)), np.diff(lowered.first))
    by_bus = defaultdict(lambda: defaultdict(float))
    for tally in tallies:
        for amounts in tally:
            for (name, operation), amount in amounts.items():
                route = _route(report.chip, name, operation) if operation else None
                if route is not None and route.bus is not None:
                    by_bus[route.bus][route.name] += amount
    # The lowered arrays number the buses without their names, so one bus alone can be told apart.
    if len(by_bus) != 1 or any(report.chip.buses[name].per_core for name in by_bus):
        return []
    (name,) = by_bus
    on_bus = lowered.bus >= 0
    # A bus that one unit uses says nothing that the unit does not say.
    users = len(np.unique(core_of[on_bus] * len(Unit) + lowered.unit[on_bus]))
    if users < 2:
        return []
    active = union_time(times.start[on_bus], times.end[on_bus])
    component = bus_component(report.chip.buses[name], users, by_bus[name])
    return [Count(component, dict(by_bus[name]), active / ATTO)]
