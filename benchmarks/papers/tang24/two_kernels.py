"""A search for nearest neighbours in two kernels, as Tang 2024 measures it.

The thesis takes the distances from a matrix product of the vendor's library, and times both kernels
(§3.5). So each search has two launches, and the distances go through global memory. The product
here is ``kernels.matmul``. A selection that does not leave early is our reading of the thesis: its
k-selection without any work takes 0.1516 ms, of which branches are 48 % (§3.5.1).

References
----------
Tang 2024, §3.5 and §3.5.1.
"""

from collections.abc import Mapping

import numpy as np

from vitruvian.sim.davinci import Chip, Program, Unit, simulate
from vitruvian.sim.kernels import matmul
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape, Selector
from vitruvian.sim.kernels.ring import Ring, uses_of
from vitruvian.sim.kernels.selbknn.build import METHODS, largest_tile
from vitruvian.sim.kernels.selbknn.golden import SelectionVariant
from vitruvian.sim.kernels.selbknn.select import SelB

#: The variants of the thesis without an early exit, by name.
STAYING: Mapping[str, SelectionVariant] = {
    "selb": SelectionVariant(leave=False),
    "selb-soft-index": SelectionVariant(index=False, leave=False),
    "selb-soft-compare": SelectionVariant(compare=False, leave=False),
}


def selection(
    shape: KnnShape, distances: np.ndarray, method: str, chip: Chip, tile: int | None = None
) -> Program:
    """Build the kernel that selects from distances in global memory.

    Parameters
    ----------
    distances : (queries, train) ndarray of float16
        The training points are a multiple of 128.
    method : str
        A key of ``STAYING`` or "bitonic".
    tile : int, optional
        Training points of a tile; by default as many as fit.

    Returns
    -------
    Program
        Its tensors are d, values (groups, k, 16) and numbers (groups, words, k, 16).
    """
    variant = STAYING.get(method)
    n = tile or largest_tile(shape, chip, "selb-stay" if variant else method)
    program = Program(chip, f"{method} alone")
    padded = np.full((GROUP * shape.groups, shape.train), np.inf, np.float16)
    padded[: shape.queries] = distances
    data = padded.reshape(shape.groups, GROUP, -1)
    columns = variant is None and METHODS[method].make(program.core(), shape, n).columns
    program = Program(chip, f"{method} alone")
    if columns:
        data = data.swapaxes(1, 2)
    else:
        data = data.reshape(shape.groups, GROUP, -1, GROUP).swapaxes(1, 2)
    d = program.tensor("d", data.shape, "fp16", np.ascontiguousarray(data))
    values = program.tensor("values", (shape.groups, shape.k, GROUP), "fp16")
    numbers = program.tensor("numbers", (shape.groups, shape.words, shape.k, GROUP), "uint16")
    cores = chip.kind().count
    for number in range(min(cores, shape.groups)):
        core, per = program.core(number), 1 if columns else GROUP
        slot = core.allocate("UB", (n // per, *d.shape[2:]), "fp16", "distances")
        selector: Selector = (
            SelB(core, shape, n, variant) if variant else METHODS[method].make(core, shape, n)
        )
        groups = range(number, shape.groups, cores)
        tiles = [(group, at) for group in groups for at in range(0, shape.train, n)]
        loads = Ring(core, Unit.MTE2, Unit.V, plan=uses_of(tiles, 1))
        results = Ring(core, Unit.V, Unit.MTE3, plan=uses_of(groups, 1))
        for group, at in tiles:
            rows = min(n, shape.train - at)
            with loads.write():
                core.copy(slot[: rows // per], d[group, at // per : (at + rows) // per])
            if at == 0:
                selecting = results.write()
                selecting.begin()
                selector.begin(min(GROUP, shape.queries - GROUP * group))
            own = padded[GROUP * group : GROUP * (group + 1), at : at + rows]
            with loads.read():
                selector.select(slot[: rows // per], at, own)
            if at + rows == shape.train:
                selecting.end()
                with results.read():
                    core.copy(values[group], selector.best)
                    core.copy(numbers[group], selector.index)
    return program


def distances_seconds(shape: KnnShape, chip: Chip) -> float:
    """Return the time of the kernel that computes the distances, with its launch."""
    program = matmul.build(shape.queries, shape.features, shape.train, chip=chip)
    return simulate(program, cube=None, checks=False).total_s


def selection_seconds(shape: KnnShape, distances: np.ndarray, method: str, chip: Chip) -> float:
    """Return the time of the kernel that selects, with its launch."""
    program = selection(shape, distances, method, chip)
    return simulate(program, cube=None, checks=False).total_s
