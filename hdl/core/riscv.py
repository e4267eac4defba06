"""A RISC-V for unit S: RV32I with the multiplications of M (Zmmul), one instruction a cycle."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.memory_map import (
    AUIPC,
    BRANCH,
    FENCE,
    IMMEDIATE,
    JAL,
    JALR,
    LOAD,
    LUI,
    REGISTER,
    STORE,
)

from .ports import BLOCK_BITS, PLACE_BITS, ROW_BITS, ReadPort

XLEN = 32


class ScalarBus(wiring.Signature):
    """Port of the RISC-V to its data.

    Members
    -------
    request, write, address, data, enable : Out(1), Out(1), Out(32), Out(32), Out(4)
        A word at a multiple of 4 is asked for, or its enabled bytes are written. They stay as they
        are until ``done``.
    done, value : In(1), In(32)
        The word is written, or it is here.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": Out(1),
                "write": Out(1),
                "address": Out(XLEN),
                "data": Out(XLEN),
                "enable": Out(4),
                "done": In(1),
                "value": In(XLEN),
            }
        )


class RiscV(wiring.Component):
    """Processor with RV32I and Zmmul: no interrupts, no control registers, one memory order.

    Parameters
    ----------
    start : int
        Address of the first instruction.

    Members
    -------
    run : In(1)
        Carry out instructions; while it is 0, the processor returns to its start.
    code : Out(ReadPort())
        The blocks with the instructions; bits 5 on of an address are the block.
    bus : Out(ScalarBus())
        Loads and stores.
    trap : Out(1)
        The processor stands still at an unknown instruction or at an address that is not aligned.

    Latency
    -------
    An instruction takes one cycle, a multiplication two, a load at least two. Two blocks of eight
    instructions are kept, and the block behind the current one is read ahead. A jump to another
    block costs two more cycles.
    """

    if TYPE_CHECKING:
        run: Signal
        code: Any
        bus: Any
        trap: Signal

    def __init__(self, *, start: int):
        self.start = start
        super().__init__(
            {
                "run": In(1),
                "code": Out(ReadPort()),
                "bus": Out(ScalarBus()),
                "trap": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pc = Signal(XLEN, init=self.start)
        word, here = self._build_fetch(m, pc)
        m.submodules.registers = cells = memory.Memory(shape=XLEN, depth=32, init=[])
        target = cells.write_port()
        sources = [cells.read_port(domain="comb") for _ in range(2)]
        opcode, rd, kind = word[:7], word[7:12], word[12:15]
        a, b = Signal(XLEN), Signal(XLEN)
        m.d.comb += [
            sources[0].addr.eq(word[15:20]),
            sources[1].addr.eq(word[20:25]),
            a.eq(sources[0].data),
            b.eq(sources[1].data),
        ]
        result, following = Signal(XLEN), Signal(XLEN)
        writes, known, done = Signal(), Signal(), Signal(init=1)
        m.d.comb += [following.eq(pc + 4), writes.eq(0), done.eq(1)]
        with m.Switch(opcode):
            with m.Case(LUI):
                m.d.comb += [result.eq(Cat(Const(0, 12), word[12:])), writes.eq(1), known.eq(1)]
            with m.Case(AUIPC):
                upper = Cat(Const(0, 12), word[12:])
                m.d.comb += [result.eq(pc + upper), writes.eq(1), known.eq(1)]
            with m.Case(JAL):
                offset = Cat(Const(0, 1), word[21:31], word[20], word[12:20], word[31])
                m.d.comb += [
                    result.eq(pc + 4),
                    following.eq(pc + offset.as_signed()),
                    writes.eq(1),
                    known.eq(1),
                ]
            with m.Case(JALR):
                m.d.comb += [
                    result.eq(pc + 4),
                    following.eq((a + word[20:].as_signed()) & ~1),
                    writes.eq(1),
                    known.eq(kind == 0),
                ]
            with m.Case(BRANCH):
                offset = Cat(Const(0, 1), word[8:12], word[25:31], word[7], word[31])
                with m.If(self._holds(m, kind, a, b)):
                    m.d.comb += following.eq(pc + offset.as_signed())
                m.d.comb += known.eq(kind[1:] != 1)
            with m.Case(LOAD, STORE):
                self._build_access(m, word, a, b, here, (result, writes, known, done))
            with m.Case(IMMEDIATE, REGISTER):
                self._build_arithmetic(m, word, a, b, here, (result, known, done))
                m.d.comb += writes.eq(1)
            with m.Case(FENCE):
                m.d.comb += known.eq(1)
        legal = known & (following[:2] == 0)
        ends = here & legal & done
        m.d.comb += [
            target.addr.eq(rd),
            target.data.eq(result),
            target.en.eq(ends & writes & (rd != 0)),
            self.trap.eq(here & ~legal),
        ]
        with m.If(~self.run):
            m.d.sync += pc.eq(self.start)
        with m.Elif(ends):
            m.d.sync += pc.eq(following)
        return m

    def _build_fetch(self, m: Module, pc: Signal) -> tuple[Value, Value]:
        """Keep two blocks of instructions; return the current word, and 1 if it is here."""
        blocks = [Signal(BLOCK_BITS, name=f"block{n}") for n in range(2)]
        rows = [Signal(ROW_BITS, name=f"row{n}") for n in range(2)]
        filled = Signal(2)
        row = pc[PLACE_BITS:]
        ahead = Signal(ROW_BITS)
        wanted = Signal(ROW_BITS)
        waits = Signal()  # a block has been granted and has not come
        has = Signal()
        has_ahead = Signal()
        m.d.comb += [
            ahead.eq(row + 1),
            has.eq(Array(filled)[row[0]] & (Array(rows)[row[0]] == row)),
            has_ahead.eq(Array(filled)[ahead[0]] & (Array(rows)[ahead[0]] == ahead)),
            wanted.eq(Mux(has, ahead, row)),
            self.code.address.eq(wanted),
            self.code.request.eq(self.run & (~has | ~has_ahead) & (~waits | self.code.valid)),
        ]
        coming = Signal(ROW_BITS)
        # The current block stays, so that a load that waits is not asked for twice.
        fills = Signal()
        m.d.comb += fills.eq(~has | (coming[0] != row[0]))
        with m.If(self.code.valid):
            m.d.sync += waits.eq(0)
            for n in range(2):
                with m.If(fills & (coming[0] == n)):
                    m.d.sync += [
                        blocks[n].eq(self.code.data),
                        rows[n].eq(coming),
                        filled[n].eq(self.run),
                    ]
        with m.If(self.code.grant):
            m.d.sync += [waits.eq(1), coming.eq(wanted)]
        with m.If(~self.run):
            m.d.sync += filled.eq(0)
        block = Mux(row[0], blocks[1], blocks[0])
        return block.word_select(pc[2:PLACE_BITS], XLEN), has & self.run

    @staticmethod
    def _holds(m: Module, kind: Value, a: Signal, b: Signal) -> Signal:
        """Return 1 if the condition of a branch holds."""
        holds, one = Signal(), Signal()
        with m.Switch(kind[1:]):
            with m.Case(0):
                m.d.comb += one.eq(a == b)
            with m.Case(2):
                m.d.comb += one.eq(a.as_signed() < b.as_signed())
            with m.Case(3):
                m.d.comb += one.eq(a < b)
        m.d.comb += holds.eq(one ^ kind[0])
        return holds

    def _build_access(
        self, m: Module, word: Value, a: Signal, b: Signal, here: Value, to: tuple[Signal, ...]
    ) -> None:
        """Load or store; a load keeps the bits of its element."""
        result, writes, known, done = to
        kind, is_store = word[12:15], word[5]
        offset = Mux(is_store, Cat(word[7:12], word[25:]), word[20:])
        address = Signal(XLEN)
        low = address[:2]
        size = kind[:2]
        aligned = Mux(size == 0, 1, Mux(size == 1, ~low[0], low == 0))
        element = Signal(XLEN)
        sign = Signal()
        m.d.comb += [
            address.eq(a + offset.as_signed()),
            known.eq(aligned & Mux(is_store, kind < 3, (kind != 3) & (kind < 6))),
            self.bus.request.eq(here & known),
            self.bus.write.eq(is_store),
            self.bus.address.eq(Cat(Const(0, 2), address[2:])),
            self.bus.data.eq((b << Cat(Const(0, 3), low))[:XLEN]),
            self.bus.enable.eq(
                (Array([Const(1, 4), Const(3, 4), Const(15, 4), Const(0, 4)])[size] << low)[:4]
            ),
            element.eq(self.bus.value >> Cat(Const(0, 3), low)),
            sign.eq(~kind[2] & Mux(size == 0, element[7], element[15])),
            result.eq(
                Mux(
                    size == 0,
                    Cat(element[:8], sign.replicate(24)),
                    Mux(size == 1, Cat(element[:16], sign.replicate(16)), element),
                )
            ),
            writes.eq(~is_store),
            done.eq(self.bus.done),
        ]

    @staticmethod
    def _build_arithmetic(
        m: Module, word: Value, a: Signal, b: Signal, here: Value, to: tuple[Signal, ...]
    ) -> None:
        """Compute a result of two registers, or of a register and an immediate."""
        result, known, done = to
        kind, function, is_register = word[12:15], word[25:], word[5]
        second = Signal(XLEN)
        alternative = function == 0x20
        is_shift = kind[:2] == 1
        multiplies = is_register & (function == 1)
        product, ready = Signal(2 * XLEN + 2), Signal()
        signs = Signal(2)  # of a and b, if they count
        m.d.comb += [
            second.eq(Mux(is_register, b, word[20:].as_signed())),
            signs.eq(Cat(a[-1] & (kind != 3), b[-1] & ~kind[1])),
        ]
        with m.If(here & multiplies):
            wide = [Cat(value, sign).as_signed() for value, sign in zip((a, b), signs, strict=True)]
            m.d.sync += product.eq(wide[0] * wide[1])
        m.d.sync += ready.eq(here & multiplies & ~ready)
        with m.Switch(kind):
            with m.Case(0):
                minus = is_register & alternative
                m.d.comb += result.eq(Mux(minus, a - second, a + second))
            with m.Case(1):
                m.d.comb += result.eq((a << second[:5])[:XLEN])
            with m.Case(2):
                m.d.comb += result.eq(a.as_signed() < second.as_signed())
            with m.Case(3):
                m.d.comb += result.eq(a < second)
            with m.Case(4):
                m.d.comb += result.eq(a ^ second)
            with m.Case(5):
                extended = Cat(a, a[-1] & alternative).as_signed()
                m.d.comb += result.eq(extended >> second[:5])
            with m.Case(6):
                m.d.comb += result.eq(a | second)
            with m.Case(7):
                m.d.comb += result.eq(a & second)
        plain = (function == 0) | (alternative & ((kind == 5) | (is_register & (kind == 0))))
        m.d.comb += known.eq(Mux(is_register | is_shift, plain, 1))
        with m.If(multiplies):
            m.d.comb += [
                result.eq(Mux(kind == 0, product[:XLEN], product[XLEN : 2 * XLEN])),
                known.eq(~kind[2]),
                done.eq(ready),
            ]
