"""A compiled twin of the commonest vector instructions; `vectors` says what they compute.

One call does an instruction: repeat after repeat, all lanes read before any is written, which is
right whatever repeats overlap. FP16 is done in FP32 and rounded, which gives the bits of one
rounding (24 ≥ 2·11 + 2). Functions of one FP16 operand are tables of golden's results; those of an
FP32 operand are golden's way of rounding float64, and what is in doubt is left to golden.
All that is compiled is in this file: Numba's cache looks at the time stamp of no other.
"""

from dataclasses import replace
from functools import lru_cache

import numba
import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES

from .lanes import enabled
from .memory import Memory

__all__ = ["compiled"]

_HALF, _SINGLE = 0, 1
_KINDS = {"fp16": _HALF, "fp32": _SINGLE}

#: Operations by number; those from _FIRST_SCALAR on have a scalar for their second operand.
_CODES = {"vadd": 0, "vsub": 1, "vmul": 2, "vmax": 3, "vmin": 4}
_SCALARS = {"vadds": 0, "vmuls": 2, "vmaxs": 3, "vmins": 4}

#: Functions of one FP32 operand by number.
_FIRST_FUNCTION = 10
_FUNCTIONS = {"vexp": 10, "vln": 11, "vrsqrt": 12, "vrec": 13, "vsqrt": 14, "vabs": 15, "vrelu": 16}

_TABLES = {
    "vabs": vector.absolute,
    "vexp": vector.exp,
    "vln": vector.ln,
    "vrec": vector.rec,
    "vrsqrt": vector.rsqrt,
    "vsqrt": vector.sqrt,
    "vrelu": vector.relu,
    "vnot": vector.bitwise_not,
}


