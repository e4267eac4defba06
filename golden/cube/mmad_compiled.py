"""A compiled version of ``golden.cube.mmad.plain_mmad`` for floating point with a window.

Operands are decoded once. A row of D is computed in strips, with several passes over a strip, each
a loop without branches. Sums of up to 59 bits are held in an int64, longer sums in two 64-bit
words. Everything that is compiled must be in this file, because Numba's cache does not notice a
change in another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import as_codes, code_dtype, unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.plain import sum_bits
from vitruvian.golden.fp.spec import DotSpec

_LANES = 128  # elements in a strip
_JAM = 60  # bits of a sum before it is rounded; the last one is the OR of all bits below
_LIMB = (1 << 27) - 1
# Codes of at most so many bits are decoded with a table, if an array has at most so many of them
_LOOKED_UP_BITS, _LOOKED_UP = 16, 1 << 12

# Marks in place of the exponent of a zero, an infinity and a NaN. They still show after the
# exponents of two factors are added: the sum is below _ALL_ZERO for a zero product, above
# _ANY_INFINITY for an infinity or NaN, between _ANY_INFINITY and _ZERO_TIMES for ∞·0 (which is a
# NaN), and above _ANY_NAN if a factor is a NaN.
_ZERO, _INFINITY, _NAN = -(1 << 20), 1 << 22, 1 << 25
_ALL_ZERO, _ANY_INFINITY, _ZERO_TIMES, _ANY_NAN = -(1 << 19), 1 << 21, 7 << 19, 1 << 24


class _Operand(NamedTuple):
    """A stack of decoded matrices."""

    significand: np.ndarray  # signed; 0 for infinity and NaN
    exponent: np.ndarray  # or a mark
    negative: np.ndarray


class _Rule(NamedTuple):
    """The numbers of a ``DotSpec``, in a form that compiled functions accept."""

    k: int
    floor: bool
    nearest: bool
    window: int
    emax_floor: int
    fraction_p: int
    fraction_c: int
    result_bits: int
    emin: int
    emax: int
    exponent_ones: int
    has_infinity: bool
    storage_shift: int
    sign_shift: int
    max_finite: np.uint64
    overflow: np.uint64
    nan: np.uint64
    minus_zero: bool  # True if a zero result can be −0


class _Strip(NamedTuple):
    """Working arrays with one entry for each element of a strip of D."""

    code: np.ndarray  # C, then D
    significand: np.ndarray  # of C
    exponent: np.ndarray
    emax: np.ndarray
    special: np.ndarray  # True if a term is an infinity or NaN, or if all terms are zero
    high: np.ndarray  # the sum, or the upper word of a long sum
    low: np.ndarray  # the lower word of a long sum
    lost: np.ndarray  # nonzero if bits were cut off


def compiled_mmad(a: ArrayLike, b: ArrayLike, c: ArrayLike, spec: DotSpec) -> np.ndarray:
    """Return what ``plain_mmad`` returns, for a spec that ``golden.cube.mmad.fits``."""
    a, b = as_codes(a, spec.input, "a"), as_codes(b, spec.input_b, "b")
    c = as_codes(c, spec.output, "c")
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    m, n = a.shape[-2], b.shape[-1]
    d = np.broadcast_to(c, (*lead, m, n)).astype(np.uint64, order="C").reshape(-1, m, n)
    indices = [_matrix_indices(x.shape[:-2], lead) for x in (a, b)]
    left, right = _decoded(a, spec.input), _decoded(b, spec.input_b)
    # If D is narrow, Dᵀ = Cᵀ + Bᵀ·Aᵀ has longer strips. Products commute and the order of the terms
    # does not matter to a fused sum, so every bit is the same.
    swap = n < min(m, _LANES)
    if swap:
        left, right = _Operand(*map(_swapped, right)), _Operand(*map(_swapped, left))
        indices.reverse()
        d = _swapped(d)
    narrow = sum_bits(spec, min(spec.k, a.shape[-1])) < 60
    _matrices(left, right, d, indices[0], indices[1], _rule(spec), narrow)
    if swap:
        d = np.swapaxes(d, 1, 2)
    return d.astype(code_dtype(spec.output)).reshape(*lead, m, n)


def _swapped(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.swapaxes(array, 1, 2))


def _matrix_indices(own: tuple[int, ...], lead: tuple[int, ...]) -> np.ndarray:
    """Return, for each matrix of a stack of shape ``lead``, its index in a stack of shape ``own``.

    ``own`` broadcasts to ``lead``; both stacks are counted in C order.
    """
    if not lead:
        return np.zeros(1, np.int64)
    return np.broadcast_to(np.arange(prod(own)).reshape(own), lead).flatten()


def _decoded(codes: np.ndarray, format: FloatFormat) -> _Operand:
    """Decode codes; a small array of narrow codes is looked up in a table."""
    codes = codes.reshape(-1, *codes.shape[-2:])
    if format.storage_bits > _LOOKED_UP_BITS or codes.size > _LOOKED_UP:
        return _decode(codes, format)
    table = _table(format)
    return _Operand(*(column.take(codes) for column in table))


@lru_cache(8)
def _table(format: FloatFormat) -> _Operand:
    codes = np.arange(1 << format.code_bits).astype(code_dtype(format))
    return _Operand(*(column.ravel() for column in _decode(codes[None, None], format)))


def _decode(codes: np.ndarray, format: FloatFormat) -> _Operand:
    u = unpack(np.ascontiguousarray(codes), format)
    exponent = np.where(u.significand == 0, _ZERO, u.exponent)
    exponent[u.infinity] = _INFINITY
    exponent[u.nan] = _NAN
    significand = np.where(u.sign, -u.significand, u.significand)
    return _Operand(significand, exponent.astype(np.int32), u.sign)


@lru_cache(64)
def _rule(spec: DotSpec) -> _Rule:
    out = spec.output
    assert spec.sum.window is not None  # as ``fits`` demands
    return _Rule(
        k=spec.k,
        floor=spec.sum.truncate == "floor",
        nearest=spec.result.rounding == "RNE",
        window=spec.sum.window,
        emax_floor=-(1 << 30) if spec.sum.floor is None else spec.sum.floor,
        fraction_p=spec.input.fraction_bits + spec.input_b.fraction_bits,
        fraction_c=out.fraction_bits,
        result_bits=spec.result.bits,
        emin=out.emin,
        emax=out.emax,
        exponent_ones=out.exponent_ones,
        has_infinity=out.has_infinity,
        storage_shift=out.storage_shift,
        sign_shift=out.width - 1 + out.storage_shift,
        max_finite=np.uint64(out.max_finite),
        overflow=np.uint64(out.overflow if out.has_infinity else spec.nan_code),
        nan=np.uint64(spec.nan_code),
        minus_zero=spec.result.zero == "ieee",
    )


@numba.njit(cache=True, nogil=True)
def _matrices(left, right, d, left_indices, right_indices, rule, narrow):
    """Add to each matrix of D the product of one matrix of ``left`` and one of ``right``.

    The two index arrays, with an entry for each matrix of D, select the factors.
    """
    strip = _Strip(
        np.empty(_LANES, np.uint64),
        np.empty(_LANES, np.int64),
        np.empty(_LANES, np.int32),
        np.empty(_LANES, np.int32),
        np.empty(_LANES, np.bool_),
        np.empty(_LANES, np.int64),
        np.empty(_LANES, np.uint64),
        np.empty(_LANES, np.uint64),
    )
    _, rows, columns = d.shape
    terms = left.exponent.shape[2]
    for i in range(len(d)):
        p, q = left_indices[i], right_indices[i]
        for start in range(0, columns, _LANES):
            end = min(start + _LANES, columns)
            lanes = end - start
            for row in range(rows):
                strip.code[:lanes] = d[i, row, start:end]
                for first in range(0, terms, rule.k):
                    block = slice(first, min(first + rule.k, terms))
                    x, y = left.significand[p, row, block], right.significand[q, block, start:end]
                    e, f = left.exponent[p, row, block], right.exponent[q, block, start:end]
                    if _align(e, f, strip, rule):
                        negative = right.negative[q, block, start:end]
                        _specials(e, left.negative[p, row, block], f, negative, strip, rule)
                    if narrow:
                        _short_sum(x, e, y, f, strip, rule)
                    else:
                        _long_sum(x, e, y, f, strip, rule)
                d[i, row, start:end] = strip.code[:lanes]


@numba.njit
def _align(exp_a, exp_b, strip, rule):
    """Decode C and find each element's E_max; return True if an element is special."""
    terms, lanes = exp_b.shape
    ones = np.uint64(rule.exponent_ones)
    hidden = np.uint64(1) << np.uint64(rule.fraction_c)
    for j in range(lanes):
        bits = strip.code[j] >> np.uint64(rule.storage_shift)
        field = bits >> np.uint64(rule.fraction_c) & ones
        fraction = bits & (hidden - np.uint64(1))
        negative = _sign(strip.code[j], rule)
        # Without infinities (OCP E4M3), only the all-ones fraction is a NaN.
        if field == ones and (rule.has_infinity or fraction == hidden - np.uint64(1)):
            exponent = _INFINITY if fraction == 0 else _NAN
        elif field == 0 and fraction == 0:
            exponent = _ZERO
        else:
            exponent = max(np.int64(field), 1) - 1 + rule.emin
        significand = np.int64(fraction | hidden if field != 0 else fraction)
        strip.significand[j] = -significand if negative else significand
        strip.exponent[j] = exponent
        strip.emax[j] = exponent
    for k in range(terms):
        for j in range(lanes):
            strip.emax[j] = max(strip.emax[j], exp_a[k] + exp_b[k, j])
    special = False
    for j in range(lanes):
        emax = strip.emax[j]
        # If all terms are zero, the result depends on their signs alone, as it does for infinities.
        strip.special[j] = emax > _ANY_INFINITY or emax < _ALL_ZERO
        special |= strip.special[j]
        strip.emax[j] = max(0 if strip.special[j] else emax, rule.emax_floor)
    return special


