"""The OEI dataflow gives the bits of plain execution and holds what the pattern predicts."""

import numpy as np
import pytest

from tests.support.sparse_problems import PROBLEMS, problem
from vitruvian.golden.sparse import Sparse, dependency, oei
from vitruvian.golden.sparse.applications import APPLICATIONS, pagerank
from vitruvian.golden.sparse.execute import run
from vitruvian.golden.sparse.graph import Ewise, Graph, Reduce, Swap, Vxm
from vitruvian.golden.sparse.reuse import held_elements


def fused(name):
    """Return the kinds of the pairs of an application."""
    return [pair.kind for pair in dependency.pairs(problem(name, 0).graph)]


def test_which_products_share_a_pass():
    """CG and BiCGSTAB need whole vectors between products (Zhang 2024, §4.6.1)."""
    assert {name: fused(name) for name in APPLICATIONS} == {
        "pagerank": ["oei"],
        "kcore": ["oei"],
        "bfs": ["oei"],
        "sssp": ["oei"],
        "kmeans": ["stream", None],
        "knn": ["oei"],
        "labelprop": ["oei"],
        "gcn": ["oei", None],
        # The last product of a restart needs the step. The one that computes the residual joins
        # the first product of the next restart.
        "gmres": ["oei"] * 9 + [None, "oei"],
        "cg": [None],
        "bicgstab": [None, None],
        "components": ["oei"],
    }


def test_the_reason_names_what_blocks():
    (pair,) = dependency.pairs(problem("cg", 0).graph)
    assert pair.reason == "the second product's input needs pq, which needs a whole vector"


