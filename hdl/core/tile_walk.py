"""The order in which unit M takes the tiles of its operands."""

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .guard import reaches
from .ports import BLOCK_BYTES, bits
from .products import ROWS
from .tiles import TileMemory

#: Bits of a size of a product.
SIZE_BITS = 16


class TileWalk:
    """The order of beats: groups of tiles of C; in a group the steps of K; in a step the tiles.

    ``step`` goes on to the next beat. The other signals describe the current beat: ``opens`` and
    ``closes`` if it is the first or last of its sum, its ``slot``, the ``taken`` bytes of a row of
    A, the byte of its piece at which these begin (``within``), and the ``rows`` and ``bytes`` of
    the tile of C that the product has. ``ended`` is set behind the last.

    Parameters
    ----------
    sizes : dict of str to Signal
        M and N in elements, and K in bytes.
    beats : sequence of int
        The bytes of a row of A that a beat can take, powers of two in rising order.
    beat : Value
        Those of this product, as an index in ``beats``.
    pairs : Value
        1 if a sum takes two slots, of which ``slot`` is the even one.
    """

    def __init__(
        self,
        m: Module,
        tile: Any,
        sizes: dict[str, Signal],
        start: Value,
        *,
        beats: Sequence[int],
        beat: Value,
        pairs: Value,
    ):
        self.tile, self._beats, self._beat = tile, beats, beat
        # The slots of a sum.
        self._slots = _chosen(pairs, Const(2, 2), Const(1, 1))
        self._last_of_slots = _chosen(pairs, Const(tile.slot_count - 2), Const(tile.slot_count - 1))
        self.row_step, self.column_step = bits(tile.m), bits(tile.n)
        self.piece_step = bits(2 * tile.k)
        self.step, self.ended = Signal(name="walk_step"), Signal(name="walk_ended")
        self._build_counts(m, sizes)
        self._build_state(m, sizes)
        self._build_steps(m, start)

    def _build_counts(self, m: Module, sizes: dict[str, Signal]) -> None:
        """Count tiles and fractals along M, N and K."""
        tile = self.tile
        self.m_count, self.n_count, self.k_count = (
            Signal(SIZE_BITS, name=f"{name}_count") for name in ("m", "n", "k")
        )
        m.d.comb += [
            self.m_count.eq((sizes["m"] + tile.m - 1) >> self.row_step),
            self.n_count.eq((sizes["n"] + tile.n - 1) >> self.column_step),
            self.k_count.eq(self._by_beat(lambda n: (sizes["k"] + n - 1) >> bits(n))),
        ]
        # Fractals of 16 × 16.
        self.m_fractals, self.n_fractals, self.k_fractals = (
            Signal(SIZE_BITS, name=f"{name}_fractals") for name in ("m", "n", "k")
        )
        m.d.comb += [
            self.m_fractals.eq((sizes["m"] + ROWS - 1) >> 4),
            self.n_fractals.eq((sizes["n"] + ROWS - 1) >> 4),
            self.k_fractals.eq((sizes["k"] + BLOCK_BYTES - 1) >> bits(BLOCK_BYTES)),
        ]

    def _by_beat(self, of: Callable[[int], Value]) -> Value:
        """Return what follows from the bytes of a beat."""
        result = of(self._beats[0])
        for n, nbytes in enumerate(self._beats[1:], start=1):
            result = Mux(self._beat == n, of(nbytes), result)
        return result

    def _build_state(self, m: Module, sizes: dict[str, Signal]) -> None:
        """Describe the current beat."""
        tile = self.tile
        self.row, self.column, self.k = (Signal(SIZE_BITS, name=f"walk_{n}") for n in "mnk")
        self.first_row, self.first_column = (
            Signal(SIZE_BITS, name=f"group_{name}") for name in ("row", "column")
        )
        self.slot = Signal(tile.slot_bits, name="walk_slot")
        self.opens, self.closes = Signal(name="walk_opens"), Signal(name="walk_closes")
        self._last_tile = last_tile = Signal(name="last_tile")  # of all of C
        self._last_slot = last_slot = Signal(name="last_slot")  # of the group
        self.taken = Signal(bits(2 * tile.k) + 1, name="walk_taken")
        self._byte = Signal(len(sizes["k"]), name="walk_byte")  # the first one of the beat
        self.within = self._byte[: self.piece_step]
        self.rows, self.bytes = (
            Signal(tile.m, name="walk_rows"),
            Signal(4 * tile.n, name="walk_bytes"),
        )
        m.d.comb += [
            last_tile.eq((self.row + 1 == self.m_count) & (self.column + 1 == self.n_count)),
            last_slot.eq(last_tile | (self.slot == self._last_of_slots)),
            self.opens.eq(self.k == 0),
            self.closes.eq(self.k + 1 == self.k_count),
            self._byte.eq(self._by_beat(lambda n: self.k.shift_left(bits(n)))),
            self.taken.eq(
                Mux(self.closes, sizes["k"] - self._byte, self._by_beat(lambda n: Const(n)))
            ),
        ]
        for i in range(tile.m):
            m.d.comb += self.rows[i].eq((self.row << self.row_step) + i < sizes["m"])
        for j in range(tile.n):
            on = (self.column << self.column_step) + j < sizes["n"]
            m.d.comb += self.bytes[4 * j : 4 * j + 4].eq(on.replicate(4))

    def _build_steps(self, m: Module, start: Value) -> None:
        # The tile that follows, column by column of C as its fractals lie.
        wraps = self.row + 1 == self.m_count
        next_row = Mux(wraps, 0, self.row + 1)
        next_column = Mux(wraps, self.column + 1, self.column)
        with m.If(self.step):
            with m.If(~self._last_slot):
                m.d.sync += [
                    self.row.eq(next_row),
                    self.column.eq(next_column),
                    self.slot.eq(self.slot + self._slots),
                ]
            with m.Elif(~self.closes):
                m.d.sync += [
                    self.row.eq(self.first_row),
                    self.column.eq(self.first_column),
                    self.slot.eq(0),
                    self.k.eq(self.k + 1),
                ]
            with m.Else():
                m.d.sync += [
                    self.row.eq(next_row),
                    self.column.eq(next_column),
                    self.first_row.eq(next_row),
                    self.first_column.eq(next_column),
                    self.slot.eq(0),
                    self.k.eq(0),
                    self.ended.eq(self._last_tile),
                ]
        with m.If(start):
            m.d.sync += [
                signal.eq(0)
                for signal in (
                    *(self.row, self.column, self.k, self.slot),
                    *(self.first_row, self.first_column, self.ended),
                )
            ]

    def _split_row(self, number: Value) -> tuple[Value, Value]:
        """Return the fractal and the group of rows of a tile of rows."""
        per = 4 - self.row_step
        return number >> per, number[:per] if per else Const(0, 1)

    def _split_column(self, number: Value) -> tuple[Value, Value]:
        per = 4 - self.column_step
        return number >> per, number[:per] if per else Const(0, 1)

    def _split_k(self) -> tuple[Value, Value]:
        low, high = self.piece_step, bits(BLOCK_BYTES)
        return self._byte[high:], self._byte[low:high] if high > low else Const(0, 1)

    def tiles(
        self,
        m: Module,
        memories: dict[str, TileMemory],
        first: dict[str, Signal],
        wide: Value,
    ) -> tuple[dict[str, Value], Value]:
        """Return the addresses of the beat's tiles a, b and c, and 1 if one is not in its memory.

        With K in blocks of 32 bytes, the fractals of A are (M/16, K), those of B (K, N/16) with a
        row for each column of B, and those of C (N/16, M/16). No number of fractals may exceed that
        of its memory, so the products are short. With ``wide``, a fractal of C is two of its
        memory.
        """
        (row, upper), (column, left), (deep, piece) = (
            self._split_row(self.row),
            self._split_column(self.column),
            self._split_k(),
        )
        rows, columns, depth = self.m_fractals, self.n_fractals, self.k_fractals
        walks = {
            "a": (rows, row, depth, deep, upper, piece),
            "b": (depth, deep, columns, column, left, piece),
            "c": (columns, column, rows, row, upper, left),
        }
        addresses: dict[str, Value] = {}
        over: list[Value] = []
        for name, (outer, place, inner, within, group, across) in walks.items():
            memory = memories[name]
            width = bits(memory.fractals) + 1
            begin = first[name][bits(memory.fractal_blocks) :]
            fractal = Signal(len(begin) + 1, name=f"fractal_{name}")
            row: Value = group[: bits(ROWS // memory.tile_rows)]
            column: Value = across[: bits(memory.row_pieces)]
            number = begin + place[:width] * inner[:width] + within[:width]
            if memory.wide:
                offset = place[:width] * inner[:width] + within[:width]
                offset, row, column = self._wide_place(offset, group, across, memory, wide)
                number = begin + offset
            m.d.comb += fractal.eq(number)
            over += [outer[width:].any(), inner[width:].any(), reaches(fractal, memory.fractals)]
            addresses[name] = Cat(column, row, fractal[: bits(memory.fractals)])
        return addresses, Cat(*over).any()

    def _wide_place(
        self, number: Value, group: Value, across: Value, memory: TileMemory, wide: Value
    ) -> tuple[Value, Value, Value]:
        """Return fractal, row and column of pieces in a wide memory of a tile of C.

        A row of a wide fractal is two rows of the memory, and a tile has two pieces of it.
        """
        pieces = bits(memory.row_pieces)
        row = Cat(Const(0, self.row_step), group[: 4 - self.row_step])
        both = Cat(Const(0, 1), across[: 4 - self.column_step])  # the first of two pieces
        wide_row = Cat(both[pieces : pieces + 1], row)
        return (
            Mux(wide, Cat(wide_row[4], number), number),
            Mux(wide, wide_row[:4], row),
            Mux(wide, both[:pieces], across[:pieces]),
        )


def _chosen(condition: Value, one: Const, other: Const) -> Value:
    """Return one of two numbers, and a constant if the condition is one."""
    if isinstance(condition, Const):
        return one if condition.value else other
    return Mux(condition, one, other)
