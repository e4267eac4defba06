"""Conversion of matrices to the Cube's layout of 512-byte fractals, and back."""

import numpy as np

#: Bytes in a row of a fractal.
_ROW_BYTES = 32


def _filled(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    return np.pad(x, [(0, -x.shape[0] % rows), (0, -x.shape[1] % columns)])


def pack_a(a: np.ndarray) -> np.ndarray:
    """Pack A (M, K) into rows of fractals, padded with zeros.

    Returns
    -------
    (⌈M/16⌉, ⌈K/k⌉, 16, k) ndarray
        The number k is that of the elements in 32 bytes.
    """
    deep = _ROW_BYTES // a.dtype.itemsize
    # A row of a fractal is 32 bytes: 16 elements of FP16, or 32 of INT8.
    whole = _filled(a, 16, deep)
    rows, columns = whole.shape
    return np.ascontiguousarray(
        whole.reshape(rows // 16, 16, columns // deep, deep).transpose(0, 2, 1, 3)
    )


def pack_b(b: np.ndarray) -> np.ndarray:
    """Pack B (K, N) into rows of transposed fractals, padded with zeros.

    Returns
    -------
    (⌈K/k⌉, ⌈N/16⌉, 16, k) ndarray
        The number k is that of the elements in 32 bytes.
    """
    deep = _ROW_BYTES // b.dtype.itemsize
    whole = _filled(b, deep, 16)
    rows, columns = whole.shape
    return np.ascontiguousarray(
        whole.reshape(rows // deep, deep, columns // 16, 16).transpose(0, 2, 3, 1)
    )


def unpack_c(c: np.ndarray, m: int, n: int) -> np.ndarray:
    """Unpack columns of fractals (N/16, M/16, 16, 16); return the first m rows and n columns."""
    across, down = c.shape[:2]
    return np.ascontiguousarray(c.transpose(1, 2, 0, 3).reshape(16 * down, 16 * across)[:m, :n])
