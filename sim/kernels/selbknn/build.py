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
from vitruvian.sim.davinci.isa.operands import FRACTAL_BYTES
from vitruvian.sim.kernels.kernel import complete_kind, cores_of, products_need_barrier
from vitruvian.sim.kernels.kselection import Bitonic, Heap
from vitruvian.sim.kernels.kselection.golden import bitonic_select, heap_select
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape, Selector
from vitruvian.sim.kernels.layout import pack_a
from vitruvian.sim.kernels.ring import Ring, close_rings, open_rings, together
from vitruvian.sim.kernels.selbknn.golden import (
    VARIANTS,
    Best,
    SelectionVariant,
    distances,
    k_selection,
)
from vitruvian.sim.kernels.selbknn.indexing import MOST, PER_REPEAT
from vitruvian.sim.kernels.selbknn.select import SelB

V, M, MTE1, MTE2, MTE3 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3

#: Training points of a piece, and most blocks of 16 features: a slot, half of L0B.
_PIECE, _DEEP = 128, 8


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
        If the chip has no cores with all units, or not even 128 points fit with k neighbours.
    """
    buffers = complete_kind(chip).buffers
    room, sums = buffers["UB"].nbytes, buffers["L0C"].nbytes
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
    some = cores_of(program, cores)
    query, train = (pack_a(x) for x in operands)
    deep = query.shape[1]
    x = program.tensor("query", query.shape, "fp16", query if data else None)
    y = program.tensor("train", train.shape, "fp16", train if data else None)
    ends = program.tensor("best", (shape.groups, shape.k, GROUP), "fp16")
    numbers = program.tensor("index", (shape.groups, shape.words, shape.k, GROUP), "uint16")
    for number, core in enumerate(some):
        groups = range(number, shape.groups, len(some))
        if groups:
            search = _Search(core, shape, METHODS[method], tile, deep, (x, y, ends, numbers))
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
    """The emitter of the instructions of one core."""

    def __init__(
        self,
        core: Core,
        shape: KnnShape,
        method: SelectionMethod,
        tile: int,
        deep: int,
        tensors: tuple[View, View, View, View],
    ) -> None:
        self.core, self.shape, self.tile, self.deep = core, shape, tile, deep
        self.x, self.y, self.ends, self.numbers = tensors
        depth = min(deep, _DEEP)
        fractal = (16, 16)
        self.l1_x = core.allocate("L1", (deep, *fractal), "fp16", "queries in L1")
        self.l1_y = core.allocate("L1", (2, depth * _PIECE // 16, *fractal), "fp16", "points in L1")
        self.sums = core.allocate("L0C", (tile // 16, *fractal), "fp32", "products")
        self.products = core.allocate("UB", (tile // 16, *fractal), "fp16", "distances")
        self.selector = method.make(core, shape, tile)
        # The product of columns is transposed, so its operands change their places.
        left, right = ("L0B", "L0A") if self.selector.columns else ("L0A", "L0B")
        self.l0_x = core.allocate(left, (2, depth, *fractal), "fp16", "queries")
        self.l0_y = core.allocate(right, (2, depth * _PIECE // 16, *fractal), "fp16", "points")
        self.points_in_l1 = Ring(core, MTE2, MTE1, start=False)
        self.pieces_in_l0 = Ring(core, MTE1, M, start=False)
        open_rings(self.points_in_l1, self.pieces_in_l0)
        self.tiles = Ring(core, M, V, 1)
        self.queries_in_l1 = Ring(core, MTE2, MTE1, 1, first=2)
        self.results = Ring(core, V, MTE3, 1)

    def close(self) -> None:
        """Wait until all places are free, so that no flag stays set."""
        close_rings(self.points_in_l1, self.pieces_in_l0)
        for ring in (self.tiles, self.queries_in_l1, self.results):
            ring.close()

    def group(self, group: int, operands: tuple[np.ndarray, np.ndarray]) -> None:
        """Emit the search of a group of queries."""
        shape, selector = self.shape, self.selector
        rows = slice(group * GROUP, min((group + 1) * GROUP, shape.queries))
        # The selection is emitted for these distances, so that the emitter computes them itself.
        query = np.zeros((GROUP, operands[0].shape[1]), np.float16)
        query[: rows.stop - rows.start] = operands[0][rows]
        with self.queries_in_l1.write():
            self.core.copy(self.l1_x, self.x[group])
        loading, selecting = self.queries_in_l1.read(), self.results.write()
        loading.begin()
        selecting.begin()
        selector.begin(rows.stop - rows.start)
        firsts = range(0, shape.train, self.tile)
        # One tile ahead: the Cube multiplies while V selects in the tile before.
        self._multiply(0)
        for first in firsts:
            count = min(self.tile, shape.train - first)
            # The products leave L0C before the next ones are computed into the same place.
            place = self._receive(first)
            if first + self.tile < shape.train:
                self._multiply(first + self.tile)
            self._fill(place, count)
            values = np.full((GROUP, self._padded(first)), np.float16(np.inf))
            values[:, :count] = distances(query, operands[1][first : first + count])
            selector.select(place, first, values)
        # All products of the group are issued, so MTE1 has read its queries.
        loading.end()
        selecting.end()
        self._write(group)

    def _padded(self, first: int) -> int:
        """Return the training points of a tile with those that fill the last repeat."""
        count = min(self.tile, self.shape.train - first)
        return round_up(count, PER_REPEAT)

    def _multiply(self, first: int) -> None:
        """Emit the products of a tile into L0C."""
        with self.tiles.write():
            for at in range(0, self._padded(first), _PIECE):
                # The last piece may have fewer fractals than a slot in global memory.
                start = (first + at) // 16
                blocks = min(_PIECE // 16, self.y.shape[0] - start)
                for piece in range(0, self.deep, _DEEP):
                    depth = min(_DEEP, self.deep - piece)
                    self._piece(start, blocks, piece, depth, self.sums[at // 16 :])

    def _piece(self, start: int, blocks: int, piece: int, depth: int, out: View) -> None:
        """Emit the product of some blocks of training points and some blocks of features."""
        core, columns = self.core, self.selector.columns
        count = blocks * depth
        with self.points_in_l1.write() as slot:
            l1 = self.l1_y[slot, :count]
            part = self.y[start : start + blocks, piece : piece + depth]
            core.copy(l1.reshape(blocks, depth, 16, 16), part)
        with together(self.points_in_l1.read(), self.pieces_in_l0.write()) as (_, slot):
            queries, points = self.l0_x[slot, :depth], self.l0_y[slot, :count]
            core.load(queries, self.l1_x[piece : piece + depth])
            if columns:
                core.load(points, l1)
            else:
                # L0B has the blocks of features outside, L1 those of training points.
                for row in range(depth):
                    core.load(
                        points[row * blocks : (row + 1) * blocks],
                        l1[row:],
                        src_stride=depth * FRACTAL_BYTES,
                    )
        with self.pieces_in_l0.read():
            # All pieces of features add to the same sums.
            if piece and products_need_barrier(1, blocks):
                core.pipe_barrier(M)
            init = "accumulate" if piece else "zero"
            if columns:
                core.mmad(out, points, queries, m=16 * blocks, k=16 * depth, n=16, init=init)
            else:
                core.mmad(out, queries, points, m=16, k=16 * depth, n=16 * blocks, init=init)

    def _receive(self, first: int) -> View:
        """Emit the move of the products of a tile to the Unified Buffer, and return their place."""
        core = self.core
        blocks = min(self._padded(first) // 16, self.y.shape[0] - first // 16)
        with self.tiles.read():
            if self.selector.columns:
                core.matrix_out(self.products, self.sums, m=16 * blocks, n=16)
            else:
                core.matrix_out(self.products, self.sums, m=16, n=16 * blocks)
        core.pipe_barrier(V)
        place = self.products[: self._padded(first) // 16]
        return place.reshape(place.shape[0] * 16, 16) if self.selector.columns else place

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
