"""Translation of vector intrinsics, with their masks, repeats and strides, into instructions."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, IntrinsicCall
from vitruvian.sim.davinci.cce.intrinsics.vector import CONVERSIONS, VECTOR_INTRINSICS
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.cce.sink.gather_sort import gather, merge, pick, sort
from vitruvian.sim.davinci.isa.lanes import lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, FOURS, View
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.isa.vector_op import VectorOp
from vitruvian.sim.davinci.program.vector import MAX_REPEAT

#: Intrinsics of the vector unit that are read, but not modelled.
NOT_MODELLED = frozenset(("get_cmpmask", "vxor", "scatter_vnchwconv_b8"))

#: The even lanes of a mask.
_EVEN = sum(1 << lane for lane in range(0, 128, 2))

#: Orders of the results of vcmax and vcmin, by the number of the intrinsic's argument.
_ORDERS = ("value_index", "index_value", "value", "index")


def is_vector(name: str) -> bool:
    """Return True for an intrinsic that ``vector_call`` takes."""
    return name in VECTOR_INTRINSICS or name in NOT_MODELLED


def vector_call(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append the instructions that an intrinsic of the vector unit stands for."""
    if call.name in NOT_MODELLED:
        sink.fail(call, "this intrinsic is read, but not modelled")
    op = VECTOR_INTRINSICS[call.name]
    if op.name in _IRREGULAR:
        _IRREGULAR[op.name](sink, call)
    elif op.form is REDUCE:
        _reduce(sink, call, op)
    else:
        _elements(sink, call, op)


def _fields(sink: SinkContext, call: IntrinsicCall, op: VectorOp) -> dict[str, Any]:
    """Return the fields of a lane-wise instruction besides mask, repeat and strides."""
    if call.name in CONVERSIONS:
        _, _, rounding = CONVERSIONS[call.name]
        fields: dict[str, Any] = {"rounding": rounding}
        if call.name == "vconv_deq":
            fields["scale"] = float(sink.registers.get("set_deqscale", 1))
        return fields
    a = call.arguments
    return {f.name: bool(a[f.name]) if f.type == "bool" else a[f.name] for f in op.fields}


def _operands(
    sink: SinkContext, call: IntrinsicCall, names: list[str], *, bitwise: bool = False
) -> tuple[dict[str, View], dict[str, tuple[int, int]]]:
    """Return views and strides of the operands of these names.

    Instructions on bits work on elements of 16 bits, whatever the pointers' types.
    """
    a = call.arguments
    dtypes: dict[str, str] = dict.fromkeys(names, "uint16") if bitwise else {}
    if call.name in CONVERSIONS:  # pointers to integers of 4 bits say nothing
        dtypes["src"], dtypes["dst"], _ = CONVERSIONS[call.name]
    views = {n: sink.view(a[n], (), dtypes.get(n)) for n in names}
    strides = {n: (a[f"{n}_blk"], a[f"{n}_rep"]) for n in names}
    if "dst" in strides:  # a block stride of 0 would put all blocks on one another; it means 1
        strides["dst"] = (strides["dst"][0] or 1, strides["dst"][1])
    return views, strides


def _elements(sink: SinkContext, call: IntrinsicCall, op: VectorOp) -> None:
    names = [n for n in ("dst", "src", "src0", "src1") if n in call.arguments]
    views, strides = _operands(sink, call, names, bitwise=op.bitwise)
    fields = _fields(sink, call, op)
    if call.name == "vcopy":
        _copy(sink, call, op, views, strides)
        return
    fours = any(view.dtype == FOURS for view in views.values())
    for first, repeat, mask in _pieces(sink, call, lanes_of(*views.values())):
        if fours and (mask ^ mask >> 1) & _EVEN:
            sink.fail(call, f"the mask must enable both numbers of a byte or none, not {mask:#x}")
        moved = {n: _moved(v, first, strides[n][1]) for n, v in views.items()}
        sink.core.vector(op.name, moved, repeat=repeat, mask=mask, strides=strides, **fields)


