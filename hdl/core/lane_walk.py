"""The beats of an instruction of unit V, and the rows that beats on their way will write."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from .ports import ADDRESS_BITS, bits

#: Nested levels: repeats or columns of fractals, blocks, halves of a block.
LEVELS = 3
#: Bits of a count of a level, and of a mask.
SIZE_BITS, MASK_BITS = 16, 128


class LaneWalk:
    """The beats of an instruction; ``step`` goes on to the next one.

    Parameters
    ----------
    plan : LanePlan
        The instruction, taken with ``start``.
    blocks : int
        Blocks of a beat.

    Attributes
    ----------
    step, ended : Signal
        Go on; the last beat is over.
    places : list of Signal
        First bytes of target, first and second operand of the beat.
    offsets : list of list of Signal
        Of each of them, the distance in bytes from there to every other block of the beat.
    block, inner : Signal
        Number of the beat in the repeat, and in the innermost level.
    last_block : Signal
        The beat is the last one of the repeat.
    mask, lane : Signal
        The mask from the beat's first lane on, and the number of that lane in the repeat.
    """

    def __init__(self, m: Module, plan: Any, start: Value, blocks: int):
        self.step, self.ended = Signal(name="lane_step"), Signal(name="lanes_ended")
        self._count = [Signal(SIZE_BITS, name=f"lane_count{n}") for n in range(LEVELS)]
        self._index = [Signal(SIZE_BITS, name=f"lane_index{n}") for n in range(LEVELS)]
        self._steps = [
            [Signal(ADDRESS_BITS, name=f"lane_step{o}_{n}") for n in range(LEVELS)]
            for o in range(3)
        ]
        # Places of a repeat's first beat, and of this one.
        self._begin, self.places = (
            [Signal(ADDRESS_BITS, name=f"lane_{what}{o}") for o in range(3)]
            for what in ("begin", "place")
        )
        self.block, self.inner = self._index[1], self._index[2]
        self.mask = Signal(MASK_BITS, name="lane_mask")
        self.lane = Signal(7, name="lane_first")
        self._whole = Signal(MASK_BITS, name="whole_mask")
        # None, eight or 16 for each block, so the low bits of a lane are zeros.
        self._lane_step = Signal(8, name="lanes_of_beat")
        self._low = low = bits(8 * blocks)
        m.d.comb += self.mask.eq(self._whole >> Cat(Const(0, low), self.lane[low:]))
        self.offsets = [
            [Const(0, 1), *(Signal(ADDRESS_BITS, name=f"offset{o}_{j}") for j in range(1, blocks))]
            for o in range(3)
        ]
        self.last_block = Signal(name="last_beat")
        m.d.comb += self.last_block.eq(self._index[1] + 1 == self._count[1])
        self._build_step(m)
        with m.If(start):
            self._build_start(m, plan)

    def enabled(self, block: int, sixteen: Value | int) -> Value:
        """Return 1 if a block has an enabled lane; with ``sixteen``, it has so many in any case."""
        eight, all_lanes = (self.mask[n * block :][:n].any() for n in (8, 16))
        return Mux(self._lane_step[self._low + 1] | sixteen, all_lanes, eight)

    def _build_step(self, m: Module) -> None:
        last = [self._index[n] + 1 == self._count[n] for n in range(LEVELS)]
        repeats = last[2] & last[1]
        with m.If(self.step):
            m.d.sync += self.lane.eq(self.lane + self._lane_step)
            with m.If(~last[2]):
                self._advance(m, 2)
            with m.Elif(~last[1]):
                self._advance(m, 1)
            with m.Else():
                m.d.sync += self.lane.eq(0)
                with m.If(~last[0]):
                    self._advance(m, 0)
                with m.Else():
                    m.d.sync += self.ended.eq(1)
            for o in range(3):
                within = self.places[o] + Mux(last[2], self._steps[o][1], self._steps[o][2])
                following = self._begin[o] + self._steps[o][0]
                m.d.sync += self.places[o].eq(Mux(repeats, following, within))
                with m.If(repeats):
                    m.d.sync += self._begin[o].eq(following)

    def _advance(self, m: Module, n: int) -> None:
        """Go on in level n, and begin the levels inside of it again."""
        m.d.sync += self._index[n].eq(self._index[n] + 1)
        m.d.sync += [self._index[inner].eq(0) for inner in range(n + 1, LEVELS)]

    def _build_start(self, m: Module, plan: Any) -> None:
        m.d.sync += [
            self.ended.eq((plan.counts[0] == 0) | (plan.counts[1] == 0)),
            self._whole.eq(plan.mask),
            self.lane.eq(0),
            self._lane_step.eq(plan.lane_step),
        ]
        for n in range(LEVELS):
            m.d.sync += [self._count[n].eq(plan.counts[n]), self._index[n].eq(0)]
            m.d.sync += [self._steps[o][n].eq(plan.steps[o][n]) for o in range(3)]
        for o in range(3):
            m.d.sync += [x.eq(plan.places[o]) for x in (self._begin[o], self.places[o])]
        for own, asked in zip(self.offsets, plan.offsets, strict=True):
            m.d.sync += [x.eq(y) for x, y in zip(own[1:], asked[1:], strict=True)]


class PendingRows:
    """The rows of UB that beats on their way will write, in their order.

    Parameters
    ----------
    row_bits : int
        Bits of a row.
    blocks : int
        Rows of a beat.
    beats : int
        The most beats on their way, a power of two.

    Attributes
    ----------
    push, entering, enabled : Signal, list of Signal, Signal
        Add the rows of a beat for which ``enabled`` has a bit.
    pop : Signal
        Remove those of the oldest beat.
    full : Signal
        No beat can be added.
    """

    def __init__(self, m: Module, row_bits: int, blocks: int, beats: int):
        self.entering = [Signal(row_bits, name=f"pending_entering{j}") for j in range(blocks)]
        self.enabled = Signal(blocks, name="pending_enabled")
        self.push, self.pop = Signal(name="pending_push"), Signal(name="pending_pop")
        self.full = Signal(name="pending_full")
        rows = [
            Array(Signal(row_bits, name=f"pending{i}_{j}") for i in range(beats))
            for j in range(blocks)
        ]
        valid = Signal(beats, name="pending_valid")
        there = [Signal(beats, name=f"pending_there{j}") for j in range(blocks)]
        self._known = [
            (valid[i] & there[j][i], rows[j][i]) for i in range(beats) for j in range(blocks)
        ]
        head, end = (Signal(range(beats), name=f"pending_{name}") for name in ("head", "end"))
        m.d.comb += self.full.eq(valid.all())
        with m.If(self.pop):
            m.d.sync += [valid.bit_select(head, 1).eq(0), head.eq(head + 1)]
        with m.If(self.push):
            m.d.sync += [valid.bit_select(end, 1).eq(1), end.eq(end + 1)]
            for j in range(blocks):
                m.d.sync += [
                    rows[j][end].eq(self.entering[j]),
                    there[j].bit_select(end, 1).eq(self.enabled[j]),
                ]

    def has(self, row: Value) -> Value:
        """Return 1 if a row is among them."""
        return Cat(*(on & (known == row) for on, known in self._known)).any()
