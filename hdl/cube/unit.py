"""The matrix unit: a tile of processing elements with accumulators, between streams."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..simd2.mode import decoded
from ..simd2.operand import Decode, Spread
from ..simd2.pair import ASSIGNMENT_BITS, ELEMENT_BITS
from .assign import DataAssignment
from .choices import INT8
from .control import Sequencer
from .element import ProcessingElement
from .grid import Grid
from .lookahead import LookaheadSequencer
from .operand_ping_pong import OperandTurns
from .ports import Start, beat_layout, fractal_layout
from .row_control import RowRegisters
from .tile import TileConfig

#: Fields of a beat that the sequencer does not need.
_DATA = ("a", "b", "index")


class MatrixUnit(wiring.Component):
    """Matrix unit that computes ``slot = (0, C or slot) + A @ B`` on M × N accumulators.

    Parameters
    ----------
    config : TileConfig
        The parameters of the unit.

    Members
    -------
    i : In(stream.Signature({a, b, precision, start, slot, emit}))
        Beats (``hdl.cube.ports.beat_layout``): a fractal of A (M rows of ``bus_bits``), a fractal
        of B (N columns of ``b_bus_bits``), the precision, the start, the slot, and ``emit``, which
        requests the result on ``o``. A beat of several steps is taken in its last step. Units with
        semirings also have an ``operation``. If such a unit has FP32, the precision applies to mma
        only, and the other operations take the first FP32 operand of each row and column. Units of
        ``hdl.cube.mixed`` have a ``precision_b`` for B.
    c : In(stream.Signature(M × N × word_bits))
        C fractals. Each beat that starts from C takes one; a complex beat takes two, the real and
        then the imaginary parts.
    o : Out(stream.Signature(M × N × word_bits))
        D fractals, in the order of the beats that emit them. A complex beat emits two, the real and
        then the imaginary parts. The slot keeps its value. A complex beat uses a pair of slots, its
        own and the one whose number differs in the lowest bit; the even one has the real parts.

    Latency
    -------
    ``latency = config.latency_cycles`` from the transfer of a beat to the transfer of its result.
    The unit takes one beat per cycle if beats that accumulate in the same slot are at least
    ``pipeline + 1`` cycles apart. The array never stalls. Back-pressure acts at ``i`` only, which
    waits while the beat's slot is in use. A result stays in its slot until ``o`` takes it, so no
    result is lost and none is copied. A buffered unit offers a result at most every second cycle.

    Notes
    -----
    A slot number above the last slot means the last slot. A slot that was not written since reset
    counts as zero. The result of an unknown precision code is undefined.

    Raises
    ------
    TypeError
        If ``config`` is not a ``MatrixUnitConfig``.
    """

    #: Components of which equal instances may be elaborated once (``hdl.elaborate``).
    shared = (ProcessingElement, RowRegisters, OperandTurns, DataAssignment, Decode, Spread)

    if TYPE_CHECKING:
        i: stream.Interface
        c: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: TileConfig):
        if not isinstance(config, TileConfig):
            raise TypeError(f"config must be a MatrixUnitConfig, not {config!r}")
        self.config = config
        self.latency = config.latency_cycles
        fractals = stream.Signature(fractal_layout(config))
        super().__init__(
            {"i": In(stream.Signature(beat_layout(config))), "c": In(fractals), "o": Out(fractals)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        sequencer = ahead = LookaheadSequencer(config=config) if config.buffered else None
        if sequencer is None:
            sequencer = Sequencer(config=config)
        m.submodules.sequencer = sequencer
        m.submodules.grid = grid = Grid(config=config)

        i, bus = self.i, grid
        if ahead is None:
            m.d.comb += [
                sequencer.taken.eq(self.o.valid & self.o.ready),
                self.o.valid.eq(sequencer.offer),
            ]
        else:
            i, bus = self._build_input(m, ahead), self._build_entry(m, grid)
            self._build_output(m, ahead, bus)
        beat = i.payload

        # The sequencer decides about the slot, and the streams about the data.
        from_c = beat.start == Start.FROM_C
        may_go = Signal()
        go = Signal()
        slot = Signal(config.slot_bits)
        precision = self._precision(m, beat)
        steps = self._build_steps(m, precision, i.valid & may_go)
        m.d.comb += [
            slot.eq(self._slot(beat)),
            may_go.eq(sequencer.may_go & (~from_c | self.c.valid)),
            i.ready.eq(may_go & steps.done),
            # C is taken together with the last step of its sum.
            self.c.ready.eq(sequencer.may_go & from_c & i.valid & steps.last),
            go.eq(i.valid & may_go & steps.last),
            sequencer.start.eq(beat.start),
            sequencer.slot.eq(slot),
            sequencer.emit.eq(beat.emit),
        ]
        # A sequencer that looks ahead decides by itself, from inputs that are near: the wires of
        # the signals here lead across the array.
        if ahead is None:
            m.d.comb += sequencer.go.eq(go)
        else:
            m.d.comb += [ahead.last.eq(steps.last), ahead.done.eq(steps.done)]
        if config.complex_precisions:
            # The real part goes to the even slot of a pair and the imaginary part to the odd one.
            with m.If(steps.is_complex):
                m.d.comb += slot[0].eq(steps.part)
        if config.semirings:
            self._build_operation(m, beat, bus)
            m.d.comb += sequencer.late.eq(self._late(beat))
        if not config.semirings or config.one_pair:
            m.d.comb += [bus.step.digit.eq(steps.digit), bus.step.part.eq(steps.part)]
        m.d.comb += [
            bus.valid.eq(go),
            Value.cast(bus.a).eq(beat.a),
            Value.cast(bus.b).eq(beat.b),
            Value.cast(bus.index).eq(beat.index),
            bus.control.wide.eq(steps.wide),
            bus.control.again.eq(steps.digit != 0),
            bus.control.last.eq(steps.last),
            bus.control.accumulate.eq(sequencer.accumulate),
            bus.control.slot.eq(slot),
            bus.control.from_c.eq(from_c),
            bus.load.eq(go & from_c),
            bus.load_slot.eq(slot),
            Value.cast(bus.c).eq(self.c.payload),
            bus.read_slot.eq(sequencer.head),
            Value.cast(self.o.payload).eq(bus.d),
        ]
        self._build_format(m, beat, precision, bus)
        return m

    def _build_entry(self, m: Module, grid: Grid) -> Any:
        """Return an interface as that of the grid whose inputs reach the grid one cycle later.

        The operands and the slot to read reach it at once, because they have registers elsewhere.
        """
        bus = grid.signature.create(path=("entry",))
        for name, member in grid.signature.members.items():
            source, target = Value.cast(getattr(bus, name)), Value.cast(getattr(grid, name))
            if member.flow is Out:
                m.d.comb += source.eq(target)
            elif name in ("read_slot", "taken", *_DATA):
                m.d.comb += target.eq(source)
            else:
                # Only the valid bit needs a reset.
                later = Signal(len(source), name=f"entry_{name}", reset_less=name != "valid")
                m.d.sync += later.eq(source)
                m.d.comb += target.eq(later)
        return bus

    def _build_input(self, m: Module, sequencer: LookaheadSequencer) -> Any:
        """Return a stream with the beats of ``i`` one cycle later, in registers.

        A second register takes a beat that comes while the first one waits. The input is therefore
        ready or not independent of the decision in the same cycle. The control bits move up from
        the second register to the first. The operands stay where they are, because an enable that
        follows from the decision would lead to all of them: beats go into two registers in turn.
        They come one cycle behind their control bits, so that the decision reaches all of them.
        """
        layout = beat_layout(self.config)
        held = stream.Signature(layout).create(path=("held",))
        control = {field: shape for field, shape in layout.members.items() if field not in _DATA}
        coming, first = (
            stream.Signature(data.StructLayout(control)).create(path=(name,))
            for name in ("coming", "first")
        )
        spare = Signal(data.StructLayout(control), name="spare", reset_less=True)
        spared = Signal()
        m.d.comb += [
            self.i.ready.eq(~spared),
            coming.valid.eq(self.i.valid | spared),
            held.valid.eq(first.valid),
            first.ready.eq(held.ready),
        ]
        m.d.sync += spared.eq(coming.valid & ~coming.ready)
        for field in control:
            offered, later = Value.cast(self.i.payload[field]), Value.cast(spare[field])
            if not len(offered):
                continue
            m.d.comb += [
                Value.cast(coming.payload[field]).eq(Mux(spared, later, offered)),
                Value.cast(held.payload[field]).eq(Value.cast(first.payload[field])),
            ]
            with m.If(~spared):
                m.d.sync += later.eq(offered)
        _behind(m, coming, first, "held")
        self._build_turns(m, held, spared)
        m.d.comb += [
            sequencer.coming.eq(self._slot(coming.payload)),
            sequencer.waits.eq(held.valid),
            sequencer.from_outside.eq(self.c.valid),
        ]
        return held

    def _build_turns(self, m: Module, held: Any, spared: Value) -> None:
        """Keep the operands of up to two beats; ``held`` has those of the older one, a cycle later.

        The register of the next beat is free as long as no beat is spared.
        """
        write, read = Signal(), Signal()
        taken = self.i.valid & ~spared
        m.d.sync += [write.eq(write ^ taken), read.eq(read ^ (held.valid & held.ready))]
        for field in _DATA:
            for i, word in enumerate(self.i.payload[field]):
                operands = Value.cast(word)
                if not len(operands):
                    continue
                m.submodules[f"turns_{field}{i}"] = turns = OperandTurns(bits=len(operands))
                m.d.comb += [
                    turns.word.eq(operands),
                    turns.write.eq(Cat(taken & ~write, taken & write)),
                    turns.read.eq(read),
                    Value.cast(held.payload[field][i]).eq(turns.operands),
                ]

    def _build_output(self, m: Module, sequencer: LookaheadSequencer, bus: Any) -> None:
        """Offer the results that the rows of the array have taken, at most every second cycle."""
        full = Signal(name="output_full")
        m.d.sync += full.eq(sequencer.showing | (full & ~self.o.ready))
        m.d.comb += [
            self.o.valid.eq(full),
            bus.taken.eq(sequencer.taken),
            sequencer.full.eq(full),
            sequencer.room.eq(self.o.ready),
        ]

    def _slot(self, beat: Any) -> Value:
        """Return the slot of a beat."""
        last = self.config.slot_count - 1
        return Mux(beat.slot > last, last, beat.slot)

    def _build_format(self, m: Module, beat: Any, precision: Value, bus: Any) -> None:
        """Connect what the elements need to know of a beat's precision."""
        config = self.config
        # Elements behind a data assignment do not get the precision, only these properties of it.
        integers = (INT8,) if INT8 in config.precisions else ()
        for flag, names in (
            ("chop", config.chopped),
            ("small", config.small_results),
            ("integer", integers),
        ):
            codes = [config.precisions.index(name) for name in names]
            selected = [precision == code for code in codes]
            m.d.comb += bus.control[flag].eq(Cat(*selected).any())
        if config.precision_bits:
            m.d.comb += Value.cast(bus.step.precision).eq(precision)
            if config.assignment == "element":
                m.d.comb += bus.control.precision.eq(precision)
            if config.mixed:
                m.d.comb += bus.control.precision_b.eq(beat.precision_b)

    def _build_operation(self, m: Module, beat: Any, grid: Any) -> None:
        """Connect the control bits of a beat's operation to decoders and elements."""
        ops = self.config.ops
        code = Value.cast(beat.operation)
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

    def _late(self, beat: Any) -> Value:
        """Return 1 if the beat reads its slot only when it writes the result (a semiring)."""
        ops = self.config.ops
        code = Value.cast(beat.operation)
        late = [index for index, op in enumerate(ops) if op.plus != "add"]
        every = len(late) == len(ops)
        return Const(1, 1) if every else Cat(*(code == index for index in late)).any()

    def _precision(self, m: Module, beat: Any) -> Value:
        """Return the precision of a beat; a semiring on FP32 operands always has FP32."""
        config, field = self.config, Value.cast(beat.precision)
        if not config.one_pair or not config.precision_bits:
            return field
        precision = Signal(config.precision_bits)
        m.d.comb += precision.eq(Mux(self._late(beat), config.precisions.index("fp32"), field))
        return precision

    def _build_steps(self, m: Module, precision: Value, issue: Value) -> "_Steps":
        """Count the steps of a beat: the digits of a sum, and the two sums of complex numbers.

        No operand buffer is needed, because the sender holds a beat until it is taken in its last
        step.
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
            selected = [precision == code for code in codes]
            m.d.comb += chosen.eq(Cat(*selected).any() if config.precision_bits else 1)
        digit = Signal(config.digit_bits)
        part = Signal(int(bool(config.complex_precisions)))
        last = Signal()
        done = Signal()
        # A narrow precision takes one step.
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


def _behind(m: Module, source: Any, sink: Any, name: str) -> None:
    """Connect two streams through a register."""
    held = Signal(len(Value.cast(source.payload)), name=name, reset_less=True)
    full = Signal(name=f"{name}_full")
    m.d.comb += [
        source.ready.eq(~full | sink.ready),
        sink.valid.eq(full),
        Value.cast(sink.payload).eq(held),
    ]
    with m.If(source.ready):
        m.d.sync += [full.eq(source.valid), held.eq(Value.cast(source.payload))]


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """The progress of a beat.

    Attributes
    ----------
    digit : Value
        Index of B's digit in this step.
    part : Value
        1 while the imaginary part of a complex product is formed.
    wide : Value
        One bit for each number of limbs in ``config.limb_counts``.
    last : Value
        1 in the last step of a sum.
    done : Value
        1 in the last step of the beat.
    is_complex : Value
        1 if the beat's precision is complex.
    """

    digit: Value
    part: Value
    wide: Value
    last: Value
    done: Value
    is_complex: Value
