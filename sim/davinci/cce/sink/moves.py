"""Intrinsics that move bursts, with their lengths and gaps converted to bytes."""

from collections.abc import Callable

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.intrinsics.runtime import IntrinsicCall
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES


def _bursts(sink: SinkContext, call: IntrinsicCall) -> None:
    """Copy bursts of whole blocks; a gap lies between the end of a burst and the next burst."""
    a = call.arguments
    if a.get("pad_mode"):
        sink.fail(call, "moves with padding are not modelled")
    if not a["n_burst"] or not a["len_burst"]:
        return
    if a.get("byte_mode"):
        if a["n_burst"] > 1:
            sink.fail(call, "n_burst must be 1 in byte mode; where further bursts begin is unknown")
        _copy(sink, call, 1, a["len_burst"], 0, 0)
        return
    size = a["len_burst"] * BLOCK_BYTES
    strides = [size + a[gap] * BLOCK_BYTES for gap in ("dst_gap", "src_gap")]
    _copy(sink, call, a["n_burst"], size, *strides)


def _copy(
    sink: SinkContext,
    call: IntrinsicCall,
    bursts: int,
    size: int,
    dst_stride: int,
    src_stride: int,
    padding: tuple[int, int, int, int] | None = None,
) -> None:
    dst, src = call.arguments["dst"], call.arguments["src"]
    dtype, operation = sink.atomic
    sink.core.copy(
        sink.view(dst, ()),
        sink.view(src, ()),
        bursts=bursts,
        burst_bytes=size,
        dst_stride=dst_stride,
        src_stride=src_stride,
        atomic=dtype if dst.space == "GM" else "",
        atomic_operation=operation,
        padding=padding,
    )


def _aligned(sink: SinkContext, call: IntrinsicCall) -> None:
    """Copy bursts of bytes, which are dense in global memory and fill whole blocks in UB."""
    a = call.arguments
    if not a["n_burst"] or not a["len_burst"]:
        return
    size = a["len_burst"]
    width = int(call.name.rpartition("_b")[2] or 8) // 8 if "_b" in call.name[-4:] else 1
    left, right = (a[f"{side}_padding"] * width for side in ("left", "right"))
    if max(left, right) > BLOCK_BYTES:
        sink.fail(call, f"paddings must be at most {BLOCK_BYTES} bytes, not {left} and {right}")
    padding = (left, right, width, int(sink.registers.get("set_mov_pad_val", 0)))
    whole = round_up(left + size + right, BLOCK_BYTES)
    inside, outside = ("dst_gap", "src_gap") if a["src"].space == "GM" else ("src_gap", "dst_gap")
    blocks, plain = whole + a[inside] * BLOCK_BYTES, size + a[outside]
    strides = (blocks, plain) if a["src"].space == "GM" else (plain, blocks)
    _copy(sink, call, a["n_burst"], size, *strides, padding if left or right else None)


def _nd2nz(sink: SinkContext, call: IntrinsicCall) -> None:
    a = call.arguments
    if not a["nd_num"] or not a["rows"] or not a["columns"]:
        return
    width = DTYPES[a["src"].dtype].itemsize
    sink.core.nd2nz(
        sink.view(a["dst"], ()),
        sink.view(a["src"], ()),
        matrices=a["nd_num"],
        rows=a["rows"],
        columns=a["columns"],
        src_matrix_stride=a["src_matrix_stride"] * width,
        src_row_stride=a["src_row_stride"] * width,
        dst_c0_stride=a["dst_c0_stride"] * BLOCK_BYTES,
        dst_row_stride=a["dst_row_stride"] * BLOCK_BYTES,
        dst_matrix_stride=a["dst_matrix_stride"] * width,
    )


#: Functions of a sink and a call, by the intrinsic's name.
MOVES: dict[str, Callable[[SinkContext, IntrinsicCall], None]] = dict.fromkeys(
    (
        "copy_gm_to_ubuf",
        "copy_gm_to_cbuf",
        "copy_ubuf_to_gm",
        "copy_ubuf_to_ubuf",
        "copy_ubuf_to_cbuf",
        "copy_cbuf_to_ubuf",
        "copy_cbuf_to_gm",
    ),
    _bursts,
)
MOVES |= {
    f"copy_{path}_align{bits}": _aligned
    for path in ("gm_to_ubuf", "ubuf_to_gm")
    for bits in ("", "_b8", "_b16", "_b32")
}
MOVES |= {f"copy_gm_to_cbuf_multi_nd2nz_{bits}": _nd2nz for bits in ("b8", "b16", "b32s")}
