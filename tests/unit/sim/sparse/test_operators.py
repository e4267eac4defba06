"""Operators of the applications: expressions, shapes and counts by hand."""

import numpy as np

from tests.support.sparse_problems import problem
from vitruvian.golden.sparse.applications.problem import ewise, reduce
from vitruvian.golden.sparse.applications.ranking import gcn_graph
from vitruvian.golden.sparse.graph import Graph, Swap, Vxm
from vitruvian.sim.sparse.operators import Operator, unrolled


def operators(name: str, iterations: int = 1) -> tuple[list[Operator], dict[str, int]]:
    """Return the operators of a random problem with 40 vertices, and the sizes of vectors."""
    stated = problem(name, 1)
    shapes = {key: np.shape(value) for key, value in stated.given.items()}
    matrices = {key: matrix.shape for key, matrix in stated.matrices.items()}
    found, values, _ = unrolled(stated.graph, shapes, matrices, iterations)
    return [each for each in found if each.view or each.swept], values


def short(operator: Operator) -> tuple[str, list[str], int]:
    """Return output, inputs and operations, with the graph's names for the tensors."""
    names = [name.split("@")[0] for name in operator.vectors]
    return operator.output.split("@")[0], names, operator.operations


def test_conjugate_gradients_have_five_vector_operators_and_a_product():
    found, _ = operators("cg", 2)  # in the first iteration, p is a copy of r
    assert [(out, sorted(names), count) for out, names, count in map(short, found[6:])] == [
        ("q", ["p"], 1),  # for each nonzero
        ("pq", ["p", "q"], 2 * 40),
        ("x", ["p", "x"], 2 * 40),
        ("r", ["q", "r"], 2 * 40),
        ("rr_next", ["r"], 2 * 40),
        ("p", ["p", "r"], 2 * 40),
    ]


def test_pagerank_joins_what_nothing_else_uses():
    found, _ = operators("pagerank")
    assert [(short(each)[0], short(each)[2]) for each in found] == [
        ("lost_sum", 2 * 40),
        ("scaled", 40),
        ("spread", 1),
        ("next", 2 * 40),
        ("residual", 3 * 40),
    ]


def test_a_swap_and_a_copy_move_nothing():
    graph = Graph(
        name="renaming",
        given=("x", "old"),
        body=(
            ewise("same", "copy", "x"),
            Vxm("y", "same"),
            Swap("y", "old"),
            ewise("x", "add", "old", 1.0),
        ),
        results=("x",),
    )
    found, values, results = unrolled(graph, {"x": (3,), "old": (3,)}, {"A": (3, 3)}, 1)
    assert [short(each)[:2] for each in found] == [("y", ["x"]), ("x", ["y"])]
    assert values == {"x": 3, "old": 3, "y@0.1": 3, "x@0.3": 3}
    assert results == {"x@0.3"}


def test_a_tensor_of_the_next_iteration_is_no_inner_result():
    body = (Vxm("y", "x"), ewise("z", "add", "y", 1.0), ewise("x", "mul", "z", "kept"))
    shapes = {"x": (3,), "kept": (3,)}
    graph = Graph(name="g", given=("x", "kept"), body=body, results=("x",))
    found, _, _ = unrolled(graph, shapes, {"A": (3, 3)}, 1)
    assert [short(each)[:2] for each in found] == [("y", ["x"]), ("x", ["y", "kept"])]
    carried = Graph(
        name="g",
        given=("x", "kept"),
        body=(*body[:2], ewise("x", "mul", "kept", 2.0), ewise("kept", "copy", "z")),
        results=("x",),
    )
    found, _, _ = unrolled(carried, shapes, {"A": (3, 3)}, 1)
    assert [short(each)[:2] for each in found] == [("y", ["x"]), ("z", ["y"]), ("x", ["kept"])]


def test_features_multiply_sizes_and_operations():
    n = 7
    shapes = {"features": (n, 5), "weights_0": (5, 4), "weights_1": (4, 3)}
    found, values, results = unrolled(gcn_graph(2), shapes, {"A": (n, n)}, 1)
    assert [(short(each)[0], each.output_values, each.operations) for each in found] == [
        ("sum", 5 * n, 5),  # operations for each nonzero
        ("features", 4 * n, 5 * 4 * n + 4 * n),  # the dense product and ReLU
        ("sum", 4 * n, 4),
        ("features", 3 * n, 4 * 3 * n),
    ]
    assert {values[name] for name in results} == {3 * n}
    assert "weights_0" not in values  # a small matrix stays on chip


def test_a_matrix_that_is_not_square_has_two_sizes_of_vectors():
    body = (
        Vxm("center", "choice"),
        reduce("norm", "add", "center"),
        Vxm("dots", "center", transposed=True),
        ewise("choice", "add", "dots", "norm"),
    )
    graph = Graph(name="g", given=("choice",), body=body, results=("choice",))
    found, _, _ = unrolled(graph, {"choice": (9,)}, {"A": (9, 4)}, 1)
    assert [each.output_values for each in found] == [4, 0, 9, 9]
    assert found[1].reduces and found[3].whole == (found[1].output,)
