"""Traffic of semirings on one pair of FP32 operands a beat: operands, and golden's results."""

import numpy as np

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.simd2 import Op, mmo

from .operands import draw_addends, draw_operands

__all__ = ["draw_pairs", "identity", "pair_results"]

#: Zeros, infinities, a NaN, ones, the smallest subnormal and normal and the largest numbers.
_POSITIVE = np.array([0, 0x7F80_0000, 0x7FC0_0000, 0x3F80_0000, 1, 0x80_0000, 0x7F7F_FFFF], "u4")
_SPECIALS = np.concatenate([_POSITIVE, _POSITIVE | np.uint32(1 << 31)])
_SHARE_OF_SPECIALS, _OF_TRUTH = 0.05, 0.6  # of truth only zeros and NaNs matter
_SHARE_OF_CLOSE = 0.3  # beats of which all operands are of one size, and C is near the result
_SHARE_OF_ANY = 0.1  # operands and C that are any bits


def draw_pairs(
    rng: np.random.Generator, operation: str, spec: DotSpec, scale: np.ndarray, m: int, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of A (count, m, 1), of B's columns (count, n, 1), and of C (count, m, n).

    Parameters
    ----------
    spec : DotSpec
        Of the unit's sums of FP32 products.
    scale : (count,) ndarray of int
        Exponent around which products, and C, lie.
    """
    share = _OF_TRUTH if operation == "orand" else _SHARE_OF_SPECIALS
    close = rng.random(len(scale)) < _SHARE_OF_CLOSE
    base = rng.integers(1 << 20, 0x7F00_0000, (int(close.sum()), 1, 1))
    sides: list[np.ndarray] = []
    for codes in draw_operands(rng, spec, scale, m, n):
        side = codes[..., :1].astype(np.uint32)
        near = base + rng.integers(0, 4, side[close].shape)
        side[close] = (near | rng.integers(0, 2, near.shape) << 31).astype(np.uint32)
        special = rng.random(side.shape) < share
        side[special] = rng.choice(_SPECIALS, int(special.sum()))
        sides.append(_with_any(rng, side))
    a, b = sides
    c = draw_addends(rng, spec, scale, m, n).astype(np.uint32)
    near = pair_results(operation, a, b) + rng.integers(-1, 2, c.shape)
    c[close] = near[close].astype(np.uint32)
    special = rng.random(c.shape) < share
    c[special] = rng.choice(_SPECIALS, int(special.sum()))
    return a, b, _with_any(rng, c)


def pair_results(
    operation: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None
) -> np.ndarray:
    """Codes of C ⊕ (A ⊗ B), or of A ⊗ B, of the codes that `draw_pairs` gives."""
    x, y = np.ascontiguousarray(a).view(np.float32), np.ascontiguousarray(b).view(np.float32)
    addend = None if c is None else np.ascontiguousarray(c).view(np.float32)
    return mmo(operation, x, np.swapaxes(y, -1, -2), addend).view(np.uint32)


def identity(operation: str) -> np.uint32:
    """Code of the identity of ⊕."""
    return np.float32(Op[operation.upper()].identity).view(np.uint32)


def _with_any(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    found = rng.random(codes.shape) < _SHARE_OF_ANY
    codes[found] = rng.integers(0, 1 << 32, int(found.sum()), dtype=np.uint64).astype(np.uint32)
    return codes
