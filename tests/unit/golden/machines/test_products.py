"""Matrix products by a machine's arithmetic against dot products by the same rule."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vitruvian
from vitruvian import machines
from vitruvian.common.errors import UserError
from vitruvian.golden.fp import DotSpec, FloatFormat, from_float
from vitruvian.golden.fp.blocks import dequantise, quantise
from vitruvian.golden.fp.codec import unpack, unpack_pairs
from vitruvian.golden.sums import products

RNG = np.random.default_rng(7)


def by_dots(stem, a, b, c):
    """Return the product of code matrices, one dot product for each element."""
    m, n = a.shape[0], b.shape[1]
    left = np.broadcast_to(a[:, None, :], (m, n, a.shape[1]))
    right = np.broadcast_to(b.T[None], (m, n, a.shape[1]))
    return machines.run(stem, left, right, c)


@pytest.mark.parametrize(
    ("stem", "format"),
    [
        ("h100_mma_fp16_fp32", "fp16"),
        ("h100_mmasync_e4m3_fp16", "fp8e4m3"),
        ("cdna3_mfma_bf16_fp32", "bf16"),
        ("amx_tdpbf16ps", "bf16"),
        ("gaudi3_fp16_fp32", "fp16"),
        ("bh_mvmul_bf16_fp32_hifi4", "bf16"),
    ],
)
def test_a_product_is_one_dot_product_for_each_element(stem, format):
    a = from_float(RNG.standard_normal(5 * 64), format).reshape(5, 64)
    b = from_float(RNG.standard_normal(64 * 3), format).reshape(64, 3)
    half = machines.find(stem).output == "fp16"
    c = RNG.standard_normal((5, 3)).astype(np.float16 if half else np.float32)
    codes = c.view(np.uint16 if half else np.uint32)
    got = vitruvian.gemm(a, b, codes, machine=stem)
    np.testing.assert_array_equal(got, by_dots(stem, a, b, codes))


def test_values_have_the_formats_of_their_types():
    a = RNG.standard_normal((4, 40)).astype(ml_dtypes.float8_e4m3fn)
    b = RNG.standard_normal((40, 6)).astype(ml_dtypes.float8_e5m2)
    got = vitruvian.gemm(a, b, machine="h200", instruction="wgmma")
    assert got.dtype == np.float32 and got.shape == (4, 6)
    row = "h200_wgmma_e4m3xe5m2_fp32"
    codes = vitruvian.gemm(a.view(np.uint8), b.view(np.uint8), machine=row)
    np.testing.assert_array_equal(got.view(np.uint32), codes)
    # 13 fraction bits do not give the product of float32.
    assert (got != a.astype(np.float32) @ b.astype(np.float32)).any()


def test_stacks_layouts_and_an_array_for_the_result():
    a = np.asfortranarray(RNG.standard_normal((7, 16)).astype(np.float16))
    b = RNG.standard_normal((3, 5, 16)).astype(np.float16).transpose(0, 2, 1)
    out = np.empty((3, 7, 5), np.float32)
    got = vitruvian.gemm(a, b, machine="v100", out=out)
    assert got is out
    for i in range(3):
        np.testing.assert_array_equal(out[i], vitruvian.gemm(a, b[i], machine="v100"))


def test_a_short_last_step_is_one_with_zeros():
    a = RNG.standard_normal((4, 37)).astype(np.float16)
    b = RNG.standard_normal((37, 4)).astype(np.float16)
    for row in ("a100_mma_fp16_fp32", "gaudi3_fp16_fp32"):
        wide = [np.pad(x, w) for x, w in ((a, ((0, 0), (0, 11))), (b, ((0, 11), (0, 0))))]
        np.testing.assert_array_equal(
            vitruvian.gemm(a, b, machine=row), vitruvian.gemm(*wide, machine=row)
        )


def test_wider_values_are_rounded_to_the_format():
    a, b = RNG.standard_normal((2, 4, 4))
    got = vitruvian.gemm(a, b, machine="a100", input="bf16")
    x, y = (v.astype(ml_dtypes.bfloat16) for v in (a, b))
    np.testing.assert_array_equal(got, vitruvian.gemm(x, y, machine="a100"))


@pytest.mark.parametrize(
    ("row", "format"),
    [
        ("b200_mxf8f6f4_e5m2_fp32", "mxfp8_e5m2"),
        ("b200_mxf4_fp32", "mxfp4"),
        ("b200_nvf4_ue4m3_fp32", "nvfp4"),
    ],
)
def test_values_are_quantised_to_blocks(row, format):
    a, b = RNG.standard_normal((2, 3, 40)), RNG.standard_normal((40, 7))
    x, y = quantise(a, format, pad=True), quantise(b, format, 0, pad=True)
    got = vitruvian.gemm(a, b, machine=row)
    codes = vitruvian.gemm(x.codes, y.codes, machine=row, scale_a=x.scales, scale_b=y.scales)
    np.testing.assert_array_equal(got.view(np.uint32), codes)
    # Every product of the quantised values is exact in float64, and their sums are nearly so.
    np.testing.assert_allclose(got, dequantise(x) @ dequantise(y), rtol=1e-5, atol=1e-6)
    assert np.abs(got - a @ b).max() > 1e-3
    k = 64 if "4" in format else 32  # terms of a step
    padding = -x.codes.shape[-1] % k
    row_a, column_b = (np.pad(v, (0, padding)) for v in (x.codes[0, 0], y.codes[:, 0]))
    scales = (np.pad(v, (0, padding // x.format.size)) for v in (x.scales[0, 0], y.scales[:, 0]))
    assert codes[0, 0, 0] == machines.run(row, row_a, column_b, 0, *scales)


def test_a_factor_of_the_whole_matrix_keeps_small_values():
    a, b = RNG.standard_normal((4, 32)) * 1e-6, RNG.standard_normal((32, 4))
    c = np.ones((4, 4), np.float32)
    row = "b200_nvf4_ue4m3_fp32"
    assert not vitruvian.gemm(a, b, machine=row).any()  # below the least scale
    got = vitruvian.gemm(a, b, machine=row, tensor_scale="auto")
    np.testing.assert_allclose(got, a @ b, atol=4e-6)
    assert got.all()
    with_c = vitruvian.gemm(a, b, c, machine=row, tensor_scale="auto")
    np.testing.assert_array_equal(with_c, c + got)


def test_empty_products():
    for row in ("b200_mxf4_fp32", "h100", "cdna3_mfma_bf16_fp32"):
        options: dict[str, Any] = {} if "_" in row else {"input": "fp16"}
        for m, k, n in ((0, 40, 3), (3, 0, 2), (2, 5, 0)):
            d = vitruvian.gemm(np.ones((m, k)), np.ones((k, n)), machine=row, **options)
            assert d.shape == (m, n) and not d.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "scale_a must be ue8m0 codes with the shape \\(2, 2\\) for an array of codes"),
        ({"scale_a": np.zeros((2, 3), int)}, "scale_a must have the shape \\(2, 2\\), not"),
        ({"scale_a": np.full((2, 2), 256)}, "scale_a must be ue8m0 codes from 0 to 255"),
        ({"tensor_scale": "auto"}, "tensor_scale must be None for codes"),
        ({"tensor_scale": 2}, 'tensor_scale must be "auto" or None, not 2'),
        ({"b": np.ones((64, 2))}, "a and b must both hold values, or both codes with scales"),
        ({"a": np.zeros((2, 33), np.uint8)}, "a and b must be"),
    ],
)
def test_a_mistake_in_scales_is_one_line(options, message):
    x = {"a": np.zeros((2, 64), np.uint8), "b": np.zeros((64, 2), np.uint8)} | options
    with pytest.raises(ValueError, match=message):
        vitruvian.gemm(**x, machine="b200_mxf4_fp32")
    with pytest.raises(ValueError, match="scale_a must be None for values"):
        vitruvian.gemm(np.ones((1, 1)), np.ones((1, 1)), machine="b200_mxf4_fp32", scale_a=[[0]])


def test_progress_of_a_stack_of_products(monkeypatch):
    monkeypatch.setattr(products, "is_worth", lambda *_: True)
    seen = []
    a = RNG.standard_normal((2, 130, 32)).astype(np.float16)
    d = vitruvian.gemm(a, a[0].T, machine="h100", progress=lambda *step: seen.append(step))
    assert seen == sorted(seen) and seen[-1] == (260, 260) and len(seen) > 4
    np.testing.assert_array_equal(d[1], vitruvian.gemm(a[1], a[0].T, machine="h100"))


def test_infinities_and_nans_in_a_large_product(monkeypatch):
    monkeypatch.setattr(products, "is_worth", lambda *_: True)
    a = RNG.standard_normal((70, 48)).astype(np.float16)
    b = RNG.standard_normal((48, 60)).astype(np.float16)
    a[3, 5], a[60, 0], b[7, 9], b[8, 9] = np.inf, np.nan, -np.inf, np.inf
    for row in ("h100_mma_fp16_fp32", "cdna3_mfma_fp16_fp32", "cdna1_mfma_fp16_fp32"):
        codes = [v.view(np.uint16) for v in (a, b)]
        got = vitruvian.gemm(codes[0], codes[1], machine=row)
        expected = by_dots(row, codes[0], codes[1], np.zeros((70, 60), np.uint32))
        np.testing.assert_array_equal(got, expected)
        assert (got[60] == 0x7FFFFFFF).all()


def test_progress_of_a_product_without_fast_loops():
    seen = []
    a = np.ones((3, 16), np.float16)
    vitruvian.gemm(a, a.T, machine="gaudi3", progress=lambda *step: seen.append(step))
    assert seen[-1] == (3, 3)


def test_without_a_machine_the_unit_computes():
    a = RNG.standard_normal((3, 3)).astype(np.float32)
    np.testing.assert_array_equal(vitruvian.gemm(a, a), vitruvian.golden.m3xu.gemm(a, a))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"machine": "h1000"}, UserError, "machine must be one of .* did you mean h100?"),
        ({"machine": "v100", "input": "bf16"}, UserError, "formats must be one of fp16, not"),
        ({"machine": "h100", "instruction": "mfma"}, UserError, "instruction must be one of mma"),
        ({"machine": "v100", "scale_a": [0]}, ValueError, "scales must be None, because the rule"),
        ({"machine": "v100", "tensor_scale": "auto"}, ValueError, "scales must be None"),
        ({"machine": "v100", "threads": 0}, ValueError, "threads must be at least 1, not 0"),
        ({"machine": "amx_tdpbssd"}, ValueError, "a rule for floating point"),
        ({"machine": "v100", "out": np.empty(3)}, ValueError, "out must be an array of float32"),
        ({"machine": "v100", "k": 8}, TypeError, "unexpected keyword argument 'k'"),
    ],
)
def test_a_mistake_is_one_line(options, error, message):
    a = np.ones((2, 16), np.float16)
    with pytest.raises(error, match=message):
        vitruvian.gemm(a, a.T, **options)


def test_codes_need_their_format_and_other_types_are_refused():
    a = np.ones((2, 2), np.uint16)
    with pytest.raises(ValueError, match="input must be a format of the table"):
        vitruvian.gemm(a, a, machine="h100")
    with pytest.raises(TypeError, match="a must be floating point or codes, not complex128"):
        vitruvian.gemm(a * 1j, a * 1j, machine="h100")


NVFP4 = "b200_nvf4_ue4m3_fp32"


@pytest.mark.parametrize(
    ("stem", "code", "message"),
    [
        (NVFP4, 16, "a must be between 0 and 0xf .fp4e2m1., not 16"),
        ("b200_tcgen05_e2m1_fp32", 0xF2, "a must be between 0 and 0xf .fp4e2m1., not 242"),
        ("b200_tcgen05_e2m3_fp32", 64, "a must be between 0 and 0x3f .fp6e2m3., not 64"),
        ("b200_tcgen05_e3m2_fp32", 255, "a must be between 0 and 0x3f .fp6e3m2., not 255"),
    ],
)
def test_codes_above_those_of_a_short_format_are_refused(stem, code, message):
    row = machines.find(stem)
    assert isinstance(row.rule, DotSpec) and isinstance(row.input, FloatFormat)
    k = row.rule.k
    a, b = np.full((2, k), code, np.uint8), np.ones((k, 2), np.uint8)
    scale = np.full((2, k // 16), 56, np.uint8) if stem == NVFP4 else None
    other = None if scale is None else scale.T
    with pytest.raises(ValueError, match=message):
        vitruvian.gemm(a, b, machine=stem, scale_a=scale, scale_b=other)
    with pytest.raises(ValueError, match=message):
        machines.run(stem, a, b.T, [0, 0], scale_a=scale, scale_b=scale)
    with pytest.raises(ValueError, match="codes must be between 0 and"):
        unpack(a, row.input)


def test_packed_operands_hold_two_codes_a_byte():
    codes_a = RNG.integers(0, 16, (3, 64), np.uint8)
    codes_b = RNG.integers(0, 16, (64, 5), np.uint8)
    a = codes_a[:, ::2] | codes_a[:, 1::2] << 4
    b = codes_b[::2] | codes_b[1::2] << 4
    scales: dict[str, Any] = {
        name: np.full(s, 56, np.uint8) for name, s in (("scale_a", (3, 4)), ("scale_b", (4, 5)))
    }
    expected = vitruvian.gemm(codes_a, codes_b, machine=NVFP4, **scales)
    got = vitruvian.gemm(a, b, machine=NVFP4, **scales, packed=True)
    np.testing.assert_array_equal(got, expected)
    scale = scales["scale_a"]
    row = machines.run(NVFP4, codes_a, codes_a, np.zeros(3, int), scale, scale)
    same = machines.run(NVFP4, a, a, np.zeros(3, int), scale, scale, packed=True)
    np.testing.assert_array_equal(row, same)
    # FP8 beside FP4 has a byte for each code.
    mixed = "b200_tcgen05_e4m3xe2m1_fp32"
    eight = RNG.integers(0, 127, (3, 64), np.uint8)
    expected = vitruvian.gemm(eight, codes_b, machine=mixed)
    np.testing.assert_array_equal(vitruvian.gemm(eight, b, machine=mixed, packed=True), expected)
    assert unpack_pairs([[0x21, 0x43]]).tolist() == [[1, 2, 3, 4]]
    for call in (
        lambda: vitruvian.gemm(eight, eight.T, machine="h100_wgmma_e4m3_fp32", packed=True),
        lambda: machines.run("amx_tdpbssd", [1] * 4, [1] * 4, 0, packed=True),
    ):
        with pytest.raises(ValueError, match="packed must be False for a rule without operands in"):
            call()


def test_float64_is_the_format_of_a_machine_that_has_it():
    a = RNG.standard_normal((3, 8))
    d = vitruvian.gemm(a, a.T, machine="h100")
    assert d.dtype == np.float64
    np.testing.assert_array_equal(d, vitruvian.gemm(a, a.T, machine="h100", input="fp64"))
    x, y = (np.broadcast_to(v, (3, 3, 8)).view(np.uint64) for v in (a[:, None], a[None]))
    exact = machines.run("h100_mma_fp64_fp64", x, y, np.zeros((3, 3), np.uint64))
    np.testing.assert_array_equal(d.view(np.uint64), exact)
    with pytest.raises(UserError, match=r"formats must be one of fp16, not 'fp64'.*input= rounds"):
        vitruvian.gemm(a, a.T, machine="v100")
    with pytest.raises(UserError, match=r"formats must be one of fp16, not 'fp64'") as error:
        vitruvian.gemm(a, a.T, machine="v100", input="fp64")
    assert "input=" not in str(error.value)
    with pytest.raises(UserError, match="output must be one of fp64, not 'fp32'"):
        vitruvian.gemm(a, a.T, machine="h100", output="fp32")
