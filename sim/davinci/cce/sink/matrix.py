"""Intrinsics around the Cube: loads of fractals, products, and transfers out of L0C."""

import struct
from collections.abc import Callable
from typing import Any

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, IntrinsicCall
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.cce.sink.images import IMAGES
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.isa.operands import (
    BLOCK_BYTES,
    DTYPES,
    FOURS,
    FRACTAL_BYTES,
    PLACE_BYTES,
    View,
)

#: Quantisations by number: conversions alone, with one factor, and with one for each column.
_REQ8, _QF322B8 = 9, 24
_PLAIN, _BY_ONE, _BY_COLUMN = (0, 1, 16), (_REQ8, 11, _QF322B8, 28), (8, 10, 23)


def unit_flag(sink: SinkContext, call: IntrinsicCall) -> None:
    """Order products and transfers out of L0C that have a unit flag.

    The hardware orders them block by block. Here, a flag of a register that no kernel can name
    makes the later instruction wait for all before it in the other queue, if they use the same
    place in L0C.
    """
    a = call.arguments
    if a.get("unit_flag", 0) < 2:
        return
    is_product = call.name.startswith("mad")
    place: Address = a["c"] if is_product else a["src"]
    m, n = (a["m"], a["n"]) if is_product else (a["m_size"], a["n_size"])
    size = round_up(m, 16) * round_up(n, 16) * DTYPES[place.dtype].itemsize
    span = (place.address, place.address + size)
    units = (Unit.M, Unit.FIX) if is_product else (Unit.FIX, Unit.M)
    mine, others = sink.unit_flags if is_product else sink.unit_flags[::-1]
    if any(low < span[1] and span[0] < high for low, high in others):
        register = sink.core.chip.event_registers
        fields = {"source": units[1], "target": units[0], "register": register}
        sink.core.add(units[1], "set_flag", Kind.SET, fields=fields)
        sink.core.add(units[0], "wait_flag", Kind.WAIT, fields=fields)
        others = frozenset()
    mine |= {span}
    sink.unit_flags = (mine, others) if is_product else (others, mine)


def _of_fours(call: IntrinsicCall) -> IntrinsicCall:
    """Return a call whose name ends with s4 with operands of integers of 4 bits."""
    a = dict(call.arguments)
    for name in ("dst", "src", "a", "b"):
        if name in a:
            a[name] = a[name]._replace(dtype=FOURS)
    return call._replace(arguments=a)


def _load_fours(sink: SinkContext, call: IntrinsicCall) -> None:
    if call.arguments["transpose"]:
        sink.fail(call, "a fractal of 4-bit numbers is transposed by load_cbuf_to_cb_transpose_s4")
    _load(sink, _of_fours(call))


def _load_sparse(sink: SinkContext, call: IntrinsicCall) -> None:
    """Load fractals of the weights of a sparse product, with the places of their numbers.

    One word holds both addresses in L1, that of the places in its upper half. The index of the
    first fractal counts for both.
    """
    a = call.arguments
    if not a["repeat"]:
        return
    src: Address = a["src"]
    places, start = src.address >> 32, src.address & 0xFFFFFFFF
    sink.core.load(
        sink.view(a["dst"], ()),
        sink.view(src._replace(address=start + a["base_idx"] * FRACTAL_BYTES), ()),
        repeat=a["repeat"],
        index=places + a["base_idx"] * PLACE_BYTES,
    )


def _load(sink: SinkContext, call: IntrinsicCall) -> None:
    a = call.arguments
    src: Address = a["src"]
    src = src._replace(address=src.address + a["base_idx"] * FRACTAL_BYTES)
    # Address mode 1 counts the source's fractals downwards.
    sign = -1 if a.get("addr_mode") else 1
    sink.core.load(
        sink.view(a["dst"], ()),
        sink.view(src, ()),
        repeat=a["repeat"],
        src_stride=sign * a["src_stride"] * FRACTAL_BYTES,
        dst_stride=(1 + a.get("dst_gap", 0)) * FRACTAL_BYTES,
        transpose=bool(a.get("transpose")),
    )


