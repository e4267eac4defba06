"""Range reduction: functions of large inputs from their series at small ones.

A Taylor series about 0 with few terms is near its function near 0 only. An input beyond the
reach of its series is replaced by a nearer argument, at which the chip evaluates the series; an
identity of the function makes the result of that. Both steps are the host's, in float64, with one
rounding of the argument and one of the result to FP16.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import erf, exp, inf, log, pi, sqrt

import numpy as np

from vitruvian.common.extras import need
from vitruvian.sim.kernels.series.functions import FUNCTIONS, SeriesFunction

special = need("scipy.special", "ascend")

#: Restores function values at the given inputs from those at the reduced arguments.
Restore = Callable[[np.ndarray], np.ndarray]

#: Tangent of π/8, beyond which an argument of atan, and one of log1p, is reduced.
_EIGHTH = sqrt(2) - 1


@dataclass(frozen=True)
class Reduction:
    """The range reduction of a function.

    Attributes
    ----------
    reach : float
        The largest |x| that is evaluated as it is.
    split : callable
        Returns, for inputs beyond the reach in float64, arguments within it, and the function that
        restores the results from the values of the series at them.
    series : SeriesFunction, optional
        The series that is evaluated at the arguments, by default that of the function itself.
    """

    reach: float
    split: Callable[[np.ndarray], tuple[np.ndarray, Restore]]
    series: SeriesFunction | None = None

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Return booleans: True for inputs that are reduced."""
        return np.abs(x) > self.reach


def _half_turns(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Use sin(r + q·π) = (−1)^q·sin r, and the same for cos."""
    q = np.rint(x / pi)
    return x - q * pi, lambda y: np.where(q % 2, -y, y)


def _quarter_turns(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Use tan(r + q·π/2) = tan r for an even q, else −1/tan r."""
    q = np.rint(x / (pi / 2))
    with np.errstate(divide="ignore"):
        return x - q * (pi / 2), lambda y: np.where(q % 2, -1 / y, y)


def _doublings(
    reach: float, limit: float, double: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray], tuple[np.ndarray, Restore]]:
    """Return the split of a function for which f(2x) is a function ``double`` of f(x).

    Parameters
    ----------
    limit : float
        Inputs beyond ±``limit`` are replaced by it: FP16 does not distinguish the results.
    """

    def split(x: np.ndarray) -> tuple[np.ndarray, Restore]:
        near = np.clip(x, -limit, limit)
        # Halvings until an input is within the reach; ``restore`` doubles as often.
        count = np.ceil(np.log2(np.abs(near) / reach))

        def restore(y: np.ndarray) -> np.ndarray:
            for n in range(int(count.max(initial=0))):
                y = np.where(count > n, double(y), y)
            return y

        return near / 2.0**count, restore

    return split


