"""A mutation of each formula of the model is noticed by the tests of the equations."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.sim.roofline import test_model
from vitruvian.sim.roofline import model

SOURCE = Path(model.__file__).read_text(encoding="utf-8")

#: The equation of Zhou et al. 2025 or the rule, the text of the model, and its mutation.
MUTATIONS = [
    ("1", "actual=total / counters.total_s", "actual=total / count.active_s"),
    ("2", "ideal=total / ideal_s", "ideal=max(count.work.values()) / ideal_s"),
    (
        "3",
        "ideal_s += work / component.ceilings[item]",
        "ideal_s += work / max(component.ceilings.values())",
    ),
    ("4", "total += work / 2 if moved else work", "total = work"),
    ("5", "utilisation=min(ideal_s / counters.total_s", "utilisation=min(ideal_s / count.active_s"),
    (
        "6",
        "time_ratio=min(count.active_s / counters.total_s",
        "time_ratio=min(ideal_s / counters.total_s",
    ),
    ("7", "efficiency=min(ideal_s / count.active_s", "efficiency=min(ideal_s / counters.total_s"),
    (
        "8, 9: the mean of the efficiencies without their times as weights",
        "efficiency=min(ideal_s / count.active_s, 1.0)",
        "efficiency=sum(w / component.ceilings[i] / (count.active_s / len(count.work))"
        " for i, w in count.work.items()) / len(count.work) ** 2",
    ),
    ("bound", "if top.utilisation >= _utilisation", "if top.utilisation > _utilisation"),
    (
        "parallelism",
        "longest.time_ratio < limits.time_ratio",
        "longest.time_ratio <= limits.time_ratio",
    ),
    (
        "inefficient",
        "inefficient = longest.component.kind == compute",
        "inefficient = top.component.kind == compute",
    ),
    (
        "threshold",
        "return limits.cube_utilisation if cube",
        "return limits.cube_utilisation if not cube",
    ),
    ("ceiling", "if ideal_s > count.active_s", "if ideal_s > counters.total_s"),
    ("active", "count.active_s > counters.total_s *", "count.active_s > 3 * counters.total_s *"),
]


def failures(monkeypatch, source):
    """Return the tests of the equations and classes that fail with this text of the model."""
    module = ModuleType("mutated_model")
    monkeypatch.setitem(sys.modules, "mutated_model", module)
    exec(compile(source, "mutated_model", "exec"), module.__dict__)
    for name in ("analyse", "Bound", "Thresholds", "CounterError"):
        monkeypatch.setattr(test_model, name, getattr(module, name))
    t, bound = test_model, module.Bound
    checks = [
        t.test_equations_one_to_seven_by_hand,
        t.test_equations_eight_and_nine,
        t.test_the_ideal_is_neither_the_largest_nor_the_mean_of_the_peaks,
        t.test_moves_of_a_vector_unit_count_as_lanes,
        t.test_thresholds_are_inclusive_and_depend_on_the_cube,
        lambda: t.test_counters_that_cannot_be_are_refused_in_one_line(
            1.0, "GM->UB", 1.2, 0.5, "MTE2: work must be within the ceilings"
        ),
        lambda: t.test_counters_that_cannot_be_are_refused_in_one_line(
            1.0, "GM->UB", 1.0, 2.0, "MTE2: active time must be at most the total"
        ),
        lambda: _classes(bound),
    ]
    failed = []
    for number, check in enumerate(checks):
        try:
            check()
        except (AssertionError, ZeroDivisionError, pytest.fail.Exception, ValueError):
            failed.append(number)
    return failed


def _classes(bound):
    """Check the class where the longest component is of another kind than the most used one."""
    found = test_model.analyse(
        test_model.counters(
            1.0,
            (test_model.VECTOR, {"fp16": 1.0}, 0.9),
            (test_model.LOAD, {"GM->UB": 0.8}, 0.6),
        )
    )
    assert found.bound == bound.INEFFICIENT_COMPUTE


def test_the_model_as_it_is_passes(monkeypatch):
    assert failures(monkeypatch, SOURCE) == []


@pytest.mark.parametrize(("name", "old", "new"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_a_mutation_is_noticed(monkeypatch, name, old, new):
    assert SOURCE.count(old) == 1
    assert failures(monkeypatch, SOURCE.replace(old, new))
