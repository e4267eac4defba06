"""Schedules from shapes alone: those of a problem with values, and bad input."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers.zhang24.planning import plan, simulate_pattern
from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.applications import APPLICATIONS
from vitruvian.golden.sparse.applications.solvers import gmres_graph
from vitruvian.sim.sparse.application import pattern_of_sparse, simulate_application
from vitruvian.sim.sparse.architecture import load_architecture


@pytest.mark.parametrize("application", ["pagerank", "bfs", "gmres"])
def test_a_pattern_gives_the_report_of_the_problem(application):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 60, (2, 300))
    matrix = Sparse.from_entries(rows, columns, rng.random(300) + 0.1, (60, 60))
    options = {"b": np.ones(60)} if application == "gmres" else {}
    problem = APPLICATIONS[application](matrix, **options)
    if application == "gmres":  # without the residual that the thesis does not state
        problem = replace(problem, graph=gmres_graph(10, recompute=False))
    machine = load_architecture()
    whole = simulate_application(problem, machine, iterations=5)
    found = simulate_pattern(pattern_of_sparse(matrix), machine, application, iterations=5)
    # The problem may run for more iterations, so SIDA starts a pair that it does not finish.
    same = ("rows", "nonzeros", "baseline_seconds", "baseline_memory_bytes", "storage_share")
    assert {key: whole.figures()[key] for key in same} == {
        key: found.figures()[key] for key in same
    }
    assert found.cycles <= whole.cycles


def test_a_network_has_one_iteration_and_the_features():
    one, two = (plan("gcn", 5000, features=f, layers=3) for f in (4, 8))
    assert one.iterations == 1 and sum(bool(work.product) for work in one.work) == 3
    reads = [sum(work.read + work.written for work in each.work) for each in (one, two)]
    assert reads[1] == 2 * reads[0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("pagerang", 9), {}, "application must be one of"),
        (("pagerank", 0), {}, "rows must be"),
        (("pagerank", 9), {"iterations": 0}, "iterations must be"),
        (("gcn", 9), {"features": 1001}, "features must be"),
        (("gcn", 9), {"layers": 0}, "layers must be"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plan(*arguments, **options)
