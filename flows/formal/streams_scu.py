"""Proofs about the storage conversion units: requests, rows and commands."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.scu.address import GENERATOR_CYCLES, AddressGenerator
from vitruvian.hdl.scu.col2im import Col2Im, RowAdder
from vitruvian.hdl.scu.config import ConversionConfig
from vitruvian.hdl.scu.im2col import Im2Col
from vitruvian.hdl.scu.reader import Reader

# Narrow fields keep the state of the proofs small; a fractal of 16 rows is two beats.
_SMALL = ConversionConfig(
    rows=8,
    c0_bytes=2,
    address_bits=2,
    size_bits=2,
    kernel_bits=1,
    stride_bits=1,
    pad_bits=1,
    dilation_bits=1,
    channel_bits=1,
    repeat_bits=2,
    ahead=2,
)
_SIZE = "8 patches a beat, sizes of 1 to 2 bits, 2 beats ahead"


def _beats(h: ProofHarness, command: Any, beat: Any, *, name: str) -> Signal:
    """Demand ``repeat * beats`` beats for each command, in the order of the commands.

    Returns
    -------
    pending : Signal
        Number of beats of the commands taken that have not been transferred.
    """
    m, config = h.m, _SMALL
    taken, moved = transfers(command), transfers(beat)
    count = Signal(range(3 * config.beats << config.repeat_bits), name=f"{name}_count")
    pending = Signal(len(count), name=f"{name}_pending")
    m.d.comb += count.eq(command.payload.repeat * config.beats)
    m.d.sync += pending.eq(pending - moved + (count & taken.replicate(len(count))))
    h.rule(f"{name}_not_invented", ~beat.valid | (pending != 0))
    # The marked command: the beats before its own, and its own.
    mark, marked = h.free(f"{name}_mark"), Signal(name=f"{name}_marked")
    before, own = Signal(len(count), name=f"{name}_before"), Signal(len(count), name=f"{name}_own")
    fill = Signal.like(command.payload.fill, name=f"{name}_fill")
    with m.If(~marked & taken & mark & (count != 0)):
        m.d.sync += [marked.eq(1), fill.eq(command.payload.fill), own.eq(count)]
        m.d.sync += before.eq(pending - moved)
    with m.Elif(marked & moved):
        with m.If(before != 0):
            m.d.sync += before.eq(before - 1)
        with m.Else():
            m.d.sync += [own.eq(own - 1), marked.eq(own != 1)]
    mine = marked & (before == 0) & beat.valid
    h.rule(f"{name}_in_order", ~mine | (beat.payload.fill == fill))
    # At most two commands are under way, so the counter cannot wrap.
    h.rule(f"{name}_most", pending <= 2 * config.beats << config.repeat_bits)
    return pending


def _generator(h: ProofHarness) -> None:
    dut = h.add(AddressGenerator(config=_SMALL))
    h.stable_streams(dut)
    pending = _beats(h, dut.i, dut.o, name="beat")
    arrives(
        h,
        waiting=[pending != 0, dut.o.ready],
        offered=dut.o.valid,
        cycles=GENERATOR_CYCLES,
        name="beat",
    )
    h.rule("hold", ~dut.hold | ~dut.i.ready)


def _reader(h: ProofHarness) -> None:
    dut = h.add(Reader(config=_SMALL, addresses=True))
    h.stable_streams(dut)
    track = Tracker(
        h,
        entered=transfers(dut.fetch),
        left=transfers(dut.o),
        offered=dut.o.valid,
        expected=dut.fetch.payload,
        actual=dut.o.payload.known,
        most=_SMALL.ahead,
    )
    h.rule("rows_with_beats", transfers(dut.rows) == transfers(dut.o))
    h.rule("rows_kept", Value.cast(dut.o.payload.rows) == Value.cast(dut.rows.payload))
    h.rule("arrives", ~((track.level != 0) & dut.rows.valid) | dut.o.valid)


def _im2col(h: ProofHarness) -> None:
    dut = h.add(Im2Col(config=_SMALL))
    h.stable_streams(dut)
    fill = h.constant("padding", 16)
    # All commands have the same padding, any, so that a beat need not be joined to its own.
    h.assume(~dut.i.valid | (dut.i.payload.fill == fill))
    inside = Cat(dut.fetch.payload[n].inside for n in range(_SMALL.rows))
    track = Tracker(
        h,
        entered=transfers(dut.fetch),
        left=transfers(dut.o),
        offered=dut.o.valid,
        expected=inside,
        most=_SMALL.ahead,
    )
    for n in range(_SMALL.rows):
        row = dut.o.payload[n] == Value.cast(dut.rows.payload[n])
        padding = dut.o.payload[n] == fill
        h.rule(f"row_{n}", ~track.head | Mux(track.value[n], row, padding))
    h.rule("rows_with_beats", transfers(dut.rows) == transfers(dut.o))


def _summed(self: RowAdder, platform: object) -> Module:
    """Return the abstract ``RowAdder``: exclusive or, with the ranks of the real one."""
    m, word = Module(), self.a ^ self.b
    for rank in range(self.latency):
        register = Signal(len(self.a), name=f"rank{rank}")
        with m.If(self.move):
            m.d.sync += register.eq(word)
        word = register
    m.d.comb += self.d.eq(word)
    return m


def _col2im(h: ProofHarness) -> None:
    h.abstract(RowAdder, _summed)
    dut = h.add(Col2Im(config=_SMALL, pipeline=2))
    h.stable_streams(dut)
    Tracker(
        h,
        entered=transfers(dut.fetch),
        left=transfers(dut.o),
        offered=dut.o.valid,
        expected=dut.fetch.payload,
        actual=dut.o.payload.pixels,
        # Requests in the queue, and those in the two ranks of the adder.
        most=_SMALL.ahead + 2,
        name="pixel",
    )
    rows = [Value.cast(dut.rows.payload[n]) ^ Value.cast(dut.fractals.payload[n]) for n in range(8)]
    Tracker(
        h,
        entered=transfers(dut.rows),
        left=transfers(dut.o),
        offered=dut.o.valid,
        expected=Cat(*rows),
        actual=dut.o.payload.rows,
        most=2,
        name="sum",
    )
    h.rule("rows_with_fractals", transfers(dut.rows) == transfers(dut.fractals))
    # The next command may touch the same pixels, so all writes must be done before it.
    pending = Signal(8)
    count = dut.i.payload.repeat * _SMALL.beats
    with h.m.If(transfers(dut.i)):
        h.m.d.sync += pending.eq(count)
    with h.m.Elif(transfers(dut.o)):
        h.m.d.sync += pending.eq(pending - 1)
    h.rule("writes_first", ~transfers(dut.i) | (pending == 0))
    h.rule("counted", ~dut.o.valid | (pending != 0))


PROOFS = (
    Proof(
        name="scu.generator",
        component=f"AddressGenerator, {_SIZE}",
        claim="A command has its number of beats, in the order of the commands; a beat that waits "
        "is stable.",
        build=_generator,
        mutations=(
            Mutation(
                name="ranks move although the output waits",
                owner=AddressGenerator,
                function="elaborate",
                old="move.eq(~self.o.valid | self.o.ready)",
                new="move.eq(1)",
            ),
        ),
    ),
    Proof(
        name="scu.reader",
        component=f"Reader, {_SIZE}",
        claim="Requests and rows are joined one to one, in order.",
        build=_reader,
        mutations=(
            Mutation(
                name="a request does not wait for room in the queue",
                owner=Reader,
                function="elaborate",
                old="self.fetch.valid.eq(generator.o.valid & queue.w_rdy)",
                new="self.fetch.valid.eq(generator.o.valid)",
            ),
        ),
    ),
    Proof(
        name="scu.im2col",
        component=f"Im2Col, {_SIZE}",
        claim="Every request yields its rows, or the padding, once and in order.",
        build=_im2col,
        mutations=(
            Mutation(
                name="the padding takes the row inside of the image",
                owner=Im2Col,
                function="elaborate",
                old="Mux(beat.known.inside[n], beat.rows[n], padding)",
                new="Mux(beat.known.inside[n - 1], beat.rows[n], padding)",
            ),
        ),
    ),
    Proof(
        name="scu.col2im",
        component=f"Col2Im, {_SIZE}; adders replaced by exclusive or",
        claim="Every pixel is written once, in order, with its own sum; a command waits for all "
        "writes of the one before.",
        build=_col2im,
        mutations=(
            Mutation(
                name="a row of fractals is taken without its pixels",
                owner=Col2Im,
                function="elaborate",
                old="self.fractals.ready.eq(move & reader.o.valid)",
                new="self.fractals.ready.eq(move)",
            ),
            Mutation(
                name="the unit takes the next command too early",
                owner=Col2Im,
                function="_build_commands",
                old="self.reader.hold.eq(left != 0)",
                new="self.reader.hold.eq(left > 1)",
            ),
        ),
    ),
)
