"""Times of tiles on a simulated chip, for the search of ``tiling``.

References
----------
Tang 2024, §3.4.2 and §3.5.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vitruvian.sim.davinci import Chip, Program, simulate
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.kernels import matmul
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.selbknn.build import METHODS


def tile_seconds(
    values: Sequence[np.ndarray], k: int, chip: Chip, *, method: str = "selb"
) -> np.ndarray:
    """Return the time of each of some successive k-selections of a group of queries.

    Parameters
    ----------
    values : sequence of (m, n) ndarray of float16
        Distances of the tiles, of 1 … 16 queries and a multiple of 128 points.
    method : str
        A key of ``selbknn.build.METHODS``.

    Returns
    -------
    (tiles,) ndarray of float64
        Seconds from the end of the selection before, without the distances.
    """
    queries, n = values[0].shape
    shape = KnnShape(queries, n * len(values), 1, k)
    program = Program(chip, "tiles")
    core = program.core()
    distances = core.allocate("UB", (n // GROUP, GROUP, GROUP), "fp16", "distances")
    selector = METHODS[method].make(core, shape, n)
    selector.begin(queries)
    ends = [len(core.instructions)]
    for tile, part in enumerate(values):
        whole = np.full((GROUP, n), np.float16(np.inf))
        whole[:queries] = part
        place = distances.reshape(n, GROUP) if selector.columns else distances
        selector.select(place, n * tile, whole)
        core.pipe_barrier()
        ends.append(len(core.instructions))
    report = simulate(program, cube=None, checks=False)
    times = np.array([int(report.times.end[:end].max()) for end in ends])
    return np.diff(times) / ATTO


@dataclass(frozen=True)
class SimulatedProfile:
    """A ``tiling.Profile`` that simulates one core.

    A product is the tiled matrix product of this project (``kernels.matmul``), without the launch.
    A core selects for 16 queries at a time, so the time of m₂ queries is that of ⌈m₂ / 16⌉ groups.

    Attributes
    ----------
    chip : Chip
    features, k : int
    method : str
        A key of ``selbknn.build.METHODS``.
    seed : int
        Seed of the random distances of a tile, which do not change the number of steps.
    """

    chip: Chip
    features: int
    k: int
    method: str = "selb"
    seed: int = 0
    _products: dict[tuple[int, int], float] = field(default_factory=dict, init=False, repr=False)
    _selections: dict[int, tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False
    )

    def product_s(self, m1: int, n1: int) -> float:
        """Return the seconds of a product, f."""
        key = (m1, n1)
        if key not in self._products:
            program = matmul.build(m1, self.features, n1, chip=self.chip, cores=1)
            report = simulate(program, cube=None, checks=False)
            self._products[key] = report.total_s - float(self.chip.launch_s)
        return self._products[key]

    def step_s(self, m2: int, n2: int) -> float:
        """Return the seconds of a step, g: of a selection of one point for each query, less g₀.

        g₀ contains the reductions that find that nothing is left, which a selection of all k
        points does not need. So g₀ + k g is more than the time of the first tile, by these.
        """
        return -(-m2 // GROUP) * self._selection(n2)[0]

    def constant_s(self, m2: int, n2: int) -> float:
        """Return the seconds of a selection without a selected point, g₀."""
        return -(-m2 // GROUP) * self._selection(n2)[1]

    def _selection(self, n2: int) -> tuple[float, float]:
        if n2 not in self._selections:
            rng = np.random.default_rng(self.seed)
            first = rng.random((GROUP, n2)).astype(np.float16)
            # No later distance is below one of the first tile, except one for each query.
            farther = first + np.float16(2)
            nearer = farther.copy()
            nearer[:, 0] = -1
            _, none, one = tile_seconds(
                [first, farther, nearer], self.k, self.chip, method=self.method
            )
            self._selections[n2] = float(one - none), float(none)
        return self._selections[n2]
