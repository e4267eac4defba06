"""Products with FP64 results as pairs of numbers against sums in integers, on every bit."""

from typing import Any

import numpy as np
import pytest

from vitruvian.golden.cube import doubles_compiled, mmad
from vitruvian.golden.cube.doubles import double_mmad, fits_doubles
from vitruvian.golden.cube.mmad_compiled import compiled_mmad
from vitruvian.golden.machines.presets import PRESETS

KINDS = ("normal", "integers", "wide", "cancelling", "neighbours")


def operands(kind, m=40, k=16, n=300):
    """Return codes of matrices."""
    rng = np.random.default_rng(KINDS.index(kind))
    a, b, c = (rng.standard_normal(shape) for shape in ((m, k), (k, n), (m, n)))
    if kind == "integers":  # whose sums are often zero or equal to C
        a, b, c = np.rint(2 * a), np.rint(2 * b), np.rint(2 * c)
    if kind == "wide":
        a, b = (v * 2.0 ** rng.integers(-200, 200, v.shape) for v in (a, b))
    if kind == "cancelling":
        c = -(a[:, :4] @ b[:4])
    if kind == "neighbours":  # products that differ in their last bits, of opposite signs
        a[:, 1::2] = -a[:, ::2]
        b[1::2] = b[::2] * (1 + 2.0 ** -rng.integers(20, 53, b[::2].shape))
        c *= 2.0 ** -rng.integers(0, 120, c.shape)
    return [v.view(np.uint64) for v in (a, b, c)]


@pytest.mark.parametrize("k", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_is_that_of_the_sums_in_integers(kind, k):
    spec = PRESETS["ieee"].spec("fp64", "fp64", k=k)
    assert fits_doubles(spec)
    a, b, c = operands(kind)
    np.testing.assert_array_equal(double_mmad(a, b, c, spec), compiled_mmad(a, b, c, spec))


def test_a_tie_and_a_little_more_is_left_to_the_exact_sum(monkeypatch):
    spec = PRESETS["ieee"].spec("fp64", "fp64", k=2)
    a, b = np.array([[2.0**-53, 2.0**-170]]), np.ones((2, 1))
    x, y, z = (v.view(np.uint64) for v in (a, b, np.ones((1, 1))))
    expected = compiled_mmad(x, y, z, spec)
    assert expected.view(np.float64) == np.nextafter(1.0, 2.0)
    assert double_mmad(x, y, z, spec) == expected
    compute: Any = doubles_compiled.products
    monkeypatch.setattr(doubles_compiled, "products", lambda *given: compute(*given[:-1], 0.0))
    assert double_mmad(x, y, z, spec) != expected  # the bound is what notices it


@pytest.mark.parametrize("code", [0x7FF << 52, 0x7FF8 << 48, 1, 1523 << 52, 0x7FE << 52])
def test_operands_beyond_the_bounds_take_another_way(code):
    spec = PRESETS["ieee"].spec("fp64", "fp64", k=4)
    a, b, c = operands("normal", 48, 40, 48)
    a[3, 5] = code
    assert double_mmad(a, b, c, spec) is None
    np.testing.assert_array_equal(mmad(a, b, c, spec=spec), compiled_mmad(a, b, c, spec))


def test_other_rules_take_another_way():
    assert not fits_doubles(PRESETS["ieee"].spec("fp32", "fp32", k=4))
    assert not fits_doubles(PRESETS["ieee"].spec("fp64", "fp64", k=4).replace(window=60))
