"""The registers of a core, behind a register bus."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import VERSION as ENCODING

from ..bus.registers import WORD_BITS, RegisterBus
from .faults import ORIGIN, WAIT, Fault
from .ports import ADDRESS_BITS, BLOCK_BYTES, PLACE_BITS, ReadPort, WritePort
from .serial_map import COUNTERS, IDENTITY, MAP, NAME_BYTES, VERSION, WAITING

_WORD_BYTES = WORD_BITS // 8
_WORDS = BLOCK_BYTES // _WORD_BYTES


class CoreAccess(wiring.Component):
    """The registers of ``serial_map``: a core's memory, its start, and its counters.

    Parameters
    ----------
    name : str
        Name of the core's preset, at most 8 characters.
    memory_bytes : int
        Bytes of global memory.

    Members
    -------
    bus : In(RegisterBus())
        Reads and writes of registers.
    r, w : Out(ReadPort()), Out(WritePort())
        Global memory.
    start, address : Out(1), Out(32)
        Start the program at a byte of global memory.
    clear : Out(1)
        Reset the core.
    running, fault, origin, waits : In
        The state of the core, as its members of these names.
    counters : In(32) for each of ``serial_map.COUNTERS``

    Latency
    -------
    A response is valid in the cycle after its request, and that to a read of global memory one
    cycle after its block. One access is carried out at a time.
    """

    if TYPE_CHECKING:
        bus: Any
        r: Any
        w: Any
        start: Signal
        address: Signal
        clear: Signal
        running: Signal
        fault: Any
        origin: Any
        waits: Any
        counters: Any

    def __init__(self, *, name: str, memory_bytes: int):
        code = name.encode("ascii")
        if len(code) > NAME_BYTES:
            raise ValueError(f"name must have at most {NAME_BYTES} characters, not {name!r}")
        padded = code.ljust(NAME_BYTES, b"\0")
        self.constants = {
            "identity": IDENTITY,
            "version": VERSION,
            "encoding": ENCODING,
            "name_low": int.from_bytes(padded[:4], "little"),
            "name_high": int.from_bytes(padded[4:], "little"),
            "memory_bytes": memory_bytes,
        }
        super().__init__(
            {
                "bus": In(RegisterBus()),
                "r": Out(ReadPort()),
                "w": Out(WritePort()),
                "start": Out(1),
                "address": Out(ADDRESS_BITS),
                "clear": Out(1),
                "running": In(1),
                "fault": In(Fault),
                "origin": In(ORIGIN),
                "waits": In(WAIT).array(len(WAITING)),
                "counters": In(32).array(len(COUNTERS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.bus.request, self.bus.response
        write, given = request.payload.write, request.payload.data
        word = self.address[2:PLACE_BITS]
        full, waits = Signal(), Signal()
        answer = Signal(WORD_BITS)
        chosen = {name: request.payload.address == MAP[name].address for name in MAP}
        asks = request.valid & ~full & ~waits & ~self.clear
        control = asks & write & chosen["control"]
        m.d.comb += [
            self.start.eq(control & given[MAP["control"].field("start").low]),
            self.r.request.eq(asks & chosen["data"] & ~write),
            self.r.address.eq(self.address[PLACE_BITS:]),
            self.w.request.eq(asks & chosen["data"] & write),
            self.w.address.eq(self.address[PLACE_BITS:]),
            self.w.data.eq(given.replicate(_WORDS)),
            self.w.enable.eq(((1 << _WORD_BYTES) - 1) << (word << 2)),
            request.ready.eq(asks & Mux(chosen["data"], Mux(write, self.w.grant, self.r.grant), 1)),
            response.valid.eq(full),
            response.payload.eq(answer),
        ]
        # The reset comes one cycle after the write, and no access is taken then.
        m.d.sync += self.clear.eq(control & given[MAP["control"].field("reset").low])
        taken = request.valid & request.ready
        with m.If(taken & chosen["address"] & write):
            m.d.sync += self.address.eq(given)
        with m.Elif(taken & chosen["data"]):
            m.d.sync += [self.address.eq(self.address + _WORD_BYTES), waits.eq(~write)]
        stopped = self.fault != Fault.NONE
        state = Cat(self.running & ~stopped, Const(0, 3), self.fault)
        flags = zip(WAITING, self.waits, strict=True)
        values: dict[str, Any] = {
            **self.constants,
            "status": Cat(state, self.origin.unit, Const(0, 5), self.origin.opcode),
            "fault_pc": self.origin.pc,
            **dict(zip(COUNTERS, self.counters, strict=True)),
            **{f"wait_{name}": Value.cast(wait) for name, wait in flags},
        }
        place = Signal(len(word))
        with m.If(taken):
            m.d.sync += [full.eq(write | ~chosen["data"]), answer.eq(0), place.eq(word)]
            with m.If(~write), m.Switch(request.payload.address):
                for name, value in values.items():
                    with m.Case(MAP[name].address):
                        m.d.sync += answer.eq(value)
        with m.Elif(self.r.valid):
            m.d.sync += [
                answer.eq(self.r.data.word_select(place, WORD_BITS)),
                full.eq(1),
                waits.eq(0),
            ]
        with m.Elif(response.ready):
            m.d.sync += full.eq(0)
        return m
