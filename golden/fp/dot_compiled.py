"""A compiled version of ``golden.fp.plain.plain_sum`` for sums that do not fit into an int64.

The sum is held in 32-bit limbs, each in an int64 word, so that carries are propagated only once,
after all terms have been added. Everything that is compiled must be in this file, because Numba's
cache does not notice a change in another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

from typing import NamedTuple

import numba
import numpy as np

from vitruvian.golden.fp.round import JAM_BITS
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.fp.terms import Terms

_LOW = np.uint64(0xFFFFFFFF)
_LIMB = np.uint64(32)  # bits
_NO_TERM = 1 << 20  # beyond the exponents of all terms


class _Terms(NamedTuple):
    """The fields of ``golden.fp.terms.Terms``: significands in int64, exponents in int32."""

    sig_a: np.ndarray
    exp_a: np.ndarray
    sig_b: np.ndarray
    exp_b: np.ndarray
    sig_c: np.ndarray
    exp_c: np.ndarray
    emax: np.ndarray


class _Rule(NamedTuple):
    """The numbers of a ``DotSpec``, in a form that compiled functions accept."""

    fraction_p: int  # fraction bits of a product
    fraction_c: int
    window: int  # −1 if there is none
    floor: bool


class _Sums(NamedTuple):
    """The results, as ``plain_sum`` describes them."""

    sign: np.ndarray
    magnitude: np.ndarray
    exponent: np.ndarray


def compiled_sum(terms: Terms, spec: DotSpec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what ``plain_sum`` with ``wide=True`` returns for the same arguments.

    No nonzero term may have an exponent above E_max, because the sum has no limbs for it.
    """
    n = len(terms.sig_c)
    sums = _Sums(np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64))
    rule = _Rule(
        fraction_p=spec.input.fraction_bits + spec.input_b.fraction_bits,
        fraction_c=spec.output.fraction_bits,
        window=-1 if spec.sum.window is None else spec.sum.window,
        floor=spec.sum.truncate == "floor",
    )
    fields = {
        name: np.ascontiguousarray(field, np.int64 if name.startswith("sig") else np.int32)
        for name, field in terms._asdict().items()
    }
    _sums(_Terms(**fields), rule, sums)
    return sums


@numba.njit(cache=True, nogil=True)
def _sums(terms, rule, sums):
    """Compute all sums, one after the other."""
    sig_a, exp_a, sig_b, exp_b, sig_c, exp_c, _ = terms
    products = len(sig_a)
    units, limbs = _bounds(terms, rule)
    term = np.zeros(4, np.uint64)  # limbs of the magnitude of a term
    # One accumulator serves all sums. If the loop replaced it by a longer one when needed, Numba
    # would count references to it at each call below, which takes longer than the additions.
    acc = np.zeros(limbs.max(), np.int64)
    for i in range(len(sig_c)):
        unit, length = units[i], limbs[i]
        for j in range(length):
            acc[j] = 0
        sticky = False
        for k in range(products + 1):
            if k < products:
                x, y = sig_a[k, i], sig_b[k, i]
                last = exp_a[k, i] + exp_b[k, i] - rule.fraction_p
                negative = (x < 0) != (y < 0)
                _multiply(term, np.uint64(abs(x)), np.uint64(abs(y)))
            else:
                x = y = sig_c[i]
                last = exp_c[i] - rule.fraction_c
                negative = x < 0
                _multiply(term, np.uint64(abs(x)), np.uint64(1))
            if x == 0 or y == 0:
                continue
            left = last - unit
            if left < 0:
                cut = _shift_right(term, -left)
                sticky |= cut
                # The floor of a negative number is one below its truncated magnitude.
                if cut and negative and rule.floor:
                    acc[0] -= 1
                left = 0
            _add(acc, term, left, negative)
        negative = _normalize(acc, length, 1, 0) < 0
        factor = -1 if negative else 1
        if rule.floor:
            # The sticky bit s is appended, which halves the unit. If the sum Σ is negative, the
            # magnitude is −(2·Σ + s) = 2·|Σ| − s.
            _normalize(acc, length, 2 * factor, factor * np.int64(sticky))
            unit -= 1
        elif negative:
            _normalize(acc, length, factor, 0)
        magnitude, drop = _jam(acc, length)
        sums.sign[i] = negative
        sums.magnitude[i] = magnitude
        sums.exponent[i] = unit + drop


