"""The compiled matrix product returns the same bits as the plain one."""

import numpy as np
import pytest

from tests.support.golden_cases import require_equal
from tests.unit.golden.fp.test_dot import free_specs
from tests.unit.golden.m3xu.test_gemm import (
    KINDS,
    UNITS,
    cancel,
    choose_form,
    codes_of,
    gemm_on_codes,
    matrices,
)
from vitruvian.golden.cube import mmad
from vitruvian.golden.cube.mmad import fits, plain_mmad
from vitruvian.golden.cube.mmad_compiled import _matrices, compiled_mmad
from vitruvian.golden.cube.sums import fits_floats, float_mmad
from vitruvian.golden.fp import FORMATS, dot_spec
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.m3xu import gemm, operand_dtype
from vitruvian.golden.machines.presets import PRESETS

SPECS = [
    pytest.param(preset.spec(i, o), id=f"{preset.name}-{i}-{o}")
    for preset in PRESETS.values()
    if preset.name not in ("a2", "b200", "exact")  # rows of a100 and h100; no window
    for i, o in preset.combinations
]
SHAPES = [  # leading axes of A, B and C, then rows and columns of D, long and short
    ((), (), (), 3, 4),
    ((), (), (), 1, 150),
    ((), (), (), 150, 1),
    ((40,), (40,), (), 1, 1),
    ((3, 1), (2,), (3, 2), 4, 3),
    ((), (2,), (1,), 130, 2),
]


def operands(rng, spec, shape, k, kind):
    """Return codes of matrices in any three formats."""
    a_lead, b_lead, c_lead, m, n = shape
    a = codes_of(rng, spec.input, (*a_lead, m, k), kind)
    b = codes_of(rng, spec.input_b, (*b_lead, k, n), kind)
    c = codes_of(rng, spec.output, (*c_lead, m, n), kind)
    if kind == "cancelling":
        columns, rows = np.moveaxis(a, -1, 0), np.moveaxis(b, -2, 0)
        cancel(rng, columns, rows, c, spec.input, spec.output)
    return a, b, c


def check_spec(mmad, spec, seed, shapes=SHAPES, kinds=KINDS):
    """Check that ``mmad`` and ``plain_mmad`` agree; return the number of elements compared."""
    rng, count = np.random.default_rng(seed), 0
    for kind in kinds:
        for shape in shapes:
            k = spec.k * int(rng.integers(1, 4)) if rng.random() < 0.7 else (spec.k + 1) // 2
            a, b, c = operands(rng, spec, shape, k, kind)
            expected, got = plain_mmad(a, b, c, spec), mmad(a, b, c, spec)
            assert got.shape == expected.shape and got.dtype == expected.dtype
            x = np.broadcast_to(a[..., :, None, :], (*got.shape, k)).reshape(-1, k)
            y = np.broadcast_to(np.swapaxes(b, -1, -2)[..., None, :, :], (*got.shape, k))
            z = np.broadcast_to(c, got.shape).reshape(-1)
            shown = {"a": x, "b": y.reshape(-1, k), "c": z}
            what = f"mmad {spec}, {kind}"
            require_equal(what, got.reshape(-1), expected.reshape(-1), shown, seed)
            count += got.size
    return count


@pytest.mark.parametrize("spec", SPECS)
def test_every_preset(spec):
    assert fits(spec, spec.k)
    assert check_spec(compiled_mmad, spec, seed=1) > 3000


