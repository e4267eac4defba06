"""The reads of unit V of a core in hardware: ``hdl.core.LaneFeeder``.

An instruction is a sequence of beats of some blocks. In a cycle, each bank of UB gives a block, so
blocks of a beat in the same bank are read one after the other. A block of UB that an earlier beat
of the same instruction still has to write is read after that.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, REPEAT_BYTES
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS

#: BeatBlocks of a repeat.
BLOCKS = REPEAT_BYTES // BLOCK_BYTES
#: Cycles from the last read of a beat to the write of its result, besides the vector unit's.
_AROUND = 2
#: Beats whose operands wait in front of the vector unit.
_WAITING = 4


@dataclass(frozen=True)
class BeatBlocks:
    """Where the beats of an instruction read or write, in bytes.

    Attributes
    ----------
    start : int
    steps : tuple of (int, int)
        Numbers and steps of the levels: repeats, beats, and the halves of a block where dtypes of
        16 and 32 bits meet in beats of one block.
    within : tuple of (int, int)
        Number and step of the blocks of a beat.
    """

    start: int
    steps: tuple[tuple[int, int], ...]
    within: tuple[int, int] = (1, 0)

    def rows(self) -> np.ndarray:
        """Return the numbers of the blocks of UB as an array of beats and blocks."""
        at = np.full((1,), self.start, np.int64)
        for count, step in self.steps:
            at = (at[:, None] + step * np.arange(count)).reshape(-1)
        count, step = self.within
        return (at[:, None] + step * np.arange(count)) // BLOCK_BYTES


def read_cycles(
    instruction: Instruction, latency: int, *, blocks: int = 1, banks: int = 1, passes: int = 1
) -> int:
    """Return the cycles of the reads of an instruction, or of its writes if these take longer.

    Parameters
    ----------
    latency : int
        Cycles from the operands of a beat to its result.
    blocks : int
        BeatBlocks of a beat.
    banks : int
        Banks of UB.
    passes : int
        Cycles in which a beat enters the vector unit.
    """
    operands, f = instruction.operands, instruction.fields
    dst = operands.get("dst")
    names = [name for name in ("src0", "src1", "src") if name in operands]
    views = [view for view in (dst, operands[names[0]]) if view is not None]
    sizes = [DTYPES[view.dtype].itemsize for view in views]
    halves = instruction.op == "vconv" and sizes[0] != sizes[1]
    repeat = f["repeat"]

    def steps(name: str, shorter: bool) -> BeatBlocks:
        """Return the blocks of an operand; a ``shorter`` one has half as many as the other one."""
        start = operands[name].offset
        far, near = (BLOCK_BYTES * f[f"{name}_{what}_stride"] for what in ("repeat", "block"))
        if blocks > 1:
            own = blocks // 2 if shorter else blocks
            return BeatBlocks(start, ((repeat, far), (BLOCKS // blocks, own * near)), (own, near))
        if not halves:
            return BeatBlocks(start, ((repeat, far), (BLOCKS, near)))
        if shorter:  # a block has two beats
            return BeatBlocks(start, ((repeat, far), (BLOCKS // 2, near), (2, BLOCK_BYTES // 2)))
        return BeatBlocks(start, ((repeat, far), (BLOCKS // 2, 2 * near), (2, near)))

    reads, third = [steps(name, halves and sizes[0] > sizes[1]) for name in names], False
    if dst is None:
        writes = None
    elif "dst_block_stride" in f:
        writes = steps("dst", halves and sizes[0] < sizes[1])
        if instruction.op in VECTOR_OPS and VECTOR_OPS[instruction.op].reads_dst:
            reads, third = [*reads, writes], True
    elif "dst_repeat_bytes" in f:  # a result for each block, in elements
        size = BLOCK_BYTES // 2 if instruction.op == "vcpadd" else DTYPES[dst.dtype].itemsize
        writes = BeatBlocks(
            dst.offset, ((repeat, f["dst_repeat_bytes"]), (BLOCKS // blocks, size * blocks))
        )
    else:  # bits
        size = BLOCK_BYTES // DTYPES[operands[names[0]].dtype].itemsize // 8
        writes = BeatBlocks(
            dst.offset, ((repeat, BLOCKS * size), (BLOCKS // blocks, size * blocks))
        )
    return _cycles(tuple(reads), writes, third, latency, banks, passes)


@lru_cache(4096)
def _cycles(
    reads: tuple[BeatBlocks, ...],
    writes: BeatBlocks | None,
    third: bool,
    latency: int,
    banks: int,
    passes: int,
) -> int:
    rows = [each.rows() for each in reads]
    targets = np.zeros((len(rows[0]), 0), np.int64) if writes is None else writes.rows()
    if banks == 1 and not any(np.isin(each, targets).any() for each in rows):
        first = sum(each[:1].size for each in rows)
        return first + (len(targets) - 1) * max(first, passes) + passes - 1 if first else 0
    written: dict[int, int] = {}  # when the latest result for a block comes
    now = result = 0
    taken: list[int] = []  # when the vector unit has taken a beat
    for k in range(len(targets)):
        if k >= _WAITING:
            now = max(now, taken[k - _WAITING] + 1)
        now = _read(now, [each[k].tolist() for each in rows], third, written, banks)
        taken.append(max(now, taken[-1] + 1 if taken else 0) + passes - 1)
        own = targets[k].tolist()
        # Blocks of a result in the same bank are written one after the other.
        most = max(Counter(bank_of(row, banks) for row in own).values(), default=1)
        result = max(result + 1, taken[-1] + latency + _AROUND) + most - 1
        written.update(dict.fromkeys(own, result))
    return max(now, result - latency - _AROUND)


def _read(now: int, rows: list[list[int]], third: bool, written: dict[int, int], banks: int) -> int:
    """Return when the last block of a beat is read, at the earliest in the cycle behind ``now``.

    The blocks of the first and the second source can be read in any order. With ``third``, those
    of the target come last, each behind that of the first source, as they share a port.
    """
    used: set[tuple[int, int]] = set()  # banks and cycles in which they give a block

    def give(row: int, ready: int) -> int:
        bank, at = bank_of(row, banks), max(ready, now + 1, written.get(row, 0) + 1)
        while (bank, at) in used:
            at += 1
        used.add((bank, at))
        return at

    sources = rows[:-1] if third else rows
    # Requests that can be granted earlier come first.
    order = sorted(
        (max(written.get(row, 0), now), o, j)
        for o, own in enumerate(sources)
        for j, row in enumerate(own)
    )
    times = {(o, j): give(sources[o][j], 0) for _, o, j in order}
    end = max(times.values(), default=now + 1)
    if third:
        end = max([end, *(give(row, times[0, j] + 1) for j, row in enumerate(rows[-1]))])
    return end


def bank_of(row: int, banks: int) -> int:
    """Return the bank of a block of UB: its low bits, and the parity of all others."""
    low = banks.bit_length() - 2
    if low < 0:
        return 0
    return row & (1 << low) - 1 | ((row >> low).bit_count() & 1) << low
