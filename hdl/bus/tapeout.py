"""An INT8 dot product behind the pins of a Tiny Tapeout project: a chip for a few bytes at a time.

The pins, their names and their meaning are those that every project of Tiny Tapeout has.
"""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import IntDotSpec

from ..fp.intdot import IntDotProduct

#: Bits of ``uio``: the controls at the bottom, then the byte of the result, then the outputs.
WRITE, CLEAR, SELECT, READY = 0, 1, 2, 4
#: The pins that are outputs, as ``uio_oe`` says.
_OUTPUTS = 1 << READY


class TinyTapeoutDot(wiring.Component):
    """Dot product of two vectors of bytes, added to a 32-bit sum.

    A byte on ``ui_in`` is taken at a rising edge of the clock at which ``uio_in[0]`` (write) is 1:
    first the K bytes of A, then the K bytes of B. At the next edge, the dot product is added to the
    sum, which wraps; the next byte may come at that edge already. ``uio_in[1]`` (clear) sets the
    sum and the count of bytes to 0 and takes precedence over both. ``uo_out`` shows byte
    ``uio_in[3:2]`` of the sum.

    Parameters
    ----------
    k : int
        Bytes of each vector, 1 to 8.

    Members
    -------
    clk, rst_n : In(1)
        Clock, and reset of the sum and the count of bytes, active low and synchronous.
    ena : In(1)
        1 while the design is selected; bytes count only then.
    ui_in : In(8)
        The byte.
    uo_out : Out(8)
        A byte of the sum.
    uio_in : In(8)
        Bit 0 writes, bit 1 clears, bits 3 and 2 select a byte of the sum; the others are free.
    uio_out, uio_oe : Out(8)
        Bit 4 is an output: 1 if every byte so far is part of the sum.

    Latency
    -------
    The sum changes one cycle after the last byte; 2K cycles for each result.

    Raises
    ------
    TypeError, ValueError
        If K is not a number, or out of range.
    """

    if TYPE_CHECKING:
        clk: Signal
        rst_n: Signal
        ena: Signal
        ui_in: Signal
        uo_out: Signal
        uio_in: Signal
        uio_out: Signal
        uio_oe: Signal

    #: Lines of the header of emitted Verilog.
    clocking = "Clock: clk, rising edge; rst_n is synchronous, active low."
    notes = (
        "A project for Tiny Tapeout: MODULE/info.yaml and MODULE/docs/info.md describe the pins.",
    )
    #: Cycles from the last byte to the sum.
    latency = 1

    def __init__(self, *, k: int):
        if not isinstance(k, int):
            raise TypeError(f"k must be a number, not {k!r}")
        if not 1 <= k <= 8:
            raise ValueError(f"k must be a number from 1 to 8, not {k}")
        self.k = k
        single = dict.fromkeys(("clk", "rst_n", "ena"), In(1))
        inputs = dict.fromkeys(("ui_in", "uio_in"), In(8))
        outputs = dict.fromkeys(("uo_out", "uio_out", "uio_oe"), Out(8))
        super().__init__({**single, **inputs, **outputs})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain("sync", local=True)
        m.d.comb += [ClockSignal().eq(self.clk), ResetSignal().eq(~self.rst_n)]
        m.submodules.dot = dot = IntDotProduct(spec=IntDotSpec(k=self.k))
        taken = Signal(8 * 2 * self.k, reset_less=True)
        count = Signal(range(2 * self.k))
        full = Signal()  # the operands are complete, and wait for a cycle
        total = Signal(32)
        write, clear = self.uio_in[WRITE] & self.ena, self.uio_in[CLEAR] & self.ena
        # The newest byte is at the top, so that the first one ends at the bottom.
        m.d.comb += [
            Cat(dot.a.as_value(), dot.b.as_value()).eq(taken),
            dot.c.eq(total),
            self.uio_out[READY].eq((count == 0) & ~full),
            self.uio_oe.eq(_OUTPUTS),
        ]
        with m.Switch(self.uio_in[SELECT : SELECT + 2]):
            for number in range(4):
                with m.Case(number):
                    m.d.comb += self.uo_out.eq(total[8 * number : 8 * number + 8])
        m.d.sync += full.eq(0)
        with m.If(full):
            m.d.sync += total.eq(dot.d)
        with m.If(write):
            m.d.sync += taken.eq(Cat(taken[8:], self.ui_in))
            with m.If(count == 2 * self.k - 1):
                m.d.sync += [count.eq(0), full.eq(1)]
            with m.Else():
                m.d.sync += count.eq(count + 1)
        with m.If(clear):
            m.d.sync += [count.eq(0), full.eq(0), total.eq(0)]
        return m
