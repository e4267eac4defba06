"""Arithmetic on codes, element by element: convert, add, multiply, fused multiply-add, order.

Every operation is exact, then rounded once. `rounding` is "RNE", "RNA" (ties away from zero),
"RZ", "RU" or "RD"; a NaN result is the canonical NaN of its format. Arrays broadcast.
"""

import numpy as np

from vitruvian.golden.fp.codec import as_codes, code_dtype, unpack
from vitruvian.golden.fp.dot import evaluate
from vitruvian.golden.fp.formats import as_format, as_int_format
from vitruvian.golden.fp.round import check_rounding, round_pack, round_shift
from vitruvian.golden.fp.spec import DotSpec, ieee_window

__all__ = [
    "UNORDERED",
    "add",
    "compare",
    "convert",
    "fma",
    "from_float",
    "from_int",
    "maximum_number",
    "minimum_number",
    "mul",
    "to_int",
]

UNORDERED = 2


def convert(codes, source, target, rounding="RNE", *, saturate=False):
    """Codes of `source` as codes of `target`.

    Parameters
    ----------
    codes : ndarray of unsigned int, `source` codes
    source, target : FloatFormat or str
    rounding : str
    saturate : bool
        Overflow and infinities become the largest finite number. Otherwise they become what
        IEEE 754 says (RZ, and RU or RD away from it, stop at the largest finite number); a format
        without infinity has its NaN instead.

    Returns
    -------
    ndarray of unsigned int, `target` codes
        NaN becomes the canonical NaN. tf32 codes come back with their 13 unused bits zero.
    """
    source, target = as_format(source, "source"), as_format(target, "target")
    u = unpack(codes, source)
    d = round_pack(
        u.sign,
        u.significand,
        u.exponent - source.fraction_bits,
        target,
        rounding,
        overflow="saturate" if saturate else "ieee",
    )
    sign = np.where(u.sign, target.sign_mask, 0).astype(d.dtype)
    if saturate:
        d = np.where(u.infinity, sign | d.dtype.type(target.max_finite), d)
    elif target.has_infinity:
        d = np.where(u.infinity, sign | d.dtype.type(target.infinity), d)
    else:
        d = np.where(u.infinity, d.dtype.type(target.canonical_nan), d)
    return np.where(u.nan, d.dtype.type(target.canonical_nan), d)[()]


def to_int(codes, source, target="int32", rounding="RNE"):
    """Round codes to integers; values outside the range saturate, infinities too, NaN gives 0.

    Returns
    -------
    ndarray of int8, uint8 or int32, the values
    """
    source, target = as_format(source, "source"), as_int_format(target, "target")
    if target.bits > 32:
        raise ValueError(f"bits of target must be at most 32, not {target.bits!r}")
    u = unpack(codes, source)
    shift = np.maximum(source.fraction_bits - u.exponent, source.fraction_bits - 60)
    magnitude = round_shift(u.significand, shift, u.sign, rounding)
    value = np.clip(np.where(u.sign, -magnitude, magnitude), target.minimum, target.maximum)
    bound = np.where(u.sign, target.minimum, target.maximum)
    return np.where(u.infinity, bound, value).astype(_int_dtype(target))[()]


def from_int(values, target, rounding="RNE"):
    """Round integer values (magnitudes below 2^60) to codes of `target`."""
    values = np.asarray(values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"values must be integers, not {values.dtype}")
    if values.size and max(abs(int(values.min())), abs(int(values.max()))) >= 1 << 60:
        raise ValueError(f"magnitudes of values must be below 2**60, not {values.max()!r}")
    values = values.astype(np.int64)
    return round_pack(values < 0, np.abs(values), np.zeros_like(values), target, rounding)[()]


def _int_dtype(format):
    bits = next(size for size in (8, 16, 32) if format.bits <= size)
    return np.dtype(f"{'int' if format.signed else 'uint'}{bits}")


