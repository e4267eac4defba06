"""Formats, specs, presets and names: derived values and errors."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tests.support.golden_cases import random_codes
from vitruvian.golden.fp import (
    FORMATS,
    INT_FORMATS,
    FloatFormat,
    IntFormat,
    dot_spec,
    from_float,
    number_dtype,
    to_float,
    unpack,
)
from vitruvian.golden.fp.formats import as_format, as_int_format
from vitruvian.golden.fp.reference import decode, encode
from vitruvian.golden.machines import spec as rule_of
from vitruvian.golden.machines.presets import PRESETS, parse_preset_name

#: The formats whose codes NumPy or ml_dtypes has in the same words; fp64 does not fit into fp32.
OTHER_TYPES = {
    f.name: number_dtype(f)
    for f in FORMATS.values()
    if f.dtype and f.storage_bits == 8 * number_dtype(f).itemsize <= 32 and not f.storage_shift
}
#: Formats of which every code is tried.
SMALL = [name for name in OTHER_TYPES if FORMATS[name].storage_bits <= 16]


def other_codes(values, name):
    """Return the codes that NumPy or ml_dtypes gives."""
    with np.errstate(over="ignore"):
        x = values.astype(OTHER_TYPES[name])
    return x.view(f"u{x.dtype.itemsize}")


def test_derived_constants():
    f = FORMATS["fp16"]
    assert (f.bias, f.emin, f.emax, f.significand_bits, f.width) == (15, -14, 15, 11, 16)
    assert (f.canonical_nan, f.infinity, f.max_finite, f.one) == (0x7E00, 0x7C00, 0x7BFF, 0x3C00)
    assert FORMATS["fp8e4m3"].canonical_nan == 0x7F and FORMATS["fp8e4m3"].infinity is None
    assert to_float(FORMATS["fp8e4m3"].max_finite, "fp8e4m3") == 448
    assert FORMATS["tf32"].canonical_nan == 0x7FC00000
    assert FORMATS["tf32"].max_finite == 0x7F7FE000
    for name, dtype in OTHER_TYPES.items():
        info = ml_dtypes.finfo(dtype)
        f = FORMATS[name]
        assert to_float(f.max_finite, name) == float(info.max)
        assert to_float(f.min_normal, name) == float(info.smallest_normal)
        assert to_float(f.min_subnormal, name) == float(info.smallest_subnormal)
    assert (INT_FORMATS["int8"].minimum, INT_FORMATS["int8"].maximum) == (-128, 127)
    assert (INT_FORMATS["uint8"].minimum, INT_FORMATS["uint8"].maximum) == (0, 255)


def test_formats_without_specials_saturate():
    """OCP Microscaling Formats Specification 1.0, section 5.3: FP6 has neither infinity nor NaN."""
    for name, largest in (("fp6e2m3", 7.5), ("fp6e3m2", 28.0)):
        f = FORMATS[name]
        assert not f.has_infinity and not f.has_nan and not f.is_nan(f.canonical_nan)
        assert to_float(f.max_finite, name) == largest
        got = from_float([1e9, -1e9, np.inf, -np.inf, np.nan], name)
        assert to_float(got, name).tolist() == [largest, -largest, largest, -largest, largest]


def test_the_types_of_others_are_known():
    assert set(OTHER_TYPES) >= {"fp16", "bf16", "fp32", "fp8e4m3", "fp8e5m2"}
    with pytest.raises(ValueError, match="format must be one with an array type, not 'toy'"):
        number_dtype(FloatFormat("toy", 4, 2, 8))


@pytest.mark.parametrize("name", SMALL)
def test_every_code_decodes_as_in_numpy(name):
    f = FORMATS[name]
    codes = np.arange(1 << f.width).astype(f"u{f.storage_bits // 8}")
    with np.errstate(invalid="ignore"):
        values = codes.view(OTHER_TYPES[name]).astype(np.float64)
    ours = to_float(codes, name)
    assert np.array_equal(ours, values, equal_nan=True)
    assert np.array_equal(np.signbit(ours), codes >> (f.width - 1) != 0)
    back = from_float(ours, name)
    nan = np.isnan(values)
    assert np.array_equal(back[~nan], codes[~nan])
    assert (back[nan] == f.canonical_nan).all() and nan.any() == f.has_nan


@pytest.mark.parametrize("name", list(OTHER_TYPES))
def test_encoding_rounds_as_in_numpy(name):
    """Rounding agrees for all kinds of fp32 numbers and all midpoints of the small formats."""
    f = FORMATS[name]
    rng = np.random.default_rng(1)
    values = [to_float(random_codes(rng, "fp32", 100000), "fp32")]
    exponent = rng.integers(f.emin - 2 * f.fraction_bits, f.emax + 3, 100000)
    values.append(np.ldexp(rng.random(100000).astype(np.float32) - 0.5, exponent))
    if f.storage_bits <= 16:
        numbers = to_float(np.arange(f.max_finite + 1), name)
        half = (numbers[1:] + numbers[:-1]) / 2
        values.append(np.concatenate([half, -half, np.nextafter(half, 0), np.nextafter(half, 9e9)]))
    values = np.concatenate(values).astype(np.float32)
    expected = other_codes(values, name)
    got = from_float(values.astype(np.float64), name)
    nan = np.isnan(expected.view(OTHER_TYPES[name]).astype(np.float32)) | np.isnan(values)
    assert np.array_equal(got[~nan], expected[~nan])
    assert (got[nan] == f.canonical_nan).all()


@pytest.mark.parametrize("name", list(FORMATS))
def test_reference_round_trip(name):
    f = FORMATS[name]
    codes = random_codes(np.random.default_rng(2), f, 500)
    u = unpack(codes, f)
    for i, code in enumerate(codes.tolist()):
        d = decode(code, f)
        assert (d.kind == "nan", d.kind == "infinity") == (u.nan[i], u.infinity[i])
        if d.kind == "finite":
            assert (d.sign, d.exponent, d.significand) == (
                u.sign[i],
                u.exponent[i],
                u.significand[i],
            )
            assert encode(d.value, f, zero_sign=d.sign) == code & f.code_mask


def test_from_float_takes_integers_and_refuses_text():
    assert int(from_float(3, "fp16")) == 0x4200
    assert int(from_float(1e9, "fp16", saturate=True)) == 0x7BFF
    with pytest.raises(TypeError, match="values must be real numbers, not <U1"):
        from_float(["1"], "fp16")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exponent_bits": 1}, "exponent_bits must be between 2 and 15, not 1"),
        ({"fraction_bits": 0}, "fraction_bits must be at least 1, not 0"),
        ({"storage_bits": 15}, "storage_bits must be at least 16, not 15"),
        ({"specials": "none"}, "specials must be a Specials, not 'none'"),
        ({"fraction_bits": 10.0}, "fraction_bits must be an int, not 10.0"),
    ],
)
def test_bad_format(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dataclasses.replace(FORMATS["fp16"], **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": "fp8"}, "input must be one of fp16, bf16, tf32, .* not 'fp8'"),
        ({"output": 16}, "output must be a FloatFormat or a name, not 16"),
        ({"k": 0}, "k must be at least 1, not 0"),
        ({"k": True}, "k must be an int, not True"),
        ({"window": 0}, "window must be at least 1, not 0"),
        ({"truncate": "round"}, "truncate must be one of floor, magnitude, odd, not 'round'"),
        ({"rounding": "RU"}, "rounding must be one of RNE, RZ, RTO, not 'RU'"),
        ({"result_bits": 24}, "result_bits must be between 1 and 23, not 24"),
        ({"nan": 1 << 32}, "nan must be between 0 and 4294967295"),
        ({"emax_floor": 0.5}, "emax_floor must be an int, not 0.5"),
        ({"zero": "plus"}, "zero must be one of ieee, positive, exact, not 'plus'"),
        ({"nan": 0x3C00}, "nan must be a NaN code of fp32, not 0x3c00"),
        ({"nan": 0x7F800000}, "nan must be a NaN code of fp32, not 0x7f800000"),
        ({"output": "tf32", "result_bits": 10}, "nan must be a NaN code of tf32, not 0x7fffffff"),
    ],
)
def test_bad_spec(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        PRESETS["a100"].spec("fp16").replace(**change)


def test_specs_are_values():
    spec = PRESETS["a100"].spec("fp16")
    assert spec == dot_spec(
        input="fp16", output="fp32", k=8, window=24, truncate="magnitude", rounding="RZ",
        nan=0x7FFFFFFF, emax_floor=-132, zero="positive",
    )  # fmt: skip
    assert hash(spec) == hash(PRESETS["a2"].spec("fp16")) and spec.result.bits == 23
    assert dot_spec(input="fp16", output="fp32", k=1, window=None).nan_code == 0x7FC00000
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.k = 4  # type: ignore[misc]


def test_a_nan_code_of_every_format_is_one():
    for name, format in FORMATS.items():
        if not format.has_nan:
            continue
        for code in (format.canonical_nan, format.canonical_nan | format.sign_mask):
            assert dot_spec(input="fp16", output=name, k=1, window=9, nan=code).nan_code == code
        for code in (format.max_finite, format.one, 0, format.infinity or 0):
            with pytest.raises(ValueError, match="nan must be a NaN code"):
                dot_spec(input="fp16", output=name, k=1, window=9, nan=code)
    with pytest.raises(ValueError, match="nan must be a NaN code of fp16, not 0x3c00"):
        dot_spec(input="fp16", output="fp16", k=1, window=9, nan=0x3C00)


TABLE = [  # preset, input, output, K, F, rounding, result_bits, emax_floor
    ("v100", "fp16", "fp32", 4, 23, "RZ", 23, -131),
    ("v100", "fp16", "fp16", 4, 23, "RNE", 10, -19),
    ("a100", "fp16", "fp32", 8, 24, "RZ", 23, -132),
    ("a100", "bf16", "fp32", 8, 24, "RZ", 23, -132),
    ("a100", "fp16", "fp16", 8, 24, "RNE", 10, -20),
    ("a100", "tf32", "fp32", 4, 24, "RZ", 23, -132),
    ("a2", "bf16", "fp32", 8, 24, "RZ", 23, -132),
    ("ada", "tf32", "fp32", 4, 24, "RZ", 23, -132),
    ("ada", "fp8e4m3", "fp32", 16, 13, "RZ", 13, -132),
    ("ada", "fp8e5m2", "fp32", 16, 13, "RZ", 13, -132),
    ("ada", "fp8e5m2", "fp16", 16, 13, "RNE", 10, -20),
    ("h100", "fp16", "fp32", 16, 25, "RZ", 23, -133),
    ("h100", "bf16", "fp32", 16, 25, "RZ", 23, -133),
    ("h100", "fp16", "fp16", 16, 25, "RNE", 10, -21),
    ("h100", "tf32", "fp32", 8, 25, "RZ", 23, -133),
    ("h100", "fp8e4m3", "fp32", 32, 13, "RZ", 13, -133),
    ("h100", "fp8e4m3", "fp16", 32, 13, "RNE", 10, -21),
    ("b200", "bf16", "fp32", 16, 25, "RZ", 23, -133),
    ("b200", "fp8e5m2", "fp32", 32, 25, "RZ", 23, -133),
    ("b200", "fp8e4m3", "fp16", 32, 25, "RNE", 10, -21),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(row[:3]))
def test_presets_are_the_table(row):
    preset, input, output, k, window, rounding, result_bits, floor = row
    spec = PRESETS[preset].spec(input, output)
    assert (spec.k, spec.sum.window, spec.result.rounding, spec.result.bits) == (
        k, window, rounding, result_bits,
    )  # fmt: skip
    assert (spec.sum.truncate, spec.result.zero, spec.sum.floor) == ("magnitude", "positive", floor)
    assert spec.nan_code == (0x7FFF if output == "fp16" else 0x7FFFFFFF)
    assert PRESETS[preset].spec(input, output, k=4).k == 4


def test_a_preset_is_a_row_of_the_table():
    assert PRESETS["h100"].spec("bf16") == rule_of("h100", "wgmma", "bf16")
    assert PRESETS["b200"].spec("fp4e2m1", input_b="fp8e5m2") == rule_of(
        "b200", "tcgen05", "e2m1xe5m2"
    )
    for preset in PRESETS.values():
        assert bool(preset.rules) == preset.is_machine


def test_wide_presets():
    for name, k in (("fp8e4m3", 16), ("fp16", 8), ("bf16", 8), ("tf32", 4), ("fp64", 4)):
        assert PRESETS["ieee"].spec(name).k == PRESETS["exact"].spec(name).k == k
    assert PRESETS["exact"].spec("bf16", "bf16").sum.window is None
    assert PRESETS["ieee"].spec("fp16").sum.window == 45
    assert set(PRESETS["ieee"].inputs) == set(FORMATS)
    assert PRESETS["v100"].inputs == ("fp16",)


def test_mixed_formats():
    spec = PRESETS["h100"].spec("fp8e4m3", input_b="fp8e5m2")
    assert (spec.input.name, spec.input_b.name) == ("fp8e4m3", "fp8e5m2")
    with pytest.raises(ValueError, match="not 'fp16 x bf16 -> fp32'"):
        PRESETS["a100"].spec("fp16", input_b="bf16")


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets_name_what_they_allow(preset):
    output = "bf16" if preset != "exact" else None
    if output is None:
        return
    with pytest.raises(ValueError, match=rf"formats of preset {preset} must be one of .*fp16 -> "):
        PRESETS[preset].spec("fp16", output)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a100_fp16", ("a100", "fp16", None)),
        ("A100_half", ("a100", "fp16", None)),
        ("a2_float16", ("a2", "fp16", None)),
        ("h100_bfloat16", ("h100", "bf16", None)),
        ("h100_tf32", ("h100", "tf32", None)),
        ("ada_fp8e4m3", ("ada", "fp8e4m3", None)),
        ("ada_fp8_e4m3", ("ada", "fp8e4m3", None)),
        ("h100_e4m3", ("h100", "fp8e4m3", None)),
        ("b200-fp8-e5m2", ("b200", "fp8e5m2", None)),
        ("ada_float8_e4m3fn", ("ada", "fp8e4m3", None)),
        ("b200_e4m3_e5m2", ("b200", "fp8e4m3", "fp8e5m2")),
        ("h100_fp8e5m2xfp8e4m3", ("h100", "fp8e5m2", "fp8e4m3")),
        ("h100_fp8_e4m3_fp8_e5m2", ("h100", "fp8e4m3", "fp8e5m2")),
        ("h100_fp16_fp32", ("h100", "fp16", None)),
    ],
)
def test_names_of_data_sets(name, expected):
    preset, a, b = parse_preset_name(name)
    assert (preset.name, a.name, b and b.name) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("k80_fp16", "name must begin with one of v100, .* not 'k80_fp16'"),
        ("a100_fp4", "format in a name must be one of .* not 'fp4'"),
        ("a100", "name must be <preset>_<format>"),
        (100, "name must be a str, not 100"),
    ],
)
def test_bad_names_of_data_sets(name, message):
    with pytest.raises((TypeError, ValueError), match=message):
        parse_preset_name(name)


def test_lookups():
    assert as_format("fp16") is FORMATS["fp16"]
    own = FloatFormat("mini", 3, 2, 6)
    assert as_format(own) is own
    assert as_int_format("int8") == IntFormat("int8", 8, True)
    with pytest.raises(ValueError, match="integer format must be one of int8, uint8, int32"):
        as_int_format("int4")
