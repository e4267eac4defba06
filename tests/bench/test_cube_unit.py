"""The matrix unit under cocotb: starts, stalls, resets, precision changes, both dataflows."""

import shutil

import pytest

from vitruvian.hdl.cube import BLACKWELL, MatrixUnit
from vitruvian.hdl.cube.choices import DATAFLOWS
from vitruvian.sim.bench.cube.bench_unit import configuration
from vitruvian.sim.bench.runner import run_bench

MODULE = "vitruvian.sim.bench.cube.bench_unit"
TESTS = 5


def parameters(preset="tiny", beats=150, **changes):
    return {"preset": preset, "beats": beats, "changes": changes}


def run(given, design=None, **options):
    design = MatrixUnit(config=configuration(given)) if design is None else design
    return run_bench(design, MODULE, parameters=given, **options)


@pytest.mark.parametrize(
    "given",
    [
        parameters(),
        parameters(dataflow="systolic", m=3, precisions=("fp16", "int8"), pipeline=0),
        parameters(n=1, k=3, precisions=("bf16",), pipeline=3, slots=1, preset="cube_4x4x4"),
        parameters(m=2, n=3, dataflow="systolic", preset="tensorcore_a100", k=2),
        parameters(m=2, n=1, k=4, preset="m3xu"),
        parameters(m=1, n=2, k=4, preset="m3xu_pipelined", dataflow="systolic"),
        pytest.param(
            parameters(m=2, n=1, k=4, preset="m3xu_pipelined", pipeline=4, fast=True),
            marks=pytest.mark.long,
        ),
        parameters(m=1, n=2, preset="int8_8x8_dsp"),
        parameters(m=2, n=1, k=1, dataflow="systolic", precisions=("int8",), buffered=True),
        parameters(m=1, n=2, k=4, preset="nvfp4_8x4", dataflow="systolic", beats=100),
    ],
    ids=[
        "tiny",
        "systolic",
        "one-slot",
        "a100-systolic",
        "m3xu",
        "m3xu-systolic",
        "m3xu-fast",
        "memory-buffered",
        "buffered-systolic",
        "nvfp4-systolic",
    ],
)
def test_matrix_unit(given):
    result = run(given)
    assert result.passed and result.tests == TESTS, result.failures


@pytest.mark.long
@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("preset", BLACKWELL)
def test_blackwell_presets_at_full_size(preset, dataflow):
    result = run(parameters(preset=preset, dataflow=dataflow))
    assert result.passed and result.tests == TESTS, result.failures


def test_matrix_unit_on_icarus(monkeypatch):
    if not shutil.which("iverilog"):
        pytest.skip("needs Icarus Verilog (iverilog), which is optional")
    monkeypatch.setenv("SIM", "icarus")
    result = run(parameters(beats=60, precisions=("fp16", "int8")))
    assert result.passed and result.tests == TESTS, result.failures
