"""The windows of a pooling: their places in the image, divisors, indices and masks."""

from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div, one_of
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.pooling import METHODS, Pooling
from vitruvian.sim.kernels.pooling.plan import default_method
from vitruvian.sim.ops.run import chip_of, pack, pair


def windows_of(
    shape: tuple[int, ...],
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Patches:
    """Return the windows; a last window of ``ceil_mode`` becomes padding at the far side."""
    kernel = pair("kernel_size", kernel_size, 1)
    # PyTorch takes an empty stride as none.
    is_none = stride is None or (isinstance(stride, tuple) and not stride)
    steps = kernel if is_none else pair("stride", stride, 1)
    pads, gaps = pair("padding", padding, 0), pair("dilation", dilation, 1)
    far = []
    for size, k, s, p, d in zip(shape[2:], kernel, steps, pads, gaps, strict=True):
        extent = (k - 1) * d + 1
        if p > extent // 2:
            raise UserError(f"padding must be at most half of the kernel, not {p} for {extent}")
        room = size + 2 * p - extent
        last = room // s
        # A further window must begin inside the image or in the padding before it. It may be the
        # only one, if the kernel is larger than the padded image by less than a stride.
        if ceil_mode and room % s and (last + 1) * s < size + p:
            last += 1
        if last < 0:
            raise UserError(
                f"kernel_size must fit into the padded image, not {extent} pixels into "
                f"{size + 2 * p}"
            )
        far.append(max(p, last * s + extent - size - p))
    return Patches(
        height=shape[2],
        width=shape[3],
        kernel=kernel,
        stride=steps,
        pad=(pads[0], far[0], pads[1], far[1]),
        dilation=gaps,
    )


def pooling_of(
    shape: tuple[int, ...],
    patches: Patches,
    reduction: str,
    method: str,
    chip: Chip | str,
    **more: Any,
) -> Pooling:
    """Return the pooling of images (N, C, H, W) on a chip; "auto" is its fastest method."""
    one_of("method", method, ("auto", *METHODS))
    if method == "auto":
        forward = not (more.get("backward") or more.get("argmax"))
        method = default_method(chip_of(chip), patches, forward=forward)
    # C1, the number of groups of 16 channels.
    return Pooling(patches, shape[0], ceil_div(shape[1], 16), reduction, method, **more)


def divisors_of(patches: Patches, padding: Any, include_pad: bool, override: Any) -> np.ndarray:
    """Return the divisor of each window, (Oh, Ow)."""
    if override is not None:
        if isinstance(override, bool) or not isinstance(override, int | np.integer):
            raise TypeError(f"divisor_override must be an int or None, not {override!r}")
        if not 1 <= abs(override) <= 65504:
            raise UserError(
                f"divisor_override must be between -65504 and 65504 and not 0, not {override!r}"
            )
        return np.full((patches.rows, patches.columns), override)
    pads = pair("padding", padding, 0)
    counts = []
    for axis, count in enumerate((patches.rows, patches.columns)):
        size, pad = (patches.height, patches.width)[axis], pads[axis]
        start = np.arange(count) * patches.stride[axis] - pad
        # What ceil_mode adds beyond the padding counts in neither case.
        end = np.minimum(start + patches.kernel[axis], size + pad)
        if not include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, size)
        counts.append(end - start)
    return np.multiply.outer(*counts)


def _places(patches: Patches) -> np.ndarray:
    """Return the index in H·W of each window's pixels, (Kh·Kw, Oh, Ow); −1 in the padding."""
    p = patches
    rows, columns = (
        (np.arange(k) * p.dilation[axis])[:, None] + np.arange(count) * p.stride[axis] - pad
        for axis, (k, count, pad) in enumerate(
            zip(p.kernel, (p.rows, p.columns), (p.pad[0], p.pad[2]), strict=True)
        )
    )
    inside = ((rows >= 0) & (rows < p.height))[:, None, :, None]
    inside = inside & ((columns >= 0) & (columns < p.width))[None, :, None, :]
    places = rows[:, None, :, None] * p.width + columns[None, :, None, :]
    return np.where(inside, places, -1).reshape(-1, p.rows, p.columns)


def indices_of(patches: Patches, mask: np.ndarray) -> np.ndarray:
    """Return the index of the pixel that each window marks, or of its first pixel without one."""
    flat = mask.reshape(*mask.shape[:2], -1, *mask.shape[4:])
    places = _places(patches)
    marked = flat.argmax(axis=2)
    rows, columns = np.ogrid[: patches.rows, : patches.columns]
    found = places[marked, rows[:, :, None], columns[:, :, None]]
    return np.where(flat.any(axis=2), found, _firsts(patches)[:, :, None])


def _firsts(patches: Patches) -> np.ndarray:
    """Return the index of each window's first pixel that is not before the image, (Oh, Ow).

    PyTorch returns this index for a window without a marked pixel. With dilation, all pixels of a
    window can be in the padding; the index is then that of another window's pixel, or behind the
    image.
    """
    p = patches
    rows, columns = (
        np.where(start < 0, start % gap, start)
        for start, gap in (
            (np.arange(p.rows) * p.stride[0] - p.pad[0], p.dilation[0]),
            (np.arange(p.columns) * p.stride[1] - p.pad[2], p.dilation[1]),
        )
    )
    return rows[:, None] * p.width + columns


def add_of_empty_windows(dx: np.ndarray, grad_output: np.ndarray, patches: Patches) -> None:
    """Add the gradients of windows without a pixel to the pixels that PyTorch's index names.

    A mask cannot express this, since the pixel is not in the window. PyTorch writes outside of its
    array if the index is behind the image; here such a gradient has no effect.
    """
    firsts = _firsts(patches)
    pixels = dx.reshape(*dx.shape[:2], -1)
    for row, column in np.argwhere((_places(patches) < 0).all(axis=0)):
        if firsts[row, column] < pixels.shape[2]:
            pixels[:, :, firsts[row, column]] += grad_output[:, :, row, column]


def mask_of(patches: Patches, indices: Any, shape: tuple[int, ...], single: bool) -> np.ndarray:
    """Return the mask that the forward kernel saves, from the indices that PyTorch returns."""
    shape = shape[1:] if single else shape
    if not isinstance(indices, np.ndarray) or indices.dtype.kind not in "iu":
        raise TypeError(f"indices must be a NumPy array of integers, not {type(indices).__name__}")
    if indices.shape != shape:
        raise UserError(f"indices must have the shape {shape}, not {indices.shape}")
    indices = indices[None] if single else indices
    places = _places(patches)
    # The channels that fill up a group have no index, so they mark nothing.
    packed = pack(indices.astype(np.int64) + 1, c0=16) - 1
    equal = packed[:, :, None] == places[:, :, :, None]
    # The index of a window without a pixel is outside of the window; it marks nothing.
    without = np.all(places < 0, axis=0)[:, :, np.newaxis]
    empty = without & (packed == _firsts(patches)[:, :, np.newaxis])
    wrong = (packed >= 0) & ~equal.any(axis=2) & ~empty
    if wrong.any() or (indices < 0).any():
        raise UserError("indices must be in the window that they belong to")
    mask = equal & (packed >= 0)[:, :, None]
    return mask.reshape(*packed.shape[:2], *patches.kernel, *packed.shape[2:]).astype(np.float16)
