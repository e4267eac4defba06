"""Two-dimensional convolution as one matrix product of the filters and the unfolded patches."""

import numpy as np

from vitruvian.sim.studies.gemm import COMPLEX
from vitruvian.sim.studies.methods import NumPy
from vitruvian.sim.studies.study import RunOptions, Study, StudyKernel


def patches(x, height: int, width: int, *, stride: int = 1, padding: int = 0) -> np.ndarray:
    """Return the patches of an image as columns (im2col).

    Parameters
    ----------
    x : (C, H, W) ndarray
        Image with C channels.
    height, width : int
        Size of a patch in pixels.
    stride : int
        Distance between patches in pixels, at least 1.
    padding : int
        Width of the border of zeros around the image in pixels.

    Returns
    -------
    (C·height·width, rows, columns) ndarray
        rows = (H + 2·padding − height) // stride + 1, and columns correspondingly.

    Raises
    ------
    ValueError
        If ``x`` does not have three axes, a patch does not fit into the padded image, the stride is
        below 1, or the padding is negative.
    """
    x = np.asarray(x)
    if x.ndim != 3:
        raise ValueError(f"x must be (C, H, W), not {x.shape}")
    if stride < 1 or padding < 0:
        raise ValueError(
            f"stride must be at least 1 and padding at least 0, not {stride} and {padding}"
        )
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    if not (1 <= height <= x.shape[1] and 1 <= width <= x.shape[2]):
        raise ValueError(
            f"patch must fit into the padded image of {x.shape[1]}×{x.shape[2]}, "
            f"not {height}×{width}"
        )
    windows = np.lib.stride_tricks.sliding_window_view(x, (height, width), axis=(1, 2))
    # (C, rows, columns, height, width) becomes (C, height, width, rows, columns).
    windows = windows[:, ::stride, ::stride].transpose(0, 3, 4, 1, 2)
    return windows.reshape(-1, *windows.shape[3:])


def conv2d(x, weights, gemm, *, stride: int = 1, padding: int = 0) -> np.ndarray:
    """Return a convolution as neural networks define it: the weights are not reversed.

    Parameters
    ----------
    x : (C, H, W) ndarray of float32 or complex64
        Image with C channels.
    weights : (O, C, h, w) ndarray
        O filters.
    gemm : callable
        Function ``gemm(a, b)``. A contains the weights, (O, C·h·w), and B the patches.
    stride, padding : int
        See ``patches``.

    Returns
    -------
    (O, rows, columns) ndarray

    Raises
    ------
    ValueError
        If the shapes of ``x`` and ``weights`` do not agree; see also ``patches``.
    """
    x, weights = np.asarray(x), np.asarray(weights)
    if x.ndim != 3 or weights.ndim != 4 or weights.shape[1] != x.shape[0]:
        raise ValueError(
            f"x and weights must be (C, H, W) and (O, C, h, w), not {x.shape} and {weights.shape}"
        )
    columns = patches(x, *weights.shape[2:], stride=stride, padding=padding)
    d = gemm(weights.reshape(len(weights), -1), columns.reshape(len(columns), -1))
    return d.reshape(len(weights), *columns.shape[1:])


#: Input channels, output channels and side of a filter in the case study.
CHANNELS, FILTERS, SIDE = 16, 16, 3


def _study(size: int, options: RunOptions, *, dtype, name: str) -> Study:
    random = np.random.default_rng(options.seed)

    def normal(*shape):
        return random.standard_normal((*shape, np.dtype(dtype).itemsize // 4), np.float32)

    x = np.maximum(normal(CHANNELS, size, size), 0).view(dtype)[..., 0]
    spread = np.float32(np.sqrt(2 / (CHANNELS * SIDE * SIDE)))
    weights = (normal(FILTERS, CHANNELS, SIDE, SIDE) * spread).view(dtype)[..., 0]
    wide = np.result_type(dtype, np.float64)

    def compute(gemm):
        return conv2d(x, weights, gemm, padding=1)

    return Study(
        kernel=name,
        title=f"2-D convolution of {np.dtype(dtype).name} images, patches unfolded",
        setting=f"{CHANNELS} channels of {size}×{size} (rectified standard normal), {FILTERS} "
        f"filters of {SIDE}×{SIDE}, padding 1: {FILTERS}×{size * size}×{CHANNELS * SIDE**2}",
        reference=f"the same in {wide.name}",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            compute,
            conv2d(x.astype(wide), weights.astype(wide), NumPy(), padding=1),
            baselines={f"NumPy {np.dtype(dtype).name}": lambda: compute(NumPy())},
        ),
    )


CONV = StudyKernel(
    name="conv",
    title="2-D convolution",
    run=lambda size, options: _study(size, options, dtype=np.float32, name="conv"),
    size="side of the image",
    default=28,
    low=3,
    high=224,
    methods=("FP16", "BF16", "TF32", "3xBF16", "6xBF16", "3xTF32", "FP32"),
    supported=COMPLEX[:-1],
)

CCONV = StudyKernel(
    name="cconv",
    title="complex 2-D convolution",
    run=lambda size, options: _study(size, options, dtype=np.complex64, name="cconv"),
    size="side of the image",
    default=14,
    low=3,
    high=224,
    methods=("FP16", "BF16", "TF32", "3xBF16", "6xBF16", "3xTF32", "FP32", "FP32C"),
    supported=COMPLEX,
)
