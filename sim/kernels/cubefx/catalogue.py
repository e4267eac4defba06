"""Cube-fx as a kernel by name, for three functions."""

import numpy as np

from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.cubefx.build import CubeFx, build, needs
from vitruvian.sim.kernels.cubefx.mapping import best
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, SimulationCost
from vitruvian.sim.kernels.series.functions import FUNCTIONS

#: Number of inputs by default, that of Tang 2024, §4.4.3, on the Ascend 310.
COUNT = 16384

#: Functions, and number of their coefficients.
NAMES, ORDER = ("sin", "cos", "tanh"), 16

#: Random inputs are in this range, in which all series of Table 4.1 converge.
_RANGE = (-1.5, 1.5)

#: Half of the random inputs are negative; no power overflows (1.5**15 is 438).
_OPTIONS = CubeFx(signs=True, halvings=0)


def random_inputs(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return random inputs at which the series of all named functions converge.

    Returns
    -------
    ndarray of float16
    """
    return np.random.default_rng(seed).uniform(*_RANGE, shape).astype(np.float16)


def _make(size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None) -> KernelInstance:
    x = size[0] if seed is None else random_inputs(size, seed)
    table = np.stack([FUNCTIONS[name].coefficients(ORDER) for name in NAMES])
    return build(x, table, chip, cores=cores, options=_OPTIONS)


def _needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    return needs(size[0], best(ORDER, len(NAMES)), chip, cores)


KERNELS = (
    Kernel(
        "cubefx",
        f"Taylor series of {', '.join(NAMES[:-1])} and {NAMES[-1]} by matrix products: Cube-fx",
        ("inputs",),
        (COUNT,),
        _make,
        _needs,
    ),
)
