"""Methods to multiply: bounds that follow from their definition, their order, complex operands."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden.m3xu import gemm
from vitruvian.sim.studies import METHODS, BoundMethod, Engine, Method, NumPy, Unit, as_method
from vitruvian.sim.studies.study import errors

#: Bits of the significand of a piece, and elements of a block on 8 lanes.
BITS = {"fp16": 11, "bf16": 8, "tf32": 11, "fp32": 24}
BLOCK = {"fp16": 8, "bf16": 8, "tf32": 4, "fp32": 4}
REAL = [name for name in METHODS if METHODS[name].precision in BITS]


def normal(*shape, seed=0, dtype: type = np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def complex_normal(*shape, seed=0):
    return normal(*shape, 2, seed=seed).view(np.complex64)[..., 0]


def bound(method: Method, depth: int) -> float:
    """Return a bound of the error of an element, in units of Σ|a|·|b|.

    Let u be half a unit in the last place of a piece (2^-p). Then s pieces differ from x by at most
    u^s·|x|, piece i is at most (1 + u)·u^i·|x|, and every block of every product is rounded to 24
    bits.
    """
    u = 2.0 ** -BITS[method.precision]
    if method.precision == "fp32":
        u = 0.0
    lacking = 2 * u**method.pieces
    every = [(i, j) for i in range(method.pieces) for j in range(method.pieces)]
    missing = sum(u ** (i + j) for i, j in every if (i, j) not in method.products)
    roundings = len(method.products) * -(-depth // BLOCK[method.precision])
    return (lacking + missing + roundings * 2.0**-24) * 1.01


def worst(method: Method, depth: int, seed: int = 0) -> float:
    a, b = normal(40, depth, seed=seed), normal(depth, 40, seed=seed + 100)
    d = method.gemm(Engine(), a, b)
    exact = a.astype(float) @ b.astype(float)
    scale = np.abs(a.astype(float)) @ np.abs(b.astype(float))
    return float((np.abs(d - exact) / scale).max())


@pytest.mark.parametrize("depth", [1, 16, 100])
@pytest.mark.parametrize("name", REAL)
def test_errors_keep_their_bound(name, depth):
    assert worst(METHODS[name], depth) <= bound(METHODS[name], depth)


@pytest.mark.parametrize("name", ["3xBF16", "6xBF16", "3xTF32"])
def test_a_missing_product_is_noticed(name):
    method = METHODS[name]
    for left_out in range(len(method.products)):
        fewer = method.products[:left_out] + method.products[left_out + 1 :]
        assert worst(replace(method, products=fewer), 1) > bound(method, 1)


def test_a_missing_piece_is_noticed():
    """A method whose second piece is always zero equals TF32."""
    fewer = replace(METHODS["3xTF32"], pieces=1, products=((0, 0),))
    assert worst(fewer, 16) > 50 * bound(METHODS["3xTF32"], 16)


def mean_errors(depth: int, seed: int) -> dict[str, float]:
    a, b = normal(48, depth, seed=seed), normal(depth, 48, seed=seed + 1)
    exact = a.astype(float) @ b.astype(float)
    return {name: errors(METHODS[name].gemm(Engine(), a, b), exact)[1] for name in REAL}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("depth", [16, 96])
def test_order_of_the_errors(seed, depth):
    """The significands have 24, 22, 16, 11 and 8 bits."""
    e = mean_errors(depth, seed)
    assert e["FP32"] < e["4xTF32"] <= e["3xTF32"]
    assert 10 * e["3xTF32"] < e["3xBF16"]
    assert 20 * e["3xBF16"] < e["TF32"]
    assert 4 * e["TF32"] < e["BF16"]
    assert 0.9 < e["FP16"] / e["TF32"] < 1.1 and 0.9 < e["FP16 scaled"] / e["FP16"] < 1.1
    # Three pieces of 8 bits hold all 24, and a BF16 block rounds half as often as an FP32 one.
    assert e["9xBF16"] <= 1.05 * e["6xBF16"] < e["FP32"]


def test_truncating_units_hurt_the_emulations():
    """With the rounding of real tensor cores (a100), 3xTF32 is less accurate, but FP32 is not."""
    a, b = normal(48, 96), normal(96, 48, seed=1)
    exact = a.astype(float) @ b.astype(float)
    ieee, a100 = (
        errors(METHODS["3xTF32"].gemm(Engine(Unit(preset=preset)), a, b), exact)[1]
        for preset in ("ieee", "a100")
    )
    assert a100 > 2 * ieee


@pytest.mark.parametrize(
    ("name", "precision", "instructions", "cycles"),
    [
        ("FP16", "fp16", 8, 64),
        ("BF16", "bf16", 8, 64),
        ("TF32", "tf32", 16, 128),
        ("3xBF16", "bf16", 24, 192),
        ("6xBF16", "bf16", 48, 384),
        ("9xBF16", "bf16", 72, 576),
        ("3xTF32", "tf32", 48, 384),
        ("FP32", "fp32", 16, 256),
    ],
)
def test_costs_of_a_32_16_32_product(name, precision, instructions, cycles):
    """There are 2×2 instructions of 16×8 and 4×4 tiles of 8×4; along K 32/16, 32/8 or 32/4."""
    engine = Engine()
    METHODS[name].gemm(engine, normal(32, 32), normal(32, 16))
    assert list(engine.costs) == [precision]
    assert (engine.total.instructions, engine.total.model_cycles) == (instructions, cycles)


def test_complex_products_out_of_real_ones():
    a, b = complex_normal(17, 16), complex_normal(16, 9, seed=1)
    c = complex_normal(17, 9, seed=2)
    parts, whole = Engine(), Engine()
    d = METHODS["FP32"].gemm(parts, a, b, c)
    expected = METHODS["FP32C"].gemm(whole, a, b, c)
    # Interleaved parts fill the blocks of FP32 with exactly the products of an FP32C block.
    assert d.dtype == np.complex64 and np.array_equal(d.view(np.uint64), expected.view(np.uint64))
    # 2×2 instructions and 3×3 tiles: 4 of 8 and 8 of 4 along K = 32, twice; 4 of 4, 8 of 2.
    assert (parts.total.instructions, parts.total.model_cycles) == (2 * 16, 2 * 9 * 8 * 2)
    assert (whole.total.instructions, whole.total.model_cycles) == (16, 9 * 8 * 4)
    exact = c + a.astype(complex) @ b.astype(complex)
    for name in REAL:
        result = METHODS[name].gemm(Engine(), a, b, c)
        scale = np.abs(c) + 2 * np.abs(a).astype(float) @ np.abs(b)
        # The blocks round sums that include C, so its magnitude counts as a term of the sum.
        assert (np.abs(result - exact) / scale).max() < 1.5 * bound(METHODS[name], 32), name


def test_a_sign_in_the_complex_product_is_noticed():
    a, b = complex_normal(8, 8), complex_normal(8, 4, seed=1)
    exact = a.astype(complex) @ b.astype(complex)
    assert errors(METHODS["FP16"].gemm(Engine(), a, b), exact)[0] < 1e-3
    assert errors(METHODS["FP16"].gemm(Engine(), a, b.conj()), exact)[0] > 1e-1


def test_leading_axes_and_addend():
    a, b = normal(3, 5, 7), normal(7, 4, seed=1)
    c = normal(3, 5, 4, seed=2)
    d = METHODS["3xTF32"].gemm(Engine(), a, b, c)
    assert d.shape == (3, 5, 4)
    product = METHODS["3xTF32"].gemm(Engine(), a[1], b, c[1])
    assert np.array_equal(d[1], product)
    assert np.allclose(d, c + a @ b, atol=1e-5)


def test_scaling_saves_what_fp16_cannot_hold():
    big, small = normal(8, 8) * np.float32(2.0**40), normal(8, 8, seed=1) * np.float32(2.0**-40)
    exact = big.astype(float) @ small.astype(float)
    assert not np.isfinite(METHODS["FP16"].gemm(Engine(), big, small)).any()
    assert errors(METHODS["FP16 scaled"].gemm(Engine(), big, small), exact)[0] < 1e-3
    zero = np.zeros((8, 8), np.float32)
    assert not METHODS["FP16 scaled"].gemm(Engine(), zero, small).any()
    # The largest value becomes at most 2^15: it stays finite, and a value 2^29 smaller is normal.
    wide = np.array([[np.nextafter(np.float32(1), np.float32(0)), (1 + 2.0**-10) * 2.0**-29]])
    assert METHODS["FP16 scaled"].seen(wide.astype(np.float32)).tolist() == [[1, wide[0, 1]]]
    # Scaling by powers of two is exact, so the bits are the same as without it.
    a, b = normal(8, 8), normal(8, 8, seed=1)
    expected = METHODS["FP16"].gemm(Engine(), a, b)
    assert np.array_equal(METHODS["FP16 scaled"].gemm(Engine(), a, b), expected)
    c = METHODS["FP16"].gemm(Engine(), a, b, a)
    assert np.array_equal(METHODS["FP16 scaled"].gemm(Engine(), a, b, a), c)


def test_what_the_instructions_see():
    x = normal(50, 50)
    assert np.array_equal(METHODS["FP16"].seen(x), x.astype(np.float16))
    assert np.array_equal(METHODS["FP32"].seen(x), x)
    assert np.array_equal(METHODS["6xBF16"].seen(x), x), "three pieces of 8 bits hold FP32"
    for name, bits in {"TF32": 11, "3xTF32": 22, "BF16": 8, "3xBF16": 16}.items():
        apart = np.abs(METHODS[name].seen(x).astype(float) - x) / np.abs(x)
        assert 2.0 ** -(bits + 2) < apart.max() <= 2.0**-bits
    z = complex_normal(5, 5)
    assert np.array_equal(METHODS["FP32C"].seen(z), z)
    for name in ("TF32", "FP16 scaled"):
        assert np.array_equal(np.imag(METHODS[name].seen(z)), METHODS[name].seen(z.imag.copy()))
    bound_method = BoundMethod(METHODS["TF32"], Engine())
    assert np.array_equal(bound_method.seen(x), METHODS["TF32"].seen(x))
    assert np.array_equal(NumPy().seen(x), x)


def test_plain_modes_are_the_engine_s_own():
    a, b = normal(9, 9), normal(9, 9, seed=1)
    assert np.array_equal(METHODS["FP32"].gemm(Engine(), a, b), gemm(a, b))
    x, y = a.astype(np.float16), b.astype(np.float16)
    assert np.array_equal(METHODS["FP16"].gemm(Engine(), a, b), gemm(x, y, precision="fp16"))


def test_errors_are_relative_to_the_reference():
    assert errors([1.0, 2.0, 3.5], [1.0, 2.0, 4.0]) == (1.5 / 7, 0.5 / 7)
    assert all(np.isnan(errors(np.array([np.nan, 1]), [1.0, 1.0])))


def test_the_mean_error_is_never_above_the_largest():
    """All errors are equal, and one value is large; both errors have the same divisor."""
    reference = np.array([1000.0] + [1.0] * 99)
    largest, mean = errors(reference + 0.5, reference)
    assert mean <= largest
    assert largest == pytest.approx(0.5 / reference.mean())


def test_what_is_refused():
    single, double = normal(4, 4), normal(4, 4, dtype=np.float64)
    with pytest.raises(TypeError, match="a must be float32 or complex64 for 3xTF32, not float64"):
        METHODS["3xTF32"].gemm(Engine(), double, single)
    with pytest.raises(TypeError, match="b must be float64 or complex128 for FP64, not float32"):
        METHODS["FP64"].gemm(Engine(Unit(k=10)), double, single)
    with pytest.raises(TypeError, match="a must be complex64 for FP32C, not float32"):
        METHODS["FP32C"].gemm(Engine(), single, single)
    with pytest.raises(TypeError, match="must all be real or all complex"):
        METHODS["FP32"].gemm(Engine(), single, complex_normal(4, 4))
    with pytest.raises(ValueError, match="method must be one of FP16, FP16 scaled, BF16"):
        as_method("fp8")
    assert as_method("fp16Scaled") is METHODS["FP16 scaled"]
