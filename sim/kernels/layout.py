"""Matrices as fractals of 512 bytes, as the Cube's memories hold them, and back."""

import numpy as np

__all__ = ["pack_a", "pack_b", "unpack_c"]

#: Bytes of a row of a fractal.
_ROW_BYTES = 32


def _filled(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    return np.pad(x, [(0, -x.shape[0] % rows), (0, -x.shape[1] % columns)])


def pack_a(a: np.ndarray) -> np.ndarray:
    """A (M, K) as rows of fractals (M/16, K/k, 16, k), k being 32 bytes; zeros fill up."""
    deep = _ROW_BYTES // a.dtype.itemsize
    whole = _filled(a, 16, deep)
    rows, columns = whole.shape
    return np.ascontiguousarray(
        whole.reshape(rows // 16, 16, columns // deep, deep).transpose(0, 2, 1, 3)
    )


def pack_b(b: np.ndarray) -> np.ndarray:
    """B (K, N) as rows of fractals (K/k, N/16, 16, k), each of them transposed."""
    deep = _ROW_BYTES // b.dtype.itemsize
    whole = _filled(b, deep, 16)
    rows, columns = whole.shape
    return np.ascontiguousarray(
        whole.reshape(rows // deep, deep, columns // 16, 16).transpose(0, 2, 3, 1)
    )


def unpack_c(c: np.ndarray, m: int, n: int) -> np.ndarray:
    """Columns of fractals (N/16, M/16, 16, 16) as the (m, n) matrix they begin with."""
    across, down = c.shape[:2]
    return np.ascontiguousarray(c.transpose(1, 2, 0, 3).reshape(16 * down, 16 * across)[:m, :n])
