"""The coefficients of the series, against SciPy, identities and contour integrals."""

from fractions import Fraction
from math import erf, exp, inf, isqrt, pi, sqrt, tan

import numpy as np
import pytest
from scipy import special

from vitruvian.common.errors import UserError
from vitruvian.sim.kernels.series.functions import FUNCTIONS, SeriesFunction, as_functions

#: The functions as functions of complex numbers.
COMPLEX = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "gelu": lambda z: z * (1 + special.erf(z / sqrt(2))) / 2,
    "exp": np.exp,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "log1p": np.log1p,
    "atan": lambda z: (np.log(1 + 1j * z) - np.log(1 - 1j * z)) / 2j,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients_are_cauchy_integrals(name):
    """The integral over a circle inside the radius of convergence gives each coefficient."""
    series, points = FUNCTIONS[name], 256
    radius = min(series.radius / 2, 1.0)
    z = radius * np.exp(2j * pi * np.arange(points) / points)
    integral = np.fft.fft(COMPLEX[name](z)).real[:24] / points / radius ** np.arange(24)
    exact = series.coefficients(24)
    # The FFT's error is about 2⁻⁵² of the largest value, here at most e, divided by radius^n.
    assert (np.abs(integral - exact) < 2.0**-49 / radius ** np.arange(24)).all()


def _product(a, b):
    return tuple(sum(a[i] * b[n - i] for i in range(n + 1)) for n in range(len(a)))


def test_identities_of_formal_power_series_hold_exactly():
    order = 40
    a = {name: series.exact(order) for name, series in FUNCTIONS.items()}
    one = (Fraction(1),) + (Fraction(0),) * (order - 1)
    assert _product(a["tan"], a["cos"]) == a["sin"]
    assert _product(a["tanh"], a["cosh"]) == a["sinh"]
    negative = [c * (-1) ** n for n, c in enumerate(a["exp"])]
    assert _product(a["sigmoid"], [x + y for x, y in zip(one, negative, strict=True)]) == one
    # The derivative of log1p times 1 + x is 1, that of atan times 1 + x² is 1.
    for name, square in (("log1p", 1), ("atan", 2)):
        slope = [n * c for n, c in enumerate(a[name])][1:]
        factor = [Fraction(n in (0, square)) for n in range(order - 1)]
        assert _product(slope, factor) == one[:-1]


def test_the_constant_of_gelu_is_exact_to_200_bits():
    density = FUNCTIONS["gelu"].exact(3)[2]
    assert abs(float(density) - 1 / sqrt(2 * pi)) < 2.0**-53
    # π to 60 digits, as published; 1/density² = 2π.
    digits = 314159265358979323846264338327950288419716939937510582097494
    assert abs(1 / density**2 / 2 - Fraction(digits, 10**59)) < Fraction(1, 10**57)
    assert isqrt(density.denominator) ** 2 == density.denominator


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_series_converges_inside_its_radius_and_not_outside(name):
    series = FUNCTIONS[name]
    a = series.coefficients(96)
    x = np.array([0.5, -0.5]) * min(series.radius, 2)
    sums = np.polynomial.polynomial.polyval(x, a)
    assert np.allclose(sums, series.reference(x), rtol=1e-14, atol=0)
    if series.radius == inf:
        assert abs(a[-1]) < 1e-50
    else:  # the root test; the limit of ⁿ√n is 1 within 5 per cent here
        n = np.flatnonzero(a)[-1]
        assert abs(a[n]) ** (-1 / n) == pytest.approx(series.radius, rel=0.06)
    assert series.outside(np.array([series.radius * 0.99 if series.radius < inf else 9e9])) == 0
    assert series.outside(np.array([series.radius, np.nan, -inf])) == 3


def test_references_are_the_functions():
    x = 0.7
    references = {name: float(s.reference(np.array(x))) for name, s in FUNCTIONS.items()}
    assert references["tan"] == pytest.approx(tan(x), rel=1e-15)
    assert references["sigmoid"] == pytest.approx(1 / (1 + exp(-x)), rel=1e-15)
    assert references["gelu"] == pytest.approx(x * (1 + erf(x / sqrt(2))) / 2, rel=1e-15)


def test_rounding_to_fp16_is_correct():
    """NumPy rounds float64 to FP16; the float64 is exact enough unless it is near a tie."""
    for series in FUNCTIONS.values():
        half = series.half(64)
        assert np.array_equal(half, series.coefficients(64).astype("f2"))
    # Just above a tie that float64 cannot tell from it.
    (tie,) = as_functions([[Fraction(1) + Fraction(1, 1 << 11) + Fraction(1, 1 << 80)]])
    assert tie.half(1)[0] == 1 + 2.0**-10
    assert np.float16(float(tie.exact(1)[0])) == 1


def test_polynomials_of_the_user():
    p, sine, other = as_functions([[1, 0.5, -2], "sin", np.ones(3, np.float16)])
    assert p.exact(5) == (1, Fraction(1, 2), -2, 0, 0) and p.radius == inf
    assert p.reference(np.array([2.0])) == 1 + 1 - 8
    assert sine is FUNCTIONS["sin"] and as_functions([p]) == (p,)
    assert p.name == "polynomial0" and other.name == "polynomial2"
    assert isinstance(other, SeriesFunction)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: as_functions(["sine"]), UserError, "must be among sin, cos, .* not 'sine'"),
        (lambda: as_functions("sin"), TypeError, "must be a list of functions, not 'sin'"),
        (lambda: as_functions([]), UserError, "functions must be one or more"),
        (lambda: as_functions([[]]), UserError, "one or more finite numbers, not '\\[\\]'"),
        (lambda: as_functions([[1, np.nan]]), UserError, "finite numbers"),
        (lambda: as_functions([3]), TypeError, "lists of coefficients .* not '3'"),  # type: ignore
        (lambda: as_functions([[1j]]), TypeError, "names or lists"),  # type: ignore
        (lambda: as_functions([[1, 2, 3]])[0].exact(2), UserError, "order must be at least 3"),
        (lambda: FUNCTIONS["sin"].exact(0), UserError, "order must be between 1 and 128"),
        (lambda: FUNCTIONS["sin"].exact(129), UserError, "order must be between 1 and 128"),
        (lambda: FUNCTIONS["sin"].half(2.0), TypeError, "order must be an int"),  # type: ignore
        (lambda: as_functions([[0, 65520]])[0].half(2), UserError, "±65504, not 65520 at x"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()
