"""⊗⊕ a second of ``golden.simd2.mmo``, and shortest paths beside SciPy's.

All on one core but orand, which is a product of matrices (OPENBLAS_NUM_THREADS=1 keeps it there).

python benchmarks/simd2_mmo.py [--size 1024] [--vertices 2048,4096] [--seconds 1] [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

from vitruvian.golden.simd2 import Op, mmo
from vitruvian.sim.simd2.graph import as_graph, solve


def operand(rng, size, special):
    """FP32 operands in [0, 1), or with zeros of both signs, infinities and NaNs among them."""
    x = rng.random((size, size), dtype=np.float32)
    if special:
        kinds = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], np.float32)
        where = rng.random(x.shape) < 0.2
        x[where] = rng.choice(kinds, int(where.sum()))
    return x


def rate(op, a, b, c, seconds):
    """Terms a second, the best of the runs that fit in."""
    mmo(op, a, b, c)  # compilation
    best, spent = 0.0, 0.0
    while spent < seconds:
        start = time.perf_counter()
        mmo(op, a, b, c)
        elapsed = time.perf_counter() - start
        spent += elapsed
        best = max(best, a.shape[0] * a.shape[1] * b.shape[1] / elapsed)
    return best


def timed(function, *given, **settings):
    """What it returns, and its seconds."""
    start = time.perf_counter()
    found = function(*given, **settings)
    return found, time.perf_counter() - start


def shortest_paths(rng, vertices):
    """Seconds of a dense graph with random whole weights, by algorithm; checked against SciPy."""
    weights = rng.integers(1, 10_000, (vertices, vertices)).astype(np.float64)
    np.fill_diagonal(weights, 0)
    expected, scipy = timed(floyd_warshall, weights)
    solve("apsp", weights[:300, :300], algorithm="floyd-warshall")  # compilation
    graph, reading = timed(as_graph, weights, Op.MINPLUS)
    row = {"vertices": vertices, "scipy": scipy, "reading": reading}
    for algorithm in ("floyd-warshall", "leyzorek"):
        found, row[algorithm] = timed(solve, "apsp", graph, algorithm=algorithm)
        if not np.array_equal(found.values, expected):
            raise SystemExit(f"{algorithm}: distances differ from SciPy's")
    row["leyzorek_iterations"] = found.iterations
    return row


def main(argv=None):
    """Print the tables; write them as JSON when asked."""
    parser = argparse.ArgumentParser(description="Speed of golden.simd2.mmo, and of shortest paths")
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of A and B")
    parser.add_argument("--vertices", default="2048,4096", help="of dense graphs; 0 for none")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each row")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    rows = []
    print(f"{'operation':10}{'G terms/s':>11}{'with specials':>15}")
    for op in Op:
        found = []
        for special in (False, True):
            a, b, c = (operand(rng, options.size, special) for _ in range(3))
            found.append(rate(op, a, b, c, options.seconds))
        print(f"{op.mnemonic:10}{found[0] / 1e9:11.2f}{found[1] / 1e9:15.2f}", flush=True)
        rows.append({"op": op.mnemonic, "plain": found[0], "special": found[1]})
    paths = []
    sizes = [int(text) for text in options.vertices.split(",") if int(text)]
    if sizes:
        print("vertices   SciPy s  blocked FW s  Leyzorek s  iterations")
    for vertices in sizes:
        row = shortest_paths(rng, vertices)
        print(
            f"{vertices:8}{row['scipy']:10.2f}{row['floyd-warshall']:14.2f}"
            f"{row['leyzorek']:12.2f}{row['leyzorek_iterations']:12}",
            flush=True,
        )
        paths.append(row)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "simd2_mmo", "rows": rows, "paths": paths}, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
