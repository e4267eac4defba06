"""Small components that test the simulation harness itself."""
# pyright: reportInvalidTypeForm=false, reportCallIssue=false

from amaranth.hdl import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out


class Multiply(wiring.Component):
    """Multiplier ``p = a * b`` with an output register."""

    a: Signal
    b: Signal
    p: Signal

    def __init__(self, *, width: int):
        self.width = width
        super().__init__({"a": In(width), "b": In(width), "p": Out(2 * width)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.p.eq(self.a * self.b)
        return m


class Array(wiring.Component):
    """Array of ``count`` independent multipliers."""

    a: data.View
    b: data.View
    p: data.View

    def __init__(self, *, count: int, width: int = 6):
        self.count, self.width = count, width
        operand = data.ArrayLayout(width, count)
        product = data.ArrayLayout(2 * width, count)
        super().__init__({"a": In(operand), "b": In(operand), "p": Out(product)})

    def elaborate(self, platform):
        m = Module()
        for i in range(self.count):
            m.submodules[f"pe_{i}"] = pe = Multiply(width=self.width)
            m.d.comb += [pe.a.eq(self.a[i]), pe.b.eq(self.b[i]), self.p[i].eq(pe.p)]
        return m


class DelayedDot(wiring.Component):
    """Dot product ``d = c + sum(a * b)`` modulo 2**24 with a latency of ``pipeline`` cycles."""

    a: In(data.ArrayLayout(unsigned(8), 3))
    b: In(data.ArrayLayout(unsigned(5), 3))
    c: In(24)
    d: Out(24)

    def __init__(self, *, pipeline: int = 0):
        self.latency = pipeline
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        value = (self.c + sum(self.a[i] * self.b[i] for i in range(3)))[:24]
        for stage in range(self.latency):
            register = Signal(24, name=f"s{stage}_sum")
            m.d.sync += register.eq(value)
            value = register
        m.d.comb += self.d.eq(value)
        return m


class Mode(enum.Enum, shape=2):
    """The operation of ``Shapes``."""

    SUM = 1
    DIFFERENCE = 2


PAIR = data.StructLayout({"x": signed(7), "y": data.ArrayLayout(signed(13), 2)})


class Shapes(wiring.Component):
    """Component whose ports have structures, signed fields, arrays of structures and an enum."""

    mode: In(Mode, init=Mode.SUM)
    pairs: In(data.ArrayLayout(PAIR, 2))
    result: Out(data.StructLayout({"sum": signed(20), "flags": data.ArrayLayout(1, 3)}))
    same: Out(signed(7))

    def elaborate(self, platform):
        m = Module()
        first, second = self.pairs[0], self.pairs[1]
        total = first.x + first.y[0] + first.y[1]
        other = second.x + second.y[0] + second.y[1]
        m.d.comb += [
            self.result.sum.eq(Mux(self.mode == Mode.SUM, total + other, total - other)),
            self.result.flags[0].eq(total < 0),
            self.result.flags[2].eq(other < 0),
            self.same.eq(second.x),
        ]
        return m


class Wide(wiring.Component):
    """``d = a ^ (b << 1)`` on 100 bits, and fields of 40 and 64 bits across word boundaries."""

    a: In(100)
    b: In(100)
    f: In(data.StructLayout({"low": 7, "mid": 40, "high": 64}))
    d: Out(100)
    g: Out(data.StructLayout({"high": 64, "low": 7, "mid": 40}))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.d.eq(self.a ^ (self.b << 1)),
            self.g.high.eq(self.f.high),
            self.g.mid.eq(self.f.mid),
            self.g.low.eq(self.f.low),
        ]
        return m


OPERANDS = data.StructLayout({"x": 16, "y": data.ArrayLayout(12, 2)})


class StreamAdder(wiring.Component):
    """Stream of sums ``o = x + y[0] + y[1] + bias`` behind a buffer of four words.

    Parameters
    ----------
    fault : {"", "lost", "twice", "sum", "hang"}
        A deliberate mistake: beats are dropped while the output stalls, beats are repeated, some
        sums are wrong, or the stream stops after nine beats.
    """

    i: In(stream.Signature(OPERANDS))
    o: Out(stream.Signature(18))
    bias: In(8)
    count: Out(16)

    def __init__(self, *, fault: str = ""):
        self.fault = fault
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = SyncFIFOBuffered(width=18, depth=4)
        total = self.i.p.x + self.i.p.y[0] + self.i.p.y[1] + self.bias
        if self.fault == "sum":
            total = Mux(self.i.p.x[:5] == 21, total ^ 1, total)
        hang = (self.count >= 9) if self.fault == "hang" else 0
        m.d.comb += [
            buffer.w_data.eq(total),
            buffer.w_en.eq(self.i.valid & self.i.ready),
            self.i.ready.eq((1 if self.fault == "lost" else buffer.w_rdy) & ~hang),
            self.o.payload.eq(buffer.r_data),
            self.o.valid.eq(buffer.r_rdy),
        ]
        m.d.sync += self.count.eq(self.count + (self.o.valid & self.o.ready))
        twice = (self.count[:4] == 3) if self.fault == "twice" else 0
        held = Signal()
        m.d.comb += buffer.r_en.eq(self.o.ready & (~twice | held))
        m.d.sync += held.eq(self.o.ready & self.o.valid & twice & ~held)
        return m
