"""A compiled twin of the most frequent vector instructions; ``vectors`` defines their results.

One call carries out one instruction: repeat after repeat, with all lanes read before any is
written, which is right however the repeats overlap. FP16 numbers are computed in FP32 and rounded
again, which gives the bits of one rounding, since 24 ≥ 2·11 + 2 (Figueroa 1995). Functions of one
FP16 operand are tables of the results of ``golden.vector``. Functions of an FP32 operand are
rounded from float64 as in ``golden.vector``; the twin leaves a result to ``golden.vector`` if the
error of float64 could change its rounding.

All compiled code is in this file, because Numba's cache looks at the time stamp of one file alone.
"""

from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numba
import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES
from vitruvian.sim.davinci.isa.vector import UNARY, VECTOR_OPS

from .lanes import enabled
from .memory import Memory


class Code(IntEnum):
    """Operations of the compiled loops."""

    TABLE = -1  # a function of one FP16 operand, by its table
    ADD = 0
    SUB = 1
    MUL = 2
    MAX = 3
    MIN = 4
    EXP = 10
    LN = 11
    RSQRT = 12
    REC = 13
    SQRT = 14
    ABS = 15
    RELU = 16


class Stride(NamedTuple):
    """The place of an operand: its first byte, and its strides between blocks and repeats."""

    offset: int
    block: int
    repeat: int


#: A ``Stride`` as a plain tuple: Numba takes twice as long to be called with named ones.
_Plain = tuple[int, int, int]

_HALF, _SINGLE = 0, 1
_KINDS = {"fp16": _HALF, "fp32": _SINGLE}

#: Instructions of two operands, and of an operand and a scalar.
_CODES = {
    "vadd": Code.ADD,
    "vsub": Code.SUB,
    "vmul": Code.MUL,
    "vmax": Code.MAX,
    "vmin": Code.MIN,
}
_SCALARS = {"vadds": Code.ADD, "vmuls": Code.MUL, "vmaxs": Code.MAX, "vmins": Code.MIN}

#: Functions of one FP32 operand.
_FUNCTIONS = {
    "vexp": Code.EXP,
    "vln": Code.LN,
    "vrsqrt": Code.RSQRT,
    "vrec": Code.REC,
    "vsqrt": Code.SQRT,
    "vabs": Code.ABS,
    "vrelu": Code.RELU,
}

#: Functions of one FP16 operand: all in the table of vector instructions.
_TABLES = {
    op.name: op.compute
    for op in VECTOR_OPS.values()
    if op.form is UNARY and op.compute is not None and not op.fields
}

_NO_TABLE = np.zeros(1, np.uint16)


