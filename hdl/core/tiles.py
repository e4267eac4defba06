"""Memories of fractals that are written by rows and read by tiles, or the other way round."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .ports import BLOCK_BYTES, ReadPort, WritePort, choose

#: Rows of a fractal.
ROWS = 16


class TileMemory(wiring.Component):
    """Memory of fractals in banks, so that a row and a column of pieces each take one cycle.

    A row of a fractal is cut into pieces. Piece j of row i is in bank (i + j) modulo the number of
    banks: the pieces of a row are in different banks, and so are pieces j of consecutive rows,
    which are a tile.

    Parameters
    ----------
    fractals : int
        Number of fractals.
    tile_rows : int
        Rows of a tile, which is also the number of banks: a power of two up to 16.
    piece_bytes : int
        Bytes of a piece, a power of two up to 32.
    row_bytes : int
        Bytes of a row of a fractal.
    readers, writers : int
        Numbers of ports for blocks, that is for 32 bytes of a row.

    Members
    -------
    r, w : array of In(ReadPort()), array of In(WritePort())
        Ports for blocks. A tile goes first.
    tile : In(tile_address)
        Address of the tile that is read if ``read`` is set.
    read : In(1)
    pieces : Out(array of tile_rows × piece)
        The tile, in the next cycle.
    target, write, rows, bytes, values : In
        Address of the tile that is written if ``write`` is set, a bit for each row and each byte of
        a piece that is written, and the pieces.
    """

    if TYPE_CHECKING:
        r: Any
        w: Any
        tile: Any
        read: Signal
        pieces: Any
        target: Any
        write: Signal
        rows: Signal
        bytes: Signal
        values: Any

    def __init__(
        self,
        *,
        fractals: int,
        tile_rows: int,
        piece_bytes: int,
        row_bytes: int,
        readers: int,
        writers: int,
    ):
        self.fractals, self.banks, self.piece_bytes = fractals, tile_rows, piece_bytes
        self.row_pieces = row_bytes // piece_bytes
        self.groups = ROWS // tile_rows
        self.block_pieces = BLOCK_BYTES // piece_bytes
        self.row_blocks = row_bytes // BLOCK_BYTES
        # Of a tile: its column of pieces, its group of rows, its fractal.
        self.address = data.StructLayout(
            {
                "column": bits(self.row_pieces),
                "group": bits(self.groups),
                "fractal": bits(fractals),
            }
        )
        pieces = data.ArrayLayout(8 * piece_bytes, tile_rows)
        members = {
            "tile": In(self.address),
            "read": In(1),
            "pieces": Out(pieces),
            "target": In(self.address),
            "write": In(1),
            "rows": In(tile_rows),
            "bytes": In(piece_bytes),
            "values": In(pieces),
        }
        if readers:
            members["r"] = In(ReadPort()).array(readers)
        if writers:
            members["w"] = In(WritePort()).array(writers)
        self.readers, self.writers = readers, writers
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = self.banks
        depth = self.fractals * self.groups * self.row_pieces
        cells = []
        for b in range(banks):
            cell = memory.Memory(shape=8 * self.piece_bytes, depth=depth, init=[])
            m.submodules[f"bank{b}"] = cell
            cells.append((cell.read_port(), cell.write_port(granularity=8)))
        reading: Value = Const(0, 1)
        block: Any = None
        if self.readers:
            reading, block = choose(m, list(self.r), ~self.read)
        writing: Value = Const(0, 1)
        source: Any = None
        if self.writers:
            writing, source = choose(m, list(self.w), ~self.write)
        turn = bits(banks)
        column = Signal(max(turn, 1), name="column_read")
        m.d.sync += column.eq(Value.cast(self.tile.column)[:turn] if turn else 0)
        # Piece i of a tile is in bank i + column, so bank b has piece b - column.
        for i in range(banks):
            value = Signal(8 * self.piece_bytes, name=f"piece{i}")
            with m.Switch(column):
                for c in range(min(self.row_pieces, banks)):
                    with m.Case(c):
                        m.d.comb += value.eq(cells[(i + c) % banks][0].data)
            m.d.comb += self.pieces[i].eq(value)
        at = self._split(block.address) if block is not None else None
        to = self._split(source.address) if source is not None else None
        for b, (read, write) in enumerate(cells):
            address = self._cell(self.tile.fractal, self.tile.group, self.tile.column)
            if at is not None:
                # The block's piece that this bank has: (b - row) modulo the banks, if it is there.
                piece = self._piece(b, at["row"])
                other = self._cell(at["fractal"], at["row"] >> turn, self._within(at, piece))
                address = Mux(self.read, address, other)
            m.d.comb += [read.addr.eq(address), read.en.eq(self.read | reading)]
            self._build_write(m, b, write, to, writing, source)
        if at is not None:
            self._build_block(m, at, cells)
        return m

    def _split(self, address: Value) -> dict[str, Value]:
        """Return fractal, row and block in the row of a block's address."""
        low = bits(self.row_blocks)
        return {
            "block": address[:low] if low else Const(0, 1),
            "row": address[low : low + 4],
            "fractal": address[low + 4 : low + 4 + max(bits(self.fractals), 1)],
        }

    def _piece(self, bank: int, row: Value) -> Value:
        """Return which piece of a row, modulo the banks, is in a bank."""
        turn = bits(self.banks)
        if not turn:
            return Const(0, 1)
        return (Const(bank, turn) - row[:turn])[:turn]

    def _within(self, at: dict[str, Value], piece: Value) -> Value:
        """Return the column of the piece of a block: pieces of earlier blocks come before it."""
        per = bits(self.block_pieces)
        columns = bits(self.row_pieces)
        first = at["block"] << per if self.row_blocks > 1 else Const(0, 1)
        # The banks count modulo their number, so the piece is found relative to the first one.
        relative = (piece - first)[: max(bits(self.banks), 1)]
        return (first + relative)[: max(columns, 1)]

    def _inside(self, at: dict[str, Value], piece: Value) -> Value:
        """Return 1 if the piece belongs to the block."""
        per = bits(self.block_pieces)
        first = at["block"] << per if self.row_blocks > 1 else Const(0, 1)
        relative = (piece - first)[: max(bits(self.banks), 1)]
        return relative < self.block_pieces

    def _cell(self, fractal: Value, group: Value, column: Value) -> Value:
        """Return the address in a bank."""
        parts = [Value.cast(column)[: bits(self.row_pieces)]]
        parts.append(Value.cast(group)[: bits(self.groups)])
        parts.append(Value.cast(fractal))
        return Cat(*parts)

    def _build_write(
        self,
        m: Module,
        b: int,
        write: Any,
        to: dict[str, Value] | None,
        writing: Value,
        source: Any,
    ) -> None:
        banks, turn = self.banks, bits(self.banks)
        # Of a tile: bank b has piece b - column.
        value = Signal(8 * self.piece_bytes, name=f"tile_value{b}")
        row_on = Signal(name=f"tile_row{b}")
        column = Value.cast(self.target.column)[:turn] if turn else Const(0, 1)
        with m.Switch(column):
            for c in range(min(self.row_pieces, banks)):
                with m.Case(c):
                    i = (b - c) % banks
                    m.d.comb += [value.eq(self.values[i]), row_on.eq(self.rows[i])]
        enable = self.bytes & (self.write & row_on).replicate(self.piece_bytes)
        address = self._cell(self.target.fractal, self.target.group, self.target.column)
        if to is not None:
            piece = self._piece(b, to["row"])
            other = self._cell(to["fractal"], to["row"] >> turn, self._within(to, piece))
            per = bits(self.block_pieces)
            number = self._within(to, piece)[: max(per, 1)] if per else Const(0, 1)
            place = Signal(8 * self.piece_bytes, name=f"block_value{b}")
            on = Signal(self.piece_bytes, name=f"block_on{b}")
            with m.Switch(number):
                for p in range(self.block_pieces):
                    with m.Case(p):
                        low = p * self.piece_bytes
                        m.d.comb += [
                            place.eq(source.data[8 * low : 8 * (low + self.piece_bytes)]),
                            on.eq(source.enable[low : low + self.piece_bytes]),
                        ]
            here = writing & self._inside(to, piece)
            enable = Mux(self.write, enable, on & here.replicate(self.piece_bytes))
            address = Mux(self.write, address, other)
            value = Mux(self.write, value, place)
        m.d.comb += [write.addr.eq(address), write.data.eq(value), write.en.eq(enable)]

    def _build_block(self, m: Module, at: dict[str, Value], cells: list) -> None:
        """Put the pieces of a block together in the cycle after its grant."""
        banks, turn = self.banks, bits(self.banks)
        start = Signal(max(turn, 1), name="block_start")  # bank of the block's first piece
        first = at["block"] << bits(self.block_pieces) if self.row_blocks > 1 else Const(0, 1)
        m.d.sync += start.eq((at["row"] + first)[: max(turn, 1)] if turn else 0)
        parts = []
        for p in range(self.block_pieces):
            part = Signal(8 * self.piece_bytes, name=f"block_part{p}")
            with m.Switch(start):
                for s in range(banks):
                    with m.Case(s):
                        m.d.comb += part.eq(cells[(s + p) % banks][0].data)
            parts.append(part)
        for reader in self.r:
            last = Signal()
            m.d.sync += last.eq(reader.grant)
            m.d.comb += [reader.valid.eq(last), reader.data.eq(Cat(*parts))]


def bits(count: int) -> int:
    """Return the bits of a number below ``count``."""
    return (count - 1).bit_length()
