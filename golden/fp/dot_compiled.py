"""A compiled version of ``golden.fp.dot.plain_sum`` for sums that do not fit into an int64.

The sum is held in 32-bit limbs, each in an int64 word, so that carries are propagated only once,
after all terms have been added.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

from vitruvian.golden.fp.round import JAM_BITS
from vitruvian.golden.fp.spec import DotSpec

__all__ = ["compiled_sum"]


def compiled_sum(
    sig_a: np.ndarray,
    exp_a: np.ndarray,
    sig_b: np.ndarray,
    exp_b: np.ndarray,
    sig_c: np.ndarray,
    exp_c: np.ndarray,
    emax: np.ndarray,
    spec: DotSpec,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what ``plain_sum`` with ``wide=True`` returns for the same arguments.

    No nonzero term may have an exponent above ``emax``, because the sum has no limbs for it.
    """
    n = len(sig_c)
    sign, magnitude, exponent = np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
    _sum(
        _wide(sig_a),
        _wide(exp_a),
        _wide(sig_b),
        _wide(exp_b),
        _wide(sig_c),
        _wide(exp_c),
        _wide(emax),
        spec.input.fraction_bits + spec.input_b.fraction_bits,
        spec.output.fraction_bits,
        -1 if spec.window is None else spec.window,
        spec.truncate == "floor",
        sign,
        magnitude,
        exponent,
    )
    return sign, magnitude, exponent


def _wide(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, np.int64)


@numba.njit(cache=True, nogil=True)
def _sum(
    sig_a,
    exp_a,
    sig_b,
    exp_b,
    sig_c,
    exp_c,
    emax,
    fraction_p,
    fraction_c,
    window,
    floor,
    sign,
    magnitude,
    exponent,
):
    low = np.uint64(0xFFFFFFFF)
    word = np.uint64(32)
    terms = sig_a.shape[0]
    m = np.zeros(5, np.uint64)
    acc = np.zeros(64, np.int64)
    for i in range(sig_c.shape[0]):
        # Exponents of the unit q, and of the highest bit that any term can have
        if window >= 0:
            unit = emax[i] - window
            highest = emax[i] + 2
        else:
            unit, highest = np.int64(1 << 20), np.int64(-(1 << 20))
            for k in range(terms):
                if sig_a[k, i] != 0 and sig_b[k, i] != 0:
                    e = exp_a[k, i] + exp_b[k, i]
                    unit, highest = min(unit, e - fraction_p), max(highest, e + 2)
            if sig_c[i] != 0:
                unit = min(unit, exp_c[i] - fraction_c)
                highest = max(highest, exp_c[i] + 2)
            if unit == 1 << 20:
                unit = highest = 0
        limbs = max(highest - unit, fraction_p + 2, fraction_c + 1) // 32 + 4
        if limbs > acc.size:
            acc = np.zeros(2 * limbs, np.int64)
        acc[:limbs] = 0
        sticky = False

        for k in range(terms + 1):
            # The term's magnitude as limbs m, its sign, and the exponent of its last bit. A
            # product of two magnitudes of up to 53 bits is formed from 32-bit halves.
            if k < terms:
                x, y = sig_a[k, i], sig_b[k, i]
                negative = (x < 0) != (y < 0)
                ux, uy = np.uint64(abs(x)), np.uint64(abs(y))
                x0, x1, y0, y1 = ux & low, ux >> word, uy & low, uy >> word
                m0, mid, m2 = x0 * y0, x0 * y1 + x1 * y0, x1 * y1
                m[0] = m0 & low
                mid += m0 >> word
                m[1] = mid & low
                m2 += mid >> word
                m[2], m[3] = m2 & low, m2 >> word
                last = exp_a[k, i] + exp_b[k, i] - fraction_p
            else:
                x = y = sig_c[i]
                negative = x < 0
                ux = np.uint64(abs(x))
                m[0], m[1], m[2], m[3] = ux & low, ux >> word, np.uint64(0), np.uint64(0)
                last = exp_c[i] - fraction_c
            if x == 0 or y == 0:
                continue

            shift = last - unit
            if shift < 0:
                right = min(-shift, 128)
                words, bits = right // 32, np.uint64(right % 32)
                cut = False
                for j in range(words):
                    cut |= m[j] != 0
                if words < 4:
                    cut |= (m[words] & ((np.uint64(1) << bits) - np.uint64(1))) != 0
                for j in range(4):
                    lower = m[j + words] if j + words < 4 else np.uint64(0)
                    upper = m[j + words + 1] if j + words < 3 else np.uint64(0)
                    m[j] = (lower | upper << word) >> bits & low
                sticky |= cut
                shift = 0
                # The floor of a negative number is one below its truncated magnitude.
                if cut and negative and floor:
                    acc[0] -= 1
            words, bits = shift // 32, np.uint64(shift % 32)
            for j in range(4):
                if m[j] != 0:
                    v = m[j] << bits
                    low_half, high_half = np.int64(v & low), np.int64(v >> word)
                    if negative:
                        acc[words + j] -= low_half
                        acc[words + j + 1] -= high_half
                    else:
                        acc[words + j] += low_half
                        acc[words + j + 1] += high_half

        # Propagate the carries, then take the magnitude: in units of q/2 with the sticky bit for
        # "floor", otherwise in units of q. A negative sum with the sticky bit s has the magnitude
        # −(2·Σ + s) = 2·|Σ| − s.
        carry = np.int64(0)
        for j in range(limbs):
            carry += acc[j]
            acc[j] = carry & 0xFFFFFFFF
            carry >>= 32
        minus = carry < 0
        factor = -1 if minus else 1
        carry = np.int64(0)
        if floor:
            factor *= 2
            unit -= 1
            if sticky:
                carry = np.int64(-1 if minus else 1)
        for j in range(limbs):
            carry += factor * acc[j]
            acc[j] = carry & 0xFFFFFFFF
            carry >>= 32

        # Keep the top 60 bits and OR all bits below into the last of them, as ``jam`` does.
        top = limbs - 1
        while top > 0 and acc[top] == 0:
            top -= 1
        length = 32 * top
        v = acc[top]
        while v != 0:
            length += 1
            v >>= 1
        drop = max(length - JAM_BITS, 0)
        words, bits = drop // 32, drop % 32
        value = np.uint64(0)
        for j in range(3):
            if words + j < limbs:
                limb = np.uint64(acc[words + j])
                if j == 0:
                    value |= limb >> np.uint64(bits)
                elif 32 * j - bits < 64:
                    value |= limb << np.uint64(32 * j - bits)
        lost = acc[words] & ((np.int64(1) << bits) - 1) != 0
        for j in range(words):
            lost |= acc[j] != 0
        sign[i] = minus
        magnitude[i] = np.int64(value) | np.int64(lost)
        exponent[i] = unit + drop