@lru_cache(1)
def _halves() -> np.ndarray:
    """The value of every FP16 code."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


@lru_cache(16)
def _table(op: str) -> np.ndarray:
    """The result of a function for every FP16 code, as codes."""
    return _TABLES[op](np.arange(1 << 16, dtype=np.uint16).view(np.float16)).view(np.uint16)


@lru_cache(1024)
def _lanes(mask: int, lanes: int) -> np.ndarray:
    on = enabled(mask, lanes)
    return np.ones(lanes, bool) if on is None else on


def compiled(memory: Memory, one: Instruction) -> bool:
    """Carry out an instruction, or say that it is not one for here."""
    op, operands, f = one.op, one.operands, one.fields
    dst = operands["dst"]
    kind = _KINDS.get(dst.dtype)
    if kind is None or "repeat" not in f:
        return False
    if op in _CODES:
        a, b = operands["src0"], operands["src1"]
        if a.dtype != dst.dtype or b.dtype != dst.dtype:
            return False
        first = (f["src0_block_stride"], f["src0_repeat_stride"])
        second = (b.offset, f["src1_block_stride"], f["src1_repeat_stride"])
        code, scalar = _CODES[op], None
    elif op in _SCALARS:
        a = operands["src"]
        if a.dtype != dst.dtype:
            return False
        first = (f["src_block_stride"], f["src_repeat_stride"])
        code, scalar, second = _SCALARS[op], f["scalar"], (a.offset, *first)
    elif op in (_TABLES if kind == _HALF else _FUNCTIONS):
        a = operands["src"]
        if a.dtype != dst.dtype:
            return False
        first = (f["src_block_stride"], f["src_repeat_stride"])
        code, scalar, second = -1, None, (a.offset, *first)
        if kind == _SINGLE:
            code = _FUNCTIONS[op]
    else:
        return False
    width, lanes = (2, 128) if kind == _HALF else (4, 64)
    repeat, target = f["repeat"], (f["dst_block_stride"], f["dst_repeat_stride"])
    size = len(memory.buffers["UB"])
    reach = 0
    for start, block, step in ((dst.offset, *target), (a.offset, *first), second):
        if start % width or start < 0:
            return False
        reach = max(reach, start + BLOCK_BYTES * (7 * block + (repeat - 1) * step + 1))
    if reach > size:
        return False
    on = _lanes(f["mask"], lanes)
    places = (dst.offset, *target, a.offset, *first, *second)
    if kind == _HALF:
        with np.errstate(over="ignore"):
            value = np.float32(0) if scalar is None else np.float32(np.float16(scalar))
        table = _table(op) if code < 0 else _NONE
        _half(code, scalar is not None, value, memory.words, _halves(), table, on, repeat, *places)
    elif code >= _FIRST_FUNCTION:
        done = _function(code, memory.singles, on, repeat, *places[:6])
        if done < repeat:
            _rest(memory, one, done)
    else:
        with np.errstate(over="ignore"):
            value = np.float32(0) if scalar is None else np.float32(scalar)
        _single(code, scalar is not None, value, memory.singles, on, repeat, *places)
    return True


_NONE = np.zeros(1, np.uint16)


def _rest(memory: Memory, one: Instruction, done: int) -> None:
    """The repeats that are left, in the plain form."""
    from .vectors import VECTORS

    steps = {n: one.fields[f"{n}_repeat_stride"] * BLOCK_BYTES for n in one.operands}
    operands = {n: replace(v, offset=v.offset + done * steps[n]) for n, v in one.operands.items()}
    fields = {**one.fields, "repeat": one.fields["repeat"] - done}
    VECTORS[one.op](memory, replace(one, operands=operands, fields=fields))


@numba.njit
def _apply(code, x, y):
    """One operation in FP32; of two equal operands of max and min the caller takes care."""
    if code == 0:
        return x + y
    if code == 1:
        return x - y
    if code == 2:
        return x * y
    if x != x:
        return y
    if y != y:
        return x
    if code == 3:
        return x if x > y else y
    return x if x < y else y


@numba.njit
def _to_half(bits):
    """FP32 codes to FP16 ones, to nearest, ties to even; NaN is the canonical one."""
    sign = (bits >> np.uint32(16)) & np.uint32(0x8000)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    if magnitude > np.uint32(0x7F800000):
        return np.uint16(0x7E00)
    if magnitude >= np.uint32(0x477FF000):  # 65520 and more
        return np.uint16(sign | np.uint32(0x7C00))
    if magnitude < np.uint32(0x38800000):  # below 2^-14: subnormal
        if magnitude < np.uint32(0x33000000):  # below 2^-25
            return np.uint16(sign)
        shift = np.uint32(126) - (magnitude >> np.uint32(23))
        significand = (magnitude & np.uint32(0x7FFFFF)) | np.uint32(0x800000)
        kept = significand >> shift
        rest = significand - (kept << shift)
        half = np.uint32(1) << (shift - np.uint32(1))
        if rest > half or (rest == half and kept & np.uint32(1)):
            kept += np.uint32(1)
        return np.uint16(sign | kept)
    rebased = magnitude - np.uint32(0x38000000)
    odd = (rebased >> np.uint32(13)) & np.uint32(1)
    return np.uint16(sign | ((rebased + np.uint32(0xFFF) + odd) >> np.uint32(13)))


@numba.njit(cache=True, nogil=True)
def _half(
    code, by_scalar, scalar, words, halves, table, on, repeat, d, db, dr, a, ab, ar, b, bb, br
):
    """One instruction on FP16 codes: places in bytes, strides in blocks."""
    results = np.empty(128, np.uint16)
    scalar_code = _to_half(np.float32(scalar).view(np.uint32))
    for i in range(repeat):
        for block in range(8):
            first = (a + 32 * (i * ar + block * ab)) // 2
            second = (b + 32 * (i * br + block * bb)) // 2
            for e in range(16):
                lane = 16 * block + e
                left = words[first + e]
                if code < 0:
                    results[lane] = table[left]
                    continue
                right = scalar_code if by_scalar else words[second + e]
                x, y = halves[left], halves[right]
                if code >= 3 and x == y:
                    results[lane] = left & right if code == 3 else left | right
                    continue
                results[lane] = _to_half(np.float32(_apply(code, x, y)).view(np.uint32))
        for block in range(8):
            target = (d + 32 * (i * dr + block * db)) // 2
            for e in range(16):
                if on[16 * block + e]:
                    words[target + e] = results[16 * block + e]


@numba.njit(cache=True, nogil=True)
def _single(code, by_scalar, scalar, singles, on, repeat, d, db, dr, a, ab, ar, b, bb, br):
    """As `_half`, on FP32 numbers."""
    results = np.empty(64, np.float32)
    codes = results.view(np.uint32)
    memory = singles.view(np.uint32)
    given = np.empty(1, np.float32)
    given[0] = scalar
    scalar_code = given.view(np.uint32)[0]
    for i in range(repeat):
        for block in range(8):
            first = (a + 32 * (i * ar + block * ab)) // 4
            second = (b + 32 * (i * br + block * bb)) // 4
            for e in range(8):
                lane = 8 * block + e
                x = singles[first + e]
                y = scalar if by_scalar else singles[second + e]
                if code >= 3 and x == y:
                    left = memory[first + e]
                    right = scalar_code if by_scalar else memory[second + e]
                    codes[lane] = left & right if code == 3 else left | right
                    continue
                results[lane] = _apply(code, x, y)
                if results[lane] != results[lane]:
                    codes[lane] = np.uint32(0x7FC00000)
        for block in range(8):
            target = (d + 32 * (i * dr + block * db)) // 4
            for e in range(8):
                if on[8 * block + e]:
                    memory[target + e] = codes[8 * block + e]


#: How far float64 functions may be off, much more than they are; as in golden.vector.
_BELOW, _ABOVE = 1 - 2.0**-46, 1 + 2.0**-46


@numba.njit(error_model="numpy")
def _wide(code, x):
    """A function in float64."""
    if code == 10:
        return np.exp(x)
    if code == 11:
        return np.log(x)
    return 1.0 / np.sqrt(x)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _function(code, singles, on, repeat, d, db, dr, a, ab, ar):
    """Functions of one operand; how many repeats are done, up to one with a result in doubt."""
    results = np.empty(64, np.float32)
    codes = results.view(np.uint32)
    memory = singles.view(np.uint32)
    for i in range(repeat):
        doubt = False
        for block in range(8):
            first = (a + 32 * (i * ar + block * ab)) // 4
            for e in range(8):
                lane = 8 * block + e
                x = singles[first + e]
                if code <= 12:
                    value = _wide(code, np.float64(x))
                    low, high = np.float32(value * _BELOW), np.float32(value * _ABOVE)
                    doubt |= (on[lane] and low < high) or high < low
                    results[lane] = np.float32(value)
                elif code == 13:
                    results[lane] = np.float32(1) / x
                elif code == 14:
                    results[lane] = np.sqrt(x)
                elif code == 15:
                    codes[lane] = memory[first + e] & np.uint32(0x7FFFFFFF)
                else:
                    results[lane] = x if x > 0 else np.float32(0)
                if results[lane] != results[lane]:
                    codes[lane] = np.uint32(0x7FC00000)
        if doubt:
            return i
        for block in range(8):
            target = (d + 32 * (i * dr + block * db)) // 4
            for e in range(8):
                if on[8 * block + e]:
                    memory[target + e] = codes[8 * block + e]
    return repeat
