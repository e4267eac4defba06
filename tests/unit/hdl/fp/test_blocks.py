"""Dot products with block scales: rules, bad parameters, RTL against golden, mutants."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines import find
from vitruvian.hdl.fp.blocks import RULES, block_spec
from vitruvian.hdl.fp.groups import GroupDot
from vitruvian.hdl.fp.scaled import ScaledDot
from vitruvian.sim.bench.fp.blocks import block_vectors, run_blocks

SEED = 20261123


@pytest.mark.parametrize(
    ("stem", "arguments"),
    [
        ("b200_mxf8_e4m3_fp32", ("mxf8f6f4",)),
        ("b200_mxf8_e5m2xe3m2_fp32", ("mxf8f6f4", "fp8e5m2", "fp6e3m2")),
        ("b200_mxf4_fp32", ("mxf4",)),
        ("b200_nvf4_ue8m0_fp32", ("nvf4_ue8m0",)),
        ("b200_nvf4_ue4m3_fp32", ("nvf4_ue4m3",)),
    ],
)
def test_the_rules_are_those_of_the_table_of_machines(stem, arguments):
    assert block_spec(*arguments) == find(stem).rule


@pytest.mark.parametrize(
    ("spec", "pipeline"),
    [
        (block_spec("mxf8f6f4", "fp8e4m3", k=3), 2),
        (block_spec("mxf8f6f4", "fp8e5m2", "fp4e2m1", k=2), 0),
        (block_spec("mxf4", k=32), 5),
        (block_spec("nvf4_ue4m3", k=32), 3),
    ],
    ids=lambda value: f"{value.input}-{value.scales}" if isinstance(value, DotSpec) else None,
)
def test_random_operands_agree_with_golden(spec, pipeline):
    result = run_blocks("blocks", spec, 20_000, SEED, pipeline=pipeline)
    assert result.vectors == 20_000 and not result.mismatches, result.examples


def test_the_stimuli_reach_every_kind_of_result():
    for rule in RULES:
        spec = block_spec(rule)
        operands = block_vectors(spec, 2000, seed=SEED)
        d = fused_dot(**operands, spec=spec)
        without_c = fused_dot(**(operands | {"c": np.zeros_like(d)}), spec=spec)
        magnitude = d & 0x7FFFFFFF
        shares = [d == 0x7FFFFFFF, magnitude == 0, d != without_c, d != operands["c"]]
        if spec.scales is not None and spec.scales.format.name == "ue8m0":
            shares += [(magnitude > 0) & (magnitude < 1 << 23), magnitude == 0x7F800000]
        assert min(share.mean() for share in shares) > 0.005, rule


@pytest.mark.parametrize(
    ("unit", "spec", "message"),
    [
        (ScaledDot, block_spec("mxf4"), "lanes must be 'together', not 'sixteens'"),
        (GroupDot, block_spec("mxf8f6f4"), "lanes must be 'sixteens', not 'together'"),
        (GroupDot, block_spec("mxf4").replace(block=8), "block must be a multiple of 16, not 8"),
        (GroupDot, block_spec("mxf4").replace(k=8, block=8), "k must be a multiple of 16, not 8"),
        (ScaledDot, block_spec("mxf8f6f4").replace(block=8), "block must be k = 32, not 8"),
        (
            ScaledDot,
            block_spec("mxf8f6f4").replace(scale="ue4m3"),
            "scale must be a power of two, not 'ue4m3'",
        ),
        (
            ScaledDot,
            block_spec("mxf8f6f4").replace(scale=None, block=None),
            "spec must have a scale, not None",
        ),
        (
            ScaledDot,
            block_spec("mxf8f6f4").replace(truncate="floor"),
            "truncate must be 'magnitude', not 'floor'",
        ),
        (
            GroupDot,
            block_spec("mxf4").replace(input="fp6e2m3"),
            "input must be fp4e2m1, not 'fp6e2m3'",
        ),
    ],
)
def test_rules_that_a_unit_does_not_have_are_refused(unit, spec, message):
    with pytest.raises(ValueError, match=message):
        unit(spec=spec)


class _WithoutFloor(ScaledDot):
    @property
    def geometry(self):
        return replace(super().geometry, zero_code=1)


class _WiderWindow(GroupDot):
    @property
    def geometry(self):
        return replace(super().geometry, window=super().geometry.window + 1)


class _LessHeadroom(GroupDot):
    @property
    def geometry(self):
        g = super().geometry
        return replace(g, headroom=g.headroom - 1)


@pytest.mark.parametrize(
    ("mutant", "spec"),
    [
        (_WithoutFloor, block_spec("mxf8f6f4", k=2)),
        (_WiderWindow, block_spec("nvf4_ue4m3", k=32)),
        (_LessHeadroom, block_spec("nvf4_ue4m3", k=32)),
    ],
)
def test_a_mutant_is_noticed(mutant, spec):
    assert run_blocks("mutant", spec, 20_000, SEED, pipeline=0, unit=mutant).mismatches