@numba.njit
def _sign(code, rule):
    return code >> np.uint64(rule.sign_shift) & np.uint64(1) != 0


@numba.njit
def _specials(exp_a, neg_a, exp_b, neg_b, strip, rule):
    """Compute the D of the special elements: infinity, NaN or zero."""
    for j in range(exp_b.shape[1]):
        if not strip.special[j]:
            continue
        exponent = np.int64(strip.exponent[j])
        negative = _sign(strip.code[j], rule)
        nan = exponent > _ANY_NAN
        positive_infinity = exponent > _ANY_INFINITY and not negative
        negative_infinity = exponent > _ANY_INFINITY and negative
        minus = negative
        for k in range(len(exp_a)):
            exponent = np.int64(exp_a[k]) + exp_b[k, j]
            negative = neg_a[k] != neg_b[k, j]
            minus &= negative
            if exponent > _ANY_INFINITY:
                nan |= exponent > _ANY_NAN or exponent < _ZERO_TIMES
                positive_infinity |= not negative
                negative_infinity |= negative
        infinity = positive_infinity or negative_infinity
        if nan or (positive_infinity and negative_infinity):
            strip.code[j] = rule.nan
        else:
            minus = negative_infinity if infinity else minus and rule.minus_zero
            code = rule.overflow if infinity else np.uint64(0)
            if minus and (rule.has_infinity or not infinity):
                code |= np.uint64(1) << np.uint64(rule.sign_shift)
            strip.code[j] = code


