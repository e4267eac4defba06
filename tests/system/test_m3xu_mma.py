"""Matrix instructions on the RTL: order of beats, results and cycles, and mutants of each."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Mux, Signal

import vitruvian.hdl.mma.unit
from vitruvian.cli import main
from vitruvian.golden.m3xu.isa import Opcode
from vitruvian.hdl.cube import MatrixUnitConfig, Start
from vitruvian.hdl.mma.issue import BeatPlan, Issue, opcodes_of
from vitruvian.hdl.mma.unit import UNITS, MmaUnit
from vitruvian.sim.rtl import StreamError, compile, compile_unit
from vitruvian.sim.rtl.mma import (
    PAPER,
    beats_of,
    draw_instructions,
    draw_values,
    expected_results,
    measure,
    run_instructions,
    words_of,
)

WIDE = ("fp16", "fp32", "fp32c")
#: Small and quickly compiled: 64 or 32 beats an instruction.
SMALL = MatrixUnitConfig(m=4, n=2, k=4, precisions=WIDE)
#: The same without limbs, for mutants.
NARROW = replace(SMALL, precisions=("fp16", "tf32"))
#: Units that differ in tiles, groups, slots and precisions; no more than the issue is compiled.
CONFIGS = {
    "m3xu": UNITS["m3xu"],
    "small": SMALL,
    "one tile": MatrixUnitConfig(m=16, n=8, k=4, precisions=WIDE),
    "one beat": MatrixUnitConfig(m=16, n=8, k=16, precisions=("bf16",)),
    "five slots": MatrixUnitConfig(m=2, n=4, k=8, precisions=("fp16", "tf32"), slots=5),
    "one slot": MatrixUnitConfig(m=8, n=8, k=8, precisions=("fp16", "tf32"), slots=1),
    "one pair": replace(SMALL, slots=2),
    "fp64": UNITS["fp64"],
    "fp64_12bit": UNITS["fp64_12bit"],
}


def mixed(config, count, seed):
    rng = np.random.default_rng(seed)
    opcodes = opcodes_of(config)
    program = draw_instructions(rng, [opcodes[n] for n in rng.integers(len(opcodes), size=count)])
    return program, draw_values(rng, program)


def check_order(config, model, *, count=40, seed=1, stall_rate=0.0):
    """Compare the beats of random instructions with ``beats_of``, and return their number."""
    program, _ = mixed(config, count, seed)
    beats = beats_of(program, config)
    result = model.stream(
        inputs={"i": words_of(program)},
        outputs={"o": len(beats["row"])},
        stall_rate=stall_rate,
        stall_seed=seed,
    )
    got = result.outputs["o"]
    fields = got["fetch"] | got["control"]
    expected = set(beats) - {"instruction"}
    assert set(fields) <= expected
    for name in expected - set(fields):  # fields without bits
        assert not beats[name].any(), name
    for name, values in fields.items():
        np.testing.assert_array_equal(values, beats[name], err_msg=name)
    assert not result.ports["illegal"]
    if not stall_rate:
        assert np.all(np.diff(result.output_cycles["o"].astype(int)) == 1), "a beat a cycle"
    return len(beats["row"])


@pytest.mark.parametrize("name", CONFIGS)
def test_order_of_beats(name):
    config = CONFIGS[name]
    model = compile_unit(Issue, config=config)
    beats = check_order(config, model)
    assert beats == check_order(config, model, stall_rate=0.3) >= 40
    check_order(config, model, count=5, seed=2)


def test_each_block_meets_each_other_once_in_rising_k():
    """The purpose of the order, independent of its definition."""
    for config in CONFIGS.values():
        for opcode in opcodes_of(config):
            program = draw_instructions(np.random.default_rng(1), [opcode] * 2)
            beats = beats_of(program, config)
            plan = BeatPlan.of(opcode, config)
            assert len(beats["row"]) == 2 * plan.beats
            holder = {}
            met = []
            for n in range(plan.beats):
                tile = int(beats["row"][n]), int(beats["column"][n])
                slot, block = int(beats["slot"][n]), int(beats["block"][n])
                places = {slot, slot ^ 1} if plan.is_complex else {slot}
                assert max(places) < config.slot_count
                if beats["start"][n] == Start.ACCUMULATE.value:
                    assert all(holder[place] == (tile, block - 1) for place in places)
                else:
                    assert block == 0
                for place in places:
                    holder[place] = tile, block
                met.append((*tile, block))
                assert beats["emit"][n] == (block == plan.blocks - 1)
            assert len(set(met)) == len(met)
            assert max(met) == (plan.rows - 1, plan.columns - 1, plan.blocks - 1)


def test_an_unknown_opcode_is_dropped_and_told():
    model = compile_unit(Issue, config=UNITS["m3xu"])
    program = draw_instructions(np.random.default_rng(1), [Opcode.FP16, Opcode.FP16])
    words = {name: np.insert(values, 1, 0) for name, values in words_of(program).items()}
    for wrong in sorted({0, 8, 127, Opcode.FP64.code}):
        words["opcode"][1] = wrong
        result = model.stream(inputs={"i": words}, outputs={"o": 16})
        assert result.ports["illegal"] == 1
        assert set(result.outputs["o"]["fetch"]["opcode"]) == {Opcode.FP16.code}
    with pytest.raises(StreamError, match="i took 3 of 3, o gave 16 of 17"):
        model.stream(inputs={"i": words}, outputs={"o": 17}, quiet_limit=100)


@pytest.mark.parametrize("changes", [{"precisions": ("fp8e4m3",)}, {"output": "fp64"}])
def test_a_unit_without_instructions(changes):
    given: dict[str, Any] = {"m": 8, "n": 4, "k": 8, "precisions": ("fp16",)} | changes
    with pytest.raises(ValueError, match="the unit must have a precision and output of an instr"):
        Issue(config=MatrixUnitConfig(**given))


def test_a_unit_whose_tile_does_not_divide():
    config = MatrixUnitConfig(m=8, n=3, k=8, precisions=("fp16",))
    with pytest.raises(ValueError, match="must divide 16x8x16 into powers of two, not 8x3x8"):
        MmaUnit(config=config)
    with pytest.raises(ValueError, match="the unit must have fp64 with fp64 results for mma"):
        BeatPlan.of(Opcode.FP64, config)
    with pytest.raises(TypeError, match="config must be a MatrixUnitConfig, not 'm3xu'"):
        MmaUnit(config="m3xu")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="ahead must be between 2 and 64, not 1"):
        MmaUnit(config=SMALL, ahead=1)


# Results and cycles


def check_results(config, model=None, *, count=24, stall_rate=0.0, seed=1):
    program, values = mixed(config, count, seed)
    run = run_instructions(config, program, values, model=model, stall_rate=stall_rate, seed=seed)
    assert run.wrong_fetches == 0
    for instruction, got, expected in zip(
        program, run.d, expected_results(program, values, config), strict=True
    ):
        assert got.tobytes() == expected.tobytes(), f"{instruction} differs (seed {seed})"
    return run


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.long] if n in ("m3xu_fp64", "fp64_12bit") else [])
        for n in UNITS
    ],
)
@pytest.mark.parametrize("stall_rate", [0.0, 0.25])
def test_results_of_mixed_lists(name, stall_rate):
    check_results(UNITS[name], count=80, stall_rate=stall_rate)


def test_operands_that_are_late():
    """The unit waits for each of its streams."""
    program, values = mixed(SMALL, 8, 3)
    model = compile_unit(MmaUnit, config=SMALL)
    for slow in ("i", "fetch", "ab", "c", "o"):
        run = run_instructions(SMALL, program, values, model=model, stall_rate={slow: 0.9})
        assert run.wrong_fetches == 0
        for got, expected in zip(run.d, expected_results(program, values, SMALL), strict=True):
            assert got.tobytes() == expected.tobytes(), slow


@pytest.mark.parametrize(
    "name",
    ["m3xu", "m3xu_pipelined", "m3xu_systolic", pytest.param("m3xu_fp64", marks=pytest.mark.long)],
)
def test_a_mixed_list_has_no_bubble(name):
    """With a new precision in each instruction, all cycles are steps or latency."""
    config = UNITS[name]
    opcodes = opcodes_of(config)
    pairs = [x for first in opcodes for second in opcodes for x in (first, second)]
    measured = measure(config, pairs, name="every pair")
    assert measured.mismatches == 0 and measured.bubbles == 0
    each = {o: BeatPlan.of(o, config).beats * config.steps(o.precision.name) for o in opcodes}
    assert measured.each == tuple(each[opcode] for opcode in pairs[1:])
    assert measured.cycles == sum(each[o] for o in pairs) + MmaUnit(config=config).latency


@pytest.mark.slow
def test_a_systolic_unit_needs_slots_for_its_latency():
    """With fewer slots, which suffice for broadcast, it waits, and the results are correct."""
    few = replace(SMALL, dataflow="systolic", slots=6)
    enough = replace(few, slots=few.latency_cycles + 1)
    assert enough.slot_count == 10
    opcodes = list(opcodes_of(few)) * 3
    waits, flows = (measure(c, opcodes, name="mixed") for c in (few, enough))
    assert waits.mismatches == flows.mismatches == 0
    assert waits.bubbles > 0 and flows.bubbles == 0


def test_measure_wants_two():
    with pytest.raises(ValueError, match="opcodes must be at least 2, not 1"):
        measure(SMALL, [Opcode.FP16], name="one")


# Mutants


class KBeforeTiles(Issue):
    """A mutant in which K is the inner loop."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        fetch = self.o.payload.fetch
        swapped = Signal.like(fetch.block)
        m.d.comb += swapped.eq(fetch.row)
        m.d.comb += fetch.block.eq(swapped)
        return m