@pytest.mark.parametrize("wide", [False, True])
def test_free_parameters(wide):
    """Windows, floors of E_max and few result bits; with ``wide``, sums need two words."""
    count = 0
    for i, spec in enumerate(free_specs(120)):
        if wide:
            spec = spec.replace(window=122 - spec.k.bit_length() - i % 3)
        if fits(spec, spec.k):
            count += check_spec(compiled_mmad, spec, seed=i, shapes=SHAPES[3:5])
    assert count > 50_000


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_gemm_either_way(monkeypatch, unit):
    """Any K, with and without C, with the compiled and with the plain form."""
    rng = np.random.default_rng(2)
    for kind in KINDS:
        for k in (1, unit.elements, 3 * unit.elements + unit.elements // 2):
            a, b, c = matrices(rng, unit, 5, k, 6, kind)
            for addend in (c, np.zeros_like(c)):
                results = []
                for compiled in (False, True):
                    choose_form(monkeypatch, compiled)
                    results.append(gemm_on_codes(gemm, a, b, addend, unit))
                assert np.array_equal(*results), (kind, k)


@pytest.mark.parametrize(("precision", "bits"), [("fp32", 12), ("fp64", 27)])
def test_large_matrices(precision, bits):
    rng = np.random.default_rng(4)
    spec = PRESETS["ieee"].spec(precision, precision, k=4)
    a, b, c = (
        (rng.standard_normal((90, 90)) * 2.0 ** rng.integers(-9, 9, (90, 90))).astype(dtype)
        for dtype in [operand_dtype(precision)] * 3
    )
    x, y, z = (v.view(code_dtype(precision)) for v in (a, b, c))
    expected = plain_mmad(np.pad(x, ((0, 0), (0, 2))), np.pad(y, ((0, 2), (0, 0))), z, spec)
    got = gemm(a, b, c, precision=precision, k=8, multiplier_bits=bits)
    assert (got.view(z.dtype) == expected).all()


def test_which_form_is_taken(monkeypatch):
    taken = []

    def spy(name, function):
        def spied(a, b, c, spec):
            taken.append(name)
            return function(a, b, c, spec)

        return spied

    monkeypatch.setattr(
        "vitruvian.golden.cube.mmad_compiled.compiled_mmad", spy("codes", compiled_mmad)
    )
    monkeypatch.setitem(mmad.__globals__, "float_mmad", spy("floats", float_mmad))
    small, large = np.zeros((4, 4), np.uint16), np.zeros((32, 32), np.uint16)
    spec, machine = PRESETS["ieee"].spec("fp16"), PRESETS["a100"].spec("fp16")
    mmad(small, small, spec=spec)
    mmad(np.zeros((9999, 2, 4), np.uint16), small[:, :2], spec=spec)
    assert not taken
    mmad(large, large, spec=spec)
    mmad(large, large, spec=machine)
    mmad(np.zeros((200, 8, 8), np.uint16), np.zeros((8, 8), np.uint16), spec=spec)
    assert taken == ["floats", "codes", "codes"]
    mmad(large, large, spec=PRESETS["exact"].spec("fp16"))
    assert len(taken) == 3


FLOATS = [
    dot_spec(input=name, output="fp32", k=k, window=window)
    for name in ("fp8e4m3", "fp8e5m2", "fp16", "bf16", "tf32", "fp32")
    for k, window in ((1, 48), (4, 49), (16, 32), (3, 20))
]


@pytest.mark.parametrize(
    "spec", FLOATS, ids=lambda spec: f"{spec.input}-{spec.k}-{spec.sum.window}"
)
def test_products_by_float64_equal_the_plain_form(spec):
    """Every format with FP32 results, also with narrow windows and with TF32's low bits set."""
    assert fits_floats(spec) and fits(spec, spec.k)
    assert check_spec(float_mmad, spec, seed=8, shapes=SHAPES[:5]) > 2000


@pytest.mark.parametrize(
    "changed",
    [
        {"truncate": "magnitude"},
        {"rounding": "RZ"},
        {"result_bits": 22},
        {"emax_floor": -126},
        {"nan": 0x7FFFFFFF},
        {"zero": "positive"},
        {"window": 52},
        {"input_b": "bf16"},
        {"output": "tf32"},
        {"input": "fp64", "input_b": "fp64"},
    ],
    ids=str,
)
def test_what_float64_sums_do_not_compute(changed):
    args = {"input": "fp16", "output": "fp32", "k": 4, "window": 45}
    assert fits_floats(dot_spec(**args))
    assert not fits_floats(dot_spec(**{**args, **changed}))


def test_one_kernel_serves_all_products(monkeypatch):
    """``mmad``, ``gemm`` and ``mmo`` return the same bits from the same compiled sums."""
    from vitruvian.golden.cube import sums_compiled
    from vitruvian.golden.simd2 import mmo

    calls = []
    products = sums_compiled.products

    def spy(*args):
        calls.append(args[0].shape)
        return products(*args)

    monkeypatch.setattr(sums_compiled, "products", spy)
    rng = np.random.default_rng(12)
    a, b, c = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(3))
    spec = PRESETS["ieee"].spec("fp32", k=4)
    by_codes = mmad(*(x.view(np.uint32) for x in (a, b, c)), spec=spec)
    assert (gemm(a, b, c, precision="fp32").view(np.uint32) == by_codes).all()
    assert (mmo("mma", a, b, c, k=4).view(np.uint32) == by_codes).all()
    assert calls == 3 * [(32, 32)]


def test_it_is_compiled_once():
    """The order of axes in memory and read-only arrays cause no second compilation."""
    spec = PRESETS["ieee"].spec("fp32", "fp32")
    a, b, c = operands(np.random.default_rng(6), spec, ((2,), (2,), (2,), 3, 5), 4, "near one")
    expected = plain_mmad(a, b, c, spec)
    for x in (a, np.asfortranarray(a), a[:, ::-1][:, ::-1], np.broadcast_to(a[:1], a.shape)):
        for y, z in ((b, c), (np.asfortranarray(b), np.asfortranarray(c))):
            got = compiled_mmad(x, y, z, spec)
            assert (got[0] == expected[0]).all()
            assert (compiled_mmad(x[0], y[0], z[0], spec) == expected[0]).all()
            left, right, addend = (np.swapaxes(v, -1, -2) for v in (y, x, z))
            flipped = compiled_mmad(left, right, addend, spec)
            assert (np.swapaxes(flipped, -1, -2) == got).all()
    assert len(_matrices.signatures) == 1


def test_specs_that_fit():
    """Two words hold 126 bits; longer sums and sums without a window use the plain form."""
    exact, fp64 = PRESETS["exact"].spec("fp16"), FORMATS["fp64"]
    assert not fits(exact, 4)
    most = dot_spec(input=fp64, output=fp64, k=8, window=118)
    assert fits(most, 8) and not fits(most.replace(window=119), 8)
    assert fits(most.replace(window=121), 1)
    assert check_spec(compiled_mmad, most, seed=5) > 3000


def test_signs_of_zero():
    """A zero is −0 if every term including C is −0, or if a negative sum underflows, else +0."""
    spec = PRESETS["ieee"].spec("fp32", "fp32", k=2)
    minus, one = 0x80000000, 0x3F800000
    a = np.array([[minus, 0], [minus, minus], [one, one], [1, 0]], np.uint32)
    b = np.array([[one, one, 0, one | minus, 1 | minus], [minus, one, 0, one, 0]], np.uint32)
    c = np.full((4, 5), minus, np.uint32)
    for addend in (c, np.zeros_like(c)):
        expected = plain_mmad(a, b, addend, spec)
        assert (compiled_mmad(a, b, addend, spec) == expected).all()
        assert (expected[0, 0] == minus) == (addend is c)
    assert expected[3, 4] == minus  # the smallest product: −2^−298 rounds to −0
