"""A matrix unit behind registers: operands are written word by word, and results read."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Module,
    Mux,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .core import SHARED, BusCore
from .registers import MAP, WORD_BITS, RegisterBus, constants, registers_of


class Words(wiring.Component):
    """Shift register that collects a long value from words, the lowest word first.

    Parameters
    ----------
    width : int
        Bits of the value, at least 1.

    Members
    -------
    push, word : In(1), In(32)
        Set ``push`` to append a word.
    value : Out(width)
        The value. It is complete if ``partial`` is 0.
    partial : Out(1)
        Set after some words of a value but not all of them.
    completes : Out(1)
        Set in the cycle in which the last word of a value is pushed.
    """

    if TYPE_CHECKING:
        push: Signal
        word: Signal
        value: Signal
        partial: Signal
        completes: Signal

    def __init__(self, *, width: int):
        self.words = -(-width // WORD_BITS)
        super().__init__(
            {
                "push": In(1),
                "word": In(WORD_BITS),
                "value": Out(width),
                "partial": Out(1),
                "completes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(self.words * WORD_BITS)
        count = Signal(range(self.words))
        m.d.comb += [
            self.value.eq(held),
            self.partial.eq(count != 0),
            self.completes.eq(self.push & (count == self.words - 1)),
        ]
        with m.If(self.push):
            m.d.sync += [
                # The words enter at the top, so that the first one is the lowest when the last has
                # come.
                held.eq(Cat(held, self.word)[WORD_BITS:]),
                count.eq(Mux(self.completes, 0, count + 1)),
            ]
        return m


class Mailbox(wiring.Component):
    """Matrix unit with the registers of ``hdl.bus.registers`` in front of it.

    Parameters
    ----------
    core : BusCore
        The unit.

    Members
    -------
    bus : In(RegisterBus())
        Reads and writes of registers.

    Latency
    -------
    A response is valid in the cycle after its request was taken. There is one request per cycle
    while responses are taken. A beat is offered to the unit in the cycle after its command.

    Notes
    -----
    No access waits for the unit, because the access that would free it could then never come. A
    write that the unit cannot take at once is refused: it has no effect but the bit ``refused`` in
    ``errors``. The bits of ``status`` tell in advance, and they stay set until the next access that
    uses them. A result stays in the unit until its last word has been read. Nothing is therefore
    lost or duplicated by a driver that reads ``status`` before it writes.
    """

    shared = SHARED

    if TYPE_CHECKING:
        bus: Any

    def __init__(self, *, core: BusCore):
        self.core = core
        super().__init__({"bus": In(RegisterBus())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core = self.core
        # The unit and the operands have a domain of their own, which a write to control resets.
        m.domains.unit = ClockDomain("unit", local=True)
        clear = Signal()
        m.d.comb += [
            ClockSignal("unit").eq(ClockSignal()),
            ResetSignal("unit").eq(ResetSignal() | clear),
        ]
        unit = core.build()
        m.submodules.unit = DomainRenamer("unit")(unit)
        access = _Access(m, self.bus, core, wait=clear)
        # The reset comes one cycle after the write, and no access is taken in that cycle.
        m.d.sync += clear.eq(access.writes("control") & access.data[0])

        fields = [("a", core.a_bits), ("b", core.b_bits), ("index", core.index_bits)]
        operands: dict[str, Words] = {}
        ready = Signal()
        for name, width in fields:
            if not width:
                continue
            operands[name] = words = Words(width=width)
            m.submodules[f"{name}_words"] = DomainRenamer("unit")(words)
            register = f"{name}_data"
            m.d.comb += [
                words.word.eq(access.data),
                words.push.eq(access.writes(register) & ready),
            ]
            # The words are the operand registers of the pending beat, and must not move until it is
            # taken.
            access.refuse(register, ~ready)
        partial = Cat(words.partial for words in operands.values()).any()
        self._build_c(m, unit, access)
        self._build_d(m, unit, access)
        build = self._build_instructions if core.kind == "mma" else self._build_beats
        build(m, unit, access, operands, ready, partial)
        access.finish()
        return m

    def _build_c(self, m: Module, unit: Any, access: "_Access") -> None:
        """Collect a C fractal, and offer it to the unit until it is taken."""
        m.submodules.c_words = DomainRenamer("unit")(words := Words(width=self.core.d_bits))
        # A complete C waits here; its words must not change until the unit has taken it.
        full = Signal(name="c_full")
        m.d.comb += [
            words.word.eq(access.data),
            words.push.eq(access.writes("c_data") & ~full),
            Value.cast(unit.c.payload).eq(words.value),
            unit.c.valid.eq(full),
        ]
        with m.If(words.completes):
            m.d.unit += full.eq(1)
        with m.Elif(unit.c.ready):
            m.d.unit += full.eq(0)
        access.refuse("c_data", full)
        access.status["c_ready"] = ~full

    def _build_d(self, m: Module, unit: Any, access: "_Access") -> None:
        """Read the offered result word by word; the unit keeps it until the last word is read."""
        bits = Value.cast(unit.o.payload)
        count = -(-len(bits) // WORD_BITS)
        index = Signal(range(count), name="d_index")
        # Only the last word takes the result from the unit, so that a driver may pause between
        # words.
        m.d.comb += unit.o.ready.eq(access.reads("d_data") & (index == count - 1))
        with m.If(access.reads("d_data") & unit.o.valid):
            m.d.unit += index.eq(Mux(index == count - 1, 0, index + 1))
        word = Signal(WORD_BITS, name="d_word")
        with m.Switch(index):
            for number in range(count):
                with m.Case(number):
                    m.d.comb += word.eq(bits[number * WORD_BITS : (number + 1) * WORD_BITS])
        access.values["d_data"] = Mux(unit.o.valid, word, 0)
        access.empty("d_data", ~unit.o.valid)
        access.status["d_valid"] = unit.o.valid

    def _build_beats(
        self,
        m: Module,
        unit: Any,
        access: "_Access",
        operands: dict[str, Words],
        ready: Signal,
        partial: Value,
    ) -> None:
        """Send the operands as a beat when a command is written."""
        core, beat = self.core, unit.i.payload
        pending = Signal()
        m.d.comb += [ready.eq(~pending), unit.i.valid.eq(pending)]
        command = {field.name: access.field("command", field.name) for field in access.command}
        sizes = {
            "precision": len(core.precisions) or 1,
            "operation": len(core.operations),
            "slot": core.slot_count,
        }
        # Fields may have more codes than the unit has members.
        known = Cat(command[name] < size for name, size in sizes.items()).all()
        go = Signal(name="command_go")
        m.d.comb += go.eq(access.writes("command") & ready & ~partial & known)
        access.refuse("command", pending)
        access.error("incomplete", access.writes("command") & ready & partial)
        access.error("code", access.writes("command") & ready & ~partial & ~known)
        with m.If(go):
            m.d.unit += pending.eq(1)
        with m.Elif(unit.i.ready):
            m.d.unit += pending.eq(0)
        for name in beat.shape().members:
            target = Value.cast(getattr(beat, name))
            if name in operands:
                m.d.comb += target.eq(operands[name].value)
            elif len(target):
                # The bus changes after the write, and the beat is offered from the next cycle on.
                held = Signal(len(target), name=f"command_{name}")
                with m.If(go):
                    m.d.unit += held.eq(command[name])
                m.d.comb += target.eq(held)
        access.status["ready"] = ready

    def _build_instructions(
        self,
        m: Module,
        unit: Any,
        access: "_Access",
        operands: dict[str, Words],
        ready: Signal,
        partial: Value,
    ) -> None:
        """Run instructions; give requests for operands, and send the operands when told to."""
        pending, waiting = Signal(), Signal(name="instruction_waiting")
        word = Signal(WORD_BITS, name="instruction")
        m.d.comb += [
            ready.eq(~pending),
            unit.ab.valid.eq(pending),
            *(Value.cast(unit.ab.payload[n]).eq(operands[n].value) for n in ("a", "b")),
            unit.i.valid.eq(waiting),
            Value.cast(unit.i.payload).eq(word),
            unit.fetch.ready.eq(access.reads("fetch")),
        ]
        with m.If(access.writes("send") & ready & ~partial):
            m.d.unit += pending.eq(1)
        with m.Elif(unit.ab.ready):
            m.d.unit += pending.eq(0)
        with m.If(access.writes("instruction") & ~waiting):
            m.d.unit += [waiting.eq(1), word.eq(access.data)]
        with m.Elif(unit.i.ready):
            m.d.unit += waiting.eq(0)
        access.refuse("send", pending)
        access.refuse("instruction", waiting)
        access.error("incomplete", access.writes("send") & ready & partial)
        access.empty("fetch", ~unit.fetch.valid)
        request = Signal(WORD_BITS, name="request")
        for name in ("row", "column", "block", "first", "last"):
            field = MAP["fetch"].field(name)
            part = Value.cast(getattr(unit.fetch.payload, name))
            m.d.comb += request[field.low : field.low + len(part)].eq(part)
        # A read of 0 says that there was no request.
        m.d.comb += request[MAP["fetch"].field("valid").low].eq(1)
        access.values["fetch"] = Mux(unit.fetch.valid, request, 0)
        access.levels["illegal"] = unit.illegal
        access.status |= {
            "ready": ready,
            "fetch_valid": unit.fetch.valid,
            "instruction_ready": ~waiting,
        }


class _Access:
    """The access in this cycle: decoding, the value to read, and the errors.

    Parameters
    ----------
    m : Module
        Gets the logic.
    bus : RegisterBus
        The bus, from its target's side.
    core : BusCore
        The unit, which determines the registers.
    wait : Value
        1 in cycles in which no access may be taken.
    """

    def __init__(self, m: Module, bus: Any, core: BusCore, *, wait: Value):
        self.m, self.bus = m, bus
        request = bus.request.payload
        self.data = request.data
        self.command = MAP["command"].fields
        self.values: dict[str, Value | int] = dict(constants(core))
        self.status: dict[str, Value] = {}
        self.levels: dict[str, Value] = {}  # errors that stay as long as their cause does
        self._errors: dict[str, list[Value]] = {f.name: [] for f in MAP["errors"].fields}
        self.fire = Signal(name="access")
        full = Signal(name="response_valid")
        self.response = Signal(WORD_BITS, name="response_data")
        m.d.comb += [
            # One response is held; a request may follow in the cycle in which that one leaves.
            bus.request.ready.eq((~full | bus.response.ready) & ~wait),
            self.fire.eq(bus.request.valid & bus.request.ready),
            bus.response.valid.eq(full),
            bus.response.payload.eq(self.response),
        ]
        with m.If(self.fire):
            m.d.sync += full.eq(1)
        with m.Elif(bus.response.ready):
            m.d.sync += full.eq(0)
        self._writes: dict[str, Signal] = {}
        self._reads: dict[str, Signal] = {}
        for register in registers_of(core):
            name = register.name
            chosen = self.fire & (request.address == register.address)
            if register.writable:
                self._writes[name] = signal = Signal(name=f"write_{name}")
                m.d.comb += signal.eq(chosen & request.write)
            if register.readable:
                self._reads[name] = signal = Signal(name=f"read_{name}")
                m.d.comb += signal.eq(chosen & ~request.write)
        known = Cat(*self._writes.values(), *self._reads.values()).any()
        self.error("address", self.fire & ~known)

    def writes(self, name: str) -> Signal:
        """Return 1 in the cycle of a write to a register."""
        return self._writes[name]

    def reads(self, name: str) -> Signal:
        """Return 1 in the cycle of a read of a register."""
        return self._reads[name]

    def field(self, register: str, name: str) -> Value:
        """Return a field of the data that are written to a register."""
        field = MAP[register].field(name)
        return self.data[field.low : field.low + field.width]

    def error(self, name: str, when: Value) -> None:
        """Set a bit of ``errors`` in cycles with ``when``."""
        self._errors[name].append(when)

    def refuse(self, register: str, when: Value) -> None:
        """Set the bit ``refused`` if a register is written in a cycle with ``when``."""
        self.error("refused", self.writes(register) & when)

    def empty(self, register: str, when: Value) -> None:
        """Set the bit ``empty`` if a register is read in a cycle with ``when``."""
        self.error("empty", self.reads(register) & when)

    def finish(self) -> None:
        """Build the registers of errors, the status, and the value to read."""
        m, fields = self.m, MAP["errors"].fields
        # Errors stay until a one is written to their bit; a new error in that cycle wins.
        held = Signal(max(f.low + f.width for f in fields), name="errors")
        seen = Cat(*(Cat(*self._errors[f.name]).any() for f in fields))
        clear = Mux(self.writes("errors"), self.data[: len(held)], 0)
        m.d.sync += held.eq((held & ~clear) | seen)
        errors = held | Cat(*(self.levels.get(f.name, 0) for f in fields))
        self.values["errors"] = errors
        self.status["error"] = errors.any()
        status = Signal(WORD_BITS, name="status")
        for name, value in self.status.items():
            m.d.comb += status[MAP["status"].field(name).low].eq(value)
        self.values["status"] = status
        with m.If(self.fire):
            m.d.sync += self.response.eq(0)
        for name, chosen in self._reads.items():
            with m.If(chosen):
                m.d.sync += self.response.eq(self.values[name])
