"""2-D convolution with PyTorch's name and arguments, on the simulated chip."""

from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.sim.davinci import Chip, Report
from vitruvian.sim.kernels.convolution import (
    ConvOperands,
    ConvPlan,
    ConvShape,
    ConvTiling,
    build,
    choose,
    depthwise,
    result,
)
from vitruvian.sim.kernels.kernel import SimulationCost, matrix_kind
from vitruvian.sim.ops.run import batched, half_array, images, pair, returned, run_tiled, unpack

#: The units that can convolve one channel at a time, and the choice between them.
METHODS = ("auto", "cube", "vector")

#: Filters of a channel from which on the Cube convolves it: the columns of a fractal.
_FULL = 16

_Pair = int | tuple[int, int]


@overload
def conv2d(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = ...,
    stride: _Pair = ...,
    padding: _Pair | str = ...,
    dilation: _Pair = ...,
    groups: int = ...,
    *,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def conv2d(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = ...,
    stride: _Pair = ...,
    padding: _Pair | str = ...,
    dilation: _Pair = ...,
    groups: int = ...,
    *,
    method: str = ...,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def conv2d(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = ...,
    stride: _Pair = ...,
    padding: _Pair | str = ...,
    dilation: _Pair = ...,
    groups: int = ...,
    *,
    method: str = ...,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def conv2d(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    stride: _Pair = 1,
    padding: _Pair | str = 0,
    dilation: _Pair = 1,
    groups: int = 1,
    *,
    method: str = "auto",
    chip: Chip | str = "ascend910",
    report: bool = False,
) -> Any:
    """Convolve images with kernels.

    The Cube computes with sums in FP32 that start with the bias, and rounds the result to FP16. If
    ``groups`` is the number of channels (and more than 1) and a channel has fewer than 16 filters,
    the vector unit computes instead, with sums in FP16: the products, row by row of the kernel,
    each rounded once, and then the bias. These sums have the rounding error of FP16 at each step: a
    kernel of 3 × 3 on normal numbers is wrong by some 10⁻², where the Cube's result is wrong by the
    last rounding only. ``method="cube"`` avoids that; it takes longer, since the Cube multiplies 15
    channels of zeros beside each channel. ``kernels.convolution.golden`` has the exact order of
    both. PyTorch sums in FP32 in all cases. A sum of FP16 numbers that exceeds 65504 on its way is
    infinite on the vector unit only, which also keeps the sign of a sum of −0 alone, where PyTorch
    returns +0.

    Parameters
    ----------
    x : (N, C, H, W) or (C, H, W) ndarray of float16
        Images, or one image.
    w : (F, C / groups, Kh, Kw) ndarray of float16
    b : (F,) ndarray of float16, optional
        The bias.
    stride, dilation : int or (int, int)
        In rows and in columns.
    padding : int, (int, int), "valid" or "same"
        Zeros at both ends of rows and columns; "same", with a stride of 1, keeps the size.
    groups : int
        Groups of channels, each of which is convolved by itself.
    method : {"auto", "cube", "vector"}
        The unit: the vector unit can convolve single channels only.
    chip : Chip or str
        A chip by name, or one of your own.
    report : bool
        If True, check the program and return its report too.

    Returns
    -------
    y : (N, F, Oh, Ow) or (F, Oh, Ow) ndarray of float16
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, shape or value, or the kernel does not fit into the
        padded image.

    Examples
    --------
    >>> import numpy as np
    >>> x, w = np.ones((1, 1, 3, 3), np.float16), np.ones((1, 1, 2, 2), np.float16)
    >>> conv2d(x, w)
    array([[[[4., 4.],
             [4., 4.]]]], dtype=float16)
    """
    (x, single), w = batched("x", x), images("w", w)
    one_of("method", method, METHODS)
    s = shape_of(x.shape, w.shape, stride, padding, dilation, groups)
    if b is not None:
        b = half_array("b", b)
        if b.shape != (s.filters,):
            raise UserError(f"b must have a number for each of {s.filters} filters, not {b.shape}")
    # The units round differently, see the docstring: the choice belongs to the interface.
    if _on_vector_unit(s, method):
        done = _depthwise(s, ConvOperands(x, w, b), chip, report)
        y = unpack(done.outputs["y"], s.filters)
    else:
        done = _dense(s, ConvOperands(x, w, b), chip, report)
        y = result(done.outputs["y"], s.filters)
    return returned((y[0] if single else y,), done if report else None)


def _on_vector_unit(s: ConvShape, method: str) -> bool:
    """Return True if the vector unit computes a convolution."""
    # With a single channel, one group is the whole convolution.
    alone = s.groups == s.channels > 1
    if method == "vector" and not alone:
        raise UserError(
            f"groups must be the {s.channels} channels, 2 or more, for method 'vector', "
            f"not {s.groups}"
        )
    return alone and (method == "vector" or (method == "auto" and s.filters < _FULL * s.groups))


def _depthwise(s: ConvShape, data: ConvOperands, chip: Chip | str, checks: bool) -> Report:
    """Convolve one channel at a time, on the vector unit."""
    copies = s.filters // s.channels
    if copies > 1:
        # Each filter of a channel reads a copy of it.
        data = replace(data, x=np.repeat(data.x, copies, axis=1))
    # With a copy for each filter, it is a depthwise convolution.
    s = replace(s, channels=s.filters, groups=s.filters)
    bias = data.b is not None
    return run_tiled(
        "conv2d",
        chip,
        lambda chip, cores: depthwise.choose(s, chip, cores),
        lambda area, chip, cores: SimulationCost(
            depthwise.instructions(s, area, chip), 4 * data.x.nbytes
        ),
        lambda area, chip: depthwise.build(s, chip=chip, area=area, bias=bias, data=data),
        checks=checks,
    )


def _dense(s: ConvShape, data: ConvOperands, chip: Chip | str, checks: bool) -> Report:
    """Convolve all channels of a group at once, on the Cube."""
    bias = data.b is not None

    def needs(tiling: ConvTiling, chip: Chip, cores: int) -> SimulationCost:
        plan = ConvPlan(s, tiling, chip, cores)
        return SimulationCost(plan.instructions, 4 * (data.x.nbytes + data.w.nbytes), s.products)

    return run_tiled(
        "conv2d",
        chip,
        lambda chip, cores: choose(s, chip, cores),
        needs,
        lambda tiling, chip: build(s, chip=chip, tiling=tiling, bias=bias, data=data),
        kind=matrix_kind,
        checks=checks,
    )


def shape_of(
    x: tuple[int, ...],
    w: tuple[int, ...],
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> ConvShape:
    """Return the sizes of a convolution from PyTorch's arguments.

    Parameters
    ----------
    x, w : tuple of int
        The shapes (N, C, H, W) and (F, C / groups, Kh, Kw).
    stride, padding, dilation, groups
        As ``conv2d`` takes them.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or value, or they do not fit each other.
    """
    (n, c, height, width), (filters, depth, *kernel) = x, w
    steps, gaps = pair("stride", stride, 1), pair("dilation", dilation, 1)
    # True is an int in Python.
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer):
        raise TypeError(f"groups must be an int, not {groups!r}")
    if groups < 1 or c % groups or filters % groups:
        raise UserError(f"groups must divide {c} channels and {filters} filters, not {groups!r}")
    if depth != c // groups:
        shown = f"{c} channels / {groups} groups = {c // groups} channels"
        raise UserError(f"w must have {shown} on axis 1, not {depth}")
    rows, columns = kernel
    return ConvShape(
        images=n,
        channels=c,
        height=height,
        width=width,
        filters=filters,
        kernel=(rows, columns),
        stride=steps,
        pad=_pads(padding, (rows, columns), steps, gaps),
        dilation=gaps,
        groups=int(groups),
    )


def _pads(
    padding: Any, kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Return the zeros at the top, bottom, left and right."""
    if isinstance(padding, str):
        if padding == "valid":
            return 0, 0, 0, 0
        if padding != "same":
            raise UserError(f"padding must be int, two ints, 'valid' or 'same', not {padding!r}")
        if stride != (1, 1):
            raise UserError(f"stride must be 1 with padding 'same', not {stride!r}")
        # An odd number of zeros has the larger half at the bottom and right, as in PyTorch.
        high, wide = ((k - 1) * d for k, d in zip(kernel, dilation, strict=True))
        return high // 2, high - high // 2, wide // 2, wide - wide // 2
    rows, columns = pair("padding", padding, 0)
    return rows, rows, columns, columns
