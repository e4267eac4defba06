"""The equations of the performance model in Tang 2024, chapter 2, as printed.

They state independently what the engines compute for simple programs: no scalar work, no barriers,
and only the two cases of contention of Fig. 2.9. Numbers are exact rationals; times are in seconds
and sizes in bytes.

The code departs from the printed text in four points:

- A wait ends at max(previous event of its unit, its set), not simply at its set (Alg. 2 line 10).
  Otherwise time could run backwards. Fig. 2.8 agrees.
- Initialisation passes before the bus is used. Eq. 2.6 as printed spreads it over the transfer and
  drops its remainder at the first change; ``finish`` takes P as the time on the bus alone.
- An operation may leave its unit before its results are there. A set then also waits for these
  (``Event.drain``), as the programming manuals of later chips state it.
- N_max of eq. 2.14 can be negative as printed; here it is limited to 1 … N.
"""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.program.program import Core


@dataclass(frozen=True)
class Event:
    """An event E of Table 2.2: an instruction on a unit.

    Attributes
    ----------
    unit : Unit
    period : Fraction
        The period P of a normal operation in seconds; 0 for a set or a wait.
    flag : tuple (u_a, u_b, r) or None
        The flag of a set or a wait; None for a normal operation.
    sign : int
        1 for a set, −1 for a wait, 0 for a normal operation.
    drain : Fraction
        The seconds from the end of a normal operation until its results are there, which a set
        waits for; 0 in the paper.
    """

    unit: Unit
    period: Fraction = Fraction(0)
    flag: tuple[Unit, Unit, int] | None = None
    sign: int = 0
    drain: Fraction = Fraction(0)


def static_period(chip: Chip, instr: Instruction) -> Fraction:
    """Return the seconds of an instruction that runs alone, P = Ds / Th + Init (Alg. 2 line 4)."""
    work = instr.work
    if instr.path:
        source, target = instr.path.split("->")
        route = chip.route(source, target, instr.op)
        if route.issue_s is not None:
            return sum(route.seconds(work.nbytes, work.repeats)[:2], Fraction(0))
        return route.init_s + route.latency_s + work.nbytes / route.rate.bytes_per_s
    if instr.unit == Unit.M:
        assert chip.cube is not None
        return work.repeats * chip.cube.step_s + chip.cube.init_s
    lane = chip.vector.get(instr.op, chip.vector[""])
    return lane.init_s + lane.latency_s + max(work.repeats * lane.repeat_s, lane.start_s)


def static_drain(chip: Chip, instr: Instruction) -> Fraction:
    """Return the seconds from the end of an instruction until its results are there."""
    if instr.path:
        source, target = instr.path.split("->")
        route = chip.route(source, target, instr.op)
        return route.seconds(instr.work.nbytes, instr.work.repeats)[2]
    if instr.unit == Unit.M:
        return Fraction(0)
    return chip.vector.get(instr.op, chip.vector[""]).drain_s


def events_of(core: Core) -> list[Event]:
    """Return the instructions of a core as events, in program order.

    Raises
    ------
    ValueError
        If the program contains scalar work or barriers, which the model does not cover.
    """
    events = []
    for instr in core.instructions:
        if instr.kind in (Kind.SET, Kind.WAIT):
            f = instr.fields
            flag = (f["source"], f["target"], f["register"])
            events.append(Event(instr.unit, flag=flag, sign=1 if instr.kind == Kind.SET else -1))
        elif instr.kind == Kind.NORMAL and instr.unit != Unit.S:
            period, drain = static_period(core.chip, instr), static_drain(core.chip, instr)
            events.append(Event(instr.unit, period, drain=drain))
        else:
            raise ValueError(f"instruction must run on one of the model's units, not {instr}")
    return events


def main_procedure(events: list[Event], t_kernel: Fraction) -> list[Fraction]:
    """Return the time T at which each event ends ("dies"), without contention, in seconds (Alg. 2).

    Parameters
    ----------
    events : list of Event
        The events of one core in program order.
    t_kernel : Fraction
        The time at which the kernel starts, in seconds.

    Raises
    ------
    ValueError
        If a wait never ends.
    """
    queues: dict[Unit, list[int]] = defaultdict(list)
    sets: dict[tuple, list[int]] = defaultdict(list)  # S of eq. 2.1
    waits: dict[tuple, list[int]] = defaultdict(list)  # W of eq. 2.2
    for i, event in enumerate(events):
        queues[event.unit].append(i)
        if event.flag is not None:
            (sets if event.sign > 0 else waits)[event.flag].append(i)
    partner = {}  # eq. 2.3: the order of a wait in W is that of its set in S
    for flag, ws in waits.items():
        partner |= dict(zip(ws, sets[flag], strict=False))
    times: dict[int, Fraction] = {}
    while len(times) < len(events):
        before = len(times)
        for queue in queues.values():
            last = drained_at = t_kernel
            for i in queue:
                event = events[i]
                if i not in times:
                    if event.sign < 0:
                        if partner.get(i) not in times:
                            break
                        times[i] = max(last, times[partner[i]])
                    elif event.sign > 0:
                        times[i] = max(last, drained_at)
                    else:
                        times[i] = last + event.period
                last = times[i]
                drained_at = max(drained_at, last + event.drain)
        if len(times) == before:
            raise ValueError(
                "every wait must have a set that is reached: this program stands still"
            )
    return [times[i] for i in range(len(events))]


