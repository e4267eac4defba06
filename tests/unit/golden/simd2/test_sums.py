"""The compiled sums of ``golden.simd2.mmo`` against integers, near their error bound."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vitruvian.golden.cube.sums_compiled as module
from vitruvian.golden.fp import fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2 import Op, mmo
from vitruvian.golden.simd2.matrix import OPERANDS, sum_spec
from vitruvian.golden.simd2.plain import plain_mmo
from vitruvian.golden.simd2.squares import square_sums

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32]
KINDS = ("any", "one size", "cancelling", "whole", "subnormal", "largest", "zeros")


def bits(x):
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def draw(rng, shape, dtype, kind):
    """Return operands of one kind."""
    dtype = np.dtype(dtype)
    width = dtype.itemsize
    info = ml_dtypes.finfo(dtype)
    if kind == "any":
        return (
            rng.integers(0, 1 << 8 * width, shape, dtype=np.uint64).astype(f"u{width}").view(dtype)
        )
    if kind == "one size":
        return rng.normal(size=shape).astype(dtype)
    if kind == "cancelling":
        return rng.choice(np.array([1, -1, 3, -3, 0.5 + 2.0**-9, -(2.0**-12)]), shape).astype(dtype)
    if kind == "whole":
        return rng.integers(-50, 50, shape).astype(dtype)
    small = float(info.smallest_normal)
    if kind == "subnormal":
        return (rng.normal(size=shape) * small * rng.choice([0.01, 1, 2.0**20], shape)).astype(
            dtype
        )
    if kind == "largest":
        return rng.choice(np.array([info.max, -float(info.max), 1, small], dtype), shape)
    return rng.choice(np.array([0.0, -0.0, 1, -1]), shape).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [Op.MMA, Op.ADDNORM], ids=lambda op: op.mnemonic)
def test_the_same_as_integers(op, dtype, kind):
    """Blocks of several lengths, partial blocks and strips, with C of the same kind."""
    rng = np.random.default_rng(KINDS.index(kind))
    sizes = ((6, 9, 70, 4), (3, 8, 260, 8), (65, 5, 3, 2), (4, 3, 9, 1), (2, 40, 5, 16))
    for m, k, n, lanes in sizes:
        a, b = draw(rng, (m, k), dtype, kind), draw(rng, (k, n), dtype, kind)
        c = draw(rng, (m, n), np.float32 if kind != "largest" else dtype, kind).astype(np.float32)
        x, y = (x.astype(np.float32) for x in (a, b))
        spec = sum_spec(op, OPERANDS[np.dtype(dtype)], k=lanes)
        result = mmo(op, a, b, c, k=lanes)
        assert np.array_equal(bits(result), bits(plain_mmo(op, x, y, c, dot=spec))), (
            m,
            k,
            n,
            lanes,
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_by_products_are_the_same(dtype, kind):
    """Squares equal the sums of their four products; half of the numbers are equal or adjacent."""
    rng = np.random.default_rng(KINDS.index(kind))
    for m, k, n, lanes in ((5, 7, 70, 4), (3, 8, 260, 16), (65, 3, 3, 8)):
        a, b = draw(rng, (m, k), dtype, kind), draw(rng, (k, n), dtype, kind)
        near = rng.random(b.shape) < 0.5
        b[near] = np.broadcast_to(a[0, :, None], b.shape)[near]
        b = (bits(b) ^ (rng.random(b.shape) < 0.2)).astype(bits(b).dtype).view(dtype)
        c = draw(rng, (m, n), np.float32 if kind != "largest" else dtype, kind).astype(np.float32)
        spec = PRESETS["ieee"].spec(OPERANDS[np.dtype(dtype)], k=lanes)
        with np.errstate(invalid="ignore"):
            expected = square_sums(a, b, c, spec)
        result = mmo("addnorm", a, b, c, k=lanes, squares="products")
        assert np.array_equal(bits(result), bits(expected)), (m, k, n, lanes)


def near_ties(rng, count, dtype):
    """Return operands whose C + a·1 is near a tie, with two terms near the window's end.

    Returns
    -------
    (count, 4) and (4, 1) operands, and (count, 1) C
    """
    a, b = np.zeros((count, 4)), np.ones((4, 1))
    c = (1 + rng.integers(0, 1 << 22, count) * 2.0**-22) * rng.choice([1, -1], count)
    a[:, 0] = 2.0**-24 * rng.choice([1, -1], count)
    below = 14 if dtype == np.float16 else 70
    for k in (1, 2):
        a[:, k] = rng.choice([0, 1, -1], count) * 2.0 ** -rng.integers(10, below, count)
        b[k] = 2.0**-14
    a[:, 3] = rng.choice([0, 2.0**-20], count)
    b[3] = 2.0**-14 if dtype == np.float16 else 2.0**-20
    return a.astype(dtype), b.astype(dtype), c.astype(np.float32)[:, None]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_ties_and_terms_near_the_end_of_the_window(dtype):
    rng = np.random.default_rng(1)
    a, b, c = near_ties(rng, 3000, dtype)
    spec = sum_spec(Op.MMA, OPERANDS[np.dtype(dtype)])
    assert spec is not None
    result = mmo("mma", a, b, c)
    columns = np.broadcast_to(bits(b).T, a.shape)
    assert np.array_equal(bits(result)[:, 0], fused_dot(bits(a), columns, bits(c)[:, 0], spec))
    up = np.abs(result) > np.abs(c)
    assert 300 < np.count_nonzero(up) < 2700


def test_small_differences_of_large_coordinates():
    """The error bound depends on the squares instead of the operands; C cancels the squares."""
    rng = np.random.default_rng(2)
    a = (3000 + rng.random((40, 8))).astype(np.float32)
    spec = sum_spec(Op.ADDNORM, "fp32")
    c = -plain_mmo(Op.ADDNORM, a, a.T, np.zeros((40, 40), np.float32), dot=spec)
    for add in (c, np.zeros_like(c)):
        expected = plain_mmo(Op.ADDNORM, a, a.T, add, dot=spec)
        assert np.array_equal(bits(mmo("addnorm", a, a.T, add)), bits(expected))


def test_presets_and_windows_outside_the_fast_path():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 24, 24)).astype(np.float16)
    c = rng.normal(size=(24, 24)).astype(np.float32)
    x, y = a.astype(np.float32), b.astype(np.float32)
    several: list[dict[str, Any]] = [{"preset": "a100"}, {"window": 60}, {"window": 51}]
    several.append({"k": 8, "window": 50})
    for settings in several:
        for op in (Op.MMA, Op.ADDNORM):
            spec = sum_spec(op, "fp16", **settings)
            expected = plain_mmo(op, x, y, c, dot=spec)
            assert np.array_equal(bits(mmo(op, a, b, c, **settings)), bits(expected))


@pytest.mark.parametrize(("name", "mutant"), [("_epsilon", 0.0), ("_sum_exactly", 1.0)])
def test_a_mutant_is_caught(monkeypatch, name, mutant):
    """Mutants: every float64 sum counts as certain, or the integer sum is a constant."""
    rng = np.random.default_rng(4)
    a, b, c = near_ties(rng, 50, np.float32)
    expected = bits(mmo("mma", a, b, c))
    args = a, np.ascontiguousarray(b)
    d = c.copy()
    module.products.py_func(*args, d, 4, 48, -126)
    assert np.array_equal(bits(d), expected)
    monkeypatch.setattr(module, name, lambda *args: mutant)
    d = c.copy()
    module.products.py_func(*args, d, 4, 48, -126)
    assert not np.array_equal(bits(d), expected)