@lru_cache(1)
def _halves() -> np.ndarray:
    """Return the value of every FP16 code, (65536,) ndarray of float32."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


@lru_cache(16)
def _table(op: str) -> np.ndarray:
    """Return the result of a function for every FP16 code, (65536,) ndarray of uint16."""
    return _TABLES[op](np.arange(1 << 16, dtype=np.uint16).view(np.float16)).view(np.uint16)


@lru_cache(1024)
def _lanes(mask: int, lanes: int) -> np.ndarray:
    on = enabled(mask, lanes)
    return np.ones(lanes, bool) if on is None else on


#: Names of the fields with the strides of an operand. Joined once: this is called very often.
_KEYS = {n: (f"{n}_block_stride", f"{n}_repeat_stride") for n in ("dst", "src", "src0", "src1")}


def _strides(instr: Instruction, name: str) -> _Plain:
    block, step = _KEYS[name]
    return instr.operands[name].offset, instr.fields[block], instr.fields[step]


def compiled(memory: Memory, instr: Instruction) -> bool:
    """Carry out an instruction if this module can.

    Returns
    -------
    bool
        False if nothing has been done: for another instruction or dtype, operands that are not
        aligned to their elements, or a lane outside UB, even if it is disabled.
    """
    op, operands, f = instr.op, instr.operands, instr.fields
    dst = operands.get("dst")  # vcmp has none: it writes the mask register
    kind = _KINDS.get(dst.dtype) if dst is not None else None
    if dst is None or kind is None or "repeat" not in f:
        return False
    by_scalar = op in _SCALARS
    if op in _CODES:
        code, name = _CODES[op], "src0"
        if operands["src1"].dtype != dst.dtype:
            return False
    elif by_scalar:
        code, name = _SCALARS[op], "src"
    elif kind == _HALF and op in _TABLES:
        code, name = Code.TABLE, "src"
    elif kind == _SINGLE and op in _FUNCTIONS:
        code, name = _FUNCTIONS[op], "src"
    else:
        return False
    if operands[name].dtype != dst.dtype:
        return False
    first = _strides(instr, name)
    places = _strides(instr, "dst"), first, _strides(instr, "src1") if name == "src0" else first
    width, lanes = (2, 128) if kind == _HALF else (4, 64)
    repeat, size = f["repeat"], len(memory.buffers["UB"])
    reach = 0
    for start, block, step in places:
        if start % width or start < 0:
            return False
        # The last byte of the last of 8 blocks of the last repeat. A compiled loop checks no index.
        reach = max(reach, start + BLOCK_BYTES * (7 * block + (repeat - 1) * step + 1))
    if reach > size:
        return False
    on = _lanes(f["mask"], lanes)
    number = int(code)  # Numba takes long to be called with a member of an enumeration
    if op in _FUNCTIONS and kind == _SINGLE:
        done = _function(number, memory.singles, on, repeat, places[0], places[1])
        if done < repeat:
            _rest(memory, instr, done)
        return True
    scalar = np.float32(0)
    if by_scalar:
        with np.errstate(over="ignore"):
            # The scalar is rounded to the dtype of the operands first.
            scalar = np.float32(np.float16(f["scalar"]) if kind == _HALF else f["scalar"])
    if kind == _HALF:
        table = _table(op) if code == Code.TABLE else _NO_TABLE
        _half(number, by_scalar, scalar, memory.words, _halves(), table, on, repeat, places)
    else:
        _single(number, by_scalar, scalar, memory.singles, on, repeat, places)
    return True


def _rest(memory: Memory, instr: Instruction, done: int) -> None:
    """Carry out the repeats from number ``done`` on as ``vectors`` does."""
    from .vectors import VECTORS

    steps = {n: instr.fields[f"{n}_repeat_stride"] * BLOCK_BYTES for n in instr.operands}
    operands = {n: replace(v, offset=v.offset + done * steps[n]) for n, v in instr.operands.items()}
    fields = {**instr.fields, "repeat": instr.fields["repeat"] - done}
    VECTORS[instr.op](memory, replace(instr, operands=operands, fields=fields))


@numba.njit
def _apply(code, x, y):
    """Return x op y in FP32. For max and min, the caller handles equal operands (±0) itself."""
    if code == Code.ADD:
        return x + y
    if code == Code.SUB:
        return x - y
    if code == Code.MUL:
        return x * y
    if x != x:  # a NaN loses to a number
        return y
    if y != y:
        return x
    if code == Code.MAX:
        return x if x > y else y
    return x if x < y else y


@numba.njit
def _to_half(bits):
    """Round an FP32 code to an FP16 code, to nearest, ties to even; NaN is the canonical one."""
    sign = (bits >> np.uint32(16)) & np.uint32(0x8000)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    if magnitude > np.uint32(0x7F800000):
        return np.uint16(0x7E00)
    if magnitude >= np.uint32(0x477FF000):  # 65520 and more
        return np.uint16(sign | np.uint32(0x7C00))
    if magnitude < np.uint32(0x38800000):  # below 2^-14: subnormal
        if magnitude < np.uint32(0x33000000):  # below 2^-25
            return np.uint16(sign)
        # In FP16's subnormal unit, 2^−24, the last bit of the significand has the weight 2^(e + 1):
        # it moves down by −(e + 1) = 126 − field.
        shift = np.uint32(126) - (magnitude >> np.uint32(23))
        significand = (magnitude & np.uint32(0x7FFFFF)) | np.uint32(0x800000)
        kept = significand >> shift
        rest = significand - (kept << shift)
        half = np.uint32(1) << (shift - np.uint32(1))
        if rest > half or (rest == half and kept & np.uint32(1)):
            kept += np.uint32(1)
        return np.uint16(sign | kept)
    # The field loses 127 − 15. The addition rounds the 13 bits that are dropped, ties to even, and
    # a carry goes on into the field.
    rebased = magnitude - np.uint32(0x38000000)
    odd = (rebased >> np.uint32(13)) & np.uint32(1)
    return np.uint16(sign | ((rebased + np.uint32(0xFFF) + odd) >> np.uint32(13)))


@numba.njit(cache=True, nogil=True)
def _half(code, by_scalar, scalar, words, halves, table, on, repeat, places):
    """Carry out one instruction on FP16 codes; ``places`` are the strides of dst, src0 and src1."""
    dst, src0, src1 = Stride(*places[0]), Stride(*places[1]), Stride(*places[2])
    # A repeat reads all its lanes before it writes any, as dst may be one of the sources.
    results = np.empty(128, np.uint16)
    scalar_code = _to_half(np.float32(scalar).view(np.uint32))
    for i in range(repeat):
        for block in range(8):
            first = (src0.offset + 32 * (i * src0.repeat + block * src0.block)) // 2
            second = (src1.offset + 32 * (i * src1.repeat + block * src1.block)) // 2
            for e in range(16):
                lane = 16 * block + e
                left = words[first + e]
                if code == Code.TABLE:
                    results[lane] = table[left]
                    continue
                right = scalar_code if by_scalar else words[second + e]
                x, y = halves[left], halves[right]
                # Of two zeros the AND of the codes is the larger one, the OR the smaller one.
                if (code == Code.MAX or code == Code.MIN) and x == y:
                    results[lane] = left & right if code == Code.MAX else left | right
                    continue
                results[lane] = _to_half(np.float32(_apply(code, x, y)).view(np.uint32))
        for block in range(8):
            target = (dst.offset + 32 * (i * dst.repeat + block * dst.block)) // 2
            for e in range(16):
                if on[16 * block + e]:
                    words[target + e] = results[16 * block + e]


@numba.njit(cache=True, nogil=True)
def _single(code, by_scalar, scalar, singles, on, repeat, places):
    """Carry out one instruction on FP32 numbers, as ``_half`` does on FP16 codes."""
    dst, src0, src1 = Stride(*places[0]), Stride(*places[1]), Stride(*places[2])
    results = np.empty(64, np.float32)
    codes = results.view(np.uint32)
    memory = singles.view(np.uint32)
    holder = np.empty(1, np.float32)
    holder[0] = scalar
    scalar_code = holder.view(np.uint32)[0]
    for i in range(repeat):
        for block in range(8):
            first = (src0.offset + 32 * (i * src0.repeat + block * src0.block)) // 4
            second = (src1.offset + 32 * (i * src1.repeat + block * src1.block)) // 4
            for e in range(8):
                lane = 8 * block + e
                x = singles[first + e]
                y = scalar if by_scalar else singles[second + e]
                if (code == Code.MAX or code == Code.MIN) and x == y:
                    left = memory[first + e]
                    right = scalar_code if by_scalar else memory[second + e]
                    codes[lane] = left & right if code == Code.MAX else left | right
                    continue
                results[lane] = _apply(code, x, y)
                if results[lane] != results[lane]:
                    codes[lane] = np.uint32(0x7FC00000)
        for block in range(8):
            target = (dst.offset + 32 * (i * dst.repeat + block * dst.block)) // 4
            for e in range(8):
                if on[8 * block + e]:
                    memory[target + e] = codes[8 * block + e]


#: Bounds of the relative error of float64 functions, far above the true error; those of
#: ``golden.vector.functions``.
_BELOW, _ABOVE = 1 - 2.0**-46, 1 + 2.0**-46


@numba.njit(error_model="numpy")
def _wide(code, x):
    """Return a function of x in float64."""
    if code == Code.EXP:
        return np.exp(x)
    if code == Code.LN:
        return np.log(x)
    return 1.0 / np.sqrt(x)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _function(code, singles, on, repeat, target, source):
    """Carry out a function of one FP32 operand.

    Returns the number of repeats that are done: all, or those before one in which the error of
    float64 could change the rounding of an enabled lane.
    """
    dst, src0 = Stride(*target), Stride(*source)
    results = np.empty(64, np.float32)
    codes = results.view(np.uint32)
    memory = singles.view(np.uint32)
    for i in range(repeat):
        doubt = False
        for block in range(8):
            first = (src0.offset + 32 * (i * src0.repeat + block * src0.block)) // 4
            for e in range(8):
                lane = 8 * block + e
                x = singles[first + e]
                if code == Code.EXP or code == Code.LN or code == Code.RSQRT:
                    value = _wide(code, np.float64(x))
                    # Both bounds round to one FP32 number, so that the true value does as well;
                    # else golden decides.
                    low, high = np.float32(value * _BELOW), np.float32(value * _ABOVE)
                    doubt |= (on[lane] and low < high) or high < low
                    results[lane] = np.float32(value)
                elif code == Code.REC:
                    results[lane] = np.float32(1) / x
                elif code == Code.SQRT:
                    results[lane] = np.sqrt(x)
                elif code == Code.ABS:
                    codes[lane] = memory[first + e] & np.uint32(0x7FFFFFFF)
                else:
                    results[lane] = x if x > 0 else np.float32(0)
                if results[lane] != results[lane]:
                    codes[lane] = np.uint32(0x7FC00000)
        # Nothing of this repeat has been written yet, since dst may be the source.
        if doubt:
            return i
        for block in range(8):
            target = (dst.offset + 32 * (i * dst.repeat + block * dst.block)) // 4
            for e in range(8):
                if on[8 * block + e]:
                    memory[target + e] = codes[8 * block + e]
    return repeat
