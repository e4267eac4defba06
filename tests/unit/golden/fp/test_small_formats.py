"""Formats of at most 8 bits: every code and every rounding against implementations of others."""

import ml_dtypes
import numpy as np
import pytest
from gfloat import Domain, FormatInfo, RoundMode, decode_ndarray, encode_ndarray, round_ndarray
from gfloat import formats as theirs

from vitruvian.golden.fp import from_float, hifloat8, number_dtype, to_float
from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS
from vitruvian.golden.fp.scales import SCALES, encode_scale, nearest, scale_value

FLOATS = {f.name: f for f in (FORMATS | OTHER_FORMATS).values() if f.width <= 8}
MODES = {
    "RNE": RoundMode.TiesToEven,
    "RNA": RoundMode.TiesToAway,
    "RZ": RoundMode.TowardZero,
    "RU": RoundMode.TowardPositive,
    "RD": RoundMode.TowardNegative,
}


def info(name, **changes):
    """Return a format of 8 bits that gfloat does not list."""
    fields = {"has_nz": True, "domain": Domain.Finite, "num_high_nans": 0, "is_signed": True}
    fields |= {"has_subnormals": True, "is_twos_complement": False} | changes
    return FormatInfo(name, 8, **fields)


THEIRS = {
    "fp8e4m3": theirs.format_info_ocp_e4m3,
    "fp8e5m2": theirs.format_info_ocp_e5m2,
    "fp6e2m3": theirs.format_info_ocp_e2m3,
    "fp6e3m2": theirs.format_info_ocp_e3m2,
    "fp4e2m1": theirs.format_info_ocp_e2m1,
    "fp8e4m3fnuz": info("e4m3fnuz", precision=4, bias=8, has_nz=False),
    "fp8e5m2fnuz": info("e5m2fnuz", precision=3, bias=16, has_nz=False),
    "fp8e4m3i": info("e4m3i", precision=4, bias=7, domain=Domain.Extended, num_high_nans=7),
}


def probes(numbers):
    """Return what separates roundings: numbers, middles, quarters and the float64s beside them."""
    numbers = np.append(numbers, 2 * numbers[-1] - numbers[-2])  # the middle beyond the largest
    steps = np.diff(numbers)
    points = np.concatenate([numbers, *(numbers[:-1] + steps * part for part in (0.25, 0.5, 0.75))])
    points = np.concatenate(
        [points, np.nextafter(points, np.inf), np.nextafter(points, 0), [1e-300, 1e300, 2.0**16]]
    )
    return np.concatenate([points, -points])


def numbers_of(name):
    return to_float(np.arange(FLOATS[name].max_finite + 1), name)


def gfloat_codes(x, name, mode, saturate):
    f = THEIRS[name]
    return encode_ndarray(f, round_ndarray(f, x, mode, saturate)).astype(np.uint8)


def test_every_code_decodes_as_in_two_other_programs():
    compared = 0
    for name, f in FLOATS.items():
        codes = np.arange(1 << f.width, dtype=np.uint8)
        ours = to_float(codes, name)
        others = decode_ndarray(THEIRS[name], codes), codes.view(number_dtype(f)).astype(float)
        for other in others:
            assert np.array_equal(ours, other, equal_nan=True), name
            number = ~np.isnan(other)
            assert np.array_equal(np.signbit(ours[number]), np.signbit(other[number])), name
            compared += codes.size
    assert compared == 2 * (5 * 256 + 2 * 64 + 16)


@pytest.mark.parametrize("saturate", [False, True])
def test_every_rounding_is_that_of_gfloat(saturate):
    compared = 0
    for name, f in FLOATS.items():
        x = probes(numbers_of(name))
        for rounding, mode in MODES.items():
            # gfloat refuses an overflow without a special code; ours saturates there.
            expected = gfloat_codes(x, name, mode, saturate or not f.has_nan)
            got = from_float(x, name, rounding, saturate=saturate)
            nan = np.isnan(to_float(expected, name))
            assert np.array_equal(got[~nan], expected[~nan]), (name, rounding)
            assert (got[nan] == f.canonical_nan).all(), (name, rounding)
            overflows = f.has_nan and not f.has_infinity and not saturate and rounding != "RZ"
            assert nan.any() == overflows, (name, rounding)
            compared += x.size
    assert compared == 84360


def test_rounding_to_odd_sets_the_last_bit_of_what_was_cut():
    for name in FLOATS:
        x = probes(numbers_of(name))
        code = gfloat_codes(x, name, RoundMode.TowardZero, True)
        cut = to_float(code, name) != x
        expected = np.where(cut & (np.abs(x) < numbers_of(name)[-1]), code | 1, code)
        expected = np.where(cut & (code == 0) & (x < 0), FLOATS[name].sign_mask | 1, expected)
        assert np.array_equal(from_float(x, name, "RTO"), expected), name


def test_conversion_to_nearest_is_that_of_ml_dtypes():
    for name, f in FLOATS.items():
        with np.errstate(over="ignore"):
            x = probes(numbers_of(name)).astype(np.float32)
            expected = x.astype(number_dtype(f)).view(np.uint8)
        got = from_float(x, name)
        nan = np.isnan(to_float(expected, name))
        assert np.array_equal(got[~nan], expected[~nan]), name
        assert (got[nan] == f.canonical_nan).all()


