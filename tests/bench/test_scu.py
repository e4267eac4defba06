"""The cocotb bench of the storage conversion unit, and mutants of the control that it notices."""

import pytest
from amaranth.hdl import Value

import vitruvian.hdl.scu.im2col
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.scu import conversion_config
from vitruvian.hdl.scu import Col2Im, Im2Col, Mode
from vitruvian.hdl.scu.reader import Reader
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.emit import to_verilog

MODULE = "vitruvian.sim.bench.scu.bench_scu"
TESTS = 3


def run(unit, design=None, count=3):
    given = {"unit": unit, "count": count}
    if design is None:
        design = UNITS[unit].build(UNITS[unit].default({}))
    return run_bench(to_verilog(design), MODULE, parameters=given)


@pytest.mark.parametrize("unit", ["scu-im2col", "scu-col2im"])
def test_bench(unit):
    result = run(unit)
    assert result.passed and result.tests == TESTS, result.failures


class LosesRows(Reader):
    """Rows of the memory are taken while the output waits."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.rows.ready.eq(1)
        return m


class DoesNotWait(Col2Im):
    """A command is taken before the writes of the one before it are done."""

    def _build_commands(self, m):
        inner = self.reader.i
        m.d.comb += [
            Value.cast(inner.payload).eq(Value.cast(self.i.payload)),
            inner.payload.mode.eq(Mode.PATCHES),
            inner.valid.eq(self.i.valid),
            self.i.ready.eq(inner.ready),
        ]


def test_a_reader_that_loses_rows_fails(monkeypatch):
    monkeypatch.setattr(vitruvian.hdl.scu.im2col, "Reader", LosesRows)
    config = conversion_config(UNITS["scu-im2col"].default({}))
    result = run("scu-im2col", Im2Col(config=config), count=2)
    assert result.tests == TESTS and "random_traffic" in result.failures, result.log[-2000:]


def test_a_col2im_that_does_not_wait_for_its_writes_fails():
    config = conversion_config(UNITS["scu-col2im"].default({}))
    result = run("scu-col2im", DoesNotWait(config=config), count=1)
    assert "golden" in result.failures["random_traffic"], result.log[-2000:]
