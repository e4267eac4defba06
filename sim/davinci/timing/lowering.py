"""Lowering of a program to the arrays that the engines run.

The arrays hold the instructions of one core after the other, each core's in program order. Times
are whole attoseconds (10⁻¹⁸ s): each period is rounded once, and all other times are sums.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.sim.davinci.chip.model import ATTO, Chip, ChipTiming, CoreKind
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind
from vitruvian.sim.davinci.program.program import Core, Program
from vitruvian.sim.davinci.timing.buses import BusNumbers
from vitruvian.sim.davinci.timing.interlocks import no_producers, producers
from vitruvian.sim.davinci.timing.matching_compiled import match
from vitruvian.sim.davinci.timing.words import WordTimes, times_of_words

#: The kinds of instructions that a flag joins.
_FLAGS = (Kind.SET, Kind.WAIT)

#: An entry of ``Lowered.need`` for a set that does not exist: the wait never ends.
NEVER = -1


@dataclass(frozen=True, eq=False)
class Lowered:
    """The arrays of n instructions on some cores and buses.

    Attributes
    ----------
    first : (cores + 1,) ndarray of int64
        The instructions of core c are first[c] … first[c + 1] − 1.
    unit, kind : (n,) ndarray of int8
        Values of ``Unit`` and ``Kind``.
    init : (n,) ndarray of int64
        Attoseconds before the bus is used, or the whole period if no bus is used.
    data : (n,) ndarray of int64
        Attoseconds on the bus if no other transfer uses it.
    drain : (n,) ndarray of int64
        Attoseconds from the end of an instruction, when its unit is free for the next one, until
        its results are there. A set_flag or barrier of the unit does not start before that.
    bus : (n,) ndarray of int32
        Index of the bus, −1 for none.
    rate : (n,) ndarray of float64
        Bytes per attosecond that the instruction moves if no other transfer uses its bus.
    need_first : (n + 1,) ndarray of int64
    need : (…,) ndarray of int64
        Wait i ends when the sets need[need_first[i] : need_first[i + 1]] have ended; ``NEVER``
        marks a set that does not exist.
    lag : (n,) ndarray of int64
        Attoseconds from the end of those sets until the wait sees them.
    begin : (cores,) ndarray of int64
        The attosecond at which each core starts.
    totals : (buses, m) ndarray of float64
        Bytes per attosecond of 1, 2, …, m transfers together; the last holds for more than m.
    dispatch : int
        Attoseconds between two instructions that a program queue issues.
    gang : (cores,) ndarray of int64
        The gang of each core, 0, 1, …: cores that begin together.
    places : int
        The number of gangs that run at once; 0 for no limit. If there are more gangs, these take
        the places of those that have ended, in ascending order: in rounds.
    handover : int
        Attoseconds from the end of a gang until the next one begins in its place, which then
        replaces ``begin``.
    producer : (n,) ndarray of int64
        The latest earlier instruction of the same queue whose result the instruction needs, −1 for
        none; empty if no queue interlocks. The instruction starts when the results of that one and
        of all before it in the queue are there. For ``Kind.NORMAL`` alone.
    posted : (n,) ndarray of bool
        True for a set_flag that its unit's queue does not wait for: the next instruction starts
        while results are on their way, and the flag is set when they are there.
    words : WordTimes or None
        What words in finite queues add on a core in hardware; None for queues without end.
    ports : (n, p) ndarray of float64
        If a bus is a memory of p ports: the part of the cycles in which an instruction needs each
        port while it has the bus for itself. (0, 0) for buses of one port.
    """

    first: np.ndarray
    unit: np.ndarray
    kind: np.ndarray
    init: np.ndarray
    data: np.ndarray
    drain: np.ndarray
    bus: np.ndarray
    rate: np.ndarray
    need_first: np.ndarray
    need: np.ndarray
    lag: np.ndarray
    begin: np.ndarray
    totals: np.ndarray
    dispatch: int
    gang: np.ndarray
    places: int = 0
    handover: int = 0
    producer: np.ndarray = field(default_factory=no_producers)
    posted: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    words: WordTimes | None = None
    ports: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float64))

    def __len__(self) -> int:
        return len(self.unit)


@dataclass(frozen=True)
class CoreStream:
    """The core that a part of the arrays belongs to, with its instructions.

    Attributes
    ----------
    kind : str
        Name of the kind of core.
    index : int
        Index of the core among those of its kind, or of the block if there are more blocks than
        cores.
    instructions : sequence of Instruction
    is_block : bool
        True if there are more blocks than cores, so that no core belongs to a block alone.
    """

    kind: str
    index: int
    instructions: Sequence[Instruction]
    is_block: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {'block ' if self.is_block else ''}{self.index}"


class QueueNeeds:
    """The pairing of the n-th wait for a flag with its n-th set (Tang 2024, eq. 2.3).

    Add every instruction in program order, core after core; then call ``matched``.
    """

    def __init__(self) -> None:
        self.sets: dict[tuple, list[int]] = defaultdict(list)
        self.waits: dict[tuple, list[int]] = defaultdict(list)

    def add(self, number: int, core: Core, instr: Instruction) -> None:
        """Record instruction ``number`` of a core if it is a set or a wait."""
        if instr.kind == Kind.NORMAL or instr.kind >= Kind.BARRIER:
            return
        f = instr.fields
        if instr.op in ("set_flag", "wait_flag"):
            flag = (core.kind.name, core.index, f["source"], f["target"], f["register"])
        else:  # a flag between cores belongs to the core that sets it or waits for it
            flag = (core.kind.name, core.index, f["mode"], f["register"])
        (self.sets if instr.kind == Kind.SET else self.waits)[flag].append(number)

    def matched(self, partners: Mapping[tuple[str, int], Iterable[tuple[str, int]]]):
        """Yield (wait, sets) for every wait; a set that does not exist is ``NEVER``.

        Parameters
        ----------
        partners : mapping of ("mode kind", index) to cores
            The cores whose cross_set a core's cross_wait waits for; see ``_partners``.
        """
        seen = {flag[3]: flag for flag in self.sets if flag[2] == "seen"}
        for flag, waits in self.waits.items():
            if len(flag) == 5:  # a flag between two units of one core
                sources = [flag]
            else:
                kind, index, mode, register = flag
                if mode == "seen":  # a poll has seen what the only core with this set has written
                    sources = [seen[register]] if register in seen else []
                else:
                    cores = partners[f"{mode} {kind}", index]
                    sources = [(*core, mode, register) for core in cores]
            candidates = [self.sets.get(source, ()) for source in sources]
            # A wait of a core without partners never ends, either.
            # Eq. 2.3: the n-th wait needs the n-th set, wherever the two stand in the program.
            for n, wait in enumerate(waits):
                yield wait, [sets[n] if n < len(sets) else NEVER for sets in candidates] or [NEVER]


def _partners(cores: Sequence[Core]) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Return the cores whose cross_set each core's cross_wait waits for, keyed by mode and core.

    Cores with the same partners share a list, so that the time is proportional to their number.
    """
    same, near, others = defaultdict(list), defaultdict(list), defaultdict(list)
    # The three modes of a flag between cores: all of one kind, those of the kind in one group, and
    # the cores of the other kinds in the group, as a Cube core has two vector cores.
    kinds = {core.kind.name for core in cores}
    for core in cores:
        kind, group = core.kind.name, core.index // core.kind.per_group
        same[kind].append(_key(core))
        near[kind, group].append(_key(core))
        for other in kinds - {kind}:
            others[other, group].append(_key(core))
    partners = {}
    for core in cores:
        kind, group = core.kind.name, core.index // core.kind.per_group
        partners[f"kind {kind}", core.index] = same[kind]
        partners[f"group {kind}", core.index] = near[kind, group]
        partners[f"others {kind}", core.index] = others[kind, group]
    return partners


