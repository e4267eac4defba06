"""Simulate PageRank iterations on SIDA for Matrix Market files, in each order and block size.

Run as ``python benchmarks/sparse_iterations.py GRAPH.mtx …``; files may be compressed by gzip. The
option ``--kib N`` sets the size of the buffer, and ``--lower`` keeps only the lower triangle, as
Table 4.1 of Zhang 2024 counts symmetric matrices. With ``--random N``, a random matrix with N rows
and ten nonzeros per row takes the place of the files, and the CPU time is printed too.
"""

import argparse
import dataclasses
import time

import numpy as np
from scipy import io, sparse

from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.pattern import Pattern, pattern_of
from vitruvian.sim.sparse.reordering import ORDERS, order_of
from vitruvian.sim.sparse.simulate import simulate

FIGURES = ("speedup", "oracle_share", "bandwidth_share", "storage_share", "energy_saving")


def main() -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--kib", type=int)
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("--random", type=int)
    options = parser.parse_args()
    machine = load_architecture()
    if options.kib:
        machine = dataclasses.replace(machine, buffer_bytes=options.kib << 10)
    print(f"{'matrix':<24} {'order':<8} {'side':>4}", *(f"{name:>15}" for name in FIGURES))
    if options.random:
        n, draw = options.random, np.random.default_rng(1)
        places = draw.integers(0, n, 10 * n), draw.integers(0, n, 10 * n)
        matrix = sparse.coo_array((np.ones(10 * n, np.int8), places), shape=(n, n))
        report_on(f"random {n}", pattern_of(matrix), machine, ("none",), (1,))
    for path in options.graphs:
        matrix = io.mmread(path)
        pattern = pattern_of(sparse.tril(matrix) if options.lower else matrix)
        report_on(path.rpartition("/")[2], pattern, machine, ORDERS, (1, 16))


def report_on(name: str, pattern: Pattern, machine, orders, sides) -> None:
    """Print a line for each order and block size."""
    for order in orders:
        permutation = order_of(pattern, order)
        for side in sides:
            begin = time.process_time()
            report = simulate(pattern, machine, order=permutation, block=side)
            seconds = time.process_time() - begin
            figures = report.figures()
            shown = (f"{figures[key]:>15.4f}" for key in FIGURES)
            print(f"{name:<24} {order:<8} {side:>4}", *shown, f"  {seconds:.2f} s of CPU")


if __name__ == "__main__":
    main()
