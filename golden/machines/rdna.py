"""Steps of AMD's RDNA 3 and RDNA 4: a few products and C, aligned on one grid."""

import numpy as np

from vitruvian.golden.fp.codec import Unpacked, code_dtype, unpack
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.round import bit_length, round_pack
from vitruvian.golden.machines.spec import RdnaSpec

_FP32 = FORMATS["fp32"]
_NONE = -1024  # the exponent of no term
_FAR = 62  # a shift that leaves no bit of any term
# Bits of the grid below the sum of the largest exponents of operands, and below a leading bit
_BELOW_PRODUCTS, _BELOW_LEADING = 24, 26
#: NaN of a NaN operand, by the result's format
OPERAND_NAN = {"fp32": 0xFFC00A3D, "fp16": 0xFE3D, "bf16": 0xFFFD}


def rdna_dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: RdnaSpec) -> np.ndarray:
    """Return D as ``spec`` defines it.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
    c : (n,) ndarray of unsigned int, ``spec.output`` codes

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes

    Raises
    ------
    ValueError
        If K is not a multiple of ``spec.k``.
    """
    if a.shape[1] % spec.k:
        raise ValueError(f"K must be a multiple of {spec.k}, not {a.shape[1]!r}")
    for start in range(0, a.shape[1], spec.k):
        part = slice(start, start + spec.k)
        c = _step(a[:, part], b[:, part], c, spec)
    return c


def _step(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: RdnaSpec) -> np.ndarray:
    """Compute one step."""
    x, y = (_numbers(codes, f, spec) for codes, f in ((a, spec.input), (b, spec.input_b)))
    z = _numbers(c, spec.output, spec)
    add = _two_complement if spec.rdna4 else _in_frame
    with np.errstate(over="ignore"):
        negative, total, grid = add(x, y, z, spec)
    d = _rounded(negative, total, grid, spec)
    return _with_specials(d, c, x, y, z, spec)


def _numbers(codes: np.ndarray, format: FloatFormat, spec: RdnaSpec) -> Unpacked:
    """Decode codes; on RDNA 3, numbers below the normal ones of FP32 are zeros."""
    u = unpack(codes, format)
    if spec.rdna4:
        return u
    tiny = _leading(u, format) < _FP32.emin
    return u._replace(significand=np.where(tiny, 0, u.significand))


def _leading(u: Unpacked, format: FloatFormat) -> np.ndarray:
    """Return the exponents of the leading bits."""
    top = u.exponent - format.fraction_bits + bit_length(u.significand) - 1
    return np.where(u.significand == 0, _NONE, top)


