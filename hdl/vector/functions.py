"""exp and ln of FP16 numbers, correctly rounded: range reduction, a table, a polynomial."""

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FORMATS

from ..fp.core.finish import Exact, finish
from ..fp.parts.align import shift_right
from ..fp.parts.multiply import check_multiplier, multiply
from ..fp.parts.normalise import normalise
from ..fp.parts.pipeline import PipelineStages, check_pipeline
from ..fp.parts.unpack import UnpackedCode, unpack
from .tables import FRACTION, FunctionDesign, exp_table, ln_of_2, ln_table, log2_of_e

_FP16 = FORMATS["fp16"]
#: Fields of the exponent from which |x| is at least 32, and exp(x) an infinity or 0.
_BIG = 20
#: Exponent that ln adds to every number's exponent, so that it is never negative.
_LOWEST = 24
#: The stage boundaries that have registers at each pipeline depth.
_STAGES = {2: ("aligned", "total"), 3: ("aligned", "product", "total")}


class ExpLn(wiring.Component):
    """exp or ln of an FP16 number, correctly rounded, bit-exact with ``golden.vector``.

    exp multiplies x by log2(e), and the whole part of the product becomes the exponent of the
    result. ln adds the exponent of x times ln(2) to the logarithm of the significand. Both have a
    polynomial for the rest, from one table and one pair of multipliers. The last bit of every
    result is right although no product is rounded, because the widths in ``FunctionDesign`` were
    found by a comparison of all results.

    Parameters
    ----------
    design : FunctionDesign
        Degree, number of segments, and widths.
    pipeline : int
        Number of register ranks: 2, or 3 with one before the last product of the polynomial.
    multiplier : {"booth", "dsp"}
        Form of the multipliers: see ``hdl.fp.mul.Multiplier``.

    Members
    -------
    a : In(16)
        Code of x.
    logarithm : In(3)
        1 for ln, 0 for exp: in the cycle of ``a`` and, in the bits 1 and 2, one and two cycles
        later.
    d : Out(16)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no valid
    bit.

    Raises
    ------
    ValueError
        If ``pipeline`` is neither 2 nor 3, or the form of the multipliers is unknown.
    """

    if TYPE_CHECKING:
        a: Signal
        logarithm: Signal
        d: Signal

    def __init__(self, *, design: FunctionDesign, pipeline: int = 2, multiplier: str = "booth"):
        self.design, self.multiplier = design, check_multiplier(multiplier)
        self.pipeline = self.latency = check_pipeline(pipeline, _STAGES)
        super().__init__({"a": In(16), "logarithm": In(3), "d": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = PipelineStages(m, _STAGES[self.pipeline])
        x = unpack(m, self.a, _FP16, name="x")
        exp, ln = self._build_exp_argument(m, x), self._build_ln_argument(m, x)
        logarithm, again, late = (self.logarithm[k] for k in range(3))
        parts = {key: Mux(logarithm, ln[key], exp[key]) for key in exp}
        big = x.exponent >= _BIG
        parts |= {
            # ln of a negative number is invalid, but that of −0 is −∞ (IEEE 754, section 9.2.1).
            "nan": x.nan | (logarithm & x.sign & ~x.zero),
            "inf": Mux(logarithm, x.inf | x.zero, big & ~x.sign),
            "nothing": Mux(logarithm, ln["is_one"], big & x.sign),
            # ln(±0) is −∞; this flag gives its sign.
            "below": x.zero,
        }
        s1 = stages.cross_all("aligned", parts, "s1")
        value = self._build_polynomial(m, stages, s1, again)
        if self.pipeline == 3:
            again = late
        s1 = stages.cross_all("product", s1, "s2")
        negative = Signal(name="negative")
        m.d.comb += negative.eq(again & value[-1])
        # -(n + 1) stands for -n, because the tables allow an error of one unit.
        keep = ~s1["nothing"]
        magnitude = (value ^ negative.replicate(len(value))) & keep.replicate(len(value))
        # ln has five bits in front of the point; exp has two, which move to the top.
        bits = self.design.bits + 5
        word = Mux(again, magnitude[:bits], Cat(Const(0, 3), magnitude)[:bits])
        code = finish(
            m,
            Exact(
                sign=again & Mux(s1["inf"], s1["below"], ~negative & ~s1["nothing"]),
                word=word,
                exponent=Mux(again, 4 + _FP16.bias, s1["whole"].as_signed() + 1 + _FP16.bias),
                exponent_min=-63 + _FP16.bias,
                exponent_max=64 + _FP16.bias,
                zeros=len(word) - 1,
                nan=s1["nan"],
                inf=s1["inf"],
            ),
            output=_FP16,
            rounding="RNE",
            stages=stages,
        )
        m.d.comb += self.d.eq(code)
        return m

    @property
    def _position_bits(self) -> int:
        """Bits of the position in a segment, which is a fraction with its point at the left."""
        d = self.design
        return min(
            max(d.argument_bits - d.exp_segments, FRACTION - d.ln_segments), d.position_bits(0)
        )

    def _aligned(self, position: Value) -> Value:
        """Return a position with as many bits as the unit has for it."""
        missing = self._position_bits - len(position)
        if missing >= 0:
            return Cat(Const(0, missing), position)
        return position[-missing:]

    def _build_exp_argument(self, m: Module, x: UnpackedCode) -> dict[str, Value]:
        """Return the whole part of x · log2(e), the segment, and the position in it."""
        d = self.design
        # log2(e) is 1.44…, hence one bit in front of the point.
        constant = Const(log2_of_e(d.constant_bits), d.constant_bits + 1)
        product = multiply(
            m, constant, x.significand, name="by_log2_of_e", multiplier=self.multiplier
        )
        # |x| is below 32, so the product of the largest exponent moves right by this distance.
        down = d.constant_bits + 25 - (_BIG - 1) - d.argument_bits
        word = product[down:] if down >= 0 else Cat(Const(0, -down), product)
        distance = Signal(5, name="distance")
        m.d.comb += distance.eq((_BIG - 1) - x.exponent)
        moved, _ = shift_right(m, word, distance, name="argument", sticky=False)
        t = Signal(d.argument_bits + 7, name="argument")
        # The complement of a negative argument is one unit short; the comparison of all results
        # covers that.
        m.d.comb += t.eq(Cat(moved, Const(0, 7))[: len(t)] ^ x.sign.replicate(len(t)))
        rest = t[: d.argument_bits]
        low = d.argument_bits - d.exp_segments
        return {
            "whole": t[d.argument_bits :],
            "segment": rest[low:],
            "position": self._aligned(rest[:low]),
        }

    def _build_ln_argument(self, m: Module, x: UnpackedCode) -> dict[str, Value]:
        """Return the exponent plus ``_LOWEST``, the segment, and the position from its end."""
        d = self.design
        normal = normalise(m, x.significand, limit=None, name="subnormal")
        fraction = normal.word[:FRACTION]
        upper = fraction[-1]  # from 1.5 on, m is halved
        whole = Signal(7, name="ln_exponent")
        m.d.comb += whole.eq(x.exponent + (_LOWEST - _FP16.bias) - normal.shift + upper)
        low = FRACTION - d.ln_segments
        return {
            "whole": whole,
            "segment": fraction[low:],
            "position": self._aligned(~fraction[:low]),
            "is_one": (x.exponent == _FP16.bias) & ~fraction.any(),
        }

    def _build_polynomial(
        self, m: Module, stages: PipelineStages, s1: dict[str, Value], logarithm: Value
    ) -> Value:
        """Return 2^f, or -ln(x), as a signed number with ``design.bits`` fraction bits."""
        d = self.design
        exp, ln = exp_table(d), ln_table(d)
        # The bias of the exponent is taken out of the constant term at no cost.
        shift = _LOWEST * ln_of_2(d.bits)
        half = 1 << max(d.exp_segments, d.ln_segments)
        coefficients: list[Value] = []
        # One table for both functions: that of exp first.
        index = Cat(s1["segment"][: half.bit_length() - 1], logarithm)
        for power in range(d.degree + 1):
            columns = [[c[power] for c in table] for table in (exp, ln)]
            if power == 0:
                # The table holds −ln, so that the bias is added.
                columns[1] = [c + shift for c in columns[1]]
            entries = [column[i % len(column)] for column in columns for i in range(half)]
            width = max(entries).bit_length()
            c = Signal(width, name=f"coefficient{power}")
            m.d.comb += c.eq(Array(Const(entry, width) for entry in entries)[index])
            coefficients.append(c)
        exponent = multiply(
            m,
            Const(ln_of_2(d.bits), d.bits),
            s1["whole"][:6],
            name="by_ln_of_2",
            multiplier=self.multiplier,
        )
        start = Signal(signed(d.bits + 6), name="start")
        gated = exponent & logarithm.replicate(len(exponent))
        m.d.comb += start.eq(coefficients[0] - gated)
        result: Value = coefficients[d.degree]
        all_of_position = s1["position"]
        # Horner's rule; a lower power sees more bits of the position, because its term is larger.
        for power in reversed(range(d.degree)):
            width = min(d.position_bits(power), self._position_bits)
            if power == 0:
                result = stages.cross("product", result, "s2_sum")
                start = stages.cross("product", start, "s2_start")
                all_of_position = stages.cross("product", all_of_position, "s2_position")
            position = all_of_position[self._position_bits - width :]
            product = multiply(
                m, result, position, name=f"product{power}", multiplier=self.multiplier
            )[width:]
            total = Signal(
                signed(d.bits + 6) if power == 0 else len(coefficients[power]) + 1,
                name=f"sum{power}",
            )
            m.d.comb += total.eq((start if power == 0 else coefficients[power]) + product)
            result = total
        return result
