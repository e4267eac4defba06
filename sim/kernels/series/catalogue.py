"""The methods as kernels by name, for the trigonometric functions in turn."""

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, SimulationCost
from vitruvian.sim.kernels.series.build import METHODS, build, evaluators, needs
from vitruvian.sim.kernels.series.functions import FUNCTIONS, SeriesFunction

_TITLES = {
    "naive": "Taylor series by powers and a sum",
    "horner": "Taylor series by Horner's rule",
    "estrin": "Taylor series by Estrin's scheme",
    "motzkin": "Taylor series by Motzkin's preconditioned blocks",
    "cordic": "sin, cos and tan by CORDIC",
    "cordic-compare": "sin, cos and tan by CORDIC with comparisons",
}


def _functions(count: int) -> list[SeriesFunction]:
    return [FUNCTIONS[("sin", "cos", "tan")[n % 3]] for n in range(count)]


def _kernel(method: str) -> Kernel:
    def split(size: tuple[int, ...]) -> tuple[int, int, int, int]:
        """Return functions, order, iterations and elements."""
        functions, terms, count = size
        return functions, 1 if method.startswith("cordic") else terms, terms, count

    def make(
        size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
    ) -> KernelInstance:
        functions, order, iterations, count = split(size)
        x = None
        if seed is not None:
            x = np.random.default_rng(seed).uniform(-1.5, 1.5, count).astype(np.float16)
        return build(
            method,
            count if x is None else x,
            _functions(functions),
            order,
            chip,
            cores=cores,
            iterations=iterations,
        )

    def needs_of(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
        functions, order, iterations, count = split(size)
        if functions > 1024:
            raise UserError(f"functions of series-{method} must be at most 1024, not {functions}")
        each = evaluators(method, _functions(functions), order, iterations=iterations)
        return needs(each, count, chip, cores)

    third = "iterations" if method.startswith("cordic") else "order"
    default = (3, 8 if method.startswith("cordic") else 16, 2048)
    sizes = ("functions", third, "elements")
    return Kernel(f"series-{method}", _TITLES[method], sizes, default, make, needs_of)


KERNELS = tuple(map(_kernel, METHODS))
