"""The cocotb benches of the OEI pipeline and of its control, and mutants that they notice."""

import pytest

from vitruvian.flows.formal.proof import Mutation
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei_config import OEIConfig
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.sparse import bench_control, bench_oei
from vitruvian.sim.rtl.emit import to_verilog

CONTROL = {"lanes": 2, "rows": 16, "columns": 2, "capacity": 32}
SIZES = {"lanes": 2, "rows": 8, "columns": 2, "capacity": 16, "beats": 2, "format": "fp16"}


def run(bench, design, sizes, count):
    given = {"configuration": sizes, "count": count}
    return run_bench(to_verilog(design), bench.__name__, parameters=given)


def test_bench_of_the_control():
    result = run(bench_control, bench_control.unit_of({"configuration": CONTROL}), CONTROL, 4)
    assert result.passed and result.tests == 5, result.failures


def test_bench_of_the_pipeline():
    result = run(bench_oei, bench_oei.unit_of({"configuration": SIZES}), SIZES, 3)
    assert result.passed and result.tests == 4, result.failures


class TooEarly(PipelineControl):
    """A control whose steps end before the element-wise stage has finished."""

    def _finished(self, stage, at_work):
        return super()._finished(stage, at_work) | (stage == 1)


class NoDelay(PipelineControl):
    """A control that gives the last stage the sub-tensor of the stage before it."""

    def _delay(self, delay):
        return min(delay, 1)


def test_a_control_that_refuses_as_a_step_begins_is_noticed():
    """Regression: no vector had a wait in the first cycle of a step."""
    mutation = Mutation(
        name="the last stage counts as finished before it has begun",
        owner=PipelineControl,
        function="elaborate",
        old="self.waiting & ~busy[2] & ~starts",
        new="self.waiting & ~busy[2]",
    )
    with mutation.planted():
        failures = run(bench_control, bench_control.unit_of({"configuration": CONTROL}), CONTROL, 4)
    assert set(failures.failures) == {"waiting_as_a_step_begins"}, failures.failures


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (TooEarly, "before ewise has finished"),
        pytest.param(NoDelay, "golden", marks=pytest.mark.long),
    ],
)
def test_a_mutant_of_the_control_is_noticed(mutant, message):
    config = OEIConfig(lanes=2, rows=16, columns=2, capacity=32)
    failures = run(bench_control, mutant(config=config), CONTROL, 4).failures
    assert message in failures["passes"], failures
