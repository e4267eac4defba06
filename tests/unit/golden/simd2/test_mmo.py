"""``golden.simd2.mmo`` against exact rationals, the plain form, IEEE 754 and graph facts."""

from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest

import vitruvian.golden.simd2.matrix as module
from vitruvian.golden.fp import FORMATS
from vitruvian.golden.simd2 import Op, as_op, mmo
from vitruvian.golden.simd2.matrix import OPERANDS, sum_spec
from vitruvian.golden.simd2.plain import maximum_number, minimum_number, plain_mmo

INF, NAN = np.float32(np.inf), np.float32(np.nan)
SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0]


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


def draw(rng, shape, dtype, kind):
    """Return operands of one kind: bit patterns, specials, fractions or integers up to 0."""
    dtype = np.dtype(dtype)
    if kind == "any":
        codes = rng.integers(0, 1 << 8 * dtype.itemsize, shape, dtype=np.uint64)
        return codes.astype(f"u{dtype.itemsize}").view(dtype)
    if kind == "specials":
        return rng.choice(np.array(SPECIALS), shape).astype(dtype)
    if kind == "fractions":
        return rng.random(shape).astype(dtype)
    return (-rng.integers(0, 3, shape)).astype(dtype)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
@pytest.mark.parametrize("dtype", OPERANDS, ids=lambda dtype: dtype.name)
def test_equals_the_plain_form(op, dtype):
    rng = np.random.default_rng(op.code)
    for kind, size in product(("any", "specials", "fractions", "small"), ((5, 9, 1), (3, 4, 1050))):
        m, k, n = size
        a, b = draw(rng, (m, k), dtype, kind), draw(rng, (k, n), dtype, kind)
        c = draw(rng, (m, n), np.float32, kind)
        x, y = (x.astype(np.float32) for x in (a, b))
        expected = plain_mmo(op, x, y, c, dot=sum_spec(op, OPERANDS[dtype]))
        assert np.array_equal(bits(mmo(op, a, b, c)), bits(expected)), (kind, size)


def nearest(exact: Fraction) -> np.float32:
    """Round a rational to FP32, ties to even, by a search among the neighbours."""
    if exact == 0:
        return np.float32(0)
    guess = np.float32(
        float(exact)
    )  # rounded twice, so the right result is this number or a neighbour
    near = [guess, np.nextafter(guess, INF), np.nextafter(guess, -INF)]
    near = [x for x in near if np.isfinite(x)]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - exact), int(bits(x)[0]) & 1))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_sums_and_products_are_exact_and_rounded_once(dtype):
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=400).astype(dtype) * dtype(2.0) ** -3 for _ in "ab")
    b = (b.astype(np.float32) * 2.0 ** rng.integers(-9, 9, 400)).astype(dtype)
    for x, y in zip(a, b, strict=True):
        p, q = Fraction(float(x)), Fraction(float(y))
        for op, exact in (("minplus", p + q), ("maxmul", p * q)):
            result = mmo(op, np.array([[x]]), np.array([[y]]))[0, 0]
            assert result == nearest(exact), (op, x, y)