def lower(
    program: Program,
    chip: Chip | None = None,
    *,
    offsets_s: Mapping[tuple[str, int], float] | None = None,
    mmad_periods_s: Mapping[int, float] | None = None,
) -> tuple[Lowered, list[CoreStream]]:
    """Lower a program to arrays.

    Parameters
    ----------
    chip : Chip, optional
        The chip whose times are used, by default the program's own; it must have the cores and
        paths of the program's chip. If the program is a launch of blocks (``Program.blocks``), the
        chip may have fewer cores, which then run the blocks in rounds.
    offsets_s : mapping of (kind, index) to float, optional
        Seconds by which a core starts after the end of the launch; 0 by default.
    mmad_periods_s : mapping of int to float, optional
        Seconds of matrix instructions, keyed by index in the arrays, which replace the chip's
        times: those that the hardware (RTL) took.

    Returns
    -------
    lowered : Lowered
    streams : list of CoreStream
        The core and instructions of each part of the arrays.

    Raises
    ------
    ValueError
        If the chip lacks a core, or cannot run an instruction; the message then contains the
        file and line.
    """
    chip = chip or program.chip
    # Cores without instructions take no part in synchronisation.
    cores = [core for core in program if core.instructions]
    places = _places(program, chip)
    timings = [timing for core in cores for timing in _timings(chip, core, places)]
    instrs = [instr for core in cores for instr in core.instructions]
    first = np.cumsum([0, *(len(core.instructions) for core in cores)])
    kind = np.fromiter((instr.kind for instr in instrs), np.int8, len(instrs))
    unit = np.fromiter((instr.unit for instr in instrs), np.int8, len(instrs))
    # The chip returns one object for all instructions of equal times: there are few of them.
    distinct, which = _distinct(timings)

    def spread(values: Sequence[Any], dtype: type[np.generic]) -> np.ndarray:
        """Return a value for every instruction, given those of the distinct times."""
        return np.array(values, dtype)[which]

    buses = BusNumbers(chip)
    # Buses get their numbers here, which ``totals`` below needs.
    bus = buses.numbered([t.bus for t in distinct], which, _core_of(first))
    need_first, need = _needs(cores, kind)
    drain = spread([t.drain for t in distinct], np.int64)
    parts = [(chip.kind(core.kind.name).interlocks, core.instructions) for core in cores]
    cross_lag = 0 if chip.cross_s is None else round(chip.cross_s * ATTO)
    lowered = Lowered(
        first=first,
        unit=unit,
        kind=kind,
        init=_init(spread([t.init for t in distinct], np.int64), mmad_periods_s or {}),
        data=spread([t.data for t in distinct], np.int64),
        drain=drain,
        bus=bus,
        rate=spread([float(t.rate / ATTO) for t in distinct], np.float64),
        need_first=need_first,
        need=need,
        # Two units of one core see a flag at once; between cores it takes a while.
        lag=np.array([cross_lag if i.op == "cross_wait" else 0 for i in instrs], np.int64),
        begin=_begin(chip, map(_key, cores), offsets_s or {}),
        totals=buses.totals(),
        dispatch=round(chip.dispatch_s * ATTO),
        gang=_gangs(program, cores),
        places=places,
        handover=round(chip.block_s * ATTO) if places else 0,
        producer=producers(parts, drain),
        posted=_posted([chip.kind(core.kind.name) for core in cores], first, unit, kind),
        words=times_of_words(chip, instrs, np.arange(len(instrs)), first, unit, kind),
        ports=_by_port(spread([t.ports for t in distinct], np.float64)),
    )
    return lowered, [CoreStream(*_key(core), core.instructions, places > 0) for core in cores]


