"""Operands of the small units: all codes of small formats, random ones and edges of others."""

import numpy as np

from vitruvian.golden.fp import FORMATS, INT_FORMATS, FloatFormat, IntFormat
from vitruvian.sim.bench.fp.stimuli import special_codes


def _word(format: FloatFormat | IntFormat | str) -> tuple[FloatFormat | IntFormat, int, np.dtype]:
    f = (FORMATS | INT_FORMATS)[format] if isinstance(format, str) else format
    if isinstance(f, IntFormat):
        return f, f.bits, np.dtype(f"u{f.bits // 8}")
    return f, f.code_bits, np.dtype(f"u{f.storage_bits // 8}")


def every_code(format: FloatFormat | IntFormat | str) -> np.ndarray:
    """Return all codes of a format of at most 16 bits, in order."""
    _, bits, dtype = _word(format)
    return np.arange(1 << bits, dtype=np.uint32).astype(dtype)


def every_pair(format: FloatFormat | str) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of codes of a format of at most 8 bits."""
    all_codes = every_code(format)
    return np.repeat(all_codes, len(all_codes)), np.tile(all_codes, len(all_codes))


def _random(rng: np.random.Generator, bits: int, count: int) -> np.ndarray:
    words = rng.integers(0, 1 << 32, (2, count), dtype=np.uint64)
    return (words[0] << np.uint64(32) | words[1]) >> np.uint64(64 - bits)


def codes(format: FloatFormat | IntFormat | str, count: int, *, seed: int) -> np.ndarray:
    """Return codes of one operand.

    For a format of at most 16 bits these are all codes. For a larger one they are random bit
    patterns, edges of the format, and numbers whose lower bits are a tie, or next to a tie, at a
    random position. The exponents of floating-point numbers are often near those of the narrow
    formats, and integers have all magnitudes.

    Parameters
    ----------
    format : FloatFormat, IntFormat or str
    count : int
        Number of codes for a format of more than 16 bits.

    Returns
    -------
    (count,) or (2**bits,) ndarray of codes
    """
    f, bits, dtype = _word(format)
    if bits <= 16:
        return every_code(f)
    rng = np.random.default_rng(seed)
    x = _random(rng, bits, count)
    place = rng.integers(1, bits, count).astype(np.uint64)
    # A one at ``place`` with zeros below it is a tie; its neighbours are one above and one below.
    low = np.uint64(1) << place
    low_bits = rng.choice(np.array([0, 1, -1], np.int64), count).astype(np.uint64) + low
    low_bits &= (low << np.uint64(1)) - np.uint64(1)
    x = np.where(rng.random(count) < 0.6, x & ~((low << np.uint64(1)) - np.uint64(1)) | low_bits, x)
    if isinstance(f, IntFormat):
        shift = rng.integers(0, bits, count).astype(np.uint64)
        small = (x.astype(np.uint32).view(np.int32) >> shift.astype(np.int32)).view(np.uint32)
        edges = np.array([0, 1, f.maximum, f.minimum, f.minimum + 1, -1], np.int64)
        x = np.where(rng.random(count) < 0.6, small, x)
        special = rng.choice(edges, count).astype(np.uint64)
    else:
        near = rng.integers(-26, 34, count) + f.bias
        near = np.clip(near, 0, f.exponent_ones).astype(np.uint64)
        shift = np.uint64(f.fraction_bits + f.storage_shift)
        x = np.where(rng.random(count) < 0.6, x & ~np.uint64(f.exponent_mask) | near << shift, x)
        special = rng.choice(special_codes(f), count)
    x = np.where(rng.random(count) < 0.05, special, x)
    return (x & np.uint64((1 << bits) - 1)).astype(dtype)


def pairs(format: FloatFormat | str, count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of two operands.

    For a format of at most 8 bits these are all pairs. For a larger one there are five equally
    frequent kinds: random bit patterns; exponents close together; numbers that differ only in the
    sign and the last bits; edges of the format; and exponents whose sum is near an edge of it.

    Parameters
    ----------
    count : int
        Number of pairs for a format of more than 8 bits.

    Returns
    -------
    a, b : (count,) or (4**bits,) ndarray of codes
    """
    f, bits, dtype = _word(format)
    assert isinstance(f, FloatFormat)
    if bits <= 8:
        return every_pair(f)
    rng = np.random.default_rng(seed)
    shift = np.uint64(f.fraction_bits + f.storage_shift)
    mask = np.uint64(f.exponent_mask)
    a, b = _random(rng, bits, count), _random(rng, bits, count)
    field = (a & mask) >> shift
    kind = rng.integers(0, 5, count)

    def with_exponent(code: np.ndarray, value: np.ndarray) -> np.ndarray:
        value = np.clip(value, 0, f.exponent_ones).astype(np.uint64)
        return code & ~mask | value << shift

    # Sums whose operands differ by more than the fraction's width depend on the sticky bit only.
    few = rng.integers(-f.fraction_bits - 4, f.fraction_bits + 5, count)
    few = np.where(rng.random(count) < 0.5, rng.integers(-2, 3, count), few)
    close = with_exponent(b, field.astype(np.int64) + few)
    sign = np.uint64(f.sign_mask)
    step = rng.integers(0, 4, count).astype(np.uint64) << np.uint64(f.storage_shift)
    opposite = (a ^ step) ^ (sign * rng.integers(0, 2, count).astype(np.uint64))
    # Products near the least normal number, the overflow, and the least subnormal number.
    target = rng.choice(np.array([1, f.exponent_ones, 1 - f.fraction_bits]), count)
    target = target + rng.integers(-3, 4, count) + f.bias
    edge = with_exponent(b, target - field.astype(np.int64))
    sparse = np.uint64(1) << rng.integers(0, f.fraction_bits, count).astype(np.uint64)
    sparse = (sparse << np.uint64(f.storage_shift)) | np.uint64((1 << f.storage_shift) - 1)
    thin = rng.random(count) < 0.2  # few bits set: exact results and ties
    b = np.select([kind == 1, kind == 2, kind == 4], [close, opposite, edge], b)
    fraction = np.uint64(f.fraction_mask)
    b = np.where(thin, b & ~fraction | b & sparse & fraction, b)
    special = special_codes(f)
    a = np.where(kind == 3, rng.choice(special, count), a)
    # Some special codes meet an ordinary number.
    b = np.where((kind == 3) & (rng.random(count) < 0.7), rng.choice(special, count), b)
    swap = rng.random(count) < 0.5
    limit = np.uint64((1 << bits) - 1)
    return (np.where(swap, b, a) & limit).astype(dtype), (np.where(swap, a, b) & limit).astype(
        dtype
    )
