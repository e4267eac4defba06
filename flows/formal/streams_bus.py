"""Proofs about the buses: buffers, handshakes, registers, and the bytes of the serial line."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.frames import Crc16
from vitruvian.hdl.bus.lite import LiteUnit, Reply
from vitruvian.hdl.bus.mailbox import Mailbox, _Access
from vitruvian.hdl.bus.products import ProductSequencer
from vitruvian.hdl.bus.registers import MAP, registers_of
from vitruvian.hdl.bus.skid import Skid
from vitruvian.hdl.bus.uart import LEAST_DIVISOR, Receiver, Transmitter
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.cube.unit import MatrixUnit

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


def _lite(h: ProofHarness) -> None:
    """Follow one write and one read, any of them, through the port to the registers and back."""
    names = ("valid", "write", "address", "data", "taken", "answers", "answered")
    widths = (1, 1, 8, 32, 1, 1, 1)
    seen = {n: Signal(w, name=f"bus_{n}") for n, w in zip(names, widths, strict=True)}
    ready, offers, word = h.free("bus_ready"), h.free("bus_offers"), h.free("bus_word", 32)
    # At most one request is owed an answer.
    owed = Signal()

    def registers(self: Mailbox, platform: object) -> Module:
        """Return registers that take a request and answer it at any time, with any value."""
        m, bus = Module(), self.bus
        m.d.comb += [
            bus.request.ready.eq(ready & ~owed),
            bus.response.valid.eq(offers & owed),
            bus.response.payload.eq(word),
            seen["valid"].eq(bus.request.valid),
            seen["write"].eq(bus.request.payload.write),
            seen["address"].eq(bus.request.payload.address),
            seen["data"].eq(bus.request.payload.data),
            seen["taken"].eq(transfers(bus.request)),
            seen["answers"].eq(bus.response.valid),
            seen["answered"].eq(transfers(bus.response)),
        ]
        return m

    h.abstract(Mailbox, registers)
    dut = LiteUnit(core=_CORE)
    h.add(dut)  # its clock and its reset are those of the harness
    m = h.m
    m.d.sync += owed.eq((owed | seen["taken"]) & ~seen["answered"])

    def channel(name: str) -> tuple[Value, Value, Value]:
        valid, ready = (getattr(dut, f"s_axi_{name}{word}") for word in ("valid", "ready"))
        waits = h.past(valid & ~ready, f"{name}_waits")
        return valid, valid & ready, waits

    for name, words in (("aw", ("addr",)), ("w", ("data", "strb")), ("ar", ("addr",))):
        valid, _, waits = channel(name)
        values = Cat(*(getattr(dut, f"s_axi_{name}{word}") for word in words))
        # AXI4-Lite (AMBA IHI 0022, A3.2.1): a sender holds what it offers until it has been taken.
        h.assume(~waits | (valid & (values == h.past(values, f"{name}_values"))))
    for name, words in (("b", ("resp",)), ("r", ("data", "resp"))):
        valid, _, waits = channel(name)
        values = Cat(*(Value.cast(getattr(dut, f"s_axi_{name}{word}")) for word in words))
        h.rule(f"{name}_stable", ~waits | (valid & (values == h.past(values, f"{name}_values"))))
    request = Cat(seen["write"], seen["address"], seen["data"])
    waits = h.past(seen["valid"] & ~seen["taken"], "request_waits")
    # The data beside a read mean nothing; its address is demanded below.
    same = (request == h.past(request, "request")) | ~seen["write"]
    h.rule("request_stable", ~waits | (seen["valid"] & same))

    writes, reads = seen["valid"] & seen["write"], seen["valid"] & ~seen["write"]
    registers_here = registers_of(_CORE)

    def allows(address: Value, kind: str) -> Value:
        return Cat(*(address == r.address for r in registers_here if getattr(r, kind))).any()

    b_valid, b_sent, _ = channel("b")
    whole = dut.s_axi_wstrb.all()
    tracks = {}
    for name, values, actual in (
        ("aw", dut.s_axi_awaddr[2:], seen["address"]),
        # Address and data come in any order; the marked ones are those of the same write.
        ("w", Cat(dut.s_axi_wdata, whole), Cat(seen["data"], Const(1, 1))),
    ):
        _, taken, _ = channel(name)
        tracks[name] = Tracker(
            h, entered=taken, left=b_sent, offered=b_valid, expected=values, most=2, name=name
        )
        mine = tracks[name].marked & (tracks[name].ahead == 0)
        h.rule(f"{name}_request", ~(mine & writes) | (actual == tracks[name].value))
    done = Signal()
    with m.If(b_sent):
        m.d.sync += done.eq(0)
    with m.Elif(seen["taken"] & seen["write"]):
        m.d.sync += done.eq(1)
    # ``done``: the registers have taken the write whose response has not been sent.
    h.rule("write_once", ~(writes & done))
    both = tracks["aw"].head & tracks["w"].head
    # Bit 32 says whether all strobes were set.
    complete = tracks["w"].value[32]
    okay = complete & allows(tracks["aw"].value, "writable")
    reply = Mux(okay, Reply.OKAY.value, Reply.SLVERR.value)
    h.rule("write_done", ~both | (done == complete))
    h.rule("write_reply", ~both | (Value.cast(dut.s_axi_bresp) == reply))

    _, ar_taken, _ = channel("ar")
    r_valid, r_sent, _ = channel("r")
    read = Tracker(
        h,
        entered=ar_taken,
        left=r_sent,
        offered=r_valid,
        expected=dut.s_axi_araddr[2:],
        most=2,
        name="read",
    )
    mine = read.marked & (read.ahead == 0)
    h.rule("read_request", ~(mine & reads) | (seen["address"] == read.value))
    was_read, value, fetched = Signal(), Signal(32), Signal()
    with m.If(seen["taken"]):
        m.d.sync += was_read.eq(~seen["write"])
    with m.If(r_sent):
        m.d.sync += fetched.eq(0)
    with m.If(seen["answered"] & was_read):
        m.d.sync += [value.eq(word), fetched.eq(1)]
    h.rule("read_once", ~(seen["answered"] & was_read & fetched))
    h.rule("read_value", ~r_valid | (fetched & (dut.s_axi_rdata == value)))
    reply = Mux(allows(read.value, "readable"), Reply.OKAY.value, Reply.SLVERR.value)
    h.rule("read_reply", ~read.head | (Value.cast(dut.s_axi_rresp) == reply))
    # The registers do not stall, else no bound on cycles would hold.
    prompt = [ready | owed, offers | ~owed]
    waiting = [tracks["aw"].level != 0, tracks["w"].level != 0, dut.s_axi_bready]
    arrives(h, waiting=[*waiting, *prompt], offered=b_valid, cycles=6, name="b")
    waiting = [read.level != 0, dut.s_axi_rready]
    arrives(h, waiting=[*waiting, *prompt], offered=r_valid, cycles=6, name="r")


def _mailbox(h: ProofHarness) -> None:
    """Compare the beats, the C fractals and the results with the words that cross the bus."""
    bits = {"a": _CORE.a_bits, "b": _CORE.b_bits, "c": _CORE.d_bits, "control": 8}
    names = {"i_valid": 1, "c_valid": 1, "o_ready": 1, **bits}
    seen = {name: Signal(width, name=f"unit_{name}") for name, width in names.items()}
    i_ready, c_ready, o_valid = (h.free(f"unit_{n}") for n in ("i_ready", "c_ready", "o_valid"))
    result = h.free("unit_result", 64)

    def unit(self: MatrixUnit, platform: object) -> Module:
        """Return a unit that takes beats and offers results at any time."""
        m, beat = Module(), self.i.payload
        control = Cat(*(Value.cast(beat[n]) for n in beat.shape().members if n not in ("a", "b")))
        m.d.comb += [
            self.i.ready.eq(i_ready),
            self.c.ready.eq(c_ready),
            self.o.valid.eq(o_valid),
            Value.cast(self.o.payload).eq(result),
            seen["i_valid"].eq(self.i.valid),
            seen["c_valid"].eq(self.c.valid),
            seen["o_ready"].eq(self.o.ready),
            seen["a"].eq(Value.cast(beat.a)),
            seen["b"].eq(Value.cast(beat.b)),
            seen["c"].eq(Value.cast(self.c.payload)),
            seen["control"].eq(control),
        ]
        return m

    h.abstract(MatrixUnit, unit)
    dut = h.add(Mailbox(core=_CORE))
    m, request, response = h.m, dut.bus.request, dut.bus.response
    address, write, data = (
        request.payload.address,
        request.payload.write,
        request.payload.data,
    )
    waits = h.past(o_valid & ~seen["o_ready"], "result_waits")
    h.assume(~waits | (o_valid & (result == h.past(result, "result"))))
    fire = transfers(request)

    def access(name: str, writes: bool) -> Value:
        return fire & (address == MAP[name].address) & (write if writes else ~write)

    # A reset of the unit ends the statements about its streams.
    h.assume(~access("control", True))
    track = Tracker(
        h,
        entered=fire,
        left=transfers(response),
        offered=response.valid,
        expected=write,
        most=1,
        name="response",
    )
    h.rule("response_valid", response.valid == (track.level != 0))
    h.rule("response_zero", ~(track.head & track.value) | (response.payload == 0))
    payload = response.payload
    waits = h.past(response.valid & ~response.ready, "response_waits")
    h.rule("response_stable", ~waits | (payload == h.past(payload, "payload")))

    # Operands and beats: a word is taken while no beat waits.
    pending = seen["i_valid"]
    a, b, c, c_count = Signal(32), Signal(32), Signal(64), Signal()
    with m.If(access("a_data", True) & ~pending):
        m.d.sync += a.eq(data)
    with m.If(access("b_data", True) & ~pending):
        m.d.sync += b.eq(data)
    fields = {f.name: data[f.low : f.low + f.width] for f in MAP["command"].fields}
    known = (fields["operation"] == 0) & (fields["precision"] == 0) & (fields["slot"] < 2)
    # The mirror of the unit's own condition, with the codes of this core: one operation, one
    # precision, two slots.
    go = access("command", True) & ~pending & known
    now = h.past(go, "go")
    stays = h.past(pending & ~i_ready, "beat_waits")
    h.rule("beat_for_command", pending == (now | stays))
    same = Cat(seen["a"], seen["b"]) == Cat(a[: len(seen["a"])], b[: len(seen["b"])])
    h.rule("beat_operands", ~pending | same)
    control = seen["control"]
    h.rule("beat_stable", ~stays | (control == h.past(control, "control")))
    c_full = seen["c_valid"]
    c_push = access("c_data", True) & ~c_full
    with m.If(c_push):
        # Two words, the lower one first.
        m.d.sync += [c.eq(Cat(c[32:], data)), c_count.eq(~c_count)]
    completes = h.past(c_push & c_count, "c_completes")
    c_stays = h.past(c_full & ~c_ready, "c_waits")
    h.rule("c_for_words", c_full == (completes | c_stays))
    h.rule("c_value", ~c_full | (seen["c"] == c))

    # Results: words in order, and the result stays until the last one has been read.
    index = Signal()
    reads = access("d_data", False) & o_valid
    with m.If(reads):
        m.d.sync += index.eq(~index)
    h.rule("result_kept", (seen["o_ready"] & o_valid) == (reads & index))
    expected = h.past(Mux(index, result[32:], result[:32]), "word")
    h.rule("result_word", ~h.past(reads, "reads") | (payload == expected))
    h.rule("result_none", ~h.past(access("d_data", False) & ~o_valid, "empty") | (payload == 0))


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
        name="bus.lite",
        component="LiteUnit; registers replaced by free ones",
        claim="Every access gets one response, in order, with its own address, value and code; a "
        "response that waits is stable; a write without all strobes reaches no register.",
        build=_lite,
        mutations=(
            Mutation(
                name="a response is withdrawn after one cycle",
                owner=LiteUnit,
                function="_answer",
                old="m.Elif(ready)",
                new="m.Elif(valid)",
            ),
            Mutation(
                name="a write without all strobes is executed",
                owner=LiteUnit,
                function="elaborate",
                old="Mux(writes, whole, may_read)",
                new="Mux(writes, 1, may_read)",
            ),
            Mutation(
                name="an access may change into another one while it waits",
                owner=LiteUnit,
                function="elaborate",
                old="Mux(waits | stalls, chosen,",
                new="Mux(waits, chosen,",
            ),
        ),
    ),
    Proof(
        name="bus.mailbox",
        component="Mailbox, INT8, 1 × 2 × 1; unit replaced by a free one; no reset by control",
        claim="Every request gets one response; a beat has the operands written before its "
        "command, and waits unchanged; a result stays until its last word has been read.",
        build=_mailbox,
        mutations=(
            Mutation(
                name="a word of an operand is taken while a beat waits",
                owner=Mailbox,
                function="elaborate",
                old="access.writes(register) & ready",
                new="access.writes(register)",
            ),
            Mutation(
                name="a result is taken with its first word",
                owner=Mailbox,
                function="_build_d",
                old='access.reads("d_data") & (index == count - 1)',
                new='access.reads("d_data") & (index == 0)',
            ),
            Mutation(
                name="a request is taken while a response waits",
                owner=_Access,
                function="__init__",
                old="(~full | bus.response.ready) & ~wait",
                new="~wait",
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
