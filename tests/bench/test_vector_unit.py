"""The vector unit under cocotb: stalls, resets, one repeat per cycle, cycles of reductions."""

from vitruvian.hdl.vector import VectorUnit
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.vector.bench_unit import configuration

MODULE = "vitruvian.sim.bench.vector.bench_unit"
GIVEN = {"lanes": 4, "groups": ["compare", "reduce"], "commands": 15}


def test_vector_unit():
    result = run_bench(VectorUnit(config=configuration(GIVEN)), MODULE, parameters=GIVEN)
    assert result.passed and result.tests == 4, result.failures
    assert result.checked > 250
