"""Max and average pooling with PyTorch's names and shapes, on a simulated DaVinci chip."""

from typing import Any, Literal, overload

import numpy as np

from vitruvian.sim.davinci import Chip, Report
from vitruvian.sim.kernels.kernel import LIMITS
from vitruvian.sim.kernels.pooling import Pooling, build
from vitruvian.sim.kernels.pooling.catalogue import needs
from vitruvian.sim.ops import windows
from vitruvian.sim.ops.run import batched, chip_of, execute, images, pack, returned, unpack
from vitruvian.sim.ops.windows import pooling_of

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
    method: str = "auto",
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
    method : {"auto", "im2col", "direct", "expansion", "xy", "strided"}
        The implementation, see ``vitruvian.sim.kernels.pooling.METHODS``. The result is the same.
        "auto" is the fastest for the chip and the windows.
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
        gigabytes (``kernels.LIMITS``); the message is one line.

    Examples
    --------
    >>> max_pool2d(np.arange(16, dtype=np.float16).reshape(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    x, single = batched("x", x)
    patches = windows.windows_of(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    pooling = pooling_of(x.shape, patches, "max", method, chip, argmax=bool(return_indices))
    run = _run(pooling, chip, report, x=x)
    results = (unpack(run.outputs["y"], x.shape[1]),)
    if return_indices:
        # The kernel writes a mask of the first maxima, as device code does; PyTorch returns
        # indices.
        results += (unpack(windows.indices_of(patches, run.outputs["mask"]), x.shape[1]),)
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
    method: str = "auto",
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

    Examples
    --------
    >>> avg_pool2d(np.arange(16, dtype=np.float16).reshape(1, 1, 4, 4), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    x, single = batched("x", x)
    patches = windows.windows_of(x.shape, kernel_size, stride, padding, 1, ceil_mode)
    divisors = windows.divisors_of(patches, padding, count_include_pad, divisor_override)
    pooling = pooling_of(x.shape, patches, "avg", method, chip, divisors=divisors)
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
    method: str = "auto",
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

    Examples
    --------
    >>> x = np.arange(4, dtype=np.float16).reshape(1, 1, 2, 2)
    >>> max_pool2d_backward(np.ones((1, 1, 1, 1), np.float16), x, 2).tolist()
    [[[[0.0, 0.0], [0.0, 1.0]]]]
    """
    x, single = batched("x", x)
    patches = windows.windows_of(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    shape = (*x.shape[:2], patches.rows, patches.columns)
    grad_output = _like("grad_output", grad_output, shape, single)
    pooling = pooling_of(x.shape, patches, "max", method, chip, backward=True)
    # The backward pass is checked first, so that a forward pass is not simulated in vain.
    _check(pooling, chip_of(chip))
    if indices is None:
        # Without indices, a forward pass makes the mask anew.
        forward = pooling_of(x.shape, patches, "max", method, chip, argmax=True)
        mask = _run(forward, chip, False, x=x).outputs["mask"]
    else:
        mask = windows.mask_of(patches, indices, shape, single)
    run = _run(pooling, chip, report, dy=grad_output, mask=mask)
    dx = unpack(run.outputs["dx"], x.shape[1])
    # Gradients of windows without a pixel, which the kernel does not see.
    windows.add_of_empty_windows(dx, grad_output, patches)
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
    method: str = "auto",
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

    Examples
    --------
    >>> x = np.zeros((1, 1, 2, 2), np.float16)
    >>> avg_pool2d_backward(np.ones((1, 1, 1, 1), np.float16), x, 2).tolist()
    [[[[0.25, 0.25], [0.25, 0.25]]]]
    """
    x, single = batched("x", x)
    patches = windows.windows_of(x.shape, kernel_size, stride, padding, 1, ceil_mode)
    shape = (*x.shape[:2], patches.rows, patches.columns)
    grad_output = _like("grad_output", grad_output, shape, single)
    divisors = windows.divisors_of(patches, padding, count_include_pad, divisor_override)
    pooling = pooling_of(x.shape, patches, "avg", method, chip, backward=True, divisors=divisors)
    run = _run(pooling, chip, report, dy=grad_output)
    dx = unpack(run.outputs["dx"], x.shape[1])
    return returned((dx[0] if single else dx,), run if report else None)


def _like(name: str, x: Any, shape: tuple[int, ...], single: bool) -> np.ndarray:
    """Return an array of shape (N, C, Oh, Ow) after checking it; without N if single."""
    return images(name, x, shape[1:] if single else shape).reshape(shape)


def _run(pooling: Pooling, chip: Chip | str, checked: bool, **data: np.ndarray) -> Report:
    """Run a pooling on images (N, C, H, W), and on a mask in the layout of the kernel."""
    target = chip_of(chip)
    _check(pooling, target)
    # NC1HWC0: the channels in groups of 16, the last one filled up with zeros.
    packed = {name: x if name == "mask" else pack(x) for name, x in data.items()}
    return execute(build(pooling, target, data=packed), checks=checked)


def _check(pooling: Pooling, chip: Chip) -> None:
    """Refuse a pooling whose simulation takes too long or too much memory."""
    needs(pooling, chip).check(f"{pooling.reduction} pooling", LIMITS)
