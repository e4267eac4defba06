"""Operands and golden's results for semirings on one pair of FP32 operands in each beat."""

import numpy as np

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.simd2 import Op, mmo

from .operands import draw_addends, draw_operands

#: Zero, infinity, NaN, one, the smallest subnormal, the smallest normal and the largest number.
_POSITIVE = np.array([0, 0x7F80_0000, 0x7FC0_0000, 0x3F80_0000, 1, 0x80_0000, 0x7F7F_FFFF], "u4")
_SPECIALS = np.concatenate([_POSITIVE, _POSITIVE | np.uint32(1 << 31)])
_SHARE_OF_SPECIALS, _SHARE_FOR_ORAND = 0.05, 0.6  # orand only distinguishes zeros and NaNs
_SHARE_OF_CLOSE = 0.3  # of beats whose operands are nearly equal and whose C is near the result
_SHARE_OF_RANDOM = 0.1  # of operands and C that are random bits


def draw_pairs(
    rng: np.random.Generator, operation: str, spec: DotSpec, scale: np.ndarray, m: int, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random operands for beats.

    Parameters
    ----------
    operation : str
        Name of a semiring.
    spec : DotSpec
        Specification of the unit's sums of FP32 products.
    scale : (count,) ndarray of int
        Exponent near which the products and C lie.
    m, n : int
        Rows of A and columns of B.

    Returns
    -------
    a : (count, m, 1) ndarray of codes
    b : (count, n, 1) ndarray of codes
        Columns of B.
    c : (count, m, n) ndarray of codes
    """
    share = _SHARE_FOR_ORAND if operation == "orand" else _SHARE_OF_SPECIALS
    close = rng.random(len(scale)) < _SHARE_OF_CLOSE
    base = rng.integers(1 << 20, 0x7F00_0000, (int(close.sum()), 1, 1))
    sides: list[np.ndarray] = []
    for codes in draw_operands(rng, spec, scale, m, n):
        side = codes[..., :1].astype(np.uint32)
        near = base + rng.integers(0, 4, side[close].shape)
        side[close] = (near | rng.integers(0, 2, near.shape) << 31).astype(np.uint32)
        special = rng.random(side.shape) < share
        side[special] = rng.choice(_SPECIALS, int(special.sum()))
        sides.append(_with_random_bits(rng, side))
    a, b = sides
    c = draw_addends(rng, spec, scale, m, n).astype(np.uint32)
    near = pair_results(operation, a, b) + rng.integers(-1, 2, c.shape)
    c[close] = near[close].astype(np.uint32)
    special = rng.random(c.shape) < share
    c[special] = rng.choice(_SPECIALS, int(special.sum()))
    return a, b, _with_random_bits(rng, c)


def pair_results(
    operation: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None
) -> np.ndarray:
    """Return golden's C ⊕ (A ⊗ B), or A ⊗ B without ``c``, as codes.

    Parameters
    ----------
    operation : str
        Name of a semiring.
    a, b, c : ndarray of codes
        Operands in the form of ``draw_pairs``.
    """
    x, y = np.ascontiguousarray(a).view(np.float32), np.ascontiguousarray(b).view(np.float32)
    addend = None if c is None else np.ascontiguousarray(c).view(np.float32)
    return mmo(operation, x, np.swapaxes(y, -1, -2), addend).view(np.uint32)


def identity(operation: str) -> np.uint32:
    """Return the code of the identity of ⊕."""
    return np.float32(Op[operation.upper()].identity).view(np.uint32)


def _with_random_bits(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    chosen = rng.random(codes.shape) < _SHARE_OF_RANDOM
    codes[chosen] = rng.integers(0, 1 << 32, int(chosen.sum()), dtype=np.uint64).astype(np.uint32)
    return codes
