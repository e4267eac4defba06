"""Products of two matrices by names and by numbers, against SciPy and NetworkX."""

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from tests.support.sparse_problems import matrix
from vitruvian import sparse
from vitruvian.common.errors import UserError


def test_products_of_matrices_are_scipys(tmp_path):
    rng = np.random.default_rng(1)
    a = scipy.sparse.csr_array(rng.random((30, 20)) * (rng.random((30, 20)) < 0.1))
    b = scipy.sparse.csr_array(rng.random((20, 40)) * (rng.random((20, 40)) < 0.2))
    product = sparse.mxm(a, b)
    expected = scipy.sparse.csr_array(a @ b)
    expected.sort_indices()
    ours = product.to_scipy()
    assert product.vertices is None and ours.shape == (30, 40)
    assert ours.indices.tolist() == expected.indices.tolist()
    assert ours.data.tobytes() == expected.data.tobytes()
    product.write(tmp_path / "p.mtx")
    again = scipy.sparse.csr_array(scipy.io.mmread(tmp_path / "p.mtx"))
    assert abs(again - expected).max() == 0
    product.write(tmp_path / "p.csv")
    table = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)
    assert (tmp_path / "p.csv").read_text().startswith("row,column,value\n")
    coo = expected.tocoo()
    assert (table == np.stack([coo.row, coo.col, coo.data], 1)).all()


@pytest.mark.parametrize("seed", range(5))
def test_graphs_are_multiplied_by_the_names_of_their_vertices(seed):
    """Two legs of a journey, of which each graph lists other vertices in another order."""
    rng = np.random.default_rng(seed)
    graphs: list[nx.DiGraph] = []
    for names in ("abcdef", "fehgba"):
        graph = nx.DiGraph()
        for _ in range(14):
            start, end = rng.choice([*names], 2)
            graph.add_edge(str(start), str(end), weight=float(rng.integers(1, 9)))
        graphs.append(graph)
    one, two = graphs
    product = sparse.mxm(one, two, semiring="minplus")
    assert product.vertices is not None and {*product.vertices} == {*one} | {*two}
    found = product.to_scipy().tocoo()
    ours = {
        (product.vertices[i], product.vertices[j]): value
        for i, j, value in zip(found.row, found.col, found.data, strict=True)
    }
    expected: dict[tuple[str, str], float] = {}
    for start, middle, first in one.edges(data="weight"):
        for end in [*two[middle]] if two.has_node(middle) else []:
            length = first + two[middle][end]["weight"]
            expected[start, end] = min(length, expected.get((start, end), np.inf))
    assert ours == expected and len(expected) > 3


def test_parallel_edges_are_joined_as_the_semiring_joins():
    edges = [("a", "b", 2.0), ("a", "b", 5.0), ("b", "c", 1.0)]
    for semiring, value in (("mma", 7.0), ("minplus", 3.0), ("maxplus", 6.0), ("orand", 1.0)):
        product = sparse.mxm(edges, edges, semiring=semiring)
        assert product.to_scipy().toarray()[0].tolist() == [0, 0, value]


def test_wrong_operands_are_refused(tmp_path):
    a = matrix(1)
    with pytest.raises(UserError, match=r"^a and b must both be graphs or both be matrices: b has"):
        sparse.mxm(a, [("a", "b")], weight=None)
    with pytest.raises(UserError, match=r"^b must have as many rows as a has columns, 40, not 3$"):
        sparse.mxm(a, np.eye(3))
    with pytest.raises(ValueError, match=r"^semiring must be one of mma, .*, not 'plus'"):
        sparse.mxm(a, a, semiring="plus")
    huge = sparse.mxm(np.full((1, 1), 1e200), np.full((1, 1), 1e200))
    with pytest.raises(UserError, match="elements of a Matrix Market file must be finite, not inf"):
        huge.write(tmp_path / "p.mtx")
    with pytest.raises(UserError, match=r"path must end in \.csv or \.mtx, not '.*p\.npz'"):
        huge.write(tmp_path / "p.npz")
    assert not [*tmp_path.iterdir()]
    huge.write(tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "row,column,value\n0,0,inf\n"


def test_a_missing_weight_warns():
    with pytest.warns(UserWarning, match="1 of 1 edges have no weight named 'weight'"):
        sparse.mxm([("a", "b")], [("b", "c", 1.0)])
