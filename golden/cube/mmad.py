"""D = C + A·B on tiles: fused dot products block after block, in rising k."""

import numpy as np

from golden.fp import DotSpec, fused_dot, int_dot

__all__ = ["mmad"]

_ELEMENTS = 1 << 22  # of the largest temporary


def mmad(
    a, b, c=None, *, spec: DotSpec | None = None, k: int | None = None, saturate: bool = False
) -> np.ndarray:
    """Matrix multiply-accumulate as the Cube does it.

    Parameters
    ----------
    a : (M, K) ndarray
        Codes of `spec.input`, or int8/uint8 without a `spec`.
    b : (K, N) ndarray
        The same of `spec.input_b`.
    c : (M, N) ndarray, optional
        Codes of `spec.output`, or int32; zero by default.
    spec : DotSpec, optional
        One block of K. A longer K is done block after block, each block's D the next one's C.
        None: integers, accumulated in int32.
    k : int, optional
        Integers: the terms of a block, all of K by default; only seen where sums are clipped.
    saturate : bool
        Integers: clip the sum of each block to int32 instead of wrapping.

    Returns
    -------
    (M, N) ndarray
        Codes, or int32.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a and b must be (M, K) and (K, N), not {a.shape} and {b.shape}")
    shape = a.shape[0], b.shape[1]
    if c is None:
        c = np.zeros(shape, np.int32 if spec is None else f"u{spec.output.storage_bits // 8}")
    c = np.asarray(c)
    if c.shape != shape:
        raise ValueError(f"c must be (M, N) = {shape}, not {c.shape}")
    columns = np.ascontiguousarray(b.T)
    rows_at_once = max(_ELEMENTS // max(columns.size, 1), 1)
    parts = []
    for row in range(0, shape[0], rows_at_once):
        left, addend = a[row : row + rows_at_once, None, :], c[row : row + rows_at_once]
        if spec is None:
            step = a.shape[1] if k is None else k
            for block in range(0, a.shape[1], step):
                x, y = left[..., block : block + step], columns[None, :, block : block + step]
                addend = int_dot(x, y, addend, saturate=saturate, **_signs(a, b))
            parts.append(addend)
        else:
            parts.append(fused_dot(left, columns[None], addend, spec))
    return np.concatenate(parts) if parts else c.copy()


def _signs(a: np.ndarray, b: np.ndarray) -> dict[str, bool]:
    for name, x in (("a", a), ("b", b)):
        if x.dtype not in (np.dtype(np.int8), np.dtype(np.uint8)):
            raise TypeError(f"{name} must be int8 or uint8 without a spec, not {x.dtype}")
    return {"signed_a": a.dtype == np.int8, "signed_b": b.dtype == np.int8}
