"""The registers of a core behind AXI4-Lite, as a table and as hardware."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import UNITS
from vitruvian.golden.core.encoding import VERSION as ENCODING_VERSION

from ..bus.registers import WORD_BITS, Access, Register, RegisterBus, RegisterField
from .faults import ORIGIN, WAIT, Fault
from .ports import ADDRESS_BITS

#: The characters ``CORE``, by which a driver recognises the map.
IDENTITY = 0x434F5245

#: Bits of the addresses of words that have registers.
_TABLE_BITS = 6
_R, _W, _B, _C = Access.READ, Access.WRITE, Access.BOTH, Access.CLEAR
_FAULTS = ", ".join(f"{fault.value} {fault.name}" for fault in Fault)


def _field(name: str, low: int, width: int, text: str) -> RegisterField:
    return RegisterField(name, low, width, text)


def _of_units(prefix: str, offset: int, text: str, fields: tuple = ()) -> tuple[Register, ...]:
    return tuple(
        Register(f"{prefix}_{name.lower()}", offset + 4 * n, _R, text.format(name), fields)
        for n, name in enumerate(UNITS)
    )


#: All registers, in the order of their offsets.
CORE_REGISTERS: tuple[Register, ...] = (
    Register("identity", 0x00, _R, "the characters CORE", reset=IDENTITY),
    Register("encoding", 0x04, _R, "version of the machine code", reset=ENCODING_VERSION),
    Register(
        "control",
        0x08,
        _W,
        "commands",
        (
            _field("start", 0, 1, "1 starts a program if status.ready is 1"),
            _field("reset", 1, 1, "1 resets the core when the bus has ended what it has begun"),
        ),
    ),
    Register(
        "status",
        0x0C,
        _R,
        "state of the core",
        (
            _field("ready", 0, 1, "a program can be started"),
            _field("running", 1, 1, "a program has not ended"),
            _field("fault", 2, 1, "there is a fault; only a reset helps"),
            _field("bus", 3, 1, "the bus has not ended what it has begun"),
            _field("resetting", 4, 1, "a reset waits for the bus"),
        ),
        reset=1,
    ),
    Register("program", 0x10, _B, "first byte of the program, a multiple of 32"),
    Register(
        "interrupt",
        0x14,
        _C,
        "pending interrupt",
        (_field("ended", 0, 1, "a program has ended, or a fault has stopped it"),),
    ),
    Register(
        "enable",
        0x18,
        _B,
        "what sets the output interrupt",
        (_field("ended", 0, 1, "interrupt.ended"),),
    ),
    Register("cycles", 0x1C, _R, "cycles from the start to the end"),
    Register(
        "fault",
        0x20,
        _R,
        "the fault",
        (
            _field("kind", 0, 4, _FAULTS),
            _field("unit", 4, 3, "code of the unit"),
            _field("opcode", 8, 8, "its opcode; 0 if the program could not be read"),
        ),
    ),
    Register("fault_pc", 0x24, _R, "number of the instruction's first word in the program"),
    *_of_units("busy", 0x40, "cycles in which {} had an instruction"),
    *_of_units("bytes", 0x60, "bytes that {} has written; of S, bytes of the program"),
    *_of_units(
        "wait",
        0x80,
        "the flag that {} waits for",
        (
            _field("waits", 0, 1, "the unit waits"),
            _field("source", 1, 3, "code of the unit that sets the flag"),
            _field("flag", 4, 4, "number of the flag"),
            _field("pc", 8, 24, "number of the waiting word in the program"),
        ),
    ),
)

#: The registers by name.
CORE_MAP = {register.name: register for register in CORE_REGISTERS}


class CoreRegisters(wiring.Component):
    """The registers of a core, and its start and reset.

    Members
    -------
    bus : In(RegisterBus())
        Reads and writes.
    start, address : Out(1), Out(32)
        To the core.
    running, fault, origin, waits, busy, bytes : In
        From the core.
    hold, clear : Out(1), Out(1)
        A reset waits: the bus must take nothing more; reset the core in this cycle.
    resting : In(1)
        Nothing is on its way on the bus.
    interrupt : Out(1)
        An enabled interrupt is pending.

    Latency
    -------
    One cycle from a request to its response.
    """

    if TYPE_CHECKING:
        bus: Any
        start: Signal
        address: Signal
        running: Signal
        fault: Any
        origin: Any
        waits: Any
        busy: Any
        bytes: Any
        hold: Signal
        clear: Signal
        resting: Signal
        interrupt: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "bus": In(RegisterBus()),
                "start": Out(1),
                "address": Out(ADDRESS_BITS),
                "running": In(1),
                "fault": In(Fault),
                "origin": In(ORIGIN),
                "waits": In(WAIT).array(len(UNITS)),
                "busy": In(32).array(len(UNITS)),
                "bytes": In(32).array(len(UNITS)),
                "hold": Out(1),
                "clear": Out(1),
                "resting": In(1),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.bus.request, self.bus.response
        full = Signal()
        taken, writes = Signal(), Signal()
        m.d.comb += [
            request.ready.eq(~full),
            response.valid.eq(full),
            taken.eq(request.valid & request.ready),
            writes.eq(taken & request.payload.write),
        ]
        with m.If(taken):
            m.d.sync += full.eq(1)
        with m.Elif(response.ready):
            m.d.sync += full.eq(0)

        def written(name: str) -> Value:
            return writes & (request.payload.address == CORE_MAP[name].address)

        state = self._build_state(m, written, request.payload.data)
        values = self._values(state)
        # One word for each address; those without a register are 0, and so are writes.
        words: list[Value] = [Const(0, WORD_BITS)] * (1 << _TABLE_BITS)
        for name, value in values.items():
            words[CORE_MAP[name].address] = Cat(value, Const(0, WORD_BITS - len(value)))
        word = Cat(*words).word_select(request.payload.address[:_TABLE_BITS], WORD_BITS)
        known = ~(request.payload.write | request.payload.address[_TABLE_BITS:].any())
        with m.If(taken):
            m.d.sync += response.payload.eq(word & known.replicate(WORD_BITS))
        return m

    def _build_state(self, m: Module, written: Any, word: Value) -> SimpleNamespace:
        """Keep what the host writes, and start and reset the core."""
        s = SimpleNamespace(
            ready=Signal(name="ready"),
            stopped=Signal(name="stopped"),
            ended=Signal(name="ended"),
            enable=Signal(name="enable"),
            ran=Signal(name="ran"),
            cycles=Signal(32, name="cycles"),
        )
        control = written("control")
        m.d.comb += [
            s.stopped.eq(Value.cast(self.fault) != Fault.NONE.value),
            s.ready.eq(~self.running & ~s.stopped & ~self.hold),
            self.start.eq(control & word[0] & ~word[1] & s.ready),
            self.clear.eq(self.hold & self.resting),
            self.interrupt.eq(s.ended & s.enable),
        ]
        m.d.sync += s.ran.eq(self.running & ~self.clear)
        with m.If(self.clear):
            m.d.sync += self.hold.eq(0)
        with m.Elif(control & word[1]):
            m.d.sync += self.hold.eq(1)
        with m.If(written("program")):
            m.d.sync += self.address.eq(word)
        with m.If(written("enable")):
            m.d.sync += s.enable.eq(word[0])
        with m.If(s.ran & ~self.running):
            m.d.sync += s.ended.eq(1)
        with m.Elif(written("interrupt") & word[0]):
            m.d.sync += s.ended.eq(0)
        with m.If(self.start):
            m.d.sync += s.cycles.eq(0)
        with m.Elif(self.running):
            m.d.sync += s.cycles.eq(s.cycles + 1)
        return s

    def _values(self, s: SimpleNamespace) -> dict[str, Value]:
        """Return the values of all registers that can be read."""
        origin = self.origin
        kind = Cat(Value.cast(self.fault), origin.unit)
        values: dict[str, Value] = {
            "identity": Const(IDENTITY, WORD_BITS),
            "encoding": Const(ENCODING_VERSION, WORD_BITS),
            "status": Cat(s.ready, self.running, s.stopped, ~self.resting, self.hold),
            "program": self.address,
            "interrupt": s.ended,
            "enable": s.enable,
            "cycles": s.cycles,
            "fault": Cat(kind, Const(0, 8 - len(kind)), origin.opcode),
            "fault_pc": origin.pc,
        }
        for n, name in enumerate(UNITS):
            values |= {
                f"busy_{name.lower()}": self.busy[n],
                f"bytes_{name.lower()}": self.bytes[n],
                f"wait_{name.lower()}": Value.cast(self.waits[n]),
            }
        return values
