"""Cube-fx on a core with all units, such as that of the Ascend 310, with double buffers.

The core works through tiles of 16·rows inputs. In step l of a tile, the Cube computes the exponents
of a segment, V moves them to UB and computes the powers, MTE3 and MTE1 return them to L0A, the Cube
multiplies them by the coefficients, V moves the results to UB, and MTE3 stores them. Each queue
takes the second half of step l after the first half of step l + 1, so that the Cube and V never
wait for a segment that has only just begun. 16 steps (without merged matrices) are the 16 segments
of the thesis.

Few buffers need flags that say that they are free, because a segment returns to the Cube: what a
unit writes in step l + 2 depends on products that the Cube computes after those of the powers of
step l, for which the other units have emptied the buffers of step l.

References
----------
Tang 2024, §4.2.3 and Alg. 8.
"""

from dataclasses import dataclass

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.davinci.chip.model import CoreKind
from vitruvian.sim.davinci.isa.operands import FRACTAL_BYTES
from vitruvian.sim.kernels.cubefx.emit import emit_logarithms, load_windows
from vitruvian.sim.kernels.cubefx.mapping import SIDE, Mapping
from vitruvian.sim.kernels.ring import Ring, ordered, together

V, M, MTE1, MTE2, MTE3 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3

#: Bytes of an element of FP16 and of FP32.
_HALF, _SINGLE = 2, 4


@dataclass(frozen=True)
class CubeFxTensors:
    """The tensors in global memory.

    Attributes
    ----------
    x : View
        (tiles, 16·rows) inputs.
    matrices : list of View
        The storage of the sequence matrices, see ``layout.window``; if inputs may be negative, also
        that of −1 for odd powers and 0 for even ones.
    coefficients : View
        See ``layout.packed_coefficients``.
    y : View
        Results, see ``layout.unpacked_results``.
    """

    x: View
    matrices: list[View]
    coefficients: View
    y: View


