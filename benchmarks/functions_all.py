"""Compare the functions of ``vitruvian.functions`` with an H200 for all 2^32 arguments.

    python benchmarks/functions_all.py [--every N] [INSTRUCTION ...]

``tests/data/h200/functions.npz`` has the sum of a hash of argument and result for each of 1024
blocks of arguments. Prints for each instruction how many blocks are equal; one takes about three
minutes on a core, and ``--every`` takes each N-th block. Exits with 1 if a block differs.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from vitruvian import functions

FILE = Path(__file__).parents[1] / "tests" / "data" / "h200" / "functions.npz"
_BLOCK = 22  # bits of an argument within a block
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


def total(instruction: str, block: int) -> int:
    """Return the sum of the hashes of a block, modulo 2^64."""
    x = np.arange(block << _BLOCK, (block + 1) << _BLOCK, dtype=np.int64).astype(np.uint32)
    y = functions.compute(instruction, x.view(np.float32)).view(np.uint32)
    z = (x.astype(np.uint64) << np.uint64(32) | y) * _FIRST
    z = (z ^ z >> np.uint64(29)) * _SECOND
    return int((z ^ z >> np.uint64(32)).sum(dtype=np.uint64))


def main() -> int:
    """Print a line for each instruction."""
    names = [name for name in functions.instructions() if name.endswith(".f32")]
    parser = argparse.ArgumentParser(description="Compare functions for all arguments.")
    parser.add_argument("instructions", nargs="*", default=names)
    parser.add_argument("--every", type=int, default=1, help="Take each N-th block.")
    options = parser.parse_args()
    wrong = 0
    with np.load(FILE) as file:
        for name in options.instructions:
            start, sums = time.process_time(), file[f"{name}.sums"]
            blocks = range(0, len(sums), options.every)
            equal = sum(total(name, block) == int(sums[block]) for block in blocks)
            wrong += len(blocks) - equal
            seconds = time.process_time() - start
            print(f"{name:20} {equal} of {len(blocks)} blocks equal, {seconds:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