def test_one_term_of_addnorm_is_the_square_of_a_rounded_difference():
    """With d = a − b rounded to FP32, C + d² is rounded once."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 0x7C00, (2, 300)).astype(np.uint16)
    a, b = (codes | (rng.integers(0, 2, (2, 300)) << 15).astype(np.uint16)).view(np.float16)
    c = (rng.normal(size=300) * 2.0 ** rng.integers(-40, 30, 300)).astype(np.float32)
    inexact = 0
    for x, y, z in zip(a, b, c, strict=True):
        exact = Fraction(float(x)) - Fraction(float(y))
        d = Fraction(float(nearest(exact)))
        inexact += d != exact
        result = mmo("addnorm", np.array([[x]]), np.array([[y]]), np.array([[z]]), k=1)[0, 0]
        assert result == nearest(d * d + Fraction(float(z)))
    assert inexact > 10


def test_addnorm_is_within_its_bound():
    """The error is at most half an ulp + K·q + 2⁻²³ of each square, for rounded differences."""
    rng = np.random.default_rng(7)
    spec = sum_spec(Op.ADDNORM, "fp16", k=4)
    assert spec is not None and spec.sum.window is not None
    for _ in range(200):
        scale = 2.0 ** rng.integers(-12, 8, (2, 4))
        a, b = (rng.normal(size=(2, 4)) * scale).astype(np.float16)
        squares = [
            (Fraction(float(x)) - Fraction(float(y))) ** 2 for x, y in zip(a, b, strict=True)
        ]
        result = Fraction(float(mmo("addnorm", a[None], b[:, None])[0, 0]))
        largest = max([*squares, Fraction(1, 2**48)])
        bound = result / 2**24 + 4 * largest / 2 ** (spec.sum.window - 2) + sum(squares) / 2**23
        assert abs(result - sum(squares)) <= bound


def test_minimum_and_maximum_number_of_all_pairs_of_specials():
    """IEEE 754-2019, 9.6: numbers are preferred to NaN, −0 < +0, NaNs give the canonical NaN."""
    for x, y in product(np.array(SPECIALS, np.float32), repeat=2):
        low, high = minimum_number(x, y), maximum_number(x, y)
        if np.isnan(x) and np.isnan(y):
            assert bits(low) == bits(high) == 0x7FC00000
        elif np.isnan(x) or np.isnan(y):
            number = y if np.isnan(x) else x
            assert bits(low) == bits(high) == bits(number)
        elif x == y == 0:
            assert np.signbit(low) == (np.signbit(x) or np.signbit(y))
            assert np.signbit(high) == (np.signbit(x) and np.signbit(y))
        else:
            assert (low, high) == (min(x, y), max(x, y))


def one(op, a, b, c=None):
    a, b = np.array([a], np.float16), np.array([b], np.float16).T
    return mmo(op, a, b, None if c is None else np.array([[c]], np.float32))[0, 0]


def test_infinity_propagates_and_numbers_are_preferred_to_nan():
    assert one("minplus", [np.inf, np.inf], [np.inf, 3]) == np.inf
    assert one("minplus", [np.inf, 1], [-np.inf, 2]) == 3
    assert np.isnan(one("minplus", [np.inf], [-np.inf], np.nan))
    assert one("maxplus", [-np.inf, 5], [np.inf, -6]) == -1
    assert one("minplus", [np.nan], [1], 7) == 7
    assert one("minmul", [0.0, 2], [np.inf, 3]) == 6
    assert np.isnan(one("minmax", [np.nan], [np.nan], np.nan))
    assert one("minmax", [np.nan], [4], np.nan) == 4


def test_minus_zero_is_below_zero():
    assert np.signbit(one("minplus", [0.0, -0.0], [-0.0, -0.0]))
    assert not np.signbit(one("maxplus", [0.0, -0.0], [-0.0, -0.0]))
    assert np.signbit(one("minmul", [0.0, 1.0], [-1.0, 0.0]))
    assert np.signbit(one("minmax", [-0.0, 0.0], [-0.0, -0.0]))
    assert not np.signbit(one("maxmin", [-0.0, 0.0], [0.0, 0.0]))


def test_truth():
    assert one("orand", [np.nan, 0.0], [1, 1]) == 0
    assert one("orand", [np.inf, 0.0], [-2, 1]) == 1
    assert one("orand", [0.0], [1], np.nan) == 0
    assert one("orand", [0.0], [1], 5) == 1


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
def test_identity_and_no_edge(op):
    rng = np.random.default_rng(8)
    a, b = rng.random((2, 6, 6)).astype(np.float16)
    c = rng.random((6, 6)).astype(np.float32)
    same = c if op is not Op.ORAND else np.ones_like(c)
    assert np.array_equal(mmo(op, a[:, :0], b[:0], c), same)
    if op.no_edge is not None:
        nothing = np.full((6, 6), op.no_edge, np.float16)
        assert np.array_equal(mmo(op, a, nothing, c), same)
        assert np.array_equal(mmo(op, nothing, b, c), same)


def test_batches_broadcast():
    rng = np.random.default_rng(9)
    a = rng.random((3, 1, 4, 5)).astype(np.float16)
    b = rng.random((2, 5, 6)).astype(np.float16)
    c = rng.random((4, 6)).astype(np.float32)
    d = mmo("minplus", a, b, c)
    assert d.shape == (3, 2, 4, 6)
    assert np.array_equal(d[2, 1], mmo("minplus", a[2, 0], b[1], c))


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
def test_a_stack_of_small_matrices_equals_single_ones(op, monkeypatch):
    rng = np.random.default_rng(op.code)
    monkeypatch.setattr(module, "_STACKED", 300)
    for kind in ("any", "specials"):
        a, b = (draw(rng, (20, *shape), np.float16, kind) for shape in ((3, 5), (5, 4)))
        c = draw(rng, (20, 3, 4), np.float32, kind)
        result = mmo(op, a, b, c)
        for element, x, y, z in zip(result, a, b, c, strict=True):
            assert np.array_equal(bits(element), bits(mmo(op, x, y, z)))
    assert mmo(op, a[:, :0], b).shape == (20, 0, 4) and mmo(op, a, b[..., :0]).shape == (20, 3, 0)


def test_invalid_arguments_are_rejected():
    a, b = np.zeros((2, 3), np.float16), np.zeros((3, 2), np.float16)
    with pytest.raises(ValueError, match="op must be one of mma, minplus"):
        mmo("plus", a, b)
    with pytest.raises(TypeError, match="the same dtype, one of float16, bfloat16, float32"):
        mmo("minplus", a.astype(np.float64), b.astype(np.float64))
    with pytest.raises(TypeError, match="c must be float32"):
        mmo("minplus", a, b, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="with the same K"):
        mmo("minplus", a, a)
    with pytest.raises(ValueError, match=r"c must be \(\.\.\., 2, 2\)"):
        mmo("minplus", a, b, np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="preset must be one of"):
        mmo("mma", a, b, preset="h200")
    with pytest.raises(ValueError, match="window must be None with preset a100"):
        mmo("mma", a, b, preset="a100", window=48)
    with pytest.raises(ValueError, match="window must be at least"):
        mmo("mma", a, b, window=8)
    wider = sum_spec(Op.MMA, "fp16", window=60)
    assert wider is not None and wider.sum.window == 60
    assert sum_spec(Op.ADDNORM, "fp16", preset="a100") == sum_spec(Op.ADDNORM, "fp16")
    assert as_op("maxmin") is Op.MAXMIN and Op.ADDNORM.code == 8


@pytest.mark.parametrize("name", ["_is_plain", "_LAST"])
def test_a_mutant_is_caught(monkeypatch, name):
    """Comparing zeros as numbers or keeping the ranks of NaNs differs from the plain form."""
    mutants = {"_is_plain": lambda *args: True, "_LAST": np.int32(0)}
    monkeypatch.setattr(module, name, mutants[name])
    rng = np.random.default_rng(1)
    a, b = draw(rng, (9, 3), np.float16, "specials"), draw(rng, (3, 9), np.float16, "specials")
    c = draw(rng, (9, 9), np.float32, "specials")
    x, y = (x.astype(np.float32) for x in (a, b))
    assert not np.array_equal(bits(mmo("minplus", a, b, c)), bits(plain_mmo(Op.MINPLUS, x, y, c)))


def test_formats_are_those_of_the_arrays():
    for dtype, name in OPERANDS.items():
        assert FORMATS[name].storage_bits == 8 * dtype.itemsize


def test_the_plain_form_of_a_stack_is_that_of_each():
    rng = np.random.default_rng(6)
    a, b, c = (rng.normal(size=s).astype(np.float32) for s in ((3, 5, 8), (3, 8, 7), (3, 5, 7)))
    for op in (Op.MMA, Op.ADDNORM, Op.MINPLUS):
        dot = sum_spec(op, OPERANDS[np.dtype(np.float32)])
        result = plain_mmo(op, a, b, c, dot=dot)
        each = [plain_mmo(op, *operands, dot=dot) for operands in zip(a, b, c, strict=True)]
        assert np.array_equal(bits(result), bits(np.stack(each)))
