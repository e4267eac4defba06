"""The vector unit: compiled RTL against golden.vector, its parameters, and mutants."""

from dataclasses import replace

import numpy as np
import pytest

import vitruvian.hdl.vector.routes
import vitruvian.hdl.vector.slice
import vitruvian.hdl.vector.unit
from vitruvian.golden import vector
from vitruvian.hdl.vector import Format, Operation, VectorConfig, VectorUnit
from vitruvian.hdl.vector.functions import ExpLn
from vitruvian.hdl.vector.operations import OPERATIONS
from vitruvian.hdl.vector.tables import DESIGNS
from vitruvian.sim.bench.vector.batch import ONE_OPERAND, run_every_code, run_unit
from vitruvian.sim.bench.vector.expected import VectorMachine
from vitruvian.sim.bench.vector.functions import wrong
from vitruvian.sim.bench.vector.stimuli import make_commands
from vitruvian.sim.rtl import StreamError, compile, compile_unit

SEED = 20261122
ALL = VectorConfig(lanes=16)
FOLDED = VectorConfig(
    lanes=16, groups=("add", "multiply", "compare", "logic", "convert"), multiplier="dsp", passes=2
)
SMALL = VectorConfig(lanes=4, groups=("compare", "logic", "reduce"))


def test_every_operation_against_golden():
    for op in ALL.operations:
        result = run_unit(ALL, (op,), 1.0, 2000, SEED)
        assert result.vectors > 40 and not result.mismatches, (op, result.examples)


def test_all_operations_in_turn():
    result = run_unit(ALL, None, 1.0, 20_000, SEED)
    assert result.vectors > 500 and not result.mismatches, result.examples


def test_operations_of_one_operand_on_every_fp16_code():
    for op in (Operation.EXP, Operation.LN, Operation.RELU):
        assert op in ONE_OPERAND
        result = run_every_code(ALL, (op,), 0, SEED)
        assert result.vectors == (1 << 16) // ALL.lanes
        assert not result.mismatches, (op, result.examples)


def test_every_design_for_exp_and_ln_is_correctly_rounded():
    """The model in integers is enough for those that are not shipped."""
    assert {wrong(design) for design in DESIGNS.values()} == {(0, 0)}


@pytest.mark.parametrize("pipeline", [2, 3])
def test_exp_and_ln_on_every_fp16_code(pipeline):
    """The unit itself, without the vector unit around it."""
    model = compile_unit(ExpLn, design=DESIGNS[ALL.functions], pipeline=pipeline)
    x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    for logarithm, function in ((0, vector.exp), (7, vector.ln)):
        got = model.run(a=x, logarithm=logarithm)
        np.testing.assert_array_equal(got, function(x.view(np.float16)).view(np.uint16))


def test_one_bit_less_gives_wrong_results():
    """The comparison can fail: with the same offsets no width can be smaller."""
    design = DESIGNS[ALL.functions]
    for name in ("bits", "argument_bits", "constant_bits"):
        narrower = replace(design, **{name: getattr(design, name) - 1})
        assert wrong(narrower) != (0, 0), name
    assert wrong(replace(design, exp_offsets=()))[0] and wrong(replace(design, ln_offsets=()))[1]


@pytest.mark.parametrize(("passes", "pipeline"), [(2, 2), (4, 2), (1, 4), (2, 5)])
def test_passes_and_ranks_give_the_same_results(passes, pipeline):
    config = replace(FOLDED, passes=passes, pipeline=pipeline)
    result = run_unit(config, None, 1.0, 20_000, SEED)
    assert result.vectors > 500 and not result.mismatches, result.examples


def test_a_unit_that_keeps_the_last_pass_for_all_fails(monkeypatch):
    class KeepsLast(VectorUnit):
        def _build_held(self, m, moves, words, flags):
            return (x.replicate(self.config.passes) for x in (words, flags))

    result = run_unit(FOLDED, None, 1.0, 5000, SEED, model=compile(KeepsLast(config=FOLDED)))
    assert result.mismatches


def test_stimuli_reach_every_field_of_a_command():
    commands = make_commands(ALL, count=3000, seed=SEED)
    seen = {(c.operation, c.format) for c in commands}
    assert seen == {(op, f) for op, traits in OPERATIONS.items() for f in traits.formats}
    assert {c.repeat for c in commands} == set(range(7))
    assert any(c.mask.all() for c in commands) and any(not c.mask.any() for c in commands)
    assert any(c.from_scalar for c in commands)


