"""M³XU's instructions and rates against Zhang 2024, Table 2.2 and Corollaries 1 to 3.

Cycles are measured at the hand-shakes of the RTL. The rates are exact, because the cycles between
two instructions do not contain the latency, which is the only other part of a list's cycles.
"""

import csv
from fractions import Fraction
from functools import lru_cache

import pytest

from vitruvian.golden.m3xu.isa import Opcode
from vitruvian.hdl.mma.unit import UNITS
from vitruvian.sim.rtl.mma import measure

#: Opcode, output, input, shape. The shapes of the last two contradict the numbers in their names
#: (16416 and 16216); half and quarter of FP16's K say that the shapes are meant.
TABLE_2_2 = [
    ("HMMA.16816.F32", "fp32", "fp16", (16, 8, 16)),
    ("HMMA.16816.F32.BF16", "fp32", "bf16", (16, 8, 16)),
    ("HMMA.1684.F32.TF32", "fp32", "tf32", (16, 8, 4)),
    ("HMMA.16416.F32.FP32", "fp32", "fp32", (16, 8, 8)),
    ("HMMA.16216.F32C.FP32C", "fp32", "fp32c", (16, 8, 4)),
]
#: The instruction that no unit has, because all results of a unit have one format, here FP32.
LEFT_OUT = ("HMMA.16816.F16", "fp16", "fp16", (16, 8, 16))
PIPELINES = (
    "m3xu",
    *(pytest.param(unit, marks=pytest.mark.long) for unit in ("m3xu_pipelined", "m3xu_systolic")),
)


@lru_cache
def rate(unit, opcode):
    measured = measure(UNITS[unit], [opcode] * 12, name=opcode.mnemonic)
    assert measured.mismatches == 0 and measured.bubbles == 0
    assert len(set(measured.each)) == 1, "every instruction takes as long as the others"
    return measured


def cycles(unit, opcode):
    return rate(unit, opcode).cycles_each


@pytest.mark.parametrize(("name", "output", "input", "shape"), TABLE_2_2)
def test_table_2_2(name, output, input, shape):
    opcodes = [o for o in Opcode if o.precision.name == input and o.shape == shape]
    assert len(opcodes) == 1
    assert (
        opcodes[0].precision.output.name == output
        and opcodes[0].fragment("d").format.name == output
    )


def test_table_2_2_is_here_but_for_fp16_results():
    ours = {(o.precision.output.name, o.precision.name, o.shape) for o in Opcode}
    assert {row[1:] for row in TABLE_2_2} <= ours and LEFT_OUT[1:] not in ours


def test_shapes_follow_from_throughput():
    """K is halved for twice the width and quartered for complex: A and B keep their size."""
    fp16 = Opcode.FP16.shape
    assert (*fp16[:2], fp16[2] // 2) == Opcode.FP32.shape
    assert (*fp16[:2], fp16[2] // 4) == Opcode.FP32C.shape
    for operand in "ab":
        bits = {o.fragment(operand).bits for o in (Opcode.FP16, Opcode.FP32, Opcode.FP32C)}
        assert len(bits) == 1


@pytest.mark.parametrize("unit", PIPELINES)
def test_corollary_1(unit):
    """Operands of twice the width and half the K take twice the cycles."""
    m, n, k = Opcode.FP16.shape
    assert Opcode.FP32.shape == (m, n, k // 2)
    assert cycles(unit, Opcode.FP32) == 2 * cycles(unit, Opcode.FP16)


@pytest.mark.parametrize("unit", PIPELINES)
def test_corollary_2(unit):
    """FP32 executes a quarter of the multiply-accumulates per cycle."""
    assert rate(unit, Opcode.FP32).relative(rate(unit, Opcode.FP16)) == Fraction(1, 4)


@pytest.mark.parametrize("unit", PIPELINES)
def test_corollary_3(unit):
    """Complex numbers of the same M, N and K take 16 times the cycles."""
    same_k = Opcode.FP16.shape[2] // Opcode.FP32C.shape[2]
    assert same_k * cycles(unit, Opcode.FP32C) == 16 * cycles(unit, Opcode.FP16)
    assert rate(unit, Opcode.FP32C).relative(rate(unit, Opcode.FP16)) == Fraction(1, 16)


@pytest.mark.parametrize("unit", PIPELINES)
def test_the_baselines_own_rates(unit):
    """BF16 is as fast as FP16, and TF32 half as fast in both of its shapes."""
    fp16 = rate(unit, Opcode.FP16)
    assert rate(unit, Opcode.BF16).relative(fp16) == 1
    assert rate(unit, Opcode.TF32).relative(fp16) == Fraction(1, 2)
    assert rate(unit, Opcode.TF32_K4).relative(fp16) == Fraction(1, 2)
    assert fp16.macs_per_cycle == UNITS[unit].macs == 8 * 4 * 8


@pytest.mark.parametrize(
    ("unit", "limbs"), [("fp64", 2), pytest.param("m3xu_fp64", 4, marks=pytest.mark.long)]
)
def test_double_precision_has_the_same_law(unit, limbs):
    """The rate with n limbs is 1/n², which extends the corollaries to other widths."""
    assert rate(unit, Opcode.FP64).relative(rate("m3xu", Opcode.FP16)) == Fraction(1, limbs**2)


@pytest.mark.parametrize(
    ("name", "opcode"),
    [("m3xu.throughput.fp32", Opcode.FP32), ("m3xu.throughput.fp32c", Opcode.FP32C)],
)
def test_published_figures(root, name, opcode):
    path = root.parent / "shared" / "papers" / "figures.csv"
    if not path.exists():
        pytest.skip("needs the published figures in ../shared/papers")
    with path.open(newline="") as file:
        values = [Fraction(row["value"]) for row in csv.DictReader(file) if row["id"] == name]
    assert values == [rate("m3xu", opcode).relative(rate("m3xu", Opcode.FP16))]
