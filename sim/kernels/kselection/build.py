"""Programs that select the nearest neighbours from distances in global memory.

A core takes one group of 16 queries after another. Tiles of distances come on MTE2, in the layout
that the method asks for; a tile is loaded while the one before is searched.
"""

from typing import Protocol

import numpy as np

from vitruvian.common.validate import one_of, round_up
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.kernels.kernel import vector_cores, vector_kind
from vitruvian.sim.kernels.kselection.bitonic import Bitonic
from vitruvian.sim.kernels.kselection.golden import (
    bitonic_select,
    check_distances,
    heap_select,
    start,
)
from vitruvian.sim.kernels.kselection.heap import Heap
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape, Selector
from vitruvian.sim.kernels.ring import Ring, uses_of

#: The methods by name, and the golden functions of their names.
METHODS = {"bitonic": Bitonic, "heap": Heap}
_GOLDEN = {"bitonic": bitonic_select, "heap": heap_select}

#: Training points that tiles are a multiple of.
_UNIT = 128

#: The seed of the distances that decide the branches of a program without data.
_SEED = 0


class _Method(Protocol):
    """The properties of a method besides ``Selector``."""

    def __call__(self, core: Core, shape: KnnShape, n: int) -> Selector: ...

    def scratch_bytes(self, shape: KnnShape, n: int) -> int: ...


def tile_of(shape: KnnShape, chip: Chip, method: str) -> int:
    """Return the training points of a tile: all of them, or as many as fit the Unified Buffer.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.

    Raises
    ------
    ValueError
        If not even 128 points fit.
    """
    one_of("method", method, METHODS)
    room = vector_kind(chip).buffers["UB"].nbytes
    made = METHODS[method]
    n = round_up(shape.train, _UNIT)
    while n >= _UNIT:
        if 2 * 2 * GROUP * n + made.scratch_bytes(shape, n) <= room and n <= 1 << 16:
            return n
        n = (n - 1) // _UNIT * _UNIT if n <= 16 * _UNIT else n // 2 // _UNIT * _UNIT
    raise ValueError(f"k of {method} must leave room for {_UNIT} points in UB, not {shape.k}")