@numba.njit
def _short_sum(sig_a, exp_a, sig_b, exp_b, strip, rule):
    """Add the truncated terms in 64 bits and round the sum to D."""
    terms, lanes = exp_b.shape
    # A term with the exponent E_max is shifted left by window − fraction bits (right if negative),
    # any other term to the right of that by the difference of the exponents.
    up, down = max(rule.window - rule.fraction_c, 0), max(rule.fraction_c - rule.window, 0)
    for j in range(lanes):
        right = strip.emax[j] - strip.exponent[j] + down
        value = strip.significand[j] << up
        strip.high[j], strip.lost[j] = _cut(value, right, rule.floor)
    up, down = max(rule.window - rule.fraction_p, 0), max(rule.fraction_p - rule.window, 0)
    for k in range(terms):
        for j in range(lanes):
            right = strip.emax[j] - exp_a[k] - exp_b[k, j] + down
            kept, lost = _cut(sig_a[k] * sig_b[k, j] << up, right, rule.floor)
            strip.high[j] += kept
            strip.lost[j] |= lost
    for j in range(lanes):
        unit = strip.emax[j] - rule.window
        total = strip.high[j]
        if rule.floor:
            # ``DotSpec``: 2·Σ + sticky, in units of q/2. The sum was rounded down, so the sticky
            # bit is added for negative sums, too.
            total = 2 * total + (strip.lost[j] != 0)
            unit -= 1
        code = _round(total < 0, abs(total), unit, rule)
        strip.code[j] = strip.code[j] if strip.special[j] else code


