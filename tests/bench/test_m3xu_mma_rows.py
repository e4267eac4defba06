"""The rows of matrix instructions in ``make sim``: their stimuli, and faults that they count."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, Signal, Value

import vitruvian.hdl.mma.unit
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.mma.issue import Issue, opcodes_of
from vitruvian.hdl.mma.unit import UNITS, MmaUnit
from vitruvian.sim.bench.m3xu.mma import checks, draw_opcodes, run_unit
from vitruvian.sim.rtl import StreamError, compile, compile_unit
from vitruvian.sim.rtl.mma import draw_instructions, draw_values, run_instructions

SMALL = MatrixUnitConfig(m=4, n=2, k=4, precisions=("fp16", "fp32", "fp32c"))
#: Instructions that hold every pair of SMALL's three.
PAIRS = 2 * 3**2


def test_each_opcode_follows_each():
    opcodes = opcodes_of(UNITS["m3xu"])
    opcodes_drawn = draw_opcodes(np.random.default_rng(1), opcodes, 100)
    assert len(opcodes_drawn) == 100 and len(opcodes) == 6
    assert set(pairwise(opcodes_drawn)) == set(product(opcodes, repeat=2))
    assert len(draw_opcodes(np.random.default_rng(1), opcodes, 0)) == 72


def test_rows_are_of_both_dataflows_and_every_precision():
    names = {check.name for check in checks()}
    assert len(names) == 2 * 4 and all(name.startswith("m3xu.MmaUnit ") for name in names)
    assert "m3xu.MmaUnit m3xu_systolic stalls, resets" in names
    assert UNITS["m3xu"].dataflow == "broadcast" and UNITS["m3xu_systolic"].dataflow == "systolic"
    assert {o.precision.name for o in opcodes_of(UNITS["m3xu"])} == set(UNITS["m3xu"].precisions)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"assignment": "pipelined", "dataflow": "systolic"},  # too few slots: it waits
        {"dataflow": "systolic", "slots": 10},
        {"preset": "a100"},
    ],
)
def test_a_row_compares_every_element(changes):
    config = replace(SMALL, **changes)
    through = run_unit(config, 0, 1, stalls=False)
    assert (through.vectors, through.mismatches) == (PAIRS * 128, 0), through.examples
    stopped = run_unit(config, 0, 2, stalls=True)
    assert (stopped.vectors, stopped.mismatches) == (3 * PAIRS * 128, 0), stopped.examples


class LatePrecision(Issue):
    """A beat has the precision of the previous beat."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        assert isinstance(m, Module)
        precision = Value.cast(self.o.payload.control.precision)
        fetch = self.o.payload.fetch
        known = {
            opcode.code: self.config.precisions.index(opcode.precision.name)
            for opcode in self.opcodes
        }
        now, before = Signal.like(precision), Signal.like(precision)
        for code, number in known.items():
            with m.If(fetch.opcode == code):
                m.d.comb += now.eq(number)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += before.eq(now)
        m.d.comb += precision.eq(before)
        return m


class FewSlots(Issue):
    """Every group uses the first slots, which is correct but slow."""

    def _build_slots(self, m, place, is_complex, ends):
        slot = self.o.payload.control.slot
        with m.If(is_complex):
            m.d.comb += slot.eq(place << 1)
        with m.Else():
            m.d.comb += slot.eq(place)


def _without_reset(issue):
    """The same unit, with state that a reset does not clear."""

    class Kept(Issue):
        def elaborate(self, platform):
            m = Module()
            m.domains.kept = ClockDomain(reset_less=True, local=True)
            m.d.comb += ClockSignal("kept").eq(ClockSignal())
            m.submodules.inner = DomainRenamer("kept")(issue.elaborate(self, platform))
            return m

    return Kept


def _run_mutant(monkeypatch, mutant, *, stalls=False, config=SMALL):
    monkeypatch.setattr(vitruvian.hdl.mma.unit, "Issue", mutant)
    return run_unit(config, 0, 1, stalls=stalls, model=compile(MmaUnit(config=config)))


def test_a_precision_that_comes_late_is_counted(monkeypatch):
    config = replace(SMALL, precisions=("fp16", "fp32"))
    result = _run_mutant(monkeypatch, LatePrecision, config=config)
    assert result.mismatches > 10
    assert ", mma.16x8x8.fp32 " in result.examples[0] and "golden" in result.examples[0]


def test_cycles_that_are_lost_are_counted(monkeypatch):
    result = _run_mutant(monkeypatch, FewSlots)
    assert result.mismatches > 0
    assert all("more than" in example for example in result.examples)


def test_state_that_outlives_a_reset_hangs_the_row(monkeypatch):
    """After a reset, the unit continues in the middle of an instruction."""
    with pytest.raises(StreamError, match=r"MmaUnit (hung|gave surplus beats) by cycle"):
        _run_mutant(monkeypatch, _without_reset(Issue), stalls=True)
    assert _run_mutant(monkeypatch, _without_reset(Issue)).mismatches == 0


def test_wrong_fetches_are_counted(monkeypatch):
    """The stream ``fetch`` names a wrong register. The operands, and therefore D, are correct."""

    class WrongRegister(Issue):
        def elaborate(self, platform):
            m = super().elaborate(platform)
            fetch = self.o.payload.fetch
            m.d.comb += fetch.a.eq(self.i.payload.a ^ 1)
            return m

    result = _run_mutant(monkeypatch, WrongRegister)
    assert result.mismatches > 0 and result.vectors == PAIRS * 128
    assert all("items of fetch differ from the expected ones" in text for text in result.examples)


def test_what_is_returned_comes_after_the_reset():
    rng = np.random.default_rng(1)
    program = draw_instructions(rng, opcodes_of(SMALL))
    values = draw_values(rng, program)
    model = compile_unit(MmaUnit, config=SMALL)
    once = run_instructions(SMALL, program, values, model=model)
    again = run_instructions(SMALL, program, values, model=model, reset_at=once.cycles // 2)
    assert again.cycles == once.cycles
    assert [d.tobytes() for d in again.d] == [d.tobytes() for d in once.d]
