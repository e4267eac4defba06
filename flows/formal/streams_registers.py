"""Proofs about the registers of a unit: the port of AXI4-Lite, and the mailbox behind it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.lite import LitePort, LiteUnit, Reply
from vitruvian.hdl.bus.mailbox import Mailbox, _Access
from vitruvian.hdl.bus.registers import MAP, registers_of
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.unit import MatrixUnit

#: A result of two words, and operands of one.
_CORE = BusCore(config=MatrixUnitConfig(m=1, n=2, k=1, precisions=("int8",), slots=2))


def _lite(h: ProofHarness) -> None:
    """Follow one write and one read, any of them, through the port to the registers and back."""
    _FreeRegisters(h).demand()


class _FreeRegisters:
    """A port whose registers take requests and answer them at any time, with any value.

    ``seen`` has the requests at the registers, and ``owed`` is set while they owe an answer.
    """

    def __init__(self, h: ProofHarness) -> None:
        self.h = h
        names = ("valid", "write", "address", "data", "taken", "answers", "answered")
        widths = (1, 1, 8, 32, 1, 1, 1)
        seen = {n: Signal(w, name=f"bus_{n}") for n, w in zip(names, widths, strict=True)}
        ready, offers, word = h.free("bus_ready"), h.free("bus_offers"), h.free("bus_word", 32)
        owed = Signal()

        def registers(self: Mailbox, platform: object) -> Module:
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
        self.dut = LiteUnit(core=_CORE)
        h.add(self.dut)  # its clock and its reset are those of the harness
        h.m.d.sync += owed.eq((owed | seen["taken"]) & ~seen["answered"])
        self.seen, self.word = seen, word
        self.writes = seen["valid"] & seen["write"]
        self.reads = seen["valid"] & ~seen["write"]
        # The registers do not stall, else no bound on cycles would hold.
        self.prompt = [ready | owed, offers | ~owed]

    def demand(self) -> None:
        """Demand all parts of the claim."""
        self._hold_channels()
        write, read = self._write(), self._read()
        for name, (waiting, offered) in (("b", write), ("r", read)):
            arrives(self.h, waiting=[*waiting, *self.prompt], offered=offered, cycles=6, name=name)

    def _channel(self, name: str) -> tuple[Value, Value, Value]:
        """Return whether a channel offers something, passes it, and waited in the cycle before."""
        valid, ready = (getattr(self.dut, f"s_axi_{name}{word}") for word in ("valid", "ready"))
        waits = self.h.past(valid & ~ready, f"{name}_waits")
        return valid, valid & ready, waits

    @staticmethod
    def _allows(address: Value, kind: str) -> Value:
        """Return 1 for the address of a register that is ``readable`` or ``writable``."""
        registers = registers_of(_CORE)
        return Cat(*(address == r.address for r in registers if getattr(r, kind))).any()

    def _hold_channels(self) -> None:
        """Let the initiator hold what it offers, and demand the same of the port."""
        h, dut, seen = self.h, self.dut, self.seen
        for name, words in (("aw", ("addr",)), ("w", ("data", "strb")), ("ar", ("addr",))):
            valid, _, waits = self._channel(name)
            values = Cat(*(getattr(dut, f"s_axi_{name}{word}") for word in words))
            # AXI4-Lite (AMBA IHI 0022, A3.2.1): what is offered stays until it has been taken.
            h.assume(~waits | (valid & (values == h.past(values, f"{name}_values"))))
        for name, words in (("b", ("resp",)), ("r", ("data", "resp"))):
            valid, _, waits = self._channel(name)
            values = Cat(*(Value.cast(getattr(dut, f"s_axi_{name}{word}")) for word in words))
            kept = valid & (values == h.past(values, f"{name}_values"))
            h.rule(f"{name}_stable", ~waits | kept)
        request = Cat(seen["write"], seen["address"], seen["data"])
        waits = h.past(seen["valid"] & ~seen["taken"], "request_waits")
        # The data beside a read mean nothing; its address is demanded in ``_read``.
        same = (request == h.past(request, "request")) | ~seen["write"]
        h.rule("request_stable", ~waits | (seen["valid"] & same))

    def _write(self) -> tuple[list[Value], Value]:
        """Follow a write; return when its response is due, and 1 if it is offered."""
        h, dut, seen, writes = self.h, self.dut, self.seen, self.writes
        b_valid, b_sent, _ = self._channel("b")
        whole = dut.s_axi_wstrb.all()
        tracks: dict[str, Tracker] = {}
        for name, values, actual in (
            ("aw", dut.s_axi_awaddr[2:], seen["address"]),
            # Address and data come in any order; the marked ones are those of the same write.
            ("w", Cat(dut.s_axi_wdata, whole), Cat(seen["data"], Const(1, 1))),
        ):
            _, taken, _ = self._channel(name)
            tracks[name] = Tracker(
                h, entered=taken, left=b_sent, offered=b_valid, expected=values, most=2, name=name
            )
            mine = tracks[name].marked & (tracks[name].ahead == 0)
            h.rule(f"{name}_request", ~(mine & writes) | (actual == tracks[name].value))
        # The registers have taken the write whose response has not been sent.
        done = Signal()
        with h.m.If(b_sent):
            h.m.d.sync += done.eq(0)
        with h.m.Elif(seen["taken"] & seen["write"]):
            h.m.d.sync += done.eq(1)
        h.rule("write_once", ~(writes & done))
        both = tracks["aw"].head & tracks["w"].head
        # Bit 32 says whether all strobes were set.
        complete = tracks["w"].value[32]
        okay = complete & self._allows(tracks["aw"].value, "writable")
        reply = Mux(okay, Reply.OKAY.value, Reply.SLVERR.value)
        h.rule("write_done", ~both | (done == complete))
        h.rule("write_reply", ~both | (Value.cast(dut.s_axi_bresp) == reply))
        return [tracks["aw"].level != 0, tracks["w"].level != 0, dut.s_axi_bready], b_valid

    def _read(self) -> tuple[list[Value], Value]:
        """Follow a read; return when its response is due, and 1 if it is offered."""
        h, dut, seen = self.h, self.dut, self.seen
        _, ar_taken, _ = self._channel("ar")
        r_valid, r_sent, _ = self._channel("r")
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
        h.rule("read_request", ~(mine & self.reads) | (seen["address"] == read.value))
        was_read, value, fetched = Signal(), Signal(32), Signal()
        with h.m.If(seen["taken"]):
            h.m.d.sync += was_read.eq(~seen["write"])
        with h.m.If(r_sent):
            h.m.d.sync += fetched.eq(0)
        with h.m.If(seen["answered"] & was_read):
            h.m.d.sync += [value.eq(self.word), fetched.eq(1)]
        h.rule("read_once", ~(seen["answered"] & was_read & fetched))
        h.rule("read_value", ~r_valid | (fetched & (dut.s_axi_rdata == value)))
        reply = Mux(self._allows(read.value, "readable"), Reply.OKAY.value, Reply.SLVERR.value)
        h.rule("read_reply", ~read.head | (Value.cast(dut.s_axi_rresp) == reply))
        return [read.level != 0, dut.s_axi_rready], r_valid


def _mailbox(h: ProofHarness) -> None:
    """Compare the beats, the C fractals and the results with the words that cross the bus."""
    _FreeUnit(h).demand()


class _FreeUnit:
    """A mailbox whose unit takes beats and offers results at any time.

    ``seen`` has the unit's side of its streams.
    """

    def __init__(self, h: ProofHarness) -> None:
        self.h = h
        bits = {"a": _CORE.a_bits, "b": _CORE.b_bits, "c": _CORE.d_bits, "control": 8}
        names = {"i_valid": 1, "c_valid": 1, "o_ready": 1, **bits}
        seen = {name: Signal(width, name=f"unit_{name}") for name, width in names.items()}
        ready, c_ready, valid = (h.free(f"unit_{n}") for n in ("i_ready", "c_ready", "o_valid"))
        result = h.free("unit_result", 64)

        def unit(self: MatrixUnit, platform: object) -> Module:
            m, beat = Module(), self.i.payload
            others = (n for n in beat.shape().members if n not in ("a", "b"))
            m.d.comb += [
                self.i.ready.eq(ready),
                self.c.ready.eq(c_ready),
                self.o.valid.eq(valid),
                Value.cast(self.o.payload).eq(result),
                seen["i_valid"].eq(self.i.valid),
                seen["c_valid"].eq(self.c.valid),
                seen["o_ready"].eq(self.o.ready),
                seen["a"].eq(Value.cast(beat.a)),
                seen["b"].eq(Value.cast(beat.b)),
                seen["c"].eq(Value.cast(self.c.payload)),
                seen["control"].eq(Cat(*(Value.cast(beat[n]) for n in others))),
            ]
            return m

        h.abstract(MatrixUnit, unit)
        self.dut = h.add(Mailbox(core=_CORE))
        self.seen, self.i_ready, self.c_ready = seen, ready, c_ready
        self.o_valid, self.result = valid, result
        request = self.dut.bus.request
        self.data, self.fire = request.payload.data, transfers(request)
        waits = h.past(valid & ~seen["o_ready"], "result_waits")
        h.assume(~waits | (valid & (result == h.past(result, "result"))))
        # A reset of the unit ends the statements about its streams.
        h.assume(~self._access("control", True))

    def demand(self) -> None:
        """Demand all parts of the claim."""
        self._responses()
        self._beats()
        self._addends()
        self._results()

    def _access(self, name: str, writes: bool) -> Value:
        """Return 1 in the cycle of a write to a register, or of a read of it."""
        request = self.dut.bus.request.payload
        kind = request.write if writes else ~request.write
        return self.fire & (request.address == MAP[name].address) & kind

    def _responses(self) -> None:
        """Demand one response for each request, which stays until it has been taken."""
        h, response = self.h, self.dut.bus.response
        track = Tracker(
            h,
            entered=self.fire,
            left=transfers(response),
            offered=response.valid,
            expected=self.dut.bus.request.payload.write,
            most=1,
            name="response",
        )
        h.rule("response_valid", response.valid == (track.level != 0))
        h.rule("response_zero", ~(track.head & track.value) | (response.payload == 0))
        waits = h.past(response.valid & ~response.ready, "response_waits")
        kept = response.payload == h.past(response.payload, "payload")
        h.rule("response_stable", ~waits | kept)

    def _beats(self) -> None:
        """Demand a beat for each command, with the operands written before it."""
        h, m, data, seen = self.h, self.h.m, self.data, self.seen
        pending = seen["i_valid"]
        # A word of an operand is taken while no beat waits.
        a, b = Signal(32), Signal(32)
        with m.If(self._access("a_data", True) & ~pending):
            m.d.sync += a.eq(data)
        with m.If(self._access("b_data", True) & ~pending):
            m.d.sync += b.eq(data)
        fields = {f.name: data[f.low : f.low + f.width] for f in MAP["command"].fields}
        known = (fields["operation"] == 0) & (fields["precision"] == 0) & (fields["slot"] < 2)
        # The mirror of the unit's own condition, with the codes of this core: one operation, one
        # precision, two slots.
        go = self._access("command", True) & ~pending & known
        now = h.past(go, "go")
        stays = h.past(pending & ~self.i_ready, "beat_waits")
        h.rule("beat_for_command", pending == (now | stays))
        same = Cat(seen["a"], seen["b"]) == Cat(a[: len(seen["a"])], b[: len(seen["b"])])
        h.rule("beat_operands", ~pending | same)
        control = seen["control"]
        h.rule("beat_stable", ~stays | (control == h.past(control, "control")))

    def _addends(self) -> None:
        """Demand a C fractal for every two words of it."""
        h, m, seen = self.h, self.h.m, self.seen
        c, c_count = Signal(64), Signal()
        c_full = seen["c_valid"]
        c_push = self._access("c_data", True) & ~c_full
        with m.If(c_push):
            # The lower word comes first.
            m.d.sync += [c.eq(Cat(c[32:], self.data)), c_count.eq(~c_count)]
        completes = h.past(c_push & c_count, "c_completes")
        c_stays = h.past(c_full & ~self.c_ready, "c_waits")
        h.rule("c_for_words", c_full == (completes | c_stays))
        h.rule("c_value", ~c_full | (seen["c"] == c))

    def _results(self) -> None:
        """Demand the words of a result in order, and the result until the last one is read."""
        h, payload, index = self.h, self.dut.bus.response.payload, Signal()
        reads = self._access("d_data", False) & self.o_valid
        with h.m.If(reads):
            h.m.d.sync += index.eq(~index)
        h.rule("result_kept", (self.seen["o_ready"] & self.o_valid) == (reads & index))
        expected = h.past(Mux(index, self.result[32:], self.result[:32]), "word")
        h.rule("result_word", ~h.past(reads, "reads") | (payload == expected))
        empty = h.past(self._access("d_data", False) & ~self.o_valid, "empty")
        h.rule("result_none", ~empty | (payload == 0))


PROOFS = (
    Proof(
        name="bus.lite",
        component="LiteUnit; registers replaced by free ones",
        claim="Every access gets one response, in order, with its own address, value and code; a "
        "response that waits is stable; a write without all strobes reaches no register.",
        build=_lite,
        mutations=(
            Mutation(
                name="a response is withdrawn after one cycle",
                owner=LitePort,
                function="_answer",
                old="m.Elif(ready)",
                new="m.Elif(valid)",
            ),
            Mutation(
                name="a write without all strobes is executed",
                owner=LitePort,
                function="elaborate",
                old="Mux(writes, whole, may_read)",
                new="Mux(writes, 1, may_read)",
            ),
            Mutation(
                name="an access may change into another one while it waits",
                owner=LitePort,
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
)
