"""Compare the times of the golden sparse applications with SciPy's on a synthetic graph.

Run as ``python benchmarks/sparse_applications.py [--rows N] [--degree D] [--only NAME …]``. The
graph has random edges, or those of a square grid with ``--grid``. Where SciPy has no such function,
the same algorithm is written with SciPy's products. The plain bfs and sssp take the edges of the
vertices that have changed, as ``solve`` does; with ``--whole`` they multiply the whole matrix.

The process starts itself anew with one thread for every library: the threads of a BLAS wait for
work in a loop, which is CPU time that no computation has taken. The candidates run in turn, and the
ratios are medians over the rounds, so that a machine whose speed drifts gives the same ratios.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, linalg

from vitruvian.golden.sparse import Sparse, applications, vxm
from vitruvian.golden.sparse.execute import run
from vitruvian.golden.sparse.frontier import has_frontier, run_frontier
from vitruvian.golden.sparse.oei import run_oei

#: Variables that set the number of threads, which libraries read when they are loaded
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

#: The ratio that the project holds itself to
LIMIT = 3.0


def graph(rows: int, degree: int, *, grid: bool) -> Any:
    """Return a symmetric graph with positive weights and without loops."""
    rng = np.random.default_rng(1)
    if grid:
        side = int(rows**0.5)
        number = np.arange(side * side).reshape(side, side)
        ends = np.concatenate(
            [
                np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
                np.stack([number[:-1].ravel(), number[1:].ravel()]),
            ],
            axis=1,
        )
        rows = side * side
    else:
        ends = rng.integers(0, rows, (2, rows * degree // 2))
        ends = ends[:, ends[0] != ends[1]]
    weights = rng.integers(1, 80, ends.shape[1]) / 8
    a = sparse.coo_array((weights, (ends[0], ends[1])), shape=(rows, rows)).tocsr()
    return sparse.csr_array(a + a.T)


def in_turn(calls: list[Callable[[], Any]], rounds: int) -> list[list[tuple[float, float]]]:
    """Return CPU and wall time in milliseconds of each call in each round, after a warm-up."""
    times: list[list[tuple[float, float]]] = [[] for _ in calls]
    for number in range(rounds + 1):
        for call, found in zip(calls, times, strict=True):
            cpu, wall = time.process_time(), time.perf_counter()
            call()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            # The first round is the warm-up.
            if number:
                found.append((cpu * 1000, wall * 1000))
    return times


def compared(calls: list[Callable[[], Any]], rounds: int) -> tuple[str, float]:
    """Return the cells of a row, and the CPU time of the first call over that of the last."""
    times = in_turn(calls, rounds)
    cells = [f"{statistics.median(cpu for cpu, _ in found):.1f}" for found in times]
    ratios: list[float] = []
    for kind in (0, 1):
        for found in times[:-1]:
            pairs = zip(found, times[-1], strict=True)
            # Ratios of the same round: both candidates then met the same speed of the machine.
            ratios.append(statistics.median(ours[kind] / theirs[kind] for ours, theirs in pairs))
            cells.append(f"{ratios[-1]:.2f}")
    # Below 1, another process took the core.
    busy = statistics.median(cpu / wall for cpu, wall in times[-1])
    return " | ".join([*cells, f"{busy:.2f}"]), ratios[0]


def power_method(a: Any, tolerance: float = 1e-6) -> np.ndarray:
    """Rank the vertices as NetworkX does on SciPy's matrices."""
    size, sums = a.shape[0], a.sum(1)
    share = np.divide(1.0, sums, out=np.zeros(size), where=sums > 0)
    weights: Any = sparse.diags_array(share)
    scaled, dangling = (weights @ a).tocsr(), np.flatnonzero(sums == 0)
    rank = np.full(size, 1 / size)
    for _ in range(1000):
        last = rank
        rank = 0.85 * (last @ scaled + last[dangling].sum() / size) + 0.15 / size
        # NetworkX's condition, whose tolerance is per vertex.
        if np.abs(rank - last).sum() < size * tolerance:
            break
    return rank


def cores(a: Any) -> np.ndarray:
    """Remove vertices with less than k neighbours, for rising k."""
    pattern = a.astype(bool).astype(float).T.tocsr()
    degree, alive, core, k = pattern.sum(1), np.ones(a.shape[0], bool), np.zeros(a.shape[0]), 0
    while alive.any():
        low = alive & (degree < k)
        if not low.any():
            k += 1
            continue
        core[low], alive = k - 1, alive & ~low
        degree = degree - pattern @ low.astype(float)
    return core


def hops(a: Any, count: int = 4) -> np.ndarray:
    """Return the vertices within some hops of vertex 0."""
    turned = a.astype(bool).T.tocsr()
    near = np.zeros(a.shape[0], bool)
    near[0] = True
    for _ in range(count):
        near = near | (turned @ near)
    return near


