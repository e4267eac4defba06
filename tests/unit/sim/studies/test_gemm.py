"""Matrix products and convolution against exact sums and SciPy."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import correlate

from vitruvian.sim.studies import CGEMM, DGEMM, METHODS, SGEMM, BoundMethod, Engine, NumPy, Unit
from vitruvian.sim.studies.conv import conv2d, patches
from vitruvian.sim.studies.gemm import exact_product, ulps


def test_exact_product_against_fractions():
    random = np.random.default_rng(1)
    a, b = random.standard_normal((3, 7)), random.standard_normal((7, 4))
    a[0, :2], b[0, 0], b[1, 0] = (1.0, -1.0), 1.0, 1.0 - 2.0**-53  # the sum cancels
    high, low = exact_product(a, b)
    for i in range(3):
        for j in range(4):
            exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a[i], b[:, j], strict=True))
            assert high[i, j] == float(exact)
            assert low[i, j] == float(exact - Fraction(high[i, j]))


def test_ulps():
    one = np.float32(1)
    result = np.array([one, np.nextafter(one, np.float32(2))], np.float32)
    assert ulps(result, np.array([1.0, 1.0])).tolist() == [0, 1]
    assert ulps(result, np.array([1.0, 1.0]), np.array([2.0**-25, 0])).tolist() == [0.25, 1]


def test_fp64_is_at_least_as_good_as_numpy():
    random = np.random.default_rng(2)
    a, b = random.standard_normal((40, 64)), random.standard_normal((64, 30))
    engine = Engine(Unit(k=10))
    d = METHODS["FP64"].gemm(engine, a, b)
    high, low = exact_product(a, b)
    scale = np.abs(a) @ np.abs(b)
    result = np.abs((d - high) - low)
    assert (result <= 32 * 2.0**-53 * scale).all(), "one rounding in each of 32 blocks"
    numpy = np.abs((a @ b - high) - low)
    assert result.mean() < numpy.mean()
    # Each result is within its own bound of the exact sum, so they differ by at most both bounds.
    assert (ulps(d, a @ b) <= (32 + 64) * scale / np.abs(a @ b)).all()
    # ⌈40/16⌉·⌈30/8⌉·⌈64/4⌉ instructions; 5·8·32 tiles of five steps.
    assert (engine.total.instructions, engine.total.model_cycles) == (3 * 4 * 16, 5 * 8 * 32 * 5)


def test_one_lost_limb_of_fp64_is_noticed(monkeypatch):
    from vitruvian.golden.m3xu import gemm

    def narrow(a, b, c=None, **settings):
        chop = ~np.uint64(0xFFF)
        return gemm((a.view(np.uint64) & chop).view(float), b, c, **settings)

    monkeypatch.setitem(Engine.gemm.__globals__["BACKENDS"], "golden", narrow)
    (row,) = (row for row in DGEMM(16).rows if row.method == "FP64")
    assert row.extras["median ulp"] > 100 and row.max_error > 1e-14


def test_tables_of_the_products():
    rows = {row.method: row for row in SGEMM(32).rows}
    assert rows["FP32"].extras["median ulp"] < 1.5 < rows["3xBF16"].extras["median ulp"]
    assert rows["NumPy float32"].cost is None and rows["NumPy float32"].max_error < 1e-6
    assert rows["FP32"].cost and rows["FP32"].cost.instructions == 2 * 4 * 4
    rows = {row.method: row for row in CGEMM(16).rows}
    assert rows["FP32C"].max_error == rows["FP32"].max_error < 3e-7
    assert rows["FP32C"].cost and rows["FP32C"].cost.instructions == 1 * 2 * 4
    rows = {row.method: row for row in DGEMM(16).rows}
    assert rows["FP64"].extras["median ulp"] <= rows["NumPy float64"].extras["median ulp"]


def expected(x, weights, stride, padding):
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    full = [
        sum(correlate(c, f.conj(), "valid") for c, f in zip(x, w, strict=True)) for w in weights
    ]
    return np.stack(full)[:, ::stride, ::stride]


@pytest.mark.parametrize("kind", [np.float32, np.complex64])
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 1), (3, 2)])
def test_convolution(kind, stride, padding):
    random = np.random.default_rng(3)
    wide = np.result_type(kind, np.float64)
    x = random.standard_normal((3, 9, 11, wide.itemsize // 8)).view(wide)[..., 0].astype(kind)
    w = random.standard_normal((5, 3, 3, 2, wide.itemsize // 8)).view(wide)[..., 0].astype(kind)
    reference = expected(x.astype(wide), w.astype(wide), stride, padding)
    double = conv2d(x.astype(wide), w.astype(wide), NumPy(), stride=stride, padding=padding)
    assert double.shape == reference.shape and np.allclose(double, reference, rtol=0, atol=1e-13)
    gemm = BoundMethod(METHODS["FP32"], Engine())
    result = conv2d(x, w, gemm, stride=stride, padding=padding)
    # 18 terms (36 real terms) in blocks of four: at most nine roundings of sums below 2^6.
    assert np.abs(result - reference).max() < 9 * 2.0**-24 * 64
    assert np.abs(expected(x, w[:, :, ::-1], stride, padding) - reference).max() > 1


def test_patches():
    x = np.arange(16).reshape(1, 4, 4)
    assert patches(x, 3, 3, stride=1)[:, 1, 0].tolist() == [4, 5, 6, 8, 9, 10, 12, 13, 14]
    assert patches(x, 4, 4)[:, 0, 0].tolist() == list(range(16))
    for settings, text in [
        ({"height": 5, "width": 1}, "patch must fit into the padded image of 4×4, not 5×1"),
        ({"height": 1, "width": 0}, "not 1×0"),
        ({"height": 1, "width": 1, "stride": 0}, "stride must be at least 1"),
        ({"height": 1, "width": 1, "padding": -1}, "padding at least 0"),
    ]:
        with pytest.raises(ValueError, match=text):
            patches(x, **settings)
    with pytest.raises(ValueError, match=r"x must be \(C, H, W\)"):
        patches(x[0], 1, 1)
    with pytest.raises(ValueError, match="x and weights must be"):
        conv2d(x, np.zeros((1, 2, 1, 1)), NumPy())