def _shifted(value: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return floor(value · 2^places)."""
    return (value << np.clip(places, 0, _FAR)) >> np.clip(-places, 0, _FAR)


def _in_frame(
    x: Unpacked, y: Unpacked, z: Unpacked, spec: RdnaSpec
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add a step of RDNA 3 in the sign of C; return sign, magnitude and last exponent.

    The bits of a term of the other sign are inverted and no one is added, so that it is one unit
    further from zero, even if it is zero.
    """
    exponent = x.exponent + y.exponent
    product = x.significand * y.significand
    last = exponent - (spec.input.fraction_bits + spec.input_b.fraction_bits)
    last_c = z.exponent - spec.output.fraction_bits
    top = np.where(product == 0, _NONE, last + bit_length(product) - 1).max(axis=1)
    top_c = np.maximum(_leading(z, spec.output), _floor(spec))
    grid = np.maximum(
        np.where(product == 0, _NONE, exponent).max(axis=1) - _BELOW_PRODUCTS,
        np.maximum(top, top_c) - _BELOW_LEADING,
    )
    total = _shifted(z.significand, last_c - grid)
    parts = _shifted(product, last - grid[:, None])
    other = (x.sign ^ y.sign) != z.sign[:, None]
    total = total + np.where(other, -parts - 1, parts).sum(axis=1)
    nothing = ~product.any(axis=1) & (z.significand == 0)
    total[nothing] = 0
    return (total < 0) ^ z.sign, np.abs(total), grid


def _two_complement(
    x: Unpacked, y: Unpacked, z: Unpacked, spec: RdnaSpec
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add a step of RDNA 4; return sign, magnitude and last exponent.

    Pairs of products, or all products in FP8, are floored and added on grids of their own; the
    sums are floored on the common grid, and so is C.
    """
    product = x.significand * y.significand
    fraction = spec.input.fraction_bits + spec.input_b.fraction_bits
    exponent = x.exponent + y.exponent
    terms = np.where(x.sign ^ y.sign, -product, product)
    grids = np.where(product == 0, _NONE, exponent - _BELOW_PRODUCTS)
    # Packed FP16 and the others have least exponents of C.
    least = _floor(spec) if spec.output.name == "fp16" else _FP32.emin
    top_c = np.maximum(_leading(z, spec.output), least)
    grid = np.maximum(grids.max(axis=1), top_c - _BELOW_LEADING)
    addend = np.where(z.sign, -z.significand, z.significand)
    places = z.exponent - spec.output.fraction_bits - grid
    total = _shifted(addend, places)
    # On a coarser grid, a C without a bit left is zero and not −1.
    total[(_shifted(z.significand, places) == 0) & (grid > least)] = 0
    size = spec.k if spec.input.width == 8 else 2
    for start in range(0, spec.k, size):
        group = slice(start, start + size)
        own = grids[:, group].max(axis=1)
        places = exponent[:, group] - fraction - own[:, None]
        part = _shifted(terms[:, group], places).sum(axis=1)
        total += _shifted(part, own - grid)
    return total < 0, np.abs(total), grid


def _floor(spec: RdnaSpec) -> int:
    """Return the least exponent by which C is aligned."""
    return spec.output.emin if spec.output.name == "fp16" else _NONE


def _rounded(
    negative: np.ndarray, magnitude: np.ndarray, grid: np.ndarray, spec: RdnaSpec
) -> np.ndarray:
    """Round to the nearest; a zero is +0, and BF16 is the upper half of FP32."""
    own = spec.output if spec.output.name == "fp16" else _FP32
    d = round_pack(negative, magnitude, grid, own, overflow="infinity")
    if own is _FP32 and not spec.rdna4:
        # Rounded without a least exponent: twice a number of at least half the least normal one
        # is rounded to the same precision.
        twice = round_pack(negative, magnitude, grid + 1, own, overflow="infinity")
        d[(twice & ~np.uint32(own.sign_mask)) < 2 << own.fraction_bits] = 0
    d[d == own.negative_zero] = 0
    return (d >> 16).astype(np.uint16) if spec.output.name == "bf16" else d


def _with_specials(
    d: np.ndarray, c: np.ndarray, x: Unpacked, y: Unpacked, z: Unpacked, spec: RdnaSpec
) -> np.ndarray:
    """Replace the results of rows with an infinity or NaN; NaN operands come before other NaNs."""
    out, sign = spec.output, x.sign ^ y.sign
    infinity = x.infinity | y.infinity
    zeros = [(u.significand == 0) & ~u.infinity for u in (x, y)]
    invalid = ((x.infinity & zeros[1]) | (y.infinity & zeros[0])).any(axis=1)
    plus, minus = (infinity & ~sign).any(axis=1), (infinity & sign).any(axis=1)
    invalid |= plus & minus
    operand = OPERAND_NAN[out.name]
    # The instructions with FP8 have one NaN.
    no_number = operand if spec.input.width == 8 else out.canonical_nan | out.sign_mask
    plus, minus = plus | (z.infinity & ~z.sign), minus | (z.infinity & z.sign)
    d = np.where(plus, out.overflow, d)
    d = np.where(minus, out.overflow | out.sign_mask, d)
    d = np.where(plus & minus, no_number, d)
    d = np.where(z.nan, c | c.dtype.type(1 << (out.fraction_bits - 1)), d)
    d = np.where(invalid, no_number, d)
    d = np.where((x.nan | y.nan).any(axis=1), operand, d)
    return d.astype(code_dtype(out))