def spread(a: Any, known: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Spread labels until no belief changes by 1e−4."""
    weights: Any = sparse.diags_array(1 / np.maximum(a.sum(0), 1e-300))
    scaled = (weights @ a.T).tocsr()
    belief = known
    for _ in range(1000):
        last, belief = belief, np.where(labelled[:, None], known, scaled @ belief)
        if np.abs(belief - last).max() < 1e-4:
            break
    return belief


def centers(a: Any, draws: np.ndarray) -> list[int]:
    """Choose the first centers of k-means by k-means++."""
    norms, nearest, chosen = a.power(2).sum(1), np.full(a.shape[0], np.inf), [0]
    for draw in draws[:-1]:
        center = a[[chosen[-1]]]
        distance = norms - 2 * (a @ center.toarray()[0]) + norms[chosen[-1]]
        nearest = np.minimum(nearest, np.maximum(distance, 0))
        nearest[chosen] = 0
        running = np.cumsum(nearest)
        chosen.append(int(np.searchsorted(running, draw * running[-1], side="right")))
    return chosen


def cases(a: Any) -> dict[str, tuple[tuple, dict[str, Any], Callable[[], Any]]]:
    """Return arguments and options of each application, and SciPy's way."""
    rng = np.random.default_rng(2)
    size = a.shape[0]
    labels = np.where(rng.random(size) < 0.1, rng.integers(0, 4, size), -1)
    known = (labels[:, None] == np.arange(4)).astype(float)
    features = rng.standard_normal((size, 16))
    weights = [rng.standard_normal((16, 16)), rng.standard_normal((16, 8))]
    whole: Any = sparse.csr_array(a + sparse.eye_array(size))
    root: Any = sparse.diags_array(1 / np.sqrt(whole.sum(0)))
    b, whole_system = rng.standard_normal(size), system(a)

    def convolve() -> np.ndarray:
        scaled = (root @ (a + sparse.eye_array(size)) @ root).T.tocsr()
        return scaled @ np.maximum(scaled @ features @ weights[0], 0) @ weights[1]

    # Both draw the same numbers, so that they choose the same centers.
    draws = applications.kmeans(as_sparse(a), clusters=8, first=0).given["draws"]
    return {
        "pagerank": ((), {}, lambda: power_method(a)),
        "kcore": ((), {}, lambda: cores(a)),
        "bfs": ((), {}, lambda: csgraph.breadth_first_order(a, 0)),
        "sssp": ((), {}, lambda: csgraph.dijkstra(a, indices=0)),
        "kmeans": ((), {"first": 0}, lambda: centers(a, draws)),
        "knn": ((), {}, lambda: hops(a)),
        "labelprop": ((labels,), {"tolerance": 1e-4}, lambda: spread(a, known, labels >= 0)),
        "gcn": ((features, weights), {}, convolve),
        "gmres": ((b,), {}, lambda: linalg.gmres(whole_system, b, rtol=1e-8, restart=10)),
        "cg": ((b,), {}, lambda: linalg.cg(whole_system, b, rtol=1e-8)),
        "bicgstab": ((b,), {}, lambda: linalg.bicgstab(whole_system, b, rtol=1e-8)),
    }


def system(a: Any) -> Any:
    """Return L + I, which is positive definite."""
    return sparse.csr_array(sparse.diags_array(a.sum(0) + 1) - a)


def as_sparse(a: Any) -> Sparse:
    """Return the matrix of the golden models."""
    a.sort_indices()
    return Sparse(a.shape, a.indptr.astype(np.int64), a.indices.astype(np.int32), a.data)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=10)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        # Libraries read these variables when they are loaded, hence a new process.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    a = graph(options.rows, options.degree, grid=options.grid)
    ours, solved = as_sparse(a), as_sparse(system(a))
    for matrix in (ours, solved):
        # The orders are made once and kept; SciPy's matrices are in their order already.
        _ = matrix.transposed.column_values, matrix.column_values
    print(
        f"{a.shape[0]:,} rows, {a.nnz:,} nonzeros; medians of {options.rounds} rounds with one "
        "thread, CPU times in ms\n"
    )
    print(
        "| | plain | OEI | SciPy | plain/SciPy | OEI/SciPy | wall: plain/SciPy | OEI/SciPy", end=""
    )
    print(" | SciPy's CPU/wall |\n|---|" + "---:|" * 8)
    x, over = np.random.default_rng(3).standard_normal(a.shape[0]), []
    if not options.only:
        calls = [lambda: vxm(x, ours), lambda: a.T @ x]
        golden, scipy, cpu, wall, busy = compared(calls, options.rounds)[0].split(" | ")
        print(f"| one product | {golden} | | {scipy} | {cpu} | | {wall} | | {busy} |")
    for name, (arguments, given, theirs) in cases(a).items():
        if options.only and name not in options.only:
            continue
        matrix = solved if name in ("gmres", "cg", "bicgstab") else ours
        state = applications.APPLICATIONS[name]
        width = max(1, a.shape[0] // 16)

        def begin(state=state, matrix=matrix, arguments=arguments, given=given):
            return state(matrix, *arguments, **given)

        def plain(begin=begin):
            p = begin()
            if has_frontier(p) and not options.whole:
                return run_frontier(p)
            return run(p.graph, p.matrices, p.given, iterations=p.iterations)

        def both(begin=begin, width=width):
            p = begin()
            return run_oei(p.graph, p.matrices, p.given, iterations=p.iterations, width=width)[0]

        outcome = plain()
        if not outcome.converged:
            print(f"{name}: {outcome.failure or 'not converged'}")
        cells, ratio = compared([plain, both, theirs], options.rounds)
        over += [name] * (ratio > LIMIT)
        print(f"| {name}, {outcome.iterations} | {cells} |", flush=True)
    print(f"\nover {LIMIT:g} times SciPy's time: {', '.join(over) or 'none'}")


if __name__ == "__main__":
    main()
