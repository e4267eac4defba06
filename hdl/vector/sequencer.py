"""The sequencer: when a repeat, or a level of a reduction, enters the slices."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .operations import REPEAT_BITS

#: Width of the number of a level.
LEVEL_BITS = 4


class VectorSequencer(wiring.Component):
    """Sequencer of repeats and of the levels of reductions.

    A reduction of one block runs through the slices once for each level. In the meantime no other
    repeat enters. Then an extreme is compared with every lane of its block, to find its lane.

    Members
    -------
    valid, ready : In(1), Out(1)
        Hand-shake of the command.
    repeats : In(8)
        Number of blocks of the command.
    available : In(1)
        The operands of a repeat are on the streams, and no earlier repeat has to end first.
    advance : In(1)
        The registers of the slices advance.
    reduces, indexed : In(1)
        The command is a reduction; it ends with the search for a lane.
    levels : In(4)
        Number of levels of the reduction.
    back : In(1)
        The result of a level is in the last rank.
    issue : Out(1)
        A beat enters the slices in this cycle.
    again : Out(1)
        The beat's operands are results of the slices.
    match : Out(1)
        The beat looks for a lane.
    level : Out(4)
        Number of levels up to and with this beat.
    closes : Out(1)
        The beat is the last one of its repeat.
    """

    if TYPE_CHECKING:
        valid: Signal
        ready: Signal
        repeats: Signal
        available: Signal
        advance: Signal
        reduces: Signal
        indexed: Signal
        levels: Signal
        back: Signal
        issue: Signal
        again: Signal
        match: Signal
        level: Signal
        closes: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": In(1),
                "ready": Out(1),
                "repeats": In(REPEAT_BITS),
                "available": In(1),
                "advance": In(1),
                "reduces": In(1),
                "indexed": In(1),
                "levels": In(LEVEL_BITS),
                "back": In(1),
                "issue": Out(1),
                "again": Out(1),
                "match": Out(1),
                "level": Out(LEVEL_BITS),
                "closes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reducing = Signal()
        before = Signal(LEVEL_BITS, name="level_before")
        done = Signal(REPEAT_BITS, name="repeats_done")
        nothing = Signal(name="no_repeats")
        last = Signal(name="last_repeat")
        m.d.comb += [
            nothing.eq(self.repeats == 0),
            last.eq(done + 1 == self.repeats),
            self.issue.eq(
                self.valid & ~nothing & self.advance & Mux(reducing, self.back, self.available)
            ),
            self.match.eq(reducing & (before == self.levels)),
            self.again.eq(reducing & ~self.match),
            self.level.eq(Mux(reducing, before, 0) + 1),
            self.closes.eq(
                ~self.reduces | Mux(self.indexed, self.match, self.level == self.levels)
            ),
            self.ready.eq(nothing | (self.issue & self.closes & last)),
        ]
        with m.If(self.issue):
            m.d.sync += [reducing.eq(~self.closes), before.eq(self.level)]
            with m.If(self.closes):
                m.d.sync += done.eq(Mux(last, 0, done + 1))
        return m
