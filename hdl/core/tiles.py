"""Memories of fractals that are written by rows and read by tiles, or the other way round."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .ports import BLOCK_BYTES, UNCHECKED, ReadPort, WritePort, bits, choose, rotate
from .products import ROWS

#: Bytes of an element of a fractal that can be transposed.
ELEMENT_BYTES = 2


def bank_count(tile_pieces: int, piece_bytes: int, blocks: int) -> int:
    """Return the banks that a tile, and a line of so many blocks, are in with a piece in each."""
    return max(tile_pieces, blocks * BLOCK_BYTES // piece_bytes)


class TileMemory(wiring.Component):
    """Memory of fractals in banks, so that lines of rows and tiles each take one cycle.

    A row of a fractal is cut into pieces. With S rows in a line (1 if a line is shorter), piece j
    of row i is in bank (i + S·j) modulo the number of banks: the pieces of a line are in different
    banks, and so are pieces j of consecutive rows, which are a tile. There are as many banks as
    rows in a tile, or more if a tile has fewer bytes than a line.

    A line with ``turned`` has columns of a fractal instead of rows: element i of a block belongs to
    row i. As many rows as there are banks are written in a cycle, so it is granted after
    ``16 / banks`` cycles.

    A wide memory also has tiles of elements of twice the bytes: row i of such a fractal is its rows
    2·i and 2·i + 1, and of a tile it has two pieces, which follow each other in a row, or in both
    of them if a piece is a row. With S = 1 and two banks for each row of a tile, they are in
    different banks.

    Parameters
    ----------
    fractals : int
        Number of fractals.
    tile_rows : int
        Rows of a tile: a power of two up to 16, and up to 8 in a wide memory.
    piece_bytes : int
        Bytes of a piece, a power of two.
    row_bytes : int
        Bytes of a row of a fractal.
    readers, writers : int
        Numbers of ports for lines.
    blocks : int
        Blocks of 32 bytes of a line. A line has at least the bytes of a piece, and at most those of
        16 pieces.
    turns : bool
        Writers can ask for a transposed fractal; then a row is a block, and no tile is written.
    wide : bool
        The memory is wide. Its lines have at most the bytes of a row unless a piece is a row.

    Members
    -------
    r, w : array of In(ReadPort(blocks)), array of In(WritePort(blocks, turns))
        Ports for lines.
    tile : In(tile_address)
        Address of the tile that is read if ``read`` is set: fractal, group of rows (in a wide
        memory, first row), and column of pieces.
    tile_wide : In(1), in a wide memory
        The tile is one of elements of twice the bytes.
    read : In(1)
    hold : In(1)
        No line is read: a tile is read in this cycle or a later one, or its pieces must stay. It
        comes with each ``read`` of a memory that has readers.
    pieces : Out(array of tile_rows × piece)
        The tile, in the next cycle and until the next read. In a wide memory there are twice as
        many, two for each row of a wide tile.
    target, write, rows, bytes, values : In
        Address of the tile that is written if ``write`` is set, a bit for each row and each byte of
        its pieces that is written, and the pieces.
    target_wide : In(1), in a wide memory
        As ``tile_wide``.
    """

    if TYPE_CHECKING:
        r: Any
        w: Any
        tile: Any
        tile_wide: Signal
        target_wide: Signal
        read: Signal
        hold: Signal
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
        blocks: int = 1,
        turns: bool = False,
        wide: bool = False,
    ):
        line_bytes = blocks * BLOCK_BYTES
        if not piece_bytes <= line_bytes <= piece_bytes * ROWS:
            raise ValueError(
                f"a line of {line_bytes} bytes must be at least a piece of {piece_bytes} and at "
                f"most {ROWS} pieces, which are {piece_bytes * ROWS}"
            )
        if wide and (2 * tile_rows > ROWS or line_bytes > row_bytes > piece_bytes):
            raise ValueError(
                f"a wide memory must have tiles of at most 8 rows, not {tile_rows}, and lines of "
                f"at most the {row_bytes} bytes of a row, not {line_bytes}"
            )
        if turns and row_bytes != BLOCK_BYTES:
            raise ValueError(f"a row must be a block of 32 bytes to turn, not {row_bytes}")
        self.fractals, self.tile_rows, self.piece_bytes = fractals, tile_rows, piece_bytes
        # A wide tile has two pieces for each row.
        self.wide, self.tile_pieces = wide, tile_rows * (1 + wide)
        self.banks = bank_count(self.tile_pieces, piece_bytes, blocks)
        self.row_pieces, self.line_pieces = row_bytes // piece_bytes, line_bytes // piece_bytes
        self.groups, self.blocks, self.turns = ROWS // self.banks, blocks, turns
        self.fractal_blocks = ROWS * row_bytes // BLOCK_BYTES
        # A line is some rows, or a row is some lines.
        self.line_rows, self.row_lines = max(line_bytes // row_bytes, 1), row_bytes // line_bytes
        self.line_columns = self.line_pieces // self.line_rows
        if turns and self.line_rows * ELEMENT_BYTES > piece_bytes:
            raise ValueError(
                f"a piece must have an element of each row of a line, not {piece_bytes} bytes"
            )
        # Of a tile: its column of pieces, its first row in as many as it has, its fractal.
        self.step_rows = 1 if wide else tile_rows
        self.address = data.StructLayout(
            {
                "column": bits(self.row_pieces),
                "group": bits(ROWS // self.step_rows),
                "fractal": bits(fractals),
            }
        )
        pieces = data.ArrayLayout(8 * piece_bytes, self.tile_pieces)
        members = {
            "tile": In(self.address),
            "read": In(1),
            "hold": In(1),
            "pieces": Out(pieces),
            "target": In(self.address),
            "write": In(1),
            "rows": In(tile_rows),
            "bytes": In(piece_bytes * (1 + wide)),
            "values": In(pieces),
        }
        if wide:
            members |= {"tile_wide": In(1), "target_wide": In(1)}
        if readers:
            members["r"] = In(ReadPort(blocks)).array(readers)
        if writers:
            members["w"] = In(WritePort(blocks, turns=turns)).array(writers)
        self.readers, self.writers = readers, writers
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self.fractals * self.groups * self.row_pieces
        cells = []
        for b in range(self.banks):
            shape = 8 * self.piece_bytes
            cell = memory.Memory(shape=shape, depth=depth, init=[], attrs=UNCHECKED)
            m.submodules[f"bank{b}"] = cell
            cells.append((cell.read_port(), cell.write_port(granularity=8)))
        self._build_reads(m, [read for read, _ in cells])
        self._build_writes(m, [write for _, write in cells])
        return m

    def _build_reads(self, m: Module, cells: list[Any]) -> None:
        banks = self.banks
        reading: Value = Const(0, 1)
        at: dict[str, Value] | None = None
        if self.readers:
            reading, line = choose(m, list(self.r), ~self.hold)
            at = self._split(line.address)
        # The piece of row 0 of a tile, and the first piece of a line, come from this bank.
        turn: Value = self._turn(Value.cast(self.tile.column), self.tile.group)
        wide = self.tile_wide if self.wide else None
        places = [self._cell_of_tile(self.tile, b, turn, wide) for b in range(banks)]
        if at is not None:
            turn = Mux(self.hold, turn, at["start"])
        back = Signal(bits(self.banks), name="turned_back")
        with m.If(self.read | reading):
            m.d.sync += back.eq(-turn)
        size = 8 * self.piece_bytes
        together = Cat(*(cell.data for cell in cells))
        pieces = rotate(m, together, back, "read_turned", step=self.piece_bytes)
        for i in range(self.tile_pieces):
            m.d.comb += self.pieces[i].eq(pieces[size * i : size * (i + 1)])
        for b, read in enumerate(cells):
            address = places[b]
            if at is not None:
                other = self._cell(at["fractal"], at["group"], self._column(at, b))
                address = Mux(self.hold, address, other)
            m.d.comb += [read.addr.eq(address), read.en.eq(self.read | reading)]
        line = Signal(size * self.line_pieces, name="line")
        for number in range(self.line_pieces):
            low = size * self._order(number)
            m.d.comb += line[low : low + size].eq(pieces[size * number : size * (number + 1)])
        for reader in self.r if self.readers else ():
            last = Signal()
            m.d.sync += last.eq(reader.grant)
            m.d.comb += [reader.valid.eq(last), reader.data.eq(line)]

    def _turn(self, column: Value, group: Value | None = None) -> Value:
        """Return the bank that has the first piece of a tile in a column and a group of rows."""
        turn = Cat(Const(0, bits(self.line_rows)), column)[: bits(self.banks)]
        if group is None or not self._turning_bits:
            return turn
        row = Cat(Const(0, bits(self.step_rows)), group[: self._turning_bits])
        return (turn + row)[: bits(self.banks)]

    @property
    def _turning_bits(self) -> int:
        """Bits of a tile's group of rows on which the banks of its pieces depend."""
        return bits(self.banks) - bits(self.step_rows)

    def _cell_of_tile(self, tile: Any, bank: int, turn: Value, wide: Value | None) -> Value:
        """Return the address in a bank of the piece of a tile whose first one is in bank ``turn``.

        Of the two pieces that a row of a wide tile has, the second one is in the next column,
        unless a piece is a row.
        """
        column = Value.cast(tile.column)
        if wide is not None and self.row_pieces > 1:
            second = (turn[0] ^ Const(bank & 1, 1)) & wide
            column = Cat(column[0] | second, column[1:])
        return self._cell(tile.fractal, tile.group[self._turning_bits :], column)

    def _split(self, address: Value) -> dict[str, Value]:
        """Return fractal, group of rows, bank of the first piece, and first column of a line."""
        turn, total = bits(self.banks), ROWS // self.line_rows * max(self.row_lines, 1)
        parts = bits(self.row_lines) if self.row_lines else 0
        row = Cat(Const(0, bits(self.line_rows)), address[parts : bits(total)])
        first = Cat(Const(0, bits(self.line_columns)), address[:parts])
        low = bits(total)
        start = (row + first * self.line_rows)[: max(turn, 1)] if turn else Const(0, 1)
        return {
            "first": first,
            "start": start,
            "group": row[turn:4],
            "fractal": address[low : low + max(bits(self.fractals), 1)],
        }

    def _within(self, at: dict[str, Value], bank: int) -> Value:
        """Return the number of a bank, counted from that of the first piece of a line."""
        turn = bits(self.banks)
        return (Const(bank, turn) - at["start"])[:turn] if turn else Const(0, 1)

    def _column(self, at: dict[str, Value], bank: int) -> Value:
        """Return the column of the piece of a line that a bank has, if it has one."""
        number = self._within(at, bank)[bits(self.line_rows) :]
        if not len(number):
            return at["first"]
        return (at["first"] + number)[: max(bits(self.row_pieces), 1)]

    def _cell(self, fractal: Value, group: Value, column: Value) -> Value:
        """Return the address in a bank."""
        parts = [Value.cast(column)[: bits(self.row_pieces)]]
        parts.append(Value.cast(group)[: bits(self.groups)])
        parts.append(Value.cast(fractal))
        return Cat(*parts)

    def _order(self, number: int) -> int:
        """Return the place in a line of the piece in a bank, counted from that of the first."""
        row, column = number % self.line_rows, number // self.line_rows
        return row * self.line_columns + column

    def _build_writes(self, m: Module, cells: list[Any]) -> None:
        writing, turning, done = (Signal(name=name) for name in ("writes", "turns", "write_done"))
        source: Any = None
        to: dict[str, Value] | None = None
        m.d.comb += done.eq(1)
        if self.writers:
            taken, source = choose(m, list(self.w), ~self.write, done)
            to = self._split(source.address)
            turned = source.turned if self.turns else 0
            m.d.comb += [writing.eq(taken & ~turned), turning.eq(taken & turned)]
        column, address = Signal(max(bits(self.row_pieces), 1), name="column_written"), self.target
        values, enables = self._tile_written()
        if self.turns:
            assert to is not None
            group = self._phase(m, source, done)
            turned_column, values, enables = self._turned(m, source, turning, group)
            places = [self._cell(to["fractal"], group, column)] * self.banks
            m.d.comb += column.eq(turned_column)
            turn = self._turn(column)
        else:
            m.d.comb += column.eq(Value.cast(address.column))
            turn = self._turn(column, address.group)
            wide = self.target_wide if self.wide else None
            places = [self._cell_of_tile(address, b, turn, wide) for b in range(self.banks)]
        if to is not None:
            turn = Mux(writing, to["start"], turn)
            for number in range(self.banks):
                value, on = values[number], enables[number]
                low, on_line = self.piece_bytes * self._order(number), Const(0, 1)
                if number < self.line_pieces:
                    high = low + self.piece_bytes
                    value = Mux(writing, source.data[8 * low : 8 * high], value)
                    on_line = source.enable[low:high]
                values[number], enables[number] = value, Mux(writing, on_line, on)
        # Piece i of a tile, or of a line, goes to bank i + turn.
        step = self.piece_bytes
        data = rotate(m, Cat(*values), turn, "data_turned", step=step)
        on = rotate(m, Cat(*enables), turn, "enable_turned", step=step, unit=1)
        for b, write in enumerate(cells):
            place = places[b]
            if to is not None:
                line = self._cell(to["fractal"], to["group"], self._column(to, b))
                place = Mux(writing, line, place)
            low, high = self.piece_bytes * b, self.piece_bytes * (b + 1)
            m.d.comb += [
                write.addr.eq(place),
                write.data.eq(data[8 * low : 8 * high]),
                write.en.eq(on[low:high]),
            ]

    def _tile_written(self) -> tuple[list[Value], list[Value]]:
        """Return the pieces of the tile that is written, and the bytes that are enabled.

        Banks beyond those of the tile have none.
        """
        rows, enable = self.rows & self.write.replicate(self.tile_rows), self.bytes
        values: list[Value] = [Const(0, 8 * self.piece_bytes)] * self.banks
        enables: list[Value] = [Const(0, self.piece_bytes)] * self.banks
        for i in range(self.tile_pieces):
            values[i] = self.values[i]
            if i < self.tile_rows:
                enables[i] = enable[: self.piece_bytes] & rows[i].replicate(self.piece_bytes)
            if self.wide:
                half = enable.word_select(i % 2, self.piece_bytes)
                both = half & rows[i // 2].replicate(self.piece_bytes)
                enables[i] = Mux(self.target_wide, both, enables[i])
        return values, enables

    def _phase(self, m: Module, source: Any, done: Signal) -> Value:
        """Count the cycles of a turned line of each port; return the group of rows of this one."""
        if self.groups == 1:
            return Const(0, 1)
        phase = Signal(bits(self.groups), name="turn_phase")
        for n, pick in enumerate(source.picks):
            own = Signal(bits(self.groups), name=f"turn_phase{n}")
            with m.If(pick):
                m.d.comb += phase.eq(own)
                with m.If(source.turned):
                    m.d.sync += own.eq(own + 1)
        m.d.comb += done.eq(~source.turned | phase.all())
        return phase

    def _turned(
        self, m: Module, source: Any, turning: Value, group: Value
    ) -> tuple[Value, list[Value], list[Value]]:
        """Return column, pieces and enabled bytes of the rows that a turned line is written to."""
        size, pieces = ELEMENT_BYTES, self.piece_bytes // ELEMENT_BYTES
        wide = self.line_rows * size  # bytes of a row that a line gives
        number = source.address[: bits(ROWS // self.line_rows)]  # of the line in the fractal
        per = bits(self.piece_bytes // wide)
        place = number[:per] if per else Const(0, 1)
        values, enables = [], []
        for i in range(self.banks):
            # Element i + banks·group of each block.
            numbers = [i + self.banks * g for g in range(self.groups)]
            elements = [self._elements(source.data, 8, number) for number in numbers]
            on = [self._elements(source.enable, 1, number) for number in numbers]
            element = Signal(8 * wide, name=f"turned{i}")
            enabled = Signal(wide, name=f"turned_on{i}")
            with m.Switch(group):
                for g in range(self.groups):
                    with m.Case(g):
                        m.d.comb += [element.eq(elements[g]), enabled.eq(on[g])]
            values.append(element.replicate(pieces * size // wide))
            on_turn = enabled & turning.replicate(wide)
            enables.append(Cat(*(on_turn & (place == p).replicate(wide) for p in range(1 << per))))
        return number[per:], values, enables

    def _elements(self, line: Value, unit: int, number: int) -> Value:
        """Return an element of each block of a line, with ``unit`` bits for a byte."""
        lows = [BLOCK_BYTES * block + ELEMENT_BYTES * number for block in range(self.line_rows)]
        return Cat(*(line[unit * low : unit * (low + ELEMENT_BYTES)] for low in lows))