class AlwaysFromZero(Issue):
    """A mutant that ignores C."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        first = self.o.payload.fetch.first
        m.d.comb += self.o.payload.control.start.eq(Mux(first, Start.ZERO, Start.ACCUMULATE))
        return m


class NeverAccumulates(Issue):
    """A mutant that starts a new sum with every block of K."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.o.payload.control.start.eq(Start.ZERO)
        return m


class EmitsEverything(Issue):
    """A mutant that emits partial sums."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.o.payload.control.emit.eq(1)
        return m


class SlotsFromNought(Issue):
    """A mutant in which each group uses the first slots, which is correct but slow."""

    def _build_slots(self, m, place, is_complex, ends):
        m.d.comb += self.o.payload.control.slot.eq(Mux(is_complex, place << 1, place))


class OneSlot(Issue):
    """A mutant that uses one slot for all tiles."""

    def _build_slots(self, m, place, is_complex, ends):
        pass


class Rests(Issue):
    """A mutant with a cycle without a beat after each instruction."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        rest = Signal()
        m.d.sync += rest.eq(self.i.valid & self.i.ready)
        with m.If(rest):
            m.d.comb += [self.o.valid.eq(0), self.i.ready.eq(0)]
        return m


class TakesAtOnce(Issue):
    """A mutant that takes an instruction with its first beat."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i.ready.eq(self.o.ready)
        return m


class ForkThatDoesNotWait(MmaUnit):
    """A mutant that queues a beat although its fetch was not taken."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.queue.w_en.eq(m.submodules.issue.o.valid)
        return m


