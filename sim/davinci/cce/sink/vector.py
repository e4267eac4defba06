"""Intrinsics of the vector unit: masks, repeats and strides as instructions have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, Call
from vitruvian.sim.davinci.cce.intrinsics.table import CONVERSIONS
from vitruvian.sim.davinci.cce.sink.gather_sort import gather, merge, pick, sort
from vitruvian.sim.davinci.isa.lanes import lanes_of
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, Span, View

if TYPE_CHECKING:
    from vitruvian.sim.davinci.cce.sink.program import ProgramSink

__all__ = ["NOT_MODELLED", "is_vector", "vector_call"]

#: Intrinsics of the vector unit that are read, but have no meaning here.
NOT_MODELLED = frozenset(("get_cmpmask", "vxor", "scatter_vnchwconv_b8"))

_MOST = 255  # repeats of an instruction

_BITWISE = ("vand", "vor", "vxor", "vnot", "vcopy")
_REDUCTIONS = ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd")
_ORDERS = ("value_index", "index_value", "value", "index")
_BINARY = """vadd vsub vmul vdiv vmax vmin vand vor vmla vmadd vmaddrelu vaddrelu vsubrelu
vsel""".split()
_UNARY = "vabs vexp vln vrec vrsqrt vsqrt vrelu vnot vcopy".split()
_SCALAR = "vadds vmuls vmaxs vmins vaxpy vlrelu".split()
_OTHER = """vector_dup vshl vshr vtranspose v4dtrans vbrcb get_cmpmask vxor vgather
vreducev2 vbitsort vmrgsort4""".split()
_PICKS = {"vreducev2": pick, "vbitsort": sort, "vmrgsort4": merge}
_NAMES = frozenset((*_BINARY, *_UNARY, *_SCALAR, *_OTHER, *_REDUCTIONS, *CONVERSIONS))


def is_vector(name: str) -> bool:
    """Whether an intrinsic is one of the vector unit's that this module takes."""
    return name in _NAMES or name.startswith(("vcmp", "scatter_vnchwconv"))


def vector_call(sink: ProgramSink, call: Call) -> None:
    """Append a vector intrinsic as instructions."""
    name = call.name
    if name in NOT_MODELLED:
        sink.fail(call, "this intrinsic is read, but not modelled")
    elif name in _REDUCTIONS:
        _reduce(sink, call)
    elif name.startswith("vcmp"):
        _compare(sink, call)
    elif name.startswith("scatter_vnchwconv"):
        _scatter(sink, call)
    elif name in ("vtranspose", "v4dtrans", "vbrcb"):
        _whole(sink, call)
    elif name == "vsel":
        _select(sink, call)
    elif name == "vgather":
        gather(sink, call, _pieces(sink, call, lanes_of(sink.view(call.arguments["dst"], ()))))
    elif name in _PICKS:
        _PICKS[name](sink, call)
    else:
        _elements(sink, call, *_operation(sink, call))


def _operation(sink: ProgramSink, call: Call) -> tuple[str, dict[str, Any]]:
    """The operation's name, and its fields besides mask, repeat and strides."""
    name, a = call.name, call.arguments
    if name in CONVERSIONS:
        _, _, rounding = CONVERSIONS[name]
        fields: dict[str, Any] = {"rounding": rounding}
        if name == "vconv_deq":
            fields["scale"] = float(sink.registers.get("set_deqscale", 1))
        return "vconv", fields
    if name in _SCALAR or name == "vector_dup":
        return {"vector_dup": "vdup"}.get(name, name), {"scalar": a["scalar"]}
    if name in ("vshl", "vshr"):
        return name, {"amount": a["amount"], "round": bool(a["round"])}
    return {"vcopy": "vor"}.get(name, name), {}


