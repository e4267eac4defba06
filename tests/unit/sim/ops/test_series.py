"""vitruvian.ops.taylor: all methods, and what it refuses."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitruvian import ops
from vitruvian.sim.davinci import Report
from vitruvian.sim.kernels import kernel
from vitruvian.sim.kernels.series.cordic import CIRCULAR, HYPERBOLIC
from vitruvian.sim.kernels.series.functions import FUNCTIONS
from vitruvian.sim.ops import series

taylor: Any = ops.taylor

X = np.array([[-1.5, -0.5, -0.0], [0.0, 0.25, 1.25]], np.float16)


@pytest.mark.parametrize("chip", ["ascend310", "ascend910b"])
@pytest.mark.parametrize("method", series.METHODS)
def test_every_method_is_near_the_functions(method, chip):
    y, report = taylor(["sin", "cos"], X, method=method, chip=chip, report=True)
    assert isinstance(report, Report) and not report.findings
    assert y.shape == (2, 2, 3) and y.dtype == np.float16
    exact = np.stack([FUNCTIONS[name].reference(X.astype(np.float64)) for name in ("sin", "cos")])
    # CORDIC has 8 iterations, so its angle may be wrong by 2⁻⁷.
    assert np.abs(y - exact).max() < (2**-6 if method == "cordic" else 0.004)


def test_coefficients_of_a_user_are_a_function():
    y = taylor([[1, 2, 3], "exp", [0, 0, -1]], X, order=4)
    assert (y[0, 1] == np.array([1, 1 + 0.5 + 0.1875, 1 + 2.5 + 4.6875], np.float16)).sum() >= 2
    assert np.abs(y[2].astype(float) + X.astype(float) ** 2).max() < 0.004
    assert y[0, 0, 2] == 1 and y[2, 0, 2] == 0


def test_a_series_that_diverges_is_warned_of():
    large = np.array([2.0, 0.5], np.float16)
    text = "series of tan diverges at 1 input: its radius of convergence is 1.5708, and .* up to 2"
    with pytest.warns(UserWarning, match=text):
        taylor(["sin", "tan"], large, reduce=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = taylor(["sin", "tan"], large)
    assert np.allclose(y[:, 0], [np.sin(2), np.tan(2)], rtol=2.0**-9)


def _checked(name, x, **options):
    """Return the results, and True if they are within the stated error; a warning says if not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = taylor([name], x, **options)[0]
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(x.astype(np.float64))
    assert (np.isnan(y) == np.isnan(exact)).all() or caught
    near, bound = (np.clip(v.astype(float), -65520, 65520) for v in (y, exact))
    errors = np.abs(near - bound) / np.maximum(1, np.abs(bound))
    wrong = errors > series.stated_error(options.get("method", "cube"))
    inside = not (wrong | (np.isnan(near) & ~np.isnan(bound))).any()
    texts = [str(one.message) for one in caught]
    assert inside == (not texts)
    assert inside or any(f"{name} is wrong by up to" in text for text in texts)
    return y, inside


#: All finite numbers of FP16.
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
ALL = ALL[np.isfinite(ALL)]

