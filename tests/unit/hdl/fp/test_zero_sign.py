"""The sign of a zero result: golden, its slow reference, the compiled matrix product and RTL."""

import numpy as np
import pytest
from amaranth.hdl import Cat

from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import DotSpec, FloatFormat, dot_spec, fused_dot
from vitruvian.golden.fp.reference import fused_dot_reference
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.core.result import ZeroSigns
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.sim import rtl
from vitruvian.sim.rtl import compile_unit

SEED = 20261122


def _spec(**changes) -> DotSpec:
    parameters = {"input": "fp16", "output": "fp32", "k": 2, "window": 24, "truncate": "magnitude"}
    return dot_spec(**(parameters | changes))


def _tiny(format: FloatFormat) -> np.ndarray:
    """Return codes of zeros, the least numbers, one, and numbers between, of both signs."""
    step = 1 << format.storage_shift
    codes = [
        0,
        0,
        step,
        2 * step,
        3 * step,
        format.min_normal,
        format.min_normal + step,
        format.one,
    ]
    return np.array([code | sign for code in codes for sign in (0, format.sign_mask)])


def _vectors(spec: DotSpec, count: int):
    """Return operands and addends whose sums are often zero, truncated or rounded to zero."""
    rng = np.random.default_rng(SEED)
    a = rng.choice(_tiny(spec.input), (count, spec.k))
    b = rng.choice(_tiny(spec.input_b), (count, spec.k))
    c = rng.choice(_tiny(spec.output), count)
    negative = rng.random(count) < 0.4  # every term has the sign −
    a[negative] |= spec.input.sign_mask
    b[negative] &= ~spec.input_b.sign_mask
    c[negative] |= spec.output.sign_mask
    c[rng.random(count) < 0.4] &= spec.output.sign_mask  # C is a zero
    opposite = rng.random(count) < 0.1  # products that cancel
    a[opposite, 1:2], b[opposite, 1:2] = a[opposite, :1] ^ spec.input.sign_mask, b[opposite, :1]
    return tuple(
        x.astype(f"u{format.storage_bits // 8}")
        for x, format in ((a, spec.input), (b, spec.input_b), (c, spec.output))
    )


def _random_specs(count: int):
    """Yield random specs of every kind."""
    rng = np.random.default_rng(SEED)
    names = ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", "fp32")
    for _ in range(count):
        output = str(rng.choice(names))
        bits = 1 + int(rng.integers(PRESETS["exact"].spec("fp16", output).result.bits))
        yield dot_spec(
            input=str(rng.choice(names)),
            input_b=str(rng.choice(names)),
            output=output,
            k=int(rng.integers(1, 4)),
            window=None if rng.random() < 0.1 else int(rng.integers(1, 60)),
            truncate=str(rng.choice(["magnitude", "floor"])),
            rounding=str(rng.choice(["RNE", "RZ"])),
            result_bits=bits,
            emax_floor=None if rng.random() < 0.5 else int(rng.integers(-140, 20)),
            zero=str(rng.choice(["ieee", "positive"])),
        )


def test_golden_and_reference_agree_on_zeros_of_random_specs():
    zeros = np.zeros(2, int)
    for spec in _random_specs(120):
        a, b, c = _vectors(spec, 40)
        expected = [
            fused_dot_reference([int(v) for v in x], [int(v) for v in y], int(z), spec)
            for x, y, z in zip(a, b, c, strict=True)
        ]
        got = np.asarray(fused_dot(a, b, c, spec))
        np.testing.assert_array_equal(got, expected, err_msg=repr(spec))
        zeros += [np.sum(got == 0), np.sum(got == spec.output.sign_mask)]
        if spec.result.zero == "positive":
            assert not np.any(got == spec.output.sign_mask), spec
    assert (zeros > [1500, 150]).all(), zeros


@pytest.mark.parametrize("preset", ["v100", "a100", "ada", "h100", "b200"])
def test_every_zero_of_a_machine_is_positive(preset):
    for name, output in PRESETS[preset].combinations:
        spec = PRESETS[preset].spec(name, output)
        minus = spec.output.sign_mask
        a = np.full((1, spec.k), spec.input.sign_mask)
        assert fused_dot(a, np.zeros_like(a), minus, spec) == 0  # all terms are −0
        least = np.full_like(a, 1 << spec.input.storage_shift)
        assert fused_dot(a | least, least, minus, spec) != minus, (name, output)


@pytest.mark.parametrize("zero", ["ieee", "positive"])
@pytest.mark.parametrize("window", [23, 70])
def test_compiled_matrix_product_has_the_zeros_of_the_plain_one(window, zero):
    spec = _spec(k=2, window=window, zero=zero, rounding="RZ", input="bf16", output="bf16")
    a, b, _ = _vectors(spec, 64)
    c = np.random.default_rng(SEED).choice(np.array([0, 0x8000, 0x8001], np.uint16), (64, 64))
    got = mmad(a, b.T, c, spec=spec)
    expected = fused_dot(a[:, None], b[None], c, spec)
    np.testing.assert_array_equal(got, expected)
    assert np.sum(got == 0x8000) > 100 if zero == "ieee" else not np.any(got == 0x8000)


RTL = {
    "cut to nothing": _spec(window=5),
    "a result rounded to zero": _spec(window=23, result_bits=13, rounding="RZ", zero="positive"),
    "rounded to nearest": _spec(output="fp16", zero="positive", emax_floor=-20),
    "a floor above every term": _spec(input="bf16", emax_floor=3, window=30),
    "a floor, positive": _spec(input="bf16", emax_floor=-132, rounding="RZ", zero="positive"),
}


@pytest.mark.parametrize("name", RTL)
def test_rtl_has_the_zeros_of_golden(name):
    spec, count = RTL[name], 20_000
    a, b, c = _vectors(spec, count)
    expected = np.asarray(fused_dot(a, b, c, spec))
    got = compile_unit(DotProduct, spec=spec, pipeline=0).run(a=a, b=b, c=c)
    np.testing.assert_array_equal(got, expected)
    assert np.sum(expected == 0) > 1000
    assert (np.sum(expected == spec.output.sign_mask) > 50) == (spec.result.zero == "ieee")


def _all_negative(zeros, geometry, lanes, c, largest):
    return Cat(*[lane.sign for lane in lanes], c.sign).all()


def _before_rounding(zeros, packed, side, target):
    return side.nonzero


@pytest.mark.parametrize(
    ("name", "part", "mutant"),
    [
        ("cut to nothing", "minus", _all_negative),  # a former mistake of the RTL
        ("rounded to nearest", "nonzero", _before_rounding),
    ],
)
def test_the_comparison_catches_a_zero_with_the_wrong_sign(monkeypatch, name, part, mutant):
    monkeypatch.setattr(ZeroSigns, part, mutant)
    spec = RTL[name]
    a, b, c = _vectors(spec, 5_000)
    got = rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c)
    wrong = np.asarray(got != fused_dot(a, b, c, spec))
    assert np.sum(wrong) > 50 and (got[wrong] == spec.output.sign_mask).all()


def test_exact_rtl_has_positive_zeros():
    spec = dot_spec(input="fp8e5m2", output="fp16", k=2, window=None, zero="positive")
    a, b, c = _vectors(spec, 20_000)
    got = compile_unit(ExactDotProduct, spec=spec).run(a=a, b=b, c=c)
    np.testing.assert_array_equal(got, fused_dot(a, b, c, spec))
    assert not np.any(got == 0x8000) and np.sum(got == 0) > 1000
