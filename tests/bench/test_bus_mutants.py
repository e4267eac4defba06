"""The benches of the AXI units fail on mutants: lost items, wrong tlast, resets, responses."""

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Const, ResetSignal, Value

import vitruvian.hdl.bus.axi
import vitruvian.hdl.bus.core
import vitruvian.hdl.bus.lite
import vitruvian.hdl.bus.mailbox
import vitruvian.hdl.catalogue.bus
from vitruvian.hdl.bus.integer import IntUnit
from vitruvian.hdl.bus.products import ProductSequencer
from vitruvian.hdl.bus.skid import Skid
from vitruvian.sim.bench.bus import bench_lite, bench_stream
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.emit import to_verilog

pytest.importorskip("cocotbext.axi", reason="needs cocotbext-axi, a package of the extra test")

CHANGES = {"m": 1, "n": 1, "k": 1, "precisions": ["int8"]}
INTEGER = {"core": "simd2-int", "m": 1, "n": 1, "k": 2, "width": 8, "operations": "minplus"}


def failures(bench, **given):
    given = {"changes": CHANGES, "commands": 20, "beats": 6, **given}
    if "configuration" in given:
        del given["changes"]
    design = to_verilog(bench.unit_of(given))
    return run_bench(design, bench.__name__, parameters=given)


class TakesTooMuch(Skid):
    """The buffer takes an item although both places are full."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i.ready.eq(1)
        return m


class TakesAAlone(ProductSequencer):
    """A fractal of A is taken although its fractal of B is not there."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.a.ready.eq(self.command.valid & self.o.ready)
        return m


class CountsOneTile(ProductSequencer):
    """``tlast`` comes with the first result of a command."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.results.payload.eq(0)
        return m


class TakesAnyCommand(ProductSequencer):
    """A command that the unit does not have is not reported."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.invalid.eq(0)
        return m


def without_reset(m, aclk, aresetn):
    m.domains.sync = ClockDomain("sync")
    m.d.comb += [ClockSignal("sync").eq(aclk), ResetSignal("sync").eq(0)]


class StopsEarly(IntUnit):
    """The integer unit has one place for results, and so loses cycles."""

    def __init__(self, *, config):
        super().__init__(config=config)
        self.depth = 1


@pytest.mark.parametrize(
    ("name", "mutant", "failing"),
    [
        ("Skid", TakesTooMuch, {"random_commands/pausing=all"}),
        pytest.param(
            "ProductSequencer",
            CountsOneTile,
            {"random_commands/pausing=none"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "ProductSequencer", TakesAAlone, {"random_commands/pausing=b"}, marks=pytest.mark.long
        ),
        pytest.param(
            "ProductSequencer", TakesAnyCommand, {"mistakes_set_events"}, marks=pytest.mark.long
        ),
        pytest.param("use_clock", without_reset, {"reset_in_the_middle"}, marks=pytest.mark.long),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_mutant_of_the_stream_unit_fails(monkeypatch, name, mutant, failing):
    monkeypatch.setattr(vitruvian.hdl.bus.axi, name, mutant)
    result = failures(bench_stream)
    assert result.tests == 10 and failing <= set(result.failures), result.failures.keys()


@pytest.mark.long
def test_a_slow_integer_unit_fails(monkeypatch):
    monkeypatch.setattr(vitruvian.hdl.bus.core, "IntUnit", StopsEarly)
    result = failures(bench_stream, configuration=INTEGER)
    assert set(result.failures) == {"every_cycle_takes_a_beat"}, result.failures


class Forgets(vitruvian.hdl.bus.lite.LiteUnit):
    """A response disappears before it is taken."""

    def _answer(self, m, done, valid, ready):
        super()._answer(m, done, valid, Const(1, 1))


class IgnoresStrobes(vitruvian.hdl.bus.lite.LiteUnit):
    """A write without all strobes changes the register."""

    def _held(self, m, full, done, channel, value):
        held = super()._held(m, full, done, channel, value)
        return Const(0xF, 4) if len(Value.cast(value)) == 4 else held


class LosesWords(vitruvian.hdl.bus.mailbox.Mailbox):
    """A result leaves the unit with its first word."""

    def _build_d(self, m, unit, access):
        super()._build_d(m, unit, access)
        m.d.comb += unit.o.ready.eq(access.reads("d_data"))


@pytest.mark.parametrize(
    ("module", "name", "mutant", "failing"),
    [
        (vitruvian.hdl.bus.lite, "Mailbox", LosesWords, {"random_beats/rate=0.0"}),
        pytest.param(
            bench_lite, "LiteUnit", Forgets, {"random_beats/rate=0.4"}, marks=pytest.mark.long
        ),
        pytest.param(
            bench_lite,
            "LiteUnit",
            IgnoresStrobes,
            {"every_address_answers"},
            marks=pytest.mark.long,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_mutant_of_the_lite_unit_fails(monkeypatch, module, name, mutant, failing):
    changes = CHANGES | {"n": 2}
    if name == "LiteUnit":
        monkeypatch.setattr(vitruvian.hdl.catalogue.bus, name, mutant)
    else:
        monkeypatch.setattr(module, name, mutant)
    result = failures(bench_lite, changes=changes)
    assert result.tests == 5 and failing <= set(result.failures), result.failures.keys()