def _load_transposed(sink: SinkContext, call: IntrinsicCall) -> None:
    """Load transposed squares.

    A square is one fractal of 16-bit elements, two of 8 or 32, or four of 4.
    """
    a = call.arguments
    src: Address = a["src"]
    width = DTYPES[src.dtype].itemsize
    fractals = 4 if src.dtype == FOURS else {1: 2, 2: 1, 4: 2}.get(width)
    if fractals is None:
        sink.fail(call, f"elements of {src.dtype} are not transposed")
    square = fractals * FRACTAL_BYTES
    first = src._replace(address=src.address + a["base_idx"] * square)
    views = (sink.view(a["dst"], ()), sink.view(first, ()))
    stride = (-1 if a["addr_mode"] else 1) * a["src_stride"] * square
    step = (1 + a["dst_gap"]) * FRACTAL_BYTES
    if fractals == 1:
        options = {"repeat": a["repeat"], "src_stride": stride, "dst_stride": step}
        sink.core.load(*views, **options, transpose=True)
        return
    sink.core.load_squares(
        *views,
        repeat=a["repeat"],
        src_stride=stride,
        dst_stride=step,
        dst_fractal_stride=(1 + a["dst_fraction_gap"]) * FRACTAL_BYTES,
    )


def _to_bias(sink: SinkContext, call: IntrinsicCall) -> None:
    """Copy bursts of 64 bytes from L1 to the bias buffer.

    Gaps are in blocks of 32 bytes in L1, and in units of 64 bytes in the bias buffer.
    """
    a = call.arguments
    if a["convert"]:
        sink.fail(call, "a conversion on the way to the bias buffer is not modelled")
    # A transfer of nothing is allowed and has no instruction.
    if not a["len_burst"]:
        return
    # Kernels give the address as a pointer or as an integer.
    start = a["dst"].address if isinstance(a["dst"], Address) else a["dst"]
    size = 64 * a["len_burst"]
    sink.core.copy(
        View("BT", start, "uint8", (), ()),
        sink.view(a["src"], (), "uint8"),
        bursts=a["n_burst"],
        burst_bytes=size,
        dst_stride=size + 64 * a["dst_gap"],
        src_stride=size + BLOCK_BYTES * a["src_gap"],
    )


def _to_factors(sink: SinkContext, call: IntrinsicCall) -> None:
    """Copy bursts of 128 bytes from L1 to the buffer of factors.

    Steps are from the start of one burst to that of the next: in blocks of 32 bytes in L1, and in
    units of 128 bytes in the buffer.
    """
    a = call.arguments
    if a["dst"].address >> 16:
        sink.fail(call, "factors of ReLU are not modelled, only those of quantisation")
    if not a["n_burst"] or not a["len_burst"]:
        return
    sink.core.copy(
        sink.view(a["dst"], (), "uint8"),
        sink.view(a["src"], (), "uint8"),
        bursts=a["n_burst"],
        burst_bytes=128 * a["len_burst"],
        dst_stride=128 * a["dst_step"],
        src_stride=BLOCK_BYTES * a["src_step"],
    )


