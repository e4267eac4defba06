"""The cocotb benches of the sparse cores, and mutants of the control that they notice."""

from amaranth.hdl import Signal

import vitruvian.hdl.sparse.os_core
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.sparse.bench_os import unit_of
from vitruvian.sim.rtl.emit import to_verilog

MODULE = "vitruvian.sim.bench.sparse.bench_os"
TESTS = 3
#: A small core, which builds fast.
SIZES = {"lanes": 2, "format": "fp16"}


def run(design, count=30):
    given = {"configuration": SIZES, "count": count}
    return run_bench(to_verilog(design), MODULE, parameters=given)


def test_bench():
    result = run(unit_of({"configuration": SIZES}))
    assert result.passed and result.tests == TESTS, result.failures


def test_a_core_that_keeps_an_open_column_over_a_reset_fails(monkeypatch):
    def signal(*args, name=None, **options):
        return Signal(
            *args, name=name, **options | ({"reset_less": True} if name == "carry_some" else {})
        )

    monkeypatch.setattr(vitruvian.hdl.sparse.os_core, "Signal", signal)
    result = run(unit_of({"configuration": SIZES}))
    assert "golden" in result.failures["reset_in_mid_flight"], result.failures
