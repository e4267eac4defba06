"""The operands of a row or column in front of a buffered array, in two registers in turn."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class OperandTurns(wiring.Component):
    """Two registers that take the operands of beats in turn, and the control of these registers.

    No wire that follows from a decision in the same cycle ends here, and each row and column has
    registers of its own for its control, so that all wires to it have a whole cycle.

    Parameters
    ----------
    bits : int
        Bits of the operands of a row or column.

    Members
    -------
    word : In(bits)
        The operands of the beat that is offered in this cycle.
    write : In(2)
        One bit for each register, set if that is to take the beat.
    read : In(1)
        The register that has the operands of the beat which the unit works on.
    operands : Out(bits)
        The content of that register, one cycle later. A beat that was offered two cycles ago can be
        there, and one whose work ended in the cycle before still is.
    """

    if TYPE_CHECKING:
        word: Signal
        write: Signal
        read: Signal
        operands: Signal

    def __init__(self, *, bits: int):
        self.bits = bits
        super().__init__(
            {"word": In(bits), "write": In(2), "read": In(1), "operands": Out(bits)},
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arrived = Signal(self.bits, reset_less=True)
        late_write = Signal(2)
        late_read = Signal()
        words = [Signal(self.bits, name=f"word{n}", reset_less=True) for n in range(2)]
        m.d.sync += [arrived.eq(self.word), late_write.eq(self.write), late_read.eq(self.read)]
        for word, write in zip(words, late_write, strict=True):
            with m.If(write):
                m.d.sync += word.eq(arrived)
        m.d.comb += self.operands.eq(Mux(late_read, words[1], words[0]))
        return m
