"""Time a matmul kernel of Triton under machines, beside the interpreter alone.

    python benchmarks/triton_overhead.py [--size N] [--repeats N]

Needs the extra ``vitruvian[triton]``. Prints the processor time of the kernel of
``examples/triton_matmul.py``, the least of some repeats.
"""

# Triton is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import argparse
import time
from contextlib import nullcontext

import numpy as np

from examples.triton_matmul import MACHINES, product
from vitruvian.triton import arithmetic


def seconds(a: np.ndarray, b: np.ndarray, machine: str | None, repeats: int) -> float:
    """Return the least processor time of the kernel; the first run is not timed."""
    times = []
    for number in range(repeats + 1):
        with arithmetic(machine=machine) if machine else nullcontext():
            start = time.process_time()
            product(a, b)
            if number:
                times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a line for the interpreter and for each machine."""
    parser = argparse.ArgumentParser(description="Time a kernel of Triton under machines.")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((options.size,) * 2).astype(np.float16) for _ in range(2))
    plain = seconds(a, b, None, options.repeats)
    print(f"interpreter {1000 * plain:8.1f} ms")
    for machine in MACHINES:
        own = seconds(a, b, machine, options.repeats)
        print(f"{machine:11} {1000 * own:8.1f} ms, {own / plain:.1f} times the interpreter's")


if __name__ == "__main__":
    main()
