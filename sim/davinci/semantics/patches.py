"""Im2Col and Col2Im on memories; ``golden.scu`` defines their results."""

from typing import Any

import numpy as np

from vitruvian.golden.scu import C0_BYTES, col2im_add, im2col_load
from vitruvian.golden.scu.patches import ROWS
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES, View, contiguous
from vitruvian.sim.davinci.program.images import CHANNELS

from .memory import Memory


def _image(memory: Memory, view: View, fields: Any, groups: int, channels: int) -> np.ndarray:
    """Return the first groups of channels of the image at the first byte of a view."""
    shape = (groups, fields["patches"].height, fields["patches"].width, channels)
    return memory.at(view, shape, contiguous(shape, DTYPES[view.dtype].itemsize))


def _where(fields: Any) -> dict[str, Any]:
    return {name: fields[name] for name in ("position", "kernel_position", "channel")}


def im2col(memory: Memory, instr: Instruction) -> None:
    """Carry out an Im2Col load."""
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    width = DTYPES[src.dtype].itemsize
    kh, kw = f["patches"].kernel
    groups = f["channel"] + 1
    if f["mode"] == 0:
        (y, x), steps = f["kernel_position"], f["repeat"]
        groups += (y * kw + x + steps - 1) // (kh * kw)
    image = _image(memory, src, f, groups, C0_BYTES // width)
    options = {**_where(f), "repeat": f["repeat"], "mode": f["mode"], "pad_value": f["pad_value"]}
    fractals = im2col_load(image, f["patches"], **options)
    strides = (f["dst_stride"], C0_BYTES, width)
    target = memory.at(dst, fractals.shape, strides, src.dtype)
    if f["dst_stride"] >= ROWS * C0_BYTES:
        target[...] = fractals
        return
    for i, fractal in enumerate(fractals):  # they overlap
        target[i] = fractal


def col2im(memory: Memory, instr: Instruction) -> None:
    """Carry out a Col2Im."""
    f, dst, src = instr.fields, instr.operands["dst"], instr.operands["src"]
    shape = (f["repeat"], ROWS, CHANNELS)
    fractals = memory.at(src, shape, contiguous(shape, DTYPES[src.dtype].itemsize))
    image = _image(memory, dst, f, f["channel"] + 1, CHANNELS)
    image[...] = col2im_add(image, fractals, f["patches"], **_where(f))
