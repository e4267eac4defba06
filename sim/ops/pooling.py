"""Max and average pooling with PyTorch's names and shapes, on a simulated DaVinci chip."""

from typing import Any, Literal, overload

import numpy as np

from vitruvian.errors import UserError
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip, Report
from vitruvian.sim.kernels.kernel import MOST
from vitruvian.sim.kernels.pooling import Pooling, build
from vitruvian.sim.kernels.pooling.kernels import needs
from vitruvian.sim.ops.run import batched, chip_of, execute, images, pack, pair, returned, unpack

__all__ = ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward"]

_Pair = int | tuple[int, int]


@overload
def max_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    method: str = ...,
    chip: Chip | str = ...,
    return_indices: Literal[False] = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def max_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    method: str = ...,
    chip: Chip | str = ...,
    return_indices: Literal[True],
    report: Literal[False] = ...,
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def max_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    method: str = ...,
    chip: Chip | str = ...,
    return_indices: Literal[False] = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def max_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    method: str = ...,
    chip: Chip | str = ...,
    return_indices: Literal[True],
    report: Literal[True],
) -> tuple[np.ndarray, np.ndarray, Report]: ...
@overload
def max_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    method: str = ...,
    chip: Chip | str = ...,
    return_indices: bool = ...,
    report: bool,
) -> Any: ...
def max_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = None,
    padding: _Pair = 0,
    *,
    dilation: _Pair = 1,
    ceil_mode: bool = False,
    method: str = "im2col",
    chip: Chip | str = "ascend910",
    return_indices: bool = False,
    report: bool = False,
) -> Any:
    """Return the largest element of each window.

    The results are those of PyTorch's function, except for two cases, because the vector unit's
    vmax is maximumNumber of IEEE 754-2019. A NaN loses to a number, where PyTorch returns the NaN
    and the index of the last one; a window of NaNs alone gives −∞ and the index of its first
    pixel. The larger of the two zeros is +0, where PyTorch returns the first of them; the index is
    that of the first one. If dilation leaves a window without a pixel, the maximum is −∞, and the
    index is that of PyTorch, which is outside of the window and can be behind the image.

    Parameters
    ----------
    x : (N, C, H, W) or (C, H, W) ndarray of float16
        Images, or one image, with any number of channels.
    kernel_size : int or (int, int)
        Rows and columns of a window.
    stride : int or (int, int), optional
        Distance between windows, by default the kernel's size.
    padding : int or (int, int)
        Pixels of −∞ on both sides, at most half of the kernel's extent.
    dilation : int or (int, int)
        Distance between the elements of a window.
    ceil_mode : bool
        If True, the last window may reach beyond the padding.
    method : {"im2col", "direct", "expansion", "xy", "strided"}
        The implementation, see ``vitruvian.sim.kernels.pooling.METHODS``. The result is the same.
    chip : Chip or str
    return_indices : bool
        If True, also return the index in H·W of the first largest element of each window.
    report : bool
        If True, check the program, and also return the report of the run.

    Returns
    -------
    y : (N, C, Oh, Ow) or (C, Oh, Ow) ndarray of float16
    indices : ndarray of int64, of the shape of y
        Only with ``return_indices``. They are read from the mask that the kernel saves.
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the simulation would take more than some minutes or four
        gigabytes (``kernels.MOST``); the message is one line.
    """
    x, single = batched("x", x)
    patches = _patches(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    pooling = _pooling(x.shape, patches, "max", method, argmax=bool(return_indices))
    run = _run(pooling, chip, report, x=x)
    results = (unpack(run.outputs["y"], x.shape[1]),)
    if return_indices:
        results += (unpack(_indices(patches, run.outputs["mask"]), x.shape[1]),)
    results = tuple(y[0] if single else y for y in results)
    return returned(results, run if report else None)


@overload
def avg_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def avg_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def avg_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def avg_pool2d(
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = None,
    padding: _Pair = 0,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    method: str = "im2col",
    chip: Chip | str = "ascend910",
    report: bool = False,
) -> Any:
    """Return the mean of each window.

    The kernel starts at +0 and adds the elements of a window in rising row and then rising column;
    padding adds +0. Each sum is rounded to FP16, and so is the quotient by the divisor (rounded to
    FP16, which matters above 2048). The method "xy" adds the elements of a row to a sum from +0,
    and then these sums. With n elements and u = 2⁻¹¹, the distance to the exact mean is at most
    ((1 + u)ⁿ⁺¹ − 1) · Σ|x| / divisor + 2⁻²⁵, and n instead of n + 1 if FP16 has the divisor, as
    long as no sum exceeds 65504. (PyTorch sums in FP32 and rounds once.)

    Parameters
    ----------
    x : (N, C, H, W) or (C, H, W) ndarray of float16
    kernel_size, stride, padding, ceil_mode, method, chip, report
        As in ``max_pool2d``; the padding is zero.
    count_include_pad : bool
        If True, the padding counts in the divisor.
    divisor_override : int, optional
        The divisor of every window, not 0.

    Returns
    -------
    y : (N, C, Oh, Ow) or (C, Oh, Ow) ndarray of float16
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.
    """
    x, single = batched("x", x)
    patches = _patches(x.shape, kernel_size, stride, padding, 1, ceil_mode)
    divisors = _divisors(patches, padding, count_include_pad, divisor_override)
    pooling = _pooling(x.shape, patches, "avg", method, divisors=divisors)
    run = _run(pooling, chip, report, x=x)
    y = unpack(run.outputs["y"], x.shape[1])
    return returned((y[0] if single else y,), run if report else None)


@overload
def max_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    indices: np.ndarray | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def max_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    indices: np.ndarray | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def max_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    dilation: _Pair = ...,
    ceil_mode: bool = ...,
    indices: np.ndarray | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def max_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = None,
    padding: _Pair = 0,
    *,
    dilation: _Pair = 1,
    ceil_mode: bool = False,
    indices: np.ndarray | None = None,
    method: str = "im2col",
    chip: Chip | str = "ascend910",
    report: bool = False,
) -> Any:
    """Return the gradient of the input of ``max_pool2d``.

    The gradient of a window goes to its first largest element. If dilation leaves a window without
    a pixel, the gradient goes to the pixel of the index that PyTorch returns for it, without an
    instruction of the kernel. A pixel of several windows gets the sum of their gradients from +0,
    in rising row and then rising column of the pixel in the window; each sum is rounded. The
    method "xy" adds those of one column first. The kernel multiplies the mask by the gradient, so
    an infinite gradient makes every other pixel of its window NaN, and a NaN makes all of them
    NaN. Without ``indices``, the gradient of a window of NaNs has no effect.

    Parameters
    ----------
    grad_output : (N, C, Oh, Ow) or (C, Oh, Ow) ndarray of float16
    x : (N, C, H, W) or (C, H, W) ndarray of float16
        The input of the forward function.
    kernel_size, stride, padding, dilation, ceil_mode, method, chip, report
        As in ``max_pool2d``. The report is that of the backward kernel.
    indices : ndarray of int64, optional
        Those that the forward function returned, of the shape of ``grad_output``. Without them, the
        forward kernel runs first.

    Returns
    -------
    dx : ndarray of float16, of the shape of x
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.
    """
    x, single = batched("x", x)
    patches = _patches(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    shape = (*x.shape[:2], patches.rows, patches.columns)
    grad_output = _like("grad_output", grad_output, shape, single)
    pooling = _pooling(x.shape, patches, "max", method, backward=True)
    _check(pooling, chip_of(chip))
    if indices is None:
        forward = _pooling(x.shape, patches, "max", method, argmax=True)
        mask = _run(forward, chip, False, x=x).outputs["mask"]
    else:
        mask = _mask(patches, indices, shape, single)
    run = _run(pooling, chip, report, dy=grad_output, mask=mask)
    dx = unpack(run.outputs["dx"], x.shape[1])
    _add_of_empty_windows(dx, grad_output, patches)
    return returned((dx[0] if single else dx,), run if report else None)


@overload
def avg_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def avg_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def avg_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = ...,
    padding: _Pair = ...,
    *,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    method: str = ...,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def avg_pool2d_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    kernel_size: _Pair,
    stride: _Pair | None = None,
    padding: _Pair = 0,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    method: str = "im2col",
    chip: Chip | str = "ascend910",
    report: bool = False,
) -> Any:
    """Return the gradient of the input of ``avg_pool2d``.

    The gradient of each window is divided by its divisor and rounded; a pixel gets the sum of the
    quotients of its windows, in the order of ``max_pool2d_backward``.

    Parameters
    ----------
    grad_output : (N, C, Oh, Ow) or (C, Oh, Ow) ndarray of float16
    x : (N, C, H, W) or (C, H, W) ndarray of float16
        The input of the forward function; only its shape matters.
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, method, chip, \
report
        As in ``avg_pool2d``.

    Returns
    -------
    dx : ndarray of float16, of the shape of x
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.
    """
    x, single = batched("x", x)
    patches = _patches(x.shape, kernel_size, stride, padding, 1, ceil_mode)
    shape = (*x.shape[:2], patches.rows, patches.columns)
    grad_output = _like("grad_output", grad_output, shape, single)
    divisors = _divisors(patches, padding, count_include_pad, divisor_override)
    pooling = _pooling(x.shape, patches, "avg", method, backward=True, divisors=divisors)
    run = _run(pooling, chip, report, dy=grad_output)
    dx = unpack(run.outputs["dx"], x.shape[1])
    return returned((dx[0] if single else dx,), run if report else None)


