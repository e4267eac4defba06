"""Operands with block scales for tiles, their results, and their places on the buses.

The scales of a row of A, or of a column of B, follow its codes: an operand of K terms in blocks has
K + K / block columns.
"""

import numpy as np

from vitruvian.golden.fp import fused_dot
from vitruvian.golden.fp.spec import DotSpec

from .operands import draw_operands

#: Share of the beats with a scale that is zero, a NaN or at an end of its range.
_SPECIAL = 0.1


def draw_blocks(
    rng: np.random.Generator, spec: DotSpec, centre: np.ndarray, m: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return random operands whose products lie near the exponents ``centre``, as their scales do.

    Parameters
    ----------
    spec : DotSpec
        A rule with scales.
    centre : (count,) ndarray of int
    m, n : int
        Rows of A and columns of B.

    Returns
    -------
    a : (count, m, K + K / block) ndarray of uint8
    b : (count, n, K + K / block) ndarray of uint8
    """
    assert spec.scales is not None
    count, scale = len(centre), spec.scales.format
    assert scale.nan is not None
    sides = list(draw_operands(rng, spec, np.zeros(count, int), m, n))
    part = centre // 2 + rng.integers(-4, 5, count)
    largest = scale.max_finite >> scale.fraction_bits
    for side, exponent in enumerate((part, centre - part)):
        codes = sides[side]
        if spec.sum.lanes == "sixteens":
            # Few bits: every code is as likely, except in the beats that draw few of them.
            codes = rng.integers(0, 1 << spec.input.width, codes.shape, dtype=np.uint8)
            few = rng.random((count, 1, 1)) < 0.2
            codes = np.where(few & (rng.random(codes.shape) < 0.8), codes & 8, codes)
        shape = (*codes.shape[:2], spec.k // spec.scales.block)
        spread = rng.choice([0, 2, 9], (count, 1, 1))
        field = np.clip(
            exponent[:, None, None] + scale.bias + rng.integers(-spread, spread + 1, shape),
            0,
            largest,
        )
        scales = field << scale.fraction_bits | rng.integers(0, 1 << scale.fraction_bits, shape)
        special = rng.random((count, 1, 1)) < _SPECIAL
        special = special & (rng.random(shape) < 1 / shape[1])
        edges = rng.choice([0, 1, scale.max_finite, scale.nan], shape)
        scales = np.where(special, edges, np.minimum(scales, scale.max_finite))
        sides[side] = np.concatenate([codes, scales], axis=2).astype(np.uint8)
    return sides[0], sides[1]


def block_results(spec: DotSpec, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return golden's D = C + A·B for each beat.

    Parameters
    ----------
    a, b : (count, m or n, K + K / block) ndarray of uint8
    c : (count, m, n) ndarray of codes
    """
    a, b = a[:, :, None], b[:, None]
    return fused_dot(
        a[..., : spec.k],
        b[..., : spec.k],
        c,
        spec,
        scale_a=a[..., spec.k :],
        scale_b=b[..., spec.k :],
    )


def packed(spec: DotSpec, operands: np.ndarray) -> np.ndarray:
    """Return the bytes of the buses for operands of ``draw_blocks``."""
    codes, scales = operands[..., : spec.k], operands[..., spec.k :]
    if spec.sum.lanes == "sixteens":
        codes = codes[..., ::2] & 15 | codes[..., 1::2] << 4
    return np.concatenate([codes, scales], axis=-1)
