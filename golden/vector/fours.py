"""Integers of 4 bits, two in a byte.

The element with the even index is in the low four bits of its byte, and the next one in the high
four bits. Conversions to 4 bits round, and saturate at −8 and 7.

References
----------
asc-devkit, docs/zh/api, LoadDataWithTranspose: 6 and 7 make the byte 118, which is 0111 0110;
precision_conversion: rounding modes, and saturation as the default.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.vector.conversions import convert

#: The smallest and the largest integer of 4 bits.
LOWEST, HIGHEST = -8, 7


def pack_fours(values: ArrayLike) -> np.ndarray:
    """Return integers of 4 bits as bytes of two.

    Parameters
    ----------
    values : (..., 2·N) array_like of int
        Integers from −8 to 7.

    Returns
    -------
    (..., N) ndarray of uint8

    Raises
    ------
    TypeError
        If the values are not integers.
    ValueError
        If a value does not fit 4 bits, or their number is odd.

    Examples
    --------
    >>> pack_fours([6, 7, -1, 1]).tolist()
    [118, 31]
    """
    values = np.asarray(values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"values must be integers, not {values.dtype}")
    if not values.ndim or values.shape[-1] % 2:
        raise ValueError(f"values must be (..., 2·N), not {values.shape}")
    if values.size and not LOWEST <= values.min() <= values.max() <= HIGHEST:
        wrong = values.min() if values.min() < LOWEST else values.max()
        raise ValueError(f"values must be {LOWEST} to {HIGHEST}, not {wrong}")
    codes = values.astype(np.int8).view(np.uint8) & 15
    return codes[..., ::2] | codes[..., 1::2] << 4


def unpack_fours(codes: ArrayLike) -> np.ndarray:
    """Return the integers of bytes of two.

    Parameters
    ----------
    codes : (..., N) array_like of uint8

    Returns
    -------
    (..., 2·N) ndarray of int8
        Integers from −8 to 7.

    Raises
    ------
    TypeError
        If the codes are not bytes.

    Examples
    --------
    >>> unpack_fours(np.uint8([118, 31])).tolist()
    [6, 7, -1, 1]
    """
    codes = np.asarray(codes)
    if codes.dtype.itemsize != 1:
        raise TypeError(f"codes must be bytes, not {codes.dtype}")
    signed = codes.view(np.int8)
    # A shift of a signed number keeps its sign.
    pairs = np.stack([signed << 4 >> 4, signed >> 4], axis=-1)
    return pairs.reshape(*codes.shape[:-1], 2 * codes.shape[-1])


def to_fours(values: ArrayLike, rounding: str = "r") -> np.ndarray:
    """Convert FP16 numbers to integers of 4 bits, two in a byte.

    Parameters
    ----------
    values : (..., 2·N) array_like of float16
    rounding : {"r", "a", "f", "c", "z"}
        As ``convert`` takes it.

    Returns
    -------
    (..., N) ndarray of uint8
        Numbers out of range saturate, and a NaN gives 0 as in a conversion to 8 bits; no public
        source states the latter.

    Raises
    ------
    TypeError
        If the values are not float16.
    ValueError
        If there is no such rounding, or the number of values is odd.

    Examples
    --------
    >>> unpack_fours(to_fours(np.float16([1.5, -2.5, 100, -np.inf]), "c")).tolist()
    [2, -2, 7, -8]
    """
    # The values are rounded once, since the range of 8 bits includes that of 4 bits.
    return pack_fours(np.clip(convert(values, "fp16", "int8", rounding), LOWEST, HIGHEST))


def from_fours(codes: ArrayLike) -> np.ndarray:
    """Convert integers of 4 bits, two in a byte, to FP16, which is exact.

    Parameters
    ----------
    codes : (..., N) array_like of uint8

    Returns
    -------
    (..., 2·N) ndarray of float16
    """
    return unpack_fours(codes).astype(np.float16)
