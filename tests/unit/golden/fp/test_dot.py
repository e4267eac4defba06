"""``fused_dot`` against the scalar reference and exact rationals, and its interface."""

from fractions import Fraction

import numpy as np
import pytest

from tests.support.golden_cases import check_against_reference, dot_cases, near_exponent
from vitruvian.golden.fp import FORMATS, convert, dot_spec, fused_dot, to_float
from vitruvian.golden.fp import plain as golden_plain
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.dot_compiled import compiled_sum
from vitruvian.golden.fp.reference import decode, floor_log2, power_of_two
from vitruvian.golden.machines.presets import PRESETS

SPECS = [
    pytest.param(preset.spec(i, o), id=f"{preset.name}-{i}-{o}")
    for preset in PRESETS.values()
    if preset.name != "a2"  # the rows of a100
    for i, o in preset.combinations
]


@pytest.mark.parametrize("spec", SPECS)
def test_presets_equal_the_reference(spec):
    check_against_reference(fused_dot, spec, 60, min(spec.k, 8), seed=1)
    check_against_reference(fused_dot, spec, 60, 1, seed=2)


@pytest.mark.parametrize("preset", ["a100", "h100", "ieee"])
def test_many_more_fp16_cases_equal_the_reference(preset):
    spec = PRESETS[preset].spec("fp16")
    check_against_reference(fused_dot, spec, 3000, spec.k, seed=3)


@pytest.mark.parametrize("b", ["fp8e4m3", "fp8e5m2"])
@pytest.mark.parametrize("a", ["fp8e4m3", "fp8e5m2"])
@pytest.mark.parametrize("preset", ["ada", "h100", "ieee", "exact"])
def test_fp8_mixes_equal_the_reference(preset, a, b):
    spec = PRESETS[preset].spec(a, input_b=b)
    check_against_reference(fused_dot, spec, 100, spec.k, seed=4)


def free_specs(count=60):
    """Return parameters that no preset has."""
    rng = np.random.default_rng(5)
    formats = list(FORMATS)
    outputs = [name for name, f in FORMATS.items() if f.has_nan]
    for _ in range(count):
        output = FORMATS[str(rng.choice(outputs))]
        yield dot_spec(
            input=str(rng.choice(formats)),
            input_b=str(rng.choice(formats)),
            output=output,
            k=int(rng.integers(1, 7)),
            window=int(rng.integers(1, 90)),
            truncate=str(rng.choice(["floor", "magnitude"])),
            rounding=str(rng.choice(["RNE", "RZ"])),
            result_bits=int(rng.integers(1, output.fraction_bits + 1)),
            emax_floor=None if rng.random() < 0.5 else int(rng.integers(-140, 20)),
            nan=None if rng.random() < 0.5 else int(output.canonical_nan | output.fraction_mask),
            zero=str(rng.choice(["ieee", "positive"])),
        )


@pytest.mark.parametrize("spec", list(free_specs()))
def test_free_parameters_equal_the_reference(spec):
    check_against_reference(fused_dot, spec, 50, spec.k, seed=6)


@pytest.mark.parametrize("spec", SPECS)
def test_every_form_of_the_sum_is_the_same(spec):
    """int64 (if it fits), Python ints and the compiled version return equal triples."""
    a, b, c = dot_cases(np.random.default_rng(7), 400, min(spec.k, 5), spec)
    sig_a, exp_a = golden_plain.operand(a.T, spec.input)
    sig_b, exp_b = golden_plain.operand(b.T, spec.input_b)
    sig_c, exp_c = golden_plain.operand(c, spec.output)
    emax = np.maximum((exp_a + exp_b).max(axis=0), exp_c)
    usual = (emax < golden_plain._ANY_SPECIAL) & (emax > golden_plain._ALL_ZERO)

    fields = (sig_a, exp_a, sig_b, exp_b, sig_c, exp_c, emax)
    terms = golden_plain.Terms(*(field[..., usual] for field in fields))
    results = [golden_plain.plain_sum(terms, spec, wide=True), compiled_sum(terms, spec)]
    if golden_plain.sum_bits(spec, len(sig_a)) < 60:
        results.append(golden_plain.plain_sum(terms, spec))
    zero = results[0][1] == 0
    for other in results[1:]:
        for p, q in zip(results[0], other, strict=True):
            assert np.array_equal(p[~zero], q[~zero])
        assert np.array_equal(zero, other[1] == 0)