@numba.njit
def _cut(value, right, floor):
    """Return value / 2^right as an integer, and the bits that floor cuts off."""
    right = np.int64(min(max(right, 0), 63))
    if floor:
        kept = value >> right
        return kept, np.uint64(value - (kept << right))
    # Truncated magnitudes lose bits without a trace.
    kept = abs(value) >> right
    return -kept if value < 0 else kept, np.uint64(0)


@numba.njit
def _bit_length(x):
    """Return the bit length of an unsigned integer."""
    # One 32-bit half is exact as a float64, whose exponent gives the bit length.
    upper = x >> np.uint64(32)
    half = np.float64(np.int64(x if upper == 0 else upper))
    bits = max((half.view(np.int64) >> 52) - 1022, 0)
    return bits if upper == 0 else bits + 32


@numba.njit
def _round(negative, magnitude, exponent, rule):
    """Return the code of a number, as ``golden.fp.round.round_pack`` does."""
    bits = rule.result_bits
    # The last place of a subnormal result is that of the smallest normal number.
    top = exponent + _bit_length(np.uint64(magnitude)) - 1 if magnitude != 0 else rule.emin
    place = max(top, rule.emin) - bits
    left = min(max(exponent - place, 0), 63)
    right = min(max(place - exponent, 0), 61)
    magnitude <<= left
    kept = magnitude >> right
    if rule.nearest:
        twice = (magnitude - (kept << right)) << 1
        kept += twice + (kept & 1) > np.int64(1) << right
    spare = rule.fraction_c - bits
    # The hidden bit of ``kept`` is added to the exponent field, which is therefore one too small
    # before: a significand that rounds up to 2 increments the exponent without a special case.
    number = np.uint64(((min(place + bits, rule.emax + 1) - rule.emin) << bits) + kept)
    shift = np.uint64(spare + rule.storage_shift)
    over = number > rule.max_finite >> shift
    code = rule.overflow if over else number << shift
    sign = negative and (rule.has_infinity or not over) and (number != 0 or rule.minus_zero)
    return code | np.uint64(sign) << np.uint64(rule.sign_shift)


