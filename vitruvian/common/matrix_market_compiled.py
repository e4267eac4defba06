"""The scanner of Matrix Market files, which ``vitruvian.common.compiling`` compiles.

It checks every character. Two methods round a number as Python does: an integer of at most 53 bits
times or over a power of ten up to 10²² has one rounding, and Lemire's product serves all but one in
256 of the other numbers with up to 19 digits. The caller converts the rest. Everything that is
compiled must be in this file, because Numba's cache does not notice a change in another file. A
small file is read by the same functions as plain Python.

References
----------
Lemire 2021: w·10^q from the upper half of the product of w and the first 64 bits of 5^q.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import math

import numpy as np

#: The ends of a scan: all entries, a full chunk, or a mistake
(
    DONE,
    MORE,
    BAD_ROW,
    BAD_COLUMN,
    BAD_VALUE,
    TOO_FEW,
    TOO_MANY,
    OTHER_TRIANGLE,
    DIAGONAL,
) = range(9)

_POWERS = np.array([10.0**k for k in range(23)])

#: Largest |q| of a number w·10^q that Lemire's product converts; no result is subnormal.
_MOST_EXPONENT = 64


def _power_of_five(q):
    """Return (t, s) with t·2^s ≤ 5^q < (t + 1)·2^s, and t of 64 bits."""
    if q >= 0:
        shift = (5**q).bit_length() - 64
        return (5**q >> shift if shift > 0 else 5**q << -shift), shift
    shift = 63 + (5**-q).bit_length()  # 2^shift is at least 2^63 times, and below 2^64 times, 5^−q
    return (1 << shift) // 5**-q, -shift


_FIVES = np.array(
    [_power_of_five(q)[0] for q in range(-_MOST_EXPONENT, _MOST_EXPONENT + 1)], np.uint64
)
_FIVES_SHIFT = np.array([_power_of_five(q)[1] for q in range(-_MOST_EXPONENT, _MOST_EXPONENT + 1)])

#: Words for an infinity in small letters, the longer one first
_INFINITIES = (np.frombuffer(b"infinity", np.uint8), np.frombuffer(b"inf", np.uint8))


def _ends(text, at):
    """Return whether a word may end at a position."""
    return at == len(text) or text[at] == 32 or 9 <= text[at] <= 10 or text[at] == 13


def _whole(text, at):
    """Return a positive whole number, −1 if there is none, and the position behind it."""
    value, begin = 0, at
    while at < len(text) and 48 <= text[at] <= 57:
        if value < 1 << 40:
            value = value * 10 + (text[at] - 48)
        at += 1
    return value if at > begin else -1, at


def _high_product(a, b):
    """Return the upper 64 bits of the product of two numbers of 64 bits."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half)


def _scaled(digits, exponent):
    """Return digits·10^exponent, rounded once, or NaN if the product leaves the rounding open.

    The power of five is cut off after 64 bits, so that the upper half of the product is too small
    by at most 1. Its lowest 9 bits lie below the bit that decides the rounding. If they are neither
    all ones nor all zeros, the missing 1 does not reach that bit, and the number is no tie.
    """
    left = 0
    for step in (32, 16, 8, 4, 2, 1):
        if digits >> np.uint64(64 - step) == 0:
            digits <<= np.uint64(step)
            left += step
    at = exponent + _MOST_EXPONENT
    high = _high_product(digits, _FIVES[at])
    low = high & np.uint64(0x1FF)
    if low == 0 or low == 0x1FF:
        return np.nan
    drop = 10 + np.int64(high >> np.uint64(63))
    # The first 54 bits are the significand and the bit that rounds it.
    rounded = ((high >> np.uint64(drop - 1)) + np.uint64(1)) >> np.uint64(1)
    return math.ldexp(np.float64(rounded), int(drop + 64 + _FIVES_SHIFT[at] + exponent - left))


def _infinity(text, at):
    """Return the infinity of a word and the position behind it, or 0 if it is another word."""
    negative = False
    if at < len(text) and (text[at] == 43 or text[at] == 45):
        negative = text[at] == 45
        at += 1
    for word in _INFINITIES:
        end = at
        while end < len(text) and end - at < len(word) and (text[end] | 32) == word[end - at]:
            end += 1
        if end - at == len(word):
            return (-np.inf if negative else np.inf), end
    return 0.0, at


