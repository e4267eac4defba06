"""Measure ``golden.simd2.mmo`` in terms per second, and shortest paths compared with SciPy.

All operations run on one core except ``orand``, which is a BLAS product of matrices. Set
OPENBLAS_NUM_THREADS=1 to run it on one core, too.

Run: ``python benchmarks/simd2_mmo.py [--size N] [--vertices A,B] [--seconds S] [--json FILE]``
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
    """Return random operands.

    Parameters
    ----------
    size : int
        Rows and columns.
    special : bool
        If True, a fifth of the operands are −1, zeros of both signs, infinities and NaNs.

    Returns
    -------
    (size, size) ndarray of float32
        Numbers in [0, 1), except for the special ones.
    """
    x = rng.random((size, size), dtype=np.float32)
    if special:
        kinds = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], np.float32)
        replaced = rng.random(x.shape) < 0.2
        x[replaced] = rng.choice(kinds, int(replaced.sum()))
    return x


def rate(op, a, b, c, seconds):
    """Return the terms per second of the fastest of several runs.

    Parameters
    ----------
    a, b, c : ndarray of float32
    seconds : float
        Total time of the runs.
    """
    mmo(op, a, b, c)  # the first call compiles
    best, spent = 0.0, 0.0
    while spent < seconds:
        start = time.perf_counter()
        mmo(op, a, b, c)
        elapsed = time.perf_counter() - start
        spent += elapsed
        best = max(best, a.shape[0] * a.shape[1] * b.shape[1] / elapsed)
    return best


def timed(function, *args, **kwargs):
    """Return the result of a call, and its duration in seconds."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def shortest_paths(rng, vertices):
    """Return the seconds of each algorithm on a dense graph with random whole weights.

    Raises
    ------
    SystemExit
        If the distances differ from SciPy's.
    """
    # Sums of whole numbers are exact, so algorithms must agree bit for bit.
    weights = rng.integers(1, 10_000, (vertices, vertices)).astype(np.float64)
    np.fill_diagonal(weights, 0)
    expected, scipy = timed(floyd_warshall, weights)
    solve("apsp", weights[:300, :300], algorithm="floyd-warshall")  # the first call compiles
    graph, reading = timed(as_graph, weights, Op.MINPLUS)
    row = {"vertices": vertices, "scipy": scipy, "reading": reading}
    for algorithm in ("floyd-warshall", "leyzorek"):
        paths, row[algorithm] = timed(solve, "apsp", graph, algorithm=algorithm)
        if not np.array_equal(paths.values, expected):
            raise SystemExit(f"{algorithm}: distances differ from SciPy's")
    row["leyzorek_iterations"] = paths.iterations
    return row


def main(argv=None):
    """Print the tables, and write them as JSON if the option is given."""
    parser = argparse.ArgumentParser(
        description="Measure the speed of golden.simd2.mmo and of shortest paths."
    )
    parser.add_argument("--size", type=int, default=1024, help="Rows and columns of A and B.")
    parser.add_argument(
        "--vertices", default="2048,4096", help="Vertices of the dense graphs; 0 for no graph."
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="Time for each row.")
    parser.add_argument("--json", metavar="FILE", help="Write the rows to this file as well.")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    rows = []
    print(f"{'operation':10}{'G terms/s':>11}{'with specials':>15}")
    for op in Op:
        rates = []
        for special in (False, True):
            a, b, c = (operand(rng, options.size, special) for _ in range(3))
            rates.append(rate(op, a, b, c, options.seconds))
        print(f"{op.mnemonic:10}{rates[0] / 1e9:11.2f}{rates[1] / 1e9:15.2f}", flush=True)
        rows.append({"op": op.mnemonic, "plain": rates[0], "special": rates[1]})
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
