"""The matrix unit: a tile of processing elements with accumulators, between streams."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..simd2.mode import decoded
from ..simd2.operand import Decode, Spread
from ..simd2.pair import ASSIGNMENT_BITS, ELEMENT_BITS
from .assign import DataAssignment
from .config import INT8, MatrixUnitConfig
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
        B (N columns of ``b_bus_bits``), the precision, what to start from, the slot, and whether
        the result is wanted on ``o``. A beat of several steps is taken in its last one.
        Units with semirings have the ``operation`` beside the precision, which where there is FP32
        counts for mma alone: other operations take the first FP32 operand of each row and column.
    c : In(stream.Signature(M × N × word_bits))
        C fractals; one is taken for each beat that starts from C; a complex one takes two, the real
        and the imaginary parts.
    o : Out(stream.Signature(M × N × word_bits))
        D fractals, in the order of the beats that emit, of a complex one the real and then the
        imaginary parts. The slot keeps its value. A complex beat uses a pair of slots, its own and
        the one whose number differs in the lowest bit: the even one for the real parts.

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
    shared = (ProcessingElement, DataAssignment, Decode, Spread)

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
        may_go = Signal()
        go = Signal()
        slot = Signal(config.slot_bits)
        precision = self._precision(m)
        steps = self._build_steps(m, precision, self.i.valid & may_go)
        last = config.slot_count - 1
        m.d.comb += [
            slot.eq(Mux(beat.slot > last, last, beat.slot)),
            may_go.eq(sequencer.may_go & (~from_c | self.c.valid)),
            self.i.ready.eq(may_go & steps.done),
            self.c.ready.eq(sequencer.may_go & from_c & self.i.valid & steps.last),
            go.eq(self.i.valid & may_go & steps.last),
            sequencer.start.eq(beat.start),
            sequencer.slot.eq(slot),
            sequencer.emit.eq(beat.emit),
            sequencer.go.eq(go),
            sequencer.taken.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(sequencer.offer),
        ]
        if config.complex_precisions:
            # the real part goes to the even slot of a pair, the imaginary part to the odd one
            with m.If(steps.is_complex):
                m.d.comb += slot[0].eq(steps.part)
        if config.semirings:
            self._build_operation(m, grid)
            m.d.comb += sequencer.late.eq(self._late())
        if not config.semirings or config.one_pair:
            m.d.comb += [grid.step.digit.eq(steps.digit), grid.step.part.eq(steps.part)]
        m.d.comb += [
            grid.valid.eq(go),
            Value.cast(grid.a).eq(beat.a),
            Value.cast(grid.b).eq(beat.b),
            Value.cast(grid.index).eq(beat.index),
            grid.control.wide.eq(steps.wide),
            grid.control.again.eq(steps.digit != 0),
            grid.control.last.eq(steps.last),
            grid.control.accumulate.eq(sequencer.accumulate),
            grid.control.slot.eq(slot),
            grid.load.eq(go & from_c),
            grid.load_slot.eq(slot),
            Value.cast(grid.c).eq(self.c.payload),
            grid.read_slot.eq(sequencer.head),
            Value.cast(self.o.payload).eq(grid.d),
        ]
        integers = (INT8,) if INT8 in config.precisions else ()
        for flag, names in (
            ("chop", config.chopped),
            ("small", config.small_results),
            ("integer", integers),
        ):
            codes = [config.precisions.index(name) for name in names]
            here = [precision == code for code in codes]
            m.d.comb += grid.control[flag].eq(Cat(*here).any())
        if config.precision_bits:
            m.d.comb += Value.cast(grid.step.precision).eq(precision)
            if config.assignment == "element":
                m.d.comb += grid.control.precision.eq(precision)
        return m

    def _build_operation(self, m: Module, grid: Grid) -> None:
        """Tell decoders and elements about the operation of a beat."""
        ops = self.config.ops
        code = Value.cast(self.i.payload.operation)
        if self.config.one_pair:
            for name, bit in decoded(ops, code).items():
                for target, names in (
                    (grid.step.deal, ASSIGNMENT_BITS),
                    (grid.control.mode, ELEMENT_BITS),
                ):
                    if name in names:
                        m.d.comb += getattr(target, name).eq(bit)
            return
        for side, target in (("a", grid.step.a), ("b", grid.step.b), (None, grid.control.mode)):
            for name, bit in decoded(ops, code, side).items():
                m.d.comb += getattr(target, name).eq(bit)

    def _late(self) -> Value:
        """Whether ⊕ of the beat is with what its slot holds when the result is written."""
        ops = self.config.ops
        code = Value.cast(self.i.payload.operation)
        late = [place for place, op in enumerate(ops) if op.plus != "add"]
        every = len(late) == len(ops)
        return Const(1, 1) if every else Cat(*(code == place for place in late)).any()

    def _precision(self, m: Module) -> Value:
        """The precision of a beat: of a semiring on FP32 operands that, whatever it says."""
        config, given = self.config, Value.cast(self.i.payload.precision)
        if not config.one_pair or not config.precision_bits:
            return given
        precision = Signal(config.precision_bits)
        m.d.comb += precision.eq(Mux(self._late(), config.precisions.index("fp32"), given))
        return precision

    def _build_steps(self, m: Module, precision: Value, issue: Value) -> "_Steps":
        """Count the steps of a beat: digits of a sum, and the two sums of complex numbers.

        The sender holds a beat until it is taken, in its last step; that is the operand buffer.
        """
        config = self.config
        if not config.limb_counts and not config.complex_precisions:
            zero, one = Const(0, 0), Const(1, 1)
            return _Steps(digit=zero, part=zero, wide=zero, last=one, done=one, is_complex=zero)
        counts = {n: Signal(name=f"has_{n}_limbs") for n in config.limb_counts}
        is_complex = Signal()
        for code, name in enumerate(config.precisions):
            chosen = precision == code if config.precision_bits else Const(1, 1)
            if name in config.complex_precisions:
                m.d.comb += is_complex.eq(chosen)
        for n, chosen in counts.items():
            codes = [code for code, name in enumerate(config.precisions) if config.limbs(name) == n]
            here = [precision == code for code in codes]
            m.d.comb += chosen.eq(Cat(*here).any() if config.precision_bits else 1)
        digit = Signal(config.digit_bits)
        part = Signal(int(bool(config.complex_precisions)))
        last = Signal()
        done = Signal()
        narrow = ~Cat(*counts.values()).any()
        ends = [chosen & (digit == n - 1) for n, chosen in counts.items()]
        m.d.comb += [last.eq(Cat(narrow, *ends).any()), done.eq(last & (part | ~is_complex))]
        with m.If(issue):
            m.d.sync += digit.eq(Mux(last, 0, digit + 1))
            with m.If(last):
                m.d.sync += part.eq(is_complex & ~done)
        wide = Cat(*counts.values())
        return _Steps(
            digit=digit, part=part, wide=wide, last=last, done=done, is_complex=is_complex
        )


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """Where a beat stands: ``last`` step of a sum, and ``done`` with all of them."""

    digit: Value
    part: Value
    wide: Value
    last: Value
    done: Value
    is_complex: Value
