"""Proofs about the buses: buffers, commands of products, and the bytes of the serial line."""

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.frames import Crc16
from vitruvian.hdl.bus.products import ProductSequencer
from vitruvian.hdl.bus.skid import Skid
from vitruvian.hdl.bus.uart import LEAST_DIVISOR, Receiver, Transmitter
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.ports import Start

#: A result of two words, and operands of one.
_CORE = BusCore(config=MatrixUnitConfig(m=1, n=2, k=1, precisions=("int8",), slots=2))


def _skid(h: ProofHarness) -> None:
    dut = h.add(Skid(2))
    h.stable_streams(dut)
    track = Tracker(
        h,
        entered=transfers(dut.i),
        left=transfers(dut.o),
        offered=dut.o.valid,
        expected=dut.i.payload,
        actual=dut.o.payload,
        most=2,
    )
    h.rule("arrives", dut.o.valid == (track.level != 0))
    h.rule("takes", dut.i.ready == (track.level != 2))


def _crc(h: ProofHarness) -> None:
    """Compare the value after each byte with a division that takes the whole byte at once."""
    dut = h.add(Crc16())
    h.assume(~dut.put | ~dut.busy)
    # The unit need not take a byte or a clear while it works on another byte.
    h.assume(~dut.clear | ~(dut.busy | dut.put))
    expected, count = Signal(16), Signal(4)
    # The byte is added at the top of the remainder, and eight steps of division by x^16 + x^12 +
    # x^5 + 1 (0x1021, CRC-16/CCITT) follow.
    rest: Value = dut.value ^ Cat(Const(0, 8), dut.data)
    for _ in range(8):
        rest = Cat(Const(0, 1), rest[:15]) ^ Mux(rest[15], Const(0x1021, 16), Const(0, 16))
    with h.m.If(dut.put):
        h.m.d.sync += [expected.eq(rest), count.eq(8)]
    with h.m.Elif(count != 0):
        h.m.d.sync += count.eq(count - 1)
    h.rule("busy", (dut.busy == (count != 0)) & (count <= 8))
    h.rule("byte", ~h.past(count == 1, "ends") | (dut.value == expected))
    h.rule("clear", ~h.past(dut.clear, "clear") | (dut.value == 0xFFFF))
    idle = h.past(~(dut.put | dut.clear | dut.busy), "idle")
    h.rule("kept", ~idle | (dut.value == h.past(dut.value, "value")))


def _line(h: ProofHarness) -> None:
    """Send bytes, with any pauses, to a receiver with the same clock."""
    sender = h.add(Transmitter(divisor=LEAST_DIVISOR), "sender")
    receiver = Receiver(divisor=LEAST_DIVISOR)
    h.add(receiver, "receiver", driven=[receiver.rx])
    h.m.d.comb += receiver.rx.eq(sender.tx)
    h.stable_streams_in(sender)
    # The synchronizer has no reset, so the line must be silent for a bit or two at first.
    silent = Signal(range(3 * LEAST_DIVISOR + 1), init=3 * LEAST_DIVISOR)
    with h.m.If(silent != 0):
        h.m.d.sync += silent.eq(silent - 1)
    h.assume(~sender.i.valid | (silent == 0))
    Tracker(
        h,
        entered=transfers(sender.i),
        left=receiver.valid,
        offered=receiver.valid,
        expected=sender.i.payload,
        actual=receiver.data,
        most=2,
        name="byte",
    )
    h.rule("no_error", ~receiver.error)


