"""Compiled loops of Tenstorrent's MVMUL, which ``golden.machines.phases`` defines.

A number of the destination register (Dst) is an int32 with a sign, an exponent field of 8 bits and
23 fraction bits, whatever its format. Everything that is compiled must be in this file, because
Numba's cache does not notice a change in another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

#: The exponent field of a zero operand, below every sum of two others.
NO_FIELD = -(1 << 12)
STRIP = 256  # columns whose working arrays stay in the first-level cache
_TILE = 64  # rows of D between two steps
_TERMS, _GROUP = 16, 8  # terms of a step, and of a group that is aligned by itself
_SCALE = 13  # low bits that give a group's significand the unit of Dst
_FAR = 30  # a right shift after which nothing is left but rounding
_ONE = 1023 << 52  # the bits of 1.0 in FP64


@numba.njit(cache=True, nogil=True, error_model="numpy")
def phase_rows(
    a: np.ndarray,
    field_a: np.ndarray,
    b: np.ndarray,
    field_b: np.ndarray,
    d: np.ndarray,
    phases: int,
    adjust: int,
    drop: int,
    limit: int,
    largest: int,
    wormhole: bool,
) -> None:
    """Add A·B to D in place, in steps of 16 terms, each in up to four phases.

    Parameters
    ----------
    a, b : (2, M, K), (2, K, N) ndarray of int16
        Upper and lower slices of the significands, with the signs of the operands.
    field_a, field_b : (M, K), (K, N) ndarray of int16
        Exponent fields, ``NO_FIELD`` for a zero.
    d : (M, N) ndarray of int32
        C on input, D on output.
    phases, adjust : int
        Phases of a step, and what phase 0 adds to the sum of two exponent fields.
    drop : int
        Fraction bits that Dst has not: 0, 13 or 16.
    limit, largest : int
        Least exponent field of a result that is too large, and the number that replaces it.
    wormhole : bool
        If True, a sum of −1 is normalised wrongly (erratum).
    """
    m, terms = field_a.shape
    n = field_b.shape[1]
    tops = np.empty((2, STRIP), np.int16)
    sums = np.empty((2, STRIP), np.int32)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        lanes = end - start
        for top in range(0, m, _TILE):
            for first in range(0, terms, _TERMS):
                for i in range(top, min(top + _TILE, m)):
                    for g in range(2):
                        _largest(field_a[i], field_b, first + g * _GROUP, start, tops[g, :lanes])
                    for phase in range(phases):
                        p, q = a[phase & 1, i], b[phase >> 1]
                        for g in range(2):
                            begin = first + g * _GROUP
                            _add(
                                *(p, field_a[i], q, field_b, begin, start),
                                *(tops[g, :lanes], sums[g, :lanes]),
                            )
                        added = adjust - 5 * (phase & 1) - 7 * (phase >> 1)
                        _accumulate(
                            *(d[i, start:end], tops[0], sums[0], tops[1], sums[1], added),
                            *(drop, limit, largest, wormhole),
                        )


@numba.njit(error_model="numpy")
def _largest(field_a, field_b, first, start, top):
    """Find the largest sum of the exponent fields of two nonzero operands."""
    top[:] = 2 * NO_FIELD
    for k in range(first, first + _GROUP):
        e0, f0 = field_a[k], field_b[k]
        for j in range(len(top)):
            top[j] = max(top[j], np.int16(e0 + f0[start + j]))


@numba.njit(error_model="numpy")
def _add(a, field_a, b, field_b, first, start, top, total):
    """Add the products of a group, aligned to the largest one and rounded half up in magnitude."""
    total[:] = 0
    for k in range(first, first + _GROUP):
        e0, f0, p0, q0 = field_a[k], field_b[k], np.int32(a[k]), b[k]
        for j in range(len(total)):
            at = start + j
            product = np.int32(p0 * np.int32(q0[at]))
            places = np.int32(min(top[j] - (e0 + f0[at]), _FAR))
            magnitude = np.int32(np.int32((abs(product) << 1 >> places) + 1) >> 1)
            total[j] += np.int32(-magnitude if product < 0 else magnitude)


@numba.njit(error_model="numpy")
def _shifted(magnitude, places, down):
    """Return magnitude / 2^places rounded half up, or half down if ``down`` is 1."""
    half = np.int32(np.int32(1) << places) >> 1
    return np.int32(magnitude + half - (down & (places > 0))) >> places


@numba.njit(error_model="numpy")
def _term(magnitude, negative, places, down, short):
    """Return one of three numbers at their common exponent, rounded to the bits of Dst."""
    value = _shifted(magnitude, np.int32(min(places, _FAR)), down)
    if short:
        value = _shifted(value, np.int32(_SCALE), down & (value > 0)) << _SCALE
    return np.int32(-value if negative else value)


@numba.njit(error_model="numpy")
def _accumulate(c, top_0, sum_0, top_1, sum_1, added, drop, limit, largest, wormhole):
    """Add two groups to Dst, normalise and round half up."""
    floor = np.int32(max(added, 0))  # the exponent of a zero product
    short = drop > 0
    for j in range(len(c)):
        e0 = np.int32(max(np.int32(top_0[j] + added), floor))
        e1 = np.int32(max(np.int32(top_1[j] + added), floor))
        s0 = np.int32(sum_0[j] if e0 > 0 else 0)
        s1 = np.int32(sum_1[j] if e1 > 0 else 0)
        field = np.int32(c[j] >> 23 & 255)
        magnitude = np.int32(c[j] & 0x7FFFFF | 0x800000 if field else 0)
        common = np.int32(max(max(e0, e1), field))
        total = _term(np.int32(abs(s0) << _SCALE), s0 < 0, common - e0, s0 < 0, short)
        total += _term(np.int32(abs(s1) << _SCALE), s1 < 0, common - e1, s1 < 0, short)
        total += _term(magnitude, c[j] < 0, common - field, False, short)
        total = np.int32(total)
        # An FP64 number is normalised. Adding half of the last place that is kept rounds it, and a
        # carry raises the exponent. Exponent and fraction then stand where Dst has them.
        bits = np.float64(abs(total)).view(np.int64) - _ONE
        number = np.int64(bits + (1 << 28) >> 29)
        if short:
            number = number + (1 << (drop - 1)) >> drop << drop
        if wormhole and total == -1:
            number = np.int64(27 << 23)
        number += np.int64(common - 23) << 23
        number = number if number >> 23 < limit else np.int64(largest)
        nothing = total == 0 or number < 1 << 23 or common <= 0
        code = np.int32(number) | np.int32(-(1 << 31) if total < 0 else 0)
        c[j] = np.int32(0 if nothing else code)
