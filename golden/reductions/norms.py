"""PyTorch's layer norm and RMS norm on an NVIDIA GPU, in the order of their published kernels.

Where a kernel adds a product, it is a fused multiply-add, and in a sum of two products the first
one is. So it stands in the machine code for sm_90 in PyTorch 2.14's wheel, with one exception: the
first number of a vector, where there is a bias and no weight.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.fused import fused
from vitruvian.golden.functions.cuda import cuda
from vitruvian.golden.reductions.order import WARP
from vitruvian.golden.reductions.softmax import FLOATS, rounded

_ONE, _NONE = np.float32(1), np.float32(0)
_VECTOR = 4  # numbers that a thread loads at once
_THREADS = 128  # of a block that loads vectors
_SINGLY = 512  # threads of a block that does not


@dataclass(frozen=True)
class Moments:
    """Mean, sum of squared differences to it, and count of what each thread took: (rows, T)."""

    mean: np.ndarray
    squares: np.ndarray
    count: np.ndarray

    def part(self, threads: slice) -> "Moments":
        """Return those of some threads."""
        return Moments(
            self.mean[..., threads], self.squares[..., threads], self.count[..., threads]
        )


#: Moments with one more number; and those of two parts.
Take = Callable[[Moments, np.ndarray], Moments]
Combine = Callable[[Moments, Moments], Moments]


def _take_fast(m: Moments, x: np.ndarray) -> Moments:
    """Take a number, with a rounded reciprocal of the count."""
    delta, count = x - m.mean, m.count + _ONE
    mean = fused(delta, _ONE / count, m.mean)
    return Moments(mean, fused(delta, x - mean, m.squares), count)


def _combine_fast(b: Moments, a: Moments) -> Moments:
    delta, count = b.mean - a.mean, a.count + b.count
    part = _ONE / count
    of_a, of_b = a.count * part, b.count * part
    mean = fused(of_a, a.mean, of_b * b.mean)
    squares = fused(delta * delta * a.count, of_b, a.squares + b.squares)
    any_ = count > 0
    return Moments(np.where(any_, mean, _NONE), np.where(any_, squares, _NONE), count)


def _take(m: Moments, x: np.ndarray) -> Moments:
    """Take a number, with a division."""
    delta, count = x - m.mean, m.count + _ONE
    mean = m.mean + delta / count
    return Moments(mean, fused(delta, x - mean, m.squares), count)


def _combine(a: Moments, b: Moments) -> Moments:
    delta, count = b.mean - a.mean, a.count + b.count
    part = b.count / count
    mean = fused(delta, part, a.mean)
    squares = fused(delta * delta * a.count, part, a.squares + b.squares)
    fields = zip((mean, squares, count), _fields(a), _fields(b), strict=True)
    return Moments(
        *(np.where(a.count == 0, y, np.where(b.count == 0, x, both)) for both, x, y in fields)
    )


def _take_square(m: Moments, x: np.ndarray) -> Moments:
    return Moments(m.mean, fused(x, x, m.squares), m.count)


def _combine_squares(b: Moments, a: Moments) -> Moments:
    return Moments(a.mean, b.squares + a.squares, a.count)


def _fields(m: Moments) -> Sequence[np.ndarray]:
    return m.mean, m.squares, m.count


def _taken(rows: np.ndarray, threads: int, vector: int, take: Take) -> Moments:
    """Return what threads hold that take vectors of a row in turn."""
    terms = rows.shape[1]
    step = threads * vector
    padded = np.pad(rows, ((0, 0), (0, -terms % step))).reshape(len(rows), -1, threads, vector)
    there = np.pad(np.ones(terms, bool), (0, -terms % step)).reshape(-1, threads, vector)
    zeros = np.zeros((len(rows), threads), np.float32)
    held = Moments(zeros, zeros, zeros)
    for turn in range(padded.shape[1]):
        for place in range(vector):
            more = take(held, padded[:, turn, :, place])
            chosen = there[turn, :, place]
            pairs = zip(_fields(more), _fields(held), strict=True)
            held = Moments(*(np.where(chosen, new, old) for new, old in pairs))
    return held


def _joined(held: Moments, combine: Combine) -> Moments:
    """Return the moments of blocks: the lanes of each warp halve, and then the warps."""
    shape = (*held.mean.shape[:-1], -1, WARP)
    held = Moments(*(field.reshape(shape) for field in _fields(held)))
    held = _halved(held, combine)
    return _halved(Moments(*(field[..., 0] for field in _fields(held))), combine)


def _halved(held: Moments, combine: Combine) -> Moments:
    while (half := held.mean.shape[-1] // 2) > 0:
        held = combine(held.part(slice(None, half)), held.part(slice(half, None)))
    return held


def pytorch_layer_norm(
    x: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    *,
    eps: float = 1e-5,
) -> np.ndarray:
    """Return the bits of PyTorch's ``layer_norm`` along the last axis on an H200.

    The sources are PyTorch's kernels, their machine code for sm_90 in the wheel of PyTorch 2.14,
    and the measured table of ``rsqrt``; nothing of the whole was recorded on a GPU.

    Parameters
    ----------
    x : (..., N) ndarray of float32, float16 or bfloat16, contiguous
        From 2^24 numbers of a row on, and where N is no multiple of four, another kernel is used.
    weight, bias : (N,) ndarray of the type of x
        None for none.
    eps : float

    Returns
    -------
    ndarray of the type and shape of x

    Raises
    ------
    UserError
        If x has no number, or another shape than weight or bias ask for.
    TypeError
        If x, weight or bias has another type.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.reductions import pytorch_layer_norm
    >>> pytorch_layer_norm(np.array([1, 2, 3, 4], np.float32)).tolist()
    [-1.3416353464126587, -0.44721177220344543, 0.44721177220344543, 1.3416353464126587]
    """
    return layer_norm_and_moments(x, weight, bias, eps)[0]


def layer_norm_and_moments(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a layer norm, and the mean and factor of each row in float32."""
    rows, fast = _rows(x, weight, bias)
    with np.errstate(all="ignore"):
        m = _moments(rows, fast, (_take_fast, _combine_fast) if fast else (_take, _combine))
        scale = cuda("rsqrtf", m.squares / np.float32(rows.shape[1]) + np.float32(eps))
        y = (rows - m.mean) * scale
        if fast and weight is None and bias is not None:
            added = bias.astype(np.float32)
            first = np.arange(rows.shape[1], dtype=np.int64) % _VECTOR == 0
            y, bias = np.where(first, y + added, fused(scale, rows - m.mean, added)), None
        y = _finished(y, x, weight, bias, fast=fast)
    return y, m.mean[:, 0], scale[:, 0]