def fma(a, b, c, format, output=None, rounding="RNE"):
    """a·b + c, rounded once: IEEE 754 fusedMultiplyAdd.

    Parameters
    ----------
    a, b : ndarray of unsigned int, `format` codes
    c : ndarray of unsigned int, `output` codes
    format, output : FloatFormat or str
        `output`, the format of c and the result, is `format` by default.
    rounding : str
    """
    f = as_format(format)
    out = f if output is None else as_format(output, "output")
    check_rounding(rounding)
    spec = DotSpec(input=f, output=out, k=1, window=ieee_window(f, out))
    a, b, c = np.broadcast_arrays(as_codes(a, f, "a"), as_codes(b, f, "b"), as_codes(c, out, "c"))
    d = evaluate(a.reshape(-1, 1), b.reshape(-1, 1), c.reshape(-1), spec, rounding, "ieee")
    return d.reshape(a.shape)[()]


def mul(a, b, format, output=None, rounding="RNE"):
    """a·b, rounded once to `output`: the fused multiply-add with a zero that leaves the sign."""
    out = as_format(format) if output is None else as_format(output, "output")
    zero = 0 if rounding == "RD" else out.negative_zero
    return fma(a, b, code_dtype(out).type(zero), format, out, rounding)


def add(a, b, format, output=None, rounding="RNE"):
    """a + b, rounded once to `output`, which must hold every number of `format`."""
    f = as_format(format)
    out = f if output is None else as_format(output, "output")
    holds = (
        out.fraction_bits >= f.fraction_bits
        and out.emax >= f.emax
        and out.emin - out.fraction_bits <= f.emin - f.fraction_bits
        and out.has_infinity >= f.has_infinity
    )
    if not holds:
        raise ValueError(f"output must hold every {f} number, not {out.name!r}")
    return fma(a, code_dtype(f).type(f.one), convert(b, f, out), f, out, rounding)


def _order(codes, f):
    """An int64 that sorts as the numbers do, −0 before +0."""
    bits = (codes >> codes.dtype.type(f.storage_shift)).astype(np.uint64)
    magnitude = (bits & np.uint64((1 << (f.width - 1)) - 1)).astype(np.int64)
    return np.where(bits >> np.uint64(f.width - 1) & np.uint64(1), ~magnitude, magnitude)


def compare(a, b, format):
    """−1, 0 or 1 where a <, =, > b (−0 equals +0), `UNORDERED` (2) where one is NaN; int8."""
    f = as_format(format)
    a, b = as_codes(a, f, "a"), as_codes(b, f, "b")
    u, v = unpack(a, f), unpack(b, f)
    x, y = _order(a, f), _order(b, f)
    zeros = (np.maximum(x, ~x) == 0) & (np.maximum(y, ~y) == 0)
    sign = np.where(zeros, 0, np.sign((x > y).astype(np.int8) - (x < y).astype(np.int8)))
    return np.where(u.nan | v.nan, UNORDERED, sign).astype(np.int8)[()]


def minimum_number(a, b, format):
    """IEEE 754-2019 minimumNumber: a NaN loses to a number, two give NaN, and −0 < +0."""
    return _pick(a, b, format, np.less_equal)


def maximum_number(a, b, format):
    """IEEE 754-2019 maximumNumber: a NaN loses to a number, two give NaN, and −0 < +0."""
    return _pick(a, b, format, np.greater_equal)


def _pick(a, b, format, better):
    f = as_format(format)
    a, b = as_codes(a, f, "a"), as_codes(b, f, "b")
    u, v = unpack(a, f), unpack(b, f)
    take_a = ~u.nan & (v.nan | better(_order(a, f), _order(b, f)))
    d = np.where(take_a, a, b) & a.dtype.type(f.code_mask)
    return np.where(u.nan & v.nan, a.dtype.type(f.canonical_nan), d)[()]


def from_float(values, format, rounding="RNE", *, saturate=False):
    """Round float64 values to codes of `format`; see `convert` for the rules."""
    values = np.asarray(values)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"values must be real numbers, not {values.dtype}")
    return convert(
        np.asarray(values, np.float64).view(np.uint64), "fp64", format, rounding, saturate=saturate
    )
