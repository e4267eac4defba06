"""Compare Alg. 5 of Tang 2024 with the comparisons of IEEE 754 on all 2³² pairs of FP16 codes.

    python benchmarks/selbknn_compare.py              # all pairs by a compiled twin, a minute
    python benchmarks/selbknn_compare.py --every 97   # the twin against golden, some operands

The twin takes the sign of the difference from FP32, which has no difference that is too small, so
it is the sign in FP16; a NaN has the sign 0. ReLU is a table that golden computes.
"""

import argparse

import numba
import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.kernels.selbknn.golden import less, unequal

#: Kinds of operands.
KINDS = ("a number", "−0", "+0", "a NaN")


def kinds() -> np.ndarray:
    """Return the number of the kind of each FP16 code."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    halves = codes.view(np.float16)
    return np.select([codes == 0x8000, codes == 0, np.isnan(halves)], [1, 2, 3], 0)


def relu_table() -> np.ndarray:
    """Return the code of the ReLU of each FP16 code."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    return vector.relu(codes.view(np.float16)).view(np.uint16)


@numba.njit(error_model="numpy")
def _sign(a, b):
    difference = a - b
    if difference != difference:
        return 0
    # A negative zero has a sign bit, too.
    return 1 if difference < 0 or (difference == 0 and 1 / difference < 0) else 0


@numba.njit(error_model="numpy")
def _masks(a, b, table):
    """Return the masks "less" and "unequal" of Alg. 5."""
    one = _sign(a, b)
    either = one | _sign(b, a)
    return (
        np.uint16(table[(one << 15) | 1] - np.uint16(1)),
        np.uint16(table[(either << 15) | 1] - np.uint16(1)),
    )


@numba.njit(error_model="numpy")
def _count(firsts, numbers, kind, table):
    """Return how many pairs differ, by mask and kinds, and how many masks are neither 0 nor −1."""
    found = np.zeros((2, 4, 4), np.int64)
    odd = 0
    for i in firsts:
        a = numbers[i]
        for j in range(len(numbers)):
            b = numbers[j]
            smaller, other = _masks(a, b, table)
            odd += (smaller != 0 and smaller != 0xFFFF) or (other != 0 and other != 0xFFFF)
            found[0, kind[i], kind[j]] += (smaller != 0) != (a < b)
            found[1, kind[i], kind[j]] += (other != 0) != (a != b)
    return found, odd


@numba.njit(error_model="numpy")
def _rows(a, numbers, table):
    masks = np.zeros((2, len(numbers)), np.uint16)
    for j in range(len(numbers)):
        masks[0, j], masks[1, j] = _masks(a, numbers[j], table)
    return masks


def main() -> None:
    """Print how many pairs differ, by the kinds of their operands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, help="Compare the twin with golden: each N-th code.")
    every = parser.parse_args().every
    codes = np.arange(1 << 16, dtype=np.uint16)
    halves = codes.view(np.float16)
    numbers, table = halves.astype(np.float32), relu_table()
    if every is not None:
        wrong = 0
        for i in range(0, 1 << 16, every):
            a = np.full_like(halves, halves[i])
            masks = _rows(numbers[i], numbers, table)
            wrong += int((masks[0] != less(a, halves)).sum())
            wrong += int((masks[1] != unequal(a, halves)).sum())
        print(f"{len(codes[::every])} × 65,536 pairs: {wrong} masks of the twin differ from golden")
        return
    kind = kinds()
    total = np.zeros((2, 4, 4), np.int64)
    odd = 0
    for at in range(0, 1 << 16, 4096):
        found, more = _count(np.arange(at, at + 4096), numbers, kind, table)
        total, odd = total + found, odd + more
    print(f"{1 << 32:,} pairs; {odd} masks are neither 0 nor 0xffff")
    for name, counts in zip(("less", "unequal"), total, strict=True):
        for a, b in np.argwhere(counts):
            shown = f"{KINDS[a]} and {KINDS[b]}"
            print(f"{name}: {counts[a, b]:,} pairs of {shown} differ from IEEE 754")


if __name__ == "__main__":
    main()
