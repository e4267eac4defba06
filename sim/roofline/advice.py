"""What to change in a kernel, and the measured gain of it: synchronisation and components.

Each flag, pair of lines by pair of lines, and each barrier is left out and the program checked and
timed again; what no check misses is not needed by the accesses of this run. Each component is made
twice as fast, one after the other, and the program timed again.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass

from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Position
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing.deadlock import Deadlock
from vitruvian.sim.davinci.timing.engine import run
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.roofline.counters import counters_of
from vitruvian.sim.roofline.doubled import savings
from vitruvian.sim.roofline.model import analyse

#: Groups of lines that are tried; each costs a check and a simulation.
MOST = 200
_SYNCHRONISATION = (Kind.SET, Kind.WAIT, Kind.BARRIER, Kind.BARRIER_ALL)


@dataclass(frozen=True)
class Change:
    """A change, and what it gains.

    Attributes
    ----------
    what : str
        In words.
    lines : tuple of str
        Places in the source, if it is one of them.
    count : int
        Instructions that would go; 0 for a component.
    gain : float
        Share of the total time that is saved, by a second simulation.
    """

    what: str
    lines: tuple[str, ...]
    count: int
    gain: float


@dataclass(frozen=True)
class Advice:
    """All changes, those that gain most first.

    Attributes
    ----------
    unneeded : tuple of Change
        Synchronisation that no pair of accesses of this run needs, each on its own.
    together : Change, optional
        As many of them as can be left out at once.
    components : tuple of Change
        Components that are twice as fast.
    tried, left : int
        Groups of lines that were tried, and those that were not.
    """

    unneeded: tuple[Change, ...]
    together: Change | None
    components: tuple[Change, ...]
    tried: int
    left: int

    def text(self) -> str:
        """Return the advice as lines."""
        lines = [f"advice: {self.tried} groups of flags and barriers left out one by one"]
        if self.left:
            lines[0] += f" ({self.left} more not tried)"
        for change in self.unneeded:
            lines.append(f"{change.gain:7.1%}  {change.what}: not needed in this run")
        if self.together is not None and len(self.unneeded) > 1:
            lines.append(f"{self.together.gain:7.1%}  {self.together.what}")
        if not self.unneeded:
            lines.append("every one of them is needed")
        lines += [f"{change.gain:7.1%}  {change.what}" for change in self.components]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the advice in values that JSON has."""
        changes = [*self.unneeded, *([self.together] if self.together else []), *self.components]
        return {
            "tried": self.tried,
            "left": self.left,
            "changes": [
                {"what": c.what, "lines": list(c.lines), "count": c.count, "gain": c.gain}
                for c in changes
            ],
        }


