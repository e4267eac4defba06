"""Sums of Taylor series of many functions, on a simulated DaVinci chip."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from vitruvian.collector import paused_collector
from vitruvian.errors import UserError
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.cubefx import CubeFx
from vitruvian.sim.kernels.cubefx import build as build_cubefx
from vitruvian.sim.kernels.cubefx.build import needs
from vitruvian.sim.kernels.cubefx.mapping import best
from vitruvian.sim.kernels.kernel import MOST, KernelInstance, Needs
from vitruvian.sim.kernels.series import build as series
from vitruvian.sim.kernels.series.functions import MOST_TERMS, Function, as_functions
from vitruvian.sim.ops.run import chip_of, execute, half_array, returned
from vitruvian.validate import check_int, one_of

__all__ = ["METHODS", "built", "divergence", "taylor"]

#: The methods by name: Cube-fx, and those that the vector unit computes alone.
METHODS = ("cube", *series.METHODS)


def taylor(
    functions: Iterable[str | Function | Sequence[float]],
    x: np.ndarray,
    *,
    order: int = 16,
    method: str = "cube",
    chip: Chip | str = "ascend310",
    cores: int | None = 1,
    report: bool = False,
) -> Any:
    """Return the Taylor polynomials of functions about 0 at all elements of an array.

    The arithmetic is FP16 with sums in FP32, so the result has the errors of the polynomial, of its
    coefficients in FP16, and of the powers: see ``docs/units/cubefx.md``. A ``UserWarning`` says
    which series diverges at some input.

    Parameters
    ----------
    functions : iterable of str, Function or sequence of float
        Names (``vitruvian.sim.kernels.series.functions.FUNCTIONS``), or lists of the coefficients
        a_0, a_1, … of a function.
    x : ndarray of float16
        Finite numbers, of any shape.
    order : int
        Number of coefficients: those of the powers 0 … order − 1.
    method : {"cube", "horner", "estrin", "naive", "motzkin", "cordic"}
        "cube" is Cube-fx (``vitruvian.sim.kernels.cubefx``); the vector unit computes the others
        alone (``vitruvian.sim.kernels.series``). CORDIC is no series, so it ignores the order.
    chip : Chip or str
    cores : int or None
        Number of cores; on the Ascend 910B, of groups of a Cube core and two vector cores. None
        takes all.
    report : bool
        If True, check the program, and also return the report of the run.

    Returns
    -------
    y : (len(functions), …) ndarray of float16
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the simulation would take more than some minutes or four
        gigabytes (``kernels.MOST``); the message is one line.
    """
    x = half_array("x", x)
    chosen = as_functions(functions)
    instance = built(chosen, x.ravel(), order, method, chip_of(chip), cores)
    for text in divergence(chosen, x, order) if method != "cordic" else ():
        warnings.warn(text, UserWarning, stacklevel=2)
    run = execute(instance.program, checks=bool(report))
    y = instance.views["y"](run.outputs["y"]).reshape(len(chosen), *x.shape)
    return returned((y,), run if report else None)


def built(
    functions: Sequence[Function],
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
    functions : sequence of Function
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
    if not x.size:
        raise UserError("x must have one element or more, not none")
    if not np.isfinite(x).all():
        count = int((~np.isfinite(x)).sum())
        raise UserError(f"x must be finite numbers, not {count} NaN or infinite ones")
    _needs(x, len(functions), order, method, chip, cores).check(
        f"taylor of {x.size:,} inputs", MOST
    )
    with paused_collector():
        if method != "cube":
            return series.build(method, x, functions, order, chip, cores=cores)
        table = np.stack([function.coefficients(order) for function in functions])
        return build_cubefx(x, table, chip, cores=cores, options=options)


def _needs(
    x: np.ndarray, functions: int, order: int, method: str, chip: Chip, cores: int | None
) -> Needs:
    """Return an upper bound of the cost of a method."""
    if method == "cube":
        return needs(x.size, best(order, functions), chip, cores, bool(np.signbit(x).any()))
    # A piece is some thousand inputs; an instruction of it takes up to 255 repeats.
    pieces = -(-x.size // 2048)
    return Needs(200 + pieces * functions * (20 + 12 * order), 64 * x.size * (functions + 1))


def divergence(functions: Sequence[Function], x: np.ndarray, order: int) -> list[str]:
    """Return a sentence for each function whose series diverges at some input.

    Parameters
    ----------
    functions : sequence of Function
    x : ndarray of float16
    order : int
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
