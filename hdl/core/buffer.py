"""Buffers of a core: memories of lines, and banks of blocks, with one read and one write port."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .ports import BLOCK_BITS, UNCHECKED, ReadPort, WritePort, bits, choose, take_turns


class BlockMemory(wiring.Component):
    """Memory of lines of blocks of 32 bytes; each cycle it reads one line and writes one.

    Parameters
    ----------
    blocks : int
        Number of blocks.
    readers, writers : int
        Numbers of ports, which take turns if several of them request.
    line : int
        Blocks of a line.
    own : bool
        True if every reader has a port of the memory for itself, as a model of several memories.

    Members
    -------
    r, w : array of In(ReadPort(line)), array of In(WritePort(line))

    Latency
    -------
    A line comes one cycle after its grant. A line that is written and read in the same cycle is
    undefined, which flags prevent.
    """

    if TYPE_CHECKING:
        r: Any
        w: Any

    def __init__(
        self, *, blocks: int, readers: int, writers: int, line: int = 1, own: bool = False
    ):
        self.blocks, self.line, self.own = blocks, line, own
        super().__init__(
            {"r": In(ReadPort(line)).array(readers), "w": In(WritePort(line)).array(writers)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = cells = memory.Memory(
            shape=self.line * BLOCK_BITS,
            depth=self.blocks // self.line,
            init=[],
            attrs=UNCHECKED,
        )
        readers = list(self.r)
        for together in [[reader] for reader in readers] if self.own else [readers]:
            read = cells.read_port()
            granted, port = choose(m, together)
            m.d.comb += [read.en.eq(granted), read.addr.eq(port.address)]
            for reader in together:
                last = Signal()
                m.d.sync += last.eq(reader.grant)
                m.d.comb += [reader.valid.eq(last), reader.data.eq(read.data)]
        write = cells.write_port(granularity=8)
        granted, port = choose(m, list(self.w))
        m.d.comb += [
            write.addr.eq(port.address),
            write.data.eq(port.data),
            write.en.eq(port.enable & granted.replicate(len(port.enable))),
        ]
        return m


class BankedMemory(wiring.Component):
    """Memory in banks, each of which reads a block and writes one in a cycle.

    With B banks, the bank of block x has the low bits of x, but for the highest of them: this is
    the parity of the bits of x from there on, so that blocks at distances of powers of two are in
    different banks too. With one bank, it is a ``BlockMemory``.

    Parameters
    ----------
    blocks : int
        Number of blocks.
    banks : int
        Number of banks, a power of two.
    readers, writers : tuple of int
        Numbers of ports of each unit. The units take turns at a bank; of several requests of a
        unit, that of its first port goes first.

    Members
    -------
    r, w : array of In(ReadPort()), array of In(WritePort())
        The ports, unit by unit.
    waits : Out(1)
        A request waits, because another one is granted in its bank.

    Latency
    -------
    As that of ``BlockMemory``.
    """

    if TYPE_CHECKING:
        r: Any
        w: Any
        waits: Signal

    def __init__(
        self, *, blocks: int, banks: int, readers: tuple[int, ...], writers: tuple[int, ...]
    ):
        self.blocks, self.banks = blocks, banks
        self.readers, self.writers = readers, writers
        super().__init__(
            {
                "r": In(ReadPort()).array(sum(readers)),
                "w": In(WritePort()).array(sum(writers)),
                "waits": Out(1),
            }
        )

    def bank(self, row: Value) -> Value:
        """Return the bank of a block."""
        turn = bits(self.banks)
        if not turn:
            return Const(0, 1)
        size = bits(self.blocks)
        return Cat(row[: turn - 1], row[turn - 1 : size].xor())

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turn = bits(self.banks)
        memories = []
        for b in range(self.banks):
            depth = self.blocks // self.banks
            cells = memory.Memory(shape=BLOCK_BITS, depth=depth, init=[], attrs=UNCHECKED)
            m.submodules[f"bank{b}"] = cells
            memories.append((cells.read_port(), cells.write_port(granularity=8)))
        for kind, ports in enumerate((list(self.r), list(self.w))):
            banks = []
            for n, port in enumerate(ports):
                bank = Signal(max(turn, 1), name=f"bank_of_{'rw'[kind]}{n}")
                m.d.comb += bank.eq(self.bank(port.address))
                banks.append(bank)
            units = (self.readers, self.writers)[kind]
            for b in range(self.banks):
                self._build_bank(m, memories[b][kind], ports, units, [x == b for x in banks])
            if not kind:
                self._build_data(m, [read.data for read, _ in memories], banks)
        every = [*self.r, *self.w]
        m.d.comb += self.waits.eq(Cat(*(port.request & ~port.grant for port in every)).any())
        return m

    def _build_bank(
        self, m: Module, cell: Any, ports: list[Any], units: tuple[int, ...], here: list[Value]
    ) -> None:
        """Grant a request to a bank; ``here`` has a bit for each port whose block is in it."""
        turn, size = bits(self.banks), bits(self.blocks)
        first, asks = [], []  # the first request of each unit, and all of them
        for count in units:
            left: Value = Const(1, 1)
            for number in range(len(first), len(first) + count):
                ask = Signal(name=f"asks{number}")
                m.d.comb += ask.eq(ports[number].request & here[number])
                first.append(ask & left)
                left = left & ~ask
            asks.append(~left)
        turns = take_turns(m, asks, 1, 1)
        picks = Signal(len(ports), name="port_picks")
        of_unit = [n for n, count in enumerate(units) for _ in range(count)]
        for n, port in enumerate(ports):
            m.d.comb += picks[n].eq(first[n] & turns[of_unit[n]])
            with m.If(picks[n]):
                row = port.address[:size]
                m.d.comb += [
                    port.grant.eq(1),
                    # The highest bit of the bank is a parity, from which the bit is known.
                    cell.addr.eq(row[turn:]),
                ]
                if hasattr(port, "enable"):
                    m.d.comb += [cell.data.eq(port.data), cell.en.eq(port.enable)]
                else:
                    m.d.comb += cell.en.eq(1)

    def _build_data(self, m: Module, blocks: list[Value], banks: list[Signal]) -> None:
        for port, bank in zip(self.r, banks, strict=True):
            last, place = Signal(), Signal.like(bank)
            m.d.sync += [last.eq(port.grant), place.eq(bank)]
            m.d.comb += port.valid.eq(last)
            with m.Switch(place):
                for b, block in enumerate(blocks):
                    with m.Case(b):
                        m.d.comb += port.data.eq(block)
