"""The order in which unit M takes the tiles of its operands."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .ports import bits
from .tiles import ROWS, TileMemory

#: Bits of a size of a product.
SIZE_BITS = 16


class TileWalk:
    """The order of beats: groups of tiles of C; in a group the steps of K; in a step the tiles.

    ``step`` goes on to the next beat. The other signals describe the current beat: ``opens`` and
    ``closes`` if it is the first or last of its sum, its ``slot``, its number of ``terms``, and the
    ``rows`` and ``bytes`` of the tile of C that the product has. ``ended`` is set behind the last.
    """

    def __init__(self, m: Module, tile: Any, sizes: dict[str, Signal], start: Value):
        self.tile = tile
        self.row_step, self.column_step = bits(tile.m), bits(tile.n)
        self.k_step = bits(tile.k)
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
            self.k_count.eq((sizes["k"] + tile.k - 1) >> self.k_step),
        ]
        # Fractals of 16 × 16.
        self.m_fractals, self.n_fractals, self.k_fractals = (
            Signal(SIZE_BITS, name=f"{name}_fractals") for name in ("m", "n", "k")
        )
        for size, count in (
            ("m", self.m_fractals),
            ("n", self.n_fractals),
            ("k", self.k_fractals),
        ):
            m.d.comb += count.eq((sizes[size] + ROWS - 1) >> 4)

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
        self.terms = Signal(bits(tile.k) + 1, name="walk_terms")
        self.rows, self.bytes = (
            Signal(tile.m, name="walk_rows"),
            Signal(4 * tile.n, name="walk_bytes"),
        )
        m.d.comb += [
            last_tile.eq((self.row + 1 == self.m_count) & (self.column + 1 == self.n_count)),
            last_slot.eq(last_tile | (self.slot == tile.slot_count - 1)),
            self.opens.eq(self.k == 0),
            self.closes.eq(self.k + 1 == self.k_count),
            self.terms.eq(Mux(self.closes, sizes["k"] - (self.k << self.k_step), tile.k)),
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
                    self.slot.eq(self.slot + 1),
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
        per = 4 - self.k_step
        return self.k >> per, self.k[:per] if per else Const(0, 1)

    def address_a(self, memory: TileMemory, first: Value) -> Value:
        """Return the tile of A: its fractals are (M/16, K/16)."""
        fractal, group = self._split_row(self.row)
        deep, piece = self._split_k()
        return _address(memory, first, fractal * self.k_fractals + deep, group, piece)

    def address_b(self, memory: TileMemory, first: Value) -> Value:
        """Return the tile of B: its fractals are (K/16, N/16), with a row for each column of B."""
        fractal, group = self._split_column(self.column)
        deep, piece = self._split_k()
        return _address(memory, first, deep * self.n_fractals + fractal, group, piece)

    def address_c(self, memory: TileMemory, first: Value) -> Value:
        """Return the tile of C: its fractals are (N/16, M/16)."""
        down, group = self._split_row(self.row)
        across, piece = self._split_column(self.column)
        return _address(memory, first, across * self.m_fractals + down, group, piece)


def _address(
    memory: TileMemory, first: Value, fractal: Value, group: Value, column: Value
) -> Value:
    low = bits(memory.fractal_blocks)
    begin = first[low:]
    columns, groups = bits(memory.row_pieces), bits(memory.groups)
    wide = memory.address.members["fractal"]
    assert isinstance(wide, int)
    return Cat(column[:columns], group[:groups], (begin + fractal)[:wide])
