"""Proofs about the data assignment: every pair of limbs is multiplied exactly once.

Lane i of an operand must get limb i of A in every step, and all its lanes digit t of B in step t.
The steps of a beat must visit every digit once for each part. Then the pairs (limb i, digit t) are
all pairs, each once, and the sum of their products is the product of the significands.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, transfers
from vitruvian.flows.formal.proof import Mutation, Proof, proof_of_cases
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU
from vitruvian.hdl.cube.assign import DataAssignment
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.cube.presets import CONFIGS
from vitruvian.hdl.cube.unit import MatrixUnit

_M3XU = replace(CONFIGS["m3xu"], m=1, n=1, k=4)
_FP64 = replace(CONFIGS["m3xu_fp64"], m=1, n=1, k=8)


def _limbs(h: ProofHarness, config: MatrixUnitConfig) -> None:
    """Compare the lanes of both sides, for every digit of B, with slices of the significands."""
    most = max(config.limb_counts)
    sides = [h.add(DataAssignment(config=config, side="a"), "a")]
    sides += [DataAssignment(config=config, side="b") for _ in range(most)]
    for t, unit in enumerate(sides[1:]):
        h.add(unit, f"b{t}", driven=[unit.bus, unit.step])
        h.m.d.comb += [
            unit.bus.eq(sides[1].bus) if t else unit.bus.eq(h.free("bus_b", config.bus_bits)),
            unit.step.precision.eq(sides[0].step.precision),
            unit.step.part.eq(sides[0].step.part),
            unit.step.digit.eq(t),
        ]
    step = sides[0].step
    for name in config.floats:
        chosen = step.precision == config.precisions.index(name)
        _compare(h, config, name, chosen, step.part, sides)


def _compare(
    h: ProofHarness,
    config: MatrixUnitConfig,
    name: str,
    chosen: Value,
    part: Value,
    sides: list[Any],
) -> None:
    """Demand the right lanes of one precision."""
    format, n = M3XU[name].format, config.limbs(name)
    bits, fraction = format.storage_bits, format.fraction_bits
    low = format.storage_shift
    is_complex = M3XU[name].is_complex
    same: list[Value] = []
    for index in range(config.terms(name)):
        for t, unit in enumerate(sides):
            is_b = t > 0
            place = bits * index
            code = unit.bus[place : place + bits]
            if is_b and is_complex:
                # The imaginary part of a complex product takes the other part of B.
                other = bits * (index ^ 1)
                code = Mux(part, unit.bus[other : other + bits], code)
            sign = code[format.width + low - 1]
            if not is_b and is_complex and index % 2:
                # (a + bi)(c + di) has −b·d in its real part, and part 0 is the real one.
                sign = sign ^ ~part
            exponent = code[low + fraction : low + format.width - 1]
            # The hidden bit is 0 for subnormal numbers only.
            significand = Cat(code[low : low + fraction], exponent.any())
            lanes = [unit.lanes.lanes[f"lane{index * n + i}"] for i in range(n)]
            same += [lane.sign == sign for lane in lanes]
            if is_b:
                # Significands are aligned at the upper end of the highest limb.
                pad = n * config.lane_bits - len(significand)
                digit = Cat(Const(0, pad), significand).word_select(t - 1, config.lane_bits)
                if t <= n:
                    same += [lane.significand == digit for lane in lanes]
            else:
                word = Cat(*(lane.significand for lane in lanes))
                same.append(word == Cat(Const(0, len(word) - len(significand)), significand))
    for lane in range(config.terms(name) * n, config.lanes):
        same += [unit.lanes.lanes[f"lane{lane}"].zero for unit in sides]
    h.rule(name, ~chosen | Cat(*same).all())


def _visible(self: Grid, platform: object) -> Module:
    """Return the abstract ``Grid``, whose result shows its inputs of this cycle."""
    m = Module()
    m.d.comb += Value.cast(self.d).eq(Cat(self.valid, self.step.part, self.step.digit))
    return m


def _steps(h: ProofHarness, config: MatrixUnitConfig) -> None:
    """Demand that the steps of a beat visit each digit of each part once, in order."""
    h.abstract(Grid, _visible)
    unit = h.add(MatrixUnit(config=config))
    h.stable_streams_in(unit)
    beat, shown = unit.i.payload, Value.cast(unit.o.payload)
    valid, part, digit = shown[0], shown[1], shown[2 : 2 + config.digit_bits]
    code = beat.precision.as_value()
    h.assume(code < len(config.precisions))
    last, is_complex = Signal(config.digit_bits), Signal()
    for number, name in enumerate(config.precisions):
        with h.m.If(code == number):
            h.m.d.comb += last.eq(config.limbs(name) - 1)
            h.m.d.comb += is_complex.eq(name in config.complex_precisions)
    ends = digit == last
    done = ends & (part == is_complex)
    taken = transfers(unit.i)
    past = {
        name: h.past(value, name)
        for name, value in (("taken", taken), ("digit", digit), ("part", part), ("valid", valid))
    }
    fresh = past["taken"]
    h.rule("last_step", ~taken | (done & valid))
    h.rule("first_step", ~fresh | ((digit == 0) & (part == 0)))
    # Before a beat comes, nothing counts.
    stays = (digit == past["digit"]) & (part == past["part"]) & ~past["valid"]
    counts = (digit == past["digit"] + 1) & (part == past["part"]) & ~past["valid"]
    # The second part of a complex product begins when the first sum has ended.
    turns = (digit == 0) & part & ~past["part"] & past["valid"]
    h.rule("order", fresh | stays | counts | turns)
    h.rule("sum_ends", ~valid | ends)
    # These two make the others inductive.
    h.rule("rest", unit.i.valid | ((digit == 0) & (part == 0)))
    h.rule("range", ~unit.i.valid | ((digit <= last) & (part <= is_complex)))
    # An element adds in every cycle, so a sum that has begun must not wait.
    h.rule("no_pause", (digit == 0) | counts)


_ASSIGN = (
    Mutation(
        name="digits of B in another order",
        owner=DataAssignment,
        function="_digit",
        old="self.step.digit == t",
        new="self.step.digit == (t ^ 1)",
    ),
    Mutation(
        name="the lanes of A get the same limb",
        owner=DataAssignment,
        function="_assign_operands",
        old="position += width",
        new="position += 0",
    ),
    Mutation(
        name="imaginary operands are negated for the other part",
        owner=DataAssignment,
        function="_assign_operands",
        old="negate = is_complex & ~self.step.part",
        new="negate = is_complex & self.step.part",
    ),
)

PROOFS = (
    proof_of_cases(
        "assign.m3xu",
        "DataAssignment, fp16 to fp32c, k = 4, limbs of 11 and 13 bits",
        "Each lane has its limb of A and the step's digit of B, for every operand and step.",
        _limbs,
        _ASSIGN,
        config=_M3XU,
    ),
    proof_of_cases(
        "assign.fp64",
        "DataAssignment, fp16 to fp64c, k = 8, 14-bit multipliers",
        "The same holds for FP64 with four limbs.",
        _limbs,
        _ASSIGN[:1],
        config=_FP64,
    ),
    Proof(
        name="assign.steps",
        component="MatrixUnit, fp16 to fp32c, 1 × 1 × 4, array cut off",
        claim="A beat takes each digit of each part once, in order and without a pause in a sum.",
        build=partial(_steps, config=_M3XU),
        method="induction 4",
        mutations=(
            Mutation(
                name="the sum ends a step early",
                owner=MatrixUnit,
                function="_build_steps",
                old="digit == n - 1",
                new="digit == n - 2",
            ),
            Mutation(
                name="a step counts although the beat waits",
                owner=MatrixUnit,
                function="_build_steps",
                old="with m.If(issue):",
                new="with m.If(self.i.valid):",
            ),
        ),
    ),
)