def left_after(size: Fraction, end: Fraction, now: Fraction, period: Fraction) -> Fraction:
    """Return the bytes left at ``now`` of a transfer that would end at ``end`` (eq. 2.6).

    Parameters
    ----------
    size : Fraction
        Bytes of the transfer at the start of the period.
    end, now : Fraction
        Times in seconds.
    period : Fraction
        Seconds that the transfer takes at its present share.
    """
    return size * (end - now) / period


def finish(now: Fraction, left: Fraction, throughput: Fraction) -> Fraction:
    """Return the time at which a transfer ends if its share of the bus changes (eq. 2.7).

    The remaining bytes move at the new throughput.
    """
    return now + left / throughput


def overlapping(
    first: tuple[Fraction, Fraction],
    second: tuple[Fraction, Fraction],
    alone: Fraction,
    both: Fraction,
) -> tuple[Fraction, Fraction]:
    """Return the ends of two transfers on one bus by equations 2.6 and 2.7 (Fig. 2.9).

    Parameters
    ----------
    first, second : (Fraction, Fraction)
        The arrival time at the bus and the bytes of each transfer. The second does not arrive
        before the first.
    alone, both : Fraction
        Bytes per second of one transfer alone, and of both together.
    """
    (t1, size1), (t2, size2) = first, second
    end1 = t1 + size1 / alone
    if end1 <= t2:
        return end1, t2 + size2 / alone
    half = both / 2
    left1 = left_after(size1, end1, t2, size1 / alone)  # contention begins at t2
    end1, end2 = finish(t2, left1, half), finish(t2, size2, half)
    if end1 <= end2:  # case (a): each suffers one change
        left2 = left_after(size2, end2, end1, size2 / half)
        return end1, finish(end1, left2, alone)
    left1 = left_after(left1, end1, end2, left1 / half)  # case (b): the first suffers two
    return finish(end2, left1, alone), end2


def contention_times(
    extended: Fraction, fixed: Fraction, stall: Fraction, alone: Fraction, both: Fraction
) -> tuple[Fraction, Fraction]:
    """Return the times T_e and T_f on the bus as the segments of Fig. 2.5 (Alg. 1).

    Parameters
    ----------
    extended, fixed : Fraction
        The sizes S_e and S_f in bytes.
    stall : Fraction
        T_s, the seconds by which the fixed transfer arrives later at the bus.
    alone, both : Fraction
        As in ``overlapping``.
    """
    share = both / 2
    rest = extended - stall * alone
    if rest <= 0:  # before contention
        return extended / alone, fixed / alone
    if rest <= fixed:  # under contention
        return stall + rest / share, rest / share + (fixed - rest) / alone
    return stall + fixed / share + (rest - fixed) / alone, fixed / share  # after contention


def period_private(size: Fraction, throughput: Fraction, delta: Fraction, cores: int) -> Fraction:
    """Return the period of a tile on each of N cores that share no bus (eq. 2.10 to 2.13).

    Parameters
    ----------
    size : Fraction
        Ds, the bytes of each core.
    throughput : Fraction
        Th, the bytes per second of a single core.
    delta : Fraction
        δ_t, the seconds between the starts of two cores.
    cores : int
        N.
    """
    full = (size - (cores - 1) * throughput * delta) / throughput
    if full >= 0:
        return 2 * (cores - 1) * delta + full
    most = size / (throughput * delta) + 1
    return 2 * (most - 1) * delta


def period_shared(size: Fraction, total: Fraction, delta: Fraction, cores: int) -> Fraction:
    """Return the period of a tile on each of N cores that share a bus (eq. 2.10, 2.11 and 2.14).

    Parameters
    ----------
    size : Fraction
        Ds, the bytes of each core.
    total : Fraction
        The bytes per second of all cores together.
    delta : Fraction
        δ_t, the seconds between the starts of two cores.
    cores : int
        N.
    """
    full = (cores * size - 2 * (cores - 1) * total * delta) / total
    if full >= 0:
        return 2 * (cores - 1) * delta + full
    slope = 2 * total * delta - size
    most = 2 * total * delta / slope if slope > 0 else Fraction(cores)
    return 2 * (min(max(most, Fraction(1)), Fraction(cores)) - 1) * delta