def _operands(sink: ProgramSink, call: Call, names: list[str]) -> tuple[dict[str, View], dict]:
    """Views and strides; what works on bits takes elements of 16 bits, whatever pointers say."""
    a = call.arguments
    dtype = "uint16" if call.name in _BITWISE else None
    views = {n: sink.view(a[n], (), dtype) for n in names}
    strides = {n: (a[f"{n}_blk"], a[f"{n}_rep"]) for n in names}
    if "dst" in strides:  # a target whose blocks all lie on one another is one without gaps
        strides["dst"] = (strides["dst"][0] or 1, strides["dst"][1])
    if call.name == "vcopy":
        views = {"dst": views["dst"], "src0": views["src"], "src1": views["src"]}
        strides = {"dst": strides["dst"], "src0": strides["src"], "src1": strides["src"]}
    return views, strides


def _elements(sink: ProgramSink, call: Call, op: str, fields: dict[str, Any]) -> None:
    names = [n for n in ("dst", "src", "src0", "src1") if n in call.arguments]
    views, strides = _operands(sink, call, names)
    for first, repeat, mask in _pieces(sink, call, lanes_of(*views.values())):
        moved = {n: _moved(v, first, strides[n][1]) for n, v in views.items()}
        sink.core.vector(op, moved, repeat=repeat, mask=mask, strides=strides, **fields)


def _pieces(sink: ProgramSink, call: Call, lanes: int):
    """(first repeat, repeats, mask) of the instructions that an intrinsic is.

    In counting mode the mask is a number of elements, and the repeat of the intrinsic does not
    count; what is left over is an instruction of its own.
    """
    if not sink.counting:
        repeat = call.arguments["repeat"]
        if repeat:
            yield 0, repeat, sink.mask & ((1 << lanes) - 1)
        return
    whole, rest = divmod(sink.mask & 0xFFFFFFFF, lanes)
    first = 0
    while first < whole:
        repeat = min(whole - first, _MOST)
        yield first, repeat, (1 << lanes) - 1
        first += repeat
    if rest:
        yield whole, 1, (1 << rest) - 1


def _moved(view: View, repeat: int, step: int) -> View:
    if not repeat:
        return view
    place = view.offset + repeat * step * BLOCK_BYTES
    return View(view.buffer, place, view.dtype, view.shape, view.strides, view.name)


