"""The fused multiply-add of float32 arrays, by arithmetic of float64."""

import numpy as np

Numbers = np.ndarray | np.float32


def fused(a: Numbers, b: Numbers, c: Numbers) -> np.ndarray:
    """Return a·b + c of float32 numbers, rounded once; a NaN may have any code.

    ``vitruvian.fma`` takes codes of any format; this takes float32 arrays that may be broadcast.
    """
    product = np.multiply(a, b, dtype=np.float64)  # exact
    other = np.asarray(c, np.float64)
    value = product + other
    back = value - product
    error = (product - (value - back)) + (other - back)
    # Rounded to odd, the sum is rounded once by the conversion to float32.
    even = np.equal(value.view(np.int64) & 1, 0) & np.isfinite(value) & (error != 0)
    away = np.where((error > 0) == (value > 0), 1, -1)
    return (value.view(np.int64) + np.where(even, away, 0)).view(np.float64).astype(np.float32)
