"""Compare the times of sparse applications with those of other libraries, on one thread each.

    python benchmarks/sparse_peers.py [--rows N] [--rounds N] [--csv FOLDER]

The graphs are those of ``sparse_applications.py``: a square grid and random edges. Ours is
``sparse.solve`` on SciPy's matrix, its conversion included; every other library gets the graph in
its own form, made before. Peers are SciPy, NetworkX, igraph, python-graphblas (SuiteSparse) and
alp-graphblas (the framework of Zhang 2024, Fig. 4.18); what is not installed is left out with the
reason. SciPy has no PageRank, and python-graphblas no algorithms: these are written here with
their products. Every answer is compared with ours before its time counts.

The process starts itself anew with one thread for every library. A time is the least CPU time of
the rounds, in which all candidates run in turn; a call of more than a second runs once. With
``--csv``, a table for each graph is written into the folder.
"""

import argparse
import csv
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse
from scipy.sparse import csgraph, linalg
from sparse_applications import THREADS, graph, power_method, system

from vitruvian import sparse

#: A timed call, and what makes its answer comparable with ours; None if there is nothing to compare
Case = tuple[Callable[[], Any], Callable[[Any], Any]]

#: Sums of the changes of PageRank at the end, per vertex; the relative residual of the solvers,
#: which alp-graphblas does not let its caller choose
TOLERANCE, RESIDUAL = 1e-9, 1e-6

#: Seconds after which a call runs once
_LONG_S = 1.0

PROBLEMS = (
    *("bfs", "sssp", "components", "kcore", "triangles", "pagerank"),
    *("mxm", "cg", "bicgstab", "gmres"),
)


def ours(a: Any, s: Any, b: np.ndarray) -> dict[str, Case]:
    """Return our calls; the answers are arrays of float64, or a matrix for mxm."""
    options: dict[str, dict[str, Any]] = {
        "bfs": {"source": 0},
        "sssp": {"source": 0},
        "pagerank": {"tol": TOLERANCE},
        **{name: {"b": b, "rtol": RESIDUAL} for name in ("cg", "bicgstab", "gmres")},
    }
    cases: dict[str, Case] = {}
    for name in PROBLEMS:
        matrix, given = s if "b" in options.get(name, {}) else a, options.get(name, {})
        cases[name] = (
            lambda name=name, matrix=matrix, given=given: sparse.solve(name, matrix, **given),
            lambda result: result.values,
        )
    cases["mxm"] = (lambda: sparse.mxm(a, a), lambda product: product.to_scipy())
    return cases


def scipy(a: Any, s: Any, b: np.ndarray) -> dict[str, Case]:
    """Return the calls of SciPy; its search gives an order, of which the length is compared."""

    def labels(found: tuple[int, np.ndarray]) -> np.ndarray:
        return np.unique(found[1], return_index=True)[1][found[1]]

    def triangles() -> np.ndarray:
        pattern = a.astype(bool).astype(float)
        return (pattern @ pattern).multiply(pattern).sum(1) / 2

    return {
        "bfs": (lambda: csgraph.breadth_first_order(a, 0), lambda found: len(found[0])),
        "sssp": (lambda: csgraph.dijkstra(a, indices=0), np.asarray),
        "components": (lambda: csgraph.connected_components(a, directed=False), labels),
        "triangles": (triangles, np.asarray),
        "pagerank": (lambda: power_method(a, TOLERANCE), np.asarray),
        "mxm": (lambda: a @ a, lambda product: product),
        "cg": (lambda: linalg.cg(s, b, rtol=RESIDUAL), lambda found: found[0]),
        "bicgstab": (lambda: linalg.bicgstab(s, b, rtol=RESIDUAL), lambda found: found[0]),
        "gmres": (
            lambda: linalg.gmres(s, b, rtol=RESIDUAL, restart=10),
            lambda found: found[0],
        ),
    }


def networkx(a: Any, *_: Any) -> dict[str, Case]:
    """Return the calls of NetworkX."""
    nx: Any = import_module("networkx")
    g, size = nx.from_scipy_sparse_array(a), a.shape[0]

    def listed(values: dict[int, float]) -> np.ndarray:
        found = np.full(size, np.inf)
        found[list(values)] = list(values.values())
        return found

    def labels(parts: list[set[int]]) -> np.ndarray:
        return listed({vertex: first for part in parts for first in [min(part)] for vertex in part})

    return {
        "bfs": (lambda: nx.single_source_shortest_path_length(g, 0), listed),
        "sssp": (lambda: nx.single_source_dijkstra_path_length(g, 0), listed),
        "components": (lambda: list(nx.connected_components(g)), labels),
        "kcore": (lambda: nx.core_number(g), listed),
        "triangles": (lambda: nx.triangles(g), listed),
        "pagerank": (lambda: nx.pagerank(g, tol=TOLERANCE, max_iter=1000), listed),
    }


