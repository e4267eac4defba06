"""Quantisation to blocks against another program and against exact arithmetic."""

from fractions import Fraction
from typing import Any

import gfloat
import ml_dtypes
import numpy as np
import pytest
from gfloat import formats as theirs

from vitruvian import formats, machines
from vitruvian.golden.fp import from_float, to_float
from vitruvian.golden.fp.blocks import BLOCK_FORMATS, dequantise, quantise
from vitruvian.golden.fp.scales import scale_value

THEIRS = {
    "mxfp8_e4m3": theirs.format_info_mxfp8_e4m3,
    "mxfp8_e5m2": theirs.format_info_mxfp8_e5m2,
    "mxfp6_e2m3": theirs.format_info_mxfp6_e2m3,
    "mxfp6_e3m2": theirs.format_info_mxfp6_e3m2,
    "mxfp4": theirs.format_info_mxfp4_e2m1,
    "mxint8": theirs.format_info_mxint8,
}
FP4 = [Fraction(x) for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
UE4M3 = [Fraction(float(x)) for x in np.arange(127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)]


def samples(blocks, size, seed=0):
    """Return float32 values: blocks of all magnitudes, of few bits, of zeros, and of ties."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((blocks, size)).astype(np.float32)
    x[1::4] = rng.integers(-16, 17, x[1::4].shape) / 8
    x *= 2.0 ** rng.integers(-30, 30, (blocks, 1))
    x[2::8] *= 2.0 ** rng.integers(-20, 1, x[2::8].shape)
    x[0] = 0
    return x.astype(np.float64)


def closest(value, numbers):
    """Return the index of the nearest number, of two as near the even one."""
    return min(range(len(numbers)), key=lambda i: (abs(numbers[i] - value), i % 2))


@pytest.mark.parametrize("name", list(THEIRS))
def test_microscaling_formats_are_those_of_gfloat(name):
    x = np.concatenate([samples(40, 32), samples(4, 32) * 2.0**-120, samples(4, 32) * 2.0**-140])
    x[5, :2] = -1.999, 1.999  # the ends of mxint8
    x[5, 2:] = np.clip(x[5, 2:], -1, 1)
    got = dequantise(quantise(x, name))
    for ours, block in zip(got, x, strict=True):
        expected = gfloat.quantize_block(THEIRS[name], block, gfloat.compute_scale_amax)
        assert np.array_equal(ours, expected)
    assert (got != x).any() and (got == x).any()


@pytest.mark.parametrize("name", list(THEIRS))
def test_the_shared_exponent_brings_the_largest_value_to_the_top(name):
    """The scale is exact beside powers of two, where a rounded logarithm is one too large."""
    edge = np.ldexp([1.0, np.nextafter(1, 0), np.nextafter(1, 2)], [[-100], [0], [90]]).ravel()
    x = np.zeros((edge.size, 32))
    x[:, 5] = -edge
    scales = quantise(x, name).scales[:, 0].astype(int) - 127
    element = BLOCK_FORMATS[name].element
    largest = 1 if element is None else int(to_float(element.max_finite, element))
    tops = scales + largest.bit_length() - 1
    for top, value in zip(tops.tolist(), edge.tolist(), strict=True):
        assert Fraction(2) ** top <= Fraction(value) < Fraction(2) ** (top + 1)


def test_scales_of_microscaling_formats_stop_at_the_ends():
    x = np.zeros((3, 32))
    x[:, 0] = 1e300, 1e-300, 0
    blocks = quantise(x, "mxfp8_e4m3")
    assert blocks.scales[:, 0].tolist() == [254, 0, 0]
    assert dequantise(blocks)[0, 0] == 448 * 2.0**127


@pytest.mark.parametrize("tensor_scale", [None, 0.75, "auto"])
def test_nvfp4_is_exact_arithmetic_rounded_twice(tensor_scale):
    x = samples(24, 16, 1) * 2.0**-20
    x[5::6] *= 2.0**15
    exact = quantise(x, "nvfp4", tensor_scale=tensor_scale)
    # Values beside the ties of a scale: an element quotient rounded to float64 would be a tie.
    divisor = scale_value(exact.scales, "ue4m3") * exact.tensor_scale
    ties = divisor * np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    x[:, 1:8], x[:, 8:15] = np.nextafter(ties, np.inf), -np.nextafter(ties, 0)
    x[:, 0] = 6 * divisor[:, 0]
    wanted = exact.tensor_scale if tensor_scale == "auto" else tensor_scale
    blocks = quantise(x, "nvfp4", tensor_scale=wanted)
    factor = Fraction(blocks.tensor_scale)
    for block, codes, scale in zip(x, blocks.codes, blocks.scales[:, 0], strict=True):
        largest = Fraction(float(np.abs(block).max()))
        assert scale == closest(largest / 6 / factor, UE4M3)
        step = UE4M3[scale] * factor
        for value, code in zip(block.tolist(), codes.tolist(), strict=True):
            expected = closest(abs(Fraction(value)) / step, FP4) if step else 0
            assert code == expected | (8 if np.signbit(value) else 0)
    assert len(set(blocks.scales.ravel().tolist())) > 5 and len(set(blocks.codes.ravel())) == 16


def test_a_scale_beside_a_tie_is_rounded_from_the_exact_quotient():
    numbers = np.array([float(x) for x in UE4M3[8:]])
    middles = (numbers[1:] + numbers[:-1]) / 2
    for factor in (1.0, float(np.float32(0.1)), float(np.float32(1e-3))):
        for towards, index in ((0, np.arange(8, 126)), (np.inf, np.arange(9, 127))):
            x = np.zeros((len(middles), 16))
            x[:, 3] = np.nextafter(middles * 6 * factor, towards)
            got = quantise(x, "nvfp4", tensor_scale=factor).scales[:, 0]
            assert np.array_equal(got, index)


def test_the_automatic_tensor_scale_uses_all_of_the_scales():
    x = samples(16, 16, 2)
    blocks = quantise(x, "nvfp4", tensor_scale="auto")
    assert blocks.scales.max() == 0x7E  # 448
    assert blocks.tensor_scale == float(np.float32(np.abs(x).max() / (6 * 448)))
    assert quantise(np.zeros(16), "nvfp4", tensor_scale="auto").tensor_scale == 1.0
    assert np.abs(dequantise(blocks) - x).max() < np.abs(x).max() / 6


def hif4_values(block):
    """Return the values of a block by the description, one number at a time."""
    bf16 = ml_dtypes.bfloat16
    x = [Fraction(float(bf16(v))) for v in block]
    product = float(bf16(float(max(map(abs, x)) * Fraction(float(bf16(1 / 7))))))
    grid = [Fraction(2) ** (e - 48) * (1 + Fraction(m, 4)) for e in range(64) for m in range(4)]
    scale = grid[closest(Fraction(product), grid[:-1])]
    r = Fraction(float(bf16(float(1 / scale))))
    values = []
    for start in range(0, 64, 4):
        eight = x[start // 8 * 8 : start // 8 * 8 + 8]
        a = max(map(abs, eight)) * r >= 4
        b = max(map(abs, x[start : start + 4])) * r / 2**a >= 2
        for v in x[start : start + 4]:
            quarters = min(int(abs(v) * r / 2 ** (a + b) * 4 + Fraction(1, 2)), 7)
            values.append((-1 if v < 0 else 1) * Fraction(quarters, 4) * 2 ** (a + b) * scale)
    return [float(v) for v in values]


def test_hif4_follows_its_description():
    x = samples(32 + 128, 64, 3)
    x[32:] = 0
    x[32:, 0] = 1 + np.arange(128) / 128  # every significand of the largest value
    x[3] = np.resize(np.arange(-7, 8), 64)  # the limits of the one-bit exponents
    x[4] = np.repeat([7, 4, 2, 1, 0.25, 0.125, 2, -4], 8)
    blocks = quantise(x, "hif4")
    assert np.array_equal(dequantise(blocks), [hif4_values(block) for block in x])
    exponents = blocks.exponents
    assert exponents is not None and exponents.shape == (160, 1) and exponents.max() < 1 << 24
    assert len(set(blocks.codes.ravel())) == 16


@pytest.mark.parametrize("name", list(BLOCK_FORMATS))
def test_axes_padding_and_bad_values(name):
    size = BLOCK_FORMATS[name].size
    x = np.random.default_rng(4).standard_normal((2, 3 * size, 5))
    along = quantise(x, name, axis=1)
    assert along.codes.shape == x.shape and along.scales.shape == (2, 3, 5)
    last = quantise(np.moveaxis(x, 1, -1), name)
    assert np.array_equal(np.moveaxis(last.codes, -1, 1), along.codes)
    assert np.array_equal(np.moveaxis(dequantise(last), -1, 1), dequantise(along))
    assert dequantise(quantise(x[:0], name, axis=1)).shape == (0, 3 * size, 5)
    short = x[:, : 3 * size - 1]
    with pytest.raises(ValueError, match=f"axis 1 of values must be a multiple of {size} "):
        quantise(short, name, axis=1)
    padded = quantise(short, name, axis=1, pad=True)
    assert padded.codes.shape == x.shape and dequantise(padded).shape == short.shape
    x[0, 1, 0], x[1, 2 * size, 3] = np.nan, -np.inf
    values = dequantise(quantise(x, name, axis=1))
    bad = np.zeros(x.shape, bool)
    bad[0, :size, 0] = bad[1, 2 * size :, 3] = True
    assert np.array_equal(np.isnan(values), bad)
    assert np.array_equal(values[~bad], dequantise(along)[~bad])


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("b200_mxf8_e4m3_fp32", "mxfp8_e4m3"),
        ("b200_mxf8_e5m2_fp32", "mxfp8_e5m2"),
        ("b200_mxf4_fp32", "mxfp4"),
        ("b200_nvf4_ue4m3_fp32", "nvfp4"),
    ],
)
def test_machines_take_codes_and_scales(stem, name):
    rng = np.random.default_rng(5)
    a, b = (quantise(rng.standard_normal((20, 128)), name) for _ in range(2))
    d = machines.run(stem, a.codes, b.codes, np.zeros(20, np.uint32), a.scales, b.scales)
    expected = (dequantise(a) * dequantise(b)).sum(axis=-1)
    assert np.allclose(to_float(d, "fp32"), expected, rtol=0, atol=1e-4)
    nan = quantise(np.full((1, 128), np.nan), name)
    d = machines.run(stem, nan.codes, b.codes[:1], [0], nan.scales, b.scales[:1])
    assert np.isnan(to_float(d, "fp32")).all()


def test_wrong_arguments_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"block format must be one of mxfp8_e4m3, .*not 'nvfp8'"):
        quantise(np.zeros(16), "nvfp8")
    with pytest.raises(TypeError, match="values must be real numbers, not <U1"):
        quantise(["1"] * 16, "nvfp4")
    with pytest.raises(ValueError, match="axis must be one of the 1 axes of values, not 1"):
        quantise(np.zeros(16), "nvfp4", axis=1)
    with pytest.raises(ValueError, match=r"must be a multiple of 16 .nvfp4., not 0"):
        quantise(np.zeros((2, 0)), "nvfp4", pad=True)
    with pytest.raises(ValueError, match="tensor_scale must be None for mxfp4"):
        quantise(np.zeros(32), "mxfp4", tensor_scale=1.0)
    scales: list[Any] = [0.0, -1.0, np.nan, np.inf, 0.1, 1e300, "all", True]
    for wrong in scales:
        with pytest.raises(ValueError, match='tensor_scale must be a positive fp32 number, "auto"'):
            quantise(np.zeros(16), "nvfp4", tensor_scale=wrong)
    with pytest.raises(TypeError, match="blocks must be a Blocks"):
        dequantise(np.zeros(3))  # type: ignore[arg-type]


def test_numbers_of_other_types_are_taken():
    x = np.arange(32) / 4
    expected = quantise(x, "mxfp8_e4m3").codes
    for dtype in (np.float32, ml_dtypes.bfloat16):
        assert np.array_equal(quantise(x.astype(dtype), "mxfp8_e4m3").codes, expected)


def test_the_catalogue_encodes_and_decodes_every_format():
    for name in formats.names():
        row = formats.facts(name)
        values = [row["largest"], row["normal"], row["least"]]
        assert formats.decode(formats.encode(values, name), name).tolist() == values
        if row["bits"] <= 8:
            codes = np.arange(1 << row["bits"])
            numbers = formats.decode(codes, name)
            assert np.array_equal(
                formats.decode(formats.encode(numbers, name), name), numbers, equal_nan=True
            )
            finite = numbers[np.isfinite(numbers)]
            assert finite.max() == values[0] and finite[finite > 0].min() == values[2]
    assert [row["name"] for row in formats.table()] == [*formats.names(), *BLOCK_FORMATS]
    assert formats.encode(500.0, "e4m3", "RZ") == from_float(500.0, "fp8e4m3", "RZ")
    with pytest.raises(ValueError, match="rounding must be RNE for ue8m0, not 'RZ'"):
        formats.encode(1.0, "ue8m0", "RZ")
    with pytest.raises(ValueError, match="codes must be between 0 and 0xff, not 256"):
        formats.decode([256], "hifloat8")
    with pytest.raises(ValueError, match=r"format must be one of fp16, .*not 'zzz'"):
        formats.facts("zzz")
