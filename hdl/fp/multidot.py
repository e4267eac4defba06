"""A dot product for several operand formats that share its lanes; each beat selects one."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.hdl.fp.core.products import product_lane

from .core.dotcore import DotCore
from .core.geometry import Geometry, Lane, ShortWindow, with_floor
from .intdot import IntDotProduct
from .parts.isolation import OperandIsolation
from .parts.pipeline import DEEP_PIPELINES, PipelineStages, followed
from .parts.unit import PipelinedUnit
from .parts.unpack import UnpackedCode, unpack

# Parts of a rule that all precisions share
_SHARED = ("output", "sum.truncate", "result.rounding", "nan_code", "sum.floor", "result.zero")


class MultiDot(PipelinedUnit):
    """Fused dot product in any of several precisions, with one multiplier array for all of them.

    Lane ``l`` of a precision with ``w``-bit storage reads the bits ``l*w … l*w+w-1`` of the operand
    bus. A bus of 16-bit lanes therefore carries half as many TF32 operands, and twice as many FP8
    or INT8 operands, as FP16 operands.

    Parameters
    ----------
    specs : mapping of str to DotSpec
        The arithmetic of each floating-point precision. All must have the same output, truncation,
        rounding, floor and rule for the sign of zero. They must also have the same window and
        result bits, except that one group of them may have fewer (truncated magnitudes, RZ).
    int8_k : int
        Number of lanes of signed INT8 with INT32 accumulation (precision name ``int8``), or 0.
    saturate : bool
        If True, INT32 results saturate instead of wrapping.
    pipeline : int
        Number of register ranks, 0 to 11.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA.
    addend_cycles : int
        Cycles by which ``c`` comes later than the operands, at most the number of ranks in front of
        its first use.
    mixed : bool
        If True, A and B may have different precisions. These are floating-point formats with the
        same K, window, result bits and storage bits.
    isolated : bool
        If True, the operands of INT8 are zero in beats of other precisions, and those of the others
        in beats of INT8, so that the datapath that a beat does not use stays still. This needs INT8
        beside other precisions, and ``c`` in the cycle of the operands.
    gated : bool
        If True, the unit has the port ``valid``, and the registers of INT8, and those of the other
        precisions, keep their values in the beats of the others, so that their clock can be gated.
        This needs registers, and ``c`` in the cycle of the operands.

    Members
    -------
    a, b : In(bus_bits)
        Operand buses.
    precision : In(ceil(log2(len(precisions))))
        Index into ``precisions``; absent if the unit has only one precision.
    precision_b : In(ceil(log2(len(precisions))))
        With ``mixed``, the precision of B, and ``precision`` is that of A.
    valid : In(1)
        With ``gated``, whether the operands count; otherwise the result stays the same.
    c, d : In(32), Out(32)
        Addend and result, in FP32 (or the output format of ``specs``) or INT32.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The precision may change in every
    cycle.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown, if there is no precision, or if the
        specs differ in what they must share.
    """

    a: Signal
    b: Signal
    c: Signal
    d: Signal
    precision: Signal
    precision_b: Signal
    valid: Signal

    def __init__(
        self,
        *,
        specs: Mapping[str, DotSpec],
        int8_k: int = 0,
        saturate: bool = False,
        pipeline: int = 0,
        multiplier: str = "booth",
        addend_cycles: int = 0,
        mixed: bool = False,
        isolated: bool = False,
        gated: bool = False,
    ):
        if not specs and not int8_k:
            raise ValueError("specs must name at least one precision, not be empty")
        self.specs, self.int8_k = dict(specs), int8_k
        self.saturate, self.addend_cycles, self.mixed = saturate, addend_cycles, mixed
        self.isolated, self.gated = isolated, gated
        if gated and (not pipeline or addend_cycles):
            raise ValueError("gated must be False without registers, or with a late addend")
        self.precisions = (*self.specs, *(("int8",) if int8_k else ()))
        widths = {name: spec.k * spec.input.storage_bits for name, spec in self.specs.items()}
        self.bus_bits = max([*widths.values(), 8 * int8_k])
        self._check()
        self._output = next((s.output for s in self.specs.values()), None)
        result_bits = self._output.storage_bits if self._output else 32
        members = {
            "a": In(self.bus_bits),
            "b": In(self.bus_bits),
            "c": In(result_bits),
            "d": Out(result_bits),
        }
        if len(self.precisions) > 1:
            members["precision"] = In((len(self.precisions) - 1).bit_length())
            if mixed:
                members["precision_b"] = members["precision"]
        if gated:
            members["valid"] = In(1)
        super().__init__(members, pipeline=pipeline, depths=DEEP_PIPELINES, multiplier=multiplier)

    def _check(self) -> None:
        """Raise ValueError if the specs differ in what they must share."""
        specs = list(self.specs.values())
        for name, spec in self.specs.items():
            if spec.sum.window is None:
                raise ValueError(f"window of {name} must be a number of bits, not None")
            if spec.input_b != spec.input:
                raise ValueError(f"{name} must have one operand format, not two")
            check_floor(spec)
            if not spec.output.has_nan:
                raise ValueError(f"output of {name} must have NaN, not be {spec.output.name!r}")
            for part in _SHARED:
                found, wanted = (attrgetter(part)(s) for s in (spec, specs[0]))
                if found != wanted:
                    raise ValueError(
                        f"{part} of {name} must be that of {self.precisions[0]}, "
                        f"{wanted!r}, not {found!r}"
                    )
        windows = {(spec.sum.window, spec.result.bits) for spec in specs}
        if len(windows) > 2:
            raise ValueError("specs must have at most two different windows")
        if len(windows) == 2 and (specs[0].sum.truncate, specs[0].result.rounding) != (
            "magnitude",
            "RZ",
        ):
            raise ValueError(
                "specs must have one window unless they truncate magnitudes and round by RZ, not "
                f"windows of {' and '.join(str(window) for window, _ in sorted(windows))} bits"
            )
        if self.mixed:
            shared = {(s.k, s.sum.window, s.result.bits, s.input.storage_bits) for s in specs}
            if len(shared) > 1 or self.int8_k:
                raise ValueError(
                    "specs must have one K, one window and one operand width, and no int8, "
                    "with a precision for each side"
                )
        if self.isolated and (not self.int8_k or not specs or self.addend_cycles):
            raise ValueError(
                "isolated must be False without int8 beside other precisions, or with a late addend"
            )
        if self.int8_k and specs and specs[0].output.storage_bits != 32:
            raise ValueError("output must have 32 bits where int8 is one of the precisions")

    def spec(self, precision: str) -> DotSpec:
        """Return the arithmetic of a floating-point precision.

        Raises
        ------
        ValueError
            If the unit does not have the precision.
        """
        if precision not in self.specs:
            raise ValueError(f"precision must be one of {tuple(self.specs)}, not {precision!r}")
        return self.specs[precision]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        select: dict[str, Value] = {name: Const(1, 1) for name in self.precisions}
        select_b = select
        if len(self.precisions) > 1:
            select = self._decoded(m, self.precision, "is")
            select_b = self._decoded(m, self.precision_b, "b_is") if self.mixed else select
        results: list[tuple[str, Value]] = []
        ranks = DEEP_PIPELINES[self.pipeline]
        integer = select.get("int8", Const(0, 1))
        # In a gated unit, these bits accompany the operands to each rank.
        valid = followed(m, ranks, self.valid, "valid") if self.gated else {}
        integers = followed(m, ranks, integer, "integer") if self.gated else {}
        if self.specs:
            stages = self._stages(m, {name: valid[name] & ~integers[name] for name in valid})
            results.append(("float", self._build_float(m, stages, select, select_b)))
        if self.int8_k:
            m.submodules.int8 = int8 = IntDotProduct(
                spec=IntDotSpec(k=self.int8_k, saturate=self.saturate),
                pipeline=self.pipeline,
                multiplier=self.multiplier,
                addend_cycles=self.addend_cycles,
                gated=self.gated,
            )
            if self.gated:
                m.d.comb += int8.used.eq(Cat(valid[name] & integers[name] for name in ranks))
            bits, used = 8 * self.int8_k, select["int8"]
            m.d.comb += [
                Value.cast(int8.a).eq(self._isolated(m, "int_a", self.a[:bits], used)),
                Value.cast(int8.b).eq(self._isolated(m, "int_b", self.b[:bits], used)),
                int8.c.eq(self._isolated(m, "int_c", self.c, used)),
            ]
            results.append(("int8", int8.d))
        if len(results) == 1:
            m.d.comb += self.d.eq(results[0][1])
        else:
            # The select passes the same pipeline stages as the results.
            stages = self._stages(m, valid)
            for place in ranks[-1:] if self.gated else ranks:
                integer = stages.cross(place, integers.get(place, integer), f"{place}_is_int8")
            m.d.comb += self.d.eq(Mux(integer, results[1][1], results[0][1]))
        return m

    def _isolated(self, m: Module, name: str, value: Value, used: Value) -> Value:
        """Return an operand, which an isolated unit holds at zero where ``used`` is not set."""
        if self.isolated and self.gated:
            m.submodules[f"isolation_{name}"] = isolation = OperandIsolation(len(value))
            m.d.comb += [isolation.value.eq(value), isolation.used.eq(used)]
            return isolation.held
        return value & used.replicate(len(value)) if self.isolated else value

    def _decoded(self, m: Module, code: Value, prefix: str) -> dict[str, Value]:
        """Return a bit for each precision that is set if the code names it."""
        select: dict[str, Value] = {}
        for index, name in enumerate(self.precisions):
            select[name] = Signal(name=f"{prefix}_{name}")
            m.d.comb += select[name].eq(code == index)
        return select

    def _stages(self, m: Module, used: Mapping[str, Value]) -> PipelineStages:
        """Return the stage boundaries of the floating-point precisions."""
        return PipelineStages(m, DEEP_PIPELINES[self.pipeline], self.addend_cycles, used=used)

    def _build_float(
        self,
        m: Module,
        stages: PipelineStages,
        select: Mapping[str, Value],
        select_b: Mapping[str, Value],
    ) -> Value:
        """Return the result in the selected floating-point precisions of A and of B."""
        one = select_b is select
        integer = select.get("int8", Const(0, 1))
        if self.isolated and len(self.specs) == 1:
            # Operands that are held at zero need no select behind their decoders.
            select = {**select, **dict.fromkeys(self.specs, Const(1, 1))}
        select = _crossed(stages, select, "o")
        select_b = select if one else _crossed(stages, select_b, "o_b")
        chosen = {"a": select, "b": select_b}
        buses = [
            stages.cross_extra(
                "operand", self._isolated(m, name, port, ~integer), f"operand_{name}"
            )
            for name, port in (("a", self.a), ("b", self.b))
        ]
        specs = list(self.specs.values())
        longest = max(specs, key=lambda spec: spec.sum.window or 0)
        shorter = [
            name for name, spec in self.specs.items() if spec.sum.window != longest.sum.window
        ]
        bias = max(spec.input.bias for spec in specs)
        short = None
        if shorter:
            cut = self.specs[shorter[0]]
            assert cut.sum.window is not None
            short = ShortWindow(
                select=Cat(*[select[name] for name in shorter]).any(),
                window=cut.sum.window,
                result_bits=cut.result.bits,
                nan_code=cut.nan_code,
                zero=cut.result.zero,
            )
        assert longest.sum.window is not None
        geometry = Geometry(
            lanes=max(spec.k for spec in specs),
            window=longest.sum.window,
            sticky=longest.sum.truncate == "floor",
            output=longest.output,
            result_bits=longest.result.bits,
            # A biased exponent is at least 1, so the sum of two is at least 2.
            exponent_min=2,
            exponent_max=max(2 * spec.input.emax for spec in specs) + 2 * bias,
            offset=longest.output.bias - 2 * bias,
        )
        geometry = with_floor(geometry, longest.sum.floor, 2 * bias)
        # All specs have the same floor.
        short = short and replace(short, floor=geometry.floor)
        core = DotCore(
            m,
            geometry=geometry,
            rounding=longest.result.rounding,
            nan_code=longest.nan_code,
            stages=stages,
            short=short,
            multiplier=self.multiplier,
            zero=longest.result.zero,
        )
        c = self._isolated(m, "c", self.c, ~integer)
        if "operand" in stages.names:
            c = stages.cross_addend("operand", c, "operand_c")
        c = unpack(m, c, longest.output, name="c")
        return core.build(
            [self._build_lane(m, chosen, buses, lane, bias) for lane in range(geometry.lanes)], c
        )

    def _build_lane(
        self,
        m: Module,
        chosen: Mapping[str, Mapping[str, Value]],
        buses: list[Value],
        lane: int,
        bias: int,
    ) -> Lane:
        """Return the product of a lane in the selected precisions, on the scale of ``bias``."""
        served = {name: spec.input for name, spec in self.specs.items() if spec.k > lane}
        fraction = max(format.fraction_bits for format in served.values())
        # With a precision for each side, no lane is absent.
        absent = [chosen["a"][name] for name in self.precisions if name not in served]
        operands = []
        for side, bus in zip("ab", buses, strict=True):
            views = []
            for name, format in served.items():
                low = lane * format.storage_bits
                code = bus[low : low + format.storage_bits]
                view = unpack(m, code, format, name=f"{side}{lane}_{name}")
                views.append(
                    (chosen[side][name], widen(view, format, fraction=fraction, bias=bias))
                )
            operands.append(choose(m, views, name=f"{side}{lane}"))
        product = product_lane(
            m, *operands, fraction=2 * fraction, name=f"p{lane}", multiplier=self.multiplier
        )
        if not absent:
            return product
        # A lane that the precision does not use adds -0, which changes no sum, not even the sign of
        # a zero sum.
        return Lane(
            sign=product.sign | Cat(*absent).any(),
            exponent=product.exponent,
            significand=product.significand,
            fraction=product.fraction,
            nan=product.nan,
            inf=product.inf,
        )


def _crossed(stages: PipelineStages, select: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    """Return one-hot selects behind the boundary of the operands."""
    return {
        name: bit
        if isinstance(bit, Const)
        else stages.cross_extra("operand", bit, f"{prefix}_{name}")
        for name, bit in select.items()
    }


def check_floor(spec: DotSpec | None) -> None:
    """Check that a spec's floor is not above C's least exponent.

    Raises
    ------
    ValueError
        If it is; lanes that several precisions share do not support this.
    """
    if spec is not None and spec.sum.floor is not None and spec.sum.floor > spec.output.emin:
        raise ValueError(
            f"emax_floor must be at most {spec.output.emin}, the least exponent of "
            f"{spec.output.name}, not {spec.sum.floor!r}"
        )


def widen(view: UnpackedCode, format: FloatFormat, *, fraction: int, bias: int) -> UnpackedCode:
    """Return the same number in a wider format.

    Parameters
    ----------
    view : UnpackedCode
        The number in ``format``.
    format : FloatFormat
        The narrower format.
    fraction : int
        Number of fraction bits of the wider format.
    bias : int
        Exponent bias of the wider format.
    """
    exponent = widen_exponent(view.exponent, format.bias, bias)
    padding = Const(0, fraction - format.fraction_bits)
    return UnpackedCode(
        sign=view.sign,
        exponent=exponent,
        significand=Cat(padding, view.significand),
        zero=view.zero,
        inf=view.inf,
        nan=view.nan,
    )


def widen_exponent(exponent: Value, bias: int, wider: int) -> Value:
    """Return an exponent with another, larger bias.

    Every bias is a power of two minus one, so no adder is needed: the top bit ``t`` becomes the
    bits ``t, ~t … ~t``.

    Parameters
    ----------
    exponent : Value
        The biased exponent.
    bias : int
        Its bias.
    wider : int
        The larger bias.
    """
    # wider - bias = 2^(W-1) - 2^(w-1) for exponents of W and w bits. Added to 2^(w-1) + r, this
    # gives 2^(W-1) + r. Added to r < 2^(w-1), it gives r below W - w ones and a zero.
    more = (wider + 1).bit_length() - (bias + 1).bit_length()
    if not more:
        return exponent
    return Cat(exponent[:-1], (~exponent[-1]).replicate(more), exponent[-1])


def choose(m: Module, views: list[tuple[Value, UnpackedCode]], *, name: str) -> UnpackedCode:
    """Return the operand whose select is set, or zero if no select is set.

    Parameters
    ----------
    views : list of (Value, Unpacked)
        A select and an operand each; at most one select is set.
    name : str
        First part of the new signals' names.
    """
    if len(views) == 1 and isinstance(views[0][0], Const):
        return views[0][1]
    fields: dict[str, Value] = {}
    for field in ("sign", "exponent", "significand", "inf", "nan"):
        values = [(select, Value.cast(getattr(view, field))) for select, view in views]
        width = max(len(value) for _, value in values)
        # The selects are one-hot, so an AND-OR multiplexer is enough.
        chosen: Value = Const(0, width)
        for select, value in values:
            chosen = chosen | (value & select.replicate(len(value)))
        fields[field] = Signal(width, name=f"{name}_{field}")
        m.d.comb += fields[field].eq(chosen)
    zero = Signal(name=f"{name}_is_zero")
    m.d.comb += zero.eq(~Cat(*[select & ~view.zero for select, view in views]).any())
    return UnpackedCode(zero=zero, **fields)
