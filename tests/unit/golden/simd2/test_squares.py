"""Squared differences by products: exact within the window, otherwise within their bound."""

from fractions import Fraction

import numpy as np
import pytest

import vitruvian.golden.simd2.squares
from tests.unit.golden.simd2.test_mmo import nearest
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2 import mmo

WINDOW = PRESETS["ieee"].spec("fp16", k=4).sum.window or 0


def norm(a, b, c=0.0, k=4):
    """Return C + Σ (a − b)² of two vectors."""
    a, b = np.atleast_1d(a).astype(np.float16), np.atleast_1d(b).astype(np.float16)
    c = np.array([[c]], np.float32)
    return mmo("addnorm", a[None], b[:, None], c, k=k, squares="products")[0, 0]


def exact(a, b):
    return sum(
        ((Fraction(float(x)) - Fraction(float(y))) ** 2 for x, y in zip(a, b, strict=True)),
        Fraction(0),
    )


def draw(rng, count):
    codes = rng.integers(0, 0x7C00, (2, count)) | rng.integers(0, 2, (2, count)) << 15
    a, b = codes.astype(np.uint16).view(np.float16)
    near = rng.random(count) < 0.5  # adjacent numbers, the hardest to subtract
    b[near] = (a[near].view(np.uint16) ^ rng.integers(0, 8, near.sum()).astype(np.uint16)).view(
        np.float16
    )
    return a, b


def test_one_square_alone_is_rounded_once():
    """At most b·b is truncated; a·a and a·b lie completely inside the window."""
    for a, b in zip(*draw(np.random.default_rng(0), 600), strict=True):
        assert norm(a, b) == nearest(exact([a], [b])), (a, b)


@pytest.mark.parametrize(("pairs", "k"), [(1, 4), (2, 8), (5, 4)])
def test_sums_are_within_their_bound(pairs, k):
    """Each block is off by half an ulp + (4·pairs + 1)·2^(E_max − F) at most."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, b = (
            (x * 2.0 ** rng.integers(-10, 6, pairs)).astype(np.float16)
            for x in rng.normal(size=(2, pairs))
        )
        result = norm(a, b, k=k)
        size = max(float(x) ** 2 for x in (*a, *b))
        blocks = -(-4 * pairs // k)
        bound = blocks * (
            abs(Fraction(float(result))) / 2**24
            + Fraction(max(size, 2.0**-28)) * (k + 1) / 2 ** (WINDOW - 2)
        )
        assert abs(Fraction(float(result)) - exact(a, b)) <= bound


def test_equal_numbers_do_not_raise_the_window():
    """60000 − 60000 counts as zero, so neither other terms nor C are truncated."""
    a = [60000, 2**-10, -60000, 0]
    b = [60000, 2**-11, -60000, 0]
    c = float(np.float32(1 / 3))
    assert norm(a, b, c, k=16) == nearest(exact(a, b) + Fraction(c))
    assert norm([-0.0], [0.0], 0.3) == np.float32(0.3)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (np.inf, 1, np.inf),
        (0, -np.inf, np.inf),
        (np.inf, -np.inf, np.inf),
        (np.inf, np.inf, np.nan),
        (np.nan, 1, np.nan),
        (np.inf, np.nan, np.nan),
        (65504, -65504, np.float32(131008.0) ** 2),
    ],
)
def test_specials(a, b, result):
    assert np.array_equal(norm(a, b), np.float32(result), equal_nan=True)
    assert np.array_equal(norm([a, 1], [b, 1], k=8), np.float32(result), equal_nan=True)


def test_a_sign_that_is_not_negated_is_caught(monkeypatch):
    original = vitruvian.golden.simd2.squares.square_parts

    def mutant(a, b):
        left, right = original(a, b)
        return np.abs(left), right

    a, b = np.full((1, 1), 3, np.float16), np.full((1, 1), 1, np.float16)
    args = a, b, np.zeros((1, 1), np.float32), PRESETS["ieee"].spec("fp16", k=4)
    assert vitruvian.golden.simd2.squares.square_sums(*args) == 4
    monkeypatch.setattr(vitruvian.golden.simd2.squares, "square_parts", mutant)
    assert vitruvian.golden.simd2.squares.square_sums(*args) != 4


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="multiple of 4 for squares, not 6"):
        norm(1, 2, k=6)
    with pytest.raises(ValueError, match="squares must be one of differences, products"):
        mmo("addnorm", np.zeros((1, 1), np.float16), np.zeros((1, 1), np.float16), squares="x")