@pytest.mark.parametrize("wide", [200, 20000])
def test_exact_fp64_equals_python(wide):
    """``float(Fraction)`` rounds once, RNE; few and many terms take different paths."""
    spec = PRESETS["exact"].spec("fp64", "fp64", k=3)
    rng = np.random.default_rng(8)
    one = np.full((wide // 10, 3), spec.input.one, np.uint64)
    a, b = near_exponent(rng, one, "fp64", 400), near_exponent(rng, one, "fp64", 400)
    a[::2, 1], b[::2, 1] = a[::2, 0] ^ np.uint64(1 << 63), b[::2, 0]  # the term that cancels
    c = near_exponent(rng, one[:, 0], "fp64", 400)
    got = fused_dot(a, b, c, spec).view(np.float64)
    x, y, z = a.view(np.float64).tolist(), b.view(np.float64).tolist(), c.view(np.float64).tolist()
    for i in range(len(c)):
        total = Fraction(z[i]) + sum(
            Fraction(p) * Fraction(q) for p, q in zip(x[i], y[i], strict=True)
        )
        assert got[i] == float(total), (i, x[i], y[i], z[i])


def exact_sum(a, b, c, spec):
    terms = [
        decode(p, spec.input).value * decode(q, spec.input_b).value
        for p, q in zip(a, b, strict=True)
    ]
    return sum(terms, decode(c, spec.output).value)


def largest_exponent(a, b, c, spec):
    pairs = [(decode(p, spec.input), decode(q, spec.input_b)) for p, q in zip(a, b, strict=True)]
    exponents = [p.exponent + q.exponent for p, q in pairs if p.significand and q.significand]
    z = decode(c, spec.output)
    if z.significand:
        exponents.append(z.exponent)
    return max(exponents, default=0)


@pytest.mark.parametrize("output", ["fp16", "fp32", "fp64"])
@pytest.mark.parametrize("input", ["fp16", "bf16", "fp32", "fp8e4m3"])
def test_ieee_is_within_half_a_place_and_k_units_of_the_exact_sum(input, output):
    spec = PRESETS["ieee"].spec(input, output)
    a, b, c = dot_cases(np.random.default_rng(9), 600, spec.k, spec)
    a, b, c = a.tolist(), b.tolist(), c.tolist()
    d = fused_dot(a, b, c, spec).tolist()
    checked = 0
    for x, y, z, code in zip(a, b, c, d, strict=True):
        result = decode(code, spec.output)
        if result.kind != "finite":
            continue
        checked += 1
        place = power_of_two(result.exponent - spec.output.fraction_bits)
        q = power_of_two(largest_exponent(x, y, z, spec) - (spec.sum.window or 0))
        error = abs(result.value - exact_sum(x, y, z, spec))
        assert error <= place / 2 + len(x) * q, (x, y, z, code)
    assert checked > 300


def test_the_class_in_which_ieee_differs_from_exact():
    """If large terms cancel exactly and the rest is below the window, the error is K·q."""
    ieee, exact = (PRESETS[name].spec("fp16", k=4) for name in ("ieee", "exact"))
    big, tiny = 0x7BFF, 0x0001
    a, b = [big, big ^ 0x8000, tiny, 0], [big, big, tiny, 0]
    q = 2.0 ** (15 + 15 - 45)
    assert to_float(fused_dot(a, b, 0, exact), "fp32") == 2.0**-48
    assert to_float(fused_dot(a, b, 0, ieee), "fp32") == q / 2  # only the sticky bit
    a[2] ^= 0x8000
    assert to_float(fused_dot(a, b, 0, ieee), "fp32") == -q / 2
    # On operands around 1 it never happens.
    rng = np.random.default_rng(10)
    one = np.full((20000, 4), 0x3C00, np.uint16)
    a, b = near_exponent(rng, one, "fp16", 5), near_exponent(rng, one, "fp16", 5)
    c = np.zeros(20000, np.uint32)
    assert np.array_equal(fused_dot(a, b, c, ieee), fused_dot(a, b, c, exact))


def test_exact_keeps_terms_for_every_k():
    """Exact sums keep the terms that a window would lose."""
    for name in PRESETS["exact"].outputs:
        spec = PRESETS["exact"].spec(name, name, k=5)
        big, one = spec.input.max_finite, spec.input.one
        minus = big | spec.input.sign_mask
        got = fused_dot([big, one, minus, 0, 0], [one, one, one, one, one], 0, spec)
        assert int(got) == one


def test_longer_k_is_block_after_block():
    spec = PRESETS["a100"].spec("fp16")
    a, b, c = dot_cases(np.random.default_rng(11), 500, 24, spec)
    d = c
    for start in (0, 8, 16):
        d = fused_dot(a[:, start : start + 8], b[:, start : start + 8], d, spec)
    assert np.array_equal(fused_dot(a, b, c, spec), d)
    shorter = spec.replace(k=3)
    assert np.array_equal(
        fused_dot(a[:, :3], b[:, :3], c, spec), fused_dot(a[:, :3], b[:, :3], c, shorter)
    )


def test_leading_axes_broadcast():
    spec = PRESETS["ieee"].spec("fp16", k=4)
    rng = np.random.default_rng(12)
    a = rng.integers(0, 0x7C00, (5, 1, 4)).astype(np.uint16)
    b = rng.integers(0, 0x7C00, (3, 4)).astype(np.uint16)
    d = fused_dot(a, b, 0, spec)
    assert d.shape == (5, 3) and d.dtype == np.uint32
    assert d[4, 2] == fused_dot(a[4, 0], b[2], 0, spec)
    assert fused_dot(a[:0], b, 0, spec).shape == (0, 3)


def test_signs_of_zero():
    spec = PRESETS["a100"].spec("fp16", k=2).replace(zero="ieee")
    zero, minus, one = 0x0000, 0x8000, 0x3C00
    cases = [
        ([minus, zero], [one, minus], 0x80000000, 0x80000000),  # every term is −0
        ([minus, zero], [one, minus], 0x00000000, 0x00000000),
        ([minus, zero], [one, one], 0x80000000, 0x00000000),
        ([one, one], [one, one | minus], 0x80000000, 0x00000000),  # 1 − 1 − 0
    ]
    for a, b, c, expected in cases:
        assert int(fused_dot(a, b, c, spec)) == expected


def test_specials():
    spec = PRESETS["a100"].spec("fp16", k=2)
    inf, nan, one, zero, sign = 0x7C00, 0x7E00, 0x3C00, 0, 0x8000
    cases = [
        ([inf, one], [one, one], 0, 0x7F800000),
        ([inf, one], [one | sign, one], 0, 0xFF800000),
        ([inf, zero], [zero, one], 0, spec.nan_code),
        ([inf, inf], [one, one | sign], 0, spec.nan_code),
        ([inf, one], [one, one], 0xFF800000, spec.nan_code),
        ([one, one], [one, one], 0xFF800000, 0xFF800000),
        ([nan, one], [one, one], 0, 0x7FFFFFFF),
        ([one, one], [one, one], 0x7F800001, 0x7FFFFFFF),
        ([0x7BFF, 0x7BFF], [0x7BFF, 0x7BFF], 0x7F7FFFFF, 0x7F7FFFFF),
    ]
    for a, b, c, expected in cases:
        assert int(fused_dot(a, b, c, spec)) == expected, (a, b, c)


def test_overflow_is_infinity_also_with_truncation():
    spec = dot_spec(
        input="fp16", output="fp16", k=1, window=24, truncate="magnitude", rounding="RZ"
    )
    assert int(fused_dot([0x7BFF], [0x4000], 0, spec)) == 0x7C00
    assert int(fused_dot([0x7BFF], [0x3C00], 0x4000, spec)) == 0x7BFF  # below 2^16: chopped
    e4m3 = PRESETS["exact"].spec("fp8e4m3", "fp8e4m3", k=1)
    assert int(fused_dot([0x7E], [0x40], 0, e4m3)) == 0x7F


def test_tf32_ignores_its_low_bits():
    spec = PRESETS["a100"].spec("tf32")
    a, b, c = dot_cases(np.random.default_rng(13), 300, 4, spec)
    low = np.random.default_rng(14).integers(0, 1 << 13, a.shape).astype(np.uint32)
    assert np.array_equal(fused_dot(a | low, b ^ low, c, spec), fused_dot(a & ~low, b, c, spec))


@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        ([0] * 8, [0] * 4, 0, "same K"),
        ([0] * 12, [0] * 12, 0, "K must be at most 8 or a multiple of it, not 12"),
        ([], [], 0, "at least 1"),
        ([0.0] * 8, [0] * 8, 0, "a must be integers, not float64"),
        ([0x10000] * 8, [0] * 8, 0, "a must be between 0 and 0xffff"),
        ([0] * 8, [-1] * 8, 0, "b must be between 0 and 0xffff"),
    ],
)
def test_bad_operands(a, b, c, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fused_dot(a, b, c, PRESETS["a100"].spec("fp16"))


def test_bad_spec():
    with pytest.raises(TypeError, match="spec must be a DotSpec, not 'a100'"):
        fused_dot([0], [0], 0, "a100")  # pyright: ignore[reportArgumentType]


def test_result_type_and_decoding_helpers():
    spec = PRESETS["ieee"].spec("fp32", k=2)
    one = FORMATS["fp32"].one
    d = fused_dot([one, one], [one, one], one, spec)
    assert d.dtype == code_dtype("fp32") and to_float(d, "fp32") == 3.0
    assert int(convert(d, "fp32", "fp16")) == 0x4200
    assert floor_log2(Fraction(3)) == 1
