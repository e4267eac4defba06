"""The sequencer of a matrix unit behind AXI4-Stream: commands become the beats of products."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.simd2.op import Op

from ..cube.config import MatrixUnitConfig
from ..cube.ports import Start, beat_layout
from .core import BusCore
from .integer import int_beat_layout

TILES_BITS, BEATS_BITS = 6, 16
#: Bits of the number of results of a command, less 1.
COUNT_BITS = TILES_BITS + 1


def command_layout() -> data.StructLayout:
    """Return the layout of a command, which is the same for all units.

    - ``precision``, ``operation``: codes of the unit.
    - ``start``: 0 if the sums start from zero, 1 if they start from C.
    - ``tiles``: number of matrix products that are computed in turn, less 1.
    - ``beats``: number of beats of each of them, less 1.
    """
    return data.StructLayout(
        {"precision": 4, "operation": 4, "start": 2, "tiles": TILES_BITS, "beats": BEATS_BITS}
    )


class ProductSequencer(wiring.Component):
    """Sequencer that turns a command and the operands that follow it into beats.

    A command describes some matrix products, the *tiles*. Their beats alternate: the first beats of
    all tiles, then the second beats, and so on. Each tile has a slot (a pair of slots if it is
    complex), and successive commands use the slots in rotation.

    Parameters
    ----------
    core : BusCore
        The unit, a ``cube`` or a ``simd2-int``.

    Members
    -------
    command : In(stream.Signature(command_layout()))
        Commands. A command stays until its last beat has been taken.
    a, b : In, In(stream.Signature({data: a_bits or b_bits, last: 1}))
        Fractals of A and B, one of each for each beat.
    index : In(stream.Signature({data: index_bits, last: 1}))
        Indices of a sparse A, one item for each beat. Only units with sparsity have this stream.
    o : Out(stream.Signature(beat))
        Beats.
    results : Out(stream.Signature(7))
        The number of results of each command, less 1, at the latest with its first beat.
    invalid : Out(1)
        Set in the cycle in which a command is dropped, because the unit does not have one of its
        codes or enough slots for its tiles.
    missing, unexpected : Out(1)
        Set in the cycle of a beat if it is a command's last beat and not all of its operands are
        marked as the last ones, or if it is another beat and some of them are.

    Latency
    -------
    Zero: a beat is valid in the cycle in which its command and its operands are. There is one beat
    per cycle, also from one command to the next.
    """

    if TYPE_CHECKING:
        command: stream.Interface
        a: stream.Interface
        b: stream.Interface
        index: stream.Interface
        o: stream.Interface
        results: stream.Interface
        invalid: Signal
        missing: Signal
        unexpected: Signal

    def __init__(self, *, core: BusCore):
        self.core = core
        config = core.config
        cube = isinstance(config, MatrixUnitConfig)
        self.beat = beat_layout(config) if cube else int_beat_layout(config)
        #: The streams of operands and the bits of an item.
        self.operands = {"a": core.a_bits, "b": core.b_bits}
        if core.index_bits:
            self.operands["index"] = core.index_bits
        super().__init__(
            {
                "command": In(stream.Signature(command_layout())),
                **{
                    name: In(stream.Signature(data.StructLayout({"data": bits, "last": 1})))
                    for name, bits in self.operands.items()
                },
                "o": Out(stream.Signature(self.beat)),
                "results": Out(stream.Signature(COUNT_BITS)),
                "invalid": Out(1),
                "missing": Out(1),
                "unexpected": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core, command = self.core, self.command.payload
        sources = [getattr(self, name) for name in self.operands]
        is_complex = self._is_complex()
        known, runs, announced, taken = Signal(), Signal(), Signal(), Signal()
        # A complex tile has two results, in a pair of slots.
        count = Mux(is_complex, Cat(Const(1, 1), command.tiles), command.tiles)
        m.d.comb += [
            known.eq(
                (command.precision < max(len(core.precisions), 1))
                & (command.operation < len(core.operations))
                & (command.start <= Start.FROM_C.value)
                & (count < core.slot_count)
            ),
            self.invalid.eq(self.command.valid & ~known),
            self.results.valid.eq(self.command.valid & known & ~announced),
            self.results.payload.eq(count),
            runs.eq(self.command.valid & known & (announced | self.results.ready)),
            self.o.valid.eq(runs & Cat(*(source.valid for source in sources)).all()),
            taken.eq(self.o.valid & self.o.ready),
        ]
        m.d.comb += [source.ready.eq(taken) for source in sources]

        tile, beat = Signal(TILES_BITS), Signal(BEATS_BITS)
        last_tile, last_beat, ends = Signal(), Signal(), Signal()
        lasts = Cat(*(source.payload.last for source in sources))
        m.d.comb += [
            last_tile.eq(tile == command.tiles),
            last_beat.eq(beat == command.beats),
            ends.eq(last_tile & last_beat),
            self.command.ready.eq((taken & ends) | self.invalid),
            self.missing.eq(taken & ends & ~lasts.all()),
            self.unexpected.eq(taken & ~ends & lasts.any()),
        ]
        with m.If(taken & ends):
            m.d.sync += [announced.eq(0), tile.eq(0), beat.eq(0)]
        with m.Else():
            with m.If(self.results.valid & self.results.ready):
                m.d.sync += announced.eq(1)
            with m.If(taken):
                m.d.sync += tile.eq(Mux(last_tile, 0, tile + 1))
                with m.If(last_tile):
                    m.d.sync += beat.eq(beat + 1)

        payload = self.o.payload
        start = Mux(beat == 0, command.start, Start.ACCUMULATE.value)
        m.d.comb += [
            *(
                Value.cast(getattr(payload, name)).eq(getattr(self, name).payload.data)
                for name in self.operands
            ),
            Value.cast(payload.operation).eq(command.operation),
            Value.cast(payload.start).eq(start),
            payload.emit.eq(last_beat),
        ]
        if core.precisions:
            m.d.comb += Value.cast(payload.precision).eq(command.precision)
        if core.slot_count > 1:
            slot = self._slot(m, tile == 0, taken, taken & ends, is_complex)
            m.d.comb += payload.slot.eq(slot)
        return m

    def _is_complex(self) -> Value:
        """Return 1 if the command's products are complex, which only those of mma can be."""
        config, command = self.core.config, self.command.payload
        if not isinstance(config, MatrixUnitConfig) or not config.complex_precisions:
            return Const(0, 1)
        codes = [config.precisions.index(name) for name in config.complex_precisions]
        chosen = Cat(*(command.precision == code for code in codes)).any()
        # The other operations ignore the precision.
        return chosen & (command.operation == self.core.operations.index(Op.MMA))

    def _slot(
        self, m: Module, first: Value, taken: Value, ends: Value, is_complex: Value
    ) -> Signal:
        """Return the slot of the current tile; ``first`` is set at the first tile."""
        count = self.core.slot_count
        free, following = Signal(range(count)), Signal(range(count))
        slot, after, begin = Signal(range(count)), Signal(range(count)), Signal(range(count))
        # A complex tile starts at an even slot; there is an even number of slots.
        even = Mux(is_complex & free[0], Mux(free == count - 1, 0, free + 1), free)
        step = Mux(is_complex, 2, 1)
        m.d.comb += [
            begin.eq(even),
            slot.eq(Mux(first, begin, following)),
            after.eq(Mux(slot + step >= count, 0, slot + step)),
        ]
        with m.If(taken):
            m.d.sync += following.eq(after)
        with m.If(ends):
            m.d.sync += free.eq(after)
        return slot
