"""The cocotb benches of the sparse cores, and mutants of the control that they notice."""

from types import ModuleType

import pytest
from amaranth.hdl import Signal

import vitruvian.hdl.sparse.ewise_core
import vitruvian.hdl.sparse.is_core
import vitruvian.hdl.sparse.os_core
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.sparse import bench_ewise, bench_is, bench_os
from vitruvian.sim.rtl.emit import to_verilog

TESTS = 3
#: Small cores, which build fast.
SIZES = {
    bench_os: {"lanes": 2, "format": "fp16"},
    bench_ewise: {"lanes": 2, "registers": 4, "instructions": 16, "format": "fp16"},
    bench_is: {"lanes": 2, "depth": 4, "format": "fp16"},
}


def run(bench: ModuleType, count: int = 30):
    design = to_verilog(bench.unit_of({"configuration": SIZES[bench]}))
    given = {"configuration": SIZES[bench], "count": count}
    return run_bench(design, bench.__name__, parameters=given)


@pytest.mark.parametrize("bench", SIZES, ids=lambda bench: bench.__name__.split(".")[-1])
def test_bench(bench):
    result = run(bench)
    assert result.passed and result.tests == TESTS, result.failures


@pytest.mark.parametrize(
    ("bench", "module", "register"),
    [
        # A part of a column is still open.
        (bench_os, vitruvian.hdl.sparse.os_core, "carry_some"),
        # A product is on its way to its bank.
        pytest.param(*(bench_is, vitruvian.hdl.sparse.is_core, "s2_valid"), marks=pytest.mark.long),
        # A program still runs. It may store, or wait for items that the reset has withdrawn.
        pytest.param(
            *(bench_ewise, vitruvian.hdl.sparse.ewise_core, "running"), marks=pytest.mark.long
        ),
    ],
    ids=["os", "is", "ewise"],
)
def test_a_core_that_keeps_a_register_over_a_reset_fails(bench, module, register, monkeypatch):
    def signal(*args, name=None, **options):
        return Signal(
            *args, name=name, **options | ({"reset_less": True} if name == register else {})
        )

    monkeypatch.setattr(module, "Signal", signal)
    result = run(bench)
    assert "reset_in_mid_flight" in result.failures, result.failures
