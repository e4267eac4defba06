"""Functions and the coefficients of their Taylor series about 0.

The coefficients are exact rational numbers, from recurrences; those of GELU are rational multiples
of 1/√(2π), which is taken to 200 bits. A series of order k has the k coefficients a_0 … a_{k−1}:
the errors of Table 4.1 belong to this number of terms, although eq. 4.3 prints powers 1 to k.

References
----------
Tang 2024, eq. 4.1, eq. 4.3 and Table 4.1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial, inf, isfinite, isqrt, pi

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.extras import need
from vitruvian.common.validate import check_int, refusal, shortened
from vitruvian.golden.fp.reference import encode

special = need("scipy.special", "ascend")

#: The largest order; the recurrences take a time that grows with its square.
MOST_TERMS = 128

#: Bits of 1/√(2π) behind the point.
_BITS = 200


@dataclass(frozen=True)
class SeriesFunction:
    """A function and its Taylor series about 0.

    Attributes
    ----------
    name : str
    terms : callable
        Returns the exact coefficients a_0 … a_{k−1} for an order k.
    radius : float
        The radius of convergence; infinite for a polynomial.
    reference : callable
        Computes the function of an array of float64.
    """

    name: str
    terms: Callable[[int], tuple[Fraction, ...]]
    radius: float
    reference: Callable[[np.ndarray], np.ndarray]

    def exact(self, order: int) -> tuple[Fraction, ...]:
        """Return the exact coefficients a_0 … a_{order−1}.

        Parameters
        ----------
        order : int
            1 … 128.

        Raises
        ------
        TypeError, UserError
            If the order is not such a number.
        """
        return self.terms(check_int("order", order, 1, MOST_TERMS))

    def coefficients(self, order: int) -> np.ndarray:
        """Return the coefficients rounded to float64, of shape (order,); see ``exact``."""
        return np.array([float(a) for a in self.exact(order)])

    def half(self, order: int) -> np.ndarray:
        """Return the coefficients rounded correctly to FP16.

        Returns
        -------
        (order,) ndarray of float16

        Raises
        ------
        UserError
            If a coefficient is too large for FP16.
        """
        codes = [encode(a, "fp16", "RNE") for a in self.exact(order)]
        rounded = np.array(codes, np.uint16).view(np.float16)
        if not np.isfinite(rounded).all():
            index = int(np.argmin(np.isfinite(rounded)))
            raise UserError(
                f"coefficients of {self.name} must be in the range of FP16, ±65504, "
                f"not {float(self.exact(order)[index]):g} at x^{index}"
            )
        return rounded

    def outside(self, x: np.ndarray) -> int:
        """Return the number of inputs at which the series diverges, NaN and infinities included.

        Parameters
        ----------
        x : ndarray of floating point
        """
        return int((~(np.abs(x) < self.radius)).sum())


def _by(rule: Callable[[list[Fraction]], Fraction], first: Fraction) -> Callable:
    """Return the coefficients of a function from its differential equation.

    Parameters
    ----------
    rule : callable
        Returns the coefficient of xⁿ of the derivative from a_0 … a_n.
    first : Fraction
        The coefficient a_0.
    """

    @lru_cache(8)
    def terms(order: int) -> tuple[Fraction, ...]:
        a = [first]
        while len(a) < order:
            a.append(rule(a) / len(a))
        return tuple(a[:order])

    return terms


def _square(a: list[Fraction]) -> Fraction:
    """Return the coefficient of xⁿ in the square of Σ a_i·x^i, with n the last index."""
    return sum((p * q for p, q in zip(a, reversed(a), strict=True)), Fraction(0))


def _one(a: list[Fraction]) -> int:
    """Return the coefficient of xⁿ in the constant 1, with n the last index of ``a``."""
    return int(len(a) == 1)


def _each(coefficient: Callable[[int], Fraction]) -> Callable[[int], tuple[Fraction, ...]]:
    """Return the coefficients from a function of their index."""

    @lru_cache(8)
    def terms(order: int) -> tuple[Fraction, ...]:
        return tuple(coefficient(n) for n in range(order))

    return terms


def _sin(n: int) -> Fraction:
    return Fraction((-1) ** (n // 2) * (n % 2), factorial(n))


def _cos(n: int) -> Fraction:
    return Fraction((-1) ** (n // 2) * (1 - n % 2), factorial(n))


@lru_cache(1)
def _density() -> Fraction:
    """Return 1/√(2π), rounded down to a multiple of 2⁻²⁰⁰."""

    def arctangent(n: int, bits: int) -> int:
        """Return 2^bits · atan(1/n), with an error of at most one for each term."""
        power, total, k = (1 << bits) // n, 0, 0
        while power:
            total += (-1) ** k * (power // (2 * k + 1))
            power //= n * n
            k += 1
        return total

    bits = _BITS + 64
    # π = 16·atan(1/5) − 4·atan(1/239) (Machin 1706).
    circle = 16 * arctangent(5, bits) - 4 * arctangent(239, bits)
    return Fraction(isqrt((1 << (2 * _BITS + bits)) // (2 * circle)), 1 << _BITS)


def _gelu(n: int) -> Fraction:
    """Return the coefficient of x·Φ(x), with Φ(x) = ½ + (x − x³/6 + x⁵/40 − …)/√(2π)."""
    if n % 2:
        return Fraction(n == 1, 2)
    if n == 0:
        return Fraction(0)
    m = n // 2 - 1
    return Fraction((-1) ** m, factorial(m) * 2**m * (2 * m + 1)) * _density()


_ONE, _ZERO, _HALF = Fraction(1), Fraction(0), Fraction(1, 2)

#: The functions of Table 4.1, then some others. GELU is the exact one, x·Φ(x), with the normal
#: distribution Φ.
FUNCTIONS: dict[str, SeriesFunction] = {
    function.name: function
    for function in (
        SeriesFunction("sin", _each(_sin), inf, np.sin),
        SeriesFunction("cos", _each(_cos), inf, np.cos),
        SeriesFunction("tan", _by(lambda a: _square(a) + _one(a), _ZERO), pi / 2, np.tan),
        SeriesFunction("tanh", _by(lambda a: _one(a) - _square(a), _ZERO), pi / 2, np.tanh),
        # s' = s − s²; the poles nearest to 0 are ±iπ.
        SeriesFunction("sigmoid", _by(lambda a: a[-1] - _square(a), _HALF), pi, special.expit),
        SeriesFunction("gelu", _each(_gelu), inf, lambda x: x * special.ndtr(x)),
        SeriesFunction("exp", _each(lambda n: Fraction(1, factorial(n))), inf, np.exp),
        SeriesFunction("sinh", _each(lambda n: Fraction(n % 2, factorial(n))), inf, np.sinh),
        SeriesFunction("cosh", _each(lambda n: Fraction(1 - n % 2, factorial(n))), inf, np.cosh),
        SeriesFunction(
            "log1p", _each(lambda n: Fraction((-1) ** (n + 1), n) if n else _ZERO), 1, np.log1p
        ),
        SeriesFunction(
            "atan", _each(lambda n: Fraction((-1) ** (n // 2), n) if n % 2 else _ZERO), 1, np.arctan
        ),
    )
}


def as_functions(
    functions: Iterable[str | SeriesFunction | Sequence[float] | Sequence[Fraction] | np.ndarray],
) -> tuple[SeriesFunction, ...]:
    """Return functions by their names, and the polynomials with the given coefficients.

    Parameters
    ----------
    functions : iterable of str, SeriesFunction or sequence of float or Fraction
        Each is a key of ``FUNCTIONS``, or the coefficients a_0, a_1, … as finite numbers. An order
        above their number adds zeros; a smaller order is an error.

    Raises
    ------
    TypeError
        If an item is none of these.
    UserError
        If there is no item, a name is unknown, or coefficients are missing or not finite.
    """
    if isinstance(functions, str):
        raise TypeError(f"functions must be a list of functions, not {shortened(functions)}")
    found = tuple(_one_function(item, n) for n, item in enumerate(functions))
    if not found:
        raise UserError("functions must be one or more, not none")
    return found


def _one_function(
    item: str | SeriesFunction | Sequence[float] | Sequence[Fraction] | np.ndarray, number: int
) -> SeriesFunction:
    if isinstance(item, SeriesFunction):
        return item
    if isinstance(item, str):
        if item not in FUNCTIONS:
            raise UserError(refusal("functions", item, FUNCTIONS, "be among"))
        return FUNCTIONS[item]
    try:
        given = [a if isinstance(a, Fraction) else float(a) for a in item]
    except (TypeError, ValueError) as error:
        raise TypeError(
            "functions must be names or lists of coefficients a_0, a_1, …, "
            f"not {shortened(str(item))}"
        ) from error
    if not given or not all(map(isfinite, given)):
        shown = shortened(str(list(item)))
        raise UserError(f"coefficients must be one or more finite numbers, not {shown}")
    exact = tuple(Fraction(a) for a in given)
    numbers = [float(a) for a in exact]

    def terms(order: int) -> tuple[Fraction, ...]:
        if any(exact[order:]):
            raise UserError(
                f"order must be at least {len(exact)} for its coefficients, not {order}"
            )
        return (exact + (_ZERO,) * order)[:order]

    return SeriesFunction(
        f"polynomial{number}",
        terms,
        inf,
        lambda x: np.polynomial.polynomial.polyval(x, numbers),
    )