def test_disabled_lanes_write_nothing():
    (command,) = make_commands(ALL, (Operation.ADD,), count=1, seed=3, formats=(Format.FP16,))
    command = replace(command, mask=np.arange(16) == 5, repeat=1)
    (write,) = VectorMachine(16).run(command)
    assert np.flatnonzero(write.enable).tolist() == [10, 11]


def _all_enabled(mask, wide, config):
    return ~(mask ^ mask)


def _no_zero_sign(m, a, b, wide):
    low, high = SPLIT_ORDER(m, a, b, wide)
    return low, replace(high, below=high.below & ~high.both_zero)


SPLIT_ORDER = vitruvian.hdl.vector.slice.split_order


@pytest.mark.parametrize(
    ("module", "name", "mutant", "operation"),
    [
        (vitruvian.hdl.vector.routes, "by_halves", _all_enabled, Operation.LARGEST),
        (vitruvian.hdl.vector.slice, "split_order", _no_zero_sign, Operation.MAX),
    ],
)
def test_a_mutant_fails(monkeypatch, module, name, mutant, operation):
    monkeypatch.setattr(module, name, mutant)
    model = compile(VectorUnit(config=SMALL))
    result = run_unit(SMALL, (operation,), 1.0, 20_000, SEED, model=model)
    assert result.mismatches and "golden" in result.examples[0]


def test_a_unit_that_loses_a_result_fails(monkeypatch):
    class IgnoresReady(VectorUnit):
        """Registers advance although the output waits."""

        def elaborate(self, platform):
            m = super().elaborate(platform)
            m.d.comb += m.submodules.sequencer.advance.eq(1)
            return m

    model = compile(IgnoresReady(config=SMALL))
    with pytest.raises(StreamError, match="hung"):
        run_unit(SMALL, (Operation.MAX,), 1.0, 5000, SEED, model=model)


def test_without_a_mutation_it_passes():
    result = run_unit(SMALL, None, 1.0, 5000, SEED)
    assert result.vectors > 100 and not result.mismatches, result.examples


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"lanes": 12}, ValueError, "lanes must be a power of two from 4 to 256, not 12"),
        ({"lanes": "16"}, TypeError, "lanes must be an int, not '16'"),
        ({"groups": ("divide",)}, ValueError, "group must be one of"),
        ({"sharing": "all"}, ValueError, "sharing must be one of"),
        ({"functions": "linear"}, ValueError, "functions must be one of"),
        ({"pipeline": 6}, ValueError, "pipeline must be one of 2, 3, 4, 5, not 6"),
        ({"pipeline": 4}, ValueError, "groups must not have 'functions' with pipeline 4"),
        ({"groups": ("add",), "passes": 3}, ValueError, "passes must be a power of two, not 3"),
        ({"groups": ("add",), "lanes": 4, "passes": 4}, ValueError, "passes must be"),
        ({"passes": 2}, ValueError, "groups must not have 'reduce' with more than one pass"),
    ],
)
def test_wrong_parameters(changes, error, message):
    with pytest.raises(error, match=message):
        VectorConfig(**changes)


def test_a_unit_needs_a_configuration():
    with pytest.raises(TypeError, match="config must be a VectorConfig, not 16"):
        VectorUnit(config=16)  # pyright: ignore[reportArgumentType]


def test_only_exp_and_ln_need_the_third_rank():
    assert (VectorConfig().stages, VectorConfig(groups=("add",)).stages) == (5, 4)
    assert VectorConfig(pipeline=2).stages == 4


def test_cycles_of_a_repeat():
    unit = VectorUnit(config=VectorConfig(lanes=128))
    assert unit.cycles(Operation.ADD, Format.FP16) == 1
    assert unit.cycles(Operation.SUM, Format.FP16) == 5 * 6 + 1
    assert unit.cycles(Operation.SUM_BLOCK, Format.FP32) == 5 * 2 + 1
    assert unit.cycles(Operation.LARGEST, Format.FP16) == 5 * 7 + 1
    folded = replace(FOLDED, passes=4)
    assert folded.cycles(Operation.ADD, Format.FP16) == 4
    assert folded.cycles(Operation.LOAD_BITS, Format.FP16) == 1
    assert FOLDED.built_slices == 4 and folded.built_slices == 2