def _exponential(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Use e^(r + q·ln 2) = 2^q·e^r."""
    near = np.clip(x, -20, 20)
    q = np.rint(near / log(2))
    return near - q * log(2), lambda y: y * 2.0**q


def _hyperbolic_sine(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Return sinh x from E = e^x = 2^q·(sinh r + √(1 + sinh² r)) as (E − 1/E)/2."""
    near = np.clip(x, -20, 20)
    q = np.rint(near / log(2))

    def restore(y: np.ndarray) -> np.ndarray:
        exponential = 2.0**q * (y + np.sqrt(1 + y * y))
        return (exponential - 1 / exponential) / 2

    return near - q * log(2), restore


def _logarithm(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Use ln(1 + x) = q·ln 2 + ln(1 + r), with 1 + x = 2^q·(1 + r); −∞ at −1 and NaN below it."""
    significand, exponent = np.frexp(1 + x)
    # frexp returns 0.5 … 1; a significand within √½ … √2 makes the argument smallest.
    low = significand < sqrt(0.5)
    argument = np.where(low, 2 * significand, significand) - 1
    q = exponent - low
    known = x > -1
    beyond = np.where(x == -1, -inf, np.nan)
    return np.where(known, argument, 0), lambda y: np.where(known, y + q * log(2), beyond)


def _arctangent(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Return atan x = π/4 + atan((x − 1)/(x + 1)), and from 1 + √2 on π/2 − atan(1/x)."""
    size = np.abs(x)
    far = size > 1 + sqrt(2)
    argument = np.where(far, -1 / size, (size - 1) / (size + 1))
    offset = np.where(far, pi / 2, pi / 4)
    return argument, lambda y: np.copysign(y + offset, x)


def _hyperbolic_cosine(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Return cosh x from E = e^|x| = 2^q·(cosh r + √(cosh² r − 1)) as (E + 1/E)/2, r in 1 … 1.7.

    A smaller r would magnify the error of its hyperbolic cosine.
    """
    near = np.clip(np.abs(x), 1, 20)
    q = np.floor((near - 1) / log(2))

    def restore(y: np.ndarray) -> np.ndarray:
        exponential = 2.0**q * (y + np.sqrt(np.maximum(y * y - 1, 0)))
        return (exponential + 1 / exponential) / 2

    return near - q * log(2), restore


#: Where the second series of gelu is expanded, and where its ends begin: from 4 on, gelu(x) differs
#: from x, and gelu(−x) from 0, by at most 2⁻¹².
_MIDDLE, _END = Fraction(11, 4), 4.0


@lru_cache(8)
def _gelu_terms(order: int) -> tuple[Fraction, ...]:
    """Return the coefficients of x·Φ(x) about ``_MIDDLE``; the density φ has φ′ = −x·φ."""
    middle = float(_MIDDLE)
    # Coefficients of φ about the middle: φ′ = −x·φ gives a recursion of two terms.
    density = [Fraction(exp(-middle * middle / 2) / sqrt(2 * pi))]
    for n in range(order):
        before = density[n - 1] if n else Fraction(0)
        density.append(-(_MIDDLE * density[n] + before) / (n + 1))
    normal = [Fraction((1 + erf(middle / sqrt(2))) / 2)]
    normal += [density[n - 1] / n for n in range(1, order)]
    return tuple(_MIDDLE * a + (normal[n - 1] if n else 0) for n, a in enumerate(normal))


def _shifted(x: np.ndarray) -> tuple[np.ndarray, Restore]:
    """Use gelu(−x) = gelu(x) − x and the series about 2.75; beyond ±4, x or −0."""
    size = np.abs(x)
    far = size > _END

    def restore(y: np.ndarray) -> np.ndarray:
        positive = np.where(far, size, y)
        return np.where(x > 0, positive, np.minimum(positive - size, -0.0))

    return np.where(far, 0, size - float(_MIDDLE)), restore


_GELU = SeriesFunction(
    "gelu about 2.75",
    _gelu_terms,
    inf,
    lambda x: (x + float(_MIDDLE)) * special.ndtr(x + float(_MIDDLE)),
)


_TURNS = Reduction(pi / 2, _half_turns)

#: The reductions of the named functions.
REDUCTIONS: Mapping[str, Reduction] = {
    "sin": _TURNS,
    "cos": _TURNS,
    "tan": Reduction(pi / 4, _quarter_turns),
    "tanh": Reduction(pi / 4, _doublings(pi / 4, 16, lambda t: 2 * t / (1 + t * t))),
    "sigmoid": Reduction(
        pi / 2, _doublings(pi / 2, 20, lambda s: s * s / (s * s + (1 - s) * (1 - s)))
    ),
    "gelu": Reduction(1.5, _shifted, _GELU),
    "exp": Reduction(1, _exponential),
    "sinh": Reduction(pi / 2, _hyperbolic_sine),
    "cosh": Reduction(pi / 2, _hyperbolic_cosine),
    "log1p": Reduction(_EIGHTH, _logarithm),
    "atan": Reduction(_EIGHTH, _arctangent),
}


@dataclass(frozen=True, eq=False)
class _Segment:
    """The inputs that a reduction replaces, and where the arguments are among all inputs.

    Attributes
    ----------
    outside : (N,) ndarray of bool
    arguments : (n,) ndarray of float16
    restore : callable
    start : int
    """

    outside: np.ndarray
    arguments: np.ndarray
    restore: Restore
    start: int

    def restored(self, direct: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the results in float64 from those of the inputs and those of the arguments."""
        result = direct.astype(np.float64)
        with np.errstate(all="ignore"):
            result[self.outside] = self.restore(values.astype(np.float64))
        return result


@dataclass(frozen=True, eq=False)
class ReductionPlan:
    """The inputs and functions that a chip evaluates so that some functions are right everywhere.

    The inputs are followed by the arguments of each reduction; all functions are evaluated at all
    of them. An input that no function needs as it is becomes 0.

    Attributes
    ----------
    chosen : tuple of SeriesFunction
    x : (N,) ndarray of float16
    functions : tuple of SeriesFunction
        Those that were chosen, and then the series of some reductions.
    inputs : (N + …,) ndarray of float16
    segments : dict of SeriesFunction to _Segment
        Those of the functions that have inputs beyond the reach of their series.
    reduce : bool
    """

    chosen: tuple[SeriesFunction, ...]
    x: np.ndarray
    functions: tuple[SeriesFunction, ...]
    inputs: np.ndarray
    segments: Mapping[SeriesFunction, _Segment]
    reduce: bool

    @classmethod
    def of(cls, chosen: Sequence[SeriesFunction], x: np.ndarray, reduce: bool) -> "ReductionPlan":
        """Return the plan for some functions.

        Parameters
        ----------
        x : (N,) ndarray of float16
            Finite numbers.
        reduce : bool
            If False, all functions are evaluated at the inputs alone.
        """
        wide, start = x.astype(np.float64), len(x)
        made: dict[Callable, _Segment] = {}
        segments: dict[SeriesFunction, _Segment] = {}
        functions, needed = list(chosen), np.zeros(x.shape, bool)
        for function in chosen:
            reduction = _reduction(function) if reduce else None
            outside = None if reduction is None else reduction.outside(wide)
            if reduction is None or outside is None or not outside.any():
                needed[:] = True
                continue
            needed |= ~outside
            if reduction.split not in made:
                arguments, restore = reduction.split(wide[outside])
                half = arguments.astype(np.float16)
                made[reduction.split] = _Segment(outside, half, restore, start)
                start += len(half)
            segments[function] = made[reduction.split]
            if reduction.series is not None and reduction.series not in functions:
                functions.append(reduction.series)
        main = np.where(needed, x, np.float16(0))
        inputs = np.concatenate([main, *(segment.arguments for segment in made.values())])
        return cls(tuple(chosen), x, tuple(functions), inputs, segments, reduce)

    @property
    def unreduced(self) -> tuple[SeriesFunction, ...]:
        """The functions whose series are evaluated at every input."""
        return tuple(f for f in self.chosen if not self.reduce or _reduction(f) is None)

    def exact(self) -> list[np.ndarray]:
        """Return the functions of the inputs, each (N,) of float64."""
        with np.errstate(all="ignore"):
            return [f.reference(self.x.astype(np.float64)) for f in self.chosen]

    def results(self, y: np.ndarray) -> np.ndarray:
        """Return the functions of the inputs.

        Parameters
        ----------
        y : (len(functions), len(inputs)) ndarray of float16
            The results of the chip.

        Returns
        -------
        (len(chosen), N) ndarray of float16
        """
        count, found = len(self.x), []
        for function, row in zip(self.chosen, y, strict=False):
            result = row[:count].copy()
            segment = self.segments.get(function)
            if segment is not None:
                source = y[self.functions.index(self._series(function))]
                values = source[segment.start : segment.start + len(segment.arguments)]
                with np.errstate(over="ignore"):
                    result = segment.restored(result, values).astype(np.float16)
            found.append(result)
        if self.reduce:
            for function, result, exact in zip(self.chosen, found, self.exact(), strict=True):
                if _reduction(function) is not None:
                    zero = result == 0
                    result[zero] = np.copysign(result[zero], exact[zero])
        return np.stack(found)

    def unrounded(self, function: SeriesFunction, order: int) -> np.ndarray:
        """Return what the series gives for a function without any rounding, (N,) of float64.

        Parameters
        ----------
        function : SeriesFunction
            One of ``chosen``.
        """
        polyval = np.polynomial.polynomial.polyval
        segment = self.segments.get(function)
        inputs = self.x.astype(np.float64)
        if segment is None:
            return polyval(inputs, function.coefficients(order))
        direct = polyval(np.where(segment.outside, 0, inputs), function.coefficients(order))
        arguments, restore = REDUCTIONS[function.name].split(inputs[segment.outside])
        values = polyval(arguments, self._series(function).coefficients(order))
        with np.errstate(all="ignore"):
            direct[segment.outside] = restore(values)
        return direct

    def _series(self, function: SeriesFunction) -> SeriesFunction:
        return REDUCTIONS[function.name].series or function


def _reduction(function: SeriesFunction) -> Reduction | None:
    """Return the reduction of a function; one of a user has none, whatever its name is."""
    return REDUCTIONS[function.name] if FUNCTIONS.get(function.name) is function else None