def advise(
    program: Program,
    report: Report,
    *,
    strict: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> Advice:
    """Find what a kernel could do without, and what would make it faster.

    Parameters
    ----------
    program : Program
    report : Report
        That of ``simulate(program)``.
    strict : bool
        As that of ``simulate``, which made the report.
    progress : callable, optional
        Called with the task, the groups that were tried, and all.

    Examples
    --------
    >>> from vitruvian import load_chip, simulate
    >>> from vitruvian.sim.kernels import KERNELS
    >>> kernel = KERNELS["maxpool-im2col"].build(chip=load_chip("ascend310"), data=False)
    >>> program = kernel.program
    >>> advice = advise(program, simulate(program, cube=None))
    >>> [change.gain >= 0 for change in advice.components].count(False)
    0
    """
    tell = progress or (lambda task, done, total: None)
    groups = sorted(_groups(program).values(), key=len, reverse=True)
    chosen = groups[:MOST]
    total = _total(report)
    unneeded: list[tuple[Change, list[Instruction]]] = []
    for number, group in enumerate(chosen):
        tell("advising", number, len(chosen))
        time = _time_without(program, report, strict, group)
        if time is not None:
            change = Change(_words(group), _lines(group), len(group), 1 - time / total)
            unneeded.append((change, group))
    unneeded.sort(key=lambda pair: pair[0].gain, reverse=True)
    return Advice(
        tuple(change for change, _ in unneeded),
        _together(program, report, strict, [group for _, group in unneeded]),
        tuple(_components(report)),
        len(chosen),
        len(groups) - len(chosen),
    )


def _total(report: Report) -> int:
    return int(report.times.total) - int(report.lowered.begin.min())


def _groups(program: Program) -> dict[Position, list[Instruction]]:
    """Return the synchronisation of one core's queues, by the first of the lines that go together.

    The lines of a set_flag and of the wait_flag that it meets go together, and so do all lines that
    such pairs connect. Flags between cores are left alone.
    """
    leader: dict[Position, Position] = {}

    def root(line: Position) -> Position:
        leader.setdefault(line, line)
        while leader[line] != line:
            line = leader[line]
        return line

    members: dict[Position, list[Instruction]] = defaultdict(list)
    for core in program:
        open_: dict[object, deque[Position]] = defaultdict(deque)
        for instr in core.instructions:
            if instr.kind not in _SYNCHRONISATION or instr.op.startswith("cross"):
                continue
            line = instr.position
            members[line].append(instr)
            root(line)
            if instr.kind not in (Kind.SET, Kind.WAIT):
                continue
            key = tuple(instr.fields[name] for name in ("source", "target", "register"))
            # A wait may stand before its set in the program, whose queues run side by side.
            queue = open_[key, instr.kind]
            other = open_[key, Kind.WAIT if instr.kind == Kind.SET else Kind.SET]
            if other:
                leader[root(other.popleft())] = root(line)
            else:
                queue.append(line)
    found: dict[Position, list[Instruction]] = defaultdict(list)
    for line, some in members.items():
        found[root(line)] += some
    return found


def _removed(program: Program, group: Iterable[Instruction]) -> Program:
    """Return a program without some of its instructions."""
    gone = set(map(id, group))
    changed = copy(program)
    changed.cores = {}
    for key, core in program.cores.items():
        own = copy(core)
        own.instructions = [instr for instr in core.instructions if id(instr) not in gone]
        changed.cores[key] = own
    return changed


def _time_without(
    program: Program, report: Report, strict: bool, group: Iterable[Instruction]
) -> int | None:
    """Return the time without some instructions, or None if the checks then find more."""
    changed = _removed(program, group)
    try:
        lowered, streams = lower(changed, report.chip)
        findings = check_lowered(changed, lowered, streams, chip=report.chip, strict=strict)
        if len(findings) > len(report.findings):
            return None
        return int(run(lowered, streams).total) - int(lowered.begin.min())
    except Deadlock:
        return None


def _together(
    program: Program, report: Report, strict: bool, groups: list[list[Instruction]]
) -> Change | None:
    """Return the change of leaving out all groups that can go with those before them."""
    gone: list[Instruction] = []
    best = None
    for group in groups:
        time = _time_without(program, report, strict, gone + group)
        if time is not None:
            gone, best = gone + group, time
    if best is None:
        return None
    lines = _lines(gone)
    what = f"all that can go at once: {', '.join(lines)}"
    return Change(what, lines, len(gone), 1 - best / _total(report))


def _lines(group: Iterable[Instruction]) -> tuple[str, ...]:
    places = sorted({(i.position.file, i.position.line) for i in group})
    return tuple(f"{file}:{line}" for file, line in places)


def _words(group: list[Instruction]) -> str:
    """Return a group of instructions as text: what they are, how many, and where."""
    names = sorted({_name(instr) for instr in group})
    return f"{' and '.join(names)} at {', '.join(_lines(group))} ({len(group)} instructions)"


def _name(instr: Instruction) -> str:
    if instr.kind in (Kind.SET, Kind.WAIT):
        source, target = (getattr(instr.fields[n], "name", "?") for n in ("source", "target"))
        return f"{instr.op}({source} to {target})"
    unit = instr.fields.get("unit")
    return f"{instr.op}({'all' if unit is None else unit.name})"


def _components(report: Report) -> list[Change]:
    """Return what each component gains if it is twice as fast, the greatest first."""
    analysis = analyse(counters_of(report))
    alone = savings(report, analysis).alone
    return sorted(
        (Change(f"{name} twice as fast", (), 0, gain) for name, gain in alone.items()),
        key=lambda change: change.gain,
        reverse=True,
    )