def igraph(a: Any, *_: Any) -> dict[str, Case]:
    """Return the calls of igraph; PRPACK solves its PageRank without a tolerance."""
    ig: Any = import_module("igraph")
    upper = scipy_sparse.triu(a).tocoo()
    ends = np.stack([upper.row, upper.col], 1)
    g = ig.Graph(n=a.shape[0], edges=ends, edge_attrs={"weight": upper.data})

    def labels(found: Any) -> np.ndarray:
        members = np.asarray(found.membership)
        return np.unique(members, return_index=True)[1][members]

    def counts(found: Any) -> np.ndarray:
        return np.bincount(np.asarray(found, int).ravel(), minlength=a.shape[0])

    return {
        "bfs": (lambda: g.distances(source=0), lambda found: np.asarray(found[0], float)),
        "sssp": (
            lambda: g.distances(source=0, weights="weight"),
            lambda found: np.asarray(found[0]),
        ),
        "components": (g.connected_components, labels),
        "kcore": (g.coreness, np.asarray),
        "triangles": (g.list_triangles, counts),
        "pagerank": (lambda: g.pagerank(weights="weight"), np.asarray),
    }


def graphblas(a: Any, s: Any, b: np.ndarray) -> dict[str, Case]:
    """Return algorithms by the products of python-graphblas."""
    gb: Any = import_module("graphblas")
    gb.init("suitesparse", blocking=True)
    gb.ss.config["nthreads"] = 1
    size = a.shape[0]
    matrix, whole = gb.io.from_scipy_sparse(a), gb.io.from_scipy_sparse(s)
    pattern = gb.io.from_scipy_sparse(a.astype(bool))
    right = gb.Vector.from_dense(b)
    semiring, binary = gb.semiring, gb.binary

    def bfs() -> Any:
        level, frontier = gb.Vector(int, size), gb.Vector(bool, size)
        frontier[0] = True
        for depth in range(size):
            level(frontier.S).update(depth)
            frontier(~level.S, replace=True).update(semiring.any_pair(frontier @ pattern))
            if not frontier.nvals:
                break
        return level

    def sssp() -> Any:
        distance, changed = gb.Vector(float, size), gb.Vector(float, size)
        distance[0] = changed[0] = 0.0
        while changed.nvals:
            offered = semiring.min_plus(changed @ matrix).new()
            worse = binary.ge(offered & distance).new()
            offered(~worse.V, replace=True).update(offered)
            distance(binary.min).update(offered)
            changed = offered
        return distance

    def pagerank() -> Any:
        share = (0.85 / matrix.reduce_rowwise()).new()
        rank = gb.Vector.from_scalar(1 / size, size, dtype=float)
        for _ in range(1000):
            last, rank = rank, gb.Vector.from_scalar(0.15 / size, size, dtype=float)
            rank(binary.plus).update(semiring.plus_times((last * share).new() @ matrix))
            change = binary.minus(rank | last, left_default=0, right_default=0).new()
            if gb.unary.abs(change).new().reduce().new().value < size * TOLERANCE:
                break
        return rank

    def cg() -> Any:
        x, r = gb.Vector.from_scalar(0.0, size, dtype=float), right.dup()
        p, rr = r.dup(), (r @ r).new().value
        limit = RESIDUAL**2 * rr
        while rr > limit:
            q = semiring.plus_times(whole @ p).new()
            alpha = rr / (p @ q).new().value
            x(binary.plus).update(p * alpha)
            r(binary.minus).update(q * alpha)
            rr, last = (r @ r).new().value, rr
            p.update(binary.plus(r & p * (rr / last)))
        return x

    def triangles() -> Any:
        counts = semiring.plus_pair(pattern @ pattern).new(mask=pattern.S)
        return counts.reduce_rowwise().new()

    def dense(fill: float, scale: float = 1.0) -> Callable[[Any], np.ndarray]:
        return lambda vector: vector.to_dense(fill, dtype=float) * scale

    return {
        "bfs": (bfs, dense(np.inf)),
        "sssp": (sssp, dense(np.inf)),
        "triangles": (triangles, dense(0, 0.5)),
        "pagerank": (pagerank, dense(0)),
        "mxm": (
            lambda: semiring.plus_times(matrix @ matrix).new(),
            lambda product: gb.io.to_scipy_sparse(product, "csr"),
        ),
        "cg": (cg, dense(0)),
    }


