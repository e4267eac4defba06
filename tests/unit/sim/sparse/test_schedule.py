"""The schedule is that of golden's execution, and long runs equal what is unrolled."""

import dataclasses
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.sparse_problems import PROBLEMS, problem
from vitruvian.golden.sparse.applications import Problem
from vitruvian.golden.sparse.applications.problem import ewise, reduce
from vitruvian.golden.sparse.applications.ranking import PAGERANK
from vitruvian.golden.sparse.dependency import pairs
from vitruvian.golden.sparse.graph import Graph, Vxm
from vitruvian.golden.sparse.oei import run_oei
from vitruvian.sim.sparse import schedule as module
from vitruvian.sim.sparse.operators import Operator, unrolled
from vitruvian.sim.sparse.schedule import SparseSchedule, Sweep, schedule

N = 40


def plan(
    stated: Problem, iterations: int, limit: int | None = None, confirmations: int = 0
) -> SparseSchedule:
    shapes = {key: np.shape(value) for key, value in stated.given.items()}
    matrices = {key: matrix.shape for key, matrix in stated.matrices.items()}
    return schedule(
        stated.graph, shapes, matrices, iterations, limit=limit, confirmations=confirmations
    )


def sweeps(found: SparseSchedule) -> Counter[Sweep]:
    counts: Counter[Sweep] = Counter()
    for section, count in found.sections:
        for sweep in section.sweeps:
            counts[sweep] += count
    return counts


def kinds(found: SparseSchedule) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sweep, count in sweeps(found).items():
        counts[sweep.kind] += count
    return counts


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("name", PROBLEMS)
def test_passes_and_pairs_are_those_of_golden(name, limit):
    stated = problem(name, 2)
    stated = dataclasses.replace(stated, iterations=limit or stated.iterations)
    outcome, occupancy = run_oei(
        stated.graph, stated.matrices, stated.given, iterations=stated.iterations, width=40
    )
    found = kinds(plan(stated, outcome.iterations, stated.iterations, outcome.confirmations))
    assert found["oei"] + found["stream"] == occupancy.fused
    assert sum(found.values()) - found["vectors"] == outcome.reads


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_long_run_is_what_unrolling_gives(name, monkeypatch):
    stated = problem(name, 1)
    for iterations in (9, 12):
        short = plan(stated, iterations, 100)
        monkeypatch.setattr(module, "_UNROLLED", 100)
        whole = plan(stated, iterations, 100)
        monkeypatch.undo()
        assert dict(short.sections) == dict(whole.sections)


def test_the_sweeps_of_pagerank_by_hand():
    stated = problem("pagerank", 1)
    found = plan(stated, 20)
    assert kinds(found) == {"oei": 10, "vectors": 11}
    steady = max(found.sections, key=lambda item: item[1])[0]
    oei, vectors = steady.sweeps
    view = ("A", False)
    # The pass reads rank, dangling and share, and writes the first iteration's result, which the
    # residual of the second one needs. It computes next (2), the residual (3), the lost rank (2)
    # and the second product's input (1).
    assert oei == Sweep("oei", view, 1, 1, 3 * N, N, 8 * N, oei.touched)
    # The rest reads spread, rank, dangling and share, and writes the new rank and the input.
    assert vectors == Sweep("vectors", None, 0, 0, 4 * N, 2 * N, 8 * N, vectors.touched)
    # next: 1 + 1; residual: 2; lost: 2; scaled: 2 + 1
    assert oei.touched == vectors.touched == 9 * N
    # rank, dangling, share and the input enter; rank and the next input leave.
    assert (steady.read, steady.written) == (3 * N, 2 * N)
    assert [each.features for each in steady.gathered] == [1]


def test_conjugate_gradients_read_the_matrix_in_each_iteration():
    found = plan(problem("cg", 1), 9)
    assert kinds(found) == {"product": 9, "vectors": 18}
    steady = max(found.sections, key=lambda item: item[1])[0]
    product, update, direction = steady.sweeps
    assert (product.read, product.written, product.operations) == (N, N, 2 * N)
    assert (update.read, update.written, update.operations) == (4 * N, 2 * N, 6 * N)
    assert (direction.read, direction.written, direction.operations) == (2 * N, N, 2 * N)


@pytest.mark.parametrize("name", ["cg", "bicgstab"])
def test_a_confirmation_is_a_pass_over_the_matrix(name):
    """It reads the matrix, x and b, and writes the residual that the next iteration reads."""
    stated = problem(name, 1)
    without, once, thrice = (plan(stated, 9, 50, confirmations=count) for count in (0, 1, 3))
    (more,) = sweeps(once) - sweeps(without)
    assert (more.kind, more.os_features, more.is_features) == ("product", 1, 0)
    assert (more.read, more.written, more.operations) == (N, N, 3 * N)
    assert sweeps(thrice) - sweeps(without) == {more: 3}
    products = [sum(n for w, n in p.counted_work() if w.product) for p in (without, thrice)]
    assert products[1] - products[0] == 3
    assert thrice.work == without.work and len(thrice.confirm_work) == 3


