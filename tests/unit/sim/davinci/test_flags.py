"""Flags that are set again, and flags between cores that stay set."""

import pytest

from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.checks.check import check


def flagged(program, **options):
    return [f.message for f in check(program, **options) if f.check == "flag"]


def ahead(chip, kind):
    """Return a program whose MTE2 may be two loads ahead of MTE1, which waits after each set."""
    core = Program(load_chip(chip)).core(0, kind)
    near, matrix = core.allocate("L1", (256,), "fp16"), core.allocate("L0A", (256,), "fp16")
    for _ in range(3):
        core.set_flag(Unit.MTE2, Unit.MTE1, 0)
        core.wait_flag(Unit.MTE2, Unit.MTE1, 0)
        core.load(matrix, near, repeat=1)
    return core.program


@pytest.mark.parametrize(
    ("chip", "kind", "strict", "count"),
    [
        ("ascend910b", "cube", False, 0),
        ("ascend910b", "cube", True, 1),
        ("ascend910", "aicore", False, 1),
    ],
)
def test_a_flag_set_again_before_its_wait_has_come(chip, kind, strict, count):
    found = flagged(ahead(chip, kind), strict=strict)
    assert len(found) == count and all("can be set again before wait_flag" in f for f in found)


def test_two_sets_without_a_wait_between_them():
    core = Program(load_chip("ascend910b")).core(0, "cube")
    for method in (core.set_flag, core.set_flag, core.wait_flag, core.wait_flag):
        method(Unit.MTE2, Unit.MTE1, 0)
    assert len(flagged(core.program)) == 1


@pytest.mark.parametrize("waiting", [(0, 1), (1,), ()])
def test_a_flag_between_cores_that_stays_set(waiting):
    """A Cube core's flag reaches both vector cores of its group, of which one must wait for it."""
    program = Program(load_chip("ascend910b"))
    program.core(0, "cube").cross_set(Unit.FIX, 3)
    for index in range(2):
        core = program.core(index, "vector")
        core.scalar(1)
        if index in waiting:
            core.cross_wait(Unit.S, 3)
    found = flagged(program)
    assert len(found) == (not waiting)
    assert not found or "is still set when the kernel ends; cross_wait" in found[0]
    assert not found or "of vector 0 is missing" in found[0]


def test_all_cores_wait_for_each_other():
    program = Program(load_chip("ascend910b"))
    for index in range(4):
        core = program.core(index, "vector")
        core.cross_set(Unit.MTE3, 1, "kind")
        core.cross_wait(Unit.MTE3, 1, "kind")
    assert not flagged(program)
