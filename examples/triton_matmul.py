"""Run one matmul kernel of Triton as five machines would, and compare it with their products.

    python examples/triton_matmul.py

Needs the extra ``vitruvian[triton]`` and no GPU. The kernel is interpreted; its dots have the bits
of each machine. Along K they form the chain of ``gemm(machine=…)``, so all results must be equal to
that product, and machines with other rules have other results.
"""

import os
import sys

import numpy as np

from vitruvian import gemm
from vitruvian.common.extras import need

os.environ["TRITON_INTERPRET"] = "1"  # before the kernel is defined
need("triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from vitruvian.triton import arithmetic, wrap  # noqa: E402

MACHINES = ("a100", "ada", "h200", "b200", "cdna3")
#: Ampere and Ada have one rule for FP16, and so have Hopper and Blackwell.
RULES = 3
SIZE, TILE, DEPTH = 128, 64, 32


@triton.jit
def matmul(
    a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Compute one tile of C = A·B."""
    row = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    column = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    term = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + row * k + (start + term)[None, :])
        y = tl.load(b + (start + term)[:, None] * n + column)
        total = tl.dot(x, y, total)
    tl.store(c + row * n + column, total)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A·B by the kernel."""
    c = np.zeros((a.shape[0], b.shape[1]), np.float32)
    grid = (a.shape[0] // TILE, b.shape[1] // TILE)
    sizes = (b.shape[1], a.shape[1])
    matmul[grid](wrap(a), wrap(b), wrap(c), *sizes, TILE, TILE, DEPTH)
    return c


def main() -> int:
    """Print a line for each machine, and return 1 if a result differs."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    results, wrong = [product(a, b)], 0
    print(f"Triton {triton.__version__}, {SIZE}³ in FP16, tiles of {TILE}×{TILE}×{DEPTH}")
    print(f"{'interpreter':12} largest error {np.abs(results[0] - exact).max():.1e}")
    for machine in MACHINES:
        with arithmetic(machine=machine) as dots:
            c = product(a, b)
        differ = int((c != gemm(a, b, machine=machine)).sum())
        wrong += differ
        error = np.abs(c - exact).max()
        print(f"{machine:12} largest error {error:.1e}, {differ} of {c.size} differ;", *dots)
        results.append(c)
    kinds = len({c.tobytes() for c in results})
    print(f"{kinds} different products: {RULES} rules, and the interpreter's own")
    wrong += abs(kinds - RULES - 1)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
