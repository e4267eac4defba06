"""The fused dot product, vectorised: integers, shifts, one rounding.

`DotSpec` says what is computed. Here every operand becomes a signed significand and the exponent
of its last bit, every term a multiple of one unit q, and the sum of the terms is rounded once.
Sums of up to 59 bits are int64 (and their terms int32 when they fit), longer ones Python ints;
for those `golden.fp.dot_compiled` holds a compiled twin that returns the same.
"""

from functools import lru_cache

import numpy as np

from vitruvian.golden.fp.codec import as_codes, code_dtype, unpack
from vitruvian.golden.fp.round import jam, round_pack
from vitruvian.golden.fp.spec import DotSpec

__all__ = ["fused_dot"]

# An exponent that tells zero, and infinity or NaN, by its size; a product adds two of them.
_ZERO, _SPECIAL = -(1 << 20), 1 << 22
_ALL_ZERO, _ANY_SPECIAL = -(1 << 19), 1 << 21
_CHUNK = 1 << 15  # terms worked on at a time, to stay in cache
_FEW = 256  # terms of a wide sum for which loading the compiled twin is not worth while


def fused_dot(a, b, c, spec):
    """D = C + Σ_k A_k·B_k, fused, as `spec` defines it to the bit.

    Parameters
    ----------
    a : (..., K) ndarray of unsigned int, `spec.input` codes
    b : (..., K) ndarray of unsigned int, `spec.input_b` codes
    c : (...) ndarray of unsigned int, `spec.output` codes
        Leading axes broadcast.
    spec : DotSpec
        K up to `spec.k` is one block of that many terms; a longer K must be a multiple of it, and
        is done block after block in rising k, each block's D the next one's C.

    Returns
    -------
    (...) ndarray of unsigned int, `spec.output` codes

    Raises
    ------
    TypeError, ValueError
        For codes that are not integers or too wide, and for shapes that do not fit.
    """
    if not isinstance(spec, DotSpec):
        raise TypeError(f"spec must be a DotSpec, not {spec!r}")
    a, b = as_codes(a, spec.input, "a"), as_codes(b, spec.input_b, "b")
    c = as_codes(c, spec.output, "c")
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1] or not a.shape[-1]:
        raise ValueError(
            f"a and b must be (..., K) with the same K of at least 1, not {a.shape} and {b.shape}"
        )
    terms = a.shape[-1]
    if terms > spec.k and terms % spec.k:
        raise ValueError(f"K must be at most {spec.k} or a multiple of it, not {terms!r}")
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1], c.shape)
    a = np.broadcast_to(a, (*lead, terms)).reshape(-1, terms)
    b = np.broadcast_to(b, (*lead, terms)).reshape(-1, terms)
    d = np.broadcast_to(c, lead).reshape(-1)
    for start in range(0, terms, spec.k):
        block = slice(start, start + spec.k)
        d = evaluate(a[:, block], b[:, block], d, spec)
    return d.reshape(lead)[()]


