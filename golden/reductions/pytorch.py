"""The order of PyTorch's sums on an NVIDIA GPU, by the published rules of its launches."""

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div, check_int, one_of
from vitruvian.golden.reductions.order import WARP, SumOrder, add

#: GPU -> multiprocessors, and threads that one of them holds.
GPUS = {"a100": (108, 2048), "h100": (132, 2048), "h200": (132, 2048), "b200": (148, 2048)}
_MOST = 512  # threads of a block
_ACCUMULATORS = 4
_LEAST, _LARGEST = 16, 256  # numbers that a thread adds
_VECTORS = 128  # numbers of a sum from which on vectors are loaded


def pytorch_order(
    terms: int, sums: int = 1, *, inner: bool = True, gpu: str = "h200", format: str = "fp32"
) -> SumOrder:
    """Return how ``torch.sum`` along one axis of a contiguous tensor adds its numbers.

    The rules are those of PyTorch 2.14's public header ``Reduce.cuh``. The trees of PyTorch 2.11 on
    an H200 agree with them. Versions that exchange values between neighbours first differ.

    Parameters
    ----------
    terms : int
        Numbers of a sum.
    sums : int
        Number of sums.
    inner : bool
        If True, the numbers of a sum are neighbours (``dim=-1``, or all of a tensor); if False,
        the sums are (``dim=0`` of a matrix).
    gpu : {"a100", "h100", "h200", "b200"}
        Its number of multiprocessors decides into how many blocks a long sum is divided.
    format : {"fp32", "fp64"}

    Raises
    ------
    UserError
        If the order is not known: of a GPU without an entry, of 2^31 numbers and more, or of rows
        that do not begin at a multiple of a vector.

    Examples
    --------
    >>> from vitruvian.golden.reductions import pytorch_order
    >>> print(pytorch_order(4096, 64))
    32 × 1 threads; vectors of 4
    >>> print(pytorch_order(1 << 20))
    512 × 1 threads; 128 blocks; vectors of 4
    """
    check_int("terms", terms, 1)
    check_int("sums", sums, 1)
    one_of("format", format, ("fp32", "fp64"))
    if gpu not in GPUS:
        raise UserError(f"gpu must be one of {', '.join(GPUS)}, not {gpu!r}")
    if terms * sums >= 1 << 31:
        raise UserError(f"terms times sums must be below 2^31, not {terms * sums}")
    inner = inner or sums == 1
    vector = _ACCUMULATORS if inner and terms >= _VECTORS else 1
    if vector > 1 and sums > 1 and terms % vector:
        raise UserError(
            f"terms must be a multiple of {vector}, so that rows begin at a vector, not {terms}"
        )
    together = 1  # sums that a thread computes
    while not inner and together < 4 and sums % (2 * together) == 0:
        together *= 2
    along, across = (terms // vector, sums) if inner else (sums // together, terms)
    width, height = _block(along, across, _MOST // together)
    step = width if inner else 1
    outputs = 1 if inner else width
    split = ceil_div(terms, step) >= min(height * 16, _LARGEST)
    step, outputs = (step * height, outputs) if split else (step, outputs * height)
    blocks = 1
    each = ceil_div(terms, step)
    if split and each >= _LARGEST:
        blocks = _blocks(each, ceil_div(sums // together, outputs), width * height, gpu)
    return SumOrder(
        width=width if inner else 1,
        height=height if split else 1,
        blocks=blocks,
        vector=vector,
        accumulators=_ACCUMULATORS,
    )


def pytorch_sum(x: np.ndarray, axis: int | None = -1, *, gpu: str = "h200") -> np.ndarray:
    """Return the bits of ``torch.sum`` of a contiguous tensor on an NVIDIA GPU.

    Parameters
    ----------
    x : ndarray of float32 or float64
    axis : {-1, 0, None}
        The last axis, the first one, or all.
    gpu
        As that of ``pytorch_order``.

    Returns
    -------
    ndarray of the type of x, without the axis

    Raises
    ------
    UserError
        If the order is not known.
    TypeError, ValueError
        If x has another type or no number, or if the axis is another one.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.reductions import pytorch_sum
    >>> x = np.full((2, 4096), 0.1, np.float32)
    >>> pytorch_sum(x).tolist(), x.sum(axis=-1).tolist()
    ([409.6000061035156, 409.6000061035156], [409.6000671386719, 409.6000671386719])
    """
    return _reduced(x, axis, gpu)


def pytorch_mean(x: np.ndarray, axis: int | None = -1, *, gpu: str = "h200") -> np.ndarray:
    """Return the bits of ``torch.mean``: the sum times a rounded reciprocal of the count.

    Parameters, result and errors are those of ``pytorch_sum``. The source is PyTorch's kernel of
    moments; nothing was recorded on a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.reductions import pytorch_mean
    >>> float(pytorch_mean(np.float32([1, 2, 4])))
    2.3333334922790527
    """
    total = _reduced(x, axis, gpu)
    return total * (x.dtype.type(total.size) / x.dtype.type(x.size))


def pytorch_norm(
    x: np.ndarray, order: int = 2, axis: int | None = -1, *, gpu: str = "h200"
) -> np.ndarray:
    """Return the bits of ``torch.linalg.vector_norm``: a sum of magnitudes, or the root of squares.

    The source is PyTorch's kernel of norms; nothing was recorded on a GPU. Squares are added by
    fused multiply-adds, which is what the compiler makes of them unless it is told not to.

    Parameters
    ----------
    x : ndarray of float32; with order 1, also of float64
    order : {1, 2}
    axis, gpu
        As those of ``pytorch_sum``.

    Raises
    ------
    UserError, TypeError, ValueError
        As ``pytorch_sum``, and for another order.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.reductions import pytorch_norm
    >>> float(pytorch_norm(np.float32([3, 4])))
    5.0
    """
    one_of("order", order, (1, 2))
    if order == 1:
        return _reduced(np.abs(x), axis, gpu)
    with np.errstate(invalid="ignore"):
        return np.sqrt(_reduced(x, axis, gpu, squares=True))


def _reduced(x: np.ndarray, axis: int | None, gpu: str, *, squares: bool = False) -> np.ndarray:
    """Return the sums of the numbers, or of their squares, along an axis."""
    one_of("axis", axis, (-1, 0, None))
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(f"x must be of float32 or float64, not {x.dtype}")
    if not x.size:
        raise ValueError(f"x must have numbers, not the shape {x.shape}")
    inner = axis != 0 or x.ndim == 1
    terms = x.size if axis is None or x.ndim == 1 else x.shape[axis]
    format = "fp32" if x.dtype == np.float32 else "fp64"
    order = pytorch_order(terms, x.size // terms, inner=inner, gpu=gpu, format=format)
    if inner:
        return add(x.reshape(-1) if axis is None else x, order, squares=squares)
    return add(np.moveaxis(x, 0, -1), order, squares=squares)


def _block(along: int, across: int, most: int) -> tuple[int, int]:
    """Return width and height of a block of threads."""
    first, second = (min(1 << n.bit_length() - 1, most) if n else 1 for n in (along, across))
    width = min(first, WARP)
    height = min(second, most // width)
    return min(first, most // height), height


def _blocks(each: int, grid: int, threads: int, gpu: str) -> int:
    """Return the number of blocks for a sum of which a thread would add ``each`` numbers."""
    multiprocessors, held = GPUS[gpu]
    wanted = multiprocessors * (held // threads)
    if grid > wanted:
        return 1
    fewest, most = ceil_div(each, _LARGEST), ceil_div(each, _LEAST)
    return min(max(ceil_div(wanted, grid), fewest), most)
