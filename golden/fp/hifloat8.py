"""HiFloat8, an 8-bit format whose exponent takes more or fewer bits.

After the sign, a prefix says how many bits the exponent has: 11, 10, 01, 001 and 0001 stand for 4,
3, 2, 1 and 0. The exponent is a sign and a magnitude with a hidden leading one; the rest of the
code is the fraction. The prefix 0000 stands for the powers of two 2^(M − 23), where M from 1 to 7
is the rest of the code.

The table follows a description of the paper and has not been compared with a program or a machine
of the format's authors: **to be checked before use**. The rounding of ``encode`` is an assumption.

References
----------
Luo et al., "Ascend HiFloat8 Format for Deep Learning", arXiv 2409.16626.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import check_codes
from vitruvian.golden.fp.scales import nearest

#: The codes of +∞ and of the only NaN
INFINITY, NAN = 0x6F, 0x80

#: Bits of the prefix, and bits of the exponent that it stands for, by its value
_PREFIXES = ((2, 0b11, 4), (2, 0b10, 3), (2, 0b01, 2), (3, 0b001, 1), (4, 0b0001, 0))


def _magnitude(code: int) -> float:
    """Return the magnitude of a code without its sign."""
    for length, prefix, width in _PREFIXES:
        if code >> (7 - length) != prefix:
            continue
        bits = 7 - length - width  # of the fraction
        exponent = 0
        if width:
            field = code >> bits & ((1 << width) - 1)
            hidden = 1 << (width - 1)
            exponent = (field & (hidden - 1)) | hidden
            exponent = -exponent if field & hidden else exponent
        return (1 + (code & ((1 << bits) - 1)) / (1 << bits)) * 2.0**exponent
    return 2.0 ** ((code & 7) - 23) if code & 7 else 0.0


def _values() -> np.ndarray:
    positive = np.array([_magnitude(code) for code in range(128)])
    positive[INFINITY] = np.inf
    values = np.concatenate([positive, -positive])
    values[NAN] = np.nan
    values.flags.writeable = False
    return values


#: The value of each of the 256 codes
VALUES = _values()

#: The positive codes in the order of their values; the infinity stands for 1.5 · 2^15.
_ORDER = np.argsort(VALUES[:128], kind="stable")
_NUMBERS = np.where(np.isinf(VALUES[_ORDER]), 1.5 * 2.0**15, VALUES[_ORDER])


def decode(codes: ArrayLike) -> np.ndarray:
    """Return the values of HiFloat8 codes as float64.

    Raises
    ------
    TypeError, ValueError
        If ``codes`` are not integers from 0 to 255.
    """
    return VALUES[check_codes(codes, 8, "codes").astype(np.intp)]


def encode(values: ArrayLike, *, saturate: bool = False) -> np.ndarray:
    """Round numbers to HiFloat8: to the nearest, ties to the larger magnitude.

    Parameters
    ----------
    values : array_like of float
    saturate : bool
        If True, infinities and numbers that are too large become ±2^15, the largest number. If
        False, they become infinities.

    Returns
    -------
    ndarray of uint8
        There is no −0: a negative number that is rounded to zero becomes +0.
    """
    x = np.asarray(values, np.float64)
    nan = np.isnan(x)
    index = nearest(np.abs(np.where(nan, 0, x)), _NUMBERS, away=True)
    if saturate:
        index = np.minimum(index, len(_NUMBERS) - 2)
    code = _ORDER[index]
    code = np.where((x < 0) & (code != 0), code | 0x80, code)
    return np.where(nan, NAN, code).astype(np.uint8)
