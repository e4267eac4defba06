"""What stops a core, and what its registers say about it."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import OPCODE_BITS, UNIT_BITS

#: Bits of a program counter, the number of a word in its program.
PC_BITS = 24
#: Bits of the number of a flag between two units.
REGISTER_BITS = 4


class Fault(enum.Enum, shape=4):
    """What stopped a core."""

    NONE = 0
    #: A word names a unit that the core lacks.
    UNIT = 1
    #: A flag was set that was set already.
    FLAG = 2
    #: A scalar load found another element than the program expects.
    #: If S is a processor, its program has an unknown instruction or an address of no memory.
    VALUE = 3
    #: The unit lacks the operation, its number of words, or the buffer of an operand.
    CODE = 4
    #: The first byte of an operand is not at a multiple that the operation needs.
    ALIGN = 5
    #: An operand reaches beyond its buffer.
    BOUNDS = 6
    #: Global memory answered with an error.
    BUS = 7
    #: All units that have an instruction wait for flags that nothing will set.
    DEADLOCK = 8


#: Where a fault was: the unit, the opcode, and the number of the instruction's first word.
ORIGIN = data.StructLayout({"unit": UNIT_BITS, "opcode": OPCODE_BITS, "pc": PC_BITS})
#: The flag that a unit waits for, and the number of the wait's word.
WAIT = data.StructLayout(
    {"waits": 1, "source": UNIT_BITS, "register": REGISTER_BITS, "pc": PC_BITS}
)


class FaultRegister(wiring.Component):
    """Register of the first fault; all later ones are lost.

    Members
    -------
    trips, turns : array of In(Fault), array of In(ORIGIN)
        For each unit: a fault of this cycle, and from the next cycle on the instruction that has
        it. Of several, that of the first unit is kept.
    reached : In(6)
        The queue of a unit has come to the word that the fetch unit has refused.
    refused, refused_origin : In(Fault), In(ORIGIN)
        That fault.
    blocked, empty : In(6), In(6)
        The queue waits for a flag that is not set; or it and its unit have nothing to do.
    fetch_blocked : In(1)
        The fetch unit cannot give a word to a queue, or has none left.
    halt, tripped : Out(1), Out(6)
        There is a fault, so no instruction may start; the units that have had one.
    fault, origin : Out(Fault), Out(ORIGIN)
        The first fault. In a deadlock, the first unit that waits has it.
    """

    if TYPE_CHECKING:
        trips: Any
        turns: Any
        reached: Signal
        refused: Any
        refused_origin: Any
        blocked: Signal
        empty: Signal
        fetch_blocked: Signal
        halt: Signal
        tripped: Signal
        fault: Any
        origin: Any

    def __init__(self, *, units: int) -> None:
        count = units
        super().__init__(
            {
                "trips": In(Fault).array(count),
                "turns": In(ORIGIN).array(count),
                "reached": In(count),
                "refused": In(Fault),
                "refused_origin": In(ORIGIN),
                "blocked": In(count),
                "empty": In(count),
                "fetch_blocked": In(1),
                "halt": Out(1),
                "tripped": Out(count),
                "fault": Out(Fault),
                "origin": Out(ORIGIN),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stands, stuck, refuses, fetched = Signal(), Signal(), Signal(), Signal()
        trips = Cat(*(Value.cast(trip) != Fault.NONE.value for trip in self.trips))
        m.d.comb += [
            self.halt.eq(Value.cast(self.fault) != Fault.NONE.value),
            # Only a queue sets flags, and only the fetch unit fills queues. So it stays like that.
            stands.eq((self.blocked | self.empty).all() & self.blocked.any() & self.fetch_blocked),
            refuses.eq(self.reached.any() | (stuck & (Value.cast(self.refused) != 0))),
        ]
        m.d.sync += stuck.eq(stands)
        m.d.sync += self.tripped.eq(self.tripped | trips | self.reached)
        kind, unit = Value.cast(self.fault), Signal(range(len(self.trips)))
        with m.If(~self.halt):
            m.d.sync += fetched.eq(refuses & ~trips.any())
            with m.If(trips.any()):
                for n in reversed(range(len(trips))):
                    with m.If(trips[n]):
                        m.d.sync += [kind.eq(Value.cast(self.trips[n])), unit.eq(n)]
            with m.Elif(refuses):
                m.d.sync += kind.eq(Value.cast(self.refused))
            with m.Elif(stuck):
                m.d.sync += kind.eq(Fault.DEADLOCK.value)
                for n in reversed(range(len(trips))):
                    with m.If(self.blocked[n]):
                        m.d.sync += unit.eq(n)
        turn = Array(Value.cast(turn) for turn in self.turns)[unit]
        m.d.comb += Value.cast(self.origin).eq(
            Mux(fetched, Value.cast(self.refused_origin), turn) & self.halt.replicate(ORIGIN.size)
        )
        return m
