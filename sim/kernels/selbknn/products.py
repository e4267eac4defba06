"""The Cube's part of a search: the products of queries and training points, tile by tile."""

from collections.abc import Sequence

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.davinci.isa.operands import FRACTAL_BYTES
from vitruvian.sim.kernels.kernel import products_need_barrier
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.ring import Ring, close_rings, open_rings, together
from vitruvian.sim.kernels.selbknn.indexing import PER_REPEAT

V, M, MTE1, MTE2, FIX = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.FIX

#: Training points of a piece, and most blocks of 16 features: a slot, half of L0B.
_PIECE, _DEEP = 128, 8


class KnnProducts:
    """The emitter of the products of one core.

    Parameters
    ----------
    tile : int
        Training points of a tile.
    columns : bool
        The layout of the products, see ``shape.Selector``.
    tensors : (View, View)
        The queries and the training points in global memory, as fractals.
    lanes : int
        Groups of queries that are multiplied by the same points: a vector core takes one of them.

    Attributes
    ----------
    sums : View
        (lanes, tile / 16, 16, 16) in L0C.
    tiles : Ring
        The flags of ``sums``: V or FIX reads them.
    """

    def __init__(
        self,
        core: Core,
        shape: KnnShape,
        tile: int,
        columns: bool,
        tensors: tuple[View, View],
        lanes: int = 1,
    ) -> None:
        self.core, self.shape, self.tile, self.columns = core, shape, tile, columns
        self.x, self.y = tensors
        self.deep = deep = self.x.shape[1]  # blocks of 16 features
        self.active = 0  # lanes that have a group
        depth = min(deep, _DEEP)
        fractal = (16, 16)
        self.l1_x = core.allocate("L1", (lanes, deep, *fractal), "fp16", "queries in L1")
        self.l1_y = core.allocate("L1", (2, depth * _PIECE // 16, *fractal), "fp16", "points in L1")
        self.sums = core.allocate("L0C", (lanes, tile // 16, *fractal), "fp32", "products")
        # The product of columns is transposed, so its operands change their places.
        left, right = ("L0B", "L0A") if columns else ("L0A", "L0B")
        self.l0_x = core.allocate(left, (2, lanes, depth, *fractal), "fp16", "queries")
        self.l0_y = core.allocate(right, (2, depth * _PIECE // 16, *fractal), "fp16", "points")
        self.points_in_l1 = Ring(core, MTE2, MTE1, start=False)
        self.pieces_in_l0 = Ring(core, MTE1, M, start=False)
        open_rings(self.points_in_l1, self.pieces_in_l0)
        self.tiles = Ring(core, M, V if V in core.kind.units else FIX, 1)
        self.queries_in_l1 = Ring(core, MTE2, MTE1, 1, first=2)
        self._reading = self.queries_in_l1.read()

    def close(self) -> None:
        """Wait until all places are free, so that no flag stays set."""
        close_rings(self.points_in_l1, self.pieces_in_l0)
        for ring in (self.tiles, self.queries_in_l1):
            ring.close()

    def begin(self, groups: Sequence[int]) -> None:
        """Emit the load of the queries of some groups, one for each lane or fewer."""
        with self.queries_in_l1.write():
            for lane, group in enumerate(groups):
                self.core.copy(self.l1_x[lane], self.x[group])
        self._reading = self.queries_in_l1.read()
        self._reading.begin()
        self.active = len(groups)

    def end(self) -> None:
        """Emit the end of a group: all its products are issued, so MTE1 has read its queries."""
        self._reading.end()

    def padded(self, first: int) -> int:
        """Return the training points of a tile with those that fill the last repeat."""
        count = min(self.tile, self.shape.train - first)
        return round_up(count, PER_REPEAT)

    def multiply(self, first: int) -> None:
        """Emit the products of a tile into L0C."""
        with self.tiles.write():
            for at in range(0, self.padded(first), _PIECE):
                # The last piece may have fewer fractals than a slot in global memory.
                start = (first + at) // 16
                blocks = min(_PIECE // 16, self.y.shape[0] - start)
                for piece in range(0, self.deep, _DEEP):
                    depth = min(_DEEP, self.deep - piece)
                    self._piece(start, blocks, piece, depth, at // 16)

    def move(self, targets: Sequence[View], first: int) -> None:
        """Emit the move of the products of a tile, converted to FP16, to a place for each lane."""
        with self.tiles.read():
            for lane, target in enumerate(targets):
                self._out(target, lane, first)

    def blocks(self, first: int) -> int:
        """Return the blocks of 16 training points of a tile that exist."""
        return min(self.padded(first) // 16, self.y.shape[0] - first // 16)

    def _out(self, target: View, lane: int, first: int) -> None:
        m, n = 16 * self.blocks(first), GROUP
        if not self.columns:
            m, n = n, m
        self.core.matrix_out(target, self.sums[lane], m=m, n=n)

    def _piece(self, start: int, blocks: int, piece: int, depth: int, at: int) -> None:
        """Emit the product of some blocks of training points and some blocks of features."""
        core, columns = self.core, self.columns
        count = blocks * depth
        with self.points_in_l1.write() as slot:
            l1 = self.l1_y[slot, :count]
            part = self.y[start : start + blocks, piece : piece + depth]
            core.copy(l1.reshape(blocks, depth, 16, 16), part)
        with together(self.points_in_l1.read(), self.pieces_in_l0.write()) as (_, slot):
            points = self.l0_y[slot, :count]
            for lane in range(self.active):
                queries = self.l0_x[slot, lane, :depth]
                core.load(queries, self.l1_x[lane, piece : piece + depth])
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
            for lane in range(self.active):
                out, queries = self.sums[lane, at:], self.l0_x[slot, lane, :depth]
                a, b = (points, queries) if columns else (queries, points)
                m, n = (16 * blocks, 16) if columns else (16, 16 * blocks)
                core.mmad(out, a, b, m=m, k=16 * depth, n=n, init=init)
