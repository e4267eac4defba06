"""Compare Alg. 5 of Tang 2024 with the comparisons of IEEE 754 on all 2³² pairs of FP16 codes.

python benchmarks/selbknn_compare.py              # all pairs, some minutes
python benchmarks/selbknn_compare.py --every 97   # each 97th code as the first operand
"""

import argparse
from collections import Counter

import numpy as np

from vitruvian.sim.kernels.selbknn.golden import less, select, unequal

#: First operands that are compared at once.
_ROWS = 16


def kind(codes: np.ndarray) -> np.ndarray:
    """Return 0 for numbers, 1 for −0, 2 for +0 and 3 for NaNs."""
    halves = codes.view(np.float16)
    return np.select([codes == 0x8000, codes == 0, np.isnan(halves)], [1, 2, 3], 0)


def main() -> None:
    """Print how many pairs differ, by the kinds of their operands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="Take each N-th first operand.")
    every = parser.parse_args().every
    codes = np.arange(1 << 16, dtype=np.uint16)
    right = codes.view(np.float16)
    names = np.array(["a number", "−0", "+0", "a NaN"])
    kinds = kind(codes)
    pairs, wrong_selections = 0, 0
    found: Counter[tuple[str, int, int]] = Counter()
    firsts = codes[::every]
    for at in range(0, len(firsts), _ROWS):
        left = firsts[at : at + _ROWS]
        a, b = np.broadcast_arrays(left.view(np.float16)[:, None], right)
        with np.errstate(invalid="ignore"):
            checks = {"less": (less(a, b), a < b), "unequal": (unequal(a, b), a != b)}
        for name, (mask, truth) in checks.items():
            i, j = np.nonzero((mask == 0xFFFF) != truth)
            classes = 4 * kinds[left[i]] + kinds[j]
            for both, count in zip(*np.unique(classes, return_counts=True), strict=True):
                found[name, int(both) // 4, int(both) % 4] += int(count)
            if not np.isin(mask, (0, 0xFFFF)).all():
                raise AssertionError(f"{name}: a mask is neither 0 nor 0xffff")
        mask, _ = checks["less"]
        x, y = codes[None, :] ^ left[:, None], codes[None, :] + left[:, None]
        wrong_selections += int((select(mask, x, y) != np.where(mask, x, y)).sum())
        pairs += mask.size
    print(f"{pairs:,} pairs; {wrong_selections} selections differ")
    for (name, a, b), count in sorted(found.items()):
        print(f"{name}: {count:,} pairs of {names[a]} and {names[b]} differ from IEEE 754")


if __name__ == "__main__":
    main()