def most_rows(kind: CoreKind, mapping: Mapping, signs: bool, slots: int) -> int:
    """Return the largest number of rows of 16 inputs of a tile, a multiple of 16.

    Parameters
    ----------
    signs : bool
        True if inputs may be negative.
    slots : int
        Buffers of each kind: 2 for double buffers, 1 without them.

    Raises
    ------
    ValueError
        If the matrices or 16 rows do not fit the memories of the core.
    """
    powers, results = mapping.power_columns * SIDE, mapping.result_columns * SIDE
    copies = 2 if signs else 1
    fixed, each = _needs(mapping, copies, slots, powers, results)
    rows = []
    for buffer, nbytes in each.items():
        room = kind.buffers[buffer].nbytes - fixed.get(buffer, 0)
        rows.append(room // (nbytes * SIDE) * SIDE)
    room = kind.buffers["L0B"].nbytes
    if fixed["L0B"] > room or min(rows) < SIDE:
        raise ValueError(
            f"functions and order must be fewer than {mapping.functions} and {mapping.order} "
            f"with {mapping.merged} merged matrices, as their matrices do not fit the memories"
        )
    return min(rows)


def _needs(
    mapping: Mapping, copies: int, slots: int, powers: int, results: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes that matrices take in each memory, and those of each row of 16 inputs."""
    windows = SIDE + (mapping.loops - 1) * mapping.merged
    matrices = mapping.power_columns * mapping.result_columns * FRACTAL_BYTES
    fixed = {
        "L1": copies * windows * powers * _HALF + matrices + 64,
        "L0B": copies * mapping.loops * mapping.power_columns * FRACTAL_BYTES + matrices,
    }
    inputs = copies * SIDE * _HALF
    segment = powers * _HALF
    each = {
        "UB": slots * (inputs + segment + results * _HALF) + (copies - 1) * segment,
        "L1": inputs + slots * segment,
        "L0A": inputs + segment,
        "L0C": slots * (copies * segment + results * _SINGLE),
    }
    return fixed, each


class UnifiedCore:
    """The instructions of a core with all units.

    Parameters
    ----------
    rows : int
        Rows of 16 inputs of a tile, at most ``most_rows``.
    halvings : int
        The powers are those of x / 2**halvings.
    slots : {1, 2}
        Buffers of each kind.
    """

    def __init__(
        self,
        core: Core,
        mapping: Mapping,
        rows: int,
        tensors: CubeFxTensors,
        *,
        halvings: int = 0,
        slots: int = 2,
    ) -> None:
        self.core, self.map, self.rows, self.t = core, mapping, rows, tensors
        self.halvings, self.slots = halvings, slots
        self.signs = len(tensors.matrices) == 2
        count = rows * SIDE
        some, copies = range(slots), range(2 if self.signs else 1)

        def buffers(buffer: str, size: int, dtype: str, name: str, number: range) -> list[View]:
            return [core.allocate(buffer, size, dtype, name) for _ in number]

        segment, result = count * mapping.power_columns, count * mapping.result_columns
        self.x = [buffers("UB", count, "fp16", "logarithms", copies) for _ in some]
        self.power = buffers("UB", segment, "fp16", "powers", some)
        self.factor = buffers("UB", segment, "fp16", "factors", copies[1:])
        self.result = buffers("UB", result, "fp16", "results", some)
        self.l1_log = buffers("L1", count, "fp16", "logarithms in L1", copies)
        self.l1_power = buffers("L1", segment, "fp16", "powers in L1", some)
        self.a_log = buffers("L0A", count, "fp16", "logarithms in L0A", copies)
        self.a_power = core.allocate("L0A", segment, "fp16", "powers in L0A")
        fractal, columns = SIDE * SIDE, mapping.power_columns
        sequence = mapping.loops * columns * fractal
        self.b_sequence = buffers("L0B", sequence, "fp16", "sequence matrices", copies)
        self.b_coefficient = core.allocate(
            "L0B", columns * mapping.result_columns * fractal, "fp16", "coefficients"
        )
        self.exponent = [buffers("L0C", segment, "fp16", "exponents", copies) for _ in some]
        self.sums = buffers("L0C", result, "fp32", "sums", some)

    def emit(self, tiles: range) -> None:
        """Emit the work on some tiles."""
        self._begin()
        matrices = [*self.t.matrices, self.t.coefficients]
        load_windows(self.core, self.map, matrices, self.b_sequence, self.b_coefficient)
        steps = [(tile, number) for tile in tiles for number in range(self.map.loops)]
        self._inputs(tiles.start)
        for at, (tile, number) in enumerate(steps):
            if number == 0:
                self._load_logarithms()
            self._prepare(number)
            if at and self.slots == 2:
                self._compute(*steps[at - 1])
            # The logarithms of the next tile follow early enough not to delay its first segment.
            if number == self.map.loops // 2 and tile + 1 in tiles:
                self._inputs(tile + 1)
            if self.slots == 1:
                self._compute(tile, number)
        if self.slots == 2:
            self._compute(*steps[-1])
        self._end()

    def _begin(self) -> None:
        core, slots = self.core, self.slots
        self.powers_in_a, self.logs_in_a = (Ring(core, MTE1, M, 1, first=at) for at in (0, 1))
        self.in_x = Ring(core, MTE2, MTE3, slots, through=V)

        # The flags above and the order of the products say when all other buffers are free.
        def one_way(source: Unit, target: Unit, count: int, first: int = 0) -> Ring:
            return Ring(core, source, target, count, first=first, back=False)

        self.exponents, self.powers = one_way(M, V, slots), one_way(V, MTE3, slots)
        self.powers_in_l1, self.logs_in_l1 = one_way(MTE3, MTE1, slots), one_way(MTE3, MTE1, 1, 2)
        self.products, self.results = one_way(M, V, slots, 2), one_way(V, MTE3, slots, 2)

    def _end(self) -> None:
        for ring in (self.powers_in_a, self.logs_in_a, self.in_x):
            ring.close()

    def _inputs(self, tile: int) -> None:
        """Load the inputs of a tile, and compute their logarithms in L1."""
        core = self.core
        with self.in_x.write() as slot:
            core.copy(self.x[slot][0], self.t.x[tile])
        slot = self.in_x.update().begin()
        negative = self.x[slot][1] if self.signs else None
        emit_logarithms(core, self.x[slot][0], negative, self.halvings)
        # Powers and results take the registers of the slots, so the logarithms have one behind.
        ordered(core, V, MTE3, 4)
        with self.logs_in_l1.write():
            for target, source in zip(self.l1_log, self.x[slot], strict=True):
                core.copy(target, source)
            self.in_x.read().end()

    def _load_logarithms(self) -> None:
        with together(self.logs_in_l1.read(), self.logs_in_a.write()):
            for target, source in zip(self.a_log, self.l1_log, strict=True):
                self.core.load(target, source)
        # The products of the tile's last segment end this access.
        self.multiplying = self.logs_in_a.read()
        self.multiplying.begin()

    def _prepare(self, number: int) -> None:
        """Compute the powers of a segment, and move them to L1 (Alg. 7, lines 5 to 7)."""
        core, n = self.core, self.map.power_columns * SIDE
        with self.exponents.write() as slot:
            for c, a, b in zip(self.exponent[slot], self.a_log, self.b_sequence, strict=True):
                matrix = b[number * n * SIDE :]
                core.mmad(c, a, matrix, m=self.rows, k=SIDE, n=n, init="zero")
        if number == self.map.loops - 1:
            self.multiplying.end()
        with together(self.exponents.read(), self.powers.write()) as (slot, _):
            core.pipe_barrier(V)
            power = self.power[slot]
            core.matrix_out(power, self.exponent[slot][0], m=self.rows, n=n)
            if self.signs:
                core.matrix_out(self.factor[0], self.exponent[slot][1], m=self.rows, n=n)
            core.pipe_barrier(V)
            core.vexp(power, power)
            if self.signs:
                # The factor is −2 for the odd powers of negative inputs, and 0 for all others.
                core.pipe_barrier(V)
                core.vmla(power, power, self.factor[0])
        with together(self.powers.read(), self.powers_in_l1.write()) as (slot, _):
            core.copy(self.l1_power[slot], self.power[slot])

    def _compute(self, tile: int, number: int) -> None:
        """Multiply the powers of a segment by the coefficients, and store the results."""
        core, mapping = self.core, self.map
        columns, size = mapping.power_columns, self.rows * SIDE
        with together(self.powers_in_l1.read(), self.powers_in_a.write()) as (slot, _):
            for column in range(columns):
                core.load(
                    self.a_power[column * SIDE * SIDE :],
                    self.l1_power[slot][column * size : (column + 1) * size],
                    repeat=self.rows // SIDE,
                    dst_stride=columns * FRACTAL_BYTES,
                )
        m, k, n = self.rows, columns * SIDE, mapping.result_columns * SIDE
        with together(self.powers_in_a.read(), self.products.write()) as (_, slot):
            core.mmad(self.sums[slot], self.a_power, self.b_coefficient, m=m, k=k, n=n, init="zero")
        with together(self.products.read(), self.results.write()) as (slot, _):
            core.matrix_out(self.result[slot], self.sums[slot], m=m, n=n)
        with self.results.read() as slot:
            core.copy(self.t.y[tile, number].reshape(n * m), self.result[slot])
