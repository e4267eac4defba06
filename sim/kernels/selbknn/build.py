"""Programs that search for nearest neighbours: a core takes a group of 16 queries at a time.

For each tile of training points, MTE2 loads pieces of the operands to L1, MTE1 to L0A and L0B,
the Cube multiplies them into L0C, and the vector unit moves the FP16 products to the Unified Buffer
and selects. The products of a tile are computed while the vector unit selects in the tile before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import round_up
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View
from vitruvian.sim.kernels.exits import Handover
from vitruvian.sim.kernels.kernel import is_split, matrix_cores, matrix_kind, vector_kind
from vitruvian.sim.kernels.kselection import Bitonic, Heap
from vitruvian.sim.kernels.kselection.golden import bitonic_select, heap_select
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape, Selector
from vitruvian.sim.kernels.layout import pack_a
from vitruvian.sim.kernels.ring import Ring
from vitruvian.sim.kernels.selbknn.golden import (
    VARIANTS,
    Best,
    SelectionVariant,
    distances,
    k_selection,
)
from vitruvian.sim.kernels.selbknn.indexing import MOST, PER_REPEAT
from vitruvian.sim.kernels.selbknn.products import KnnProducts
from vitruvian.sim.kernels.selbknn.select import SelB

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3


@dataclass(frozen=True)
class SelectionMethod:
    """A k-selection.

    Attributes
    ----------
    make : callable
        Returns the ``Selector`` for a core, a shape and the most training points of a tile.
    scratch_bytes : callable
        Returns the bytes of the Unified Buffer of a selector for a shape and such a number.
    instructions : callable
        Returns the most instructions of ``Selector.select`` for a shape and such a number.
    golden : callable
        Returns the results after a tile: of its distances (queries, n), the results before it, and
        the number of its first training point.
    leaves : bool
        True if a selection may end early.
    """

    make: Callable[[Core, KnnShape, int], Selector]
    scratch_bytes: Callable[[KnnShape, int], int]
    instructions: Callable[[KnnShape, int], int]
    golden: Callable[[np.ndarray, Best, int], Best]
    leaves: bool = False


def _selb(variant: SelectionVariant) -> SelectionMethod:
    def golden(tile: np.ndarray, best: Best, first: int) -> Best:
        k_selection(tile, best, first=first, variant=variant)
        return best

    return SelectionMethod(
        lambda core, shape, n: SelB(core, shape, n, variant),
        lambda shape, n: SelB.scratch_bytes(shape, n, variant),
        lambda shape, n: SelB.instructions(shape, n, variant),
        golden,
        variant.leave,
    )


def _baseline(
    method: type[Bitonic] | type[Heap], select: Callable[..., tuple[np.ndarray, np.ndarray]]
) -> SelectionMethod:
    def golden(tile: np.ndarray, best: Best, first: int) -> Best:
        return Best(*select(best.distances, best.index, tile, first))

    return SelectionMethod(method, method.scratch_bytes, method.instructions, golden)


#: The k-selections by name.
METHODS: Mapping[str, SelectionMethod] = {
    **{name: _selb(variant) for name, variant in VARIANTS.items()},
    "bitonic": _baseline(Bitonic, bitonic_select),
    "heap": _baseline(Heap, heap_select),
}


def largest_tile(shape: KnnShape, chip: Chip, method: str = "selb") -> int:
    """Return the most training points of a tile, a multiple of 128.

    Parameters
    ----------
    method : str
        A key of ``METHODS``.

    Raises
    ------
    ValueError
        If the chip has no such cores, or not even 128 points fit with k neighbours.
    """
    vector = vector_kind(chip)
    lanes = vector.per_group if is_split(chip) else 1
    room = vector.buffers["UB"].nbytes
    sums = matrix_kind(chip).buffers["L0C"].nbytes // lanes
    needed = round_up(shape.train, PER_REPEAT)
    # The products of a tile must fit L0C in FP32 and, with the selector's memory, UB in FP16.
    for n in range(min(MOST, sums // (4 * GROUP), needed), 0, -PER_REPEAT):
        if _fits(shape, n, method, room):
            return n
    # The results and the levels of a selection take more with every neighbour.
    low, high = 0, shape.k
    while low < high:
        middle = (low + high + 1) // 2
        smaller = KnnShape(shape.queries, shape.train, shape.features, middle, shape.metric)
        low, high = (
            (middle, high) if _fits(smaller, PER_REPEAT, method, room) else (low, middle - 1)
        )
    raise UserError(f"k must be at most {low} for {method} on {chip.name}, not {shape.k}")


def _fits(shape: KnnShape, n: int, method: str, room: int) -> bool:
    return 2 * GROUP * n + METHODS[method].scratch_bytes(shape, n) + _SLACK <= room


#: Bytes that tensors of the Unified Buffer may lose to alignment.
_SLACK = 1024


def build(
    shape: KnnShape,
    chip: Chip,
    operands: tuple[np.ndarray, np.ndarray],
    *,
    method: str = "selb",
    cores: int | None = None,
    tile: int | None = None,
    data: bool = True,
    name: str = "",
) -> Program:
    """Build the search for the k nearest training points of each query.

    Parameters
    ----------
    operands : (queries, d) and (train, d) ndarray of float16
        Those of ``operands.prepared``. The instructions of SelB-k-NN depend on them.
    method : str
        A key of ``METHODS``.
    cores : int, optional
        By default all cores of the chip.
    tile : int, optional
        Training points of a tile, a multiple of 128; by default as many as fit.
    data : bool
        If False, the program has no data, so that only its time can be computed.
    name : str
        Name in reports.

    Returns
    -------
    Program
        ``result`` reads its tensors "best" (the products) and "index".

    Raises
    ------
    ValueError
        If the chip has no such cores, or the tile does not fit.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    largest = largest_tile(shape, chip, method)
    tile = largest if tile is None else tile
    if not 1 <= tile <= largest or tile % PER_REPEAT:
        raise ValueError(f"tile must be a multiple of {PER_REPEAT} up to {largest}, not {tile!r}")
    program = Program(chip, name or f"{shape.k} nearest neighbours, {method}")
    query, train = (pack_a(x) for x in operands)
    x = program.tensor("query", query.shape, "fp16", query if data else None)
    y = program.tensor("train", train.shape, "fp16", train if data else None)
    ends = program.tensor("best", (shape.groups, shape.k, GROUP), "fp16")
    numbers = program.tensor("index", (shape.groups, shape.words, shape.k, GROUP), "uint16")
    tensors = x, y, ends, numbers
    if is_split(chip):
        _on_split_cores(program, shape, METHODS[method], tile, operands, tensors, cores)
        return program
    some = matrix_cores(program, cores)
    for number, core in enumerate(some):
        groups = range(number, shape.groups, len(some))
        if groups:
            search = _Search(core, shape, METHODS[method], tile, tensors)
            for group in groups:
                search.group(group, operands)
            search.close()
    return program


