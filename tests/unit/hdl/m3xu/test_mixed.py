"""Tests of units with FP64 and with precisions whose results are FP32 or INT32."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module

import vitruvian.hdl.cube.grid
import vitruvian.hdl.fp.core.dotcore
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig
from vitruvian.hdl.cube.assign import DataAssignment
from vitruvian.sim.bench.cube.batch import compare_traffic
from vitruvian.sim.bench.cube.traffic import make_traffic
from vitruvian.sim.rtl import compile
from vitruvian.sim.rtl.cube import matmul

#: Four lanes are one FP64 term; other tests have units with eight lanes.
ALL = replace(CONFIGS["m3xu_fp64"], m=1, n=2, k=4)


def result(config, beats=2500, seed=3):
    """Run a unit with stalls. It is always built again, because it may be a mutant."""
    traffic = make_traffic(config, beats=beats, seed=seed)
    model = compile(MatrixUnit(config=config))
    return compare_traffic(model, traffic, stall_rate=0.2, seed=seed)


@pytest.mark.parametrize(
    "changes",
    [
        {"k": 8},
        pytest.param({"dataflow": "systolic", "assignment": "pipelined"}, marks=pytest.mark.long),
        {"preset": "a100", "precisions": ("fp16", "tf32", "fp32", "fp64"), "pipeline": 4, "k": 8},
        {"preset": "a100", "precisions": ("fp16", "int8", "fp64"), "pipeline": 0},
        {"precisions": ("bf16", "int8", "fp32"), "multiplier_bits": None, "saturate": True},
        pytest.param(
            {"precisions": ("fp32", "fp64"), "multiplier_bits": 27, "pipeline": 1, "k": 8},
            marks=pytest.mark.long,
        ),
    ],
    ids=["all", "systolic", "a100", "a100-without-fp32", "int8-fp32", "one-step-fp32"],
)
def test_results_of_two_sizes_equal_golden(changes):
    n = 2 if "dataflow" in changes else 1
    comparison = result(replace(ALL, n=n, **changes))
    assert comparison.vectors > 1000 * n and comparison.mismatches == 0


def test_results_have_the_size_of_their_precision():
    assert ALL.word_bits == 64
    assert [ALL.result_bits(p) for p in ALL.precisions] == [32, 32, 32, 32, 32, 32, 64]
    outputs = {name: spec.output.name for name, spec in ALL.float_specs.items()}
    assert outputs["fp16"] == outputs["fp32c"] == "fp32" and outputs["fp64"] == "fp64"
    assert ALL.small_results == ("fp16", "bf16", "tf32", "fp32", "fp32c")
    everywhere = replace(ALL, output="fp64", precisions=("fp16", "fp64"))
    assert everywhere.small_results == () and everywhere.result_bits("fp16") == 64


def test_a_small_result_is_rounded_once():
    """2**10 + 2**-14 + 2**-48 is just above a tie in FP32, but FP64 rounds it to the tie."""
    c = np.array([[2.0**10]], np.float32).view(np.uint32)
    a = np.array([[2.0**-7, 2.0**-24]], np.float16).view(np.uint16)
    got = matmul(replace(ALL, n=1), a, a.T, c, precision="fp16").d  # another test builds it
    assert np.float32(2.0**10 + 2.0**-14 + 2.0**-48) == 2.0**10
    assert got.view(np.float32) == np.float32(2.0**10 + 2.0**-13)


class NoSignFlip(DataAssignment):
    """Mutant that does not negate the imaginary operands of A for the real part."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = DataAssignment(config=self.config, side=self.side)
        m.d.comb += [inner.bus.eq(self.bus), inner.step.eq(self.step), self.lanes.eq(inner.lanes)]
        if self.side == "a":
            m.d.comb += inner.step.part.eq(1)
        return m


class NoExchange(DataAssignment):
    """Mutant that does not exchange the operands of B for the imaginary part."""

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = DataAssignment(config=self.config, side=self.side)
        m.d.comb += [inner.bus.eq(self.bus), inner.step.eq(self.step), self.lanes.eq(inner.lanes)]
        if self.side == "b":
            m.d.comb += inner.step.part.eq(0)
        return m


@pytest.mark.parametrize("mutant", [NoSignFlip, NoExchange])
def test_a_mutant_of_the_assignment_fails(monkeypatch, mutant):
    monkeypatch.setattr(vitruvian.hdl.cube.grid, "DataAssignment", mutant)
    config = replace(ALL, n=1, k=4, precisions=("fp32", "fp32c"), multiplier_bits=None)
    assert result(config).mismatches > 100


def _dropped(option):
    original = vitruvian.hdl.fp.core.dotcore.round_and_pack

    def mutant(m, number, **rest):
        if rest["output"].name == "fp32":
            rest[option] = False
        return original(m, number, **rest)

    return mutant


@pytest.mark.parametrize("option", ["denormalise", "saturate"])
def test_a_mutant_of_the_small_result_fails(monkeypatch, option):
    """Sums that are normal numbers in FP64 can be subnormal or too large in FP32."""
    monkeypatch.setattr(vitruvian.hdl.fp.core.dotcore, "round_and_pack", _dropped(option))
    config = replace(ALL, n=1, k=2, precisions=("fp32", "fp64"), multiplier_bits=27)
    assert result(config).mismatches > 10


def test_errors_of_parameters():
    with pytest.raises(ValueError, match="without a floating precision"):
        MatrixUnitConfig(m=1, n=1, k=4, precisions=("int8",), assignment="edge")
    with pytest.raises(ValueError, match="output must have 32 bits with int8"):
        replace(ALL, output="fp64")
    with pytest.raises(ValueError, match="precision must be one of"):
        replace(ALL, precisions=("fp8e4m3", "fp64"))
