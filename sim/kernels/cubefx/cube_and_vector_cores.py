"""Cube-fx on a Cube core and its vector cores, such as those of the Ascend 910B.

The two kinds of cores exchange logarithms, exponents and powers through global memory. Their flags
are slow, so each stage works on all inputs before it sets a flag, and only the loop of Alg. 7 is
cut into pieces:

| step | Cube core | vector cores |
| --- | --- | --- |
| 1 | | logarithms |
| 2 | exponents of piece 0 | |
| 3 | exponents of piece 1 | powers of piece 0 |
| 4 | results of piece 0 | powers of piece 1 |
| 5 | results of piece 1 | |

References
----------
Tang 2024, §4.2.3 and Alg. 8.
"""

from collections.abc import Callable
from dataclasses import dataclass

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.davinci.chip.model import CoreKind
from vitruvian.sim.davinci.isa.operands import FRACTAL_BYTES
from vitruvian.sim.kernels.cubefx.emit import emit_logarithms, load_windows
from vitruvian.sim.kernels.cubefx.mapping import SIDE, Mapping
from vitruvian.sim.kernels.ring import Ring, SlotAccess, together

V, M, MTE1, MTE2, MTE3, FIX = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3, Unit.FIX

_HALF, _SINGLE = 2, 4

#: Registers of the flags between cores: logarithms, exponents and powers are ready.
_LOGARITHMS, _EXPONENTS, _POWERS = 0, 1, 2

#: Slots of the vector cores, one each for MTE2, V and MTE3, and the elements of a slot.
_SLOTS, _CHUNK = 3, 16384


@dataclass(frozen=True)
class Workspace:
    """The tensors of a group of cores in global memory.

    Attributes
    ----------
    x : View
        (tiles, 16·rows) inputs.
    matrices : list of View
        Storage of the sequence matrices and, if inputs may be negative, of the parities.
    coefficients : View
    logarithms : list of View
        (tiles, 16·rows) logarithms and, if inputs may be negative, 2 for each negative input.
    exponents : list of View
        (L, tiles, ⌈k·t/16⌉·16·rows) exponents and, if inputs may be negative, factors.
    powers : View
        The same shape.
    y : View
        (tiles, L, ⌈j·t/16⌉, rows, 16) results.
    """

    x: View
    matrices: list[View]
    coefficients: View
    logarithms: list[View]
    exponents: list[View]
    powers: View
    y: View


