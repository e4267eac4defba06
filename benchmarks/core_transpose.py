"""Two ways to transpose the fractals of a load, on an ECP5: cells, and cycles for a fractal.

    python benchmarks/core_transpose.py

The first way is that of the core: L0A and L0B have skewed banks, so their write ports take a column
of a fractal piece by piece. Its cost is the difference between a memory with and without it. The
second way is a buffer in front of the memory, of two fractals, in which a fractal turns while the
next one is filled.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.flows.fpga import mapping
from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.config import FRACTAL_BYTES
from vitruvian.hdl.core.ports import BLOCK_BITS, BLOCK_BYTES, rotate
from vitruvian.hdl.core.tiles import ELEMENT_BYTES, ROWS, TileMemory
from vitruvian.sim.rtl.emit import to_verilog

_ELEMENT = 8 * ELEMENT_BYTES


class FractalTurner(wiring.Component):
    """Buffer of two fractals of 16 × 16 elements that gives the columns of each, a block a cycle.

    Element c of row r is in bank r + c modulo 16, so a row and a column each take one cycle.

    Members
    -------
    i, o : In(stream.Signature(256)), Out(stream.Signature(256))
        Rows in, columns out.
    """

    i: Any
    o: Any

    def __init__(self) -> None:
        super().__init__(
            {"i": In(stream.Signature(BLOCK_BITS)), "o": Out(stream.Signature(BLOCK_BITS))}
        )

    def elaborate(self, _platform: object) -> Module:
        """Return the banks and the two rotations around them."""
        m = Module()
        full = Array(Signal(name=f"full{n}") for n in range(2))
        into, out = Signal(), Signal()
        row, column = Signal(range(ROWS)), Signal(range(ROWS))
        taken, given = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~full[into]),
            self.o.valid.eq(full[out]),
            taken.eq(self.i.valid & self.i.ready),
            given.eq(self.o.valid & self.o.ready),
        ]
        entering = rotate(m, self.i.payload, Cat(0, row)[:5], "entering")
        read = []
        for b in range(ROWS):
            cells = memory.Memory(shape=_ELEMENT, depth=2 * ROWS, init=[])
            m.submodules[f"bank{b}"] = cells
            write, port = cells.write_port(), cells.read_port(domain="comb")
            number = Signal(range(ROWS), name=f"row_of_bank{b}")
            m.d.comb += [
                write.addr.eq(Cat(row, into)),
                write.data.eq(entering[_ELEMENT * b : _ELEMENT * (b + 1)]),
                write.en.eq(taken),
                number.eq(b - column),
                port.addr.eq(Cat(number, out)),
            ]
            read.append(port.data)
        back = Signal(range(ROWS))
        m.d.comb += [
            back.eq(-column),
            self.o.payload.eq(rotate(m, Cat(*read), Cat(0, back)[:5], "leaving")),
        ]
        for step, place, number in ((taken, into, row), (given, out, column)):
            with m.If(step):
                m.d.sync += number.eq(number + 1)
                with m.If(number == ROWS - 1):
                    m.d.sync += [place.eq(~place), full[place].eq(step is taken)]
        return m


class Operands(wiring.Component):
    """L0A of a core with its ports for lines and for tiles that are read.

    Parameters
    ----------
    core : str
        Name of a preset.
    turns : bool
        As ``TileMemory`` takes it.
    """

    pieces: Any
    w: Any

    def __init__(self, core: str, *, turns: bool):
        tile = CORES[core].tile
        self.memory = TileMemory(
            fractals=CORES[core].l0a // FRACTAL_BYTES,
            tile_rows=tile.m,
            piece_bytes=2 * tile.k,
            row_bytes=BLOCK_BYTES,
            readers=0,
            writers=2,
            blocks=CORES[core].l1_blocks,
            turns=turns,
        )
        members = self.memory.signature.members
        super().__init__({name: members[name] for name in ("tile", "read", "pieces", "w")})

    def elaborate(self, _platform: object) -> Module:
        """Return the memory, in which no tile is written."""
        m = Module()
        m.submodules.memory = own = self.memory
        for name in ("tile", "read"):
            m.d.comb += getattr(own, name).eq(getattr(self, name))
        m.d.comb += self.pieces.eq(own.pieces)
        for port, mine in zip(own.w, self.w, strict=True):
            wiring.connect(m, wiring.flipped(mine), port)
        return m


def _cells(unit: Any) -> mapping.Resources:
    return mapping.count(to_verilog(unit), "top", "ecp5")


def main() -> None:
    """Print a table of the cells of each way."""
    print(f"{'':44} {'LUT4':>7} {'FF':>6} {'BRAM':>5}  cycles")
    turner = _cells(FractalTurner())
    for core in ("tiny", "small"):
        having = Operands(core, turns=True)
        plain, turned = _cells(Operands(core, turns=False)), _cells(having)
        cycles = ROWS // having.memory.line_rows * having.memory.groups
        rows = [
            (f"{core}, L0A", plain, ""),
            (f"{core}, L0A with transposed lines", turned, cycles),
        ]
        for name, cells, number in rows:
            luts = cells.all_luts("ecp5")
            print(f"{name:44} {luts:7,} {cells.ff:6,.0f} {cells.bram:5.0f}  {number}")
        more = turned.all_luts("ecp5") - plain.all_luts("ecp5")
        print(f"{'  transposed lines alone':44} {more:7,} {turned.ff - plain.ff:6,.0f}")
    luts = turner.all_luts("ecp5")
    name = "a buffer of two fractals, a block a cycle"
    print(f"{name:44} {luts:7,} {turner.ff:6,.0f} {turner.bram:5.0f}  {ROWS}")


if __name__ == "__main__":
    main()