def _number(text, at, whole):
    """Return (value, kind, position behind) of a number: kind 0 exact, 1 not computed, 2 wrong."""
    negative = False
    if at < len(text) and (text[at] == 43 or text[at] == 45):
        negative = text[at] == 45
        at += 1
    digits, exponent, count, any_digit, point = np.uint64(0), 0, 0, False, False
    while at < len(text):
        c = text[at]
        if 48 <= c <= 57:
            any_digit = True
            if count < 19:
                digits = digits * np.uint64(10) + np.uint64(c - 48)
                if digits > 0:
                    count += 1
                if point:
                    exponent -= 1
            else:
                count += 1  # too many digits: the caller converts
        elif c == 46 and not point and not whole:
            point = True
        else:
            break
        at += 1
    if not any_digit:
        return 0.0, 2, at
    if at < len(text) and (text[at] == 101 or text[at] == 69) and not whole:
        at += 1
        minus = False
        if at < len(text) and (text[at] == 43 or text[at] == 45):
            minus = text[at] == 45
            at += 1
        power, at = _whole(text, at)
        if power < 0:
            return 0.0, 2, at
        exponent += -power if minus else power
    if digits == 0 and count == 0:
        return (-0.0 if negative else 0.0), 0, at
    if count > 19 or exponent > _MOST_EXPONENT or exponent < -_MOST_EXPONENT:
        return 0.0, 1, at
    if digits <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        value = np.float64(digits)
        value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
    else:
        value = _scaled(digits, exponent)
        if math.isnan(value):
            return 0.0, 1, at
    return (-value if negative else value), 0, at


def scan(
    text: bytes | np.ndarray, at: int,
    places: bool, values: bool, whole: bool, infinite: bool,
    shape: np.ndarray, symmetry: int, triangle: int, first: int, total: int,
    rows: np.ndarray, columns: np.ndarray, numbers: np.ndarray,
    slow_entry: np.ndarray, slow_begin: np.ndarray, slow_end: np.ndarray,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Read lines until all entries are read or the list of slow numbers is full.

    Parameters
    ----------
    text : (L,) ndarray of uint8, or bytes if it is not compiled
    at : int
        Where to begin: the begin of a line.
    places, values, whole, infinite : bool
        True if a line has a row and a column; if it has a value; if values are whole numbers; if
        they may be infinite.
    shape : (2,) ndarray of int64
    symmetry : int
        0 general, 1 symmetric, 2 skew-symmetric.
    triangle : int
        The triangle that the entries so far are in: 1 lower, −1 upper, 0 unknown.
    first, total : int
        Entries that have been read, and those that there must be.
    rows, columns : (total,) ndarray of int32
        They receive indices from 0.
    numbers : (total,) ndarray of float64
    slow_entry, slow_begin, slow_end : (S,) ndarray of int64
        They receive the entries whose values the caller must convert, and where their texts are.

    Returns
    -------
    state, at, count, triangle, slow : int
        How the scan ended, where it ended or the mistake is, entries read, the triangle, and the
        number of slow values.
    """
    count, slow = first, 0
    while at < len(text):
        while at < len(text) and (text[at] == 32 or text[at] == 9 or text[at] == 13):
            at += 1
        if at == len(text):
            break
        if text[at] == 10:
            at += 1
            continue
        if count == total:
            return TOO_MANY, at, count, triangle, slow
        if slow == len(slow_entry):
            return MORE, at, count, triangle, slow
        line = at
        if places:
            for part in range(2):
                while at < len(text) and (text[at] == 32 or text[at] == 9 or text[at] == 13):
                    at += 1
                if at == len(text) or text[at] == 10:
                    return TOO_FEW, line, count, triangle, slow
                index, end = _whole(text, at)
                if index < 1 or index > shape[part] or not _ends(text, end):
                    return BAD_COLUMN if part else BAD_ROW, at, count, triangle, slow
                if part:
                    columns[count] = index - 1
                else:
                    rows[count] = index - 1
                at = end
            if symmetry > 0:
                side = rows[count] - columns[count]
                if side == 0 and symmetry == 2:
                    return DIAGONAL, line, count, triangle, slow
                if side * triangle < 0:
                    return OTHER_TRIANGLE, line, count, triangle, slow
                if side != 0:
                    triangle = 1 if side > 0 else -1
        if values:
            while at < len(text) and (text[at] == 32 or text[at] == 9 or text[at] == 13):
                at += 1
            if at == len(text) or text[at] == 10:
                return TOO_FEW, line, count, triangle, slow
            value, kind, end = _number(text, at, whole)
            if kind == 2 and infinite:
                value, end = _infinity(text, at)
                kind = 0 if value != 0 else 2
            if kind == 2 or not _ends(text, end):
                return BAD_VALUE, at, count, triangle, slow
            numbers[count] = value
            if kind == 1:
                slow_entry[slow], slow_begin[slow], slow_end[slow] = count, at, end
                slow += 1
            at = end
        while at < len(text) and (text[at] == 32 or text[at] == 9 or text[at] == 13):
            at += 1
        if at < len(text) and text[at] != 10:
            return TOO_MANY, line, count, triangle, slow
        count += 1
    return (DONE if count == total else TOO_FEW), at, count, triangle, slow


def copy_tokens(text: np.ndarray, begin: np.ndarray, end: np.ndarray, out: np.ndarray) -> None:
    """Copy texts into rows of an array of zeros.

    Parameters
    ----------
    text : (L,) ndarray of uint8
    begin, end : (S,) ndarray of int64
    out : (S, W) ndarray of uint8
    """
    for i in range(len(begin)):
        for k in range(end[i] - begin[i]):
            out[i, k] = text[begin[i] + k]