@numba.njit
def _bounds(terms, rule):
    """Return the exponent of each sum's unit q, and the number of limbs that hold the sum."""
    unit, top = terms.emax - rule.window, terms.emax + 2
    if rule.window < 0:
        unit[:], top[:] = _NO_TERM, -_NO_TERM
        for k in range(len(terms.sig_a)):
            there = (terms.sig_a[k] != 0) & (terms.sig_b[k] != 0)
            last = terms.exp_a[k] + terms.exp_b[k] - rule.fraction_p
            _widen(unit, top, there, last, rule.fraction_p + 2)
        last = terms.exp_c - rule.fraction_c
        _widen(unit, top, terms.sig_c != 0, last, rule.fraction_c + 2)
    limbs = np.empty(len(unit), np.int64)
    for i in range(len(unit)):
        if unit[i] == _NO_TERM:
            unit[i] = top[i] = 0
        limbs[i] = max(top[i] - unit[i], rule.fraction_p + 2, rule.fraction_c + 1) // 32 + 4
    return unit, limbs


@numba.njit
def _widen(unit, top, there, last, bits):
    """Extend the range of exponents of each sum to a term of so many bits, if it is not zero."""
    for i in range(len(last)):
        unit[i] = min(unit[i], last[i] if there[i] else _NO_TERM)
        top[i] = max(top[i], last[i] + bits if there[i] else -_NO_TERM)


@numba.njit
def _multiply(term, x, y):
    """Set a term to x · y of up to 61 bits each, formed from their 32-bit halves."""
    x0, x1, y0, y1 = x & _LOW, x >> _LIMB, y & _LOW, y >> _LIMB
    low, middle, high = x0 * y0, x0 * y1 + x1 * y0, x1 * y1
    middle += low >> _LIMB
    high += middle >> _LIMB
    term[0], term[1] = low & _LOW, middle & _LOW
    term[2], term[3] = high & _LOW, high >> _LIMB


@numba.njit
def _add(acc, term, left, negative):
    """Add ± term · 2^left to the sum, without carries from limb to limb."""
    limb, bits = left // 32, np.uint64(left % 32)
    for j in range(4):
        if term[j] != 0:
            shifted = term[j] << bits
            low, high = np.int64(shifted & _LOW), np.int64(shifted >> _LIMB)
            if negative:
                acc[limb + j] -= low
                acc[limb + j + 1] -= high
            else:
                acc[limb + j] += low
                acc[limb + j + 1] += high


@numba.njit
def _shift_right(term, right):
    """Shift a term right in place; return True if a bit is lost."""
    right = min(right, 128)
    limbs, bits = right // 32, np.uint64(right % 32)
    lost = False
    for j in range(limbs):
        lost |= term[j] != 0
    if limbs < 4:
        lost |= term[limbs] & ((np.uint64(1) << bits) - np.uint64(1)) != 0
    for j in range(4):
        lower = term[j + limbs] if j + limbs < 4 else np.uint64(0)
        upper = term[j + limbs + 1] if j + limbs < 3 else np.uint64(0)
        term[j] = (lower | upper << _LIMB) >> bits & _LOW
    return lost


@numba.njit
def _normalize(acc, limbs, factor, carry):
    """Set the sum to factor · sum + carry with limbs of 32 bits; return the last carry.

    The last carry is −1 if the result is negative, otherwise 0.
    """
    carry = np.int64(carry)
    for j in range(limbs):
        carry += factor * acc[j]
        acc[j] = carry & 0xFFFFFFFF
        carry >>= 32
    return carry


@numba.njit
def _jam(acc, limbs):
    """Return the top 60 bits of a sum, and the number of bits below them.

    As in ``golden.fp.round.jam``, the last bit is the OR of itself and of all bits below.
    """
    top = limbs - 1
    while top > 0 and acc[top] == 0:
        top -= 1
    # A limb is exact as a float64, whose exponent gives the bit length.
    bits = max((np.float64(acc[top]).view(np.int64) >> 52) - 1022, 0)
    drop = max(32 * top + bits - JAM_BITS, 0)
    first, bits = drop // 32, drop % 32
    value = np.uint64(0)
    for j in range(3):
        if first + j < limbs:
            limb = np.uint64(acc[first + j])
            if j == 0:
                value |= limb >> np.uint64(bits)
            elif 32 * j - bits < 64:
                value |= limb << np.uint64(32 * j - bits)
    lost = acc[first] & ((np.int64(1) << bits) - 1) != 0
    for j in range(first):
        lost |= acc[j] != 0
    return np.int64(value) | np.int64(lost), drop
