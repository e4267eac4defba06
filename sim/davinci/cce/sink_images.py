"""Intrinsics of patches of images: Im2Col loads and Col2Im.

The image and its padding are in a register, `set_fmatrix` for loads and `set_fcol2img` for
Col2Im, as a word of width, height (16 bits each), and left, right, top and bottom padding (8 bits
each); `set_padding` holds what stands in the padding, an FP16 code or an 8-bit integer. The
fields are those of the public simulator and operators of the AKG compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.scu import Patches

from ..operands import DTYPES, FRACTAL_BYTES
from .machine import Call

if TYPE_CHECKING:
    from .sink import ProgramSink

__all__ = ["IMAGES"]


def _patches(sink: ProgramSink, call: Call, register: str) -> Patches:
    a = call.arguments
    word = sink.registers.get(register)
    if word is None:
        sink.fail(call, f"the image must have been described by {register}")
    word = int(word)
    left, right, top, bottom = (word >> bit & 0xFF for bit in (32, 40, 48, 56))
    try:
        return Patches(
            height=word >> 16 & 0xFFFF,
            width=word & 0xFFFF,
            kernel=(a["kernel_h"], a["kernel_w"]),
            stride=(a["stride_h"], a["stride_w"]),
            pad=(top, bottom, left, right),
            dilation=(a["dilation_h"], a["dilation_w"]),
        )
    except ValueError as error:
        sink.fail(call, str(error))


def _place(call: Call) -> dict[str, Any]:
    a = call.arguments
    return {
        "repeat": a["repeat"],
        "position": (a["first_h"], a["first_w"]),
        "kernel_position": (a["pos_h"], a["pos_w"]),
        "channel": a.get("channel", 0),
    }


def _padding(sink: ProgramSink, dtype: str) -> float:
    """What the register of padding stands for."""
    word = np.uint16(int(sink.registers.get("set_padding", 0)) & 0xFFFF)
    kind = DTYPES[dtype]
    return float(np.array([word]).view(kind)[0])


def _load(sink: ProgramSink, call: Call) -> None:
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


def _add(sink: ProgramSink, call: Call) -> None:
    """A repetition goes on to the next 16 patches, whatever the mode: there is no other."""
    a = call.arguments
    patches = _patches(sink, call, "set_fcol2img")
    sink.core.col2im(sink.view(a["dst"], ()), sink.view(a["src"], ()), patches, **_place(call))


#: Functions of a sink and a call, by the intrinsic's name.
IMAGES: dict[str, Callable[[ProgramSink, Call], None]] = {
    "img2col_cbuf_to_ca": _load,
    "img2col_cbuf_to_cb": _load,
    "img2col_cbuf_to_ub": _load,
    "col2img": _add,
}