def _compare(sink: ProgramSink, call: Call) -> None:
    """vcmp_lt into the register; vcmpv_lt into bits in memory, vcmpvs_lt with a scalar."""
    op, condition = call.name.split("_")
    a = call.arguments
    if not a["repeat"]:
        return
    names = ["src"] if op == "vcmpvs" else ["src0", "src1"]
    views, strides = _operands(sink, call, names)
    lanes = lanes_of(*views.values())
    how: dict[str, Any] = {"repeat": a["repeat"], "strides": strides, "condition": condition}
    if op == "vcmp":
        sink.compared = None
        sink.core.vector("vcmp", views, mask=sink.mask & ((1 << lanes) - 1), **how)
        return
    dst = sink.view(a["dst"], (), "uint8")
    if op == "vcmpv":
        how.pop("condition")
        sink.core.vcmpv(dst, views["src0"], views["src1"], condition, **how)
        return
    (one,) = sink.core.vector("vcmpvs", views, scalar=a["scalar"], **how)
    sink.core.instructions.pop()
    bits = Span(dst.buffer, dst.offset, a["repeat"] * lanes // 8)
    sink.core.add(
        one.unit,
        one.op,
        operands={"dst": dst, **views},
        fields=one.fields,
        reads=one.reads,
        writes=(bits,),
        work=one.work,
    )


def _select(sink: ProgramSink, call: Call) -> None:
    """By the register; after set_cmpmask by the bits it was taken from, repeat by repeat.

    In mode 2 these are an address in UB, where a bit for each lane is, repeat after repeat.
    """
    if call.arguments["mode"] == 2:
        _select_far(sink, call)
        return
    if call.arguments["mode"]:
        sink.fail(call, f"mode must be 0 or 2, not {call.arguments['mode']}: it is not modelled")
    if sink.compared is None:
        _elements(sink, call, "vsel", {})
        return
    views, strides = _operands(sink, call, ["dst", "src0", "src1"])
    bits = sink.view(sink.compared, (16,), "uint8")
    for first, repeat, mask in _pieces(sink, call, lanes_of(*views.values())):
        for i in range(first, first + repeat):
            moved = [_moved(v, i, strides[n][1]) for n, v in views.items()]
            sink.core.vsel(*moved, bits=bits, repeat=1, mask=mask, strides=strides)


def _select_far(sink: ProgramSink, call: Call) -> None:
    if sink.compared is None or sink.functional is None:
        sink.fail(call, "mode 2 must come after set_cmpmask, with data that are known")
    (start,) = sink.functional.memory(sink.core).elements(sink.view(sink.compared, (1,), "uint64"))
    views, strides = _operands(sink, call, ["dst", "src0", "src1"])
    lanes = lanes_of(*views.values())
    for first, repeat, mask in _pieces(sink, call, lanes):
        moved = [_moved(v, first, strides[n][1]) for n, v in views.items()]
        place = sink.compared._replace(address=int(start) + first * lanes // 8)
        bits = sink.view(place, (repeat * lanes // 8,), "uint8")
        sink.core.vsel(*moved, bits=bits, repeat=repeat, mask=mask, strides=strides)
    sink.version += 1  # what the register holds may be another address the next time


def _reduce(sink: ProgramSink, call: Call) -> None:
    """The repeat stride of dst counts results: a value, a pair, eight values, or half a repeat.

    An index alone is a word of 32 bits.
    """
    a, op = call.arguments, call.name
    order = _ORDERS[a.get("order", 0)]
    src = sink.view(a["src"], ())
    width, lanes = src.itemsize, lanes_of(src)
    unit = {"vcadd": 1, "vcpadd": lanes // 2}.get(op, 8)
    if op in ("vcmax", "vcmin"):
        unit = 1 if order in ("value", "index") else 2
    for first, repeat, mask in _pieces(sink, call, lanes):
        step = a["dst_rep"] * (4 if order == "index" else unit * width)
        dst: Address = a["dst"]
        place = dst._replace(address=dst.address + first * step)
        sink.core.vreduce_lanes(
            op,
            sink.view(place, ()),
            _moved(src, first, a["src_rep"]),
            repeat=repeat,
            mask=mask,
            dst_repeat_bytes=step,
            src_block_stride=a["src_blk"],
            src_repeat_stride=a["src_rep"],
            order=order,
        )


def _whole(sink: ProgramSink, call: Call) -> None:
    a = call.arguments
    if call.name == "vtranspose":
        sink.core.vtranspose(*(sink.view(a[n], (16, 16), "uint16") for n in ("dst", "src")))
        return
    if call.name == "v4dtrans":
        shape = (a["pixels"] * a["channels"],)
        views = {n: sink.view(a[n], shape) for n in ("dst", "src")}
        fields = {"pixels": a["pixels"], "channels": a["channels"]}
        # The intrinsic's 0 is from channels × pixels, that of the operation is to them.
        fields["mode"] = 1 - a["mode"]
        sink.core.vector_views("v4dtrans", views, **fields)
        return
    if not a["repeat"]:
        return
    dtype, width = a["src"].dtype, DTYPES[a["src"].dtype].itemsize
    strides = (a["dst_rep"] * BLOCK_BYTES, a["dst_blk"] * BLOCK_BYTES, width)
    shape = (a["repeat"], 8, BLOCK_BYTES // width)
    dst = View("UB", a["dst"].address, dtype, shape, strides)
    views = {"dst": dst, "src": sink.view(a["src"], (8 * a["repeat"],))}
    fields = {"dst_block_stride": a["dst_blk"], "dst_repeat_stride": a["dst_rep"]}
    sink.core.vector_views("vbrcb", views, repeat=a["repeat"], **fields)


def _scatter(sink: ProgramSink, call: Call) -> None:
    """Sixteen addresses from two registers on each side."""
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
    spans = {
        side: tuple(
            Span(v.buffer, v.offset, BLOCK_BYTES, ((a["repeat"], a[f"{side}_rep"] * BLOCK_BYTES),))
            for v in views
        )
        for side, views in sides.items()
    }
    fields = {
        **sides,
        "repeat": a["repeat"],
        "dst_repeat_stride": a["dst_rep"],
        "src_repeat_stride": a["src_rep"],
    }
    sink.core._vector("vnchwconv", {}, fields, spans["src"], spans["dst"], a["repeat"])
