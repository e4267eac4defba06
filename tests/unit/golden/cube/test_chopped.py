"""The fast loops for the rules of tensor cores against the general ones, on every bit."""

import importlib

import numpy as np
import pytest

from vitruvian.golden.cube import chopped
from vitruvian.golden.cube.chopped import chopped_mmad, fits_chopped
from vitruvian.golden.cube.mmad import mmad, plain_mmad
from vitruvian.golden.fp import DotSpec
from vitruvian.golden.machines import machines
from vitruvian.golden.machines.presets import PRESETS

CASES = [
    *(("v100", "fp16", "fp32"), ("v100", "fp16", "fp16"), ("a100", "bf16", "fp32")),
    *(("a100", "tf32", "fp32"), ("ada", "fp8e4m3", "fp32"), ("h100", "fp16", "fp16")),
    *(("h100", "fp8e5m2", "fp16"), ("b200", "fp8e4m3", "fp32"), ("b200", "tf32", "fp32")),
]


def operands(spec, rng, m, k, n):
    """Return codes with exponents near each other, far apart, at the ends, and any bit patterns."""
    f, codes = spec.input, []
    for shape in ((m, k), (k, n)):
        bits = rng.integers(0, 1 << f.width, shape, np.uint64)
        ones = f.exponent_ones
        field = rng.integers(0, ones, shape, np.uint64)  # no infinity
        near = np.clip(rng.integers(-3, 4, shape) + f.bias, 0, ones - 1).astype(np.uint64)
        low = rng.integers(0, 3, shape, np.uint64)
        pick = rng.integers(0, 3, (shape[0], 1))
        field = np.choose(pick, (field, near, low)) << np.uint64(f.fraction_bits)
        bits = bits & np.uint64(~(ones << f.fraction_bits) & f.code_mask >> f.storage_shift) | field
        zero = rng.random(shape) < 0.1
        codes.append((np.where(zero, 0, bits) << np.uint64(f.storage_shift)).astype(code(f)))
    half = spec.output.name == "fp16"
    scale = 10.0 ** rng.integers(-4 if half else -40, 4 if half else 30, (m, n))
    c = (rng.standard_normal((m, n)) * scale).astype(np.float16 if half else np.float32)
    c[rng.random((m, n)) < 0.2] = 0
    return *codes, c.view(np.uint16 if half else np.uint32)


def code(f):
    return {8: np.uint8, 16: np.uint16, 32: np.uint32}[f.storage_bits]


def general(spec):
    return lambda a, b, c: plain_mmad(a, b, c, spec)


@pytest.mark.parametrize(("preset", "input", "output"), CASES)
def test_every_bit_is_that_of_the_plain_form(preset, input, output):
    spec = PRESETS[preset].spec(input, output)
    assert fits_chopped(spec)
    a, b, c = operands(spec, np.random.default_rng(2), 70, 2 * spec.k, 260)
    for threads in (1, 3):
        got = chopped_mmad(a, b, c, spec, general(spec), threads)
        np.testing.assert_array_equal(got, plain_mmad(a, b, c, spec))


def test_infinities_and_nans_in_operands_and_c():
    spec = PRESETS["h100"].spec("fp16", "fp32")
    a, b, c = operands(spec, np.random.default_rng(3), 40, 32, 40)
    a[3, 5], a[9, 1], b[7, 11] = 0x7C00, 0x7E01, 0xFC00
    c[1, 1], c[2, 2], c[4, 4] = 0x7F800000, 0xFF800000, 0x7FC00001
    got = chopped_mmad(a, b, c, spec, general(spec))
    np.testing.assert_array_equal(got, plain_mmad(a, b, c, spec))
    assert got[4, 4] == spec.nan_code
    a[:, 0] = 0x7C00  # so many that the general loops compute everything
    np.testing.assert_array_equal(
        chopped_mmad(a, b, c, spec, general(spec)), plain_mmad(a, b, c, spec)
    )


def test_large_products_of_a_machine_take_the_fast_loops(monkeypatch):
    taken = []
    compute = chopped.chopped_mmad
    module = importlib.import_module("vitruvian.golden.cube.mmad")
    monkeypatch.setattr(module, "chopped_mmad", lambda *x: taken.append(1) or compute(*x))
    spec = PRESETS["a100"].spec("fp16", "fp32")
    a, b, c = operands(spec, np.random.default_rng(4), 48, 40, 48)
    got = mmad(np.stack([a, a]), b, c, spec=spec)
    assert len(taken) == 2 and got.shape == (2, 48, 48)
    np.testing.assert_array_equal(got[1], plain_mmad(a, b, c, spec))


@pytest.mark.parametrize("change", [{"window": 23}, {"emax_floor": 40}, {"result_bits": 22}])
def test_another_rule_gives_other_bits(change):
    spec = PRESETS["a100"].spec("fp16", "fp32")
    a, b, c = operands(spec, np.random.default_rng(5), 64, 16, 64)
    other = chopped_mmad(a, b, c, spec.replace(**change), general(spec))
    assert (other != plain_mmad(a, b, c, spec)).any()


def dot_rule(stem):
    rule = machines()[stem].rule
    assert isinstance(rule, DotSpec)
    return rule


def test_rules_that_the_loops_do_not_compute():
    for stem in ("h100_mmasync_e4m3_fp16", "b200_mxf8_e4m3_fp32", "gaudi3_fp32_fp32"):
        assert not fits_chopped(dot_rule(stem))
    assert not fits_chopped(PRESETS["ieee"].spec("fp16", "fp32"))
    assert fits_chopped(dot_rule("gaudi3_bf16_fp32"))
    assert fits_chopped(dot_rule("b200_tcgen05_e2m1_fp32"))