def _fill(sink: SinkContext, call: IntrinsicCall) -> None:
    """Fill fractals with one value, which a register or an argument (create_ca_matrix) holds."""
    a = call.arguments
    value = a["value"] if "value" in a else sink.registers.get("set_l0_set_value", 0)
    repeat, blocks, gap = a["repeat"], a.get("blocks") or 1, a.get("dst_gap", 0)
    dst: Address = a["dst"]
    unit = BLOCK_BYTES if dst.space == "L1" else FRACTAL_BYTES
    size = blocks * unit
    width = DTYPES[dst.dtype].itemsize
    if not gap:
        repeat, size = min(repeat, 1), repeat * size
    for i in range(repeat):
        place = dst._replace(address=dst.address + i * (size + gap * unit))
        sink.core.fill(sink.view(place, (size // width,)), value)


def _mad(sink: SinkContext, call: IntrinsicCall) -> None:
    a = call.arguments
    if not a["m"] or not a["k"] or not a["n"]:
        return
    sparse = call.name == "mad_sp"
    step = {"mad_s4": 2, "mad_sp": 4}.get(call.name, 1)
    if a["k"] % step:
        sink.fail(call, f"k must be a multiple of {step}, not {a['k']}")
    init, bias = ("zero" if a["init"] else "accumulate"), None
    # A product that begins with zeros reads no C, wherever that would come from.
    if a.get("c_matrix_source") and not a["init"]:
        init, start = "bias", a.get("bias", 0)  # without an address, the buffer's first byte
        start = start.address if isinstance(start, Address) else start
        width = DTYPES[a["c"].dtype].itemsize
        bias = View("BT", start, a["c"].dtype, (a["n"],), (width,))
    views = [sink.view(a[name], ()) for name in ("c", "a", "b")]
    layout = ""
    if Unit.FIX in sink.core.kind.units and a["m"] == 1 and not sparse:
        # Cube cores of their own take a single row as a vector: its elements are neighbours.
        layout = "vector"
    elif a.get("k_direction_align") and DTYPES[a["a"].dtype].itemsize == 4:
        layout = "even"
    unit_flag(sink, call)
    sizes = {name: a[name] for name in "mkn"}
    sink.core.mmad(*views, **sizes, init=init, bias=bias, a_layout=layout, sparse=sparse)


def _to_ub(sink: SinkContext, call: IntrinsicCall) -> None:
    """Convert bursts of fractals in L0C and move them to UB.

    Gaps are in fractals in L0C, and in blocks of 32 bytes in UB.
    """
    a = call.arguments
    mode, dst, src = a["cr_mode"], a["dst"], a["src"]
    if not a["n_burst"] or not a["len_burst"]:
        return
    options: dict[str, Any] = {}
    if mode in (7, 9, 11):
        options = {"quant": "scalar", "factor": float(sink.registers.get("set_deqscale", 1))}
    elif mode > 5:
        sink.fail(call, f"mode must be 0 to 5, 7, 9 or 11; {mode} is not modelled")
    expected = {1: ("fp32", "fp16"), 2: ("fp32", "fp16"), 3: ("int32", "fp16"), 4: ("fp16", "fp32")}
    if mode in expected and (src.dtype, dst.dtype) != expected[mode]:
        conversion = " to ".join(expected[mode])
        sink.fail(call, f"mode {mode} is from {conversion}, not from {src.dtype} to {dst.dtype}")
    size = 256 * DTYPES[src.dtype].itemsize
    out = a["len_burst"] * 256 * DTYPES[dst.dtype].itemsize
    sink.core.matrix_out(
        sink.view(dst, ()),
        sink.view(src, ()),
        m=16 * a["len_burst"],
        n=16 * a["n_burst"],
        src_stride=(a["len_burst"] + a["src_gap"]) * size,
        dst_stride=out + a["dst_gap"] * BLOCK_BYTES,
        relu=mode in (2, 5),
        **options,
    )


def _plain(sink: SinkContext, call: IntrinsicCall) -> None:
    """Copy between UB and L0C without conversion: bursts of fractals, or of rows of 16 elements.

    Gaps are in fractals in L0C and in blocks in UB.
    """
    a = call.arguments
    dst, src = a["dst"], a["src"]
    if a["cr_mode"] or dst.dtype != src.dtype:
        sink.fail(call, f"from {src.dtype} to {dst.dtype} in mode {a['cr_mode']} is not modelled")
    if not a["n_burst"] or not a["len_burst"]:
        return
    width = DTYPES[src.dtype].itemsize
    size = a["len_burst"] * (256 if "matrix" in call.name else 16) * width
    units = {
        name: 256 * width if a[name].space == "L0C" else BLOCK_BYTES for name in ("dst", "src")
    }
    sink.core.copy(
        sink.view(dst, ()),
        sink.view(src, ()),
        bursts=a["n_burst"],
        burst_bytes=size,
        dst_stride=size + a["dst_gap"] * units["dst"],
        src_stride=size + a["src_gap"] * units["src"],
    )


def _check_quantisation(sink: SinkContext, call: IntrinsicCall, quant: int, word: int) -> None:
    """Refuse the fields of the word of a quantisation that would change its results.

    Bit 36 shifts the sums of REQ8 first, and bits 37 to 45 are added to results of 8 bits.

    References
    ----------
    asc-devkit, docs, table 1 of the quantisation on the way out of L0C.
    """
    if quant == _REQ8 and word >> 36 & 1:
        sink.fail(call, "a shift of the sums before their quantisation is not modelled")
    if quant in (_REQ8, _QF322B8) and word >> 37 & 0x1FF:
        sink.fail(call, "an offset of quantised results is not modelled")


def _fixpipe(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append matrix_out on unit FIX, once for each row-major matrix that set_nd_para states."""
    a = call.arguments
    dst: Address = a["dst"]
    src: Address = a["src"]
    if a["channel_split"] and (a["nz2nd"] or DTYPES[dst.dtype].itemsize != 4):
        sink.fail(call, "channels must be split in fractals of 32 bits")
    if a["relu_pre"] > 1:
        sink.fail(call, f"relu_pre must be 0 or 1, not {a['relu_pre']}")
    if not a["m_size"] or not a["n_size"]:
        return
    quant = a["quant_pre"]
    if quant not in _PLAIN + _BY_ONE + _BY_COLUMN:
        sink.fail(call, f"quant_pre {quant} is not modelled")
    out, inside = DTYPES[dst.dtype].itemsize, DTYPES[src.dtype].itemsize
    # Three fields of 16 bits: the number of matrices, and the steps from one to the next in L0C and
    # in the target.
    word = int(sink.registers.get("set_nd_para", 1)) if a["nz2nd"] else 1
    number, src_step, dst_step = word & 0xFFFF, word >> 16 & 0xFFFF, word >> 32 & 0xFFFF
    unit_flag(sink, call)
    factor = scale = None
    if quant in _BY_COLUMN:  # a word of 64 bits for each column, in units of 128 bytes in FB
        start = (int(sink.registers.get("set_fpc", 0)) >> 8 & 0xFF) * 128
        scale = View("FB", start, "uint64", (a["n_size"],), (8,))
    if quant in _BY_ONE:  # the register holds an FP32 number, of whose fraction FIX reads ten bits
        word = int(sink.registers.get("set_quant_pre", 0))
        _check_quantisation(sink, call, quant, word)
        code = word & 0xFFFFE000
        factor = struct.unpack("<f", struct.pack("<I", code))[0]
    dtype, operation = sink.atomic
    for i in range(number):
        sink.core.matrix_out(
            sink.view(dst._replace(address=dst.address + i * dst_step * out), ()),
            sink.view(src._replace(address=src.address + i * src_step * 256 * inside), ()),
            m=a["m_size"],
            n=a["n_size"],
            dst_stride=a["dst_stride"] * (out if a["nz2nd"] else BLOCK_BYTES),
            src_stride=a["src_stride"] * 16 * inside,
            relu=bool(a["relu_pre"]),
            quant="scalar" if quant in _BY_ONE else "vector" if scale else "",
            scale=scale,
            layout="nd" if a["nz2nd"] else "split" if a["channel_split"] else "nz",
            factor=factor,
            atomic=dtype if dst.space == "GM" else "",
            atomic_operation=operation,
        )


def not_modelled(sink: SinkContext, call: IntrinsicCall) -> None:
    """Refuse an intrinsic that is read, but not modelled."""
    sink.fail(call, "this intrinsic is read, but not modelled")


#: Functions of a sink and a call, by the intrinsic's name.
MATRIX: dict[str, Callable[[SinkContext, IntrinsicCall], None]] = {
    "mad": _mad,
    "copy_matrix_cc_to_ubuf": _to_ub,
    "copy_matrix_cc_to_gm": _fixpipe,
    "copy_matrix_cc_to_cbuf": _fixpipe,
}
MATRIX |= IMAGES
MATRIX["copy_cbuf_to_bt"] = _to_bias
MATRIX["copy_cbuf_to_fbuf"] = _to_factors
MATRIX |= {f"load_{source}_to_c{side}": _load for source in ("cbuf", "gm") for side in "ab"}
MATRIX |= {f"load_cbuf_to_c{side}_transpose": _load_transposed for side in "ab"}
MATRIX |= {f"load_cbuf_to_c{side}_s4": _load_fours for side in "ab"}
MATRIX |= {"load_cbuf_to_cb_sp": _load_sparse, "mad_sp": _mad}
MATRIX["mad_s4"] = lambda sink, call: _mad(sink, _of_fours(call))
MATRIX["load_cbuf_to_cb_transpose_s4"] = lambda sink, call: _load_transposed(sink, _of_fours(call))
MATRIX["img2colv2_cbuf_to_ca_s4"] = lambda sink, call: IMAGES["img2colv2_cbuf_to_ca"](
    sink, _of_fours(call)
)
MATRIX |= {name: _fill for s in "ab" for name in (f"set_l0{s}_2d", f"create_c{s}_matrix")}
MATRIX["create_cbuf_matrix"] = _fill
MATRIX |= dict.fromkeys(
    ("copy_vector_cc_to_ubuf", "copy_vector_ubuf_to_cc", "copy_matrix_ubuf_to_cc"), _plain
)
MATRIX["broadcast_ub_to_cc"] = not_modelled