def alp(a: Any, s: Any, b: np.ndarray) -> dict[str, Case]:
    """Return the only sparse algorithm of alp-graphblas for Python, of its sequential back end.

    The others solve Ising and QUBO problems. Matrices and vectors have no operations.
    """
    backend: Any = import_module("pyalp").get_backend("pyalp_ref")
    coo, size = s.tocoo(), a.shape[0]
    ends = coo.row.astype(np.int32), coo.col.astype(np.int32)
    matrix = backend.Matrix(size, size, *ends, coo.data)

    def cg() -> Any:
        x, right = backend.Vector(size, np.zeros(size)), backend.Vector(size, b)
        work = [backend.Vector(size, np.zeros(size)) for _ in range(3)]
        with quiet():
            backend.conjugate_gradient(matrix, x, right, *work, 1000, 0)
        return x

    def values(x: Any) -> np.ndarray:
        with quiet():
            return x.to_numpy()

    return {"cg": (cg, values)}


@contextmanager
def quiet() -> Iterator[None]:
    """Send what a compiled library prints to nowhere."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


#: Distribution and calls of each candidate by the name in the table
CANDIDATES: dict[str, tuple[str, Callable[..., dict[str, Case]]]] = {
    "ours": ("vitruvian", ours),
    "SciPy": ("scipy", scipy),
    "NetworkX": ("networkx", networkx),
    "igraph": ("igraph", igraph),
    "python-graphblas": ("python-graphblas", graphblas),
    "alp-graphblas": ("alp-graphblas", alp),
}


def agrees(name: str, found: Any, expected: Any, s: Any, b: np.ndarray) -> bool:
    """Return whether an answer is that of ours; solutions need their residual only."""
    if name in ("cg", "bicgstab", "gmres"):
        # alp-graphblas takes the norm of the recursion, which differs by roundings.
        return bool(np.linalg.norm(b - s @ found) <= 1.01 * RESIDUAL * np.linalg.norm(b))
    if isinstance(found, int):
        return found == np.isfinite(expected).sum()
    if name == "mxm":
        return found.nnz == expected.nnz and abs(found - expected).max() <= 1e-9
    # The sums of PageRank's changes may stop an iteration apart: 0.85/(1 − 0.85) times the limit.
    limit = 6 * TOLERANCE * len(expected) if name == "pagerank" else 0
    return bool(np.array_equal(found, expected) or np.abs(found - expected).sum() <= limit)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call in milliseconds, and its answer."""
    begin = time.process_time()
    answer = call()
    return (time.process_time() - begin) * 1e3, answer


def compare(a: Any, rounds: int) -> list[list[str]]:
    """Return the rows of a graph's table, after the reasons of those that are left out."""
    s, b = system(a), np.random.default_rng(2).standard_normal(a.shape[0])
    cases: dict[str, dict[str, Case]] = {}
    for name, (distribution, make) in CANDIDATES.items():
        try:
            cases[name] = make(a, s, b)
        except ImportError as error:
            print(f"{name} is left out: {distribution} is not installed ({error})")
    rows = [["problem", *(f"{name} [ms]" for name in cases), "ours / SciPy"]]
    for problem in PROBLEMS:
        candidates = {name: each[problem] for name, each in cases.items() if problem in each}
        best, expected = dict[str, float](), None
        # The first round checks the answers. Loops are compiled in it, so that ours does not count.
        for name, (call, convert) in candidates.items():
            spent, answer = timed(call)
            answer = convert(answer)
            expected = answer if name == "ours" else expected
            if not agrees(problem, answer, expected, s, b):
                raise SystemExit(f"{problem} of {name} must have our answer")
            if name != "ours" and spent > _LONG_S * 1e3:
                best[name] = spent
        again = [name for name in candidates if name not in best]
        for _ in range(rounds):
            for name in again:
                best[name] = min(timed(candidates[name][0])[0], best.get(name, np.inf))
        cells = [f"{best[name]:.3g}" if name in best else "" for name in cases]
        ratio = f"{best['ours'] / best['SciPy']:.2f}" if "SciPy" in best else ""
        rows.append([problem, *cells, ratio])
        print(" | ".join(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        # Libraries read these variables when they are loaded, hence a new process.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    versions = [
        f"{name} {importlib.metadata.version(name)}"
        for name, _ in CANDIDATES.values()
        if _is_installed(name)
    ]
    print(", ".join(versions))
    for kind in ("grid", "random"):
        a = graph(options.rows, 10, grid=kind == "grid")
        print(f"\n{kind}: {a.shape[0]:,} rows, {a.nnz:,} nonzeros; least CPU times in ms")
        rows = compare(a, options.rounds)
        if options.csv:
            with (options.csv / f"sparse_peers_{kind}.csv").open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