#: The functions that a method has with a warning, of all numbers, with order 16. Cube-fx computes
#: x from its logarithm, so the tangent near a pole has that error; CORDIC has an angle of 7 bits.
WARNED = {"cube": {"tan"}, "motzkin": set(), "cordic": {"tan"}}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", ["cube", "horner", "estrin", "naive", "motzkin", "cordic"])
def test_all_numbers_are_within_the_stated_error_or_warned_of(name, method):
    assert len(ALL) == 63488
    if method == "cordic" and name not in CIRCULAR + HYPERBOLIC:
        return
    y, inside = _checked(name, ALL, method=method)
    assert inside == (name not in WARNED.get(method, ()))
    # A function that is 0 at 0 keeps its sign; CORDIC has an angle that is not quite 0 there.
    signs = np.signbit(FUNCTIONS[name].reference(np.array([0.0, -0.0])))
    zeros = y[ALL == 0]
    assert (np.signbit(zeros) == signs)[zeros == 0].all()
    is_zero = FUNCTIONS[name].reference(np.zeros(1))[0] == 0
    assert method == "cordic" or not is_zero or (zeros == 0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", ["horner", "motzkin"])
@pytest.mark.parametrize("order", [1, 4, 8, 16])
def test_a_series_without_reduction_is_right_or_warned_of(name, method, order):
    _checked(name, ALL, method=method, order=order, reduce=False)
    _checked(name, ALL[np.abs(ALL) < 0.05], method=method, order=order, reduce=False)


def test_the_warning_tells_truncation_from_rounding():
    x = np.array([8.0, 0.5], np.float16)
    text = "sin is wrong by up to .* at 1 of 2 inputs.* 8 terms without any rounding .* to 2.2e"
    with pytest.warns(UserWarning, match=text):
        taylor(["sin"], x, order=8, method="horner", reduce=False)
    # The square exceeds FP16 on the way to a small sum.
    text = "polynomial0 is wrong .*; its 3 terms without any rounding are wrong by up to 0$"
    with pytest.warns(UserWarning, match=text):
        taylor([[0, -299, 1]], np.array([300.0], np.float16), order=3, method="naive")


def test_inputs_within_reach_are_evaluated_as_they_are():
    x = np.linspace(-0.75, 0.75, 50).astype(np.float16)
    names = ["sin", "cos", "tan", "tanh", "exp"]
    assert (taylor(names, x) == taylor(names, x, reduce=False)).all()


def test_functions_of_different_reach_share_a_program():
    x = np.array([-3.0, -1.2, 0.3, 1.4, 5.0], np.float16)
    names = ["gelu", "sin", [0.5, 1], "sin", "atan"]
    y = taylor(names, x, order=12, method="horner")
    assert y.shape == (5, 5) and (y[1] == y[3]).all() and (y[2] == x + np.float16(0.5)).all()
    for row, name in ((0, "gelu"), (1, "sin"), (4, "atan")):
        assert np.abs(y[row] - FUNCTIONS[name].reference(x.astype(float))).max() < 0.01
    # A function of a user has no reduction, whatever its name is.
    own = replace(FUNCTIONS["cos"], name="sin")
    with pytest.warns(UserWarning, match="sin is wrong"):
        taylor([own, "sin"], x, method="horner")


def test_inputs_beyond_cube_fx_are_refused_in_words():
    text = "x must be at most 16.* in magnitude for Cube-fx with these coef.* of order 16, not 100;"
    with pytest.raises(ValueError, match=text):
        taylor(["sin"], np.array([100.0], np.float16), reduce=False)
    with pytest.raises(ValueError, match="coefficients must be at most 65504, not 1e\\+06"):
        taylor([[0, 1e6]], X, order=2)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((["sin"], X), {"order": 0}, ValueError, "order must be between 1 and 128, not 0"),
        ((["foo"], X), {}, ValueError, "functions must be among sin, cos, .*, not 'foo'"),
        ((["sin"], X), {"reduce": "no"}, TypeError, "reduce must be a bool, not 'no'"),
        (([], X), {}, ValueError, "functions must be one or more, not none"),
        ((["sin"], X), {"method": "foo"}, ValueError, "method must be one of cube, horner"),
        ((["sin"], X.astype(float)), {}, TypeError, "x must be a NumPy array of float16"),
        ((["sin"], X[:0]), {}, ValueError, "x must have one element or more, not none"),
        ((["sin"], X * np.float16(math.nan)), {}, ValueError, "x must be finite .* 6 NaN"),
        ((["sin"], X), {"chip": "foo"}, ValueError, "foo"),
        ((["sin"], X), {"cores": 99}, ValueError, "cores must be 1 … 2"),
        ((["gelu"], X), {"method": "cordic"}, ValueError, "gelu"),
        (([[1, 2, 3]], X), {"order": 2}, ValueError, "order must be at least 3"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, options, error, text):
    with pytest.raises(error, match=text) as caught:
        taylor(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_a_simulation_of_hours_is_refused(monkeypatch):
    monkeypatch.setattr(series, "LIMITS", kernel.SimulationCost(10**6, 500, 10**9))
    for method in ("cube", "horner"):
        with pytest.raises(ValueError, match="bytes of data of taylor of 6 inputs must be at most"):
            taylor(["sin"], X, method=method)
