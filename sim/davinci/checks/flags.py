"""Checks of flags: a flag that is set twice, and a flag that is still set at the end.

References
----------
Decision 0057 says when a flag may be set again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from vitruvian.sim.davinci.checks.compiled import Ordering
from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Kind, Position
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.lowering import Lowered
from vitruvian.sim.davinci.timing.predecessors import predecessors


def flag_findings(
    lowered: Lowered, numbers: Numbers, ordering: Ordering, *, keeps: bool = False
) -> Iterator[Finding]:
    """Find flags that can be set again before a wait for the previous set, or that stay set.

    Parameters
    ----------
    keeps : bool
        If True, a set is not lost while the wait for the one before is still to come: it is enough
        that the wait stands between the two in the program.
    """
    sets: dict[tuple, list[int]] = defaultdict(list)
    waits: dict[tuple, list[int]] = defaultdict(list)
    for i in np.flatnonzero((lowered.kind == Kind.SET) | (lowered.kind == Kind.WAIT)).tolist():
        instr = numbers.flat[i]
        if instr.op in ("set_flag", "wait_flag"):
            f = instr.fields
            key = (numbers.core(i), f["source"], f["target"], f["register"])
            (sets if instr.kind == Kind.SET else waits)[key].append(i)
    seen: set[tuple] = set()
    left: set[Position] = set()
    instant = _Instant(lowered, ordering)
    for key, mine in sets.items():
        for n in range(1, len(mine)):
            wait = waits[key][n - 1] if n <= len(waits[key]) else None
            if wait is not None and ((keeps and wait < mine[n]) or ordering.before(wait, mine[n])):
                continue
            at = tuple(numbers.flat[i].position for i in (mine[n - 1], mine[n]))
            if at in seen or (wait is not None and instant.by(wait, mine[n])):
                continue
            seen.add(at)
            text = f"flag: {numbers.text(mine[n])} can be set again before "
            if wait is None:
                text += f"anything waits for {numbers.text(mine[n - 1])}"
            else:
                text += f"{numbers.text(wait)}, which waits for the set before"
            yield Finding("flag", text, (mine[n - 1], mine[n]))
        last = mine[-1]
        if len(mine) > len(waits[key]) and numbers.flat[last].position not in left:
            left.add(numbers.flat[last].position)
            text = f"flag: {numbers.text(last)} is still set when the kernel ends; wait_flag"
            yield Finding("flag", f"{text}{str(numbers.flat[last])[8:]} is missing", (last,))


def cross_flag_findings(numbers: Numbers, chip: Chip) -> Iterator[Finding]:
    """Find flags between cores for which no core that they reach waits as often as they are set."""
    sets: dict[tuple, list[int]] = defaultdict(list)
    waits: Counter[tuple] = Counter()
    for i, instr in enumerate(numbers.flat):
        if instr.op in ("cross_set", "cross_wait") and instr.fields["mode"] != "seen":
            key = (numbers.core(i), instr.fields["mode"], instr.fields["register"])
            if instr.op == "cross_set":
                sets[key].append(i)
            else:
                waits[key] += 1
    seen: set[Position] = set()
    for (core, mode, register), mine in sets.items():
        last = mine[-1]
        others = _receivers(numbers, chip, core, mode)
        if not others or any(waits[n, mode, register] >= len(mine) for n in others):
            continue
        if numbers.flat[last].position not in seen:
            seen.add(numbers.flat[last].position)
            text = f"flag: {numbers.text(last)} is still set when the kernel ends"
            text += f"; cross_wait{str(numbers.flat[last])[9:]} of {numbers.streams[others[0]]}"
            yield Finding("flag", f"{text} is missing", (last,))


def _receivers(numbers: Numbers, chip: Chip, core: int, mode: str) -> list[int]:
    """Return the cores that must wait for a flag of a core, as ``lowering`` pairs them."""
    cores = numbers.streams
    mine = cores[core]
    groups = [c.index // chip.kind(c.kind).per_group for c in cores]
    if mode == "kind":
        return [n for n, c in enumerate(cores) if c.kind == mine.kind]
    near = [n for n in range(len(cores)) if groups[n] == groups[core]]
    return [n for n in near if (cores[n].kind == mine.kind) == (mode == "group")]


class _Instant:
    """The order of sets and waits that the vector clocks do not give, because they take no time.

    A wait ends at the same time as the last instruction that it waits for.
    """

    def __init__(self, lowered: Lowered, ordering: Ordering) -> None:
        self.lowered, self.ordering = lowered, ordering
        self.chains: tuple[np.ndarray, np.ndarray] | None = None

    def by(self, early: int, late: int) -> bool:
        """Return True if ``early``, a set or wait, always has ended when ``late`` ends.

        This holds if ``early`` and everything that it waits for come before ``late`` in the
        program, since the program queue issues instructions in order.
        """
        if self.chains is None:
            self.chains = predecessors(self.lowered)
        lowered, (before, handed) = self.lowered, self.chains
        open_, known = [early], {early}
        while open_:
            i = open_.pop()
            if self.ordering.before(i, late):
                continue
            if lowered.kind[i] not in (Kind.SET, Kind.WAIT) or i > late:
                return False
            needs = lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]].tolist()
            for j in (int(before[i]), int(handed[i]), *needs):
                if j >= 0 and j not in known:
                    known.add(j)
                    open_.append(j)
        return True
