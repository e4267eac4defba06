"""The instructions that an interlocked queue holds back until an earlier result is there.

The queue starts an instruction that reads or writes what an earlier one writes when the results of
that one, and of all before it, are there. The rule is cautious in two points: an instruction with
several repeats waits as a whole, and a write waits for an earlier write. A write does not wait for
an earlier read, because an instruction has read its operands when its unit is free.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.isa.operands import Span
from vitruvian.sim.davinci.isa.registers import register_read, register_written
from vitruvian.sim.davinci.isa.segments import segments


def no_producers() -> np.ndarray:
    """Return ``Lowered.producer`` of a program without interlocked queues."""
    return np.zeros(0, np.int64)


def producers(
    parts: Iterable[tuple[Sequence[Unit], Sequence[Instruction]]], drain: np.ndarray
) -> np.ndarray:
    """Return ``Lowered.producer``.

    Parameters
    ----------
    parts : iterable of (sequence of Unit, sequence of Instruction)
        The interlocked units and the instructions of each core.
    drain : (n,) ndarray of int64
        As in ``Lowered``. A queue whose results are there at the end of an instruction needs no
        search.

    Returns
    -------
    (n,) ndarray of int64, or (0,) if no instruction needs to wait
    """
    found = no_producers()
    end = 0
    for units, instructions in parts:
        begin, end = end, end + len(instructions)
        if not units or not drain[begin:end].any():
            continue
        for unit in units:
            mine = [
                i
                for i in range(len(instructions))
                if instructions[i].unit == unit and instructions[i].kind == Kind.NORMAL
            ]
            if not drain[begin:end][mine].any():
                continue
            if not len(found):
                found = np.full(len(drain), -1, np.int64)
            latest = _latest([instructions[i] for i in mine])
            numbers = np.array(mine, np.int64) + begin
            found[numbers] = np.where(latest < 0, -1, numbers[latest])
    return found


def _latest(instructions: Sequence[Instruction]) -> np.ndarray:
    """Return the index of the latest earlier one that writes what each reads or writes, or −1."""
    spans: dict[str, dict[Span, int]] = defaultdict(dict)
    for instr in instructions:
        for span in (*instr.reads, *instr.writes):
            spans[span.buffer].setdefault(span, len(spans[span.buffer]))
    ranges = {}
    writer = {}  # the last writer of each segment of a buffer
    for buffer, known in spans.items():
        # Spans are cut into segments that no span divides, so that one number for each segment is
        # the whole state: its last writer.
        edges, first, low, high = segments(list(known))
        writer[buffer] = np.full(len(edges), -1, np.int64)
        ranges[buffer] = [
            [slice(low[k], high[k]) for k in range(first[s], first[s + 1])]
            for s in range(len(known))
        ]
    registers: dict[str, int] = {}
    latest = np.full(len(instructions), -1, np.int64)
    for i, instr in enumerate(instructions):
        read, written = register_read(instr), register_written(instr)
        waits = [] if read is None else [registers.get(read, -1)]
        for span in (*instr.reads, *instr.writes):
            last = writer[span.buffer]
            waits += [
                last[part].max(initial=-1) for part in ranges[span.buffer][spans[span.buffer][span]]
            ]
        # Results arrive in order in a queue, so that waiting for the latest producer is enough.
        latest[i] = max(waits, default=-1)
        for span in instr.writes:
            for part in ranges[span.buffer][spans[span.buffer][span]]:
                writer[span.buffer][part] = i
        if written is not None:
            registers[written] = i
    return latest