def test_infinities_and_nans_of_every_format():
    for name, f in FLOATS.items():
        x = np.array([np.inf, -np.inf, np.nan])
        top, sign = f.max_finite, f.sign_mask
        saturated = [top, top | sign, f.canonical_nan]
        assert from_float(x, name, saturate=True).tolist() == saturated, name
        with np.errstate(invalid="ignore", over="ignore"):
            expected = x.astype(number_dtype(f)).astype(float)
        got = to_float(from_float(x, name), name)
        if f.has_nan:
            assert np.array_equal(got, expected, equal_nan=True), name
        else:
            assert from_float(x, name).tolist() == saturated, name


def test_scales_are_those_of_other_programs():
    codes = np.arange(256, dtype=np.uint8)
    ue8m0 = scale_value(codes, "ue8m0")
    assert np.array_equal(ue8m0, codes.view(ml_dtypes.float8_e8m0fnu).astype(float), equal_nan=True)
    assert np.array_equal(ue8m0, decode_ndarray(theirs.format_info_ocp_e8m0, codes), equal_nan=True)
    ue4m3 = scale_value(codes, "ue4m3")
    assert np.array_equal(ue4m3[128:], ue4m3[:128], equal_nan=True)  # the top bit is ignored
    e4m3 = codes[:128].view(ml_dtypes.float8_e4m3fn).astype(float)
    assert np.array_equal(ue4m3[:128], e4m3, equal_nan=True)


def test_scales_are_rounded_as_in_gfloat():
    for name, other in (
        ("ue8m0", theirs.format_info_ocp_e8m0),
        ("ue4m3", theirs.format_info_ocp_e4m3),
    ):
        nan = SCALES[name].nan
        assert nan is not None
        x = probes(scale_value(np.arange(nan), name))
        x = x[(x >= 2.0**-127 if name == "ue8m0" else x >= 0) & (x < 1e300)]
        for saturate in (False, True):
            rounded = round_ndarray(other, x, RoundMode.TiesToEven, saturate)
            got = encode_scale(x, name, saturate=saturate)
            assert np.array_equal(scale_value(got, name), rounded, equal_nan=True), name
        assert len(x) > 1000


def test_scales_of_hif4_are_exact_to_half_a_step():
    numbers = scale_value(np.arange(255), "ue6m2")
    assert (numbers[0], numbers[-1]) == (2.0**-48, 1.5 * 2.0**15)
    x = probes(numbers)
    x = x[(x > numbers[0]) & (x < numbers[-1])]
    error = np.abs(scale_value(encode_scale(x, "ue6m2"), "ue6m2") - x)
    assert np.array_equal(error, np.abs(numbers[:, None] - x).min(axis=0))


def test_what_a_scale_cannot_hold():
    x = [np.nan, -1.0, np.inf, 0.0]
    assert encode_scale(x, "ue8m0").tolist() == [255, 255, 255, 0]
    assert encode_scale(x, "ue4m3", saturate=True).tolist() == [0x7F, 0x7F, 0x7E, 0]
    assert encode_scale(x, "ue6m2", saturate=True).tolist() == [255, 255, 254, 0]


def test_ties_go_to_the_even_index_or_away():
    numbers = np.array([0.0, 1.0, 2.0, 4.0])
    x = np.array([-1.0, 0.5, 1.5, 3.0, 9.0])
    assert nearest(x, numbers).tolist() == [0, 0, 2, 2, 3]
    assert nearest(x, numbers, away=True).tolist() == [0, 1, 2, 3, 3]


def test_hifloat8_has_the_values_of_its_description():
    """The ranges and steps that the description lists, one prefix after another."""
    values = hifloat8.VALUES
    positive = np.sort(values[1:128][np.isfinite(values[1:128])])
    expected = [2.0**e for e in range(-22, -15)]
    for exponent in range(-15, 16):
        bits = 3 if abs(exponent) < 4 else 2 if abs(exponent) < 8 else 1
        expected += [2.0**exponent * (1 + i / 2**bits) for i in range(2**bits)]
    assert expected[-1] == 1.5 * 2.0**15  # the place of the infinity
    assert np.array_equal(positive, expected[:-1])
    assert np.array_equal(values[129:], -values[1:128]) and np.isnan(values[0x80])
    assert (values[0x6F], values[0xEF], values[0]) == (np.inf, -np.inf, 0)


def test_hifloat8_rounds_to_the_nearest_number():
    finite = np.sort(hifloat8.VALUES[:128][np.isfinite(hifloat8.VALUES[:128])])
    x = probes(finite)
    x = x[np.abs(x) <= finite[-1]]
    got = hifloat8.decode(hifloat8.encode(x))
    distance = np.abs(np.abs(x)[:, None] - finite)
    last = len(finite) - 1 - distance[:, ::-1].argmin(axis=1)  # of two as near the larger
    assert np.array_equal(np.abs(got), finite[last])
    assert not (got * x < 0).any() and not np.signbit(got[got == 0]).any()
    assert np.array_equal(hifloat8.encode(hifloat8.VALUES), np.arange(256))
    limits = [39999.0, 40960.0, np.inf, -np.inf]
    assert hifloat8.decode(hifloat8.encode(limits)).tolist() == [32768, np.inf, np.inf, -np.inf]
    saturated = hifloat8.decode(hifloat8.encode(limits, saturate=True))
    assert saturated.tolist() == [32768, 32768, 32768, -32768]
