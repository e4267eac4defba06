"""Tenstorrent's MVMUL with integers: exact products of slices, and a saturating addition.

Operands and Dst are integers in sign and magnitude, of 8 and of 32 bits. A phase takes the upper or
the lower bits of the magnitudes: 3 or 5 bits of A, and 3 or 4 of B, at their own weights.

References
----------
Tenstorrent, tt-isa-documentation, pages MVMUL and SrcA and SrcB ("Fidelity phases (integer)").
"""

import numpy as np

from vitruvian.golden.machines.spec import TERMS as _TERMS
from vitruvian.golden.machines.spec import IntPhaseSpec

_LARGEST = (1 << 31) - 1


def int_phase_dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: IntPhaseSpec) -> np.ndarray:
    """Return D = C + Σ A_k·B_k as the integer MVMUL computes it.

    Parameters
    ----------
    a, b : (..., K) ndarray of unsigned int, codes of 8 bits in sign and magnitude
        K must be a multiple of 16.
    c : (...) ndarray of unsigned int, codes of 32 bits in sign and magnitude

    Returns
    -------
    (...) ndarray of uint32, codes in sign and magnitude
        A sum beyond ±(2^31 − 1) stays there, after every phase. Zero is +0.

    Raises
    ------
    ValueError
        If K is not a multiple of 16, or if the shapes do not fit.
    """
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1] or a.shape[-1] % _TERMS:
        raise ValueError(
            f"a and b must be (..., K) with the same K, a multiple of {_TERMS}, "
            f"not {a.shape} and {b.shape}"
        )
    total = _signed(c.astype(np.int64), 32)
    for start in range(0, a.shape[-1], _TERMS):
        block = slice(start, start + _TERMS)
        for phase in range(spec.phases):
            x = _signed(a[..., block].astype(np.int64) & (0x9F if phase & 1 else 0xE0), 8)
            y = _signed(b[..., block].astype(np.int64) & (0x8F if phase & 2 else 0xF0), 8)
            total = np.clip(total + (x * y).sum(axis=-1), -_LARGEST, _LARGEST)
    return np.where(total < 0, (1 << 31) - total, total).astype(np.uint32)


def _signed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return the values of integers in sign and magnitude."""
    magnitude = codes & ((1 << (bits - 1)) - 1)
    return np.where(codes >> (bits - 1) & 1, -magnitude, magnitude)