def _copy(
    sink: SinkContext,
    call: IntrinsicCall,
    op: VectorOp,
    views: dict[str, View],
    strides: dict[str, tuple[int, int]],
) -> None:
    """Append vcopy, which is vor of the source with itself, with a lane for each element.

    In counting mode, the mask is the number of elements of each repeat, which go on with the block
    stride, and the number of repeats is that of the intrinsic.
    """
    views = {"dst": views["dst"], "src0": views["src"], "src1": views["src"]}
    strides = {"dst": strides["dst"], "src0": strides["src"], "src1": strides["src"]}
    wide = DTYPES[call.arguments["dst"].dtype].itemsize == 4
    lanes = lanes_of(*views.values()) // (2 if wide else 1)
    repeat, blocks, enabled = call.arguments["repeat"], 0, (1 << lanes) - 1
    left = sink.mask & 0xFFFFFFFF if sink.counting else lanes
    while repeat and left > 0:
        mask = (1 << min(left, lanes)) - 1 if sink.counting else sink.mask & enabled
        mask = _doubled(mask) if wide else mask
        moved = {n: _moved(v, blocks, strides[n][0]) for n, v in views.items()}
        sink.core.vector(op.name, moved, repeat=repeat, mask=mask, strides=strides)
        left, blocks = left - lanes, blocks + 8


@lru_cache(1024)
def _doubled(mask: int) -> int:
    """Return the lanes of 16 bits that lanes of 32 bits consist of."""
    return sum(3 << 2 * lane for lane in range(64) if mask >> lane & 1)


def _gather(sink: SinkContext, call: IntrinsicCall) -> None:
    gather(sink, call, _pieces(sink, call, lanes_of(sink.view(call.arguments["dst"], ()))))


def _pieces(sink: SinkContext, call: IntrinsicCall, lanes: int):
    """Yield (first repeat, repeats, mask) of the instructions that an intrinsic becomes.

    In counting mode, the mask is a number of elements, and the intrinsic's repeat is ignored (but
    see ``_copy``); elements that do not fill a repeat are an instruction of their own.
    """
    if not sink.counting:
        repeat = call.arguments["repeat"]
        if repeat:
            # The register has 128 bits; elements of 32 bits have 64 lanes.
            yield 0, repeat, sink.mask & ((1 << lanes) - 1)
        return
    whole, rest = divmod(sink.mask & 0xFFFFFFFF, lanes)
    first = 0
    while first < whole:
        repeat = min(whole - first, MAX_REPEAT)
        yield first, repeat, (1 << lanes) - 1
        first += repeat
    if rest:
        yield whole, 1, (1 << rest) - 1


def _moved(view: View, repeat: int, step: int) -> View:
    if not repeat:
        return view
    place = view.offset + repeat * step * BLOCK_BYTES
    return View(view.buffer, place, view.dtype, view.shape, view.strides, view.name)


