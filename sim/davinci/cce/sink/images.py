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

from vitruvian.golden.scu import C0_BYTES, Patches
from vitruvian.golden.scu.patches import ROWS
from vitruvian.sim.davinci.cce.intrinsics.runtime import IntrinsicCall
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.isa.operands import DTYPES, FRACTAL_BYTES
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
    c0 = C0_BYTES // DTYPES[a["src"].dtype].itemsize
    # ``filter_h`` and ``filter_w`` are the ninth bits of the kernel's sizes.
    kernel = (a["kernel_h"] + 256 * a["filter_h"], a["kernel_w"] + 256 * a["filter_w"])
    if a["transpose"]:
        sink.fail(call, "transpose must be 0; transposed patches are not modelled")
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
    "col2img": _add,
}
