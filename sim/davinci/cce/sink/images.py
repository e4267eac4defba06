"""Intrinsics of patches of images: Im2Col loads and Col2Im.

A register describes the image and its padding: ``set_fmatrix`` (or ``set_fmatrix_b``, of
img2colv2) for loads, and ``set_fcol2img`` for Col2Im. Its word has width and height (16 bits each),
then left, right, top and bottom padding (8 bits each). ``set_padding`` holds the value of the
padding, an FP16 code or an 8-bit integer. The fields are those of the public simulator and
operators of the AKG compiler; the order of the arguments is that of the public headers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.common.validate import round_up
from vitruvian.golden.scu import C0_BYTES, Patches
from vitruvian.golden.scu.patches import ROWS
from vitruvian.sim.davinci.cce.intrinsics.runtime import IntrinsicCall
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.isa.operands import DTYPES, FOURS, FRACTAL_BYTES, per_block
from vitruvian.sim.davinci.program.vector import MAX_REPEAT


def _patches(
    sink: SinkContext, call: IntrinsicCall, register: str, kernel: tuple[int, int] | None = None
) -> Patches:
    a = call.arguments
    word = sink.registers.get(register)
    if word is None:
        sink.fail(call, f"the image must have been described by {register}")
    word = int(word)
    # The register: width and height in 16 bits each, then the padding in 8 bits each.
    left, right, top, bottom = (word >> bit & 0xFF for bit in (32, 40, 48, 56))
    try:
        return Patches(
            height=word >> 16 & 0xFFFF,
            width=word & 0xFFFF,
            kernel=kernel or (a["kernel_h"], a["kernel_w"]),
            stride=(a["stride_h"], a["stride_w"]),
            pad=(top, bottom, left, right),
            dilation=(a["dilation_h"], a["dilation_w"]),
        )
    except ValueError as error:
        sink.fail(call, str(error))


def _place(call: IntrinsicCall) -> dict[str, Any]:
    a = call.arguments
    return {
        "repeat": a["repeat"],
        "position": (a["first_h"], a["first_w"]),
        "kernel_position": (a["pos_h"], a["pos_w"]),
        "channel": a.get("channel", 0),
    }


def _padding(sink: SinkContext, dtype: str) -> float:
    """Return the value in the register of padding; a dtype of 32 bits uses all of it."""
    word = np.array([int(sink.registers.get("set_padding", 0)) & 0xFFFFFFFF], np.uint32)
    return float(word.view(DTYPES[dtype])[0])


def _load(sink: SinkContext, call: IntrinsicCall) -> None:
    a = call.arguments
    if "fmatrix" in a and sink.registers.get("set_fmatrix") != a["fmatrix"]:
        sink.registers["set_fmatrix"] = a["fmatrix"]
        sink.version += 1
    if a["c_size"]:
        sink.fail(call, "c_size must be CSIZE0; images of four channels are not modelled")
    if a["mode"] and not a["jump"]:
        sink.fail(call, "jump must be 1 to 127 in mode 1, not 0")
    sink.core.im2col(
        sink.view(a["dst"], ()),
        sink.view(a["src"], ()),
        _patches(sink, call, "set_fmatrix"),
        mode=a["mode"],
        dst_stride=(a["jump"] if a["mode"] else 1) * FRACTAL_BYTES,
        pad_value=_padding(sink, a["src"].dtype),
        **_place(call),
    )


def _load_matrix(sink: SinkContext, call: IntrinsicCall) -> None:
    """Load a part of the matrix of all patches, from row ``pos_m`` and column ``pos_k`` on.

    A row is a patch, and a column is a channel at a position of the kernel. The indices of a column
    are, from the slowest to the fastest: the group of channels, the row and the column of the
    kernel, and the channel in its group. Each row of fractals is one Im2Col load in mode 0.
    """
    a = call.arguments
    c0 = per_block(a["src"].dtype)
    # ``filter_h`` and ``filter_w`` are the ninth bits of the kernel's sizes.
    kernel = (a["kernel_h"] + 256 * a["filter_h"], a["kernel_w"] + 256 * a["filter_w"])
    for name in ("step_k", "pos_k", "channels"):
        if a[name] % c0:
            sink.fail(
                call, f"{name} must be a multiple of {c0} for {a['src'].dtype}, not {a[name]}"
            )
    patches = _patches(sink, call, "set_fmatrix_b" if a["fmatrix_b"] else "set_fmatrix", kernel)
    places = kernel[0] * kernel[1]
    if a["pos_k"] + a["step_k"] > a["channels"] * places:
        sink.fail(
            call,
            f"pos_k + step_k must be at most channels · kernel, {a['channels'] * places}, "
            f"not {a['pos_k'] + a['step_k']}",
        )
    if a["src"].dtype == FOURS and (a["transpose"] or sink.registers.get("set_padding", 0)):
        sink.fail(
            call, "patches of 4-bit numbers must not be transposed or padded with other than 0"
        )
    if a["transpose"] or a["dst"].space == "L0B":
        _load_transposed(sink, call, patches)
        return
    first, last = a["pos_k"] // c0, (a["pos_k"] + a["step_k"]) // c0
    dst = a["dst"]
    for row in range(0, a["step_m"], ROWS):
        # The eight bits of a repeat do not reach further.
        for start in range(first, last, MAX_REPEAT):
            channel, place = divmod(start, places)
            count = min(last - start, MAX_REPEAT)
            sink.core.im2col(
                sink.view(dst, ()),
                sink.view(a["src"], ()),
                patches,
                repeat=count,
                position=patches.corner(a["pos_m"] + row),
                kernel_position=divmod(place, kernel[1]),
                channel=channel,
                pad_value=_padding(sink, a["src"].dtype),
            )
            dst = dst._replace(address=dst.address + count * FRACTAL_BYTES)


def _load_transposed(sink: SinkContext, call: IntrinsicCall, patches: Patches) -> None:
    """Load patches of one pixel: transposed as a whole to L0A, or each fractal of them to L0B.

    The pixels are the rows, and the channels the columns of a matrix in NZ order. It consists of
    squares of one fractal (16 bits), two side by side (32 bits) or two one above the other (8).
    """
    a, dst, src = call.arguments, call.arguments["dst"], call.arguments["src"]
    to_a = dst.space == "L0A"
    plain = Patches(height=patches.height, width=patches.width, kernel=(1, 1))
    if patches != plain:
        sink.fail(call, "transposed patches must be of one pixel, with stride 1 and no padding")
    width = DTYPES[src.dtype].itemsize
    c0, side = C0_BYTES // width, 16 if width > 1 else 32
    rows, columns = round_up(a["step_m"], side), round_up(a["step_k"], side)
    for name in ("pos_m", "step_m"):
        if a[name] % ROWS:
            sink.fail(call, f"{name} must be a multiple of {ROWS} for transposed patches")
    channels = patches.height * patches.width * C0_BYTES  # from one group of channels to the next
    start = src.address + a["pos_k"] // c0 * channels + a["pos_m"] * C0_BYTES
    down, across = rows // side, columns // side
    inner = FRACTAL_BYTES
    # Steps in src, and in dst, where rows and columns have changed places in L0A.
    step_down, step_across = side * C0_BYTES, side // c0 * channels
    per = {1: 2, 2: 1, 4: 2}[width]
    if to_a:  # row blocks are 16 channels, and column blocks c0 pixels
        line = rows // c0 * inner
        apart = line if width == 1 else inner
        into_down, into_across = side // c0 * inner, side // ROWS * line
    else:  # outer blocks are c0 pixels, inner blocks 16 channels
        line = columns // ROWS * inner
        apart = inner if width == 1 else line
        into_down, into_across = side // c0 * line, side // ROWS * inner
    outer, count, outer_steps, steps = (
        (across, down, (step_across, into_across), (step_down, into_down))
        if to_a
        else (down, across, (step_down, into_down), (step_across, into_across))
    )
    for i in range(outer):
        place = dst._replace(address=dst.address + i * outer_steps[1])
        views = (
            sink.view(place, ()),
            sink.view(src._replace(address=start + i * outer_steps[0]), ()),
        )
        options = {"repeat": count, "src_stride": steps[0], "dst_stride": steps[1]}
        if per == 1:
            sink.core.load(*views, **options, transpose=True)
        else:
            inside = channels if width == 4 else FRACTAL_BYTES
            sink.core.load_squares(
                *views, **options, dst_fractal_stride=apart, src_fractal_stride=inside
            )


def _add(sink: SinkContext, call: IntrinsicCall) -> None:
    """Append col2im; in every mode, each further repeat adds the next 16 patches."""
    a = call.arguments
    patches = _patches(sink, call, "set_fcol2img")
    sink.core.col2im(sink.view(a["dst"], ()), sink.view(a["src"], ()), patches, **_place(call))


#: Functions of a sink and a call, by the intrinsic's name.
IMAGES: dict[str, Callable[[SinkContext, IntrinsicCall], None]] = {
    "img2col_cbuf_to_ca": _load,
    "img2col_cbuf_to_cb": _load,
    "img2col_cbuf_to_ub": _load,
    "img2colv2_cbuf_to_ca": _load_matrix,
    "img2colv2_cbuf_to_cb": _load_matrix,
    "col2img": _add,
}