def evaluate(a, b, c, spec, rounding=None, overflow="infinity"):
    """One block: `a`, `b` (n, K) and `c` (n,) codes. `rounding` may be any of `ROUNDINGS`."""
    rounding = spec.rounding if rounding is None else rounding
    d = np.empty(len(c), code_dtype(spec.output))
    step = max(_CHUNK // a.shape[1], 1)
    for start in range(0, len(c), step):
        rows = slice(start, start + step)
        d[rows] = _chunk(
            np.ascontiguousarray(a[rows].T),
            np.ascontiguousarray(b[rows].T),
            c[rows],
            spec,
            rounding,
            overflow,
        )
    return d


def _chunk(a, b, c, spec, rounding, overflow):
    """`evaluate` with the terms on the first axis."""
    sig_a, exp_a = operand(a, spec.input)
    sig_b, exp_b = operand(b, spec.input_b)
    sig_c, exp_c = operand(c, spec.output)
    emax = np.maximum((exp_a + exp_b).max(axis=0), exp_c)
    odd = (emax > _ANY_SPECIAL) | (emax < _ALL_ZERO)
    emax[odd] = 0
    if odd.any():  # their finite terms may lie far above this E_max: none of them enters a sum
        sig_a[:, odd] = 0
        sig_c[odd] = 0
    if spec.emax_floor is not None:
        emax = np.maximum(emax, spec.emax_floor)

    operands = (sig_a, exp_a, sig_b, exp_b, sig_c, exp_c)
    if sum_bits(spec, len(a)) < 60:
        sign, magnitude, exponent = plain_sum(*operands, emax, spec)
    elif a.size < _FEW:
        sign, magnitude, exponent = plain_sum(*operands, emax, spec, wide=True)
    else:
        from vitruvian.golden.fp.dot_compiled import compiled_sum  # numba takes its time to load

        sign, magnitude, exponent = compiled_sum(*operands, emax, spec)
    d = round_pack(
        sign,
        magnitude,
        exponent,
        spec.output,
        rounding,
        result_bits=spec.result_bits,
        overflow=overflow,
    )
    if not spec.output.has_infinity:
        d[d == spec.output.canonical_nan] = spec.nan_code
    if rounding == "RD":
        d[(magnitude == 0) & ~odd] |= d.dtype.type(spec.output.sign_mask)
    if odd.any():
        d[odd] = _special(a[:, odd], b[:, odd], c[odd], spec, rounding)
    if spec.zero == "positive":
        d[d == spec.output.negative_zero] = 0
    return d


@lru_cache
def _table(format):
    """Signed significand and exponent (with its marks) of every code of a format."""
    return _operand(np.arange(1 << format.storage_bits), format, np.int32)


def _operand(codes, format, dtype):
    u = unpack(codes, format)
    exponent = np.where(u.significand == 0, _ZERO, u.exponent)
    exponent = np.where(u.infinity | u.nan, _SPECIAL, exponent)
    return np.where(u.sign, -u.significand, u.significand).astype(dtype), exponent.astype(np.int32)


def operand(codes, format):
    """Signed significand and exponent of codes; zeros, infinities and NaNs have marked exponents.

    The value is significand · 2^(exponent − fraction_bits).
    """
    if format.storage_bits > 16:
        return _operand(codes, format, np.int64)
    significand, exponent = _table(format)
    return significand.take(codes), exponent.take(codes)


def sum_bits(spec, terms):
    """Bits that hold the sum, its sign and the sticky bit; very many without a window."""
    if spec.window is None:
        return 1 << 20
    product_bits = spec.input.fraction_bits + spec.input_b.fraction_bits
    return max(spec.window, product_bits, spec.output.fraction_bits) + terms.bit_length() + 4


def plain_sum(sig_a, exp_a, sig_b, exp_b, sig_c, exp_c, emax, spec, wide=False):
    """The sum of the cut terms: (sign, magnitude, exponent of its last bit).

    `wide` works with Python ints, for sums longer than an int64.
    """
    dtype = object if wide else np.int32 if sum_bits(spec, 0) < 32 else np.int64  # of a term
    product = sig_a.astype(dtype, copy=False) * sig_b.astype(dtype, copy=False)
    addend = sig_c.astype(dtype, copy=False)
    unit, last_p, last_c = units(product, exp_a, exp_b, addend, exp_c, emax, spec)
    product_bits = spec.input.fraction_bits + spec.input_b.fraction_bits
    product, cut_p = _cut(product, last_p - unit, product_bits, spec)
    addend, cut_c = _cut(addend, last_c - unit, spec.output.fraction_bits, spec)
    total = product.sum(axis=0, dtype=object if wide else np.int64) + addend
    if spec.truncate == "floor":
        total = (total << 1) + (cut_p.any(axis=0) | cut_c)
        unit = unit - 1
    sign, magnitude = (total < 0).astype(bool), np.abs(total)
    if wide:
        return sign, *jam(magnitude, unit.astype(np.int64))
    return sign, magnitude, unit.astype(np.int64)


def units(product, exp_a, exp_b, sig_c, exp_c, emax, spec):
    """Exponents of q, of every product's last bit and of C's last bit.

    `product` may be anything that is zero where the product is.
    """
    last_p = exp_a + exp_b - np.int32(spec.input.fraction_bits + spec.input_b.fraction_bits)
    last_c = exp_c - np.int32(spec.output.fraction_bits)
    if spec.window is not None:
        return emax - np.int32(spec.window), last_p, last_c
    none = np.int32(1 << 20)
    lowest = np.where(product == 0, none, last_p).min(axis=0)
    return np.minimum(lowest, np.where(sig_c == 0, none, last_c)), last_p, last_c


def _cut(significand, gap, fraction_bits, spec):
    """significand · 2^gap chopped to an integer, and where something was cut off."""
    if spec.window is None:
        up = int(gap.max(where=significand != 0, initial=0))
    else:
        up = max(spec.window - fraction_bits, 0)  # the gap of a term that has the largest exponent
    right = np.clip(up - gap, 0, up + fraction_bits + 2).astype(significand.dtype, copy=False)
    value = significand << up
    if spec.truncate == "magnitude":
        kept = np.abs(value) >> right
        return np.where(value < 0, -kept, kept), np.False_
    kept = value >> right
    return kept, (kept << right) != value


def _special(a, b, c, spec, rounding):
    """Results of rows with an infinity or NaN, and of rows that are all zeros."""
    x, y, z = unpack(a, spec.input), unpack(b, spec.input_b), unpack(c, spec.output)
    sign = x.sign ^ y.sign
    infinity = x.infinity | y.infinity
    zero = ((x.significand == 0) & ~x.infinity) | ((y.significand == 0) & ~y.infinity)
    positive = (infinity & ~sign).any(axis=0) | (z.infinity & ~z.sign)
    negative = (infinity & sign).any(axis=0) | (z.infinity & z.sign)
    nan = (x.nan | y.nan | (infinity & zero)).any(axis=0) | z.nan | (positive & negative)
    if rounding == "RD":
        minus = sign.any(axis=0) | z.sign
    else:
        minus = sign.all(axis=0) & z.sign
    out = spec.output
    d = np.where(minus, out.negative_zero, 0).astype(code_dtype(out))
    if out.has_infinity:
        d[positive] = out.infinity
        d[negative] = out.infinity | out.sign_mask
    else:
        nan |= positive | negative
    d[nan] = spec.nan_code
    return d
