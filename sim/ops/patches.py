"""``unfold`` and ``fold`` with PyTorch's arguments, by Im2Col and Col2Im on the simulated chip."""

from typing import Any, Literal, overload

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.scu import to_nc1hwc0
from vitruvian.sim.davinci import Chip, Report
from vitruvian.sim.kernels.convolution import ConvShape
from vitruvian.sim.kernels.convolution import fold as fold_kernel
from vitruvian.sim.kernels.convolution import unfold as unfold_kernel
from vitruvian.sim.kernels.kernel import SimulationCost
from vitruvian.sim.ops.run import batched, half_array, pair, returned, run_tiled, unpack

_Two = int | tuple[int, int]


@overload
def unfold(
    x: np.ndarray,
    kernel_size: _Two,
    dilation: _Two = ...,
    padding: _Two = ...,
    stride: _Two = ...,
    *,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def unfold(
    x: np.ndarray,
    kernel_size: _Two,
    dilation: _Two = ...,
    padding: _Two = ...,
    stride: _Two = ...,
    *,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def unfold(
    x: np.ndarray,
    kernel_size: _Two,
    dilation: _Two = ...,
    padding: _Two = ...,
    stride: _Two = ...,
    *,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def unfold(
    x: np.ndarray,
    kernel_size: _Two,
    dilation: _Two = 1,
    padding: _Two = 0,
    stride: _Two = 1,
    *,
    chip: Chip | str = "ascend910",
    report: bool = False,
) -> Any:
    """Return the patches of images as columns.

    Parameters
    ----------
    x : (N, C, H, W) or (C, H, W) ndarray of float16
        Images, or one image.
    kernel_size, dilation, padding, stride : int or (int, int)
        In rows and in columns.
    chip : Chip or str
        A chip by name, or one of your own.
    report : bool
        If True, check the program and return its report too.

    Returns
    -------
    columns : (N, C·Kh·Kw, L) or (C·Kh·Kw, L) ndarray of float16
        L = Oh·Ow patches, row by row.
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
    >>> from vitruvian import ops
    >>> ops.unfold(np.ones((1, 2, 3, 3), np.float16), 2).shape
    (1, 8, 4)
    """
    x, single = batched("x", x)
    s = _shape(x.shape, kernel_size, dilation, padding, stride)
    # A pixel is in up to ``taps`` patches.
    nbytes = 4 * x.nbytes * (s.taps + 1)
    done = run_tiled(
        "unfold",
        chip,
        lambda chip, cores: unfold_kernel.choose(s, chip, cores),
        lambda area, chip, cores: SimulationCost(unfold_kernel.instructions(s, area, chip), nbytes),
        lambda area, chip: unfold_kernel.build(s, chip=chip, area=area, data=x),
        checks=report,
    )
    # (N, C1, Kh·Kw, Oh, Ow, 16) to (N, C1·16, Kh·Kw, L), without the channels that fill up.
    y = np.moveaxis(done.outputs["y"], -1, 2).reshape(s.images, -1, s.taps, s.patches.count)
    y = np.ascontiguousarray(y[:, : s.channels]).reshape(s.images, -1, s.patches.count)
    return returned((y[0] if single else y,), done if report else None)


@overload
def fold(
    x: np.ndarray,
    output_size: _Two,
    kernel_size: _Two,
    dilation: _Two = ...,
    padding: _Two = ...,
    stride: _Two = ...,
    *,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def fold(
    x: np.ndarray,
    output_size: _Two,
    kernel_size: _Two,
    dilation: _Two = ...,
    padding: _Two = ...,
    stride: _Two = ...,
    *,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def fold(
    x: np.ndarray,
    output_size: _Two,
    kernel_size: _Two,
    dilation: _Two = ...,
    padding: _Two = ...,
    stride: _Two = ...,
    *,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def fold(
    x: np.ndarray,
    output_size: _Two,
    kernel_size: _Two,
    dilation: _Two = 1,
    padding: _Two = 0,
    stride: _Two = 1,
    *,
    chip: Chip | str = "ascend910",
    report: bool = False,
) -> Any:
    """Add patches to images of zeros, at the places from which ``unfold`` takes them.

    A pixel's addends follow in the order of the kernel's positions, row by row, and every sum is
    rounded to FP16.

    Parameters
    ----------
    x : (N, C·Kh·Kw, L) or (C·Kh·Kw, L) ndarray of float16
        The columns of images, or of one image.
    output_size : int or (int, int)
        H and W of the images.
    kernel_size, dilation, padding, stride : int or (int, int)
        In rows and in columns.
    chip : Chip or str
        A chip by name, or one of your own.
    report : bool
        If True, check the program and return its report too.

    Returns
    -------
    images : (N, C, H, W) or (C, H, W) ndarray of float16
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
    >>> from vitruvian import ops
    >>> ops.fold(np.ones((1, 4, 4), np.float16), 3, 2).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    x = half_array("x", x)
    if x.ndim not in (2, 3) or 0 in x.shape:
        raise UserError(f"x must be (N, C·Kh·Kw, L) or (C·Kh·Kw, L), each 1 or more, not {x.shape}")
    single = x.ndim == 2
    x = x[None] if single else x
    height, width = pair("output_size", output_size, 1)
    rows, columns = pair("kernel_size", kernel_size, 1)
    n, deep, count = x.shape
    if deep % (rows * columns):
        raise UserError(f"axis 1 of x must be C·{rows}·{columns} = C·Kh·Kw, not {deep}")
    channels = deep // (rows * columns)
    s = _shape((n, channels, height, width), kernel_size, dilation, padding, stride)
    p = s.patches
    if count != p.count:
        raise UserError(f"axis 2 of x must be {p.rows}·{p.columns} = {p.count}, not {count}")

    # A function, so that nothing is copied for a problem that the limits refuse.
    def grouped() -> np.ndarray:
        # (N, C, Kh·Kw, Oh, Ow) with channels in groups of 16 behind.
        parts = x.reshape(n, channels, s.taps * p.rows, p.columns)
        data = to_nc1hwc0(parts).reshape(n, -1, s.taps, p.rows, p.columns, 16)
        return np.ascontiguousarray(data)

    done = run_tiled(
        "fold",
        chip,
        lambda chip, cores: fold_kernel.choose(s, chip, cores),
        # Operands are copied into groups of channels, padded, and copied into the simulated memory.
        lambda area, chip, cores: SimulationCost(
            fold_kernel.instructions(s, area, chip), 8 * x.nbytes
        ),
        lambda area, chip: fold_kernel.build(s, chip=chip, area=area, data=grouped()),
        checks=report,
    )
    y = unpack(done.outputs["y"], channels)
    return returned((y[0] if single else y,), done if report else None)


def _shape(
    x: tuple[int, ...], kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> ConvShape:
    """Return the sizes of images (N, C, H, W) and of their patches."""
    n, channels, height, width = x
    rows, columns = pair("padding", padding, 0)
    return ConvShape(
        images=n,
        channels=channels,
        height=height,
        width=width,
        # Patches have no filters; the number of convolutions does not matter.
        filters=1,
        kernel=pair("kernel_size", kernel_size, 1),
        stride=pair("stride", stride, 1),
        # PyTorch's functions for patches pad both sides alike.
        pad=(rows, rows, columns, columns),
        dilation=pair("dilation", dilation, 1),
    )
