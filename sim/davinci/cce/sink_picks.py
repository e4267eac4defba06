"""Intrinsics of the vector unit that pick elements: vgather and vreducev2.

References
----------
CCE intrinsic guide 8.5, cceapi_0037 and cceapi_0057: patterns, offsets, what the mask does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..lanes import lanes_of
from ..operands import BLOCK_BYTES, DTYPES, REPEAT_BYTES, Span, View
from ..semantics.picks import PATTERNS
from .machine import Call

if TYPE_CHECKING:
    from .sink import ProgramSink

__all__ = ["gather", "pick"]


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