class JoinThatDoesNotWait(MmaUnit):
    """A mutant in which a beat leaves the queue without its operands."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.queue.r_en.eq(m.submodules.unit.i.ready)
        return m


MUTANTS = (
    KBeforeTiles,
    AlwaysFromZero,
    NeverAccumulates,
    EmitsEverything,
    SlotsFromNought,
    OneSlot,
    Rests,
    TakesAtOnce,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_order_notices(mutant):
    with pytest.raises((AssertionError, StreamError)):
        check_order(SMALL, compile(mutant(config=SMALL)))


@pytest.mark.parametrize("mutant", [AlwaysFromZero, NeverAccumulates, OneSlot, EmitsEverything])
def test_the_results_notice(monkeypatch, mutant):
    monkeypatch.setattr(vitruvian.hdl.mma.unit, "Issue", mutant)
    model = compile(MmaUnit(config=NARROW))
    with pytest.raises((AssertionError, StreamError)):
        check_results(NARROW, model, count=6)


@pytest.mark.parametrize("mutant", [ForkThatDoesNotWait, JoinThatDoesNotWait])
def test_stalls_notice(mutant):
    model = compile(mutant(config=NARROW))
    with pytest.raises((AssertionError, StreamError)):
        check_results(NARROW, model, count=6, stall_rate=0.3)


@pytest.mark.parametrize("mutant", [SlotsFromNought, Rests])
def test_the_cycles_notice(monkeypatch, mutant):
    """Mutants with correct results that take longer."""
    opcodes = list(opcodes_of(NARROW)) * 2
    good = measure(NARROW, opcodes, name="mixed")
    assert good.mismatches == good.bubbles == 0
    monkeypatch.setattr(vitruvian.hdl.mma.unit, "Issue", mutant)
    slow = measure(NARROW, opcodes, name="mixed", model=compile(MmaUnit(config=NARROW)))
    assert slow.mismatches == 0 and slow.bubbles > 0


def test_wrong_results_and_fetches_are_counted(monkeypatch):
    monkeypatch.setattr(vitruvian.hdl.mma.unit, "Issue", AlwaysFromZero)
    model = compile(MmaUnit(config=NARROW))
    program, values = mixed(NARROW, 6, 1)
    with pytest.raises(StreamError, match="c took 0 of"):
        run_instructions(NARROW, program, values, model=model)
    monkeypatch.setattr(vitruvian.hdl.mma.unit, "Issue", KBeforeTiles)
    measured = measure(NARROW, [Opcode.FP16] * 3, name="", model=compile(MmaUnit(config=NARROW)))
    assert measured.mismatches > 0


# The command


def test_the_table_and_its_json(tmp_path, capsys):
    file = tmp_path / "rates.json"
    assert main(["mma", "m3xu", "fp64", "--count", "8", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "1/16 Corollary 3" in out and "0 results or fetches differ" in out
    rows = json.loads(file.read_text())
    assert [row["unit"] for row in rows] == ["m3xu"] * 7 + ["fp64"]
    for row in rows:
        assert row["mismatches"] == 0 and row["bubbles"] == 0
        assert row["cycles"] == row["steps"] + row["fill"]
        if row["paper"] is not None:
            assert row["relative_to_fp16"] == row["paper"]
    assert sum(row["paper"] is not None for row in rows) == len(PAPER) + 1
    assert rows[-1]["relative_to_fp16"] == 1 / 4 and rows[-2]["instruction"] == "mixed"


@pytest.mark.parametrize("where", ["-", "file"])
def test_json_on_standard_output_stands_there_alone(where, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vitruvian.commands.mma._measure", lambda *_: ({}, None))
    place = "-" if where == "-" else str(tmp_path / "rates.json")
    assert main(["mma", "m3xu", "--json", place]) == 0
    captured = capsys.readouterr()
    table, other = (captured.err, captured.out) if where == "-" else (captured.out, captured.err)
    assert "0 results or fetches differ" in table and "differ" not in other
    assert json.loads(other if where == "-" else (tmp_path / "rates.json").read_text()) == []


def test_the_list(capsys):
    assert main(["mma", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == list(UNITS)


def test_a_wrong_unit(capsys):
    assert main(["mma", "m4xu"]) == 2
    assert capsys.readouterr().err == (
        f"error: unit must be one of {', '.join(UNITS)}, not 'm4xu' (did you mean m3xu?)\n"
    )
    with pytest.raises(SystemExit, match="2"):
        main(["mma", "--count", "1"])
    assert "must be a whole number from 2 to 4096, not '1'" in capsys.readouterr().err


def test_a_bubble_is_an_error(monkeypatch, capsys):
    """The command's own check: it fails for a unit with too few slots."""
    monkeypatch.setitem(UNITS, "slow", replace(SMALL, slots=2))
    assert main(["mma", "slow", "--count", "4"]) == 1
    assert "cycles are neither steps nor latency" in capsys.readouterr().out
