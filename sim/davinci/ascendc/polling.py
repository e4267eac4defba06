"""Polling as an order between cores: a read that sees another core's write comes after it.

Cores tell each other through global memory, too: one writes a word, and others read it until it has
changed. A place in the program polls if a core reads the same bytes there twice, sees another
core's write the second time, and computes nothing in between. Every read of such a place waits for
the writes that it sees, and is no race with others: it is there to see them. So is every other
scalar read of a word that a place polls.
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace

from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.isa.operands import Span
from vitruvian.sim.davinci.program.program import Core, Program

#: The most bytes of a read that may poll.
_MOST_BYTES = 4096

#: Bytes of a word whose latest writers are known.
_WORD = 4

#: Bytes of a line of the cache of scalar accesses.
LINE_BYTES = 64

#: Units that work on nothing but addresses and flags.
_IDLE = (Unit.S, Unit.MTE2)


@dataclass(frozen=True)
class _GlobalAccess:
    """Instructions of a core that access global memory, in the order of their execution.

    Attributes
    ----------
    core : Core
    first, end : int
        Their indices among the core's instructions.
    place : bytes
        The chain of calls that leads to them.
    content : bytes
        Everything that they depend on; equal accesses have equal contents.
    """

    core: Core
    first: int
    end: int
    place: bytes
    content: bytes


#: A write: the core and the index of the instruction.
_Write = tuple[Core, int]


class Polls:
    """The accesses of all cores to global memory, in the order in which they were carried out.

    Attributes
    ----------
    places : set of bytes
        The chains of calls of the places that poll, after ``order``.
    """

    def __init__(self) -> None:
        self.accesses: list[_GlobalAccess] = []
        self.places: set[bytes] = set()

    def note(self, core: Core, first: int, place: bytes, content: bytes) -> None:
        """Add a core's instructions from index ``first`` on."""
        end = len(core.instructions)
        if end > first:
            self.accesses.append(_GlobalAccess(core, first, end, place, content))

    def order(self, program: Program) -> int:
        """Insert flags between cores for what polls see, and return their number.

        Blocks that run in rounds cannot wait for each other, and are left as they are.
        """
        rounds = any(
            program.blocks is not None and core.index >= core.kind.count for core in program
        )
        if program.chip.cross_s is None or rounds or len({a.core for a in self.accesses}) < 2:
            return 0
        reads = self._candidates()
        seen = self._seen(reads)
        places = self.places = self._places(reads, seen)
        reads = self._on_polled_words([n for n in reads if self.accesses[n].place in places])
        seen = self._seen(reads)
        sets: dict[_Write, int] = {}
        waits: dict[Core, dict[int, list[int]]] = defaultdict(dict)
        known: dict[Core, set[_Write]] = defaultdict(set)
        for number in reads:
            access = self.accesses[number]
            fresh = [_flushed(w) for w in seen[number] if w[0] is not access.core]
            fresh = [w for w in dict.fromkeys(fresh) if w not in known[access.core]]
            known[access.core].update(fresh)
            numbers = [sets.setdefault(write, len(sets)) for write in fresh]
            for index in range(access.first, access.end):
                waits[access.core].setdefault(index, [])
            waits[access.core][access.first] += numbers
        written: dict[Core, dict[int, int]] = defaultdict(dict)
        for (core, index), number in sets.items():
            written[core][index] = number
        for core in {*waits, *written}:
            _insert(core.instructions, waits[core], written[core])
        return sum(len(numbers) for at in waits.values() for numbers in at.values())

    def _candidates(self) -> list[int]:
        """Return the numbers of the reads that may poll: those of a place that repeats one."""
        small = []
        again: set[bytes] = set()
        last: set[tuple[Core, bytes]] = set()
        for number, access in enumerate(self.accesses):
            instrs = access.core.instructions[access.first : access.end]
            if any(i.unit not in _IDLE for i in instrs):
                continue
            if not 0 < sum(s.nbytes for i in instrs for s in _spans(i.reads)) <= _MOST_BYTES:
                continue
            small.append(number)
            if (access.core, access.content) in last:
                again.add(access.place)
            last.add((access.core, access.content))
        return [n for n in small if self.accesses[n].place in again]

    def _on_polled_words(self, polls: list[int]) -> list[int]:
        """Return the numbers of some polls, and of all scalar reads of words that they poll."""
        words = {w for number in polls for w in self._words(number) if self._is_scalar(number)}
        others = (
            number
            for number in range(len(self.accesses))
            if words and self._is_scalar(number) and not words.isdisjoint(self._words(number))
        )
        return sorted({*polls, *others})

    def _is_scalar(self, number: int) -> bool:
        a = self.accesses[number]
        return a.core.instructions[a.first].unit == Unit.S

    def _words(self, number: int) -> set[int]:
        """Return the words that an access reads."""
        a = self.accesses[number]
        spans = [s for i in a.core.instructions[a.first : a.end] for s in _spans(i.reads)]
        return {w for s in spans for w in _words(s)}

    def _seen(self, reads: list[int]) -> dict[int, tuple[_Write, ...]]:
        """Return the writes that each of some reads sees."""
        words = {number: sorted(self._words(number)) for number in reads}
        interest = sorted({w for each in words.values() for w in each})
        latest: dict[int, tuple[_Write, ...]] = {}
        seen = {}
        for number, a in enumerate(self.accesses):
            if number in words:
                seen[number] = tuple(w for word in words[number] for w in latest.get(word, ()))
            for index in range(a.first, a.end):
                instr = a.core.instructions[index]
                for span in _spans(instr.writes):
                    for word in _among(interest, span):
                        # A reader of a sum sees all of its terms.
                        before = latest.get(word, ()) if instr.fields.get("atomic") else ()
                        latest[word] = (*before, (a.core, index))
        return seen

    def _places(self, reads: list[int], seen: dict[int, tuple[_Write, ...]]) -> set[bytes]:
        """Return the places that poll."""
        places = set()
        last: dict[tuple[Core, bytes], int] = {}
        for number in reads:
            access = self.accesses[number]
            before = last.get((access.core, access.content))
            last[access.core, access.content] = number
            if before is None or access.place in places or seen[before] == seen[number]:
                continue
            news = set(seen[number]) - set(seen[before])
            between = access.core.instructions[self.accesses[before].end : access.first]
            if any(core is not access.core for core, _ in news) and all(map(_idle, between)):
                places.add(access.place)
        return places


