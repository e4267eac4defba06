"""The matrix-vector multiplication of Tenstorrent's Wormhole and Blackhole (MVMUL).

The operands have 19 bits: a sign, an exponent field of 8 bits and 10 fraction bits. Exponent field
0 is zero, and there is neither an infinity nor a NaN on input: the all-ones field is an ordinary
binade. A product takes up to four phases, each with other slices of the significands, and every
phase is a complete accumulation into the destination register (Dst).
"""

from typing import Any, NamedTuple

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.round import bit_length
from vitruvian.golden.machines.spec import TERMS as _TERMS
from vitruvian.golden.machines.spec import PhaseSpec
from vitruvian.golden.sums.dots import phase_rows

_GROUP = 8  # terms that are aligned among themselves
GROUP_SCALE = (
    13  # a group's significand gets as many low bits, and then has the unit of Dst's 24 bits
)
_FAR = 62


class Source(NamedTuple):
    """Operands as the multiplier sees them: a zero has exponent field 0."""

    sign: np.ndarray
    field: np.ndarray
    significand: np.ndarray  # 11 bits


def source(codes: np.ndarray, spec: PhaseSpec) -> Source:
    """Widen operand codes to 10 fraction bits."""
    f = spec.input
    bits = codes.astype(np.int64) >> f.storage_shift
    sign = (bits >> (f.width - 1)) & 1
    field = (bits >> f.fraction_bits) & f.exponent_ones
    fraction = (bits & ((1 << f.fraction_bits) - 1)) << (10 - f.fraction_bits)
    if f.name == "fp8e4m3":
        # The field is raised to the bias of fp16; NaN has a fraction of ones.
        nan = (bits & 0x7F) == 0x7F
        field = np.where(field == 0, 0, field + 8)
        fraction = np.where(nan, 0x3FF, fraction)
    elif f.name == "fp8e5m2" and spec.blackhole:
        fraction = np.where((bits & 0x7F) == 0x7F, 0x3FF, fraction)
    return Source(sign, field, np.where(field == 0, 0, fraction | 1 << 10))


def widen_shared(codes: np.ndarray, exponents: np.ndarray, bits: int) -> np.ndarray:
    """Return the bf16 codes of operands with a shared exponent (BFP8, BFP4, BFP2).

    A code is a sign and a magnitude of ``bits`` − 1 bits, whose top bit has the weight of the
    shared exponent. The magnitude is normalised, and its leading zeros are subtracted from the
    exponent field, modulo 256. The code of −0 becomes −∞.

    Parameters
    ----------
    codes : (..., K) ndarray of unsigned int
    exponents : (..., K / 16) ndarray of uint8
    bits : int
        8, 4 or 2.

    Returns
    -------
    (..., K) ndarray of uint16
    """
    sign = codes.astype(np.int64) >> (bits - 1) & 1
    magnitude = (codes.astype(np.int64) & ((1 << (bits - 1)) - 1)) << (8 - bits)
    zeros = 7 - bit_length(magnitude)
    field = (np.repeat(exponents.astype(np.int64), _TERMS, axis=-1) - zeros) & 0xFF
    fraction = (magnitude << (zeros + 1)) & 0x7F
    code = np.where(magnitude == 0, sign * 0x7F80, field << 7 | fraction)
    return (code | sign << 15).astype(np.uint16)


def _round_half_up(
    value: np.ndarray, shift: np.ndarray, ties_down: np.ndarray | bool
) -> np.ndarray:
    """Return magnitudes divided by 2^shift, with ties up, or down where ``ties_down`` is True."""
    shift = np.clip(shift, 0, _FAR)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    down = ties_down & (shift > 0) & (value > 0)
    return (value + half - down) >> shift


def phase_dot(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: PhaseSpec,
    trace: list[dict[str, Any]] | None = None,
) -> np.ndarray:
    """Return D = C + Σ A_k·B_k as MVMUL computes it.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` codes
        K must be a multiple of 16.
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    trace : list, optional
        Receives the arrays of each phase: Dst before it (``c``), ``products`` with their sign and
        their ``exponents``, the products as they are ``aligned`` in their group, the two groups and
        Dst as ``numbers`` (negative, magnitude, exponent), ``emax`` and the ``total``.

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes

    Raises
    ------
    ValueError
        If K is not a multiple of 16.
    """
    if a.shape[1] % _TERMS:
        raise ValueError(f"K must be a multiple of {_TERMS}, not {a.shape[1]!r}")
    fast = phase_rows(a, b, c, spec) if trace is None else None
    if fast is not None:
        return fast
    x, y = source(a, spec), source(b, spec)
    for start in range(0, a.shape[1], _TERMS):
        block = slice(start, start + _TERMS)
        for phase in range(spec.phases):
            c = _phase(
                Source(*(part[:, block] for part in x)),
                Source(*(part[:, block] for part in y)),
                c,
                phase,
                spec,
                trace,
            )
    return c