def _products(h: ProofHarness) -> None:
    """Count the beats of each command, and follow its number of results."""
    dut = h.add(ProductSequencer(core=_CORE))
    command = dut.command.payload
    h.stable_streams_in(dut)
    h.assume(command.beats < 4)
    h.assume(command.tiles < 4)
    m, sent, beat = h.m, transfers(dut.o), dut.o.payload
    known = (
        (command.precision == 0)
        & (command.operation == 0)
        & (command.start <= Start.FROM_C.value)
        & (command.tiles < 2)
    )
    tile, row = Signal(6), Signal(16)
    last_tile, last_row = tile == command.tiles, row == command.beats
    with m.If(sent):
        m.d.sync += tile.eq(Mux(last_tile, 0, tile + 1))
        with m.If(last_tile):
            m.d.sync += row.eq(Mux(last_row, 0, row + 1))
    # The number of results has been offered and taken.
    told = Signal()
    tells = transfers(dut.results)
    with m.If(transfers(dut.command)):
        m.d.sync += told.eq(0)
    with m.Elif(tells):
        m.d.sync += told.eq(1)
    h.rule("invalid", dut.invalid == (dut.command.valid & ~known))
    h.rule("dropped", ~(dut.command.valid & ~known) | dut.command.ready)
    ends = last_tile & last_row
    h.rule("beats", ~(dut.command.valid & known) | (dut.command.ready == (sent & ends)))
    h.rule("no_beat", ~dut.o.valid | (dut.command.valid & known))
    h.rule("told_first", ~sent | told | tells)
    h.rule("told_once", ~dut.results.valid | ~told)
    h.rule("told", ~dut.results.valid | (dut.results.payload == command.tiles))
    h.rule("operands", (transfers(dut.a) == sent) & (transfers(dut.b) == sent))
    same = (Value.cast(beat.a) == dut.a.payload.data) & (Value.cast(beat.b) == dut.b.payload.data)
    h.rule("payload", ~dut.o.valid | same)
    start = Mux(row == 0, command.start, Start.ACCUMULATE.value)
    right = (Value.cast(beat.start) == start) & (beat.emit == last_row)
    h.rule("control", ~dut.o.valid | right)
    # Each tile keeps its slot, and no other one has it.
    slots = [Signal(1, name=f"slot_{n}") for n in range(2)]
    for n, slot in enumerate(slots):
        with m.If(sent & (tile == n)):
            m.d.sync += slot.eq(beat.slot)
        h.rule(f"slot_{n}", ~(dut.o.valid & (tile == n) & (row != 0)) | (beat.slot == slot))
    h.rule("slot_alone", ~(dut.o.valid & (tile == 1)) | (beat.slot != slots[0]))
    waits = h.past(dut.o.valid & ~dut.o.ready, "waits")
    values = Value.cast(beat)
    h.rule("o_stable", ~waits | (dut.o.valid & (values == h.past(values, "beat"))))
    lasts = Cat(dut.a.payload.last, dut.b.payload.last)
    h.rule("missing", dut.missing == (sent & ends & ~lasts.all()))
    h.rule("unexpected", dut.unexpected == (sent & ~ends & lasts.any()))


PROOFS = (
    Proof(
        name="bus.skid",
        component="Skid, 2 bits",
        claim="Every item leaves once, in order and a cycle after it came; an item that waits is "
        "stable; the buffer takes an item unless it holds two.",
        build=_skid,
        mutations=(
            Mutation(
                name="the item that arrives when the output stops is lost",
                owner=Skid,
                function="elaborate",
                old="spare_full.eq(1), spare.eq(arrived)",
                new="spare_full.eq(0), spare.eq(arrived)",
            ),
            Mutation(
                name="the second item overtakes the first",
                owner=Skid,
                function="elaborate",
                old="item.eq(spare)",
                new="item.eq(arrived)",
            ),
        ),
    ),
    Proof(
        name="bus.products",
        component="Products, INT8, 2 slots, commands of up to 4 tiles and 4 beats",
        claim="A command has its number of beats, each with one item of every operand and with the "
        "slot of its tile; its number of results is told once, at the latest with the first beat.",
        build=_products,
        mutations=(
            Mutation(
                name="the number of results is told with each beat",
                owner=ProductSequencer,
                function="elaborate",
                old="self.command.valid & known & ~announced",
                new="self.command.valid & known",
            ),
            Mutation(
                name="the tiles of a command share a slot",
                owner=ProductSequencer,
                function="_slot",
                old="following.eq(after)",
                new="following.eq(slot)",
            ),
        ),
    ),
    Proof(
        name="bus.crc",
        component="Crc16",
        claim="Eight cycles after a byte, the value is the remainder of the value before and the "
        "byte; a clear sets the initial value; otherwise the value stays.",
        build=_crc,
        method="induction 12",
        mutations=(
            Mutation(
                name="the feedback ignores the byte",
                owner=Crc16,
                function="elaborate",
                old="bits[8] ^ self.value[15]",
                new="self.value[15]",
            ),
        ),
    ),
    Proof(
        name="bus.line",
        component="Transmitter and Receiver, 4 cycles a bit, one clock; first 100 cycles",
        claim="Every byte that is sent arrives once and in order, without an error.",
        build=_line,
        method="bounded 100",
        mutations=(
            Mutation(
                name="the receiver samples at the edge of a bit",
                owner=Receiver,
                function="elaborate",
                old="self.divisor // 2 - 1",
                new="self.divisor - 1",
            ),
            Mutation(
                name="a byte begins before the stop bit has ended",
                owner=Transmitter,
                function="elaborate",
                old="done & ~bits[1:].any()",
                new="~bits[1:].any()",
            ),
        ),
    ),
)
