"""The time that a component twice as fast saves, and the doubts about a class that follow."""

import re
from dataclasses import replace

import pytest

from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline import Bound, analyse, counters_of
from vitruvian.sim.roofline.doubled import savings

CHIP = load_chip("ascend310")


def saved(report):
    analysis = analyse(counters_of(report))
    return replace(analysis, savings=savings(report, analysis))


def savings_of(analysis):
    assert analysis.savings is not None
    return analysis.savings


def test_a_unit_that_works_alone_saves_half():
    program = Program(CHIP, "alone")
    core = program.core()
    x = core.allocate("UB", (128 * 200,), "fp16", "x")
    for _ in range(20):
        core.vrelu(x, x)
    found = savings_of(saved(simulate(program, cube=None, checks=False)))
    assert found.alone == {"V": pytest.approx(0.5, abs=1e-6)}
    assert found.group == ("V",) and found.together == found.alone["V"]


def test_units_that_take_turns_save_half_of_their_shares():
    program = Program(CHIP, "turns")
    core = program.core()
    x = core.allocate("UB", (16384,), "fp16", "x")
    l0 = core.allocate("L0A", (8, 16, 16), "fp16", "l0")
    l1 = core.allocate("L1", (8, 16, 16), "fp16", "l1")
    for turn in range(8):
        core.vrelu(x, x)
        core.set_flag(Unit.V, Unit.MTE1, turn % 2)
        core.wait_flag(Unit.V, Unit.MTE1, turn % 2)
        core.load(l0, l1)
        core.set_flag(Unit.MTE1, Unit.V, turn % 2)
        core.wait_flag(Unit.MTE1, Unit.V, turn % 2)
    analysis = saved(simulate(program, cube=None, checks=False))
    alone = savings_of(analysis).alone
    assert alone.keys() == {"V", "MTE1"}
    for row in analysis.rows:
        assert alone[row.component.name] == pytest.approx(row.time_ratio / 2, abs=0.01)


def test_a_bus_that_two_engines_fill_saves_half():
    made = KERNELS["mte2+3Con"].build(chip=CHIP, data=False)
    analysis = saved(simulate(made.program, cube=None, checks=False))
    assert analysis.bound == Bound.MTE and analysis.cause.component.name.startswith("bus")
    found = savings_of(analysis)
    assert found.alone[analysis.cause.component.name] > 0.4
    assert found.alone["MTE2"] < 0.05 and analysis.doubt() == ""


def test_two_engines_that_work_at_once_bound_an_operator_together():
    """With one core of the Ascend 910, MTE2 and MTE3 work all the time beside each other."""
    chip = load_chip("ascend910")
    made = KERNELS["reluKer"].build((65536,), chip=chip, cores=1, data=False)
    analysis = saved(simulate(made.program, cube=None, checks=False))
    assert analysis.label == "MTE bound (MTE2)"
    found = savings_of(analysis)
    assert found.alone["MTE2"] < 0.02 and found.together > 0.4
    text = (
        r"However, MTE2 .* alone would save \d\.\d\d % .*; MTE3 .* and bus memory work about as l"
    )
    assert re.match(text, analysis.doubt())


def test_a_class_whose_component_saves_little_is_in_doubt():
    """The inefficient engine of Cube-fx fills a bus that it shares with the other core."""
    made = KERNELS["cubefx"].build(chip=CHIP, data=False)
    report = simulate(made.program, cube=None, checks=False)
    plain, analysis = analyse(counters_of(report)), saved(report)
    assert analysis.bound == plain.bound == Bound.INEFFICIENT_MTE
    assert analysis.label == plain.label and analysis.cause.time_ratio > 0.8
    assert savings_of(analysis).alone["MTE3"] < 0.1
    doubt = analysis.doubt()
    assert doubt.startswith("However, MTE3 (MTE-UB) alone would save 5.")
    assert "; bus interconnect works about as long, and together they would save 25." in doubt
    assert analysis.verdict() == f"{plain.verdict()} {doubt}"
    figures = analysis.as_dict()["saved_if_twice_as_fast"]
    assert figures["alone"] == savings_of(analysis).alone
    # Counters alone cannot tell.
    assert plain.doubt() == "" and "saved_if_twice_as_fast" not in plain.as_dict()
    # Dependences and latencies remain, if not even all of them help.
    little = replace(savings_of(analysis), together=0.06)
    doubt = replace(analysis, savings=little).doubt()
    assert doubt.endswith("6.00 %: dependences and latencies bound the operator.")
    doubt = replace(analysis, savings=replace(little, group=("MTE3",))).doubt()
    assert doubt.endswith("if it were twice as fast: dependences and latencies bound the operator.")
