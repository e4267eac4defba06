"""The control of a buffered matrix unit: it looks at a slot one cycle before the decision."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from .control import Sequencer, SlotQueue
from .ports import Start

__all__ = ["LookaheadSequencer"]


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
    advance : In(1)
        Set if a new beat enters the register in this cycle, or none is in it.

    Notes
    -----
    The state that was read does not show a beat that was issued in the same cycle. If that beat has
    the same slot (``conflict``), the slot is busy, holds a value, and is owed if the beat emits.
    """

    if TYPE_CHECKING:
        coming: Signal
        advance: Signal

    def _members(self) -> dict[str, Any]:
        return {**super()._members(), "coming": In(self.config.slot_bits), "advance": In(1)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.queue = queue = SlotQueue(depth=config.slot_count)
        went, went_slot = Signal(), Signal.like(self.slot)
        m.d.sync += [went.eq(self.go), went_slot.eq(self.slot)]
        conflict = self._build_conflict(m, went, went_slot)
        owed, holds, empty, soon = self._build_state(m)
        # Of the beat before, if it is in conflict.
        emitted = Signal()
        m.d.sync += emitted.eq(self.emit)
        ready = Signal()
        m.d.comb += [
            self.may_go.eq(ready & ~Mux(conflict, emitted, owed)),
            # A slot that was never written counts as zero.
            self.accumulate.eq(
                (self.start != Start.ZERO) & (holds | conflict | (self.start == Start.FROM_C))
            ),
            # The queue has the slot long before its result is complete.
            queue.push.eq(went & emitted),
            queue.slot.eq(went_slot),
            queue.pop.eq(self.taken),
            self.head.eq(queue.head),
            self.offer.eq(self._build_complete(m) != 0),
        ]
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

    def _build_state(self, m: Module) -> tuple[Value, Value, Value, Value]:
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
        m.d.sync += found.eq(Mux(self.advance, look(self.coming), look(self.slot)))
        return found[0], found[1], found[2], found[3]

    def _build_complete(self, m: Module) -> Signal:
        """Return the number of results that are complete and not taken."""
        on_the_way = Signal(self.config.slot_cycles - 2)
        complete = Signal(range(self.config.slot_count + 1))
        m.d.sync += [
            on_the_way.eq(Cat(self.go & self.emit, on_the_way)),
            complete.eq(complete + on_the_way[-1] - self.taken),
        ]
        return complete
