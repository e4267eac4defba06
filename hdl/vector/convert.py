"""The conversions of a slice: FP16 to FP32 and back, and both to integers with saturation."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from vitruvian.golden.fp.formats import FORMATS, FloatFormat

from ..fp.convert import Converter
from ..fp.parts.align import shift_right
from ..fp.parts.pipeline import PipelineStages
from ..fp.parts.unpack import unpack
from .operations import Operation, Rounding

_FP16, _FP32 = FORMATS["fp16"], FORMATS["fp32"]


def code_of(operation: Operation) -> int:
    """Return the code of a conversion in the field ``conversion`` of the control bits."""
    return operation.value - Operation.TO_FP32.value


def build_convert(
    m: Module,
    stages: PipelineStages,
    a: Value,
    control: Sequence[data.View],
    arithmetic: Sequence[str],
    *,
    together: bool = False,
) -> Value:
    """Return the converted lanes behind the boundaries ``arithmetic``, of which the first two work.

    Parameters
    ----------
    a : Value
        The operand word: two FP16 codes or one FP32 code. If the result is wider than the source,
        its lower half has the only FP16 code.
    control : sequence of data.View
        Control bits of the beats in front of each of these boundaries and of the next one.
    arithmetic : sequence of str
        ``aligned``, ``total`` and others.
    together : bool
        If True, the conversion of FP32 to integers carries out that of the lower FP16 code, too,
        which is smaller and slower.
    """
    m.submodules.widen = widen = Converter(source=_FP16, target=_FP32)
    m.submodules.narrow = narrow = Converter(source=_FP32, target=_FP16, pipeline=len(arithmetic))
    widened = Signal(32, name="widened")
    m.d.comb += [widen.a.eq(a[:16]), widened.eq(widen.d), narrow.a.eq(a)]
    single = Signal(32, name="single")
    m.d.comb += single.eq(Mux(control[0].wide, a, widened))

    short = (16, 8, -8)
    targets = (32, *short) if together else (32, 16)
    # Control bits of the beats behind ``aligned``.
    behind = control[list(arithmetic).index("aligned") + 1]
    wide = _to_integer(m, stages, single, _FP32, 32, targets, behind, name="whole")
    halves = [
        wide[:16]
        if together and not number
        else _to_integer(m, stages, part, _FP16, 16, short, behind, name=name)
        for number, (name, part) in enumerate((("low", a[:16]), ("high", a[16:])))
    ]
    for stage in arithmetic:
        widened = stages.cross(stage, widened, f"{stage}_widened")
    for stage in arithmetic[list(arithmetic).index("total") + 1 :]:
        wide = stages.cross(stage, wide, f"{stage}_whole")
        halves = [stages.cross(stage, x, f"{stage}_half{n}") for n, x in enumerate(halves)]
    last = control[-1]
    result = Cat(*halves)
    by_single = last.wide | (last.conversion == code_of(Operation.TO_INT32))
    result = Mux(by_single, wide, result)
    result = Mux(last.conversion == code_of(Operation.TO_FP32), widened, result)
    return Mux(last.conversion == code_of(Operation.TO_FP16), narrow.d, result)


def _to_integer(
    m: Module,
    stages: PipelineStages,
    code: Value,
    format: FloatFormat,
    bits: int,
    targets: tuple[int, ...],
    control: data.View,
    *,
    name: str,
) -> Value:
    """Return a code as an integer of ``bits`` bits, saturated to one of the targets.

    The significand starts at the integer's top bit and moves right by the difference between that
    bit's exponent and its own. A target is a number of bits, negative for an unsigned integer.
    """
    x = unpack(m, code, format, name=f"{name}_x")
    top = bits - 1 + format.bias
    distance = Signal(signed((top + (1 << format.exponent_bits)).bit_length() + 1))
    m.d.comb += distance.eq(top - x.exponent)
    far, significand, beyond, sign, nan = (
        stages.cross_extra("distance", value, f"{name}_{what}")
        for what, value in (
            ("far", distance[:-1]),
            ("significand", x.significand),
            ("beyond", distance[-1] | x.inf),
            ("sign", x.sign),
            ("nan", x.nan),
        )
    )
    word = Cat(Const(0, bits + 1 - format.significand_bits), significand)
    moved, lost = shift_right(m, word, far, name=f"{name}_align", sticky=True)
    parts = {"moved": moved, "lost": lost, "beyond": beyond, "sign": sign, "nan": nan}
    parts = stages.cross_all("aligned", parts, f"{name}_aligned")

    sign, guard, whole = parts["sign"], parts["moved"][0], parts["moved"][1:]
    inexact = guard | parts["lost"]
    rounding = control.rounding
    up = Signal(name=f"{name}_up")
    with m.Switch(rounding):
        with m.Case(Rounding.NEAREST_EVEN.value):
            m.d.comb += up.eq(guard & (parts["lost"] | whole[0]))
        with m.Case(Rounding.NEAREST_AWAY.value):
            m.d.comb += up.eq(guard)
        with m.Case(Rounding.DOWN.value):
            m.d.comb += up.eq(sign & inexact)
        with m.Case(Rounding.UP.value):
            m.d.comb += up.eq(~sign & inexact)
    # -(n + up) = ~n + (1 - up): negation and rounding share one increment.
    value = Signal(bits + 2, name=f"{name}_value")
    m.d.comb += value.eq(Cat(whole ^ sign.replicate(bits), sign.replicate(2)) + (up ^ sign))
    conversion = control.conversion
    result = Signal(bits, name=f"{name}_result")
    m.d.comb += result.eq(_saturated(value, sign, parts["beyond"], abs(targets[0]), bits, False))
    codes = {16: Operation.TO_INT16, 8: Operation.TO_INT8, -8: Operation.TO_UINT8}
    for target in targets[1:]:
        with m.If(conversion == code_of(codes[target])):
            m.d.comb += result.eq(
                _saturated(value, sign, parts["beyond"], abs(target), bits, target < 0)
            )
    return stages.cross("total", result & (~parts["nan"]).replicate(bits), f"{name}_integer")


def _saturated(
    value: Value, sign: Value, beyond: Value, target: int, bits: int, unsigned: bool
) -> Value:
    """Return an integer of ``target`` bits, sign-extended to ``bits``."""
    if unsigned:
        fits = ~value[target:].any()
        limit = (~sign).replicate(target)
    else:
        above = value[target - 1 :]
        fits = ~above.any() | above.all()
        limit = Cat((~sign).replicate(target - 1), sign)
    low = Mux(fits & ~beyond, value[:target], limit)
    fill = Const(0, 1) if unsigned else low[target - 1]
    return Cat(low, fill.replicate(bits - target))
