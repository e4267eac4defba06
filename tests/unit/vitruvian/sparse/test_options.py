"""The options of the sparse applications by our names and by those of NetworkX and SciPy."""

import inspect
from typing import Any

import networkx as nx
import pytest

from tests.support.sparse_problems import matrix, system
from vitruvian import sparse
from vitruvian.common.errors import UserError
from vitruvian.sparse.options import OPTIONS, SYNONYMS, SolverOptions
from vitruvian.sparse.solving import solve


def test_the_signature_lists_all_options():
    """Regression: completion and editors saw ``**options`` only."""
    every = {name for options in (*OPTIONS.values(), *SYNONYMS.values()) for name in options}
    assert set(SolverOptions.__annotations__) == every
    for function in (solve, sparse.problem):
        shown = inspect.signature(function).parameters
        assert every <= set(shown) and "options" not in shown


@pytest.mark.parametrize(
    ("app", "option", "meant"),
    [
        ("pagerank", "rtol", "tolerance"),
        ("pagerank", "maxiter", "iterations"),
        ("cg", "atol", "tolerance"),
        ("gmres", "n_iter", "iterations"),
        ("kmeans", "n_clusters", "clusters"),
        ("kmeans", "k", "clusters"),
        ("knn", "k", "hops"),
    ],
)
def test_names_of_other_libraries_have_a_hint(app, option, meant):
    with pytest.raises(UserError, match=rf"not '{option}'; did you mean {meant}\?$"):
        call: Any = solve
        call(app, matrix(1), **{option: 3})


def test_names_of_networkx_and_scipy_mean_the_same():
    graph = nx.les_miserables_graph()
    call: Any = solve
    ours = solve("pagerank", graph, alpha=0.7, tol=1e-10, max_iter=200)
    same = solve("pagerank", graph, damping=0.7, tolerance=1e-10, iterations=200)
    assert ours.values.tobytes() == same.values.tobytes()
    theirs = nx.pagerank(graph, alpha=0.7, tol=1e-10, max_iter=200)
    assert max(abs(ours.by_vertex()[v] - theirs[v]) for v in theirs) < 1e-12
    a, b = system(2, symmetric=True)
    for app in ("cg", "bicgstab", "gmres"):
        one = solve(app, a, b=b, rtol=1e-5, maxiter=7)
        for names in ({"tolerance": 1e-5, "iterations": 7}, {"rtol": 1e-5, "max_iter": 7}):
            assert call(app, a, b=b, **names).values.tobytes() == one.values.tobytes()
    for app, pairs in SYNONYMS.items():
        for name, own in pairs.items():
            message = f"^{own} must be given once, not as {name} and as {own}$"
            with pytest.raises(UserError, match=message):
                call(app, a, **{name: 3, own: 3})
