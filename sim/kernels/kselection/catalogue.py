"""The k-selection kernels by name, for random distances."""

from functools import partial

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip, Program
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, SimulationCost, vector_cores
from vitruvian.sim.kernels.kselection.build import (
    METHODS,
    build,
    expected,
    random_distances,
    result,
    tile_of,
)
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape


def _make(
    method: str, size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    queries, train, k = size
    shape = KnnShape(queries, train, 1, k)
    distances = None if seed is None else random_distances(shape, seed)
    program = build(shape, method=method, chip=chip, cores=cores, distances=distances)
    if distances is None:
        return KernelInstance(program, {})
    tile = tile_of(shape, chip, method)

    def neighbours(part: int) -> np.ndarray:
        found = expected(shape, distances, method=method, tile=tile)[part]
        return np.ascontiguousarray(found if part == 0 else found.astype(np.uint32))

    def shown(values: np.ndarray) -> np.ndarray:
        numbers = np.zeros((shape.groups, shape.words, k, GROUP), np.uint16)
        return np.ascontiguousarray(result(shape, values, numbers)[0])

    def number(numbers: np.ndarray) -> np.ndarray:
        values = np.zeros((shape.groups, k, GROUP), np.float16)
        return np.ascontiguousarray(result(shape, values, numbers)[1].astype(np.uint32))

    return KernelInstance(
        program,
        {"values": lambda: neighbours(0), "numbers": lambda: neighbours(1)},
        {"values": shown, "numbers": number},
    )


def _needs(method: str, size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    queries, train, k = size
    shape = KnnShape(queries, train, 1, k)
    vector_cores(Program(chip), cores)
    tile = tile_of(shape, chip, method)
    tiles = shape.groups * ceil_div(train, tile)
    each = METHODS[method].instructions(shape, tile)
    return SimulationCost(tiles * (each + 8) + 64, 2 * GROUP * shape.groups * (train + 4 * k))


KERNELS = tuple(
    Kernel(
        f"kselect-{method}",
        title,
        ("queries", "train", "k"),
        default,
        partial(_make, method),
        partial(_needs, method),
    )
    for method, title, default in (
        ("bitonic", "k smallest distances by a bitonic network on the vector unit", (16, 512, 8)),
        ("heap", "k smallest distances by heaps on the scalar unit", (4, 256, 4)),
    )
)
