"""The check of an instruction whose destination overlaps its own sources.

The vendor's manual allows two cases: the destination is disjoint from a source, or equal to it.
A source may then not be the destination of an earlier repeat of the same instruction. The exception
is a sum (or product, maximum, …) of all repeats: dst and src1 are the same, with repeat stride 0.

The vendor's library also lets results that are smaller than their source begin where it begins, so
that no repeat writes what a later one reads: comparisons, reductions, gathers by a pattern, and
conversions (the documentation of Cast warns of those to a longer type alone).

References
----------
Decision 0018 has the public sources.
"""

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.lanes import lane_spans, lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, Span, View
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.semantics.lanes import independent

#: Instructions that may combine all repeats in one place.
_ACCUMULATE = frozenset("vadd vsub vmul vmax vmin vand vor".split())

_REPEAT = "_repeat_stride"


def overlapping(instr: Instruction) -> str:
    """Return what is wrong with the destination and the sources of an instruction, or "".

    Returns
    -------
    str
        The second half of a sentence that begins with the instruction.
    """
    touching = [
        (read, write)
        for write in instr.writes
        for read in instr.reads
        if read.buffer == write.buffer
        and read.nbytes
        and write.nbytes
        and (read is write or (read.first < write.end and write.first < read.end))
    ]
    if not touching:
        return ""
    for read, write in touching:
        common = read.overlap(write)
        if common is None or read in instr.writes:
            continue
        if _shrinks(instr, read):
            continue
        others = [r for r in instr.reads if r.buffer == read.buffer and r not in instr.writes]
        if not _equal(others, instr.writes):
            return (
                f"writes {read.buffer}[{common[0]}:{common[1]}], a part of what it reads; "
                "destination and source must be the same or disjoint"
            )
    op = VECTOR_OPS.get(instr.op)
    if op is not None and op.form.lanewise and instr.fields.get("repeat", 1) > 1:
        return _between_repeats(instr, op.reads_dst)
    return ""


def _shrinks(instr: Instruction, read: Span) -> bool:
    """Return True if the results begin where a source does, and no repeat overtakes its reads."""
    f, dst = instr.fields, instr.operands.get("dst")
    if dst is None or read.first != dst.offset:
        return False
    steps = [32 * f[name] for name in f if name.startswith("src") and name.endswith(_REPEAT)]
    if instr.op in ("vcmpv", "vcmpvs"):
        sources = [view for name, view in instr.operands.items() if name != "dst"]
        step = lanes_of(*sources) // 8
    elif instr.op == "vreduce":
        step = 256
    elif instr.op == "vconv" and dst.itemsize < instr.operands["src"].itemsize:
        step = BLOCK_BYTES * f["dst_repeat_stride"]
    else:
        step = f.get("dst_repeat_bytes", -1)
    return step >= 0 and bool(steps) and (f.get("repeat") == 1 or all(step <= s for s in steps))


def _equal(reads: list[Span], writes: tuple[Span, ...]) -> bool:
    """Return True if two lists of spans are the same bytes."""
    first, second = (np.unique(_bytes(spans)) for spans in (reads, writes))
    return np.array_equal(first, second)


def _bytes(spans) -> np.ndarray:
    parts = [np.arange(a, b) for span in spans for a, b in span.intervals().tolist()]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _between_repeats(instr: Instruction, reads_dst: bool) -> str:
    """Return what is wrong if a repeat reads what an earlier repeat of the instruction writes."""
    f, operands = instr.fields, instr.operands
    lanewise = {name: v for name, v in operands.items() if f"{name}_block_stride" in f}
    if "dst" not in lanewise:
        return ""
    lanes, dst = lanes_of(*lanewise.values()), lanewise["dst"]
    sources = [name for name in lanewise if name != "dst" or reads_dst]
    strided = {
        name: (view, f[f"{name}_block_stride"], f[f"{name}_repeat_stride"])
        for name, view in lanewise.items()
    }
    # Nearly all instructions that compute in place pass this fast test.
    if independent(lanes, f["repeat"], strided["dst"], [strided[name] for name in sources]):
        return ""
    places = {name: _places(view, lanes, f, name) for name, view in lanewise.items()}
    low = min(int(x.min()) for x in places.values())
    writer = np.full(max(int(x.max()) for x in places.values()) - low + 1, f["repeat"], np.int64)
    # The first repeat that writes each byte: later assignments go to earlier repeats.
    for n in reversed(range(f["repeat"])):
        writer[places["dst"][n] - low] = n
    repeat = np.arange(f["repeat"])[:, None]
    for name in sources:
        source = lanewise[name]
        if source.buffer != dst.buffer:
            continue
        late = writer[places[name] - low] < repeat
        if late.any() and not _accumulates(instr, name, places):
            n = int(np.argmax(late.any(axis=1)))
            at = int(places[name][n][late[n]][0])
            return (
                f"reads {source.buffer}[{at}] in repeat {n} as {name}, which an earlier repeat "
                "writes; only src1 may be the same as dst, with repeat stride 0 for both"
            )
    return ""


def _places(view: View, lanes: int, fields, name: str) -> np.ndarray:
    """Return the enabled bytes of an operand as an array (repeat, bytes)."""
    block, step = fields[f"{name}_block_stride"], fields[f"{name}_repeat_stride"]
    once = _bytes(lane_spans(view, lanes, fields["mask"], 1, block, 0))
    return once + np.arange(fields["repeat"])[:, None] * step * BLOCK_BYTES


def _accumulates(instr: Instruction, name: str, places: dict[str, np.ndarray]) -> bool:
    """Return True if dst and src1 are the place in which all repeats are combined."""
    f = instr.fields
    return (
        instr.op in _ACCUMULATE
        and name == "src1"
        and f["dst_repeat_stride"] == f["src1_repeat_stride"] == 0
        and np.array_equal(places["dst"][0], places["src1"][0])
        and not np.isin(places["src0"], places["dst"][0]).any()
    )
