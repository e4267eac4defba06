"""Intrinsics of the vector unit that pick elements: vgather, vreducev2, vbitsort, vmrgsort4.

References
----------
CCE intrinsic guide 8.5, cceapi_0037 and cceapi_0057: patterns, offsets, what the mask does.
How public kernels use the two that sort: groups of 32, pairs of 8 bytes, the words of vmrgsort4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vitruvian.sim.davinci.cce.intrinsics.runtime import Call
from vitruvian.sim.davinci.isa.lanes import lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, REPEAT_BYTES, Span, View
from vitruvian.sim.davinci.semantics.gather_sort import PAIR_BYTES, PATTERNS, SORTED

if TYPE_CHECKING:
    from vitruvian.sim.davinci.cce.sink.program import ProgramSink

__all__ = ["gather", "merge", "pick", "sort"]

#: Pairs that are merged in the time of a repeat: assumed, from what a public cost model of the 910B
#: has (78 cycles for four lists of 64), and 16 cycles a repeat.
_MERGED = 64


def gather(sink: ProgramSink, call: Call, pieces) -> None:
    """An element for every lane, from where a word for every lane says.

    `pieces` are (first repeat, repeats, mask) as `sink_vector` makes them.
    """
    if sink.functional is None:
        sink.fail(call, "what the offsets are is not known here: nothing is carried out")
    sink.version += 1  # what it reads depends on data: it is never the same again
    a, dst, src = call.arguments, call.arguments["dst"], call.arguments["src"]
    lanes, width = lanes_of(sink.view(dst, ())), DTYPES[dst.dtype].itemsize
    memory = sink.functional.memory(sink.core)
    for first, repeat, mask in pieces:
        step = a["dst_rep"] * BLOCK_BYTES
        out = sink.view(dst._replace(address=dst.address + first * step), ())
        words = src._replace(address=src.address + 4 * first * lanes)
        offsets = sink.view(words, (repeat * lanes,), "uint32")
        on = np.array([mask >> i & 1 for i in range(lanes)] * repeat, bool)
        places = np.unique(memory.elements(offsets)[on].astype(np.int64)) + a["offset"]
        reads = tuple(Span("UB", p, n) for p, n in _runs(places, width))
        writes = Span("UB", out.offset, mask.bit_length() * width, ((repeat, step),))
        low = int(places.min()) // BLOCK_BYTES * BLOCK_BYTES if len(places) else 0
        views = {"dst": out, "src": View("UB", low, out.dtype, (), ()), "offsets": offsets}
        fields = {"repeat": repeat, "mask": mask, "dst_repeat_stride": a["dst_rep"]}
        fields["base"] = a["offset"]
        reads = (*reads, offsets.span)
        sink.core._vector("vgather", views, fields, reads, (writes,), repeat, lanes, mask)


def _runs(places: np.ndarray, width: int):
    """(first byte, bytes) of runs of elements, each of which begins where one before ends."""
    if not len(places):
        return
    breaks = np.flatnonzero(np.diff(places) > width) + 1
    for run in np.split(places, breaks):
        yield int(run[0]), int(run[-1] - run[0]) + width


def pick(sink: ProgramSink, call: Call) -> None:
    """Elements that a pattern names, or bits in memory; the lane mask does not count.

    In counting mode a repeat is as many elements as are counted.
    """
    a, dst = call.arguments, call.arguments["dst"]
    width = DTYPES[dst.dtype].itemsize
    count = sink.mask & 0xFFFFFFFF if sink.counting else REPEAT_BYTES // width
    repeat, mode = a["repeat"], a["pattern"]
    if not repeat or not count:
        return
    views = {name: sink.view(a[name], ()) for name in ("dst", "src0")}
    views["src"] = views.pop("src0")
    blocks, rest = divmod(count * width, BLOCK_BYTES)
    block, step = a["src0_blk"] * BLOCK_BYTES, a["src0_rep"] * BLOCK_BYTES
    start = views["src"].offset
    reads = [Span("UB", start, BLOCK_BYTES, ((repeat, step), (blocks, block)))] if blocks else []
    if rest:
        reads.append(Span("UB", start + blocks * block, rest, ((repeat, step),)))
    fields = {
        "repeat": repeat,
        "mode": mode,
        "count": count,
        "src_block_stride": a["src0_blk"],
        "src_repeat_stride": a["src0_rep"],
        "bits_repeat_stride": a["src1_rep"],
    }
    if mode:
        first, every = PATTERNS[mode]
        found = repeat * len(range(first, count, every))
    else:
        views["src1"] = sink.view(a["src1"], (), "uint8")
        found = _bits(sink, call, views["src1"], repeat, count)
        size, apart = -(-count // 8), a["src1_rep"] * BLOCK_BYTES
        reads.append(Span("UB", views["src1"].offset, size, ((repeat, apart),)))
    writes = Span("UB", views["dst"].offset, found * width)
    sink.core._vector("vreduce", views, fields, tuple(reads), (writes,), repeat, count)


def _bits(sink: ProgramSink, call: Call, view: View, repeat: int, count: int) -> int:
    """Bits that are set in memory."""
    if sink.functional is None:
        sink.fail(call, "what the bits are is not known here: nothing is carried out")
    sink.version += 1
    strides = (call.arguments["src1_rep"] * BLOCK_BYTES, 1)
    data = sink.functional.memory(sink.core).at(view, (repeat, -(-count // 8)), strides)
    bits = np.unpackbits(np.ascontiguousarray(data), axis=1, bitorder="little")
    return int(bits[:, :count].sum())


def sort(sink: ProgramSink, call: Call) -> None:
    """Groups of 32 scores with indices to pairs, the highest score first."""
    a = call.arguments
    count = a["repeat"] * SORTED
    if not count:
        return
    views = {"dst": sink.view(a["dst"], ()), "src": sink.view(a["src0"], ())}
    views["src1"] = sink.view(a["src1"], ())
    reads = tuple(Span("UB", views[n].offset, count * views[n].itemsize) for n in ("src", "src1"))
    writes = Span("UB", views["dst"].offset, count * PAIR_BYTES)
    fields = {"repeat": a["repeat"]}
    sink.core._vector("vbitsort", views, fields, reads, (writes,), a["repeat"], SORTED)


def merge(sink: ProgramSink, call: Call) -> None:
    """Up to four lists of pairs to one; their lengths are 16 bits each of a word.

    The other word has the repeats in its low byte, then a bit for every list that takes part.
    """
    a = call.arguments
    repeat, valid = a["control"] & 0xFF, a["control"] >> 8 & 15
    if a["control"] >> 12 & 1:
        sink.fail(call, "to stop when a list is exhausted is not modelled")
    lists = [(a["lists"][i], a["lengths"] >> 16 * i & 0xFFFF) for i in range(4) if valid >> i & 1]
    lists = [(start, length) for start, length in lists if length]
    if not repeat or not lists:
        return
    total = sum(length for _, length in lists)
    ends = [start + length * PAIR_BYTES for start, length in lists]
    follow = [start for start, _ in lists[1:]] == ends[:-1]
    if repeat > 1 and (len(lists) < 4 or len({n for _, n in lists}) > 1 or not follow):
        sink.fail(call, "with repeats the lists must be four of a length, one behind another")
    dtype = a["dst"].dtype
    views = {"dst": sink.view(a["dst"], ()), "src": View("UB", lists[0][0], dtype, (), ())}
    step = ((repeat, total * PAIR_BYTES),)
    reads = tuple(Span("UB", start, n * PAIR_BYTES, step) for start, n in lists)
    writes = Span("UB", views["dst"].offset, repeat * total * PAIR_BYTES)
    fields = {"repeat": repeat, "lists": tuple(lists)}
    groups = -(-repeat * total // _MERGED)
    sink.core._vector("vmrgsort", views, fields, reads, (writes,), groups, _MERGED)
