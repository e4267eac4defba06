"""The control of the matrix unit: when a beat may be issued, and which result is next."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .ports import Start
from .tile import TileConfig


class Sequencer(wiring.Component):
    """Controller that keeps beats of the same slot apart and orders the results.

    Results leave in the order of the beats that emit them.

    Parameters
    ----------
    config : TileConfig
        The unit that the sequencer belongs to.

    Members
    -------
    start, slot, emit : In(Start), In(slot_bits), In(1)
        The beat that is waiting to be issued.
    late : In(1)
        Set if the beat reads its slot only when it writes the result, so that it need not wait for
        earlier beats.
    may_go : Out(1)
        Set if the slot is ready for the beat. This does not depend on ``go`` or ``taken``.
    go : In(1)
        Set if the beat is issued in this cycle.
    accumulate : Out(1)
        Set if the beat adds to the value of its slot. It is 0 if nothing was written to the slot
        since reset.
    head : Out(slot_bits)
        The slot of the next result.
    offer : Out(1)
        Set if there is a next result and all of it has been written.
    taken : In(1)
        Set if the result is taken in this cycle.

    Notes
    -----
    Every slot has a counter ``busy``. It starts at ``slot_cycles - 1`` in the cycle after the
    slot's last beat was issued, and it is 0 when the last element has written its result. A bit
    ``owed`` is set while the slot's result has not been taken. A beat waits while ``owed`` is set,
    because it would overwrite the result. Otherwise the start of the beat decides:

    - A beat that accumulates waits until it will find the result in the first element
      (``busy <= read_cycles``). The beat reaches every other element as many cycles later
      as that element writes later. A ``late`` beat does not wait.
    - A beat that starts from C waits until the last element has written (``busy == 0``), because
      all elements receive C in the same cycle.
    - A beat that starts from zero does not wait, because results are written in order.
    """

    if TYPE_CHECKING:
        start: Signal
        late: Signal
        slot: Signal
        emit: Signal
        may_go: Signal
        go: Signal
        accumulate: Signal
        head: Signal
        offer: Signal
        taken: Signal

    def __init__(self, *, config: TileConfig):
        self.config = config
        super().__init__(self._members())

    def _members(self) -> dict[str, Any]:
        """Return the members of the component."""
        config = self.config
        return {
            "start": In(Start),
            "late": In(1),
            "slot": In(config.slot_bits),
            "emit": In(1),
            "may_go": Out(1),
            "go": In(1),
            "accumulate": Out(1),
            "head": Out(config.slot_bits),
            "offer": Out(1),
            "taken": In(1),
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.queue = queue = SlotQueue(depth=config.slot_count)
        busiest = config.slot_cycles - 1
        slots = range(config.slot_count)
        busy = Array(Signal(range(busiest + 1), name=f"busy{s}") for s in slots)
        owed = Array(Signal(name=f"owed{s}") for s in slots)
        holds = Array(Signal(name=f"holds{s}") for s in slots)
        # See Notes: a beat that accumulates meets the earlier result in every element.
        soon = config.read_cycles

        def free(slot: Value, most: int) -> Value:
            """Return 1 if a slot is busy for at most ``most`` more cycles."""
            return busy[slot] <= most if most else busy[slot] == 0

        m.d.comb += [
            queue.push.eq(self.go & self.emit),
            queue.slot.eq(self.slot),
            queue.pop.eq(self.taken),
            self.head.eq(queue.head),
            self.offer.eq(queue.any & free(self.head, 0)),
            self.accumulate.eq(
                # A slot that was never written counts as zero.
                (self.start != Start.ZERO) & (holds[self.slot] | (self.start == Start.FROM_C))
            ),
        ]
        ready = Signal()
        m.d.comb += self.may_go.eq(ready & ~owed[self.slot])
        with m.Switch(self.start):
            with m.Case(Start.ZERO):
                m.d.comb += ready.eq(1)
            with m.Case(Start.FROM_C):
                m.d.comb += ready.eq(free(self.slot, 0))
            with m.Default():
                m.d.comb += ready.eq(self.late | free(self.slot, soon))

        for s in slots:
            mine = Signal(name=f"goes{s}")
            m.d.comb += mine.eq(self.go & (self.slot == s))
            with m.If(mine):
                m.d.sync += [busy[s].eq(busiest), holds[s].eq(1), owed[s].eq(self.emit)]
            with m.Else():
                with m.If(busy[s] != 0):
                    m.d.sync += busy[s].eq(busy[s] - 1)
                with m.If(self.taken & (self.head == s)):
                    m.d.sync += owed[s].eq(0)
        return m


class SlotQueue(wiring.Component):
    """Queue of slot numbers. It holds each slot at most once, so it never overflows.

    Parameters
    ----------
    depth : int
        Number of slots.

    Members
    -------
    push, slot : In(1), In(ceil(log2(depth)))
        Set ``push`` to append a number.
    any, head : Out(1), Out(ceil(log2(depth)))
        ``any`` is set if the queue is not empty; ``head`` is then the oldest number.
    pop : In(1)
        Set to remove the oldest number.
    """

    if TYPE_CHECKING:
        push: Signal
        slot: Signal
        pop: Signal
        any: Signal
        head: Signal

    def __init__(self, *, depth: int):
        self.depth = depth
        bits = (depth - 1).bit_length()
        super().__init__(
            {"push": In(1), "slot": In(bits), "pop": In(1), "any": Out(1), "head": Out(bits)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self.depth
        # The entries need no reset, because ``level`` states how many of them are valid.
        entries = [Signal(len(self.slot), name=f"entry{n}", reset_less=True) for n in range(depth)]
        level = Signal(range(depth + 1))
        left = Signal(range(depth + 1))
        m.d.comb += [
            # A push goes to the first entry that is free after a pop has moved all entries up.
            left.eq(level - self.pop),
            self.any.eq(level != 0),
            self.head.eq(entries[0]),
        ]
        m.d.sync += level.eq(left + self.push)
        for n, entry in enumerate(entries):
            with m.If(self.push & (left == n)):
                m.d.sync += entry.eq(self.slot)
            with m.Elif(self.pop):
                # Nothing stands behind the last entry, which is invalid after a pop.
                behind: Value = entries[min(n + 1, depth - 1)]
                m.d.sync += entry.eq(behind)
        return m
