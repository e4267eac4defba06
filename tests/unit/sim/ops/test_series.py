"""vitruvian.ops.taylor: all methods, and what it refuses."""

import math
from typing import Any

import numpy as np
import pytest

from vitruvian import ops
from vitruvian.sim.davinci import Report
from vitruvian.sim.kernels import kernel
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
        taylor(["sin", "tan"], large)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((["sin"], X), {"order": 0}, ValueError, "order must be between 1 and 128, not 0"),
        ((["foo"], X), {}, ValueError, "functions must be among sin, cos, .*, not 'foo'"),
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
    monkeypatch.setattr(series, "MOST", kernel.Needs(10**6, 500, 10**9))
    for method in ("cube", "horner"):
        with pytest.raises(ValueError, match="bytes of data of taylor of 6 inputs must be at most"):
            taylor(["sin"], X, method=method)