def _compare(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append vcmp, whose result is in a register, or vcmpv or vcmpvs, whose result is in memory."""
    op, condition = call.name.split("_")
    a = call.arguments
    if not a["repeat"]:
        return
    names = ["src"] if op == "vcmpvs" else ["src0", "src1"]
    views, strides = _operands(sink, call, names)
    repeat = a["repeat"]
    if op == "vcmp":
        mask = sink.mask & ((1 << lanes_of(*views.values())) - 1)
        sink.compared = None
        sink.core.vcmp(
            views["src0"], views["src1"], condition, repeat=repeat, mask=mask, strides=strides
        )
        return
    dst = sink.view(a["dst"], (), "uint8")
    options: Any = {"repeat": repeat, "strides": strides}
    if op == "vcmpv":
        sink.core.vcmpv(dst, views["src0"], views["src1"], condition, **options)
    else:
        sink.core.vcmpvs(dst, views["src"], a["scalar"], condition, **options)


def _select(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append vsel, which selects by the register of comparisons.

    The register holds the result of the latest vcmp, or the bits that set_cmpmask has loaded since.
    Every repeat uses the same bits. In mode 2, the register holds an address in UB instead, at
    which there is a bit for each lane, repeat after repeat. In mode 1, src1 points to these bits,
    and the register holds a block of the scalar that takes the place of src1.
    """
    a = call.arguments
    if a["mode"] == 1:
        _select_scalar(sink, call)
        return
    if a["src1"].dtype != a["src0"].dtype:
        sink.fail(call, f"src1 must point to {a['src0'].dtype}, not {a['src1'].dtype}")
    if a["mode"] == 2:
        _select_far(sink, call)
        return
    if sink.compared is None:
        _elements(sink, call, VECTOR_OPS["vsel"])
        return
    views, strides = _operands(sink, call, ["dst", "src0", "src1"])
    bits = sink.view(sink.compared, (16,), "uint8")
    for first, repeat, mask in _pieces(sink, call, lanes_of(*views.values())):
        # The register holds the bits of one repeat, so that each repeat is an instruction of its
        # own.
        for i in range(first, first + repeat):
            moved = [_moved(v, i, strides[n][1]) for n, v in views.items()]
            sink.core.vsel(*moved, bits=bits, repeat=1, mask=mask, strides=strides)


def _select_far(sink: SinkContext, call: IntrinsicCall) -> None:
    if sink.compared is None or sink.functional is None:
        sink.fail(call, "mode 2 must come after set_cmpmask, with known data")
    (start,) = sink.functional.memory(sink.core).elements(sink.view(sink.compared, (1,), "uint64"))
    views, strides = _operands(sink, call, ["dst", "src0", "src1"])
    lanes = lanes_of(*views.values())
    for first, repeat, mask in _pieces(sink, call, lanes):
        moved = [_moved(v, first, strides[n][1]) for n, v in views.items()]
        place = sink.compared._replace(address=int(start) + first * lanes // 8)
        bits = sink.view(place, (repeat * lanes // 8,), "uint8")
        sink.core.vsel(*moved, bits=bits, repeat=repeat, mask=mask, strides=strides)
    sink.version += 1  # the register may hold another address the next time


def _select_scalar(sink: SinkContext, call: IntrinsicCall) -> None:
    if sink.compared is None:
        sink.fail(call, "mode 1 must come after set_cmpmask, which loads the scalar")
    a = call.arguments
    views, strides = _operands(sink, call, ["dst", "src0"])
    views["src1"], strides["src1"] = sink.view(sink.compared, (), a["src0"].dtype), (0, 0)
    lanes = lanes_of(*views.values())
    scalar, source = _held(sink, views["src1"])
    sink.version += 1  # the next time, the register's source may have other data
    for first, repeat, mask in _pieces(sink, call, lanes):
        moved = [_moved(v, first, strides[n][1]) for n, v in views.items()]
        place = a["src1"]._replace(address=a["src1"].address + first * lanes // 8)
        bits = sink.view(place, (repeat * lanes // 8,), "uint8")
        options = {"repeat": repeat, "mask": mask, "strides": strides}
        sink.core.vsel(*moved, bits=bits, **options, scalar=scalar, source=source)


def _held(sink: SinkContext, view: View) -> tuple[float | None, View | None]:
    """Return the scalar in the register of comparisons, and its place if that is unchanged.

    The scalar is None if the data are unknown.
    """
    if sink.functional is None or not sink.held:
        return None, None
    held = np.frombuffer(sink.held[: view.itemsize], DTYPES[view.dtype])
    now = sink.functional.memory(sink.core).elements(view).tobytes()
    same = now[: view.itemsize] == held.tobytes()
    return float(held[0]), view if same else None


def _reduce(sink: SinkContext, call: IntrinsicCall, op: VectorOp) -> None:
    """Append a reduction.

    The unit of dst's repeat stride is the size of one repeat's results: a value, a value and its
    index, eight values, or half a repeat. An index without its value has 32 bits. In mode 1, vcadd
    writes nothing to dst (ReduceSum of AscendC's library reads the register alone, and public
    kernels pass a null pointer).
    """
    a = call.arguments
    order = _ORDERS[a.get("order", 0)]
    src = sink.view(a["src"], ())
    width, lanes = src.itemsize, lanes_of(src)
    results = op.results_of(lanes, order)
    options: dict[str, Any] = {"order": order}
    for first, repeat, mask in _pieces(sink, call, lanes):
        if a.get("mode"):
            options["accumulate"] = "more" if first else "first"
        step = a["dst_rep"] * (4 if order == "index" else results * width)
        dst: Address = a["dst"]
        place = dst._replace(address=dst.address + first * step)
        sink.core.vreduce_lanes(
            op.name,
            sink.view(place, ()),
            _moved(src, first, a["src_rep"]),
            repeat=repeat,
            mask=mask,
            dst_repeat_bytes=step,
            src_block_stride=a["src_blk"],
            src_repeat_stride=a["src_rep"],
            **options,
        )


def _transpose(sink: SinkContext, call: IntrinsicCall) -> None:
    dst, src = (sink.view(call.arguments[n], (16, 16), "uint16") for n in ("dst", "src"))
    sink.core.vtranspose(dst, src)


def _transpose_channels(sink: SinkContext, call: IntrinsicCall) -> None:
    a = call.arguments
    dst, src = (sink.view(a[n], (a["pixels"] * a["channels"],)) for n in ("dst", "src"))
    # Mode 0 of the intrinsic is from channels × pixels, that of the instruction is to them.
    mode = 1 - a["mode"]
    sink.core.v4dtrans(dst, src, pixels=a["pixels"], channels=a["channels"], mode=mode)


def _broadcast(sink: SinkContext, call: IntrinsicCall) -> None:
    a = call.arguments
    if a["repeat"]:
        sink.core.vbrcb(
            sink.view(a["dst"], ()),
            sink.view(a["src"], ()),
            repeat=a["repeat"],
            dst_block_stride=a["dst_blk"] or 1,  # 0 means 1, as for other targets
            dst_repeat_stride=a["dst_rep"],
        )


def _scatter(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append vnchwconv; two address registers hold sixteen rows of each operand."""
    a = call.arguments
    dtype = {"b16": "uint16", "b32": "uint32"}[call.name.rpartition("_")[2]]
    if not a["repeat"]:
        return
    per = BLOCK_BYTES // DTYPES[dtype].itemsize
    sides: dict[str, tuple[View, ...]] = {}
    for side in ("dst", "src"):
        number = a[side]
        for register in (number, number + 1):
            if register not in sink.addresses:
                sink.fail(call, f"address register VA{register} must be set before")
        places = sink.addresses[number] + sink.addresses[number + 1]
        sides[side] = tuple(sink.view(Address("UB", p, dtype), (per,)) for p in places)
    sink.core.vnchwconv(
        **sides,
        repeat=a["repeat"],
        dst_repeat_stride=a["dst_rep"],
        src_repeat_stride=a["src_rep"],
    )


#: Functions of a sink and a call for instructions that are neither lane-wise nor reductions.
_IRREGULAR: dict[str, Callable[[SinkContext, IntrinsicCall], None]] = {
    "vcmp": _compare,
    "vcmpv": _compare,
    "vcmpvs": _compare,
    "vsel": _select,
    "vtranspose": _transpose,
    "v4dtrans": _transpose_channels,
    "vbrcb": _broadcast,
    "vnchwconv": _scatter,
    "vgather": _gather,
    "vreduce": pick,
    "vbitsort": sort,
    "vmrgsort": merge,
}