def _flushed(write: _Write) -> _Write:
    """Return the last of the scalar stores to one line that follow each other.

    They are in the core's cache until the kernel writes the line back; others then see all of them.
    """
    core, index = write
    instrs = core.instructions
    if instrs[index].op == "scalar_store":
        line = instrs[index].writes[0].first // LINE_BYTES
        while (
            index + 1 < len(instrs)
            and instrs[index + 1].op == "scalar_store"
            and instrs[index + 1].writes[0].buffer == GM
            and instrs[index + 1].writes[0].first // LINE_BYTES == line
        ):
            index += 1
    return core, index


def _idle(instr: Instruction) -> bool:
    """Return True for an instruction that a core may execute while it polls."""
    return instr.kind != Kind.NORMAL or (
        instr.unit in _IDLE and not any(span.buffer == GM for span in instr.writes)
    )


def _spans(spans: tuple[Span, ...]) -> list[Span]:
    return [span for span in spans if span.buffer == GM]


def _words(span: Span) -> list[int]:
    return [
        word
        for low, high in span.intervals().tolist()
        for word in range(low // _WORD, -(-high // _WORD))
    ]


def _among(interest: list[int], span: Span) -> list[int]:
    """Return the words of a sorted list that a span touches."""
    low = bisect_left(interest, span.first // _WORD)
    high = bisect_left(interest, -(-span.end // _WORD))
    if low == high:
        return []
    touched = span.intervals().tolist()
    return [
        word
        for word in interest[low:high]
        if any(a < (word + 1) * _WORD and word * _WORD < b for a, b in touched)
    ]


def _insert(
    instructions: list[Instruction], waits: dict[int, list[int]], sets: dict[int, int]
) -> None:
    """Insert the flags of polls into the instructions of a core, by index."""
    made: list[Instruction] = []
    for index, instr in enumerate(instructions):
        for number in waits.get(index, ()):
            made.append(_flag(instr, "cross_wait", Kind.WAIT, number))
        made.append(replace(instr, reads=()) if index in waits else instr)
        if index in sets:
            made.append(_flag(instr, "cross_set", Kind.SET, sets[index]))
    instructions[:] = made


def _flag(instr: Instruction, op: str, kind: Kind, number: int) -> Instruction:
    fields = {"register": number, "mode": "seen"}
    return Instruction(instr.unit, op, kind, fields=fields, position=instr.position)
