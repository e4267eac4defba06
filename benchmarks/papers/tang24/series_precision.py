"""The errors of Table 4.1: six functions, three inputs, orders 8 and 16, by simulation.

The error is the relative difference between an FP16 result and the function of the decimal input in
float64. It includes the rounding of the input to FP16, which is why the errors of the table are not
zero where the result is the FP16 number nearest to the function.

References
----------
Tang 2024, §4.4.1 and Table 4.1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.sim.davinci import Chip, simulate
from vitruvian.sim.kernels.series.build import build
from vitruvian.sim.kernels.series.cordic import CIRCULAR, HYPERBOLIC
from vitruvian.sim.kernels.series.functions import FUNCTIONS, SeriesFunction

NAMES = ("sin", "cos", "tan", "tanh", "sigmoid", "gelu")
INPUTS = (0.14, 0.52, 2.08)
ORDERS = (8, 16)

#: The published errors in per cent: by (method, order) the rows of each function, by input.
#: Tang 2024, Table 4.1.
PUBLISHED: Mapping[tuple[str, int], Mapping[str, tuple[float, float, float]]] = {
    ("horner", 8): {
        "sin": (0.012, 0.011, 0.178),
        "cos": (0.002, 0.017, 1.917),
        "tan": (0.049, 0.052, 1181),
        "tanh": (0.049, 0.017, 597.3),
        "sigmoid": (0.040, 0.031, 1.239),
        "gelu": (0.034, 0.021, 14.17),
    },
    ("cube", 8): {
        "sin": (0.012, 0.011, 0.178),
        "cos": (0.002, 0.017, 1.917),
        "tan": (0.049, 0.052, 1180),
        "tanh": (0.049, 0.017, 595.3),
        "sigmoid": (0.040, 0.031, 1.184),
        "gelu": (0.034, 0.021, 14.17),
    },
    ("horner", 16): {
        "sin": (0.012, 0.011, 0.046),
        "cos": (0.002, 0.017, 0.214),
        "tan": (0.049, 0.034, 11160),
        "tanh": (0.049, 0.017, 5649),
        "sigmoid": (0.040, 0.031, 0.134),
        "gelu": (0.049, 0.021, 0.289),
    },
    ("cube", 16): {
        "sin": (0.012, 0.011, 0.046),
        "cos": (0.002, 0.017, 0.214),
        "tan": (0.049, 0.034, 11160),
        "tanh": (0.049, 0.017, 5620),
        "sigmoid": (0.040, 0.031, 0.134),
        "gelu": (0.049, 0.021, 0.194),
    },
}

#: Computes functions of FP16 inputs: (functions, inputs, order) → (functions, inputs).
Evaluate = Callable[[Sequence[SeriesFunction], np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes
    ----------
    name : str
        The function.
    x : float
    value : float
        The function in float64.
    errors : dict of (method, order) to float
        The relative errors; NaN where the method does not have the function.
    """

    name: str
    x: float
    value: float
    errors: dict[tuple[str, int], float]


def on_chip(method: str, chip: Chip, **options: bool | int) -> Evaluate:
    """Return the evaluation by one of the methods of ``build`` on a simulated chip.

    Parameters
    ----------
    **options
        As ``build`` takes them.
    """

    def evaluate(functions: Sequence[SeriesFunction], x: np.ndarray, order: int) -> np.ndarray:
        instance = build(method, x, functions, order, chip, **options)  # type: ignore[arg-type]
        return instance.views["y"](simulate(instance.program, checks=False).outputs["y"])

    return evaluate


def errors(evaluate: Evaluate, names: Sequence[str], order: int) -> np.ndarray:
    """Return the relative errors at ``INPUTS``.

    Parameters
    ----------
    evaluate : callable
        See ``Evaluate``.
    names : sequence of str
        Keys of ``FUNCTIONS``.

    Returns
    -------
    (len(names), 3) ndarray of float64
    """
    functions = [FUNCTIONS[name] for name in names]
    found = evaluate(functions, np.array(INPUTS, np.float16), order).astype(float)
    exact = np.stack([f.reference(np.array(INPUTS)) for f in functions])
    return np.abs(found - exact) / np.abs(exact)


def exact_sum_errors(names: Sequence[str], order: int) -> np.ndarray:
    """Return the errors of the series without any rounding, which truncation alone causes."""
    x = np.array(INPUTS)

    def evaluate(functions: Sequence[SeriesFunction], _: np.ndarray, order: int) -> np.ndarray:
        polyval = np.polynomial.polynomial.polyval
        return np.stack([polyval(x, f.coefficients(order)) for f in functions])

    return errors(evaluate, names, order)


def diverging(error: float) -> bool:
    """Return True if an error is above 100 per cent, as outside of the radius of convergence."""
    return error > 1


def table(methods: Mapping[str, Evaluate], cordic: Evaluate | None = None) -> list[Row]:
    """Measure the table.

    Parameters
    ----------
    methods : mapping of str to callable
        The evaluations of polynomials by name; see ``Evaluate``.
    cordic : callable, optional
        The evaluation by CORDIC, whose errors have the order 0.

    Returns
    -------
    list of Row
    """
    found: dict[tuple[str, int], np.ndarray] = {}
    for order in ORDERS:
        found["series", order] = exact_sum_errors(NAMES, order)
        for name, evaluate in methods.items():
            found[name, order] = errors(evaluate, NAMES, order)
    if cordic is not None:
        known = [name for name in NAMES if name in CIRCULAR + HYPERBOLIC]
        some = errors(cordic, known, 1)
        whole = np.full((len(NAMES), len(INPUTS)), np.nan)
        whole[[NAMES.index(name) for name in known]] = some
        found["cordic", 0] = whole
    return [
        Row(
            name,
            x,
            float(FUNCTIONS[name].reference(np.array(x))),
            {key: float(values[i, j]) for key, values in found.items()},
        )
        for i, name in enumerate(NAMES)
        for j, x in enumerate(INPUTS)
    ]
