"""Simulate PageRank on SIDA for Matrix Market files, in each order and block size.

Run as ``python benchmarks/sparse_iterations.py GRAPH.mtx …``; files may be compressed by gzip. The
option ``--kib N`` sets the size of the buffer, ``--lower`` keeps only the lower triangle, as Table
4.1 of Zhang 2024 counts symmetric matrices, and ``--iterations N`` sets the length of the run. With
``--random N``, a random matrix with N rows and ten nonzeros per row takes the place of the files.
The CPU time of each simulation is printed too.
"""

import argparse
import dataclasses
import time

import numpy as np

from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.applications import pagerank
from vitruvian.sim.sparse.application import simulate_application
from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.reordering import ORDERS
from vitruvian.sparse import read_matrix

FIGURES = ("speedup", "oracle_share", "bandwidth_share", "storage_share", "energy_saving")


def main() -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--kib", type=int)
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("--random", type=int)
    parser.add_argument("--iterations", type=int, default=20)
    options = parser.parse_args()
    machine = load_architecture()
    if options.kib:
        machine = dataclasses.replace(machine, buffer_bytes=options.kib << 10)
    print(f"{'matrix':<24} {'order':<10} {'side':>4}", *(f"{name:>15}" for name in FIGURES))
    if options.random:
        n, draw = options.random, np.random.default_rng(1)
        places = draw.integers(0, n, 10 * n), draw.integers(0, n, 10 * n)
        matrix = Sparse.from_entries(*places, 1.0, (n, n))
        report_on(f"random {n}", matrix, machine, ("none",), (1,), options.iterations)
    for path in options.graphs:
        matrix = read_matrix(path)
        if options.lower:
            kept = matrix.rows >= matrix.column_index
            entries = matrix.rows[kept], matrix.column_index[kept], matrix.row_values[kept]
            matrix = Sparse.from_entries(*entries, matrix.shape)
        name = path.rpartition("/")[2]
        report_on(name, matrix, machine, ORDERS, (1, 16), options.iterations)


def report_on(name: str, matrix: Sparse, machine, orders, sides, iterations: int) -> None:
    """Print a line for each order and block size."""
    problem = pagerank(matrix.pattern())
    for order in orders:
        for side in sides:
            begin = time.process_time()
            report = simulate_application(
                problem, machine, reorder=order, block=side, iterations=iterations
            )
            seconds = time.process_time() - begin
            figures = report.figures()
            shown = (f"{figures[key]:>15.4f}" for key in FIGURES)
            print(f"{name:<24} {order:<10} {side:>4}", *shown, f"  {seconds:.2f} s of CPU")


if __name__ == "__main__":
    main()
