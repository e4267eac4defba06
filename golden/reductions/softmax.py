"""PyTorch's softmax on an NVIDIA GPU: how its kernels divide a row, and the bits that follow."""

import ml_dtypes
import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div
from vitruvian.golden.functions.cuda import cuda
from vitruvian.golden.reductions.order import WARP, halved

#: Types of a tensor; sums and functions are of float32.
FLOATS = {np.dtype(t): np.dtype(t).name for t in (np.float32, np.float16, ml_dtypes.bfloat16)}
_THREADS = 1024  # of a block, where a warp is too small
_OF_A_WARP = 2048  # numbers of a row that a warp holds in registers
_IN_REGISTERS = 9  # numbers that a thread of a block holds in registers
_SHARED = 48 << 10  # bytes of shared memory of a block
_VECTOR = 16  # bytes that a thread loads at once


def pytorch_softmax(x: np.ndarray, axis: int = -1, *, log: bool = False) -> np.ndarray:
    """Return the bits of ``torch.softmax`` of a contiguous tensor on an H200.

    The sources are PyTorch's kernels and their machine code for sm_90 in the wheel of PyTorch 2.14
    for the order of the sum, CUDA's published bitcode for exp and log, and the measured tables of
    the approximate function below them. Nothing of the whole was recorded on a GPU.

    Parameters
    ----------
    x : ndarray of float32, float16 or bfloat16
        Its first number is aligned, as that of a tensor of its own is.
    axis : int
        Any axis. Rows along the last one that are longer than what a block holds, and do not begin
        at a vector, are added in an order of their own each.
    log : bool
        If True, return the bits of ``torch.log_softmax``.

    Returns
    -------
    ndarray of the type and shape of x
        A NaN or +∞ in a row makes all of its results NaN.

    Raises
    ------
    UserError
        If the axis is none of x, or x has no number.
    TypeError
        If x has another type.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.reductions import pytorch_softmax
    >>> pytorch_softmax(np.array([0, 1, 2], np.float32)).tolist()
    [0.09003056585788727, 0.2447284758090973, 0.6652408838272095]
    """
    if x.dtype not in FLOATS:
        raise TypeError(f"x must be of {', '.join(FLOATS.values())}, not {x.dtype}")
    if not x.ndim or not -x.ndim <= axis < x.ndim:
        raise UserError(f"axis must be one of the {x.ndim} axes of x, not {axis}")
    if not x.size:
        raise UserError(f"x must have numbers, not the shape {x.shape}")
    moved = np.moveaxis(x, axis, -1)
    rows = np.ascontiguousarray(moved).reshape(-1, x.shape[axis]).astype(np.float32)
    across = int(np.prod(x.shape[axis % x.ndim + 1 :]))
    with np.errstate(all="ignore"):
        rows = _softmax(rows, across, x.dtype.itemsize, log=log)
        result = rounded(rows, x.dtype)
    return np.moveaxis(result.reshape(moved.shape), -1, axis)


def _softmax(rows: np.ndarray, across: int, size: int, *, log: bool) -> np.ndarray:
    """Return results in float32 of rows whose neighbouring numbers are ``across`` numbers apart."""
    less = rows - rows.max(axis=1, keepdims=True)
    powers = cuda("expf", less)
    total = np.empty((len(rows), 1), np.float32)
    if across > 1:
        total[:, 0] = _added(powers, _columns(rows.shape[1], across), warps=False)
    else:
        shifts = np.arange(len(rows)) * rows.shape[1] % (_VECTOR // size)
        for shift in np.unique(shifts):
            chosen = shifts == shift
            places = places_of_a_row(rows.shape[1], size, int(shift))
            total[chosen, 0] = _added(powers[chosen], places)
    return less - cuda("logf", total) if log else powers / total


def rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return float32 numbers in a type of ``FLOATS``; each NaN has all bits but the sign set."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    nan = unsigned.type((1 << 8 * dtype.itemsize - 1) - 1)
    return np.where(np.isnan(x), nan, x.astype(dtype).view(unsigned)).view(dtype)


def _added(x: np.ndarray, places: np.ndarray, *, warps: bool = True) -> np.ndarray:
    """Return the sums of rows: each thread adds its places in turn, and then the threads halve.

    Parameters
    ----------
    x : (R, N) ndarray of float32
    places : (steps, T) ndarray of int
        The number that a thread adds in a step; −1 for none.
    warps : bool
        If True, the threads of each warp halve first, and then the warps.
    """
    # In the kernels of blocks the last product of expf is fused with this addition. Both round
    # alike unless the product is subnormal, which no sum from 1 on shows.
    nothing = np.zeros((len(x), 1), np.float32)  # at place −1; the sums are not negative
    padded = np.concatenate([x, nothing], axis=1)
    held = np.zeros((len(x), places.shape[1]), np.float32)
    for step in places:
        held += padded[:, step]
    while held.shape[1] > 1:
        lanes = held.reshape(len(x), -1, min(held.shape[1], WARP) if warps else held.shape[1])
        held = halved(lanes, 2)[:, :, 0]
    return held[:, 0]


def places_of_a_row(terms: int, size: int, shift: int = 0) -> np.ndarray:
    """Return the places that threads add in turn, of a row of neighbours.

    Parameters
    ----------
    terms : int
        Numbers of the row.
    size : int
        Bytes of a number in memory.
    shift : int
        Numbers by which the row begins behind a vector's first one.

    Returns
    -------
    (steps, threads) ndarray of int
        −1 for none.
    """
    if terms <= _OF_A_WARP:
        held = 1 << (terms - 1).bit_length()
        return _until(terms, np.arange(held).reshape(-1, min(held, WARP)))
    if terms <= _IN_REGISTERS * _THREADS:
        return _until(terms, _turns(0, terms))
    vector = _VECTOR // size
    sums = _THREADS // WARP * 4  # bytes beside the row
    if terms % vector == 0 and terms < (_SHARED - sums) // size:
        return _until(terms, _vectors(0, terms, vector))
    first, start = [], 0
    if shift:
        alone = np.arange(_THREADS) - shift
        first, start = [np.maximum(alone, -1)[None]], _THREADS - shift
    end = terms - (terms - start) % (vector * _THREADS)
    parts = [*first, _vectors(start, end - start, vector), _turns(end, terms - end)]
    return _until(terms, np.concatenate(parts))


def _until(terms: int, places: np.ndarray) -> np.ndarray:
    return np.where(places < terms, places, -1)


def _turns(start: int, count: int) -> np.ndarray:
    """Return places of a block that takes one number per thread at a time."""
    steps = ceil_div(count, _THREADS)
    return start + np.arange(steps * _THREADS).reshape(-1, _THREADS)


def _vectors(start: int, count: int, vector: int) -> np.ndarray:
    """Return places of a block that takes one vector per thread at a time, and adds it in turn."""
    steps = ceil_div(count, vector * _THREADS)
    places = start + np.arange(steps * _THREADS * vector).reshape(-1, _THREADS, vector)
    return places.swapaxes(1, 2).reshape(-1, _THREADS)


def _columns(terms: int, across: int) -> np.ndarray:
    """Return places of a sum whose numbers lie apart: few threads, or one, share it."""
    threads, columns = 1, min(across, _THREADS)
    if columns <= 64 <= terms:
        while columns * threads * 2 <= _THREADS and threads * 2 <= terms:
            threads *= 2
    return _until(terms, np.arange(ceil_div(terms, threads) * threads).reshape(-1, threads))
