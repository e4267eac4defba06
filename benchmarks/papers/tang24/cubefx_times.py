"""The experiments of Tang 2024, §4.4.2 and §4.4.3, on the simulated chips: times without data.

References
----------
Tang 2024, Fig. 4.8 and Fig. 4.12.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from vitruvian.common.collector import paused_collector
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.cubefx.build import CubeFx, build
from vitruvian.sim.kernels.cubefx.mapping import SIDE, Mapping, best
from vitruvian.sim.kernels.series import build as series
from vitruvian.sim.kernels.series.functions import FUNCTIONS

#: Numbers of inputs in Fig. 4.8; Fig. 4.12 has the first of each chip.
COUNTS = {"ascend310": (16384, 32768), "ascend910b": (1638400, 3276800)}

#: Methods of Fig. 4.8 that Cube-fx is compared with.
METHODS = ("naive", "cordic", "horner", "estrin", "motzkin")

#: Number of coefficients in Fig. 4.8, and iterations of CORDIC there.
ORDER, ITERATIONS = 16, 4

#: Orders in Fig. 4.12.
ENHANCED = {"ascend310": (2, 6, 12), "ascend910b": (4, 8, 16)}

#: Published mean speedups over each method (§4.4.2).
PUBLISHED = {
    "ascend310": {"naive": 2.73, "cordic": 6.06, "horner": 1.64, "estrin": 1.53, "motzkin": 1.85},
    "ascend910b": {"naive": 1.63, "cordic": 3.52, "horner": 1.28, "estrin": 1.20, "motzkin": 1.42},
}

#: Published number of functions above which Cube-fx is the fastest (§4.4.2).
CROSSOVER = {"ascend310": 3, "ascend910b": 8}

#: The functions of Fig. 4.8 are trigonometric; it does not say which.
_FUNCTIONS = [FUNCTIONS[name] for name in ("sin", "cos", "tan")]


@dataclass(frozen=True)
class Comparison:
    """The times of all methods on a chip.

    Attributes
    ----------
    chip : str
        The name of a chip, or the path of its file.
    count : int
        Number of inputs.
    functions : tuple of int
        Numbers of functions.
    times : dict of str to tuple of float
        Seconds for each number of functions, by method; Cube-fx is "cube".
    """

    chip: str
    count: int
    functions: tuple[int, ...]
    times: dict[str, tuple[float, ...]]

    def speedups(self, method: str) -> np.ndarray:
        """Return the speedup of Cube-fx over a method for each number of functions."""
        return np.array(self.times[method]) / np.array(self.times["cube"])


def seconds(
    chip: str,
    method: str,
    functions: int,
    count: int,
    order: int = ORDER,
    options: CubeFx | None = None,
) -> float:
    """Return the simulated time on one core, or a Cube core with its vector cores.

    Inputs are positive, as in the thesis.

    Parameters
    ----------
    method : str
        "cube", or one of ``METHODS``.
    functions : int
        Number of functions.
    count : int
        Number of inputs.
    options : CubeFx, optional
        Options of "cube".
    """
    if method != "cube":
        return _others(chip, method, functions, count, order)
    options = options or CubeFx()
    merged = options.merged or best(order, functions).merged
    # The instructions depend on the functions only through the number of columns of fractals.
    most = Mapping(order, functions, merged).result_columns * SIDE // merged
    return _cube(chip, most, count, order, replace(options, merged=merged))


@cache
def _cube(chip: str, functions: int, count: int, order: int, options: CubeFx) -> float:
    table = np.ones((functions, order))
    with paused_collector():
        program = build(count, table, load_chip(chip), options=options).program
        return simulate(program, cube=None, checks=False).total_s


@cache
def _others(chip: str, method: str, functions: int, count: int, order: int) -> float:
    some = [_FUNCTIONS[i % len(_FUNCTIONS)] for i in range(functions)]
    with paused_collector():
        instance = series.build(method, count, some, order, load_chip(chip), iterations=ITERATIONS)
        return simulate(instance.program, cube=None, checks=False).total_s


def compare(chip: str, count: int, functions: Sequence[int]) -> Comparison:
    """Return the times of all methods for some numbers of functions (Fig. 4.8).

    Parameters
    ----------
    count : int
        Number of inputs.
    """
    times = {
        method: tuple(seconds(chip, method, number, count) for number in functions)
        for method in ("cube", *METHODS)
    }
    return Comparison(chip, count, tuple(functions), times)


def crossover(chip: str, count: int, method: str = "horner", limit: int = 64) -> int:
    """Return the largest number of functions for which a method is at least as fast as Cube-fx.

    Parameters
    ----------
    limit : int
        The largest number that is tried.
    """
    found = 0
    for number in range(1, limit + 1):
        if seconds(chip, method, number, count) > seconds(chip, "cube", number, count):
            break
        found = number
    return found


def gains(
    chip: str,
    order: int,
    functions: Sequence[int],
    merged: int | None = None,
    count: int | None = None,
) -> np.ndarray:
    """Return the speedups of merged matrices over the naive mapping (Fig. 4.12).

    Parameters
    ----------
    merged : int, optional
        A fixed number of merged matrices; by default the best one (eq. 4.11).
    count : int, optional
        Number of inputs; by default the first of the chip.
    """
    count = COUNTS[chip][0] if count is None else count
    naive, other = CubeFx(merged=1), CubeFx(merged=merged)
    return np.array(
        [
            seconds(chip, "cube", number, count, order, naive)
            / seconds(chip, "cube", number, count, order, other)
            for number in functions
        ]
    )
