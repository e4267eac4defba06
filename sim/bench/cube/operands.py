"""Operands for tiles, of which most are finite.

Every element of a row of A is multiplied by every column of B. A single NaN in it would therefore
make a whole row of results NaN, and all later beats of the same sum as well, and hide other errors.
"""

import numpy as np

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.sim.bench.fp.stimuli import special_codes

_INT32_MAX = (1 << 31) - 1


def draw_operands(
    rng: np.random.Generator, spec: DotSpec | IntDotSpec, scale: np.ndarray, m: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return random operands for beats.

    Parameters
    ----------
    scale : (count,) ndarray of int
        Exponent near which the products of each beat lie. Integer operands ignore it.
    m, n : int
        Rows of A and columns of B.

    Returns
    -------
    a : (count, m, K) ndarray of codes
    b : (count, n, K) ndarray of codes
        Columns of B.
    """
    if isinstance(spec, IntDotSpec):
        shapes = [(len(scale), side, spec.k) for side in (m, n)]
        a, b = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes)
        for codes in (a, b):
            extreme = rng.random(codes.shape) < rng.choice([0.02, 0.9], (len(scale), 1, 1))
            codes[extreme] = rng.choice(np.array([0x80, 0x7F], np.uint8), int(extreme.sum()))
        return a, b
    part = rng.integers(-3, 4, len(scale)) + scale // 2
    spread = rng.choice([1, 3, 12], len(scale))
    sparse = rng.random(len(scale)) < 0.3
    a = _codes(rng, spec.input, part, spread, sparse, (m, spec.k))
    b = _codes(rng, spec.input_b, scale - part, spread, sparse, (n, spec.k))
    _cancel(rng, spec, a, b)
    return _with_specials(rng, a, spec.input), _with_specials(rng, b, spec.input_b)


def draw_addends(
    rng: np.random.Generator, spec: DotSpec | IntDotSpec, scale: np.ndarray, m: int, n: int
) -> np.ndarray:
    """Return random C fractals (count, m, n) as codes.

    Floating-point numbers are about as large as the products, and half of the integer fractals lie
    near the limits of int32. The parameters are those of ``draw_operands``.
    """
    count = len(scale)
    if isinstance(spec, IntDotSpec):
        near = _INT32_MAX - rng.integers(0, 1 << 18, (count, m, n))
        near = np.where(rng.random((count, m, n)) < 0.5, near, ~near)
        any_ = rng.integers(-_INT32_MAX - 1, _INT32_MAX, (count, m, n), endpoint=True)
        values = np.where(rng.random((count, 1, 1)) < 0.5, near, any_)
        return values.astype(np.int32).view(np.uint32)
    spread = rng.choice([2, 8, 30], count)
    codes = _codes(rng, spec.output, scale, spread, rng.random(count) < 0.3, (m, n))
    return _with_specials(rng, codes, spec.output)


def make_near_ties(
    rng: np.random.Generator, spec: DotSpec, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> None:
    """Change beats that start from C so that their sums lie next to a tie, in place.

    One product is half a unit in the last place of C. Another one is too small for the window, so
    that only the sticky bit remains of it, which decides the rounding.

    Parameters
    ----------
    a, b, c : (count, m, K), (count, n, K) and (count, m, n) ndarray of codes
    """
    count, out = len(a), spec.output
    top = min(2 * spec.input.emax + spec.result.bits, out.emax)
    low = 2 * (spec.input.emin - spec.input.fraction_bits) + (spec.sum.window or 0) + 3
    low = max(low, out.emin)  # C is normal
    exponent = rng.integers(min(low, top), top + 1, count)
    small = exponent - (spec.sum.window or 0) - rng.integers(1, 4, count)
    sizes = [exponent - spec.result.bits - 1, small][: spec.k]
    # All other products are (+0)·(−0) = −0, which changes no sum.
    a[:], b[:] = 0, spec.input_b.sign_mask
    for lane, size in enumerate(sizes):
        part = size // 2
        a[:, :, lane] = _power(rng, spec.input, part, a.shape[1])
        b[:, :, lane] = _power(rng, spec.input_b, size - part, b.shape[1])
    field = np.clip(exponent + out.bias, 1, out.exponent_ones - 1).astype(c.dtype)
    fraction = c & c.dtype.type(out.fraction_mask | out.sign_mask)
    c[:] = fraction | field[:, None, None] << c.dtype.type(out.fraction_bits)


def _power(
    rng: np.random.Generator, format: FloatFormat, exponent: np.ndarray, rows: int
) -> np.ndarray:
    """Return codes (count, rows) of 2**exponent, clipped to the format, with random signs."""
    exponent = np.clip(exponent, format.emin - format.fraction_bits, format.emax).astype(np.int64)
    below = np.minimum(exponent - format.emin, 0) + format.fraction_bits
    field = np.maximum(exponent + format.bias, 0) << format.fraction_bits
    code = np.where(exponent < format.emin, 1 << np.maximum(below, 0), field)
    sign = rng.integers(0, 2, (len(exponent), rows)) << (format.width - 1)
    return (code[:, None] | sign) << format.storage_shift


def _codes(
    rng: np.random.Generator,
    format: FloatFormat,
    center: np.ndarray,
    spread: np.ndarray,
    sparse: np.ndarray,
    shape: tuple[int, int],
) -> np.ndarray:
    """Return finite codes (count, *shape) with exponents near ``center``.

    Numbers with an exponent below emin are subnormal. In beats where ``sparse`` is True, fractions
    have at most two bits set, so that many sums are ties.
    """
    full, ones = (len(center), *shape), format.exponent_ones
    center, spread = center[:, None, None], spread[:, None, None]
    exponent = center + rng.integers(-spread, spread + 1, full)
    field = np.clip(exponent + format.bias, 0, ones - 1).astype(np.uint64)
    fraction = rng.integers(0, 1 << format.fraction_bits, full, dtype=np.uint64)
    two = [
        np.uint64(1) << rng.integers(0, format.fraction_bits, full, dtype=np.uint64) for _ in "ab"
    ]
    fraction = np.where(sparse[:, None, None], two[0] | two[1], fraction)
    sign = rng.integers(0, 2, full, dtype=np.uint64)
    code = (sign << np.uint64(format.exponent_bits) | field) << np.uint64(format.fraction_bits)
    code = (code | fraction) << np.uint64(format.storage_shift)
    return code.astype(f"u{format.storage_bits // 8}")


def _cancel(rng: np.random.Generator, spec: DotSpec, a: np.ndarray, b: np.ndarray) -> None:
    """Make the products of a fifth of the beats cancel in pairs, exactly or nearly, in place."""
    half = spec.k // 2
    if not half:
        return
    chosen = np.flatnonzero(rng.random(len(a)) < 0.2)
    sign, step = (a.dtype.type(x) for x in (spec.input.sign_mask, 1 << spec.input.storage_shift))
    # The second half of the terms repeats the first with the opposite sign; one in ten elements
    # differs in its last bit.
    twin = a[chosen, :, :half] ^ sign
    twin ^= np.where(rng.random(twin.shape) < 0.1, step, a.dtype.type(0))
    a[chosen, :, half : 2 * half] = twin
    b[chosen, :, half : 2 * half] = b[chosen, :, :half]


def _with_specials(rng: np.random.Generator, codes: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Put zeros, infinities, NaNs and the ends of the range into one beat in eight."""
    chosen = rng.random((len(codes), 1, 1)) < 0.125
    # About one special in each row of a chosen beat leaves other results finite.
    where = chosen & (rng.random(codes.shape) < 1 / codes.shape[2])
    return np.where(where, rng.choice(special_codes(format), codes.shape), codes).astype(
        codes.dtype
    )
