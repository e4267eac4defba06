"""Kernels on the compiled RTL: the bits of golden, and measured beside modelled cycles."""

import json

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.m3xu import gemm
from vitruvian.hdl.cube import CONFIGS
from vitruvian.sim.rtl import cube
from vitruvian.sim.studies import BACKENDS, KERNELS, METHODS, BoundMethod, Engine, Unit
from vitruvian.sim.studies.fft import fft

LATENCY = CONFIGS["m3xu"].latency_cycles


def test_the_back_end_has_the_parameters_of_golden():
    rng = np.random.default_rng(2)
    a, b, c = rng.standard_normal((3, 5, 5)).astype(np.float32)
    settings = {"precision": "fp32", "k": 4, "preset": "a100"}
    result = BACKENDS["rtl"](a, b, c, **settings)
    assert np.array_equal(result, gemm(a, b, c, **settings))


def test_fft_on_the_rtl_equals_golden_and_is_as_accurate_as_fp32():
    """4096 points in FP32C are three products, one for each radix of 16·16·16."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4096, 2)).astype(np.float32).view(np.complex64)[:, 0]
    results = {}
    for backend in ("rtl", "golden"):
        engine = Engine(backend=backend)
        results[backend] = fft(x, BoundMethod(METHODS["FP32C"], engine))
        cost = engine.total
        if backend == "rtl":  # 2·64 tiles of 8 beats in each stage; four steps a beat
            assert cost.model_cycles == 3 * 2 * 64 * 8 * 4
            assert cost.measured_cycles == cost.model_cycles + 3 * LATENCY
        else:
            assert cost.measured_cycles == 0
    assert np.array_equal(*(value.view(np.uint32) for value in results.values()))
    reference = np.fft.fft(x.astype(np.complex128))
    error = np.linalg.norm(results["rtl"] - reference) / np.linalg.norm(reference)
    assert error < 3e-7


def test_the_command(tmp_path, capsys):
    file = tmp_path / "rows.json"
    arguments = ["studies", "sgemm", "--size", "16", "--methods", "3xtf32,fp32"]
    assert main([*arguments, "--backend", "rtl", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "products by rtl" in out and "RTL cycles" in out and "0 elements of products" in out
    _, emulated, native = json.loads(file.read_text())[0]["rows"]
    # 2·4 tiles of four beats, one step each in TF32 and two in FP32
    assert native["cost"]["model_cycles"] == 8 * 4 * 2
    assert native["cost"]["measured_cycles"] == native["cost"]["model_cycles"] + LATENCY
    assert emulated["cost"]["model_cycles"] == 3 * 8 * 4
    assert emulated["cost"]["measured_cycles"] == emulated["cost"]["model_cycles"] + 3 * LATENCY
    assert main(arguments) == 0
    assert "RTL cycles" not in capsys.readouterr().out


def test_a_unit_that_cannot_be_built_is_refused_first(monkeypatch):
    monkeypatch.setattr(cube, "compile_unit", lambda *_, **__: pytest.fail("built"))
    with pytest.raises(ValueError, match="m must be"):
        KERNELS["sgemm"](8, backend="rtl", unit=Unit(m=65), methods=("FP32",))
