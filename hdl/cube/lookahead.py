"""The control of a buffered matrix unit: it looks at a slot one cycle before the decision."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from .control import Sequencer
from .ports import Start


class LookaheadSequencer(Sequencer):
    """Sequencer in which no path leads from a slot's number to the decision about its beat.

    It decides as ``Sequencer`` does, for a beat that stands in a register. The state of the beat's
    slot is read in the cycle before and kept in registers. Results complete in the order of their
    beats and after the same time, so a delayed copy of ``emit`` counts them, and the head of the
    queue selects no state.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit that the sequencer belongs to.

    Members
    -------
    coming : In(slot_bits)
        The slot of the beat that enters the register if ``advance`` is set.
    waits, from_outside, last, done : In(1)
        Set if a beat is in the register; if C is offered; in the last step of a sum; and in the
        last step of the beat. ``go`` follows from these, so it is an output. The unit computes it
        again for its data: these wires lead across the array, and those here do not.
    full, room : In(1), In(1)
        Set if a result is in the output register, and if it leaves in this cycle. ``taken`` follows
        from these, so it is an output.
    showing : Out(1)
        Set in the cycle behind ``taken``, at whose end the result enters the output register.

    Notes
    -----
    The state that was read does not show a beat that was issued in the same cycle. If that beat has
    the same slot (``conflict``), the slot is busy, holds a value, and is owed if the beat emits.
    """

    if TYPE_CHECKING:
        coming: Signal
        waits: Signal
        from_outside: Signal
        last: Signal
        done: Signal
        full: Signal
        room: Signal
        showing: Signal

    def _members(self) -> dict[str, Any]:
        return {
            **super()._members(),
            "coming": In(self.config.slot_bits),
            **{name: In(1) for name in ("waits", "from_outside", "last", "done")},
            "go": Out(1),
            "full": In(1),
            "room": In(1),
            "taken": Out(1),
            "showing": Out(1),
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        went, went_slot = Signal(), Signal.like(self.slot)
        m.d.sync += [went.eq(self.go), went_slot.eq(self.slot)]
        conflict = self._build_conflict(m, went, went_slot)
        ready, chosen, advance = Signal(), Signal(), Signal()
        owed, holds, empty, soon = self._build_state(m, advance)
        # Of the beat before, if it is in conflict.
        emitted = Signal()
        m.d.sync += emitted.eq(self.emit)
        m.d.comb += [
            chosen.eq(self.may_go & ((self.start != Start.FROM_C) | self.from_outside)),
            self.go.eq(self.waits & chosen & self.last),
            advance.eq(~self.waits | (chosen & self.done)),
            self.may_go.eq(ready & ~Mux(conflict, emitted, owed)),
            # A slot that was never written counts as zero.
            self.accumulate.eq(
                (self.start != Start.ZERO) & (holds | conflict | (self.start == Start.FROM_C))
            ),
            # The result is in the output register after two cycles, so that must be free by then.
            self.taken.eq(self.offer & ~self.showing & (~self.full | self.room)),
        ]
        m.d.sync += self.showing.eq(self.taken)
        self._build_queue(m, went & emitted, went_slot)
        self._build_complete(m)
        with m.Switch(self.start):
            with m.Case(Start.ZERO):
                m.d.comb += ready.eq(1)
            with m.Case(Start.FROM_C):
                m.d.comb += ready.eq(empty & ~conflict)
            with m.Default():
                m.d.comb += ready.eq(self.late | (soon & ~conflict))
        return m

    def _build_conflict(self, m: Module, went: Signal, went_slot: Signal) -> Signal:
        """Return 1 if the beat of the last cycle was issued to the slot of this beat."""
        conflict = Signal()
        if self.config.complex_precisions:
            # The parts of one beat have different slots.
            m.d.comb += conflict.eq(went & (went_slot == self.slot))
        else:
            # A beat that is issued leaves its register, so the next one was still coming.
            same = Signal()
            m.d.sync += same.eq(self.coming == self.slot)
            m.d.comb += conflict.eq(went & same)
        return conflict

    def _build_state(self, m: Module, advance: Value) -> tuple[Value, Value, Value, Value]:
        """Return the state of the beat's slot in this cycle, without the beat of the last one.

        The results say whether the slot is owed, whether it holds a value, whether its last result
        is written, and whether it will be when a beat of this cycle reads it.
        """
        config = self.config
        # The decision comes one cycle after the transfer of the beat.
        busiest = config.slot_cycles - 2
        slots = range(config.slot_count)
        busy = [Signal(range(busiest + 1), name=f"busy{s}") for s in slots]
        owed = Array(Signal(name=f"owed{s}") for s in slots)
        holds = Array(Signal(name=f"holds{s}") for s in slots)
        # ``busy`` is one less in the cycle in which the beat is issued.
        limits = (1, config.read_cycles)
        within = [Array(Signal(init=1, name=f"within{n}_{s}") for s in slots) for n in limits]
        for s in slots:
            mine = Signal(name=f"goes{s}")
            m.d.comb += mine.eq(self.go & (self.slot == s))
            with m.If(mine):
                m.d.sync += [busy[s].eq(busiest), holds[s].eq(1), owed[s].eq(self.emit)]
                m.d.sync += [
                    flags[s].eq(busiest <= n) for n, flags in zip(limits, within, strict=True)
                ]
            with m.Else():
                with m.If(busy[s] != 0):
                    m.d.sync += busy[s].eq(busy[s] - 1)
                    m.d.sync += [
                        flags[s].eq(busy[s] <= n + 1)
                        for n, flags in zip(limits, within, strict=True)
                    ]
                with m.If(self.taken & (self.head == s)):
                    m.d.sync += owed[s].eq(0)

        def look(slot: Value) -> Value:
            """Return the state of a slot."""
            still_owed = owed[slot] & ~(self.taken & (self.head == slot))
            return Cat(still_owed, holds[slot], *(flags[slot] for flags in within))

        found = Signal(2 + len(limits))
        m.d.sync += found.eq(Mux(advance, look(self.coming), look(self.slot)))
        return found[0], found[1], found[2], found[3]

    def _build_queue(self, m: Module, push: Value, slot: Value) -> None:
        """Keep the slots of the coming results in order; ``head`` is the first one.

        The bits ``used`` tell which entries are in use. Unlike a number, they are decoded already,
        so that one look-up table lies between ``taken`` and ``head``. The queue has a slot long
        before the result is complete.
        """
        depth = self.config.slot_count
        entries = [Signal(len(slot), name=f"entry{n}", reset_less=True) for n in range(depth)]
        used = Signal(depth)
        _build_thermometer(m, used, push, self.taken)
        m.d.comb += self.head.eq(entries[0])
        for n, entry in enumerate(entries):
            below = used[n - 1] if n else Const(1, 1)
            behind = entries[min(n + 1, depth - 1)]
            # The entry behind the last one in use, or the last one if all entries move up.
            free, last = below & ~used[n], used[n] & (~used[n + 1] if n + 1 < depth else 1)
            with m.If(self.taken):
                m.d.sync += entry.eq(Mux(push & last, slot, behind))
            with m.Elif(push & free):
                m.d.sync += entry.eq(slot)

    def _build_complete(self, m: Module) -> None:
        """Count the results that are complete and not taken; ``offer`` is set if there are any."""
        on_the_way = Signal(self.config.slot_cycles - 2)
        complete = Signal(self.config.slot_count)
        m.d.sync += on_the_way.eq(Cat(self.go & self.emit, on_the_way))
        _build_thermometer(m, complete, on_the_way[-1], self.taken)
        m.d.comb += self.offer.eq(complete[0])


def _build_thermometer(m: Module, bits: Signal, up: Value, down: Value) -> None:
    """Count in a register whose lowest bits are ones, as many as the number says."""
    with m.If(up & ~down):
        m.d.sync += bits.eq(Cat(Const(1, 1), bits))
    with m.Elif(down & ~up):
        m.d.sync += bits.eq(bits[1:])
