"""Operands of recorded library calls: codes that a formula gives on every machine.

An element is one of 2^20 random codes, chosen by a hash of its place in the matrix. A program on a
GPU fills whole matrices in this way, and a model computes only the rows and columns that it needs.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

#: Seed of all random codes.
SEED = 20261129
#: Number of random codes of a format.
POOL = 1 << 20
#: Kinds of operands; ``rows`` says what they are.
KINDS = ("narrow", "wide", "cancel")
#: Format -> exponent bits, fraction bits, bias, and the exponents of narrow and of wide operands.
FORMATS: dict[str, tuple[int, int, int, tuple[int, int], tuple[int, int]]] = {
    "fp16": (5, 10, 15, (-3, 0), (-8, 1)),
    "bf16": (8, 7, 127, (-3, 0), (-12, 12)),
    "fp32": (8, 23, 127, (-3, 0), (-12, 12)),
    "tf32": (8, 23, 127, (-3, 0), (-12, 12)),
    "fp64": (11, 52, 1023, (-3, 0), (-20, 20)),
    "e4m3": (4, 3, 7, (-3, 0), (-5, 5)),
    "e5m2": (5, 2, 15, (-3, 0), (-6, 6)),
}
#: Operand -> number that its hash adds: A, B (its rows are columns of the product), and the rest.
SALTS = {"a": 1111, "b": 2222, "bias": 4444, "scale_a": 555, "scale_b": 666}
_SMALL_SALT = 77  # of the small terms of "cancel"
_EVERY = 16  # one term of so many is small


@lru_cache
def pool(format: str, exponents: tuple[int, int]) -> np.ndarray:
    """Return 2^20 random codes of a format whose exponents are in a range, both ends included."""
    exponent_bits, fraction_bits, bias, _, _ = FORMATS[format]
    low, high = exponents
    key = [SEED, *map(ord, format), low + 99, high + 99]
    words = np.random.PCG64(key).random_raw(2 * POOL).astype(np.uint64).reshape(2, POOL)
    field = words[0] % np.uint64(high - low + 1) + np.uint64(bias + low)
    fraction = words[1] & np.uint64((1 << fraction_bits) - 1)
    sign = words[0] >> np.uint64(63) << np.uint64(exponent_bits + fraction_bits)
    code = sign | field << np.uint64(fraction_bits) | fraction
    return code.astype(f"u{(1 + exponent_bits + fraction_bits) // 8}")


def hashed(linear, salt: int):
    """Return indices into a pool for linear places, an array of NumPy or of PyTorch, of int64."""
    return (((linear * 2654435761 + salt) & 0xFFFFFFFF) >> 12) & (POOL - 1)


def rows(
    format: str,
    places: np.ndarray,
    terms: int,
    kind: str,
    operand: str,
    choose: Callable[[str, tuple[int, int]], np.ndarray] = pool,
) -> np.ndarray:
    """Return some rows of an operand.

    Parameters
    ----------
    places : ndarray of int
        Which rows.
    terms : int
        Length of a row, K for A and B.
    kind : str
        "narrow": exponents from −3 to 0. "wide": exponents of a large range. "cancel": the second
        half of K mirrors the first one, with the other sign in A, but every 16th term is small and
        independent, so that the sum is much smaller than its parts.
    operand : str
        Key of ``SALTS``.
    choose : callable
        Function that returns the codes of a pool.
    """
    i, k = np.asarray(places, np.int64)[:, None], np.arange(terms, dtype=np.int64)[None]
    _, _, _, narrow, wide = FORMATS[format]
    salt = SALTS[operand]
    if kind != "cancel":
        return choose(format, narrow if kind == "narrow" else wide)[hashed(i * terms + k, salt)]
    late = k >= (terms + 1) // 2
    source = np.where(late, terms - 1 - k, k)
    codes = choose(format, narrow)[hashed(i * terms + source, salt)]
    if operand == "a":
        sign = codes.dtype.type(1 << (8 * codes.itemsize - 1))
        codes = np.where(late, codes ^ sign, codes)
    least = (narrow[0] - 3, narrow[0] - 3)
    small = choose(format, least)[hashed(i * terms + k, salt + _SMALL_SALT)]
    return np.where(k % _EVERY == 5, small, codes)


def scales(places: np.ndarray, operand: str) -> np.ndarray:
    """Return scales between 0.5 and 2 in fp32."""
    codes = pool("fp32", (-1, 0))[hashed(np.asarray(places, np.int64), SALTS[operand])]
    return np.abs(codes.view(np.float32))


def sampled(number: int, m: int, n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the columns of the sampled results of a call, which its number seeds."""
    words = np.random.PCG64([SEED, number]).random_raw(2 * count).astype(np.uint64)
    first, second = words[:count] % np.uint64(m), words[count:] % np.uint64(n)
    return first.astype(np.int64), second.astype(np.int64)
