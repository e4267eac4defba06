"""The AXI4 master of a core with the memory of cocotbext-axi."""

from pathlib import Path

import pytest

import vitruvian.hdl.core.axi_master
from vitruvian.sim.bench.core import bench_axi_master
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.emit import to_verilog

pytest.importorskip("cocotbext.axi", reason="needs cocotbext-axi, a package of the extra test")


def run(bench, **given):
    design = to_verilog(bench.unit_of(given))
    return run_bench(design, bench.__name__, parameters=given)


@pytest.mark.parametrize(
    ("width", "burst_blocks", "starts"),
    [
        (64, 8, 10),
        *(
            pytest.param(width, most, 128, marks=pytest.mark.long)
            for width in (64, 128, 256)
            for most in (1, 2, 16)
        ),
        *(pytest.param(width, 8, 128, marks=pytest.mark.long) for width in (64, 128, 256)),
    ],
)
def test_the_master(width, burst_blocks, starts):
    given = {"width": width, "burst_blocks": burst_blocks, "count": 10, "starts": starts}
    result = run(bench_axi_master, **given)
    assert result.passed and result.tests == 8, result.failures


def changed(monkeypatch, old, new):
    """Replace a text of the master's module, which must occur once."""
    module = vitruvian.hdl.core.axi_master
    source = Path(module.__file__).read_text()
    assert source.count(old) == 1, old
    names = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(source.replace(old, new), module.__file__, "exec"), names)
    monkeypatch.setattr(bench_axi_master, "AxiMaster", names["AxiMaster"])


@pytest.mark.parametrize(
    ("old", "new", "failing"),
    [
        ("& (following[:_PAGE_BITS] != 0)", "", "every_place_in_a_page"),
        pytest.param(
            "free.eq(~full | channel.ready)",
            "free.eq(1)",
            "random_runs/rate=0.5/latency=0",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "chosen = collector.offers & (~others | (turn == n))",
            "chosen = collector.offers & (~others | (n == 0))",
            "program_and_data_take_turns",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "failed.eq(~last & (failed | bad))",
            "failed.eq(0)",
            "errors_come_with_their_blocks",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "request.eq(port.request & ~self.hold)\n            c =",
            "request.eq(port.request)\n            c =",
            "hold_ends_in_order",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "(bursts != 0) | (c.open & (c.source == n))",
            "(bursts != 0)",
            "random_runs/rate=0.0/latency=0",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_mutant_of_the_master_fails(monkeypatch, old, new, failing):
    changed(monkeypatch, old, new)
    given = {"width": 64, "burst_blocks": 8, "count": 10, "starts": 10}
    result = run(bench_axi_master, **given)
    assert failing in result.failures, result.failures.keys()
