"""The cocotb bench of the storage conversion unit, and mutants of the control that it notices."""

import pytest
from amaranth.hdl import Value

from vitruvian.hdl.scu import Col2Im, ConversionConfig, Mode
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.bench.scu.bench_scu import unit_of
from vitruvian.sim.rtl.emit import to_verilog

MODULE = "vitruvian.sim.bench.scu.bench_scu"
TESTS = 3
#: A small unit, which builds fast: C0 is four FP16 values.
SIZES = {"c0_bytes": 8, "address_bits": 10}


def run(unit, design=None, count=3):
    given = {"unit": unit, "sizes": SIZES, "count": count}
    design = unit_of(given) if design is None else design
    return run_bench(to_verilog(design), MODULE, parameters=given)


@pytest.mark.parametrize("unit", ["scu-im2col", "scu-col2im"])
def test_bench(unit):
    result = run(unit)
    assert result.passed and result.tests == TESTS, result.failures


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


def test_a_col2im_that_does_not_wait_for_its_writes_fails():
    result = run("scu-col2im", DoesNotWait(config=ConversionConfig(**SIZES)), count=1)
    assert "golden" in result.failures["random_traffic"], result.log[-2000:]
