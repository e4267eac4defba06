"""Dots of tiles against results of Triton's kernels that an H200 returned."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.measured import FOLDER
from vitruvian.common.errors import UserError
from vitruvian.flows.probes.library_operands import KINDS, rows, sampled
from vitruvian.golden.machines import find
from vitruvian.golden.machines.products import product_of_rule
from vitruvian.golden.triton import Dot, lower, multiply, multiply_scaled

with np.load(FOLDER / "triton.npz") as file:
    CALLS = json.loads(file["header"].tobytes())["calls"]
    SAMPLES = file["samples"]
RNG = np.random.default_rng(54)


def dot_of(call: dict[str, Any]) -> Dot:
    """Return the dot of a recorded call."""
    shape = (call["m"], call["n"], call["bk"])
    options = {"imprecise": call["imprecise"], "precision": call["precision"]}
    return lower("h200", call["a"], shape, **options)


def differences(number: int, dot: Dot) -> int:
    """Return how many samples of a recorded call differ."""
    call, wrong = CALLS[number], 0
    size, depth, format = call["m"], call["bk"], call["a"]
    # The compiler joins a dot and an addition, unless the dot may restart its sum.
    joined = call["how"] == 0 or format not in ("e4m3", "e5m2") or call["imprecise"] == 0
    places = sampled(call["number"], size, size, SAMPLES.shape[2])
    for kind, expected in zip(KINDS, SAMPLES[number], strict=True):
        a = rows(format, np.arange(size), call["k"], kind, "a")
        b = rows(format, np.arange(size), call["k"], kind, "b").T
        total = zero = np.zeros((size, size), np.uint32)
        for start in range(0, call["k"], depth):
            x, y = a[:, start : start + depth], b[start : start + depth]
            if joined:
                total = multiply(x, y, total, dot)
            else:
                d = multiply(x, y, zero, dot)
                total = (total.view(np.float32) + d.view(np.float32)).view(np.uint32)
        wrong += int((total[places] != expected).sum())
    return wrong


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_recorded_dots_are_equal(number):
    dot = dot_of(CALLS[number])
    assert dot.evidence == "measured"
    assert differences(number, dot) == 0
    words = [w for line in CALLS[number]["ptx"] for w in line.split(".")]
    unit = "wgmma" if "wgmma" in words else "mma" if words else "fma"
    assert unit in dot.rule


def test_the_samples_notice_another_order_or_restart():
    assert SAMPLES.shape == (40, 3, 192)
    for number, change in (
        (1, {"group": 2}),  # the order of K
        (2, {"group": 2}),
        (4, {"restart": 64}),
        (4, {"restart": 0}),
        (36, {"split": False}),
        (38, {"rule": "h200_wgmma_tf32_fp32"}),
    ):
        assert differences(number, replace(dot_of(CALLS[number]), **change)) > 20, (number, change)


def codes(*shape: int, bits: int = 8) -> np.ndarray:
    """Return random codes without NaNs of e4m3 and without large numbers of 16 bits."""
    largest = 0x77 if bits == 8 else 0x43FF
    magnitude = RNG.integers(0, largest, shape)
    return (magnitude | RNG.integers(0, 2, shape) << bits - 1).astype(f"u{bits // 8}")


@pytest.mark.parametrize(
    ("machine", "input", "shape", "more", "text"),
    [
        ("h100", "fp16", (64, 64, 16), {}, "fp16: h100_wgmma_fp16_fp32 (vendor)"),
        ("h100", "fp16", (64, 64, 16), {"warps": 2}, "fp16: h100_mma_fp16_fp32 (vendor)"),
        ("h200", "fp16", (64, 64, 16), {"batched": True}, "fp16: h200_mma_fp16_fp32 (vendor)"),
        ("a100", "fp32", (32, 32, 8), {}, "fp32: a100_mma_tf32_fp32 (vendor)"),
        ("ada", "e4m3", (64, 64, 32), {}, "e4m3: ada_mma_e4m3_fp32 (vendor)"),
        ("b200", "e4m3xe5m2", (64, 64, 32), {}, "e4m3xe5m2: b200_tcgen05_e4m3xe5m2_fp32 (pub"),
        ("rtx50", "e4m3", (64, 64, 32), {"assume": True}, "e4m3: rtx50_mmasync_e4m3_fp32 (ass"),
        ("cdna3", "fp8", (32, 32, 32), {}, "fp8: cdna3_mfma_fp8_fp32 (published)"),
        ("mi300x", "fp32", (32, 32, 32), {}, "fp32: fma_fp32 (published)"),
        ("a100", "fp64", (16, 16, 4), {"output": "fp64"}, "fp64: fma_fp64 (vendor)"),
        ("h200", "fp16", (16, 16, 64), {"loaded": 8}, "k mod 4 < 2 first (vendor)"),
        ("h200", "bf16", (16, 16, 64), {"loaded": 4}, "k mod 8 < 2 first (vendor)"),
        ("h100", "e5m2", (64, 64, 128), {"imprecise": 48}, "from zero every 64 (vendor)"),
        ("h100", "e5m2", (64, 64, 32), {"imprecise": 48}, "e5m2: h100_wgmma_e5m2_fp32 (vendor)"),
        ("h100", "e5m2", (64, 64, 32), {"imprecise": 16}, "operands in fp16; terms"),
    ],
)
def test_the_compiler_s_choice(machine, input, shape, more, text):
    assert text in str(lower(machine, input, shape, **more))


@pytest.mark.parametrize(
    ("machine", "input", "shape", "more", "message"),
    [
        ("v100", "fp16", (16, 16, 16), {}, "machine must be one that Triton has dots for"),
        ("h100", "fp12", (16, 16, 16), {}, "input must be of"),
        ("h100", "e4m3", (16, 16, 16), {}, "K of a tile of e4m3 must be at least 32, not 16"),
        ("h100", "e4m3", (64, 8, 32), {}, "N of a tile of e4m3 must be at least 16 for wgmma"),
        ("a100", "e4m3", (16, 16, 32), {}, "Triton has no e4m3 there"),
        ("rtx50", "e4m3", (16, 16, 32), {}, "assume=True"),
        ("h100", "fp32", (16, 16, 32), {"precision": "bf16x3"}, "input_precision must be one"),
        ("cdna3", "fp32", (32, 32, 32), {"precision": "tf32"}, "must be ieee on cdna3"),
        ("cdna3", "fp16", (8, 32, 32), {}, "M and N of at least 16"),
        ("cdna3", "e4m3", (32, 32, 32), {}, "must have a rule on cdna3"),
        ("a100", "bf16", (16, 16, 16), {"output": "fp16"}, "must have a rule on a100"),
    ],
)
def test_what_is_not_known_is_refused(machine, input, shape, more, message):
    with pytest.raises(UserError, match=message):
        lower(machine, input, shape, **more)


def test_terms_of_narrow_loads_are_taken_in_registers_order():
    a, b, c = codes(16, 64, bits=16), codes(64, 16, bits=16), np.zeros((16, 16), np.uint32)
    dot = lower("a100", "fp16", (16, 16, 64), loaded=8)
    d, start = c, 0
    while start < 64:  # a block of 32 terms, in two instructions of twice eight
        for low in (0, 2):
            k = [
                start + half + 4 * t + low + i for half in (0, 16) for t in range(4) for i in (0, 1)
            ]
            for part in (k[:8], k[8:]):
                d = product_of_rule(a[:, part], b[part], d, find("a100_mma_fp16_fp32").rule, 1)  # pyright: ignore
        start += 32
    assert np.array_equal(multiply(a, b, c, dot), d)
    assert not np.array_equal(multiply(a, b, c, lower("a100", "fp16", (16, 16, 64))), d)


def test_integers_are_exact_and_saturate_or_wrap():
    a = RNG.integers(-128, 128, (64, 64)).astype(np.int8)
    c = RNG.integers(-1000, 1000, (64, 64)).astype(np.int32)
    for machine in ("a100", "h100", "b200"):
        d = multiply(a, a.T, c, lower(machine, "int8", (64, 64, 64), output="int32"))
        assert np.array_equal(d, c + a.astype(np.int32) @ a.T.astype(np.int32))
    top = np.full((64, 64), (1 << 31) - 1, np.int32)
    one = np.ones((64, 64), np.int8)
    wide = lower("h200", "int8", (64, 64, 64), output="int32")
    assert (multiply(one, one, top, wide) == 63 - (1 << 31)).all()
    narrow = lower("h200", "int8", (64, 64, 64), output="int32", warps=1)
    assert (multiply(one, one, top, narrow) == top).all()
    down = np.concatenate((one[:, :32], -one[:, :32]), axis=1)
    assert (multiply(down, one, top, narrow) == top - 32).all()  # clamped after 32 terms
    with pytest.raises(UserError, match="must stay within int32"):
        multiply(one, one, top, lower("a100", "int8", (64, 64, 64), output="int32"))


def test_scales_are_factors_in_bf16_where_no_instruction_has_them():
    a, b, c = codes(64, 64), codes(64, 64), np.zeros((64, 64), np.uint32)
    s, t = (RNG.integers(120, 134, (64, 2)).astype(np.uint8) for _ in range(2))
    for machine, rule in (("h200", "h200_wgmma_bf16_fp32"), ("b200", "b200_tcgen05_bf16_fp32")):
        d, dot = multiply_scaled(
            *(machine, a, b, c), formats=("e4m3", "e4m3"), scale_a=s, scale_b=t.T
        )
        assert dot.rule == rule
        x, y = (v.view("float8_e4m3fn").astype(np.float64) for v in (a, b))
        x = x * np.repeat(2.0 ** (s.astype(int) - 127), 32, axis=1)
        y = y * np.repeat(2.0 ** (t.astype(int) - 127), 32, axis=1).T
        np.testing.assert_allclose(d.view(np.float32), x @ y, rtol=1e-4, atol=1e-2)
    s[3, 1] = 0xFF
    options: dict[str, Any] = {"formats": ("e4m3", "e4m3"), "scale_a": s, "scale_b": t.T}
    d, _ = multiply_scaled("h200", a, b, c, **options)
    assert np.isnan(d.view(np.float32)[3]).all() and not np.isnan(d.view(np.float32)[4]).any()
    for machine in ("cdna3", "v100"):
        with pytest.raises(UserError, match="must have a known rule for dots with scales"):
            multiply_scaled(machine, a, b, c, **options)
    with pytest.raises(UserError, match="Triton has no e4m3 there"):
        multiply_scaled("a100", a, b, c, **options)


@pytest.mark.parametrize(
    ("formats", "scale", "rule"),
    [
        (("e4m3", "e5m2"), "ue8m0", "b200_mxf8f6f4_e4m3xe5m2_fp32"),
        (("e2m1", "e4m3"), "ue8m0", "b200_mxf8f6f4_e2m1xe4m3_fp32"),
        (("e2m1", "e2m1"), "ue8m0", "b200_mxf4_fp32"),
        (("e2m1", "e2m1"), "ue4m3", "b200_nvf4_ue4m3_fp32"),
    ],
)
def test_blackwell_has_instructions_with_scales(formats, scale, rule):
    many = 128 // (32 if scale == "ue8m0" else 16)
    a, b = (RNG.integers(0, 16, (128, 128)).astype(np.uint8) for _ in range(2))
    s = RNG.integers(56, 62, (128, many)).astype(np.uint8)
    zero = np.zeros((128, 128), np.uint32)
    _, dot = multiply_scaled(
        *("b200", a, b, zero), formats=formats, scale_a=s, scale_b=s.T, scale=scale
    )
    assert (dot.rule, dot.evidence) == (rule, "published")
