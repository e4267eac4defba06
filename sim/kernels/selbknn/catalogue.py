"""The search for nearest neighbours as a kernel by name, and the cost of simulating it."""

from collections.abc import Callable

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip, Program
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, SimulationCost, matrix_cores
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.selbknn import golden
from vitruvian.sim.kernels.selbknn.build import METHODS, build, largest_tile, result
from vitruvian.sim.kernels.selbknn.indexing import PER_REPEAT
from vitruvian.sim.kernels.selbknn.operands import prepared, random_points

#: The seed of the points that decide the branches of a program without data.
_SEED = 0

#: Instructions of a piece of a product with the moves of its operands, and of a group.
_PIECE, _GROUP = 24, 64


def expected(
    shape: KnnShape, operands: tuple[np.ndarray, np.ndarray], method: str, tile: int
) -> golden.Best:
    """Return the results of a program by the golden model of its method.

    Parameters
    ----------
    operands : (queries, d) and (train, d) ndarray of float16
        Those of ``operands.prepared``.
    method : str
        A key of ``build.METHODS``.
    tile : int
        Training points of a tile.
    """
    groups = []
    for start in range(0, shape.queries, GROUP):
        query = operands[0][start : start + GROUP]
        best = golden.Best.empty(shape.k, len(query))
        for first in range(0, shape.train, tile):
            values = golden.distances(query, operands[1][first : first + tile])
            # The program has whole repeats; the points that do not exist are at +∞.
            missing = -values.shape[1] % PER_REPEAT
            values = np.pad(values, ((0, 0), (0, missing)), constant_values=np.float16(np.inf))
            best = METHODS[method].golden(values, best, first)
        groups.append(best)
    return golden.Best(
        np.concatenate([best.distances for best in groups], axis=1),
        np.concatenate([best.index for best in groups], axis=1),
    )


def instance(
    shape: KnnShape,
    operands: tuple[np.ndarray, np.ndarray],
    chip: Chip,
    *,
    method: str = "selb",
    cores: int | None = None,
    data: bool = True,
) -> KernelInstance:
    """Return the program of a search with its results.

    The views "best" and "index" are (k, queries).

    Parameters
    ----------
    operands : (queries, d) and (train, d) ndarray of float16
        Those of ``operands.prepared``.
    cores : int, optional
        By default all cores of the chip.
    data : bool
        If False, the program has no data.
    """
    sizes = "×".join(map(str, (shape.queries, shape.train, shape.features, shape.k)))
    program = build(
        shape, chip, operands, method=method, cores=cores, data=data, name=f"selbknn {sizes}"
    )
    if not data:
        return KernelInstance(program, {})
    tile = largest_tile(shape, chip, method)
    best: list[golden.Best] = []

    def made() -> golden.Best:
        if not best:
            best.append(expected(shape, operands, method, tile))
        return best[0]

    def index(numbers: np.ndarray) -> np.ndarray:
        empty = np.zeros((shape.groups, shape.k, GROUP), np.float16)
        return result({"best": empty, "index": numbers}, shape).index

    def distances(values: np.ndarray) -> np.ndarray:
        empty = np.zeros((shape.groups, shape.words, shape.k, GROUP), np.uint16)
        return result({"best": values, "index": empty}, shape).distances

    contents: dict[str, Callable[[], np.ndarray]] = {
        "best": lambda: made().distances,
        "index": lambda: made().index,
    }
    return KernelInstance(program, contents, {"best": distances, "index": index})


def needs(shape: KnnShape, chip: Chip, method: str = "selb") -> SimulationCost:
    """Return the most that the simulation of a search may cost.

    The early exit usually saves most of the instructions of a search with many tiles. Their
    expected number is used: a step of tile t is needed with a probability of about k / t for
    each of the queries of a group (Tang 2024, eq. 3.8).
    """
    tile = largest_tile(shape, chip, method)
    tiles = ceil_div(shape.train, tile)
    deep = ceil_div(shape.features, 16) + 1
    pieces = ceil_div(shape.train, 128) * ceil_div(deep, 8)
    select = METHODS[method].instructions(shape, tile)
    if METHODS[method].leaves:
        # The group returns when its slowest query does: two steps more than the mean, and no more
        # than three times the mean and six.
        steps = sum(min(shape.k, 6 + 3 * shape.k / t) for t in range(1, tiles + 1))
        selected = int(select * steps / shape.k) + 20 * tiles
    else:
        selected = select * tiles
    count = shape.groups * (pieces * _PIECE + selected + _GROUP)
    points = (shape.groups * GROUP + shape.train) * 16 * (deep + 1)
    nbytes = 8 * points + 16 * shape.groups * GROUP * (tile + 8 * shape.k)
    products = 16 * deep * shape.groups * GROUP * (shape.train + 128)
    return SimulationCost(count, nbytes, products)


def _shape(size: tuple[int, ...]) -> KnnShape:
    queries, train, features, k = size
    return KnnShape(queries, train, features, k)


def _make(size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None) -> KernelInstance:
    shape = _shape(size)
    start = _SEED if seed is None else seed
    query = random_points(shape.queries, shape.features, 2 * start)
    train = random_points(shape.train, shape.features, 2 * start + 1)
    operands = prepared(query, train, shape.metric)
    return instance(shape, operands, chip, cores=cores, data=seed is not None)


def _needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    matrix_cores(Program(chip), cores)
    return needs(_shape(size), chip)


KERNELS = (
    Kernel(
        "selbknn",
        "k nearest neighbours by cosine distance: SelB-k-NN",
        ("queries", "train", "features", "k"),
        (32, 1024, 64, 8),
        _make,
        _needs,
    ),
)
