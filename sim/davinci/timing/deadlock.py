"""Why a program stands still: who waits for whom, as a cycle or an end that never comes."""

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.timing.lowering import NEVER, Lowered, Stream

__all__ = ["Deadlock", "cycle", "explain"]


class Deadlock(RuntimeError):
    """A program that never ends; the message says which instructions wait for each other."""


def _blocked(low: Lowered, end: np.ndarray, issued: np.ndarray) -> dict[tuple[int, int], int]:
    """The instruction that each blocked queue (core, unit) stands at."""
    heads = {}
    for c in range(len(low.begin)):
        for i in range(low.first[c], low.first[c + 1]):
            if end[i] >= 0:
                continue
            psq = low.unit[i] == Unit.S or low.kind[i] == Kind.BARRIER_ALL
            unit = Unit.S if psq else Unit(int(low.unit[i]))
            if issued[i] >= 0 and (c, unit) not in heads:
                heads[c, unit] = i
            if psq:  # the program queue stands here; nothing after it has been handed out
                break
    return heads


def cycle(low: Lowered, end: np.ndarray, issued: np.ndarray) -> tuple[list[int], bool]:
    """Instructions that each wait for the next.

    Returns
    -------
    instructions : list of int
        Numbers in the arrays.
    closed : bool
        Whether the last waits for the first; if not, it waits for a flag that is never set.
    """
    heads = _blocked(low, end, issued)
    core_of = np.searchsorted(low.first, np.arange(len(low)), side="right") - 1

    def waits_for(queue: tuple[int, int]) -> list[tuple[int, int]]:
        i = heads[queue]
        if low.kind[i] == Kind.BARRIER_ALL:
            return [q for q in heads if q[0] == queue[0] and q != queue]
        needs = low.need[low.need_first[i] : low.need_first[i + 1]].tolist()
        if NEVER in needs:
            return []
        found = []
        for j in needs:
            if end[j] < 0:
                core = int(core_of[j])
                own = Unit(int(low.unit[j])) if issued[j] >= 0 else Unit.S
                found.append((core, own))
        return found

    done: set[tuple[int, int]] = set()
    longest: list[tuple[int, int]] = []

    def search(path: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
        nonlocal longest
        for queue in waits_for(path[-1]):
            if queue in path:
                return path[path.index(queue) :]
            if queue in heads and queue not in done and (found := search([*path, queue])):
                return found
        done.add(path[-1])
        longest = max(longest, path, key=len)
        return None

    for first in heads:
        if first not in done and (found := search([first])):
            return [heads[q] for q in found], True
    return [heads[q] for q in longest], False


def explain(
    low: Lowered,
    start: np.ndarray,
    end: np.ndarray,
    issued: np.ndarray,
    streams: list[Stream] | None = None,
) -> str:
    """One line for a deadlock: each instruction of the cycle with its place in the source."""
    numbers, closed = cycle(low, end, issued)
    core_of = np.searchsorted(low.first, np.array(numbers), side="right") - 1
    shown = []
    for i, c in zip(numbers, core_of, strict=True):
        if streams is None:
            shown.append(f"instruction {i} of core {c} on {Unit(int(low.unit[i])).name}")
            continue
        one = streams[c].instructions[i - low.first[c]]
        on = f"{one.unit.name} of {streams[c]}" if len(streams) > 1 else one.unit.name
        shown.append(f"{one} at {one.position} on {on}")
    chain = ", which waits for ".join(shown)
    if closed:
        back = ", which waits for itself" if len(numbers) == 1 else ", which waits for the first"
        return f"deadlock: {chain}{back}"
    return f"deadlock: {chain}, which waits for a set_flag that never comes"
