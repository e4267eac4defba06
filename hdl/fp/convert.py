"""Conversion between floating-point formats, and between these and integers."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS, FloatFormat, IntFormat

from .core.finish import ROUNDINGS, Exact, finish
from .parts.align import shift_right
from .parts.pipeline import PipelineStages
from .parts.unit import PipelinedUnit
from .parts.unpack import unpack

#: The stage boundaries that have registers at each pipeline depth.
_STAGES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("total",),
    2: ("total", "normalised"),
    # For FPGAs, where wires and look-up tables are slow and flip-flops are free.
    4: ("total", "leading", "retimed", "normalised"),
    5: ("operand", "total", "leading", "retimed", "normalised"),
}


class Converter(PipelinedUnit):
    """Converter from one format to another, with one rounding.

    It is bit-exact with ``golden.fp.convert`` (float to float), ``to_int`` and ``from_int``. An
    integer result saturates, also for an infinity; a NaN gives 0.

    Parameters
    ----------
    source, target : FloatFormat, IntFormat or str
        The formats; at least one of them must be a floating-point format.
    rounding : {"RNE", "RZ"}
        Rounding to nearest even, or towards zero.
    saturate : bool
        If True, overflow and infinities become the largest finite number (float to float only).
    pipeline : int
        Number of register ranks, 0 (combinational) to 2.

    Members
    -------
    a : In(source bits)
        Code to convert; an integer is in two's complement.
    d : Out(target bits)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.

    Raises
    ------
    TypeError
        If a format is neither a format object nor a name.
    ValueError
        If a format, the rounding or the pipeline depth is unknown, or if both formats are integer
        formats.
    """

    if TYPE_CHECKING:
        a: Signal
        d: Signal

    def __init__(
        self,
        *,
        source: FloatFormat | IntFormat | str,
        target: FloatFormat | IntFormat | str,
        rounding: str = "RNE",
        saturate: bool = False,
        pipeline: int = 0,
    ):
        self.source, self.target = _format(source, "source"), _format(target, "target")
        if isinstance(self.source, IntFormat) and isinstance(self.target, IntFormat):
            raise ValueError(f"target must be a floating-point format, not {self.target.name!r}")
        one_of("rounding", rounding, ROUNDINGS)
        self.rounding, self.saturate = rounding, bool(saturate)
        ports = {"a": In(_bits(self.source)), "d": Out(_bits(self.target))}
        super().__init__(ports, pipeline=pipeline, depths=_STAGES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = PipelineStages(m, _STAGES[self.pipeline])
        if isinstance(self.target, IntFormat):
            assert isinstance(self.source, FloatFormat)
            result = self._to_int(m, stages, self.source, self.target)
        else:
            if isinstance(self.source, IntFormat):
                number = self._from_int(m, self.source, self.target)
            else:
                number = self._from_float(m, stages, self.source, self.target)
            result = finish(
                m,
                number,
                output=self.target,
                rounding=self.rounding,
                stages=stages,
                saturate=self.saturate,
            )
        m.d.comb += self.d.eq(result)
        return m

    def _from_float(
        self, m: Module, stages: PipelineStages, source: FloatFormat, target: FloatFormat
    ) -> Exact:
        """Return the floating-point operand with its exponent on the target's scale."""
        a = unpack(m, stages.cross_extra("operand", self.a, "s0_a"), source, name="a")
        offset = target.bias - source.bias
        return Exact(
            sign=a.sign,
            word=a.significand,
            exponent=a.exponent + offset,
            exponent_min=1 + offset,
            exponent_max=source.emax + source.bias + offset,
            # Subnormal numbers stay subnormal unless the target has a wider exponent range.
            zeros=source.fraction_bits if offset > 0 else 0,
            nan=a.nan,
            inf=a.inf,
        )

    def _from_int(self, m: Module, source: IntFormat, target: FloatFormat) -> Exact:
        """Return the integer operand as sign and magnitude."""
        sign = self.a[-1] if source.signed else Const(0, 1)
        magnitude = Signal(source.bits, name="magnitude")
        m.d.comb += magnitude.eq((self.a ^ sign.replicate(source.bits)) + sign)
        top = source.bits - 1 + target.bias
        return Exact(
            sign=sign,
            word=magnitude,
            exponent=Const(top),
            exponent_min=top,
            exponent_max=top,
            zeros=source.bits - 1,
            nan=Const(0, 1),
            inf=Const(0, 1),
        )

    def _to_int(
        self, m: Module, stages: PipelineStages, source: FloatFormat, target: IntFormat
    ) -> Value:
        """Return the operand rounded to an integer and clipped to the target's range.

        The significand starts at the integer's top bit and is shifted right by the difference
        between that bit's exponent and its own.
        """
        a = unpack(m, self.a, source, name="a")
        integer_bits = min(target.bits, max(source.emax + 1, 1))
        top = integer_bits - 1 + source.bias  # biased exponent that needs no shift
        word = Cat(Const(0, max(integer_bits + 1 - source.significand_bits, 0)), a.significand)
        distance = Signal(
            signed((top + (1 << source.exponent_bits)).bit_length() + 1), name="distance"
        )
        m.d.comb += distance.eq(top - a.exponent)
        moved, lost = shift_right(m, word, distance[:-1], name="align", sticky=True)
        beyond = stages.cross("total", distance[-1] | a.inf, "beyond")
        moved = stages.cross("total", moved, "aligned")
        lost = stages.cross("total", lost, "lost")
        sign = stages.cross("total", a.sign, "sign")
        nan = stages.cross("total", a.nan, "nan")

        whole, rest = moved[-integer_bits:], moved[: -integer_bits - 1]
        guard = moved[-integer_bits - 1]
        up = Const(0, 1)
        if self.rounding == "RNE":
            up = guard & (rest.any() | lost | whole[0])
        # -(n + up) = ~n + (1 - up): negation and rounding share one increment.
        value = Signal(signed(max(integer_bits, target.bits) + 2), name="value")
        m.d.comb += value.eq(
            Cat(whole ^ sign.replicate(integer_bits), sign.replicate(2)).as_signed() + (up ^ sign)
        )
        above = Mux(beyond, ~sign, value > target.maximum)
        below = Mux(beyond, sign, value < target.minimum)
        result = Mux(above, target.maximum, Mux(below, target.minimum, value))[: target.bits]
        result = result & (~nan).replicate(target.bits)
        return stages.cross("normalised", result, "normalised_result")


def _format(value: object, thing: str) -> FloatFormat | IntFormat:
    """Return the format that ``value`` is or names."""
    if isinstance(value, FloatFormat | IntFormat):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{thing} must be a format or a name, not {value!r}")
    formats = FORMATS | INT_FORMATS
    one_of(thing, value, formats)
    return formats[value]


def _bits(format: FloatFormat | IntFormat) -> int:
    """Return the number of bits of a code."""
    return format.bits if isinstance(format, IntFormat) else format.storage_bits
