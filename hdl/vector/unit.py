"""The vector unit: slices, the sequencer of commands, and the routes of operands and results."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import VectorConfig
from .control import Form, Select, control_layout
from .decode import DecodedCommand, decode
from .operations import Format, Operation, command_layout
from .results import build_results
from .routes import any_enabled, by_halves, route
from .sequencer import VectorSequencer
from .slice import Slice


class VectorUnit(wiring.Component):
    """Vector unit that carries out commands on blocks of FP16 or FP32 elements.

    Parameters
    ----------
    config : VectorConfig
        The parameters of the unit.

    Members
    -------
    command : In(stream.Signature(command_layout(lanes)))
        Commands. A command is taken together with its last block.
    a, b : In(stream.Signature(16 × lanes)), In(stream.Signature(16 × lanes))
        Operand blocks, one for each repeat; element 0 is in the lowest bits. ``operations`` says
        which operations read them.
    o : Out(stream.Signature({data: 16 × lanes, enable: 2 × lanes}))
        Result blocks. Bit k of ``enable`` says that byte k is to be written. The memory keeps all
        other bytes, so disabled lanes keep the old element of the destination.

    Latency
    -------
    ``latency = config.stages`` cycles from the transfer of a repeat's operands to its result, one
    repeat in ``config.passes`` cycles for all operations but reductions. A level of a reduction
    takes ``latency`` cycles, and the lane of an extreme as many more. All registers stop while
    ``o`` waits, so no result is lost.

    Raises
    ------
    TypeError
        If ``config`` is not a ``VectorConfig``.
    """

    #: Components of which equal instances may be elaborated once (``hdl.elaborate``).
    shared = (Slice,)

    if TYPE_CHECKING:
        command: stream.Interface
        a: stream.Interface
        b: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: VectorConfig):
        if not isinstance(config, VectorConfig):
            raise TypeError(f"config must be a VectorConfig, not {config!r}")
        self.config = config
        self.latency = config.stages
        bits = config.block_bits
        result = data.StructLayout({"data": bits, "enable": bits // 8})
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(config.lanes))),
                "a": In(stream.Signature(bits)),
                "b": In(stream.Signature(bits)),
                "o": Out(stream.Signature(result)),
            }
        )

    def cycles(self, operation: Operation, format: Format) -> int:
        """Return ``VectorConfig.cycles``."""
        return self.config.cycles(operation, format)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, command = self.config, self.command.payload
        lanes = config.lanes
        m.submodules.sequencer = sequencer = VectorSequencer()
        decoded = decode(m, command, config)
        advance = Signal()
        pipeline = [
            Signal(_beat_layout(config), name=f"beat{k}", reset_less=True)
            for k in range(config.stages)
        ]
        valid = Signal(config.stages)  # rank k holds a beat
        last, there = pipeline[-1], valid[-1]
        m.d.comb += advance.eq(~(there & last.emits) | self.o.ready)

        mask = Signal(lanes, name="mask")
        short = decoded.control.wide | decoded.control.wide_result
        low = (1 << config.slices) - 1
        m.d.comb += mask.eq(command.mask & Mux(short, low, (1 << lanes) - 1))
        pending = (valid & Cat(*(beat.to_bits for beat in pipeline))).any()
        waits = (decoded.reads_bits | decoded.loads_bits) & pending
        available = (self.a.valid | ~decoded.reads_a) & (self.b.valid | ~decoded.reads_b) & ~waits
        number, enters, available = self._build_passes(m, decoded, sequencer, available)
        m.d.comb += [
            sequencer.valid.eq(self.command.valid),
            self.command.ready.eq(sequencer.ready),
            sequencer.repeats.eq(command.repeat),
            sequencer.available.eq(available),
            sequencer.advance.eq(advance),
            sequencer.reduces.eq(decoded.reduces),
            sequencer.indexed.eq(decoded.indexed),
            sequencer.levels.eq(decoded.levels),
            sequencer.back.eq(there & ~last.emits & ~last.to_bits),
            # The search for a lane needs the block once more.
            self.a.ready.eq(
                sequencer.issue
                & decoded.reads_a
                & Mux(decoded.indexed, sequencer.match, ~sequencer.again)
            ),
            self.b.ready.eq(sequencer.issue & decoded.reads_b),
        ]
        bits = Signal(lanes, name="bits")  # results of COMPARE, or of LOAD_BITS
        control = self._build_pipeline(m, decoded, sequencer, pipeline, mask, number)
        words, flags = self._build_slices(m, decoded, sequencer, control, mask, bits, number)
        words, flags = self._build_held(m, advance & there, words, flags)
        result = build_results(
            m,
            config,
            words=words,
            flags=flags,
            form=Value.cast(last.form),
            wide=last.wide,
            wide_result=last.wide_result,
            mask=last.mask,
        )
        keeps = advance & there & last.to_bits
        with m.If(keeps & last.closes if config.passes > 1 else keeps):
            m.d.sync += bits.eq((bits & ~last.mask) | (result.flags & last.mask))
        with m.If(advance):
            m.d.sync += valid.eq(Cat(enters & ~decoded.loads_bits, valid))
        with m.If(sequencer.issue & decoded.loads_bits):
            m.d.sync += bits.eq(self.a.payload[:lanes])
        m.d.comb += [
            self.o.valid.eq(there & last.emits),
            self.o.payload.data.eq(result.data),
            self.o.payload.enable.eq(result.enable),
        ]
        return m

    def _build_passes(
        self, m: Module, decoded: DecodedCommand, sequencer: VectorSequencer, available: Value
    ) -> tuple[Value, Value, Value]:
        """Count the passes of a block.

        Returns
        -------
        number, enters : Value
            Number of the pass; one enters the slices.
        available : Value
            The operands are there, and the pass is the last one.
        """
        passes = self.config.passes
        if passes == 1:
            return Const(0, 1), sequencer.issue, available
        number = Signal(range(passes), name="pass_number")
        final, early = Signal(name="final_pass"), Signal(name="early_pass")
        some = self.command.valid & (self.command.payload.repeat != 0)
        m.d.comb += [
            final.eq((number == passes - 1) | decoded.loads_bits),
            early.eq(some & sequencer.advance & available & ~final),
        ]
        with m.If(early):
            m.d.sync += number.eq(number + 1)
        with m.Elif(sequencer.issue):
            m.d.sync += number.eq(0)
        return number, early | sequencer.issue, available & final

    def _build_held(
        self, m: Module, moves: Value, words: Value, flags: Value
    ) -> tuple[Value, Value]:
        """Return the results of a block, of which those of earlier passes are in registers."""
        if self.config.passes == 1:
            return words, flags
        results = []
        for name, now in (("words", words), ("flags", flags)):
            size = len(now)
            held = Signal((self.config.passes - 1) * size, name=f"held_{name}", reset_less=True)
            with m.If(moves):
                m.d.sync += held.eq(Cat(held, now)[size:])
            results.append(Cat(held, now))
        return results[0], results[1]

    def _build_pipeline(
        self,
        m: Module,
        decoded: DecodedCommand,
        sequencer: VectorSequencer,
        pipeline: list,
        mask: Value,
        number: Value,
    ) -> list:
        """Move the properties of beats through the ranks; return their control bits."""
        control = [
            Signal(control_layout(), name=f"control{k}", reset_less=True)
            for k in range(self.config.stages - 1)
        ]
        entering = Signal(control_layout(), name="control_entering")
        first = Signal(_beat_layout(self.config), name="beat_entering")
        levels = self.config.levels(Format.FP16)
        enabled = mask
        if "reduce" in self.config.groups:
            # An indexed extreme keeps the mask, because the search for its lane needs it.
            partial = decoded.reduces & ~decoded.indexed
            elements = any_enabled(m, mask, sequencer.level, levels=levels)
            enabled = Mux(partial, elements, mask)
        closes = sequencer.closes
        if self.config.passes > 1:
            closes = number == self.config.passes - 1
            m.d.comb += first.closes.eq(closes)
        m.d.comb += [
            entering.eq(decoded.control),
            first.emits.eq(closes & decoded.emits),
            first.to_bits.eq(~decoded.emits),
            Value.cast(first.form).eq(decoded.form),
            first.wide.eq(decoded.control.wide),
            first.wide_result.eq(decoded.control.wide_result),
            first.mask.eq(enabled),
        ]
        with m.If(sequencer.match):
            # Compare with the winner, and pass the winner on.
            m.d.comb += [entering.select.eq(Select.B), entering.match.eq(1)]
        with m.If(sequencer.advance):
            for now, before in zip(control, [entering, *control], strict=False):
                m.d.sync += now.eq(before)
            for now, before in zip(pipeline, [first, *pipeline], strict=False):
                m.d.sync += now.eq(before)
        return control

    def _build_slices(
        self,
        m: Module,
        decoded: DecodedCommand,
        sequencer: VectorSequencer,
        control: list,
        mask: Value,
        bits: Value,
        number: Value,
    ) -> tuple[Value, Value]:
        """Connect the slices; return their results and their flags."""
        config = self.config
        taken = config.block_bits // config.passes  # in a pass
        words = Signal(taken, name="words")
        operands = route(
            m,
            config,
            decoded,
            a=self.a.payload,
            b=self.b.payload,
            mask=mask,
            back=words,
            again=sequencer.again,
            match=sequencer.match,
        )
        # As signals, because every slice takes its part of them.
        a, b = Signal(taken, name="operands_a"), Signal(taken, name="operands_b")
        chosen = Signal(config.lanes // config.passes, name="chosen_bits")
        for entering, whole in (
            (a, operands.a),
            (b, operands.b),
            (chosen, by_halves(bits, decoded.control.wide, config)),
        ):
            one = config.passes == 1
            now = whole if one else whole.word_select(number, len(entering))
            m.d.comb += entering.eq(now)
        flags = []
        for i in range(config.built_slices):
            m.submodules[f"slice{i}"] = part = Slice(config=config)
            word = slice(32 * i, 32 * i + 32)
            m.d.comb += [
                part.advance.eq(sequencer.advance),
                part.a.eq(a[word]),
                part.b.eq(b[word]),
                part.bits.eq(chosen[2 * i : 2 * i + 2]),
                words[word].eq(part.d),
            ]
            m.d.comb += [part.control[k].eq(control[k]) for k in range(config.stages - 1)]
            flags.append(part.flags)
        return words, Cat(*flags)


def _beat_layout(config: VectorConfig) -> data.StructLayout:
    """Return the layout of what the control knows of a beat in a rank.

    ``closes`` is set in the last one of several passes.
    """
    return data.StructLayout(
        {
            "emits": 1,
            "to_bits": 1,
            "form": Form,
            "wide": 1,
            "wide_result": 1,
            "mask": config.lanes,
        }
        | ({"closes": 1} if config.passes > 1 else {})
    )
