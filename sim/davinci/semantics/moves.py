"""Moves: bursts, row-major to fractals, loads of fractals, fills, and transfers out of L0C."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden import vector
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import (
    BLOCK_BYTES,
    DTYPES,
    FOURS,
    FRACTAL_BYTES,
    PLACE_BYTES,
    View,
)

from .memory import FunctionalError, Memory
from .patches import im2col


def _copy(memory: Memory, instr: Instruction) -> None:
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    bursts, size, atomic = f["bursts"], f["burst_bytes"], f.get("atomic")
    if "pad_code" in f:
        dst = _padded(memory, f, dst)
    dtype = atomic or "uint8"
    width = DTYPES[dtype].itemsize
    if size % width:
        raise FunctionalError(instr, f"a burst must be whole elements of {dtype}, not {size} bytes")
    shape = (bursts, size // width)
    source = memory.at(src, shape, (f["src_stride"], width), dtype)
    target = memory.at(dst, shape, (f["dst_stride"], width), dtype)
    if not atomic:
        target[...] = source
        return
    operation = _combination(instr)
    for i in range(bursts):  # bursts may overlap
        target[i] = operation(target[i], source[i])


def _padded(memory: Memory, f: Mapping[str, Any], dst: View) -> View:
    """Fill the padding around the bursts of a copy, and return the view of the bursts."""
    width = f["pad_bytes"]
    behind = f["left"] + f["burst_bytes"]
    value = f["pad_code"] & (1 << 8 * width) - 1
    for start, nbytes in ((0, f["left"]), (behind, f["right"])):
        if nbytes:
            code = np.frombuffer(value.to_bytes(width, "little") * (nbytes // width), np.uint8)
            place = View(dst.buffer, dst.offset + start, "uint8", (), ())
            memory.at(place, (f["bursts"], nbytes), (f["dst_stride"], 1), "uint8")[...] = code
    return View(dst.buffer, dst.offset + f["left"], dst.dtype, dst.shape, dst.strides, dst.name)


def _combination(instr: Instruction):
    """Return the operation that combines a move with the elements in global memory."""
    combine = {"add": vector.add, "max": vector.maximum, "min": vector.minimum}
    return combine[instr.fields.get("atomic_operation", "add")]


def _nd2nz(memory: Memory, instr: Instruction) -> None:
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    width = DTYPES[src.dtype].itemsize
    per = BLOCK_BYTES // width
    matrices, rows, columns = f["matrices"], f["rows"], f["columns"]
    blocks = ceil_div(columns, per)
    strides = (f["src_matrix_stride"], f["src_row_stride"], width)
    source = memory.at(src, (matrices, rows, columns), strides)
    padded = np.zeros((matrices, rows, blocks * per), source.dtype)
    padded[..., :columns] = source
    strides = (f["dst_matrix_stride"], f["dst_row_stride"], f["dst_c0_stride"], width)
    target = memory.at(dst, (matrices, rows, blocks, per), strides, src.dtype)
    target[...] = padded.reshape(matrices, rows, blocks, per)


def _load(memory: Memory, instr: Instruction) -> None:
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    repeat = f["repeat"]
    if not f["transpose"]:
        source = _fractals(memory, src, repeat, f["src_stride"], (FRACTAL_BYTES,), "uint8")
        target = _fractals(memory, dst, repeat, f["dst_stride"], (FRACTAL_BYTES,), "uint8")
        target[...] = source
        if "index" in f:
            index = View(src.buffer, f["index"], "uint8", (), ())
            places = memory.at(index, (repeat, PLACE_BYTES), (PLACE_BYTES, 1)).copy()
            starts = range(dst.offset, dst.offset + repeat * f["dst_stride"], f["dst_stride"])
            memory.places |= dict(zip(starts, places, strict=True))
        return
    if "dst_fractal_stride" in f:
        _load_squares(memory, instr)
        return
    if DTYPES[src.dtype].itemsize != 2:
        raise FunctionalError(instr, f"a fractal is transposed of 16-bit elements, not {src.dtype}")
    source = _fractals(memory, src, repeat, f["src_stride"], (16, 16), "uint16")
    target = _fractals(memory, dst, repeat, f["dst_stride"], (16, 16), "uint16")
    target[...] = vector.transpose(source)


def _load_squares(memory: Memory, instr: Instruction) -> None:
    """Transpose squares of two fractals, or four of 4-bit numbers.

    Fractals of 32-bit elements lie side by side, those of fewer bits one above the other.
    """
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    width, parts = DTYPES[src.dtype].itemsize, 4 if src.dtype == FOURS else 2
    dtype = f"uint{8 * width}"
    columns = BLOCK_BYTES // width
    if (apart := f.get("src_fractal_stride")) is None:
        shape = (16 * parts, columns)
        squares = _fractals(memory, src, f["repeat"], f["src_stride"], shape, dtype)
        squares = squares.reshape(-1, parts, 16, columns)
    else:
        strides = (f["src_stride"], apart, BLOCK_BYTES, width)
        squares = memory.at(src, (f["repeat"], parts, 16, columns), strides, dtype)
    count, shape = len(squares), (parts, 16, columns)
    if width == 4:
        turned = squares.swapaxes(1, 2).reshape(count, 16, 16).swapaxes(1, 2)
        pieces = turned.reshape(count, 16, 2, columns).swapaxes(1, 2)
    elif parts == 4:
        turned = vector.unpack_fours(squares.reshape(count, 64, columns)).swapaxes(1, 2)
        pieces = vector.pack_fours(turned).reshape(count, *shape)
    else:
        pieces = squares.reshape(count, 32, columns).swapaxes(1, 2).reshape(count, *shape)
    steps = (f["dst_stride"], f["dst_fractal_stride"])
    starts = np.add.outer(np.arange(count) * steps[0], np.arange(parts) * steps[1]).ravel()
    if np.diff(np.sort(starts)).min(initial=FRACTAL_BYTES) >= FRACTAL_BYTES:
        memory.at(dst, (count, *shape), (*steps, BLOCK_BYTES, width), dtype)[...] = pieces
        return
    for start, values in zip(starts.tolist(), pieces.reshape(-1, 16, columns), strict=True):
        place = View(dst.buffer, dst.offset + start, dtype, (16, columns), (BLOCK_BYTES, width))
        memory.elements(place)[...] = values  # later ones overwrite earlier ones


def _fractals(memory: Memory, view: View, repeat: int, stride: int, shape, dtype: str):
    """Return (repeat, *shape) elements; the stride may be negative or 0."""
    width = DTYPES[dtype].itemsize
    inner = (width,) if len(shape) == 1 else (shape[1] * width, width)
    if stride >= 0:
        return memory.at(view, (repeat, *shape), (stride, *inner), dtype)
    # A negative stride is a positive one from the last fractal on, read backwards.
    last = View(view.buffer, view.offset + (repeat - 1) * stride, dtype, (), ())
    if last.offset < 0:
        raise IndexError(f"byte {last.offset} is before the first")
    return memory.at(last, (repeat, *shape), (-stride, *inner), dtype)[::-1]


def _fill(memory: Memory, instr: Instruction) -> None:
    dst = instr.operands["dst"]
    memory.elements(dst)[...] = np.asarray(instr.fields["value"]).astype(DTYPES[dst.dtype])


def _matrix_out(memory: Memory, instr: Instruction) -> None:
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    m, n = f["m"], f["n"]
    columns, width = ceil_div(n, 16), DTYPES[src.dtype].itemsize
    source = memory.at(src, (columns, m, 16), (f["src_stride"], 16 * width, width))
    values = _converted(memory, instr, np.ascontiguousarray(source))
    if f["relu"]:
        # NumPy has no bf16: its codes are integers, whose top bit is the sign.
        values = vector.relu(values) if dst.dtype != "bf16" else np.where(values >> 15, 0, values)
    width = DTYPES[dst.dtype].itemsize
    if f["layout"] == "nz":
        target = memory.at(dst, (columns, m, 16), (f["dst_stride"], 16 * width, width))
    elif f["layout"] == "split":
        halves = values.reshape(columns, m, 2, 8).swapaxes(1, 2).reshape(2 * columns, m, 8)
        values = halves[: ceil_div(n, 8)]
        target = memory.at(dst, values.shape, (f["dst_stride"], 8 * width, width))
    else:
        target = memory.at(dst, (m, n), (f["dst_stride"], width))
        values = np.moveaxis(values, 0, 1).reshape(m, columns * 16)[:, :n]
    if f.get("atomic"):
        if f["atomic"] != dst.dtype:
            raise FunctionalError(instr, f"atomic {f['atomic']} must be the dtype of dst")
        values = _combination(instr)(target, values)
    target[...] = values


def _converted(memory: Memory, instr: Instruction, values: np.ndarray) -> np.ndarray:
    """Convert (columns, m, 16) elements of L0C to the dtype of the target.

    A quantisation multiplies in FP32 and rounds once more, to FP16 or, saturating, to an 8-bit
    integer. The factor is one for all elements ("scalar", the field ``factor``) or one for each
    column of the matrix ("vector", the operand ``scale``, FP32, or words of 64 bits).
    """
    dst, src, quant = instr.operands["dst"], instr.operands["src"], instr.fields["quant"]
    if not quant:
        if src.dtype == "int32" and dst.dtype in ("int8", "uint8"):
            raise FunctionalError(instr, "int32 must be quantised to become 8 bits wide")
        if src.dtype == dst.dtype:
            return values
        return vector.convert(values, src.dtype, dst.dtype)
    if quant not in ("scalar", "vector"):
        raise FunctionalError(instr, f"quant must be scalar or vector, not {quant!r}")
    if quant == "vector":
        columns = values.shape[0]
        view = instr.operands["scale"]
        if view.dtype == "uint64":
            factor = _factors(memory, instr, columns)
        else:
            # 16 factors of 4 bytes for each column of fractals, the same in all rows.
            factor = memory.at(view, (columns, 1, 16), (64, 0, 4), "fp32")
    else:
        factor = np.float32(instr.fields["factor"])
    single = values if src.dtype == "fp32" else vector.convert(values, src.dtype, "fp32")
    scaled = vector.mul(single, np.broadcast_to(factor, single.shape))
    return vector.convert(scaled, "fp32", dst.dtype) if dst.dtype != "fp32" else scaled


def _factors(memory: Memory, instr: Instruction, columns: int) -> np.ndarray:
    """Return (columns, 1, 16) factors of the columns of a matrix, from words of 64 bits.

    Bits 13 to 31 are an FP32 number, of whose fraction FIX reads ten bits; 32 to 36 are a shift of
    INT32 before it becomes FP32, and 37 to 45 an offset of results of 8 bits (the table of
    QUANT_PRE in the documentation of AscendC). Neither is modelled unless it is 0. A word past the
    last column is 0.
    """
    n, view = instr.fields["n"], instr.operands["scale"]
    words = np.zeros(columns * 16, np.uint64)
    words[:n] = memory.at(view, (n,), (8,), "uint64")
    narrow = instr.operands["dst"].itemsize == 1
    if np.any(words >> 36 & 1) and instr.operands["src"].dtype == "int32":
        raise FunctionalError(instr, "a shift before the quantisation is not modelled")
    if narrow and np.any(words >> 37 & 0x1FF):
        raise FunctionalError(instr, "an offset of the quantisation is not modelled")
    codes = (words & 0xFFFFE000).astype(np.uint32)
    return codes.view(np.float32).reshape(columns, 1, 16)


#: Functions of a memory and an instruction, by operation.
MOVES = {
    "copy": _copy,
    "nd2nz": _nd2nz,
    "load": _load,
    "fill": _fill,
    "im2col": im2col,
    "matrix_out": _matrix_out,
}