def build(
    shape: KnnShape,
    *,
    method: str,
    chip: Chip | str = "ascend310",
    cores: int | None = None,
    tile: int | None = None,
    distances: np.ndarray | None = None,
) -> Program:
    """Build a program that finds the k smallest distances of each query.

    Parameters
    ----------
    shape : KnnShape
        Its numbers of features and its metric do not matter.
    method : {"bitonic", "heap"}
    chip : Chip or str
        A chip with vector cores, or whose cores have all units.
    cores : int, optional
        By default, all cores of the chip.
    tile : int, optional
        Training points of a tile, a multiple of 128; by default as many as fit.
    distances : (queries, train) ndarray of float16, optional
        Without them, only times can be computed; those of "heap" are then the times for random
        distances, since its branches depend on them.

    Returns
    -------
    Program
        Its tensors are d, the distances in the layout of the method, and values
        (groups, k, 16) and numbers (groups, words, k, 16), which ``result`` converts.

    Raises
    ------
    ValueError
        If an argument is not allowed, or a distance is NaN or infinite.
    """
    one_of("method", method, METHODS)
    chip = load_chip(chip) if isinstance(chip, str) else chip
    program = Program(chip, f"{method} {shape.queries}×{shape.train}, k {shape.k}")
    some = vector_cores(program, cores)
    n = tile_of(shape, chip, method) if tile is None else tile
    if n % _UNIT or not 0 < n <= 1 << 16:
        raise ValueError(f"tile must be a multiple of {_UNIT} up to {1 << 16}, not {n!r}")
    made = METHODS[method]
    total = round_up(shape.train, _UNIT)
    chosen = random_distances(shape, _SEED) if distances is None else distances
    padded = _padded(shape, chosen, total)
    if made.columns:
        size = (shape.groups, total, GROUP)
        data = padded.reshape(shape.groups, GROUP, total).swapaxes(1, 2)
    else:
        size = (shape.groups, total // GROUP, GROUP, GROUP)
        data = padded.reshape(shape.groups, GROUP, total // GROUP, GROUP).swapaxes(1, 2)
    d = program.tensor("d", size, "fp16", None if distances is None else np.ascontiguousarray(data))
    values = program.tensor("values", (shape.groups, shape.k, GROUP), "fp16")
    numbers = program.tensor("numbers", (shape.groups, shape.words, shape.k, GROUP), "uint16")
    for number, core in enumerate(some[: shape.groups]):
        groups = range(number, shape.groups, len(some))
        _emit(core, shape, made, n, total, groups, (d, values, numbers), padded)
    return program


def random_distances(shape: KnnShape, seed: int) -> np.ndarray:
    """Return (queries, train) random distances of a seed in FP16."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(shape.queries, shape.train)).astype(np.float16)


def _padded(shape: KnnShape, distances: np.ndarray, total: int) -> np.ndarray:
    """Return distances of whole groups and tiles; points that do not exist are at +∞."""
    check_distances(distances)
    if distances.shape != (shape.queries, shape.train):
        allowed, shown = f"{shape.queries}×{shape.train}", "×".join(map(str, distances.shape))
        raise ValueError(f"distances must be {allowed}, not {shown}")
    padded = np.full((GROUP * shape.groups, total), np.inf, np.float16)
    padded[: shape.queries, : shape.train] = distances
    return padded


def _emit(
    core: Core,
    shape: KnnShape,
    made: _Method,
    n: int,
    total: int,
    groups: range,
    tensors: tuple[View, View, View],
    padded: np.ndarray,
) -> None:
    """Emit the program of one core."""
    d, values, numbers = tensors
    axes = d.shape[2:]
    per = 1 if len(axes) == 1 else GROUP  # training points of a row of the tensor
    slots = core.allocate("UB", (2, n // per, *axes), "fp16", "distances")
    selector = made(core, shape, n)
    tiles = [(group, at) for group in groups for at in range(0, total, n)]
    loads = Ring(core, Unit.MTE2, Unit.V, plan=uses_of(tiles, 2))
    results = Ring(core, Unit.V, Unit.MTE3, plan=uses_of(groups, 1))

    def load(group: int, at: int) -> None:
        rows = min(n, total - at) // per
        with loads.write() as slot:
            core.copy(slots[slot, :rows], d[group, at // per : at // per + rows])

    load(*tiles[0])
    selecting = results.write()
    for index, (group, at) in enumerate(tiles):
        # The next tile is loaded while this one is searched.
        if index + 1 < len(tiles):
            load(*tiles[index + 1])
        if at == 0:
            selecting.begin()
            selector.begin(min(GROUP, shape.queries - GROUP * group))
        rows = min(n, total - at) // per
        own = padded[GROUP * group : GROUP * (group + 1), at : at + rows * per]
        with loads.read() as slot:
            selector.select(slots[slot, :rows], at, own)
        if at + n >= total:
            selecting.end()
            with results.read():
                core.copy(values[group], selector.best)
                core.copy(numbers[group], selector.index)
            if index + 1 < len(tiles):
                selecting = results.write()


def result(
    shape: KnnShape, values: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the tensors of a program as (queries, k) distances and numbers, in the same order."""
    wide = numbers.astype(np.int64)
    number = sum(wide[:, word] << 16 * word for word in range(shape.words))
    found, order = (
        x.swapaxes(1, 2).reshape(-1, shape.k)[: shape.queries] for x in (values, np.asarray(number))
    )
    return found, order


def expected(
    shape: KnnShape, distances: np.ndarray, *, method: str, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the (queries, k) distances and numbers that the program of a method computes.

    Parameters
    ----------
    distances : (queries, train) ndarray of float16
    method : str
        A key of ``METHODS``.
    tile : int
        Training points of a tile; the order of equal distances depends on it.
    """
    total = round_up(shape.train, _UNIT)
    padded = _padded(shape, distances, total)[: shape.queries]
    best, index = start(shape.k, shape.queries)
    for at in range(0, total, tile):
        best, index = _GOLDEN[method](best, index, padded[:, at : at + tile], at)
    return best.T, index.T
