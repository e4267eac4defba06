"""Results of vector instructions; repeats that do not overlap are computed in one step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.lanes import byte_lanes, lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, FOURS, View
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.isa.vector_op import VectorOp
from vitruvian.sim.davinci.semantics.gather_sort import GATHER_SORT

from .lanes import enabled, independent, load, put, store, windows
from .memory import FunctionalError, Memory
from .patches import col2im

#: A function that carries out one instruction on a memory.
Kernel = Callable[[Memory, Instruction], None]

#: Letters of ``golden.vector`` by the names of rounding modes that a program may use.
_ROUNDINGS = {
    "none": "r",
    "rint": "r",
    "round": "a",
    "floor": "f",
    "ceil": "c",
    "trunc": "z",
    "odd": "o",
} | {letter: letter for letter in vector.ROUNDINGS}


def _operand(instr: Instruction, name: str) -> tuple[View, int, int]:
    f = instr.fields
    return instr.operands[name], f[name + _BLOCK], f[name + _STEP]


def _by_lanes(
    memory: Memory, instr: Instruction, names: tuple[str, ...], compute: Callable[..., Any]
) -> None:
    """Read the named operands, compute on (repeat, lanes) arrays, and write dst."""
    f = instr.fields
    key: tuple = (names, f["repeat"], f["mask"])
    for name, view in instr.operands.items():
        # What the windows depend on: a loop repeats few of these thousands of times.
        key += (view.offset, view.dtype, f[name + _BLOCK], f[name + _STEP])
    plan = memory.plans.get(key)
    if plan is None:
        if len(memory.plans) >= _MOST_PLANS:
            memory.plans.clear()
        plan = memory.plans[key] = _plan(memory, instr, names)
    # Repeats that read what earlier ones write must run one after the other.
    if not plan:
        _stepwise(memory, instr, names, compute)
        return
    shape, on, target, sources = plan
    values = compute(*[x if x.ndim == 2 else x.reshape(shape) for x in sources])
    put(target, values if values.shape == shape else _full(values, *shape), on)


_MOST_PLANS = 1 << 15  # plans that a memory keeps
_BLOCK, _STEP = "_block_stride", "_repeat_stride"


def _plan(memory: Memory, instr: Instruction, names: tuple[str, ...]):
    """Return windows on the operands; () if repeats overlap or a lane is outside its buffer."""
    lanes, repeat = lanes_of(*instr.operands.values()), instr.fields["repeat"]
    target, sources = _operand(instr, "dst"), [_operand(instr, name) for name in names]
    if not independent(lanes, repeat, target, sources):
        return ()
    arrays = windows(memory, [target, *sources], lanes, repeat)
    if arrays is None:
        return ()
    return (repeat, lanes), enabled(instr.fields["mask"], lanes), arrays[0], arrays[1:]


def _stepwise(
    memory: Memory, instr: Instruction, names: tuple[str, ...], compute: Callable[..., Any]
) -> None:
    """Compute one repeat after another, without access to disabled lanes."""
    repeat, mask = instr.fields["repeat"], instr.fields["mask"]
    lanes = lanes_of(*instr.operands.values())
    (view, block, step), sources = _operand(instr, "dst"), [_operand(instr, name) for name in names]
    for i in range(repeat):
        values = [load(memory, _moved(v, i, s), lanes, 1, b, s, mask) for v, b, s in sources]
        result = _full(compute(*values), 1, lanes)
        store(memory, _moved(view, i, step), result, block, step, mask)


def _full(values, repeat: int, lanes: int) -> np.ndarray:
    values = np.asarray(values)
    return values if values.shape == (repeat, lanes) else np.broadcast_to(values, (repeat, lanes))


def _moved(view: View, repeat: int, step: int) -> View:
    return replace(view, offset=view.offset + repeat * step * BLOCK_BYTES) if repeat else view


def _lanewise(op: VectorOp) -> Kernel:
    """Return the function that carries out an instruction with a ``compute`` in the table."""
    compute = op.compute
    assert compute is not None
    names = op.operands if op.reads_dst else tuple(n for n in op.operands if n != "dst")
    if not op.has_scalar:
        return lambda memory, instr: _by_lanes(memory, instr, names, compute)

    def with_scalar(memory: Memory, instr: Instruction) -> None:
        dtype = DTYPES[instr.operands["src"].dtype]
        scalar = np.asarray(instr.fields["scalar"]).astype(dtype)
        _by_lanes(memory, instr, names, lambda *arrays: compute(*arrays, scalar))

    return with_scalar


def _shift(memory: Memory, instr: Instruction) -> None:
    amount, nearest = instr.fields["amount"], bool(instr.fields.get("round"))
    if instr.op == "vshl":
        _by_lanes(memory, instr, ("src",), lambda a: vector.shift_left(a, amount))
    else:
        _by_lanes(memory, instr, ("src",), lambda a: vector.shift_right(a, amount, nearest=nearest))


def _vconv(memory: Memory, instr: Instruction) -> None:
    source, target = instr.operands["src"].dtype, instr.operands["dst"].dtype
    rounding = _ROUNDINGS.get(instr.fields["rounding"])
    if rounding is None:
        known = ", ".join(_ROUNDINGS)
        raise FunctionalError(instr, f"rounding must be one of {known}")
    scale = instr.fields.get("scale")
    if scale is not None:  # int32 · scale, in FP32, to FP16

        def scaled(a):
            single = vector.convert(a, source, "fp32")
            return vector.convert(vector.mul(single, np.float32(scale)), "fp32", target)

        _by_lanes(memory, instr, ("src",), scaled)
        return
    if FOURS in (source, target):
        _vconv_fours(memory, instr, rounding)
        return
    if source == target == "fp32":  # to an integral value
        _by_lanes(memory, instr, ("src",), lambda a: vector.integral(a, rounding))
        return
    _by_lanes(memory, instr, ("src",), lambda a: vector.convert(a, source, target, rounding))


def _vconv_fours(memory: Memory, instr: Instruction, rounding: str) -> None:
    """Convert between FP16 and integers of 4 bits, whose pairs are lanes of bytes."""
    f, (dst, block, step) = instr.fields, _operand(instr, "dst")
    src, src_block, src_step = _operand(instr, "src")
    lanes, mask = lanes_of(dst, src), f["mask"]
    pairs = byte_lanes(mask, lanes), lanes // 2
    enough = (mask, lanes)
    (src_mask, src_lanes), (dst_mask, _) = (
        (pairs, enough) if src.dtype == FOURS else (enough, pairs)
    )
    for i in range(f["repeat"]):
        place = _moved(src, i, src_step)
        values = load(memory, place, src_lanes, 1, src_block, src_step, src_mask)
        result = (
            vector.from_fours(values) if src.dtype == FOURS else vector.to_fours(values, rounding)
        )
        store(memory, _moved(dst, i, step), result, block, step, dst_mask)


def _vdup(memory: Memory, instr: Instruction) -> None:
    dtype, scalar = instr.operands["dst"].dtype, instr.fields["scalar"]
    if dtype == "bf16":
        value = vector.convert(np.asarray(scalar, np.float32), "fp32", "bf16")
    else:
        with np.errstate(over="ignore"):
            value = np.asarray(scalar).astype(DTYPES[dtype])
    _by_lanes(memory, instr, (), lambda: value)


def _compare(memory: Memory, instr: Instruction) -> None:
    """Carry out vcmp, vcmpv or vcmpvs; the bits of a repeat follow those of the previous one."""
    f = instr.fields
    names = [n for n in instr.operands if n != "dst"]
    lanes = lanes_of(*(instr.operands[n] for n in names))
    repeat, mask = f["repeat"], f["mask"]
    values = [
        load(memory, v, lanes, repeat, b, s, -1) for v, b, s in (_operand(instr, n) for n in names)
    ]
    if instr.op == "vcmpvs":
        values.append(np.asarray(f["scalar"]).astype(values[0].dtype))
    left, right = values
    bits = vector.compare(left, right, f["condition"])
    if instr.op == "vcmp":
        on = enabled(mask, lanes)
        for row in bits:
            # Each repeat overwrites the register, so that the last one remains.
            memory.compared[:lanes] = (
                row if on is None else np.where(on, row, memory.compared[:lanes])
            )
        return
    packed = vector.pack(bits)
    memory.at(instr.operands["dst"], packed.shape, (packed.shape[1], 1), "uint8")[...] = packed


def _vsel(memory: Memory, instr: Instruction) -> None:
    f = instr.fields
    lanes = lanes_of(instr.operands["dst"], instr.operands["src0"])
    if "bits" not in instr.operands:
        bits = memory.compared[:lanes]
        _by_lanes(memory, instr, ("src0", "src1"), lambda a, b: vector.select(bits, a, b))
        return
    size = lanes // 8
    data = memory.at(instr.operands["bits"], (f["repeat"], size), (size, 1), "uint8")
    bits = vector.unpack_bits(data, lanes)
    inner = {name: view for name, view in instr.operands.items() if name != "bits"}
    pairs, scalar = iter(bits), f.get("scalar")

    def choose(a, b):
        # All repeats at once, or one by one if they overlap.
        now = bits if len(a) == len(bits) else next(pairs)
        return vector.select(now, a, b if scalar is None else np.full_like(a, scalar))

    _by_lanes(memory, replace(instr, operands=inner), ("src0", "src1"), choose)


def _reduce(memory: Memory, instr: Instruction) -> None:
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    lanes, repeat = lanes_of(src), f["repeat"]
    block, step = f["src_block_stride"], f["src_repeat_stride"]
    low, high = src.offset, src.offset + BLOCK_BYTES * ((repeat - 1) * step + 7 * block + 1)
    end = dst.offset + (repeat - 1) * f["dst_repeat_bytes"] + 8 * BLOCK_BYTES
    apart = dst.buffer != src.buffer or end <= low or high <= dst.offset or "accumulate" in f
    # If source and results overlap, a later repeat may read an earlier result.
    pieces = [(0, repeat)] if apart else [(i, 1) for i in range(repeat)]
    on = enabled(f["mask"], lanes)
    for first, count in pieces:
        values = load(memory, _moved(src, first, step), lanes, count, block, step, f["mask"])
        if f.get("accumulate"):
            _accumulate(memory, vector.sum_tree(values, True if on is None else on), f)
            return
        if instr.op in ("vcmax", "vcmin"):
            _keep_extreme(memory, instr.op, values, on, first)
        results, there = _reduced(instr.op, values, on, f.get("order"))
        if not there.any():
            continue
        place = replace(dst, offset=dst.offset + first * f["dst_repeat_bytes"])
        shape, size = (count, results.shape[1]), results.dtype.itemsize
        dtype = "uint32" if results.dtype == np.uint32 else src.dtype
        target = memory.at(place, shape, (f["dst_repeat_bytes"], size), dtype)
        for i in range(count):  # results of several repeats may overlap
            np.copyto(target[i], results[i], where=there)


def _accumulate(memory: Memory, sums: np.ndarray, fields: Mapping[str, Any]) -> None:
    """Keep the sum of the repeats in a register, in their order, rounded after each of them.

    References
    ----------
    asc-devkit, docs, ReduceSum: on the 910B a tree in each repeat, and the repeats in their order.
    The vendor's operator RmsNormGrad gives such a vcadd no target, so that it writes none.
    """
    kind = np.dtype(f"u{sums.dtype.itemsize}")
    total = sums[:1]
    if fields["accumulate"] == "more":
        held = np.array([memory.registers.get("sum", 0)], kind).view(sums.dtype)
        total = vector.add(held, total)
    for term in sums[1:]:
        total = vector.add(total, term[None])
    memory.registers["sum"] = int(total.view(kind)[0])


def _keep_extreme(
    memory: Memory, op: str, values: np.ndarray, on: np.ndarray | None, first: int
) -> None:
    """Keep the extreme of all repeats, and the index of its first lane, in a register.

    Parameters
    ----------
    first : int
        The number of the first repeat in ``values``; from 1 on, the earlier ones are in the
        register.

    References
    ----------
    asc-devkit, docs, GetReduceRepeatMaxMinSpr and asc_get_reduce_max_cnt.
    """
    repeats, lanes = values.shape
    mask = np.ones(lanes, bool) if on is None else on
    if not mask.any():
        return
    extreme = vector.largest if op == "vcmax" else vector.smallest
    flat = values.reshape(1, -1)
    kind = np.dtype(f"u{values.dtype.itemsize}")
    (best,), (lane,) = extreme(flat, np.tile(mask, repeats))
    code, index = np.asarray(best), int(lane) + first * lanes
    if first:
        held = memory.registers["extreme"]
        pair = np.array([held & (1 << 8 * kind.itemsize) - 1, code.view(kind)[()]], kind)
        _, (which,) = extreme(pair.view(values.dtype)[None], np.ones(2, bool))
        if not which:
            return
    memory.registers["extreme"] = int(code.view(kind)[()]) | index << 32


def joined_extremes(parts: Sequence[tuple[int, Instruction]]) -> int:
    """Return the register of extremes after instructions of one intrinsic.

    Parameters
    ----------
    parts : sequence of (int, Instruction)
        The register after each instruction, with the index among its own lanes.
    """
    src = parts[0][1].operands["src"]
    kind = np.dtype(f"u{src.itemsize}")
    extreme = vector.largest if parts[0][1].op == "vcmax" else vector.smallest
    codes = np.array([register & (1 << 8 * kind.itemsize) - 1 for register, _ in parts], kind)
    _, (which,) = extreme(codes.view(DTYPES[src.dtype])[None], np.ones(len(parts), bool))
    before = sum(instr.fields["repeat"] for _, instr in parts[:which]) * lanes_of(src)
    return int(codes[which]) | (parts[which][0] >> 32) + before << 32


def _reduced(op: str, values: np.ndarray, on: np.ndarray | None, order) -> tuple:
    """Return (repeat, results) elements, and a mask of the results that enabled lanes have."""
    mask = np.ones(values.shape[1], bool) if on is None else on
    if op == "vcpadd":
        return vector.pair_sums(values, mask), mask.reshape(-1, 2).any(axis=1)
    if op.startswith("vcg"):
        per = BLOCK_BYTES // values.dtype.itemsize
        values, mask = values.reshape(len(values), -1, per), mask.reshape(-1, per)
        if op == "vcgadd":
            return vector.sum_tree(values, mask), mask.any(axis=1)
        extreme = vector.largest if op == "vcgmax" else vector.smallest
        return extreme(values, mask)[0], mask.any(axis=1)
    if op == "vcadd":
        return vector.sum_tree(values, mask)[:, None], mask.any(keepdims=True)
    extreme = vector.largest if op == "vcmax" else vector.smallest
    best, lanes = extreme(values, mask)
    if order == "index":  # without the value, the index is a word of 32 bits
        return lanes.astype(np.uint32)[:, None], mask.any(keepdims=True)
    # The lane's number is stored as an integer in an element of the same size.
    index = lanes.astype(f"u{values.dtype.itemsize}").view(values.dtype)
    columns = {
        "value_index": (best, index),
        "index_value": (index, best),
        "value": (best,),
    }[order or "value_index"]
    return np.stack(columns, axis=1), np.full(len(columns), mask.any())


def _vtranspose(memory: Memory, instr: Instruction) -> None:
    source = memory.at(instr.operands["src"], (16, 16), (32, 2), "uint16")
    memory.at(instr.operands["dst"], (16, 16), (32, 2), "uint16")[...] = vector.transpose(source)


def _v4dtrans(memory: Memory, instr: Instruction) -> None:
    """Transpose pixels × channels in mode 0, and back in mode 1 (the modes are assumed)."""
    f, src = instr.fields, instr.operands["src"]
    rows, columns = f["pixels"], f["channels"]
    if f["mode"]:
        rows, columns = columns, rows
    width = DTYPES[src.dtype].itemsize
    source = memory.at(src, (rows, columns), (columns * width, width)).copy()
    target = memory.at(instr.operands["dst"], (columns, rows), (rows * width, width), src.dtype)
    target[...] = source.T


def _vnchwconv(memory: Memory, instr: Instruction) -> None:
    """Transpose 16 rows of one block each; for 32-bit elements, dst has 8 rows of two blocks."""
    f = instr.fields
    targets, sources = f["dst"], f["src"]
    dtype = sources[0].dtype
    width = DTYPES[dtype].itemsize
    if width not in (2, 4):
        raise FunctionalError(instr, f"elements must be 2 or 4 bytes wide, not {width}")
    per = BLOCK_BYTES // width
    for i in range(f["repeat"]):
        rows = np.stack(
            [
                memory.at(_moved(v, i, f["src_repeat_stride"]), (per,), (width,), dtype)
                for v in sources
            ]
        )
        # Eight columns of 16 elements of 32 bits fill 16 rows of one block, two for each column.
        transposed = rows.T.reshape(16, per)
        for view, row in zip(targets, transposed, strict=True):
            place = _moved(view, i, f["dst_repeat_stride"])
            memory.at(place, (per,), (width,), dtype)[...] = row


def _vbrcb(memory: Memory, instr: Instruction) -> None:
    """Fill a block with each of the 8 elements of a repeat; all are read before any is written."""
    f, src = instr.fields, instr.operands["src"]
    width = DTYPES[src.dtype].itemsize
    blocks = vector.fill_blocks(memory.at(src, (f["repeat"], 8), (8 * width, width)))
    strides = (f["dst_repeat_stride"] * BLOCK_BYTES, f["dst_block_stride"] * BLOCK_BYTES, width)
    memory.at(instr.operands["dst"], blocks.shape, strides, src.dtype)[...] = blocks


#: Functions of a memory and an instruction, by the key in the table of vector instructions.
_KERNELS: dict[str, Kernel] = {
    "broadcast": _vbrcb,
    "channels": _v4dtrans,
    "col2im": col2im,
    "comparison": _compare,
    "conversion": _vconv,
    "fill": _vdup,
    "reduction": _reduce,
    "rows": _vnchwconv,
    "selection": _vsel,
    "shift": _shift,
    "transposition": _vtranspose,
    **GATHER_SORT,
}

#: Functions of a memory and an instruction, by the name of the instruction.
VECTORS: dict[str, Kernel] = {
    op.name: _KERNELS[op.kernel] if op.compute is None else _lanewise(op)
    for op in VECTOR_OPS.values()
}