@pytest.mark.parametrize("width", [1, 7, 1000])
@pytest.mark.parametrize("name", PROBLEMS)
def test_oei_gives_the_bits_of_plain_execution(name, width):
    for seed in (0, 1):
        p = problem(name, seed)
        plain = run(p.graph, p.matrices, p.given, iterations=p.iterations)
        both, _ = oei.run_oei(p.graph, p.matrices, p.given, iterations=p.iterations, width=width)
        assert (both.iterations, both.converged) == (plain.iterations, plain.converged)
        for key, values in plain.values.items():
            assert both.values[key].tobytes() == values.tobytes(), key
        if any(fused(name)):
            assert both.reads < plain.reads
        else:
            assert both.reads == plain.reads


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_every_limit_of_iterations_gives_the_same(limit):
    p = problem("pagerank", 0)
    plain = run(p.graph, p.matrices, p.given, iterations=limit)
    both, occupancy = oei.run_oei(p.graph, p.matrices, p.given, iterations=limit)
    assert plain.values["rank"].tobytes() == both.values["rank"].tobytes()
    assert both.reads == -(-limit // 2) and occupancy.fused == limit // 2


@pytest.mark.parametrize("width", [1, 40])
@pytest.mark.parametrize("limit", range(1, 9))
def test_a_confirmation_writes_the_state_anew(limit, width):
    """A stop that is not confirmed lets the run go on, also if the next product has begun."""
    power = Graph(
        name="power",
        given=("x", "step"),
        body=(
            Vxm("y", "x"),
            Ewise("x", "mul", ("y", 0.5)),
            Ewise("step", "add", ("step", 1.0)),
            Ewise("done", "less", (2.0, "step")),
        ),
        results=("x", "step"),
        stop="done",
        confirm=(Vxm("x", "x"), Ewise("done", "less", (5.0, "step"))),
    )
    matrices = problem("pagerank", 0).matrices
    given = {"x": np.ones(40), "step": 0.0}
    plain = run(power, matrices, given, iterations=limit)
    both, _ = oei.run_oei(power, matrices, given, iterations=limit, width=width)
    assert both.values["x"].tobytes() == plain.values["x"].tobytes()
    assert both.iterations == plain.iterations == min(limit, 6)
    assert both.confirmations == plain.confirmations == max(min(limit, 6) - 2, 0)
    assert both.converged == plain.converged == (limit >= 6)
    assert plain.reads == plain.iterations + plain.confirmations
    assert both.reads <= plain.reads


def test_a_late_element_is_noticed(monkeypatch):
    """If the buffer loses an element, the results differ."""
    real = oei.hold

    def forgetful(start, index, values, begin, end, *buffer):
        return real(
            start, index, np.where(np.arange(len(values)) == 40, 0, values), begin, end, *buffer
        )

    monkeypatch.setattr(oei, "hold", forgetful)
    p = problem("pagerank", 0)
    plain = run(p.graph, p.matrices, p.given, iterations=2)
    both, _ = oei.run_oei(p.graph, p.matrices, p.given, iterations=2)
    assert (plain.values["rank"] != both.values["rank"]).any()


@pytest.mark.parametrize("width", [1, 3, 40])
def test_the_buffer_holds_what_the_pattern_predicts(width):
    p = problem("pagerank", 1)
    _, occupancy = oei.run_oei(p.graph, p.matrices, p.given, iterations=2, width=width)
    held = held_elements(p.matrices["A"], width=width)
    assert occupancy.after_load == held.after_load.tolist()
    assert occupancy.after_use == held.after_use.tolist()
    assert held.maximum == max(occupancy.after_use) and held.peak == max(occupancy.after_load)


@pytest.mark.parametrize("eager", [False, True])
def test_held_elements_by_definition(eager):
    rng = np.random.default_rng(3)
    rows, columns = np.nonzero(rng.random((30, 30)) < 0.2)
    held = held_elements(Sparse.from_entries(rows, columns, 1, (30, 30)), eager=eager)
    for step in range(30):
        lower = ((rows >= columns) & (columns <= step) & (rows > step)).sum()
        upper = ((rows < columns) & (rows <= step) & (columns > step)).sum()
        assert held.after_use[step] == lower + (upper if eager else 0)


def test_a_dense_matrix_holds_a_quarter_of_its_elements():
    """In the dense illustration (Zhang 2024, Fig. 4.10), rows below s meet columns up to s."""
    size = 40
    rows, columns = np.nonzero(np.ones((size, size)))
    dense = Sparse.from_entries(rows, columns, 1, (size, size))
    held = held_elements(dense)
    assert held.after_use.tolist() == [(s + 1) * (size - s - 1) for s in range(size)]
    assert held.maximum == size**2 // 4


def test_graphs_with_mistakes_are_refused():
    with pytest.raises(ValueError, match=r"inputs of .* must be given or written before, not 'y'"):
        Graph(name="g", given=("x",), body=(Ewise("z", "copy", ("y",)),), results=("z",))
    with pytest.raises(ValueError, match=r"inputs of add must be 2 operands"):
        Ewise("z", "add", ("x",))
    with pytest.raises(ValueError, match="function must be"):
        Reduce("z", "median", ("x",))
    with pytest.raises(ValueError, match="matrix must be"):
        Graph(name="g", given=("x",), body=(Vxm("z", "x", "B"),), results=("z",))
    p = problem("pagerank", 0)
    with pytest.raises(ValueError, match="tensors must be"):
        run(p.graph, p.matrices, {})
    with pytest.raises(ValueError, match="matrix must be square, not 2 by 3"):
        held_elements(Sparse.from_entries([0], [2], 1, (2, 3)))


def test_a_matrix_operand_that_needs_all_rows_blocks():
    graph = Graph(
        name="g",
        given=("x", "h"),
        body=(
            Vxm("y", "x"),
            Ewise("z", "rows_by", ("h", "y")),
            Vxm("w", "z"),
            Swap("w", "x"),
        ),
        results=("x",),
    )
    pair = dependency.pairs(graph)[0]
    assert pair.kind is None and "needs y" in pair.reason


def test_pagerank_refuses_what_is_not_square():
    with pytest.raises(ValueError, match="matrix must be square, not 2 by 3"):
        pagerank(Sparse.from_entries([0], [2], 1, (2, 3)))
