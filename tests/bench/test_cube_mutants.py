"""The matrix unit's bench fails on mutants: lost results, hazards, resets, rounding."""

from dataclasses import replace

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Const, DomainRenamer, Module

import vitruvian.hdl.cube.control
import vitruvian.hdl.cube.unit
import vitruvian.hdl.fp.core.dotcore
import vitruvian.hdl.fp.core.terms
from vitruvian.hdl.cube import MatrixUnit
from vitruvian.hdl.cube.control import Sequencer, SlotQueue
from vitruvian.hdl.cube.element import ProcessingElement
from vitruvian.hdl.cube.lookahead import LookaheadSequencer
from vitruvian.sim.bench.cube.bench_unit import configuration
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.emit import to_verilog

MODULE = "vitruvian.sim.bench.cube.bench_unit"
CONTROL = {
    "preset": "tiny",
    "beats": 120,
    "changes": {"m": 1, "n": 2, "k": 1, "precisions": ["int8"], "dataflow": "systolic"},
}
ARITHMETIC = {
    "preset": "tiny",
    "beats": 400,
    "changes": {"m": 1, "n": 1, "precisions": ["fp16"]},
}


def failures(given):
    return run_bench(to_verilog(MatrixUnit(config=configuration(given))), MODULE, parameters=given)


class TakesWithoutReady(Sequencer):
    """A result leaves the queue when it is offered, even if it is not taken."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.queue.pop.eq(self.offer)
        return m


class NeverWaits(Sequencer):
    """Beats do not wait for their slot, and overwrite results that wait for the output."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.may_go.eq(1)
        return m


class OffersEarly(Sequencer):
    """A result is offered one cycle before the last element has written it."""

    def __init__(self, *, config):
        super().__init__(
            config=replace(config, pipeline=config.pipeline - 1, slots=config.slot_count)
        )


class KeepsPastReset(SlotQueue):
    """A reset does not empty the queue."""

    def elaborate(self, platform):
        m = Module()
        m.domains.kept = ClockDomain(reset_less=True, local=True)
        m.d.comb += ClockSignal("kept").eq(ClockSignal())
        m.submodules.inner = DomainRenamer("kept")(super().elaborate(platform))
        return m


@pytest.mark.parametrize(
    ("module", "name", "mutant", "failing"),
    [
        (vitruvian.hdl.cube.unit, "Sequencer", TakesWithoutReady, {"random_traffic"}),
        (vitruvian.hdl.cube.unit, "Sequencer", NeverWaits, {"random_traffic"}),
        (
            vitruvian.hdl.cube.unit,
            "Sequencer",
            OffersEarly,
            {"random_traffic", "tiles_back_to_back"},
        ),
        (vitruvian.hdl.cube.control, "SlotQueue", KeepsPastReset, {"reset_in_mid_flight"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_mutant_of_the_control_fails(monkeypatch, module, name, mutant, failing):
    monkeypatch.setattr(module, name, mutant)
    result = failures(CONTROL)
    assert result.tests == 5 and failing <= set(result.failures), result.log[-2000:]


class ForgetsTheBeatBefore(LookaheadSequencer):
    """The state that was read does not know the beat of the cycle before."""

    def _build_conflict(self, m, went, went_slot):
        return Const(0, 1)


delayed = ProcessingElement._delayed


def not_delayed(self, m, cycles):
    """Read the slot and C when the operands arrive, and not when the addend is needed."""
    return delayed(self, m, cycles if cycles == self.config.pipeline else 0)


class OverwritesTheOutput(MatrixUnit):
    """The output register takes the next result although the last one was not taken."""

    def _build_output(self, m, sequencer, bus):
        super()._build_output(m, sequencer, bus)
        m.d.comb += sequencer.full.eq(0)


class OverwritesAnOperand(MatrixUnit):
    """The input takes operands although both registers have beats."""

    def _build_turns(self, m, held, spared):
        super()._build_turns(m, held, Const(0))


FPGA_MUTANTS = ["", "ForgetsTheBeatBefore", "not_delayed"]
FPGA_UNITS = ["OverwritesTheOutput", "OverwritesAnOperand"]


@pytest.mark.parametrize("name", FPGA_MUTANTS + FPGA_UNITS)
def test_a_mutant_of_the_paths_for_fpgas_fails(monkeypatch, name):
    given = {"preset": "int8_8x8_dsp", "beats": 120, "changes": {"m": 1, "n": 2}}
    mutant = globals().get(name, MatrixUnit)
    if mutant is ForgetsTheBeatBefore:
        monkeypatch.setattr(vitruvian.hdl.cube.unit, "LookaheadSequencer", mutant)
    elif mutant is not_delayed:
        monkeypatch.setattr(ProcessingElement, "_delayed", mutant)
    unit = mutant if name in FPGA_UNITS else MatrixUnit
    design = to_verilog(unit(config=configuration(given)))
    result = run_bench(design, MODULE, parameters=given)
    assert result.tests == 5, result.log[-2000:]
    assert ("random_traffic" in result.failures) == bool(name), result.failures


shift_right, round_and_pack = (
    vitruvian.hdl.fp.core.terms.shift_right,
    vitruvian.hdl.fp.core.dotcore.round_and_pack,
)


def shift_off_by_one(m, word, distance, **rest):
    return shift_right(m, word, (distance + 1)[: len(distance) + 1], **rest)


def sticky_dropped(m, word, distance, **rest):
    return shift_right(m, word, distance, **rest)[0], Const(0, 1)


def ties_away_from_even(m, number, **rest):
    return round_and_pack(m, replace(number, word=number.word | 1), **rest)


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (vitruvian.hdl.fp.core.terms, "shift_right", shift_off_by_one),
        (vitruvian.hdl.fp.core.terms, "shift_right", sticky_dropped),
        (vitruvian.hdl.fp.core.dotcore, "round_and_pack", ties_away_from_even),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_mutant_of_the_arithmetic_fails(monkeypatch, owner, name, mutant):
    monkeypatch.setattr(owner, name, mutant)
    result = failures(ARITHMETIC)
    message = result.failures.get("random_traffic", "")
    assert "golden" in message and "seed" in message, result.log[-2000:]


@pytest.mark.parametrize("given", [CONTROL, ARITHMETIC], ids=["control", "arithmetic"])
def test_without_a_mutation_both_pass(given):
    result = failures(given)
    assert result.passed and result.tests == 5, result.failures
