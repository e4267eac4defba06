"""Sums of Taylor series of many functions, on a simulated DaVinci chip."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np

from vitruvian.common.collector import paused_collector
from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div, check_int, check_type, one_of
from vitruvian.sim.davinci import Chip, Report
from vitruvian.sim.kernels.cubefx import CubeFx
from vitruvian.sim.kernels.cubefx import build as build_cubefx
from vitruvian.sim.kernels.cubefx.build import needs
from vitruvian.sim.kernels.cubefx.mapping import best
from vitruvian.sim.kernels.kernel import LIMITS, KernelInstance, SimulationCost
from vitruvian.sim.kernels.series import build as series
from vitruvian.sim.kernels.series.functions import MOST_TERMS, SeriesFunction, as_functions
from vitruvian.sim.ops.reduction import ReductionPlan
from vitruvian.sim.ops.run import chip_of, execute, half_array, returned

#: The methods by name: Cube-fx, and those that the vector unit computes alone.
METHODS = ("cube", *(name for name in series.METHODS if name != "cordic-compare"))


@overload
def taylor(
    functions: Iterable[str | SeriesFunction | Sequence[float]],
    x: np.ndarray,
    *,
    order: int = ...,
    method: str = ...,
    reduce: bool = ...,
    chip: Chip | str = ...,
    cores: int | None = ...,
    report: Literal[False] = ...,
) -> np.ndarray: ...
@overload
def taylor(
    functions: Iterable[str | SeriesFunction | Sequence[float]],
    x: np.ndarray,
    *,
    order: int = ...,
    method: str = ...,
    reduce: bool = ...,
    chip: Chip | str = ...,
    cores: int | None = ...,
    report: Literal[True],
) -> tuple[np.ndarray, Report]: ...
@overload
def taylor(
    functions: Iterable[str | SeriesFunction | Sequence[float]],
    x: np.ndarray,
    *,
    order: int = ...,
    method: str = ...,
    reduce: bool = ...,
    chip: Chip | str = ...,
    cores: int | None = ...,
    report: bool,
) -> Any: ...
def taylor(
    functions: Iterable[str | SeriesFunction | Sequence[float]],
    x: np.ndarray,
    *,
    order: int = 16,
    method: str = "cube",
    reduce: bool = True,
    chip: Chip | str = "ascend310",
    cores: int | None = 1,
    report: bool = False,
) -> Any:
    """Evaluate functions at all elements of an array by their Taylor polynomials.

    The arithmetic is FP16 with sums in FP32, so the result has the errors of the polynomial, of its
    coefficients in FP16, and of the powers: see ``docs/units/cubefx.md``. A ``UserWarning`` names
    each function that is wrong by more than ``stated_error`` at some input, and each series that
    diverges there; the results are compared with the functions in float64.

    Parameters
    ----------
    functions : iterable of str, SeriesFunction or sequence of float
        Names (``vitruvian.sim.kernels.series.functions.FUNCTIONS``), or lists of the coefficients
        a_0, a_1, … of a function.
    x : ndarray of float16
        Finite numbers, of any shape.
    order : int
        Number of coefficients: those of the powers 0 … order − 1.
    method : {"cube", "horner", "estrin", "naive", "motzkin", "cordic"}
        "cube" is Cube-fx (``vitruvian.sim.kernels.cubefx``); the vector unit computes the others
        alone (``vitruvian.sim.kernels.series``). CORDIC is no series, so it ignores the order.
    reduce : bool
        If True, the host replaces inputs beyond the reach of a named function's series by nearer
        arguments, which the chip evaluates as further inputs, and restores the results by an
        identity (``vitruvian.sim.ops.reduction``); a zero gets the function's sign. Results beyond
        65504 are infinite, log1p is −∞ at −1 and NaN below it. If False, the result is that
        of the polynomial at every input.
    cores : int or None
        Number of cores; on the Ascend 910B, of groups of a Cube core and two vector cores. None
        takes all.
    report : bool
        If True, check the program, and also return the report of the run.

    Returns
    -------
    y : (len(functions), …) ndarray of float16
    report : Report
        Only with ``report``. The time is that of the chip, without what the host does.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the simulation would take more than some minutes or four
        gigabytes (``kernels.LIMITS``); the message is one line.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import ops
    >>> ops.taylor(["sin", "cos"], np.linspace(0, 1, 16, dtype=np.float16)).shape
    (2, 16)
    """
    flat = half_array("x", x).ravel()
    chosen = as_functions(functions)
    one_of("method", method, METHODS)
    check_int("order", order, 1, MOST_TERMS)
    check_type("reduce", reduce, bool)
    _check_inputs(flat)
    plan = ReductionPlan.of(chosen, flat, reduce)
    instance = built(plan.functions, plan.inputs, order, method, chip_of(chip), cores)
    run = execute(instance.program, checks=bool(report))
    y = plan.results(instance.views["y"](run.outputs["y"]))
    # The warnings compare with float64, whatever the cause: order, coefficients or rounding.
    texts = inaccuracies(plan, y, order, method)
    if method != "cordic":
        texts = [*divergence(plan.unreduced, x, order), *texts]
    for text in texts:
        warnings.warn(text, UserWarning, stacklevel=2)
    return returned((y.reshape(len(chosen), *x.shape),), run if report else None)


def built(
    functions: Sequence[SeriesFunction],
    x: np.ndarray,
    order: int,
    method: str,
    chip: Chip,
    cores: int | None,
    options: CubeFx | None = None,
) -> KernelInstance:
    """Return the program of a method, after all checks of its arguments.

    Parameters
    ----------
    x : (N,) ndarray of float16
    order, method, chip, cores
        As ``taylor`` takes them.
    options : CubeFx, optional
        Options of the method "cube".

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.
    """
    one_of("method", method, METHODS)
    check_int("order", order, 1, MOST_TERMS)
    _check_inputs(x)
    _needs(x, len(functions), order, method, chip, cores).check(
        f"taylor of {x.size:,} inputs", LIMITS
    )
    with paused_collector():
        if method != "cube":
            return series.build(method, x, functions, order, chip, cores=cores)
        table = np.stack([function.coefficients(order) for function in functions])
        return build_cubefx(x, table, chip, cores=cores, options=options)


def _check_inputs(x: np.ndarray) -> None:
    if not x.size:
        raise UserError("x must have one element or more, not none")
    if not np.isfinite(x).all():
        count = int((~np.isfinite(x)).sum())
        raise UserError(f"x must be finite numbers, not {count} NaN or infinite ones")


def _needs(
    x: np.ndarray, functions: int, order: int, method: str, chip: Chip, cores: int | None
) -> SimulationCost:
    """Return an upper bound of the cost of a method."""
    if method == "cube":
        return needs(x.size, best(order, functions), chip, cores, bool(np.signbit(x).any()))
    # A piece is some thousand inputs; an instruction of it takes up to 255 repeats.
    pieces = ceil_div(x.size, 2048)
    return SimulationCost(
        200 + pieces * functions * (20 + 12 * order), 64 * x.size * (functions + 1)
    )


def divergence(functions: Sequence[SeriesFunction], x: np.ndarray, order: int) -> list[str]:
    """Return a sentence for each function whose series diverges at some input.

    Parameters
    ----------
    x : ndarray of float16
    """
    texts = []
    for function in functions:
        outside = function.outside(x)
        if outside and order > 1:
            share = "input" if outside == 1 else "inputs"
            texts.append(
                f"the series of {function.name} diverges at {outside:,} {share}: its radius of "
                f"convergence is {function.radius:.6g}, and |x| is up to {float(np.abs(x).max()):g}"
            )
    return texts


def stated_error(method: str) -> float:
    """Return the error that no result of a method exceeds without a warning.

    The error of a result y of a function f is |y − f(x)| / max(1, |f(x)|). Beyond the range of
    FP16, only an infinite result has none.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.
    """
    return {"cordic": 2.0**-6, "motzkin": 2.0**-7}.get(one_of("method", method, METHODS), 2.0**-8)


def inaccuracies(plan: ReductionPlan, y: np.ndarray, order: int, method: str) -> list[str]:
    """Return a sentence for each function with a result beyond the stated error.

    Parameters
    ----------
    y : (functions, N) ndarray of float16
        The results.
    """
    texts, stated = [], stated_error(method)
    for function, found, exact in zip(plan.chosen, y, plan.exact(), strict=True):
        errors = _errors(found.astype(np.float64), exact)
        wrong = errors > stated
        if not wrong.any():
            continue
        text = (
            f"{function.name} is wrong by up to {errors.max():.2g} of max(1, |{function.name}|) at "
            f"{int(wrong.sum()):,} of {wrong.size:,} inputs, more than the stated {stated:.2g}"
        )
        if method != "cordic":
            ideal = _errors(plan.unrounded(function, order), exact)[wrong].max()
            terms = "term" if order == 1 else "terms"
            text += f"; its {order} {terms} without any rounding are wrong by up to {ideal:.2g}"
        texts.append(text)
    return texts


def _errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the errors that ``stated_error`` defines; a NaN for a number is infinitely wrong."""
    # The smallest number that FP16 rounds to infinity.
    near, bound = np.clip(found, -65520, 65520), np.clip(exact, -65520, 65520)
    errors = np.abs(near - bound) / np.maximum(1, np.abs(bound))
    # Where the function has no value, a NaN is the right result.
    both = np.isnan(near) & np.isnan(bound)
    return np.where(both, 0, np.where(np.isnan(errors), np.inf, errors))
