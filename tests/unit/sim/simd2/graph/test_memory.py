"""``sim.simd2.graph.memory``: the memory that problems take, and the refusal of large ones."""

import tracemalloc
import warnings

import networkx as nx
import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, random_array, triu

import vitruvian.sim.simd2.graph.memory as module
from vitruvian.cli import main
from vitruvian.sim.simd2.graph import (
    PROBLEMS,
    PrecisionWarning,
    SpanningForest,
    nearest_neighbours,
    solve,
)

GIB = 1 << 30


def peak(call):
    """Return the largest memory in bytes that is allocated during a call."""
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_no_problem_takes_more():
    """Routes and trees are included. The bound is tight, so that it does not refuse too much."""
    rng = np.random.default_rng(1)
    edges = random_array((300, 300), density=0.004, rng=rng, format="csr")
    upper = triu(edges, 1).tocsr()
    sources = {"aplp": upper, "minrp": upper, "mst": (upper + upper.T).tocsr()}
    sizes = {}
    for name in PROBLEMS:

        def call(name=name):
            given = sources.get(name, edges)
            paths = solve(name, given, inputs="fp16", algorithm="leyzorek")  # needs the most memory
            if paths.extreme:
                paths.route(*paths.extreme[:2])
            assert name != "mst" or (isinstance(paths, SpanningForest) and paths.tree)

        peak(call)  # the first call loads compiled code
        sizes[name] = peak(call) / 300**2
    assert module.PAIR_BYTES / 1.2 < max(sizes.values()) < module.PAIR_BYTES, sizes


def test_no_neighbour_search_takes_more():
    rng = np.random.default_rng(2)
    points, queries = rng.random((700, 4)), rng.random((300, 4))
    for asked, pairs in ((None, 700 * 700), (queries, 700 * 300)):

        def call(asked=asked):
            nearest_neighbours(points, 3, asked)

        peak(call)
        assert peak(call) < module.POINT_BYTES * pairs


def test_a_problem_that_does_not_fit_is_refused_early(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "free_bytes", lambda: 3 * GIB)
    large = coo_array((np.ones(1), ([0], [1])), shape=(10_000, 10_000))
    text = r"must have at most 7,327 vertices in the 3.0 GiB that are free, not 10,000 \(60 bytes"

    def refused():
        with pytest.raises(ValueError, match=text):
            solve("apsp", large)

    assert peak(refused) < 1 << 20
    many = nx.empty_graph(8_000)
    with pytest.raises(ValueError, match=r"at most 7,327 vertices .* not 8,000"):
        solve("mst", many)
    with pytest.raises(ValueError, match=r"points must have at most 14,188 rows .* not 20,000"):
        nearest_neighbours(np.zeros((20_000, 1)), 1)
    with pytest.raises(ValueError, match=r"queries must have at most 20,132 rows .* not 30,000"):
        nearest_neighbours(np.zeros((10_000, 1)), 1, np.zeros((30_000, 1)))
    mmwrite(tmp_path / "large.mtx", large)
    for problem, free, message in (("apsp", 3 * GIB, "7,327 vertices"), ("knn", 1 << 27, "10,000")):
        monkeypatch.setattr(module, "free_bytes", lambda free=free: free)
        assert main(["graph", problem, "--graph", str(tmp_path / "large.mtx")]) == 2
        captured = capsys.readouterr()
        assert message in captured.err and captured.err.count("\n") == 1 and not captured.out


def test_a_problem_that_fits_is_not_refused(monkeypatch):
    monkeypatch.setattr(module, "free_bytes", lambda: 0)  # not read for a small problem
    assert solve("apsp", nx.path_graph(40)).value(0, 39) == 39
    monkeypatch.setattr(module, "free_bytes", lambda: None)
    module.check_memory(1 << 20, 1 << 20, pair_bytes=60, what="graph", name="vertices")
    monkeypatch.setattr(module, "free_bytes", lambda: 60 * 4_000**2)
    module.check_memory(4_000, 4_000, pair_bytes=60, what="graph", name="vertices")
    with pytest.raises(ValueError, match="at most 4,000 vertices"):
        module.check_memory(4_001, 4_001, pair_bytes=60, what="graph", name="vertices")