def pieces_of(loops: int, pieces: int) -> list[range]:
    """Divide the loop steps into pieces of about equal length; there are no empty ones."""
    pieces = min(loops, pieces)
    return [range(loops * i // pieces, loops * (i + 1) // pieces) for i in range(pieces)]


def most_rows(kind: CoreKind, mapping: Mapping, signs: bool, slots: int) -> int:
    """Return the largest number of rows of 16 inputs of a tile, a multiple of 16.

    Parameters
    ----------
    kind : CoreKind
        That of the Cube core.

    Raises
    ------
    ValueError
        If the matrices or 16 rows do not fit the memories of the core.
    """
    copies = 2 if signs else 1
    powers, results = mapping.power_columns * SIDE, mapping.result_columns * SIDE
    # Rows of the storage of which each loop step takes a window of 16.
    windows = SIDE + (mapping.loops - 1) * mapping.merged
    matrices = mapping.power_columns * mapping.result_columns * FRACTAL_BYTES
    sequence = copies * mapping.loops * mapping.power_columns * FRACTAL_BYTES
    left = max(copies * SIDE, powers) * _HALF
    room = {name: kind.buffers[name].nbytes for name in ("L1", "L0A", "L0C")}
    room["L1"] -= copies * windows * powers * _HALF + matrices + 128
    each = {
        "L1": slots * left,
        "L0A": slots * left,
        "L0C": slots * max(copies * powers, results) * _SINGLE,
    }
    rows = min(room[name] // (each[name] * SIDE) * SIDE for name in each)
    if matrices + sequence > kind.buffers["L0B"].nbytes or rows < SIDE:
        raise ValueError(
            f"functions and order must be fewer than {mapping.functions} and {mapping.order} "
            f"with {mapping.merged} merged matrices, as their matrices do not fit the memories"
        )
    return rows


class VectorCore:
    """The instructions of a vector core: logarithms, then the powers of each piece.

    Parameters
    ----------
    number, count : int
        Number of the core among the vector cores of the group, and their number.
    """

    def __init__(
        self, core: Core, number: int, count: int, mapping: Mapping, space: Workspace, halvings: int
    ) -> None:
        self.core, self.number, self.count = core, number, count
        self.map, self.space, self.halvings = mapping, space, halvings
        self.copies = len(space.logarithms)
        self.slots = [
            [core.allocate("UB", _CHUNK, "fp16", "elements") for _ in range(self.copies)]
            for _ in range(_SLOTS)
        ]

    def emit(self, pieces: list[range]) -> None:
        """Emit all work of the core."""
        core, space = self.core, self.space
        self.ring = Ring(core, MTE2, MTE3, _SLOTS, through=V)
        self._stream([_flat(space.x)], [_flat(v) for v in space.logarithms], self._logarithms)
        # MTE3 sets the flag when its last store has ended, so that the Cube core reads what is
        # there.
        core.cross_set(MTE3, _LOGARITHMS)
        for piece in pieces:
            # MTE2 alone waits for the flag: V and MTE3 follow through the ring.
            core.cross_wait(MTE2, _EXPONENTS)
            sources = [_flat(v[piece.start : piece.stop]) for v in space.exponents]
            self._stream(sources, [_flat(space.powers[piece.start : piece.stop])], self._powers)
            core.cross_set(MTE3, _POWERS)
        self.ring.close()

    def _stream(
        self, sources: list[View], targets: list[View], body: Callable[[list[View]], None]
    ) -> None:
        """Emit loads, work in place, and stores of this core's part of some tensors."""
        core, blocks = self.core, sources[0].size // 128
        # Vector cores of a group share the elements in whole repeats of 128.
        first, last = (blocks * (self.number + i) // self.count * 128 for i in range(2))
        for start in range(first, last, _CHUNK):
            part = slice(start, min(start + _CHUNK, last))
            with self.ring.write() as slot:
                views = [view[: part.stop - part.start] for view in self.slots[slot]]
                for view, source in zip(views, sources, strict=False):
                    core.copy(view, source[part])
            with self.ring.update():
                body(views)
            with self.ring.read():
                for target, view in zip(targets, views, strict=False):
                    core.copy(target[part], view)

    def _logarithms(self, views: list[View]) -> None:
        negative = views[1] if self.copies == 2 else None
        emit_logarithms(self.core, views[0], negative, self.halvings)

    def _powers(self, views: list[View]) -> None:
        core = self.core
        core.vexp(views[0], views[0])
        if self.copies == 2:
            core.pipe_barrier(V)
            # The factor is −2 for odd powers of negative inputs, else 0: y + y·(−2) = −y.
            core.vmla(views[0], views[0], views[1])


def _flat(view: View) -> View:
    return view.reshape(view.size)


class CubeCore:
    """The instructions of a Cube core: the exponents, then the results, piece by piece.

    Parameters
    ----------
    rows : int
        Rows of 16 inputs of a tile, at most ``most_rows``.
    slots : {1, 2}
        Buffers of each kind.
    """

    def __init__(
        self, core: Core, mapping: Mapping, rows: int, space: Workspace, slots: int
    ) -> None:
        self.core, self.map, self.rows, self.space, self.slots = core, mapping, rows, space, slots
        copies = len(space.logarithms)
        powers, results = mapping.power_columns * SIDE, mapping.result_columns * SIDE
        left, out = max(copies * SIDE, powers) * rows, max(copies * powers, results) * rows

        def buffers(buffer: str, size: int, dtype: str, name: str, count: int) -> list[View]:
            return [core.allocate(buffer, size, dtype, name) for _ in range(count)]

        self.l1 = buffers("L1", left, "fp16", "left operand in L1", slots)
        self.a = buffers("L0A", left, "fp16", "left operand", slots)
        self.c = buffers("L0C", out, "fp32", "products", slots)
        size = mapping.loops * mapping.power_columns * SIDE * SIDE
        self.b_sequence = buffers("L0B", size, "fp16", "sequence matrices", copies)
        size = mapping.power_columns * mapping.result_columns * SIDE * SIDE
        self.b_coefficient = core.allocate("L0B", size, "fp16", "coefficients")

    def emit(self, pieces: list[range]) -> None:
        """Emit all work of the core."""
        core, space = self.core, self.space
        slots = self.slots
        self.in_l1, self.in_a = Ring(core, MTE2, MTE1, slots), Ring(core, MTE1, M, slots)
        self.products = Ring(core, M, FIX, slots)
        matrices = [*space.matrices, space.coefficients]
        load_windows(core, self.map, matrices, self.b_sequence, self.b_coefficient)
        core.cross_wait(MTE2, _LOGARITHMS)
        tiles = range(space.x.shape[0])
        for piece in pieces:
            for tile in tiles:
                self._exponents(tile, piece)
            # FIX stores the exponents, hence it sets the flag that they are there.
            core.cross_set(FIX, _EXPONENTS)
        for piece in pieces:
            core.cross_wait(MTE2, _POWERS)
            for tile in tiles:
                for number in piece:
                    self._results(tile, number)
        for ring in (self.in_l1, self.in_a, self.products):
            ring.close()

    def _left(self, sources: list[View], columns: int) -> SlotAccess:
        """Load left operands to L0A, ``columns`` of fractals each, and return the Cube's access."""
        core, size = self.core, self.rows * SIDE
        with self.in_l1.write() as slot:
            for at, source in enumerate(sources):
                core.copy(self.l1[slot][at * source.size :][: source.size], source)
        with together(self.in_l1.read(), self.in_a.write()) as (slot, _):
            for at in range(len(sources)):
                for column in range(columns):
                    core.load(
                        self.a[slot][at * size + column * SIDE * SIDE :],
                        self.l1[slot][(at + column) * size :],
                        repeat=self.rows // SIDE,
                        dst_stride=columns * FRACTAL_BYTES,
                    )
        return self.in_a.read()

    def _exponents(self, tile: int, piece: range) -> None:
        """Multiply the logarithms of a tile by some sequence matrices."""
        core, n = self.core, self.map.power_columns * SIDE
        # One access to L0A for all segments of the piece: the logarithms are loaded once.
        multiplying = self._left([view[tile] for view in self.space.logarithms], 1)
        left = multiplying.begin()
        for number in piece:
            with self.products.write() as slot:
                for at, b in enumerate(self.b_sequence):
                    a, c = self.a[left][at * self.rows * SIDE :], self.c[slot][at * n * self.rows :]
                    core.mmad(c, a, b[number * n * SIDE :], m=self.rows, k=SIDE, n=n, init="zero")
                if number == piece[-1]:
                    multiplying.end()
            self._store([view[number, tile] for view in self.space.exponents], n)

    def _results(self, tile: int, number: int) -> None:
        """Multiply the powers of a segment by the coefficients."""
        core, k, n = self.core, self.map.power_columns * SIDE, self.map.result_columns * SIDE
        multiplying = self._left([self.space.powers[number, tile]], self.map.power_columns)
        with together(multiplying, self.products.write()) as (left, slot):
            a, b = self.a[left], self.b_coefficient
            core.mmad(self.c[slot], a, b, m=self.rows, k=k, n=n, init="zero")
        self._store([_flat(self.space.y[tile, number])], n)

    def _store(self, targets: list[View], n: int) -> None:
        """Store the products of the next slot to global memory, rounded to FP16."""
        with self.products.read() as slot:
            for at, target in enumerate(targets):
                source = self.c[slot][at * n * self.rows :]
                self.core.matrix_out(target, source, m=self.rows, n=n)
