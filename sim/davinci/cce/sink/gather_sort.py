"""Intrinsics of the vector unit that select or sort elements.

References
----------
CCE intrinsic guide 8.5, cceapi_0037 and cceapi_0057: patterns, offsets, use of the mask.
Public kernels that use vbitsort and vmrgsort4: groups of 32, pairs of 8 bytes, the words.
"""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci.cce.intrinsics.runtime import IntrinsicCall
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.isa.lanes import lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, REPEAT_BYTES, View
from vitruvian.sim.davinci.isa.vector import PAIR_BYTES
from vitruvian.sim.davinci.semantics.gather_sort import merge_keys


def gather(sink: SinkContext, call: IntrinsicCall, pieces) -> None:
    """Append vgather: each lane gets the element at a byte offset that is read from UB.

    Parameters
    ----------
    pieces : iterable of (first repeat, repeats, mask)
        The instructions that the intrinsic becomes.
    """
    if sink.functional is None:
        sink.fail(call, "the offsets are unknown, because nothing is carried out")
    sink.version += 1  # the bytes that it reads depend on data: never reuse its instructions
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
        low = int(places.min()) // BLOCK_BYTES * BLOCK_BYTES if len(places) else 0
        sink.core.vgather(
            out,
            View("UB", low, out.dtype, (), ()),
            offsets,
            base=a["offset"],
            repeat=repeat,
            mask=mask,
            dst_repeat_stride=a["dst_rep"],
            runs=_runs(places, width),
        )


def _runs(places: np.ndarray, width: int):
    """Yield (first byte, bytes) of runs of adjacent or overlapping elements."""
    if not len(places):
        return
    breaks = np.flatnonzero(np.diff(places) > width) + 1
    for run in np.split(places, breaks):
        yield int(run[0]), int(run[-1] - run[0]) + width


def pick(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append vreduce: keep the elements that a pattern or bits in memory select.

    The intrinsic ignores the lane mask. In counting mode, the counter is the number of elements
    of a repeat.
    """
    a, dst = call.arguments, call.arguments["dst"]
    width = DTYPES[dst.dtype].itemsize
    count = sink.mask & 0xFFFFFFFF if sink.counting else REPEAT_BYTES // width
    repeat, mode = a["repeat"], a["pattern"]
    if not repeat or not count:
        return
    bits, results = None, None
    if not mode:
        bits = sink.view(a["src1"], (), "uint8")
        results = _bits(sink, call, bits, repeat, count)
    sink.core.vreduce(
        sink.view(dst, ()),
        sink.view(a["src0"], ()),
        bits,
        mode=mode,
        count=count,
        repeat=repeat,
        src_block_stride=a["src0_blk"],
        src_repeat_stride=a["src0_rep"],
        bits_repeat_stride=a["src1_rep"],
        results=results,
    )


def _bits(sink: SinkContext, call: IntrinsicCall, view: View, repeat: int, count: int) -> int:
    """Return the number of bits in memory that are set."""
    if sink.functional is None:
        sink.fail(call, "the bits are unknown, because nothing is carried out")
    sink.version += 1
    strides = (call.arguments["src1_rep"] * BLOCK_BYTES, 1)
    data = sink.functional.memory(sink.core).at(view, (repeat, ceil_div(count, 8)), strides)
    bits = np.unpackbits(np.ascontiguousarray(data), axis=1, bitorder="little")
    return int(bits[:, :count].sum())


def sort(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append vbitsort: sort groups of 32 scores with indices, the highest score first."""
    a = call.arguments
    if a["repeat"]:
        views = [sink.view(a[name], ()) for name in ("dst", "src0", "src1")]
        sink.core.vbitsort(*views, repeat=a["repeat"])


def merge(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append vmrgsort: merge up to four lists of pairs.

    One word has the four lengths, of 16 bits each. The other word has the number of repeats in its
    low byte, then a bit for every list that is merged, and a bit for a merge that stops when one
    of them is exhausted.
    """
    a = call.arguments
    repeat, valid = a["control"] & 0xFF, a["control"] >> 8 & 15
    stops = a["control"] >> 12 & 1
    lists = [(a["lists"][i], a["lengths"] >> 16 * i & 0xFFFF) for i in range(4) if valid >> i & 1]
    lists = [(start, length) for start, length in lists if length]
    if not repeat or not lists:
        return
    ends = [start + length * PAIR_BYTES for start, length in lists]
    follow = [start for start, _ in lists[1:]] == ends[:-1]
    used = [i for i in range(4) if valid >> i & 1 and a["lengths"] >> 16 * i & 0xFFFF]
    if stops and (repeat > 1 or used != [*range(len(used))]):
        sink.fail(call, "to stop when a list is exhausted must have one repeat, of the first lists")
    if repeat > 1 and (len(lists) < 4 or len({n for _, n in lists}) > 1 or not follow):
        sink.fail(call, "with repeats, there must be four lists of one length, one behind another")
    src = View("UB", lists[0][0], a["dst"].dtype, (), ())
    taken = _taken(sink, call, src.dtype, lists) if stops else None
    sink.core.vmrgsort(sink.view(a["dst"], ()), src, lists=lists, repeat=repeat, taken=taken)


def _taken(
    sink: SinkContext, call: IntrinsicCall, dtype: str, lists: list[tuple[int, int]]
) -> tuple[int, ...]:
    """Return the pairs that a merge takes from each list before one of them is exhausted."""
    if sink.functional is None:
        sink.fail(call, "the scores are unknown, because nothing is carried out")
    sink.version += 1
    memory = sink.functional.memory(sink.core)
    keys, numbers = [], []
    for number, (start, length) in enumerate(lists):
        view = View("UB", start, dtype, (), ())
        keys.append(merge_keys(memory.at(view, (length,), (PAIR_BYTES,))))
        numbers.append(np.full(length, number))
    order = np.concatenate(numbers)[np.argsort(-np.concatenate(keys), kind="stable")]
    ends = [np.flatnonzero(order == number)[-1] for number in range(len(lists))]
    counts = np.bincount(order[: min(ends) + 1], minlength=len(lists))
    return tuple(counts.tolist())