def _places(program: Program, chip: Chip) -> int:
    """Return the number of gangs that run at once, or 0 if there are not more gangs than that."""
    if program.blocks is None:
        return 0
    kinds = [chip.kind(name) for name in dict.fromkeys(name for name, _ in program.cores)]
    grouped = len(kinds) > 1  # a block of several kinds of cores needs a whole group
    places = min((k.count // (k.per_group if grouped else 1) for k in kinds), default=0)
    return places if program.blocks > places else 0


def _gangs(program: Program, cores: Sequence[Core]) -> np.ndarray:
    """Return ``Lowered.gang``: the cores of a block, numbered without gaps."""
    grouped = len({name for name, _ in program.cores}) > 1
    blocks = [c.index // (c.kind.per_group if grouped else 1) for c in cores]
    # Cores without instructions are left out before, so that numbers of blocks may have gaps.
    return np.searchsorted(sorted(set(blocks)), blocks).astype(np.int64)


def _timings(chip: Chip, core: Core, places: int) -> Iterator[ChipTiming]:
    """Yield the times of a core's instructions; see ``lower`` for the errors."""
    if not places and core.index >= chip.kind(core.kind.name).count:
        raise ValueError(f"cores of {chip.name} must be enough for {core}")
    for instr in core.instructions:
        try:
            yield chip.timing(instr)
        except ValueError as error:
            raise ValueError(f"{instr.position}: {error}") from None


def _core_of(first: np.ndarray) -> np.ndarray:
    """Return the number of each instruction's core, given ``Lowered.first``."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def _distinct(timings: Sequence[ChipTiming]) -> tuple[list[ChipTiming], np.ndarray]:
    """Return the distinct objects among the times, and the index of each instruction's one."""
    known: dict[int, int] = {}
    # Objects are compared by identity: equal times in two objects only cost a row more.
    which = np.fromiter((known.setdefault(id(t), len(known)) for t in timings), np.int64)
    _, first = np.unique(which, return_index=True)
    return [timings[i] for i in first.tolist()], which


def _posted(
    kinds: Sequence[CoreKind], first: np.ndarray, unit: np.ndarray, kind: np.ndarray
) -> np.ndarray:
    """Return ``Lowered.posted``, given the kind of each core and the other arrays."""
    posted = kind == Kind.SET
    for core, begin, end in zip(kinds, first[:-1], first[1:], strict=True):
        posted[begin:end] &= np.isin(unit[begin:end], core.posted)
    return posted


def _by_port(demands: np.ndarray) -> np.ndarray:
    """Return ``Lowered.ports``; without instructions, there are no ports."""
    return demands if len(demands) else np.zeros((0, 0), np.float64)


def _init(init: np.ndarray, mmad_periods_s: Mapping[int, float]) -> np.ndarray:
    """Return ``Lowered.init`` with measured periods of matrix instructions where there are any.

    A matrix instruction uses no bus, so its ``init`` is its whole period.
    """
    for i, seconds in mmad_periods_s.items():
        init[i] = round(Fraction(seconds) * ATTO)
    return init


def _needs(cores: Sequence[Core], kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``need_first`` and ``need`` of ``Lowered`` for the instructions of these cores.

    The waits have different numbers of sets, so these are stored one after another in ``need``, and
    ``need_first`` is the cumulative sum of their counts.
    """
    needs = QueueNeeds()
    end = 0
    for core in cores:
        begin, end = end, end + len(core.instructions)
        for number in np.flatnonzero(np.isin(kind[begin:end], _FLAGS)).tolist():
            needs.add(begin + number, core, core.instructions[number])
    matched = dict(needs.matched(_partners(cores)))
    counts = np.zeros(len(kind) + 1, np.int64)
    # One place further, because ``need_first`` is the sum of the counts before an instruction.
    counts[np.array(list(matched), np.int64) + 1] = [len(sets) for sets in matched.values()]
    flat = [number for wait in sorted(matched) for number in matched[wait]]
    return np.cumsum(counts), np.array(flat, np.int64)


def _begin(
    chip: Chip, cores: Iterable[tuple[str, int]], offsets_s: Mapping[tuple[str, int], float]
) -> np.ndarray:
    """Return ``Lowered.begin``: each core starts its offset after the end of the launch."""
    seconds = [chip.launch_s + Fraction(offsets_s.get(core, 0)) for core in cores]
    return np.array([round(s * ATTO) for s in seconds], np.int64)


def _key(core: Core) -> tuple[str, int]:
    return core.kind.name, core.index


def lower_sequences(
    chip: Chip,
    table: Sequence[Instruction],
    sequences: Mapping[tuple[str, int], np.ndarray],
    *,
    offsets_s: Mapping[tuple[str, int], float] | None = None,
) -> tuple[Lowered, list[CoreStream]]:
    """Lower long programs that are given as indices into a table of a few instructions.

    A search over thousands of programs computes these indices with NumPy, since a loop mostly
    repeats the instructions of one tile. That is a hundred times as fast as building every
    instruction.

    Parameters
    ----------
    table : sequence of Instruction
        The distinct instructions, built once with a ``Core``. They must not contain core-to-core
        flags.
    sequences : mapping of (kind, index) to (n,) ndarray of int
        The program of each core as indices into the table, in the order of the cores.
    offsets_s : mapping of (kind, index) to float, optional
        As in ``lower``.

    Returns
    -------
    lowered : Lowered
    streams : list of CoreStream
        As in ``lower``.

    Raises
    ------
    ValueError
        If the table contains core-to-core flags, or an instruction that the chip cannot run.
    """
    if any(instr.op in ("cross_set", "cross_wait") for instr in table):
        raise ValueError("table must be without core-to-core flags")
    parts = [np.asarray(x, np.int64) for x in sequences.values()]
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    first = np.cumsum([0, *map(len, parts)])
    core_of = _core_of(first)

    # Everything that depends on the instruction alone is computed once for the table.
    def spread(values: Sequence[Any], dtype: type[np.generic]) -> np.ndarray:
        """Return a value for every instruction, given those of the table."""
        return np.array(values, dtype)[flat]

    timings = [chip.timing(instr) for instr in table]
    kind = spread([instr.kind for instr in table], np.int8)
    unit = spread([instr.unit for instr in table], np.int8)
    # Flags of different cores are different flags: their numbers are offset by core.
    numbers, flags = _flag_numbers(table)
    flag = spread(numbers, np.int64) + core_of * flags
    need_first, need = fitting(match, len(flat))(kind, flag, flags * max(len(parts), 1))
    drain = spread([t.drain for t in timings], np.int64)
    streams = [CoreStream(*key, _Picked(table, x)) for key, x in zip(sequences, parts, strict=True)]
    locked = [(chip.kind(stream.kind).interlocks, stream.instructions) for stream in streams]
    bus, totals = _bus_numbers(chip, timings, flat, core_of, len(parts))
    lowered = Lowered(
        first=first,
        unit=unit,
        kind=kind,
        init=spread([t.init for t in timings], np.int64),
        data=spread([t.data for t in timings], np.int64),
        drain=drain,
        bus=bus,
        rate=spread([float(t.rate / ATTO) for t in timings], np.float64),
        need_first=need_first,
        need=need,
        lag=np.zeros(len(flat), np.int64),
        begin=_begin(chip, sequences, offsets_s or {}),
        totals=totals,
        dispatch=round(chip.dispatch_s * ATTO),
        gang=np.arange(len(parts)),
        producer=producers(locked, drain),
        posted=_posted([chip.kind(stream.kind) for stream in streams], first, unit, kind),
        words=times_of_words(chip, table, flat, first, unit, kind),
        ports=_by_port(spread([t.ports for t in timings], np.float64)),
    )
    return lowered, streams


def _bus_numbers(
    chip: Chip, timings: Sequence[ChipTiming], flat: np.ndarray, core_of: np.ndarray, cores: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bus of each instruction of ``lower_sequences``, and the totals of each bus."""
    buses = BusNumbers(chip)
    # An instruction of the table has one bus, unless each core has a bus of its own.
    if any(t.bus is not None and chip.buses[t.bus].per_core for t in timings):
        rows = [[buses.number(t.bus, c) for c in range(cores)] for t in timings]
        return np.array(rows, np.int32)[flat, core_of], buses.totals()
    return np.array([buses.number(t.bus, 0) for t in timings], np.int32)[flat], buses.totals()


def _flag_numbers(table: Sequence[Instruction]) -> tuple[list[int], int]:
    """Return the number of each instruction's flag in a core, and the count of numbers.

    An instruction that is neither a set nor a wait gets the number 0. The count is at least 1.
    """
    known: dict[tuple, int] = {}
    numbers = []
    for instr in table:
        if instr.kind in _FLAGS:
            f = instr.fields
            flag = (f["source"], f["target"], f["register"])
            numbers.append(known.setdefault(flag, len(known)))
        else:
            numbers.append(0)
    return numbers, max(len(known), 1)


class _Picked(Sequence[Instruction]):
    """A sequence of instructions of a table, selected by index without copying."""

    def __init__(self, table: Sequence[Instruction], numbers: np.ndarray) -> None:
        self.table, self.numbers = table, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at):
        if isinstance(at, slice):
            return [self.table[k] for k in self.numbers[at].tolist()]
        return self.table[int(self.numbers[at])]
