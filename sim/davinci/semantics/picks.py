"""Vector instructions that pick elements: by byte offsets (vgather), by bits (vreduce)."""

from dataclasses import replace

import numpy as np

from ..instruction import Instruction
from ..lanes import lanes_of
from ..operands import BLOCK_BYTES, DTYPES
from .lanes import enabled
from .memory import FunctionalError, Memory

__all__ = ["PATTERNS", "PICKS"]

#: Patterns of vreduce by their numbers: (which of every so many elements, how many); 0 reads bits.
PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


def _gather(memory: Memory, one: Instruction) -> None:
    """Lane l of a repeat is the element at `base` + its offset, in bytes."""
    f, dst, offsets = one.fields, one.operands["dst"], one.operands["offsets"]
    lanes, repeat, kind = lanes_of(dst), f["repeat"], DTYPES[dst.dtype]
    places = f["base"] + memory.at(offsets, (repeat, lanes), (4 * lanes, 4)).astype(np.int64)
    on = enabled(f["mask"], lanes)
    on = np.ones(lanes, bool) if on is None else on
    places = places[:, on]
    source = memory.buffers["UB"]
    if places.size and places.max() + kind.itemsize > len(source):
        raise FunctionalError(one, f"byte {places.max()} is not within {len(source)}")
    values = source[places[..., None] + np.arange(kind.itemsize)].view(kind)[..., 0]
    step = f["dst_repeat_stride"] * BLOCK_BYTES
    for i in range(repeat):  # of those that lie on one another the last one stays
        place = replace(dst, offset=dst.offset + i * step)
        memory.at(place, (lanes,), (kind.itemsize,))[on] = values[i]


def _reduce(memory: Memory, one: Instruction) -> None:
    """Elements whose bits are set, one after the other."""
    f, dst, src = one.fields, one.operands["dst"], one.operands["src"]
    width, repeat, count = src.itemsize, f["repeat"], f["count"]
    per = BLOCK_BYTES // width
    shape = (repeat, -(-count // per), per)
    strides = (f["src_repeat_stride"] * BLOCK_BYTES, f["src_block_stride"] * BLOCK_BYTES, width)
    values = memory.at(src, shape, strides).reshape(repeat, -1)[:, :count]
    if f["mode"]:
        first, step = PATTERNS[f["mode"]]
        picked = np.ascontiguousarray(values[:, first::step]).ravel()
    else:
        shape, strides = (repeat, -(-count // 8)), (f["bits_repeat_stride"] * BLOCK_BYTES, 1)
        data = memory.at(one.operands["src1"], shape, strides, "uint8")
        bits = np.unpackbits(np.ascontiguousarray(data), axis=1, bitorder="little")[:, :count]
        picked = values[bits.astype(bool)]
    memory.at(dst, picked.shape, (width,))[...] = picked


#: Functions of a memory and an instruction, by operation.
PICKS = {"vgather": _gather, "vreduce": _reduce}
