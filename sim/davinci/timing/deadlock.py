"""Explanations of deadlocks: a cycle of waits, or a wait for a flag that is never set."""

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.timing.lowering import NEVER, CoreStream, Lowered


class Deadlock(RuntimeError):
    """The program never ends; the message names the instructions that wait for each other."""


def _blocked(lowered: Lowered, end: np.ndarray, issued: np.ndarray) -> dict[tuple[int, int], int]:
    """Return the index of the instruction at which each blocked queue (core, unit) stands."""
    heads = {}
    for c in range(len(lowered.begin)):
        for i in range(lowered.first[c], lowered.first[c + 1]):
            if end[i] >= 0:
                continue
            psq = lowered.unit[i] == Unit.S or lowered.kind[i] == Kind.BARRIER_ALL
            unit = Unit.S if psq else Unit(int(lowered.unit[i]))
            if issued[i] >= 0 and (c, unit) not in heads:
                heads[c, unit] = i
            if psq:  # the program queue (PSQ) is blocked here, so nothing later has been issued
                break
            if lowered.words is not None and issued[i] < 0:  # no room for its words
                heads[c, Unit.S] = i
                break
    return heads


def cycle(lowered: Lowered, end: np.ndarray, issued: np.ndarray) -> tuple[list[int], bool]:
    """Find instructions of which each waits for the next.

    Parameters
    ----------
    end, issued : (n,) ndarray of int64
        Times of an incomplete run, −1 if the instruction has not ended or not been issued.

    Returns
    -------
    instructions : list of int
        Indices into the arrays.
    closed : bool
        True if the last waits for the first, False if the last waits for a flag that is never set.
    """
    heads = _blocked(lowered, end, issued)
    core_of = np.searchsorted(lowered.first, np.arange(len(lowered)), side="right") - 1

    def waits_for(queue: tuple[int, int]) -> list[tuple[int, int]]:
        i = heads[queue]
        if lowered.kind[i] == Kind.BARRIER_ALL:
            # A barrier of all units waits for every other queue of its core that is not empty.
            return [q for q in heads if q[0] == queue[0] and q != queue]
        if queue[1] == Unit.S and lowered.unit[i] != Unit.S:  # it waits for room in a queue
            return [(queue[0], Unit(int(lowered.unit[i])))]
        needs = lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]].tolist()
        if NEVER in needs:
            return []
        targets = []
        for j in needs:
            if end[j] < 0:
                core = int(core_of[j])
                # A set that has not been issued is behind the instruction at which the program
                # queue stands.
                own = Unit(int(lowered.unit[j])) if issued[j] >= 0 else Unit.S
                targets.append((core, own))
        return targets

    done: set[tuple[int, int]] = set()
    longest: list[tuple[int, int]] = []

    # Depth-first search. A queue that it has left without a cycle needs no second visit.
    def search(path: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
        nonlocal longest
        for queue in waits_for(path[-1]):
            if queue in path:
                return path[path.index(queue) :]
            if queue in heads and queue not in done and (closed := search([*path, queue])):
                return closed
        done.add(path[-1])
        longest = max(longest, path, key=len)
        return None

    for first in heads:
        if first not in done and (closed := search([first])):
            return [heads[q] for q in closed], True
    return [heads[q] for q in longest], False


def explain(
    lowered: Lowered,
    start: np.ndarray,
    end: np.ndarray,
    issued: np.ndarray,
    streams: list[CoreStream] | None = None,
) -> str:
    """Describe a deadlock in one line that quotes each instruction with its source position.

    Parameters
    ----------
    start, end, issued : (n,) ndarray of int64
        Times of an incomplete run, as in ``engine.Times``.
    streams : list of CoreStream, optional
        The instructions; without them, the line gives their indices only.
    """
    numbers, closed = cycle(lowered, end, issued)
    core_of = np.searchsorted(lowered.first, np.array(numbers), side="right") - 1
    shown = []
    for i, c in zip(numbers, core_of, strict=True):
        if streams is None:
            shown.append(f"instruction {i} of core {c} on {Unit(int(lowered.unit[i])).name}")
            continue
        instr = streams[c].instructions[i - lowered.first[c]]
        on = f"{instr.unit.name} of {streams[c]}" if len(streams) > 1 else instr.unit.name
        if lowered.words is not None and issued[i] < 0:
            on = f"S, as the queue of {on} is full"
        shown.append(f"{instr} at {instr.position} on {on}")
    chain = ", which waits for ".join(shown)
    if closed:
        back = ", which waits for itself" if len(numbers) == 1 else ", which waits for the first"
        return f"deadlock: {chain}{back}"
    return f"deadlock: {chain}, which waits for a set_flag that never comes"
