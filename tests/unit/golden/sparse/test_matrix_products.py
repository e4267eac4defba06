"""Products of matrices, triangles and components, against SciPy and NetworkX."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph

from vitruvian.golden.sparse import SEMIRINGS, Sparse, applications, mxm, triangles, vxm
from vitruvian.golden.sparse.execute import run
from vitruvian.golden.sparse.frontier import run_frontier
from vitruvian.golden.sparse.products import neighbours
from vitruvian.sparse import solve


def random_matrix(seed: int, shape: tuple[int, int], share: float = 0.1) -> Sparse:
    """Return a random matrix with values of both signs."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random(shape) < share)
    return Sparse.from_entries(rows, columns, rng.standard_normal(len(rows)), shape)


def as_scipy(a: Sparse) -> Any:
    """Return a matrix of SciPy with the same elements."""
    return scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)


@pytest.mark.parametrize("seed", range(6))
def test_products_have_the_bits_of_scipy(seed):
    for inner in (0, 1, 30):
        a, b = random_matrix(seed, (40, inner)), random_matrix(seed + 9, (inner, 25), 0.2)
        ours, theirs = mxm(a, b), as_scipy(a) @ as_scipy(b)
        theirs.sort_indices()
        assert ours.dense().tobytes() == theirs.toarray().tobytes()
        assert ours.column_index.tolist() == theirs.indices.tolist()
        assert ours.row_start.tolist() == theirs.indptr.tolist()


@pytest.mark.parametrize("name", SEMIRINGS)
def test_rows_of_products_are_products_of_rows(name):
    """Each row of A is a vector; its elements that are not stored are annihilators."""
    semiring = SEMIRINGS[name]
    a, b = random_matrix(3, (20, 30)), random_matrix(4, (30, 15), 0.2)
    assert semiring.no_edge is not None
    if name in ("maxmul", "minmul"):  # 0 or infinity annihilates positive values only
        a, b = a.with_values(abs(a.row_values)), b.with_values(abs(b.row_values))
    dense = a.dense(semiring.no_edge)
    product = mxm(a, b, semiring)
    stored = product.pattern().dense() == 1
    for row in range(20):
        theirs = vxm(dense[row], b, semiring)
        # −0 and +0 are equal: a missing term adds a zero to a sum.
        assert (product.dense()[row] == theirs)[stored[row]].all()
        assert np.isin(theirs[~stored[row]], [semiring.identity, semiring.no_edge]).all()


@pytest.mark.parametrize("seed", range(10))
def test_triangles_and_components_equal_networkx_and_scipy(seed):
    a = random_matrix(seed, (60, 60), (0.005, 0.02, 0.2)[seed % 3])
    graph = nx.from_scipy_sparse_array(as_scipy(neighbours(a)))
    counts = triangles(a)
    theirs: Any = nx.triangles(graph)
    assert counts.tolist() == list(theirs.values())
    s = neighbours(a)
    assert (counts == (mxm(s, s).dense() * s.dense()).sum(1) / 2).all()
    problem = applications.components(a)
    plain = run(problem.graph, problem.matrices, problem.given, iterations=problem.iterations)
    ours = run_frontier(problem)
    assert ours.values["label"].tobytes() == plain.values["label"].tobytes()
    assert (ours.iterations, ours.converged) == (plain.iterations, plain.converged)
    number, theirs = csgraph.connected_components(as_scipy(a), directed=True, connection="weak")
    labels = solve("components", a, dataflow="plain").values
    assert len(np.unique(labels)) == number
    # The smallest vertex of a component names it.
    assert labels.tolist() == [int(np.flatnonzero(theirs == part)[0]) for part in theirs]
    assert labels.tolist() == solve("components", a).values.tolist()


def test_shapes_that_do_not_fit_are_refused():
    a = random_matrix(1, (3, 4))
    with pytest.raises(ValueError, match=r"^b must have as many rows as a has columns, 4, not 3$"):
        mxm(a, a)
    with pytest.raises(ValueError, match=r"^matrix must be square, not 3 by 4$"):
        triangles(a)
