"""Pairs of nodes in one loop, and least squares block by block, against the plain operations."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.sparse_problems import PROBLEMS, problem
from vitruvian.golden.sparse import elementwise, execute, fusion
from vitruvian.golden.sparse.applications.solvers import BICGSTAB, CG
from vitruvian.golden.sparse.elementwise import REDUCTIONS, apply
from vitruvian.golden.sparse.fusion import FusedPair, fused
from vitruvian.golden.sparse.graph import Ewise, Graph, Node, Reduce


def one_by_one(p) -> dict[str, np.ndarray]:
    """Return the results of a problem whose nodes run one after the other."""
    tensors = execute.begin(p.graph, p.matrices, p.given)
    done = 0
    while done < p.iterations and not execute.ended(p.graph, tensors):
        for node in p.graph.body:
            execute.execute(node, tensors, p.matrices)
        execute.confirmed(p.graph, tensors, p.matrices)
        done += 1
    return {name: np.asarray(tensors[name]) for name in p.graph.results} | {"done": np.array(done)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_application_has_the_bits_of_its_nodes(name, seed):
    p = problem(name, seed)
    expected = one_by_one(p)
    ours = execute.run(p.graph, p.matrices, p.given, iterations=p.iterations)
    assert ours.iterations == expected.pop("done")
    for key, values in expected.items():
        assert ours.values[key].tobytes() == values.tobytes(), key


def test_the_solvers_have_the_pairs_that_their_formulas_have():
    """Three updates and two scalar products of CG; five products and six updates of BiCGSTAB."""
    for graph, sums, products in ((CG, 3, 2), (BICGSTAB, 6, 5)):
        pairs = [step for step in fused(graph) if isinstance(step, FusedPair)]
        assert sum(isinstance(pair.reader, Ewise) for pair in pairs) == sums
        assert sum(isinstance(pair.reader, Reduce) for pair in pairs) == products
        nodes = [
            node
            for step in fused(graph)
            for node in ((step.product, step.reader) if isinstance(step, FusedPair) else (step,))
        ]
        assert nodes == list(graph.body)


def small(*body: Node, results: tuple[str, ...] = ("z",)) -> Graph:
    """Return a graph of element-wise operations on x, y and the scalar s."""
    return Graph(name="small", given=("x", "y", "s"), matrices=(), body=body, results=results)


PRODUCT = Ewise("t", "mul", ("s", "y"))


@pytest.mark.parametrize(
    ("graph", "pairs"),
    [
        (small(PRODUCT, Ewise("z", "add", ("x", "t"))), 1),
        (small(PRODUCT, Ewise("z", "sub", ("x", "t"))), 1),
        # The product is a result, or read again, or not read; or the reader takes it otherwise.
        (small(PRODUCT, Ewise("z", "add", ("x", "t")), results=("z", "t")), 0),
        (small(PRODUCT, Ewise("z", "add", ("x", "t")), Ewise("z", "mul", ("z", "t"))), 0),
        (small(PRODUCT, Ewise("z", "add", ("x", "y"))), 0),
        (small(PRODUCT, Reduce("z", "add", ("x",))), 0),
        (small(PRODUCT, Ewise("z", "sub", ("t", "x"))), 0),
        (small(PRODUCT, Ewise("z", "add", ("t", "t"))), 0),
        (small(PRODUCT, Ewise("z", "min", ("x", "t"))), 0),
        (small(Ewise("t", "mul", ("x", "y")), Reduce("z", "add", ("t",))), 1),
        (small(Ewise("t", "mul", ("x", "y")), Reduce("z", "max", ("t",))), 0),
    ],
)
def test_only_a_product_for_the_next_node_alone_is_fused(graph, pairs):
    assert sum(isinstance(step, FusedPair) for step in fused(graph)) == pairs
    rng = np.random.default_rng(1)
    # Zeros of both signs, a subnormal and infinities: the loops have the bits of the operations.
    special = [0.0, -0.0, 5e-324, np.inf, 1e308]
    x, y = np.concatenate([rng.permuted([special, special], axis=1), rng.random((2, 40))], axis=1)
    for scale in (-0.0, 3.5, -1e300):
        given = {"x": x, "y": y, "s": np.float64(scale)}
        tensors = dict(given)
        for node in graph.body:
            execute.execute(node, tensors, {})
        ours = execute.run(graph, {}, given)
        for name in graph.results:
            np.testing.assert_array_equal(ours.values[name], tensors[name])
            signs = np.signbit(ours.values[name]), np.signbit(tensors[name])
            numbers = ~np.isnan(tensors[name])
            assert (signs[0] == signs[1])[numbers].all()


def test_a_reader_with_several_features_runs_node_by_node():
    graph = small(PRODUCT, Ewise("z", "sub", ("x", "t")))
    given = {"x": np.ones((3, 2)), "y": np.arange(6.0).reshape(3, 2), "s": 2.0}
    assert (execute.run(graph, {}, given).values["z"] == 1 - 2 * given["y"]).all()
    given = {"x": np.ones(3), "y": np.arange(3.0), "s": np.arange(3.0)}  # no scalar
    assert execute.run(graph, {}, given).values["z"].tolist() == [1, 0, -3]


def least_squares(right: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return apply(REDUCTIONS["least_squares"], (right, *matrix.T))


@pytest.mark.parametrize("rows", [1, 3, 10, 11, 1023, 2047, 2048, 2049, 5000, 10_000])
def test_least_squares_equal_those_of_numpy(rows):
    """Tall and wide matrices, with rows that no whole block has."""
    rng = np.random.default_rng(rows)
    matrix, right = rng.standard_normal((rows, 10)), rng.standard_normal(rows)
    matrix /= np.linalg.norm(matrix, axis=0)  # of several solutions, the shortest of this one
    expected = np.linalg.lstsq(matrix, right)[0]
    # The condition of such a matrix is below 1000 unless it is nearly square; each of both is
    # accurate to some roundings of 1.1e-16, times the condition's square.
    condition = np.linalg.cond(matrix)
    error = np.linalg.norm(least_squares(right, matrix) - expected)
    assert error <= 1e-13 * condition**2 * np.linalg.norm(expected)


def test_least_squares_of_nearly_parallel_columns_keep_their_accuracy():
    """Ten powers of a diagonal matrix: normal equations would square a condition of 1e10."""
    rng = np.random.default_rng(3)
    x, diagonal = rng.standard_normal(30_000), np.linspace(0.5, 1, 30_000)
    matrix = np.stack([x * diagonal**power for power in range(10)], 1)
    matrix /= np.linalg.norm(matrix, axis=0)
    right = rng.standard_normal(len(x))

    def distance(found: np.ndarray) -> float:
        return float(np.linalg.norm(right - matrix @ found))

    best = distance(np.linalg.lstsq(matrix, right, rcond=None)[0])
    # Roundings of coefficients up to 2e9: 1.1e-16 · 10 · 2e9, relative to a distance of 173
    assert abs(distance(least_squares(right, matrix)) / best - 1) < 1e-8
    squared = np.linalg.solve(matrix.T @ matrix, matrix.T @ right)
    assert distance(squared) / best - 1 > 1e-6


def test_of_several_solutions_the_shortest_is_taken():
    rng = np.random.default_rng(4)
    column = rng.standard_normal(4000)
    column /= np.linalg.norm(column)
    found = least_squares(3 * column, np.stack([column, column, np.zeros(4000)], 1))
    np.testing.assert_allclose(found, [1.5, 1.5, 0], rtol=0, atol=1e-12)
    assert np.isnan(least_squares(column, np.full((4000, 2), np.inf))).all()


def test_a_triangle_without_the_last_rows_is_noticed(monkeypatch):
    """The comparison with NumPy fails if the rows that fill no block are lost."""

    def cut(matrix: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.qr(matrix[: len(matrix) // 1024 * 1024], mode="r"))

    monkeypatch.setattr(elementwise, "_triangle", cut)
    with pytest.raises(AssertionError):
        test_least_squares_equal_those_of_numpy(5000)


def test_a_product_that_is_read_later_is_noticed(monkeypatch):
    """The comparison with the nodes fails if every product is fused, read again or not."""
    p = problem("cg", 1)
    again = (*p.graph.body, Ewise("x", "add", ("x", "x_step")))
    p = replace(p, graph=replace(p.graph, body=again), iterations=3)
    assert (
        one_by_one(p)["x"].tobytes()
        == execute.run(p.graph, p.matrices, p.given, iterations=3).values["x"].tobytes()
    )
    monkeypatch.setattr(fusion, "_private", lambda graph: {"x_step"})
    with pytest.raises(KeyError):
        execute.run(p.graph, p.matrices, p.given, iterations=3)
