"""The equations of the performance model in Tang 2024, chapter 2, as they stand there.

An independent statement of what the engines compute, for programs simple enough: no scalar work,
no barriers, and of contention the two cases of Fig. 2.9. Numbers are exact rationals; times in
seconds, sizes in bytes.

Where the text is not followed:

- A wait ends at max(previous event of its unit, its set), not simply at its set (Alg. 2 line 10):
  otherwise time could run backwards. Fig. 2.8 agrees.
- Initialisation passes before the bus is used. Eq. 2.6 as printed spreads it over the transfer and
  drops what is left of it at the first change; `finish` takes P as the time on the bus alone.
- N_max of eq. 2.14 can be negative as printed; it is taken within 1 … N.
"""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.program.program import Core

__all__ = [
    "Event",
    "contention_times",
    "events_of",
    "finish",
    "left_after",
    "main_procedure",
    "overlapping",
    "period_private",
    "period_shared",
    "static_period",
]


@dataclass(frozen=True)
class Event:
    """E of Table 2.2: an instruction of a unit.

    Attributes
    ----------
    unit : Unit
    period : Fraction
        P, of a normal operation; 0 of a set or wait.
    flag : tuple (u_a, u_b, r) or None
        None for a normal operation.
    sign : int
        1 of a set, −1 of a wait, 0 of a normal operation.
    """

    unit: Unit
    period: Fraction = Fraction(0)
    flag: tuple[Unit, Unit, int] | None = None
    sign: int = 0


def static_period(chip: Chip, one: Instruction) -> Fraction:
    """P = Ds / Th + Init of an instruction that is alone (Alg. 2 line 4), in seconds."""
    work = one.work
    if one.path:
        source, target = one.path.split("->")
        route = chip.route(source, target, one.op)
        return work.nbytes / route.rate.bytes_per_s + route.init_s
    if one.unit == Unit.M:
        assert chip.cube is not None
        return work.repeats * chip.cube.step_s + chip.cube.init_s
    lane = chip.vector.get(one.op, chip.vector[""])
    return work.repeats * lane.repeat_s + lane.init_s


def events_of(core: Core) -> list[Event]:
    """The instructions of a core as events, in program order.

    Raises
    ------
    ValueError
        For scalar work and barriers, which the model does not have.
    """
    events = []
    for one in core.instructions:
        if one.kind in (Kind.SET, Kind.WAIT):
            f = one.fields
            flag = (f["source"], f["target"], f["register"])
            events.append(Event(one.unit, flag=flag, sign=1 if one.kind == Kind.SET else -1))
        elif one.kind == Kind.NORMAL and one.unit != Unit.S:
            events.append(Event(one.unit, static_period(core.chip, one)))
        else:
            raise ValueError(f"instruction must be of one of the model's units, not {one}")
    return events


def main_procedure(events: list[Event], t_kernel: Fraction) -> list[Fraction]:
    """Alg. 2: the death time T of each event, without contention.

    Raises
    ------
    ValueError
        If some wait never ends.
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
            last = t_kernel
            for i in queue:
                if i not in times:
                    event = events[i]
                    if event.sign < 0:
                        if partner.get(i) not in times:
                            break
                        times[i] = max(last, times[partner[i]])
                    else:
                        times[i] = last + event.period
                last = times[i]
        if len(times) == before:
            raise ValueError(
                "every wait must have a set that comes to it: this program stands still"
            )
    return [times[i] for i in range(len(events))]


def left_after(size: Fraction, end: Fraction, now: Fraction, period: Fraction) -> Fraction:
    """Eq. 2.6: bytes left at ``now`` of a transfer that would end at ``end`` after ``period``."""
    return size * (end - now) / period


def finish(now: Fraction, left: Fraction, throughput: Fraction) -> Fraction:
    """Eq. 2.7: when what is left ends at a new throughput."""
    return now + left / throughput


def overlapping(
    first: tuple[Fraction, Fraction],
    second: tuple[Fraction, Fraction],
    alone: Fraction,
    both: Fraction,
) -> tuple[Fraction, Fraction]:
    """Fig. 2.9: the ends of two transfers on one bus, by equations 2.6 and 2.7.

    Parameters
    ----------
    first, second : (when it comes to the bus, bytes)
        The second does not come before the first.
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
    """Alg. 1 and Fig. 2.5: times T_e and T_f on the bus, as the three segments of their polylines.

    Parameters
    ----------
    extended, fixed : Fraction
        S_e and S_f, bytes.
    stall : Fraction
        T_s: the fixed transfer comes so much later to the bus.
    alone, both : Fraction
        As in `overlapping`.
    """
    share = both / 2
    rest = extended - stall * alone
    if rest <= 0:  # before contention
        return extended / alone, fixed / alone
    if rest <= fixed:  # under contention
        return stall + rest / share, rest / share + (fixed - rest) / alone
    return stall + fixed / share + (rest - fixed) / alone, fixed / share  # after contention


def period_private(size: Fraction, throughput: Fraction, delta: Fraction, cores: int) -> Fraction:
    """Eq. 2.10 to 2.13: period of a tile on each of N cores that share nothing.

    Parameters
    ----------
    size : Fraction
        Ds of each core.
    throughput : Fraction
        Th of a single core.
    delta : Fraction
        δ_t between the starts of two cores.
    cores : int
    """
    full = (size - (cores - 1) * throughput * delta) / throughput
    if full >= 0:
        return 2 * (cores - 1) * delta + full
    most = size / (throughput * delta) + 1
    return 2 * (most - 1) * delta


def period_shared(size: Fraction, total: Fraction, delta: Fraction, cores: int) -> Fraction:
    """Eq. 2.10, 2.11 and 2.14: period of a tile on each of N cores that share a throughput."""
    full = (cores * size - 2 * (cores - 1) * total * delta) / total
    if full >= 0:
        return 2 * (cores - 1) * delta + full
    slope = 2 * total * delta - size
    most = 2 * total * delta / slope if slope > 0 else Fraction(cores)
    return 2 * (min(max(most, Fraction(1)), Fraction(cores)) - 1) * delta
