"""The matrix unit: a tile of processing elements with accumulators, between streams."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .config import MatrixUnitConfig
from .control import Sequencer
from .element import ProcessingElement
from .grid import Grid
from .ports import Start, beat_layout, fractal_layout

__all__ = ["MatrixUnit"]


class MatrixUnit(wiring.Component):
    """``slot = (0, C or slot) + A @ B`` on M × N accumulators, a beat a cycle.

    Parameters
    ----------
    config : MatrixUnitConfig

    Members
    -------
    i : In(stream.Signature({a, b, precision, start, slot, emit}))
        Beats, :func:`~hdl.cube.ports.beat_layout`: a fractal of A (M rows of ``bus_bits``), one of
        B (N columns of ``bus_bits``), the precision, what to start from, the accumulator slot, and
        whether the result is wanted on ``o``.
    c : In(stream.Signature(M × N × word_bits))
        C fractals; one is taken together with each beat that starts from C.
    o : Out(stream.Signature(M × N × word_bits))
        D fractals, in the order of the beats that emit. The slot keeps its value.

    Latency
    -------
    ``latency = config.latency_cycles`` from the transfer of a beat to that of its result; a beat a
    cycle, if the beats that accumulate in one slot are ``pipeline + 1`` cycles apart. The array
    never stalls: back-pressure acts at ``i`` alone, which waits while the beat's slot is in use. A
    result stays in its slot until ``o`` takes it, so none is lost and none is copied.

    Notes
    -----
    Slot numbers past the last slot mean the last one. A slot that nothing was put into since reset
    counts as zero. A precision code past the last has no meaning.

    Raises
    ------
    TypeError
        If ``config`` is not a `MatrixUnitConfig`.
    """

    #: Sub-components that tools may make once and count.
    shared = (ProcessingElement,)

    if TYPE_CHECKING:
        i: stream.Interface
        c: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: MatrixUnitConfig):
        if not isinstance(config, MatrixUnitConfig):
            raise TypeError(f"config must be a MatrixUnitConfig, not {config!r}")
        self.config = config
        self.latency = config.latency_cycles
        fractals = stream.Signature(fractal_layout(config))
        super().__init__(
            {"i": In(stream.Signature(beat_layout(config))), "c": In(fractals), "o": Out(fractals)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, beat = self.config, self.i.payload
        m.submodules.sequencer = sequencer = Sequencer(config=config)
        m.submodules.grid = grid = Grid(config=config)

        from_c = beat.start == Start.FROM_C
        go = Signal()
        slot = Signal(config.slot_bits)
        last = config.slot_count - 1
        m.d.comb += [
            slot.eq(Mux(beat.slot > last, last, beat.slot)),
            self.i.ready.eq(sequencer.may_go & (~from_c | self.c.valid)),
            self.c.ready.eq(sequencer.may_go & from_c & self.i.valid),
            go.eq(self.i.valid & self.i.ready),
            sequencer.start.eq(beat.start),
            sequencer.slot.eq(slot),
            sequencer.emit.eq(beat.emit),
            sequencer.go.eq(go),
            sequencer.taken.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(sequencer.offer),
        ]
        m.d.comb += [
            grid.valid.eq(go),
            Value.cast(grid.a).eq(beat.a),
            Value.cast(grid.b).eq(beat.b),
            grid.control.accumulate.eq(sequencer.accumulate),
            grid.control.slot.eq(slot),
            grid.load.eq(go & from_c),
            grid.load_slot.eq(slot),
            Value.cast(grid.c).eq(self.c.payload),
            grid.read_slot.eq(sequencer.head),
            Value.cast(self.o.payload).eq(grid.d),
        ]
        if config.precision_bits:
            m.d.comb += grid.control.precision.eq(beat.precision)
        return m
