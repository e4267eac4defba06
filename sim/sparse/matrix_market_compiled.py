"""The compiled scanner of Matrix Market files.

It checks every character. The value of a number with few digits is exact here: an integer of at
most 53 bits times or over a power of ten up to 10²² has one rounding. The caller converts the rest.
Everything that is compiled must be in this file, because Numba's cache does not notice a change in
another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ends(text, at):
    """Return whether a word may end at a position."""
    return at == len(text) or text[at] == 32 or 9 <= text[at] <= 10 or text[at] == 13


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _whole(text, at):
    """Return a positive whole number, −1 if there is none, and the position behind it."""
    value, begin = 0, at
    while at < len(text) and 48 <= text[at] <= 57:
        if value < 1 << 40:
            value = value * 10 + (text[at] - 48)
        at += 1
    return value if at > begin else -1, at


@numba.njit(cache=True, nogil=True, error_model="numpy")
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
    if count > 19 or digits > np.uint64(1 << 53) or exponent > 22 or exponent < -22:
        return 0.0, 1, at
    value = np.float64(digits)
    value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
    return (-value if negative else value), 0, at


@numba.njit(cache=True, nogil=True, error_model="numpy")
def scan(
    text, at, places, values, whole, shape, symmetry, triangle, first, total,
    rows, columns, numbers, slow_entry, slow_begin, slow_end,
):  # fmt: skip
    """Read lines until all entries are read or the list of slow numbers is full.

    Parameters
    ----------
    text : (L,) ndarray of uint8
    at : int
        Where to begin: the begin of a line.
    places, values, whole : bool
        True if a line has a row and a column; if it has a value; if values are whole numbers.
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def copy_tokens(text, begin, end, out):
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
