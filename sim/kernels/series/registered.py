"""The methods as kernels by name, for the trigonometric functions in turn."""

import numpy as np

from vitruvian.errors import UserError
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, Needs
from vitruvian.sim.kernels.series.build import (
    METHODS,
    build,
    evaluators,
    most_repeats,
    pieces_of,
    vector_kind,
)
from vitruvian.sim.kernels.series.functions import FUNCTIONS, Function
from vitruvian.sim.kernels.series.lanes import LANES

__all__ = ["KERNELS"]

_TITLES = {
    "naive": "Taylor series by powers and a sum",
    "horner": "Taylor series by Horner's rule",
    "estrin": "Taylor series by Estrin's scheme",
    "motzkin": "Taylor series by Motzkin's preconditioned blocks",
    "cordic": "sin, cos and tan by CORDIC",
}


def _functions(count: int) -> list[Function]:
    return [FUNCTIONS[("sin", "cos", "tan")[n % 3]] for n in range(count)]


def _kernel(method: str) -> Kernel:
    def split(size: tuple[int, ...]) -> tuple[int, int, int, int]:
        """Return functions, order, iterations and elements."""
        functions, terms, count = size
        return functions, 1 if method == "cordic" else terms, terms, count

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
            cores=_cores(chip, cores),
            iterations=iterations,
        )

    def needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> Needs:
        functions, order, iterations, count = split(size)
        if max(functions, order) > 1024:
            raise UserError(f"size of {method} must have at most 1024 functions and terms")
        each = evaluators(method, _functions(functions), order, iterations=iterations)
        kind = vector_kind(chip)
        repeats = -(-count // LANES)
        workers = min(_cores(chip, cores) * kind.per_group, repeats)
        pieces = workers * len(pieces_of(-(-repeats // workers), most_repeats(kind, each)))
        vectors = sum(one.instructions for one in each)
        # A barrier before each instruction at most; five for a store and for a load.
        instructions = pieces * (2 * vectors + 5 * functions + 5) + 4 * workers
        return Needs(instructions, 16 * repeats * LANES * (functions + 1))

    third = "iterations" if method == "cordic" else "order"
    default = (3, 8 if method == "cordic" else 16, 2048)
    sizes = ("functions", third, "elements")
    return Kernel(f"series-{method}", _TITLES[method], sizes, default, make, needs)


def _cores(chip: Chip, cores: int | None) -> int:
    """Return the number of cores or groups; all of them if ``cores`` is None."""
    kind = vector_kind(chip)
    return kind.count // kind.per_group if cores is None else cores


KERNELS = tuple(map(_kernel, METHODS))