def test_a_reduction_on_the_way_separates_the_products():
    body = [*PAGERANK.body]
    place = next(i for i, node in enumerate(body) if getattr(node, "out", "") == "followed")
    body.insert(place, reduce("damping", "max", "spread"))
    stated = problem("pagerank", 1)
    slow = dataclasses.replace(
        stated, graph=dataclasses.replace(PAGERANK, body=tuple(body), stop="done")
    )
    assert [pair.kind for pair in pairs(slow.graph)] == [None]
    found = kinds(plan(slow, 6))
    assert (found["oei"], found["product"]) == (0, 6)


def test_a_run_without_iterations_has_no_sections():
    assert plan(problem("cg", 1), 0).sections == ()


def check(graph: Graph, operators: list[Operator], levels: list[int], first: set, second: set):
    """Check by the definition that every operand is there in time."""
    made: dict[str, tuple[Operator, int]] = {}
    last = -1
    for operator, level in zip(operators, levels, strict=True):
        place = operator.iteration, operator.position
        for name in (*operator.vectors, *operator.whole):
            if name not in made:
                continue
            source, before = made[name]
            waits = (
                source.reduces
                or (source.iteration, source.position) in second
                or (operator.view is not None and place not in second)
                or name in operator.whole
            )
            if level >= 0:
                assert before < level if waits and source.swept else before <= level
        if operator.view and place not in second:
            assert level > last  # one matrix at a time
            last = level
        if operator.view and place in second:
            assert level == last
        if level >= 0:
            made[operator.output] = operator, level


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_operand_is_there_in_time(name):
    stated = problem(name, 1)
    shapes = {key: np.shape(value) for key, value in stated.given.items()}
    matrices = {key: matrix.shape for key, matrix in stated.matrices.items()}
    operators, _, _ = unrolled(stated.graph, shapes, matrices, 4)
    fused = {pair.position: pair for pair in pairs(stated.graph)}
    products = [(i, p) for i in range(4) for p, _ in stated.graph.products()]
    first, second = {}, {}
    place = 0
    while place < len(products) - 1:
        kind = fused[products[place][1]].kind
        if kind:
            first[products[place]] = second[products[place + 1]] = kind
        place += 2 if kind else 1
    levels = module._levels(operators, first, second)
    check(stated.graph, operators, levels, set(first), set(second))


def test_a_late_second_input_delays_the_pass():
    body = (
        reduce("total", "add", "x"),
        Vxm("y", "x"),
        ewise("w", "mul", "y", "total"),
        Vxm("x", "w"),
    )
    graph = Graph(name="late", given=("x",), body=body, results=("x",))
    assert [pair.kind for pair in pairs(graph)] == ["oei", None]
    ((section, count),) = schedule(graph, {"x": (4,)}, {"A": (4, 4)}, 1).sections[1:]
    assert count == 1 and [sweep.kind for sweep in section.sweeps] == ["oei"]


def test_what_needs_a_whole_product_waits_for_it():
    body = (Vxm("y", "x"), reduce("first", "at", "y", 0.0), ewise("x", "mul", "x", "first"))
    graph = Graph(name="whole", given=("x",), body=body, results=("x",))
    ((section, _),) = schedule(graph, {"x": (4,)}, {"A": (4, 4)}, 1).sections
    assert [sweep.kind for sweep in section.sweeps] == ["product", "vectors"]


def test_a_sweep_has_one_matrix():
    body = (Vxm("y", "x", "A"), Vxm("z", "x", "B"))
    graph = Graph(name="two", given=("x",), body=body, results=("y", "z"), matrices=("A", "B"))
    shapes = {"A": (4, 4), "B": (4, 4)}
    ((section, _),) = schedule(graph, {"x": (4,)}, shapes, 1).sections
    assert [sweep.view for sweep in section.sweeps] == [("A", False), ("B", False)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("after = level + 1 if operator.swept else level", "after = level"),
        ("complete[operator.output] = after\n", "complete[operator.output] = level\n"),
        ("free = level + 1\n", "free = level\n"),
        ("operator.output] = level, level + 1", "operator.output] = level, level"),
    ],
)
def test_a_mutation_of_the_levels_is_noticed(old, new, monkeypatch):
    source = Path(module.__file__).read_text()
    assert source.count(old) == 1
    mutant = ModuleType("mutant")
    monkeypatch.setitem(sys.modules, "mutant", mutant)
    exec(compile(source.replace(old, new), "mutant", "exec"), mutant.__dict__)
    monkeypatch.setattr(module, "_levels", mutant._levels)
    with pytest.raises(AssertionError):
        test_what_needs_a_whole_product_waits_for_it()
        test_a_sweep_has_one_matrix()
        for name in PROBLEMS:
            test_every_operand_is_there_in_time(name)