def result(outputs: Mapping[str, np.ndarray], shape: KnnShape) -> Best:
    """Return the results of a program of ``build``.

    Parameters
    ----------
    outputs : mapping of str to ndarray
        The tensors "best" and "index".
    """
    best = outputs["best"].transpose(1, 0, 2).reshape(shape.k, -1)[:, : shape.queries]
    words = outputs["index"].astype(np.int64).transpose(1, 2, 0, 3)
    words = words.reshape(shape.words, shape.k, -1)[:, :, : shape.queries]
    # A number that does not fit 16 bits has a second word.
    index = words[0] if shape.words == 1 else words[0] | words[1] << 16
    return Best(np.ascontiguousarray(best), np.ascontiguousarray(index))


class _Search:
    """The emitter of the selection of one core, whose Cube computes the products."""

    def __init__(
        self,
        core: Core,
        shape: KnnShape,
        method: SelectionMethod,
        tile: int,
        tensors: tuple[View, View, View, View],
    ) -> None:
        self.core, self.shape, self.tile = core, shape, tile
        x, y, self.ends, self.numbers = tensors
        self.products = core.allocate("UB", (tile // 16, 16, 16), "fp16", "distances")
        self.selector = method.make(core, shape, tile)
        self._begin((x, y))
        self.results = Ring(core, V, MTE3, 1)

    def _begin(self, points: tuple[View, View]) -> None:
        """Emit what precedes all groups of queries; the operands of the products are given."""
        columns = self.selector.columns
        self.cube = KnnProducts(self.core, self.shape, self.tile, columns, points)

    def close(self) -> None:
        """Wait until all places are free, so that no flag stays set."""
        self.cube.close()
        self.results.close()

    def group(self, group: int, operands: tuple[np.ndarray, np.ndarray]) -> None:
        """Emit the search of a group of queries."""
        shape, selector = self.shape, self.selector
        rows = slice(group * GROUP, min((group + 1) * GROUP, shape.queries))
        # The selection is emitted for these distances, so that the emitter computes them itself.
        query = np.zeros((GROUP, operands[0].shape[1]), np.float16)
        query[: rows.stop - rows.start] = operands[0][rows]
        self._queries(group)
        selecting = self.results.write()
        selecting.begin()
        selector.begin(rows.stop - rows.start)
        for first in range(0, shape.train, self.tile):
            count = min(self.tile, shape.train - first)
            place = self._receive(first)
            self._fill(place, count)
            values = np.full((GROUP, self._padded(first)), np.float16(np.inf))
            values[:, :count] = distances(query, operands[1][first : first + count])
            selector.select(place, first, values)
            self._selected()
        self._queries_end()
        selecting.end()
        self._write(group)

    def _padded(self, first: int) -> int:
        """Return the training points of a tile with those that fill the last repeat."""
        return round_up(min(self.tile, self.shape.train - first), PER_REPEAT)

    def _place(self, first: int) -> View:
        """Return the place of the products of a tile in the layout of the selector."""
        place = self.products[: self._padded(first) // 16]
        return place.reshape(place.shape[0] * 16, 16) if self.selector.columns else place

    def _queries(self, group: int) -> None:
        """Emit the load of the queries and the products of the first tile."""
        self.cube.begin([group])
        # One tile ahead: the Cube multiplies while V selects in the tile before.
        self.cube.multiply(0)

    def _queries_end(self) -> None:
        self.cube.end()

    def _receive(self, first: int) -> View:
        """Emit the move of the products of a tile to the Unified Buffer, and return their place."""
        # The products leave L0C before the next ones are computed into the same place.
        self.cube.move([self.products], first)
        self.core.pipe_barrier(V)
        if first + self.tile < self.shape.train:
            self.cube.multiply(first + self.tile)
        return self._place(first)

    def _selected(self) -> None:
        """Emit what follows the selection in a tile."""

    def _fill(self, place: View, count: int) -> None:
        """Emit +∞ as the distances of training points that do not exist."""
        core = self.core
        blocks = place.reshape(place.size // 256, 16, 16)
        whole, part = divmod(count, 16)
        if self.selector.columns:
            rest = place.reshape(place.size)[16 * count :]
            if rest.size:
                core.vdup(rest, np.inf)
                core.pipe_barrier(V)
            return
        if part:
            # A repeat covers 8 rows of 16 lanes; the lanes from ``part`` on are points that do not
            # exist.
            lanes = ((1 << 16) - (1 << part)) * sum(1 << 16 * i for i in range(8))
            core.vdup(blocks[whole].reshape(256), np.inf, repeat=2, mask=lanes)
            whole += 1
        if whole < blocks.shape[0]:
            core.vdup(blocks[whole:].reshape(256 * (blocks.shape[0] - whole)), np.inf)
        if part or whole < blocks.shape[0]:
            core.pipe_barrier(V)

    def _write(self, group: int) -> None:
        """Emit the move of the results of a group to global memory."""
        with self.results.read():
            self.core.copy(self.ends[group], self.selector.best)
            self.core.copy(self.numbers[group], self.selector.index)


class _VectorSearch(_Search):
    """The emitter of the selection of a vector core, whose products are in global memory.

    Parameters
    ----------
    lane : int
        Number of the core in its group, and of its part of the products.
    space : View
        (slots, lanes, tile / 16, 16, 16).
    """

    def __init__(
        self,
        core: Core,
        shape: KnnShape,
        method: SelectionMethod,
        tile: int,
        tensors: tuple[View, View, View, View],
        handover: Handover,
        lane: int,
        space: View,
    ) -> None:
        self.handover, self.lane, self.space = handover, lane, space
        self.number = 0  # of the tile
        super().__init__(core, shape, method, tile, tensors)

    def _begin(self, points: tuple[View, View]) -> None:
        self.blocks = points[1].shape[0]
        self.loads = Ring(self.core, MTE2, V, 1)

    def close(self) -> None:
        """Wait until all places are free, so that no flag stays set."""
        self.loads.close()
        self.results.close()

    def pause(self) -> None:
        """Emit the flags of a round in which the core has no group."""
        for _ in range(0, self.shape.train, self.tile):
            with self.handover.take(self.core, self.number):
                self.number += 1

    def _queries(self, group: int) -> None: ...

    def _queries_end(self) -> None: ...

    def _receive(self, first: int) -> View:
        blocks = min(self._padded(first) // 16, self.blocks - first // 16)
        with self.loads.write(), self.handover.take(self.core, self.number) as slot:
            self.core.copy(self.products[:blocks], self.space[slot, self.lane, :blocks])
        self.number += 1
        self.loads.read().begin()
        return self._place(first)

    def _selected(self) -> None:
        self.loads.read().end()


def _on_split_cores(
    program: Program,
    shape: KnnShape,
    method: SelectionMethod,
    tile: int,
    operands: tuple[np.ndarray, np.ndarray],
    tensors: tuple[View, View, View, View],
    cores: int | None,
) -> None:
    """Emit a search on Cube cores and their vector cores, each of which has a group of queries."""
    vector = vector_kind(program.chip)
    lanes, some = vector.per_group, matrix_cores(program, cores)
    turns = [
        range(first, min(first + lanes, shape.groups)) for first in range(0, shape.groups, lanes)
    ]
    tiles = range(0, shape.train, tile)
    for number, core in enumerate(some[: len(turns)]):
        rounds = turns[number :: len(some)]
        size = (2, lanes, tile // 16, 16, 16)
        space = program.tensor(f"products{number}", size, "fp16")
        handover = Handover(len(rounds) * len(tiles))
        vectors = [
            _VectorSearch(
                program.core(number * lanes + lane, vector.name),
                shape,
                method,
                tile,
                tensors,
                handover,
                lane,
                space,
            )
            for lane in range(lanes)
        ]
        columns = vectors[0].selector.columns
        cube = KnnProducts(core, shape, tile, columns, tensors[:2], lanes)
        sent = 0
        for groups in rounds:
            cube.begin(groups)
            for first in tiles:
                cube.multiply(first)
                with handover.give(core, sent) as slot:
                    cube.move([space[slot, lane] for lane in range(len(groups))], first)
                sent += 1
            cube.end()
            for lane, search in enumerate(vectors):
                if lane < len(groups):
                    search.group(groups[lane], operands)
                else:
                    search.pause()
        cube.close()
        for search in vectors:
            search.close()
