"""Instructions as words in finite queues: what that adds to the times of a core.

In a core in hardware, an instruction is a few words. The program queue hands over one word after
the other, and needs room for each in the queue of its unit; that queue puts the words together, and
does so for the next instruction while the unit works on the last one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO, Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.isa.words import word_count

#: Words of a block of the program.
BLOCK_WORDS = 4


@dataclass(frozen=True, eq=False)
class WordTimes:
    """The times that words take, of n instructions as in ``Lowered``; times in attoseconds.

    Attributes
    ----------
    at, count : (n,) ndarray of int64
        Number of the first word in the program of the core, and of words.
    prepare : (n,) ndarray of int64
        Least time from the point at which a unit took the instruction before in its queue to the
        point at which it takes this one.
    base : (n,) ndarray of int64
        Place of the first word in the two arrays of all words that follow.
    room : (words,) ndarray of int64
        The instruction of the same queue that must have been taken before the word fits into the
        queue; −1 for none.
    room_lag : (words,) ndarray of int64
        Time from there until the word is in the queue.
    arrive : int
        Time from then until a unit that waits takes the instruction.
    cycle : int
        Time from one word to the next. Behind the words of a scalar instruction, it takes one more
        until unit S carries it out.
    turn : int
        Time from the last word of a block of four to the first word of the block that is read into
        its place.
    ahead : int
        Number of such places.
    """

    at: np.ndarray
    count: np.ndarray
    prepare: np.ndarray
    base: np.ndarray
    room: np.ndarray
    room_lag: np.ndarray
    arrive: int = 0
    cycle: int = 0
    turn: int = 0
    ahead: int = 0

    def over(self, first: np.ndarray, handed: np.ndarray, spent: np.ndarray) -> int:
        """Return when the program queues of all cores have ended, given times of the engine."""
        found = 0
        for c, last in enumerate((first[1:] - 1).tolist()):
            block, place = divmod(int(self.at[last] + self.count[last]), BLOCK_WORDS)
            # The word 0 comes, and then the blocks that have been read ahead are dropped.
            time = int(handed[c]) + self.cycle
            if place == 0:
                time = max(time, self._read(block, spent[c]))
            for each in range(block, block + self.ahead):
                time += self.cycle
                if each > block:
                    time = max(time, self._read(each, spent[c]))
            found = max(found, time)
        return found

    def _read(self, block: int, spent: np.ndarray) -> int:
        """Return the time of the first word of a block; 0 for those at the start."""
        return int(spent[block % self.ahead]) + self.turn if block >= self.ahead else 0

    def longest(self) -> float:
        """Return an upper bound on the time that all this adds."""
        times = self.count * float(self.cycle + self.turn), self.prepare, self.room_lag
        total = sum(each.sum(dtype=float) for each in times)
        return total + float(self.arrive) * len(self.count) + float(self.turn) * (self.ahead + 1)


_NONE = np.zeros(0, np.int64)
#: Of chips whose queues have no end, and whose instructions are dispatched at once.
NO_WORDS = WordTimes(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE)


def times_of_words(
    chip: Chip,
    table: Sequence[Instruction],
    which: np.ndarray,
    first: np.ndarray,
    unit: np.ndarray,
    kind: np.ndarray,
) -> WordTimes | None:
    """Return the times on a chip, given distinct instructions and the index of each one.

    Returns
    -------
    WordTimes or None
        None if the chip is not a core in hardware.
    """
    hardware = chip.hardware
    if hardware is None:
        return None
    counts = np.array([word_count(instr) for instr in table], np.int64)
    cycle = ATTO / chip.clock_hz
    return word_times(
        *(first, unit, kind, counts[which]),
        queue_words=hardware.queue_words,
        fetch_blocks=hardware.fetch_blocks,
        turn_cycles=hardware.block_turn,
        cycle=round(cycle),
    )


def word_times(
    first: np.ndarray,
    unit: np.ndarray,
    kind: np.ndarray,
    words: np.ndarray,
    *,
    queue_words: int,
    fetch_blocks: int,
    turn_cycles: int,
    cycle: int,
) -> WordTimes:
    """Return the times of instructions.

    A word that is handed over in one cycle leaves the queue in the next one at the earliest, and an
    instruction is taken at the earliest in the cycle behind its last word.

    Parameters
    ----------
    first, unit, kind : ndarray
        As in ``Lowered``.
    words : (n,) ndarray of int64
        Number of words of each instruction.
    queue_words : int
        WordTimes that fit into a queue.
    fetch_blocks : int
        Blocks that the fetch reads ahead, and drops one by one behind the end of the program.
    turn_cycles : int
        Cycles from the last word of a block to the first one of the block that takes its place.
    cycle : int
        Attoseconds of a cycle, in which a word is handed over.
    """
    base = np.cumsum(words) - words
    total = int(words.sum())
    room, lag = np.full(total, -1, np.int64), np.zeros(total, np.int64)
    scalar = (unit == Unit.S) | (kind == Kind.BARRIER_ALL)
    for begin, end in pairwise(first.tolist()):
        for queue in np.unique(unit[begin:end]):
            mine = begin + np.flatnonzero((unit[begin:end] == queue) & ~scalar[begin:end])
            if not len(mine):
                continue
            ends = np.cumsum(words[mine])
            # A word takes the place of the word that many before it in the queue, which its
            # instruction takes out after the instruction before that one was taken.
            numbers = np.arange(ends[-1])
            old = numbers - queue_words
            owner = np.searchsorted(ends, old, side="right")
            waits = (old >= 0) & (owner > 0)
            before = mine[np.maximum(owner - 1, 0)]
            begins = (ends - words[mine])[owner]
            places = np.repeat(base[mine] - (ends - words[mine]), words[mine]) + numbers
            room[places] = np.where(waits, before, -1)
            lag[places] = np.where(waits, (old - begins + 3) * cycle, 0)
    at = np.zeros(len(words), np.int64)
    for begin, end in pairwise(first.tolist()):
        at[begin:end] = np.cumsum(words[begin:end]) - words[begin:end]
    return WordTimes(
        at=at,
        count=words,
        prepare=(words + 1) * cycle,
        base=base,
        room=room,
        room_lag=lag,
        arrive=cycle,
        cycle=cycle,
        turn=turn_cycles * cycle,
        ahead=fetch_blocks,
    )