def _phase(
    x: Source,
    y: Source,
    c: np.ndarray,
    phase: int,
    spec: PhaseSpec,
    trace: list[dict[str, Any]] | None,
) -> np.ndarray:
    """Add the products of one phase to Dst."""
    out = spec.output
    base = -127 if not spec.narrow else 97 if out.name == "fp32" else -15
    adjust = base - 5 * (phase & 1) - 7 * (phase >> 1)
    p = x.significand >> 6 if not phase & 1 else (x.significand >> 1) & 0x1F
    q = y.significand >> 4 if not phase & 2 else (y.significand & 0xF) << 3
    zero = (x.field == 0) | (y.field == 0)
    exponent = np.where(zero, max(adjust, 0), x.field + y.field + adjust)
    product = np.where(zero, 0, p * q)
    sign = np.where(zero, 0, x.sign ^ y.sign)

    group_exponents: list[np.ndarray] = []
    group_sums: list[np.ndarray] = []
    signed: list[np.ndarray] = []
    for start in (0, _GROUP):
        part = slice(start, start + _GROUP)
        top = exponent[:, part].max(axis=1)
        shift = np.minimum(top[:, None] - exponent[:, part], 30)
        aligned = _round_half_up(product[:, part], shift, False)
        signed.append(np.where(sign[:, part] == 1, -aligned, aligned))
        total = signed[-1].sum(axis=1)
        group_exponents.append(np.where(top <= 0, 0, top))
        group_sums.append(np.where(top <= 0, 0, total) << GROUP_SCALE)
    if trace is not None:
        products = np.where(sign == 1, -product, product)
        trace.append({"c": c, "products": products, "exponents": exponent, "aligned": signed})
    return _accumulate(group_exponents, group_sums, c, spec, trace)


def _accumulate(
    exponents: list[np.ndarray],
    sums: list[np.ndarray],
    c: np.ndarray,
    spec: PhaseSpec,
    trace: list[dict[str, Any]] | None,
) -> np.ndarray:
    """Add two groups to Dst, normalise and round; half up in magnitude."""
    out = spec.output
    fraction_bits = out.fraction_bits
    bits = c.astype(np.int64)
    sign_c = (bits >> (out.width - 1)) & 1
    field_c = (bits >> fraction_bits) & out.exponent_ones
    significand_c = (bits & ((1 << fraction_bits) - 1)) | (1 << fraction_bits)
    significand_c = np.where(field_c == 0, 0, significand_c << (23 - fraction_bits))
    emax = np.maximum.reduce([*exponents, field_c])

    numbers = [(s < 0, np.abs(s), e) for e, s in zip(exponents, sums, strict=True)]
    numbers.append((sign_c == 1, significand_c, field_c))
    total = np.zeros(len(c), np.int64)
    for index, (negative, magnitude, exponent) in enumerate(numbers):
        down = negative & (index < 2)
        shift = emax - exponent
        value = np.where(shift >= 31, 0, _round_half_up(magnitude, shift, down))
        if out.name != "fp32":
            step = np.full(len(c), 13)
            value = _round_half_up(value, step, down) << 13
        total += np.where(negative, -value, value)
    if trace is not None:
        trace[-1].update(numbers=numbers, emax=emax, total=total)

    negative, magnitude = total < 0, np.abs(total)
    length = bit_length(magnitude)
    left = 24 - length  # negative: shift right
    if not spec.blackhole:
        # Wormhole's erratum: a negative sum of one unit is shifted by −4 instead of 23.
        left = np.where(negative & (magnitude == 1), -4, left)
    field = emax - left
    value = np.where(
        left >= 0,
        magnitude << np.clip(left, 0, _FAR),
        _round_half_up(magnitude, -left, False),
    )
    field, value = _carried(field, value)
    if out.name != "fp32":
        kept = 11 if spec.narrow else 8
        drop = np.full(len(c), 24 - kept)
        field, value = _carried(field, _round_half_up(value, drop, False) << (24 - kept))
    fraction = (value & 0x7FFFFF) >> (23 - fraction_bits)
    code = (field << fraction_bits) | fraction
    if out.name == "fp16":
        code = np.where(field >= 32, out.exponent_mask | out.fraction_mask, code)
    else:
        code = np.where(field >= 255, out.overflow, code)
    code |= negative.astype(np.int64) << (out.width - 1)
    nothing = (magnitude == 0) | (field <= 0) | (emax <= 0)
    return np.where(nothing, 0, code).astype(code_dtype(out))


def _carried(field: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Renormalise a 24-bit significand that became 2^24."""
    over = value >= 1 << 24
    return field + over, np.where(over, value >> 1, value)
