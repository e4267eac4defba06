"""Vector instructions that select elements by byte offsets, by bits, or in the order of scores.

A sorted element has 8 bytes: the score first, an index in the last four.
"""

from dataclasses import replace

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.lanes import lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES
from vitruvian.sim.davinci.isa.vector import PAIR_BYTES, PATTERNS, SORTED
from vitruvian.sim.davinci.semantics.lanes import enabled
from vitruvian.sim.davinci.semantics.memory import FunctionalError, Memory


def _gather(memory: Memory, instr: Instruction) -> None:
    """Set lane l of a repeat to the element at ``base`` + the lane's offset, in bytes."""
    f, dst, offsets = instr.fields, instr.operands["dst"], instr.operands["offsets"]
    lanes, repeat, kind = lanes_of(dst), f["repeat"], DTYPES[dst.dtype]
    places = f["base"] + memory.at(offsets, (repeat, lanes), (4 * lanes, 4)).astype(np.int64)
    on = enabled(f["mask"], lanes)
    on = np.ones(lanes, bool) if on is None else on
    places = places[:, on]
    source = memory.buffers["UB"]
    if places.size and places.max() + kind.itemsize > len(source):
        raise FunctionalError(instr, f"byte {places.max()} is not within {len(source)}")
    values = source[places[..., None] + np.arange(kind.itemsize)].view(kind)[..., 0]
    step = f["dst_repeat_stride"] * BLOCK_BYTES
    for i in range(repeat):  # where repeats overlap, the last one counts
        place = replace(dst, offset=dst.offset + i * step)
        memory.at(place, (lanes,), (kind.itemsize,))[on] = values[i]


def _reduce(memory: Memory, instr: Instruction) -> None:
    """Write the elements that a pattern or bits select, one after another."""
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    width, repeat, count = src.itemsize, f["repeat"], f["count"]
    per = BLOCK_BYTES // width
    shape = (repeat, ceil_div(count, per), per)
    strides = (f["src_repeat_stride"] * BLOCK_BYTES, f["src_block_stride"] * BLOCK_BYTES, width)
    values = memory.at(src, shape, strides).reshape(repeat, -1)[:, :count]
    if f["mode"]:
        first, step = PATTERNS[f["mode"]]
        picked = np.ascontiguousarray(values[:, first::step]).ravel()
    else:
        shape, strides = (repeat, ceil_div(count, 8)), (f["bits_repeat_stride"] * BLOCK_BYTES, 1)
        data = memory.at(instr.operands["src1"], shape, strides, "uint8")
        bits = np.unpackbits(np.ascontiguousarray(data), axis=1, bitorder="little")[:, :count]
        picked = values[bits.astype(bool)]
    memory.at(dst, picked.shape, (width,))[...] = picked


def _bitsort(memory: Memory, instr: Instruction) -> None:
    """Sort groups of 32 scores with their indices, highest first; equal ones keep their order."""
    src, repeat = instr.operands["src"], instr.fields["repeat"]
    shape, width = (repeat, SORTED), src.itemsize
    scores = memory.at(src, shape, (SORTED * width, width))
    indices = memory.at(instr.operands["src1"], shape, (SORTED * 4, 4), "uint32")
    order = np.argsort(-scores.astype(np.float64), axis=1, kind="stable")
    pairs = np.zeros((*shape, PAIR_BYTES), np.uint8)
    ordered = np.ascontiguousarray(np.take_along_axis(scores, order, 1))
    pairs[..., :width] = ordered.view(np.uint8).reshape(*shape, width)
    ordered = np.ascontiguousarray(np.take_along_axis(indices, order, 1))
    pairs[..., 4:] = ordered.view(np.uint8).reshape(*shape, 4)
    memory.at(instr.operands["dst"], (pairs.size,), (1,), "uint8")[...] = pairs.ravel()


def _merge(memory: Memory, instr: Instruction) -> None:
    """Merge lists by repeatedly taking the highest head; of equal heads, that of the first list.

    The lists should be sorted. In an unsorted list, an element that is higher than its predecessor
    directly follows it in the result, because a merge compares the heads only.
    """
    f, dst = instr.fields, instr.operands["dst"]
    if "lists" not in f:
        raise FunctionalError(instr, "the data of this operation are not modelled")
    kind, lists = DTYPES[dst.dtype], f["lists"]
    total = sum(length for _, length in lists)
    source = memory.buffers["UB"]
    merged = np.empty((f["repeat"], total, PAIR_BYTES), np.uint8)
    for i in range(f["repeat"]):
        pairs, keys = [], []
        for start, length in lists:
            first = start + i * total * PAIR_BYTES
            source_pairs = source[first : first + length * PAIR_BYTES].reshape(length, PAIR_BYTES)
            scores = np.ascontiguousarray(source_pairs[:, : kind.itemsize]).view(kind)[:, 0]
            pairs.append(source_pairs)
            keys.append(merge_keys(scores))
        order = np.argsort(-np.concatenate(keys), kind="stable")
        merged[i] = np.concatenate(pairs)[order]
    written = merged
    if "taken" in f:
        memory.registers["taken"] = sum(count << 16 * i for i, count in enumerate(f["taken"]))
        written = merged[0, : sum(f["taken"])]
    memory.at(dst, (written.size,), (1,), "uint8")[...] = written.ravel()


def merge_keys(scores: np.ndarray) -> np.ndarray:
    """Return the numbers by which a merge orders a list: no score is above those before it."""
    return np.minimum.accumulate(scores.astype(np.float64))


#: Functions of a memory and an instruction, by their keys in the table of vector instructions.
GATHER_SORT = {"gather": _gather, "compaction": _reduce, "sort": _bitsort, "merge": _merge}
