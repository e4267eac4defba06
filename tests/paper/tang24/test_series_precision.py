"""Table 4.1 of Tang 2024: errors of Taylor series in FP16, on the simulated Ascend 310."""

import numpy as np
import pytest

from benchmarks.papers.tang24.series_precision import (
    INPUTS,
    NAMES,
    ORDERS,
    PUBLISHED,
    diverging,
    errors,
    exact_sum_errors,
    on_chip,
)
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.cubefx import build as build_cubefx

C310 = load_chip("ascend310")


def _cube(functions, x, order):
    instance = build_cubefx(x, np.stack([f.coefficients(order) for f in functions]), C310)
    return instance.views["y"](simulate(instance.program, checks=False).outputs["y"])


@pytest.fixture(scope="module")
def measured():
    methods = {"horner": on_chip("horner", C310), "cube": _cube}
    return {(m, order): errors(methods[m], NAMES, order) for m in methods for order in ORDERS}


def _published(key):
    return np.array([PUBLISHED[key][name] for name in NAMES]) / 100


def test_the_same_inputs_diverge(measured):
    for key, found in measured.items():
        cases = {(NAMES[i], INPUTS[j]) for i, j in np.argwhere(found > 1)}
        assert cases == {("tan", 2.08), ("tanh", 2.08)} and diverging(found.max())
        assert np.array_equal(found > 1, _published(key) > 1)


def test_errors_have_the_published_order_of_magnitude(measured):
    """The largest factor is 5.9: a last bit or two, by another order of operations."""
    for key, found in measured.items():
        factor = found / _published(key)
        assert (np.maximum(factor, 1 / factor) < 6).all(), key


def test_cube_fx_has_the_published_means(measured):
    """The means without the diverging rows; one unit in the last place of a row is 0.005 here."""
    for order, published in ((8, 1.112), (16, 0.058)):
        found = measured["cube", order]
        assert 100 * found[found < 1].mean() == pytest.approx(published, abs=0.005)


def test_the_order_is_the_number_of_coefficients():
    """With the powers up to k, the truncation errors would be far from the published ones."""
    i = NAMES.index("cos"), INPUTS.index(2.08)
    g = NAMES.index("gelu"), INPUTS.index(2.08)
    published = _published(("cube", 8))
    # The exact sum, without rounding: 1.70 and 14.12 per cent.
    for at in (i, g):
        assert exact_sum_errors(NAMES, 8)[at] == pytest.approx(published[at], rel=0.12)
        assert exact_sum_errors(NAMES, 9)[at] < published[at] / 2


def test_eight_iterations_of_cordic_miss_the_published_errors():
    """The table has 0.0 % everywhere; the angle that is left is up to 2⁻⁷."""
    found = errors(on_chip("cordic", C310), NAMES[:5], 1)
    assert found.max() == pytest.approx(0.047, abs=0.001)
    # Twelve iterations come within 0.32 per cent.
    assert errors(on_chip("cordic", C310, iterations=12), NAMES[:5], 1).max() < 0.0032