def pytorch_rms_norm(x: np.ndarray, weight: np.ndarray | None = None, *, eps: float) -> np.ndarray:
    """Return the bits of PyTorch's ``rms_norm`` along the last axis on an H200.

    Parameters, sources, result and errors are those of ``pytorch_layer_norm``; this is the fused
    kernel, which PyTorch 2.9 and later use.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.reductions import pytorch_rms_norm
    >>> pytorch_rms_norm(np.array([1, 2, 3, 4], np.float32), eps=1e-6).tolist()
    [0.3651483356952667, 0.7302966713905334, 1.0954450368881226, 1.460593342781067]
    """
    rows, fast = _rows(x, weight, None)
    with np.errstate(all="ignore"):
        if fast:
            m = _moments(rows, fast, (_take_square, _combine_squares))
            mean_square = m.squares / np.float32(rows.shape[1])
        else:
            m = _moments(rows, fast, (_take, _combine))
            mean_square = fused(m.mean, m.mean, m.squares / np.float32(rows.shape[1]))
        scale = cuda("rsqrtf", mean_square + np.float32(eps))
        return _finished(rows * scale, x, weight, None, fast=True)


def _moments(rows: np.ndarray, fast: bool, operations: tuple[Take, Combine]) -> Moments:
    """Return the moments of each row, as columns."""
    take, combine = operations
    threads, vector = (_THREADS, _VECTOR) if fast else (_SINGLY, 1)
    return _joined(_taken(rows, threads, vector, take), combine)


def _rows(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None
) -> tuple[np.ndarray, bool]:
    """Return x as rows of float32, and whether the kernel with vectors takes them."""
    for name, array in (("x", x), ("weight", weight), ("bias", bias)):
        if array is None:
            continue
        if array.dtype not in FLOATS or array.dtype != x.dtype:
            raise TypeError(
                f"{name} must be of {', '.join(FLOATS.values())}, and of the type of x, "
                f"not {array.dtype}"
            )
        if array is not x and array.shape != x.shape[-1:]:
            raise UserError(f"{name} must have the shape {x.shape[-1:]}, not {array.shape}")
    if not x.ndim or not x.size:
        raise UserError(f"x must have numbers, not the shape {x.shape}")
    terms = x.shape[-1]
    return x.reshape(-1, terms).astype(np.float32), terms % _VECTOR == 0 and terms <= 1 << 24


def _finished(
    y: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    *,
    fast: bool,
) -> np.ndarray:
    """Return weight · y + bias in the type and shape of x."""
    w = None if weight is None else weight.astype(np.float32)
    b = None if bias is None else bias.astype(np.float32)
    if not fast:  # this kernel reads 1 and 0 where there is none
        w, b = (_ONE if w is None else w), (_NONE if b is None else b)
    if w is not None:
        y = y * w if b is None else fused(w, y, b)
    return rounded(y, x.dtype).reshape(x.shape)