def _like(name: str, x: Any, shape: tuple[int, ...], single: bool) -> np.ndarray:
    """Return an array with a batch axis after checking that it has a shape, without it if single.

    Parameters
    ----------
    name : str
    x : ndarray of float16
    shape : (N, C, Oh, Ow)
    single : bool
    """
    return images(name, x, shape[1:] if single else shape).reshape(shape)


def _patches(
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


def _divisors(patches: Patches, padding: Any, include_pad: bool, override: Any) -> np.ndarray:
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


def _pooling(
    shape: tuple[int, ...], patches: Patches, reduction: str, method: str, **more: Any
) -> Pooling:
    return Pooling(patches, shape[0], -(-shape[1] // 16), reduction, method, **more)


def _run(pooling: Pooling, chip: Chip | str, checked: bool, **data: np.ndarray) -> Report:
    """Run a pooling on images (N, C, H, W), and on a mask in the layout of the kernel."""
    target = chip_of(chip)
    _check(pooling, target)
    packed = {name: x if name == "mask" else pack(x) for name, x in data.items()}
    return execute(build(pooling, target, data=packed), checks=checked)


def _check(pooling: Pooling, chip: Chip) -> None:
    """Refuse a pooling whose simulation takes too long or too much memory."""
    needs(pooling, chip).check(f"{pooling.reduction} pooling", MOST)


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


def _indices(patches: Patches, mask: np.ndarray) -> np.ndarray:
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


def _add_of_empty_windows(dx: np.ndarray, grad_output: np.ndarray, patches: Patches) -> None:
    """Add the gradients of windows without a pixel to the pixels that PyTorch's index names.

    A mask cannot express this, since the pixel is not in the window. PyTorch writes outside of its
    array if the index is behind the image; here such a gradient has no effect.
    """
    firsts = _firsts(patches)
    pixels = dx.reshape(*dx.shape[:2], -1)
    for row, column in np.argwhere((_places(patches) < 0).all(axis=0)):
        if firsts[row, column] < pixels.shape[2]:
            pixels[:, :, firsts[row, column]] += grad_output[:, :, row, column]


def _mask(patches: Patches, indices: Any, shape: tuple[int, ...], single: bool) -> np.ndarray:
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
