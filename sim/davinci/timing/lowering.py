"""A program as arrays, which is what the engines run.

Instructions of all cores stand one after the other, each core's in program order. Times are whole
attoseconds (10⁻¹⁸ s): periods are rounded to them, everything else is sums of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO, Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.program.program import Core, Program
from vitruvian.sim.davinci.timing.compiling import fitting
from vitruvian.sim.davinci.timing.engine_compiled import match

__all__ = ["NEVER", "Lowered", "Needs", "Stream", "lower", "lower_sequences", "predecessors"]

#: In `Lowered.need`: nothing will ever set this flag.
NEVER = -1


@dataclass(frozen=True, eq=False)
class Lowered:
    """Arrays of n instructions on some cores and buses.

    Attributes
    ----------
    first : (cores + 1,) ndarray of int64
        Instructions of core c are first[c] … first[c + 1] − 1.
    unit, kind : (n,) ndarray of int8
        `Unit` and `Kind`.
    init : (n,) ndarray of int64
        Attoseconds before the bus is used, or all of the period if no bus is.
    data : (n,) ndarray of int64
        Attoseconds on the bus if nothing else is there.
    bus : (n,) ndarray of int32
        Number of a bus, −1 for none.
    rate : (n,) ndarray of float64
        Bytes per attosecond that it takes of its bus if nothing else is there.
    need_first : (n + 1,) ndarray of int64
    need : (…,) ndarray of int64
        A wait i goes on when the sets need[need_first[i] : need_first[i + 1]] have ended; `NEVER`
        is a set that does not exist.
    lag : (n,) ndarray of int64
        Attoseconds from the end of those sets until the wait sees it.
    begin : (cores,) ndarray of int64
        When each core starts.
    totals : (buses, m) ndarray of float64
        Bytes per attosecond of 1, 2, … m and more transfers together.
    dispatch : int
        Attoseconds between two instructions that a program queue hands out.
    """

    first: np.ndarray
    unit: np.ndarray
    kind: np.ndarray
    init: np.ndarray
    data: np.ndarray
    bus: np.ndarray
    rate: np.ndarray
    need_first: np.ndarray
    need: np.ndarray
    lag: np.ndarray
    begin: np.ndarray
    totals: np.ndarray
    dispatch: int

    def __len__(self) -> int:
        return len(self.unit)


@dataclass(frozen=True)
class Stream:
    """Which core a part of the arrays is.

    Attributes
    ----------
    kind : str
    index : int
    instructions : sequence of Instruction
    """

    kind: str
    index: int
    instructions: Sequence[Instruction]

    def __str__(self) -> str:
        return f"{self.kind} {self.index}"


class Needs:
    """Matches the n-th wait of a flag with its n-th set (Tang 2024, eq. 2.3).

    Add every instruction that sets or waits in program order, core after core; then ask.
    """

    def __init__(self) -> None:
        self.sets: dict[tuple, list[int]] = defaultdict(list)
        self.waits: dict[tuple, list[int]] = defaultdict(list)

    def add(self, number: int, core: Core, one: Instruction) -> None:
        """Take note of instruction ``number`` if it sets or waits."""
        if one.kind == Kind.NORMAL or one.kind >= Kind.BARRIER:
            return
        f = one.fields
        if one.op in ("set_flag", "wait_flag"):
            flag = (core.kind.name, core.index, f["source"], f["target"], f["register"])
        else:
            flag = (core.kind.name, core.index, f["mode"], f["register"])
        (self.sets if one.kind == Kind.SET else self.waits)[flag].append(number)

    def matched(self, partners: Mapping[tuple[str, int], Iterable[tuple[str, int]]]):
        """Pairs (wait, sets) of all waits; a set that does not exist is `NEVER`."""
        for flag, waits in self.waits.items():
            if len(flag) == 5:
                sources = [flag]
            else:
                kind, index, mode, register = flag
                cores = partners[f"{mode} {kind}", index]
                sources = [(*core, mode, register) for core in cores]
            found = [self.sets.get(source, ()) for source in sources]
            for n, wait in enumerate(waits):
                yield wait, [sets[n] if n < len(sets) else NEVER for sets in found] or [NEVER]


def _partners(program: Program) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Whose cross_set a core's cross_wait is for, by mode and core; of cores with instructions."""
    there = [core for core in program if core.instructions]
    group = {core: core.index // core.kind.per_group for core in there}
    found = {}
    for one in there:
        same = [c for c in there if c.kind is one.kind]
        near = [c for c in there if group[c] == group[one]]
        chosen = {
            "kind": same,
            "group": [c for c in near if c.kind is one.kind],
            "others": [c for c in near if c.kind is not one.kind],
        }
        for mode, cores in chosen.items():
            found[f"{mode} {one.kind.name}", one.index] = [(c.kind.name, c.index) for c in cores]
    return found


def lower(
    program: Program,
    chip: Chip | None = None,
    *,
    offsets_s: Mapping[tuple[str, int], float] | None = None,
    mmad_periods_s: Mapping[int, float] | None = None,
) -> tuple[Lowered, list[Stream]]:
    """A program as arrays, and which core each part is.

    Parameters
    ----------
    program : Program
    chip : Chip, optional
        Whose times are taken; it must have the cores and paths of the program's own chip.
    offsets_s : mapping of (kind, index) to float, optional
        Seconds that a core starts later than the launch is done; 0 by default.
    mmad_periods_s : mapping of int to float, optional
        Seconds of matrix instructions by number in the arrays, in place of the chip's: what
        hardware took for them.

    Raises
    ------
    ValueError
        If an instruction is none that the chip has; the message has its file and line.
    """
    chip = chip or program.chip
    streams, first, needs = [], [0], Needs()
    init, data, bus, rate, unit, kind, begin = [], [], [], [], [], [], []
    buses, lag = _Buses(chip), []
    late = 0 if chip.cross_s is None else round(chip.cross_s * ATTO)
    for core in program:
        if not core.instructions:
            continue
        if core.index >= chip.kind(core.kind.name).count:
            raise ValueError(f"cores of {chip.name} must be enough for {core}")
        begin.append(round((chip.launch_s + Fraction((offsets_s or {}).get(_key(core), 0))) * ATTO))
        for one in core.instructions:
            needs.add(len(init), core, one)
            try:
                timing = chip.timing(one)
            except ValueError as error:
                raise ValueError(f"{one.position}: {error}") from None
            own = (mmad_periods_s or {}).get(len(init))
            init.append(timing.init if own is None else round(Fraction(own) * ATTO))
            data.append(timing.data)
            bus.append(buses.number(timing.bus, len(streams)))
            rate.append(float(timing.rate / ATTO))
            unit.append(one.unit)
            kind.append(one.kind)
            lag.append(late if one.op == "cross_wait" else 0)
        streams.append(Stream(*_key(core), core.instructions))
        first.append(len(init))
    matched = dict(needs.matched(_partners(program)))
    counts = np.zeros(len(init) + 1, np.int64)
    counts[np.array(list(matched), np.int64) + 1] = [len(sets) for sets in matched.values()]
    flat = [number for wait in sorted(matched) for number in matched[wait]]
    lowered = Lowered(
        first=np.array(first, np.int64),
        unit=np.array(unit, np.int8),
        kind=np.array(kind, np.int8),
        init=np.array(init, np.int64),
        data=np.array(data, np.int64),
        bus=np.array(bus, np.int32),
        rate=np.array(rate, np.float64),
        need_first=np.cumsum(counts),
        need=np.array(flat, np.int64),
        lag=np.array(lag, np.int64),
        begin=np.array(begin, np.int64),
        totals=buses.totals(),
        dispatch=round(chip.dispatch_s * ATTO),
    )
    return lowered, streams


def _key(core: Core) -> tuple[str, int]:
    return core.kind.name, core.index


def lower_sequences(
    chip: Chip,
    table: Sequence[Instruction],
    sequences: Mapping[tuple[str, int], np.ndarray],
    *,
    offsets_s: Mapping[tuple[str, int], float] | None = None,
) -> tuple[Lowered, list[Stream]]:
    """Long programs of few different instructions, as numbers into a table of them.

    A search over thousands of programs makes these numbers with NumPy, as loops are mostly tiles of
    one body; that is a hundred times as fast as building each instruction.

    Parameters
    ----------
    chip : Chip
    table : sequence of Instruction
        Made with a `Core` once. No core-to-core flags.
    sequences : mapping of (kind, index) to (n,) ndarray of int
        For each core its program, in the order of the cores.
    offsets_s : as of `lower`

    Raises
    ------
    ValueError
        For core-to-core flags, or an instruction that the chip does not have.
    """
    if any(one.op in ("cross_set", "cross_wait") for one in table):
        raise ValueError("table must be without core-to-core flags")
    parts = [np.asarray(x, np.int64) for x in sequences.values()]
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    first = np.cumsum([0, *map(len, parts)])
    cores = np.repeat(np.arange(len(parts)), np.diff(first))
    timings = [chip.timing(one) for one in table]
    buses = _Buses(chip)
    if any(t.bus is not None and chip.buses[t.bus].per_core for t in timings):
        rows = [[buses.number(t.bus, c) for c in range(len(parts))] for t in timings]
        bus = np.array(rows, np.int32)[flat, cores]
    else:
        bus = np.array([buses.number(t.bus, 0) for t in timings] or [-1], np.int32)[flat]
    triples: dict[tuple, int] = {}
    flags = []
    for one in table:
        f = one.fields
        key = (f["source"], f["target"], f["register"]) if one.kind in _FLAGS else None
        flags.append(triples.setdefault(key, len(triples)) if key else 0)
    kind = np.array([one.kind for one in table] or [0], np.int8)[flat]
    flag = np.array(flags or [0], np.int64)[flat] + cores * max(len(triples), 1)
    count = max(len(triples), 1) * max(len(parts), 1)
    need_first, need = fitting(match, len(flat))(kind, flag, count)
    launch = [chip.launch_s + Fraction((offsets_s or {}).get(key, 0)) for key in sequences]
    lowered = Lowered(
        first=first,
        unit=np.array([one.unit for one in table] or [0], np.int8)[flat],
        kind=kind,
        init=np.array([t.init for t in timings] or [0], np.int64)[flat],
        data=np.array([t.data for t in timings] or [0], np.int64)[flat],
        bus=bus,
        rate=np.array([float(t.rate / ATTO) for t in timings] or [0.0], np.float64)[flat],
        need_first=need_first,
        need=need,
        lag=np.zeros(len(flat), np.int64),
        begin=np.array([round(t * ATTO) for t in launch], np.int64),
        totals=buses.totals(),
        dispatch=round(chip.dispatch_s * ATTO),
    )
    streams = [Stream(*key, _Picked(table, x)) for key, x in zip(sequences, parts, strict=True)]
    return lowered, streams


_FLAGS = (Kind.SET, Kind.WAIT)


class _Picked(Sequence[Instruction]):
    """Instructions of a table by number, none of them copied."""

    def __init__(self, table: Sequence[Instruction], numbers: np.ndarray) -> None:
        self.table, self.numbers = table, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at):
        if isinstance(at, slice):
            return [self.table[k] for k in self.numbers[at].tolist()]
        return self.table[int(self.numbers[at])]


class _Buses:
    """Numbers for the chip's buses; one that every core has gets a number for each core."""

    def __init__(self, chip: Chip) -> None:
        self.chip, self.numbers = chip, {}

    def number(self, name: str | None, core: int) -> int:
        if name is None:
            return -1
        key = (name, core if self.chip.buses[name].per_core else 0)
        return self.numbers.setdefault(key, len(self.numbers))

    def totals(self) -> np.ndarray:
        wide = max((len(b.totals) for b in self.chip.buses.values()), default=1)
        table = np.zeros((max(len(self.numbers), 1), wide))
        for (name, _), row in self.numbers.items():
            table[row] = [float(self.chip.buses[name].total(n + 1) / ATTO) for n in range(wide)]
        return table


def predecessors(low: Lowered) -> tuple[np.ndarray, np.ndarray]:
    """Of each instruction, the one before it on its unit and the last one before it on S; or −1."""
    before, handed = np.full((2, len(low)), -1, np.int64)
    units = low.unit.tolist()
    for first, last in pairwise(low.first.tolist()):
        latest = dict.fromkeys(range(8), -1)
        for i in range(first, last):
            before[i], handed[i] = latest[units[i]], latest[int(Unit.S)]
            latest[units[i]] = i
    return before, handed
