"""Semirings on one pair of FP32 operands per beat in units with M³XU: results, cycles, mutants."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import vitruvian.hdl.cube.datapath
from vitruvian.golden.fp import FORMATS
from vitruvian.golden.simd2 import Op
from vitruvian.golden.simd2.plain import plain_mmo
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig
from vitruvian.hdl.cube.assign import DataAssignment
from vitruvian.sim.bench.cube.batch import compare_traffic, run_unit
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.bench.fp.stimuli import special_codes
from vitruvian.sim.rtl import compile, compile_unit
from vitruvian.sim.rtl.cube import matmul
from vitruvian.sim.rtl.streams import StreamError

OPS = tuple(op.mnemonic for op in Op if op is not Op.ADDNORM)
SMALL = MatrixUnitConfig(
    m=1, n=1, k=4, precisions=("fp32",), operations=OPS, pipeline=1, slots=3, dataflow="systolic"
)
#: One operation of each kind of ⊗ and ⊕, which compiles faster.
FEW = replace(SMALL, operations=("mma", "minplus", "maxmin", "orand"))
MIXED = replace(CONFIGS["m3xu"], m=1, n=1, k=4, operations=("mma", "minplus", "maxmin"))


@lru_cache
def traffic(config=SMALL):
    return make_traffic(config, beats=3000, seed=7)


def mismatches(config=SMALL):
    model = compile(MatrixUnit(config=config))
    return compare_traffic(model, traffic(config), stall_rate=0.2, seed=7).mismatches


def test_operations_in_turn_equal_golden():
    model = compile_unit(MatrixUnit, config=SMALL)
    result = compare_traffic(model, traffic(), stall_rate=0.2, seed=7)
    assert result.vectors > 1400 and result.mismatches == 0


def test_the_traffic_has_all_operations_and_kinds_of_results():
    """Every operation occurs with every start, and results include −0, ∞, NaN and numbers."""
    t = traffic()
    for code in range(len(OPS)):
        assert set(t.start[t.operation == code].tolist()) == {0, 1, 2}
    codes = set(t.d.ravel().tolist())
    assert {0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x3F80_0000} <= codes
    numbers = (t.d & 0x7F80_0000) != 0x7F80_0000
    assert 0.4 < numbers.mean() < 1


def test_semirings_ignore_the_precision_and_sums_use_it():
    beats = make_traffic(MIXED, beats=2000, seed=1)
    ours = beats.operation != 0
    assert set(beats.precision[ours].tolist()) == set(range(len(MIXED.precisions)))
    assert set(beats.precision[~ours].tolist()) == set(range(len(MIXED.precisions)))
    result = run_unit(MIXED, None, 1500, 1)
    assert result.vectors > 1500 and result.mismatches == 0


@pytest.mark.parametrize("op", OPS[1:])
def test_all_pairs_of_special_operands(op):
    """Every C occurs; x − x is +0, −0 + −0 is −0, a NaN loses, and infinities propagate."""
    codes = special_codes(FORMATS["fp32"]).astype(np.uint32)
    assert {0, 1 << 31, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 1} <= set(codes.tolist())
    a, b = codes[:, None], codes[None]
    c = np.broadcast_to(codes[:, None, None], (len(codes), len(codes), len(codes)))
    expected = plain_mmo(Op[op.upper()], *(np.ascontiguousarray(x).view("f4") for x in (a, b, c)))
    result = matmul(SMALL, a, b, np.ascontiguousarray(c), precision="fp32", operation=op)
    assert np.array_equal(result.d, expected.view(np.uint32))


def test_a_pair_takes_two_cycles_and_none_waits():
    model = compile_unit(MatrixUnit, config=SMALL)
    one_slot = np.zeros(64, int)
    cycles = {}
    for op in ("minplus", "mma"):
        traffic = make_traffic(
            SMALL, beats=64, seed=1, operations=(op,), slots=one_slot, lengths=(64,), emit_rate=0
        )
        run = model.stream(inputs=traffic.inputs, outputs={"o": 1})
        assert (run.outputs["o"] == traffic.d).all()
        cycles[op] = int(run.output_cycles["o"][-1]) + 1
    assert cycles["minplus"] == 2 * 64 + SMALL.latency_cycles
    assert cycles["mma"] > cycles["minplus"]


ASSIGN = "vitruvian.hdl.cube.assign.DataAssignment._semiring_operand"
semiring_operand, better = DataAssignment._semiring_operand, vitruvian.hdl.cube.datapath.better


def operands_exchanged(self, code, index, chosen):
    """Compute 1 · a and 1 · b with the 1 in the wrong lane."""
    exchanged = index ^ 1 if self.side == "a" and index < 2 else index
    return semiring_operand(self, code, exchanged, chosen)


def both_pairs(self, code, index, chosen):
    """Add the product of the second pair of operands."""
    return semiring_operand(self, code, index, chosen)[0], chosen


def without_identity(m, *args, keep, **rest):
    """Combine a beat that starts from zero with the old value of its slot."""
    return better(m, *args, keep=keep | True, **rest)


def not_negated(code, negate, output):
    """Do not negate the candidate for ⊕ = max."""
    return code


def plus_zero(start, semiring):
    """Use +0 as C of a candidate, so that a candidate −0 becomes +0."""
    return start & (~semiring).replicate(len(start))


def test_without_a_mutation_the_few_pass():
    assert not mismatches(FEW)


@pytest.mark.parametrize(
    ("target", "mutant"),
    [
        (ASSIGN, operands_exchanged),
        ("vitruvian.hdl.cube.datapath.better", without_identity),
        ("vitruvian.hdl.cube.datapath.negated_unless_nan", not_negated),
        pytest.param("vitruvian.hdl.cube.datapath.addend", plus_zero, marks=pytest.mark.long),
        pytest.param(ASSIGN, both_pairs, marks=pytest.mark.long),
        pytest.param(
            "vitruvian.hdl.cube.datapath.keep_selected",
            lambda *args, **rest: None,
            marks=pytest.mark.long,
        ),
        pytest.param(
            "vitruvian.hdl.cube.datapath.both_true",
            lambda a, b: ~(a.zero | b.zero),
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_mutant_fails(monkeypatch, target, mutant):
    monkeypatch.setattr(target, mutant)
    assert mismatches(SMALL if mutant is both_pairs else FEW)  # only a product shows this mutant


@pytest.mark.long
def test_a_semiring_that_uses_the_precision_is_caught(monkeypatch):
    monkeypatch.setattr(
        MatrixUnit, "_precision", lambda self, m: self.i.payload.precision.as_value()
    )
    model = compile(MatrixUnit(config=MIXED))
    traffic = make_traffic(MIXED, beats=1000, seed=1, operations=("minplus",))
    with pytest.raises(StreamError, match="hung"):  # a complex precision takes two C
        compare_traffic(model, traffic, stall_rate=0, seed=1)


def test_properties_of_a_unit():
    assert SMALL.one_pair and SMALL.pairs("minplus") == 1 and SMALL.steps("fp32") == 2
    assert MIXED.latency_cycles == CONFIGS["m3xu"].latency_cycles + 1
    assert not CONFIGS["simd2_4x4"].one_pair and not CONFIGS["m3xu"].one_pair
    assert replace(SMALL, operations=("mma",)).merge_cycles == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 2}, "k must be at least 4 with minplus on FP32 operands, which takes two products"),
        ({"operations": ("minplus",)}, r"operations must have mma with fp32, not \('minplus',\)"),
        ({"operations": ("mma", "addnorm")}, "operation must be one of mma, .* not 'addnorm'"),
        ({"precisions": ("fp32", "fp64")}, "precision must be one of fp16, .* not 'fp64'"),
        ({"precisions": ("fp32", "int8")}, "precision must be one of fp16, .* not 'int8'"),
        ({"output": "fp16"}, "output must be 'fp32' with operations other than mma, not 'fp16'"),
        ({"assignment": "element"}, "precision must be one of .* with assignment 'element'"),
        ({"sparsity": True}, "sparsity must be False with fp32, not True"),
    ],
)
def test_errors_of_a_configuration(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)


def test_a_unit_with_products_only_needs_lanes_for_one_product():
    assert replace(SMALL, k=2, operations=("mma", "minmul", "orand")).terms("fp32") == 1


def test_matrices_of_another_precision_are_refused():
    one = np.ones((2, 2), np.uint16)
    with pytest.raises(ValueError, match="precision must be 'fp32' with minplus"):
        matmul(MIXED, one, one, precision="fp16", operation="minplus")
