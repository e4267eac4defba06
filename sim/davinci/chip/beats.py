"""How long unit V of a core in hardware waits for its own results: ``hdl.core.LaneFeeder``.

An instruction is a sequence of beats of a block. A block of UB that an earlier beat of the same
instruction still has to write is read after that.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS

#: Blocks of a repeat.
BLOCKS = 8
#: Cycles from the last read of a beat to the write of its result, besides the vector unit's.
_AROUND = 2


@dataclass(frozen=True)
class Steps:
    """Where the beats of an instruction read or write, in bytes: a start and a step a level.

    The levels are repeats, blocks, and the halves of a block where dtypes of 16 and 32 bits meet.
    """

    start: int
    steps: tuple[int, int, int]

    def rows(self, counts: tuple[int, int, int]) -> np.ndarray:
        """Return the number of the block of UB of each beat."""
        at = np.full((1,), self.start, np.int64)
        for count, step in zip(counts, self.steps, strict=True):
            at = (at[:, None] + step * np.arange(count)).reshape(-1)
        return at // BLOCK_BYTES


def waiting_cycles(instruction: Instruction, latency: int) -> int:
    """Return the cycles in which an instruction waits for its own results.

    Parameters
    ----------
    latency : int
        Cycles from the operands of a block to its result.
    """
    operands, f = instruction.operands, instruction.fields
    dst = operands.get("dst")
    names = [name for name in ("src0", "src1", "src") if name in operands]
    sources = [operands[name] for name in names if operands[name].buffer == "UB"]
    if dst is None or dst.buffer != "UB" or len(sources) < len(names) or not names:
        return 0
    wide = [DTYPES[view.dtype].itemsize == 4 for view in (dst, sources[0])]
    halves = instruction.op == "vconv" and wide[0] != wide[1]
    counts = f["repeat"], BLOCKS // 2 if halves else BLOCKS, 2 if halves else 1

    def steps(name: str, splits: bool) -> Steps:
        repeat, block = (BLOCK_BYTES * f[f"{name}_{what}_stride"] for what in ("repeat", "block"))
        if splits:  # a block has two beats
            return Steps(operands[name].offset, (repeat, block, BLOCK_BYTES // 2))
        if halves:
            return Steps(operands[name].offset, (repeat, 2 * block, block))
        return Steps(operands[name].offset, (repeat, block, 0))

    if instruction.op in VECTOR_OPS and VECTOR_OPS[instruction.op].reads_dst:
        names = [*names, "dst"]
    reads = tuple(steps(name, halves and wide[0]) for name in names)
    if "dst_block_stride" in f:
        writes = steps("dst", halves and wide[1])
    elif "dst_repeat_bytes" in f:  # a result for each block, in elements
        size = BLOCK_BYTES // 2 if instruction.op == "vcpadd" else DTYPES[dst.dtype].itemsize
        writes = Steps(dst.offset, (f["dst_repeat_bytes"], size, 0))
    else:  # bits
        size = BLOCK_BYTES // DTYPES[sources[0].dtype].itemsize // 8
        writes = Steps(dst.offset, (BLOCKS * size, size, 0))
    return _waits(reads, writes, counts, latency)


@lru_cache(4096)
def _waits(
    reads: tuple[Steps, ...], writes: Steps, counts: tuple[int, int, int], latency: int
) -> int:
    rows, targets = [each.rows(counts) for each in reads], writes.rows(counts)
    if not any(np.isin(each, targets).any() for each in rows):
        return 0
    written: dict[int, int] = {}  # when the latest result for a block comes
    now = result = 0
    for target, *sources in zip(targets.tolist(), *(each.tolist() for each in rows), strict=True):
        now = _read(now, [written.get(row, 0) + 1 for row in sources])
        result = max(result + 1, now + latency + _AROUND)
        written[target] = result
    return now - len(rows) * len(targets)


def _read(now: int, ready: list[int]) -> int:
    """Return when the last block of a beat is read, one in each cycle behind ``now``.

    Parameters
    ----------
    ready : list of int
        When the block of each source can be read: the first and the second one in any order, and
        that of the target behind the first one.
    """
    open_ = set(range(len(ready)))
    target = len(ready) - 1 if len(ready) > 2 else -1
    while open_:
        free = [o for o in open_ if o != target or 0 not in open_]
        first = min(free, key=lambda o: (max(ready[o], now + 1), o))
        now = max(now + 1, ready[first])
        open_.remove(first)
    return now