@numba.njit
def _long_sum(sig_a, exp_a, sig_b, exp_b, strip, rule):
    """Do what ``_short_sum`` does, with sums of two 64-bit words."""
    terms, lanes = exp_b.shape
    up, down = max(rule.window - rule.fraction_c, 0), max(rule.fraction_c - rule.window, 0)
    for j in range(lanes):
        right = strip.emax[j] - strip.exponent[j] + down
        value = strip.significand[j]
        high, low = _left(value >> 63, np.uint64(value), up)
        strip.high[j], strip.low[j], strip.lost[j] = _cut_long(high, low, right, rule.floor)
    up, down = max(rule.window - rule.fraction_p, 0), max(rule.fraction_p - rule.window, 0)
    for k in range(terms):
        for j in range(lanes):
            right = strip.emax[j] - exp_a[k] - exp_b[k, j] + down
            high, low = _product(sig_a[k], sig_b[k, j])
            high, low = _left(high, low, up)
            high, low, lost = _cut_long(high, low, right, rule.floor)
            low += strip.low[j]
            # An unsigned sum below one of its summands has wrapped, that is, has a carry.
            strip.high[j] += high + (low < strip.low[j])
            strip.low[j] = low
            strip.lost[j] |= lost
    for j in range(lanes):
        unit = strip.emax[j] - rule.window
        high, low = strip.high[j], strip.low[j]
        if rule.floor:
            high, low = _left(high, low, 1)
            low |= np.uint64(strip.lost[j] != 0)
            unit -= 1
        negative = high < 0
        high, low = _magnitude(high, low)
        # ``_round`` takes one word, so all but the top bits are replaced by a sticky bit.
        drop = max(_bit_length(np.uint64(high)) + 64 - _JAM, 0)
        if high == 0:
            drop = max(_bit_length(low) - _JAM, 0)
        _, low, lost = _right(high, low, drop)
        code = _round(negative, np.int64(low | np.uint64(lost != 0)), unit + drop, rule)
        strip.code[j] = strip.code[j] if strip.special[j] else code


@numba.njit
def _product(x, y):
    """Return x·y of signed integers of up to 53 bits as (high int64, low uint64)."""
    # Each factor is x_high·2^27 + x_low; the three partial products have weights 2^54, 2^27 and 1.
    x_high, x_low, y_high, y_low = x >> 27, x & _LIMB, y >> 27, y & _LIMB
    top, middle, bottom = x_high * y_high, x_high * y_low + x_low * y_high, x_low * y_low
    low = np.uint64(top) << np.uint64(54)
    high = top >> 10
    part = np.uint64(middle) << np.uint64(27)
    low += part
    high += (middle >> 37) + (low < part)
    low += np.uint64(bottom)
    return high + (low < np.uint64(bottom)), low


@numba.njit
def _left(high, low, shift):
    """Shift two words left by 0 to 127."""
    if shift >= 64:
        return np.int64(low << np.uint64(shift - 64)), np.uint64(0)
    # Two shifts, because a shift by 64 (for ``shift`` = 0) is undefined.
    carried = low >> np.uint64(1) >> np.uint64(63 - shift)
    return high << shift | np.int64(carried), low << np.uint64(shift)


@numba.njit
def _right(high, low, shift):
    """Shift two words arithmetically right by 0 to 127; return also the bits that are lost."""
    far = shift >= 64
    near = np.uint64(shift - 64 if far else shift)
    from_low = np.uint64(high) if far else low
    from_high = high >> 63 if far else high
    lost = from_low & ((np.uint64(1) << near) - np.uint64(1))
    lost |= low if far else np.uint64(0)
    carried = np.uint64(from_high) << np.uint64(1) << (np.uint64(63) - near)
    return from_high >> np.int64(near), from_low >> near | carried, lost


@numba.njit
def _cut_long(high, low, right, floor):
    """Do what ``_cut`` does, on two words."""
    right = min(max(right, 0), 127)
    if floor:
        return _right(high, low, right)
    negative = high < 0
    high, low = _magnitude(high, low)
    high, low, _ = _right(high, low, right)
    if negative:
        high, low = _negative(high, low)
    return high, low, np.uint64(0)


@numba.njit
def _negative(high, low):
    return ~high + (low == 0), ~low + np.uint64(1)


@numba.njit
def _magnitude(high, low):
    return _negative(high, low) if high < 0 else (high, low)
