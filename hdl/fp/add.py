"""Floating-point addition and subtraction, rounded once."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.formats import FloatFormat, as_format

from .core.finish import ROUNDINGS, Exact, finish
from .parts.align import shift_right
from .parts.pipeline import PipelineStages
from .parts.unit import PipelinedUnit
from .parts.unpack import unpack

#: The stage boundaries that have registers at each pipeline depth.
STAGES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("total",),
    2: ("aligned", "total"),
    3: ("aligned", "total", "normalised"),
    4: ("aligned", "total", "leading", "normalised"),
    5: ("distance", "aligned", "total", "leading", "normalised"),
}
#: Those without the depths that only FPGAs need.
FEW_STAGES = {depth: names for depth, names in STAGES.items() if depth <= 3}


class Adder(PipelinedUnit):
    """Adder ``d = a + b`` or ``d = a - b`` of IEEE 754, bit-exact with ``golden.fp.add``.

    The unit aligns the operand of smaller magnitude with the other one. The difference is therefore
    never negative, so one shifter is enough and no absolute value is needed.

    Parameters
    ----------
    format : FloatFormat or str
        Format of ``a`` and ``b``.
    output : FloatFormat or str, optional
        Format of ``d``, by default ``format``. It must be able to hold every number of ``format``.
    rounding : {"RNE", "RZ", "RTO"}
        Rounding to nearest even, towards zero, or to odd. An overflow gives infinity with RNE and
        RTO, and the largest number with RZ.
    pipeline : int
        Number of register ranks, 0 (combinational) to 5.
    nan : int, optional
        Code of every NaN result, by default the output format's canonical NaN.

    Members
    -------
    a, b : In(format.storage_bits)
        Codes of the operands.
    subtract : In(1)
        If set, ``b`` is subtracted.
    d : Out(output.storage_bits)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.

    Raises
    ------
    ValueError
        If a format, the rounding or the pipeline depth is unknown, or if ``output`` cannot hold
        every number of ``format``.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        subtract: Signal
        d: Signal

    def __init__(
        self,
        *,
        format: FloatFormat | str,
        output: FloatFormat | str | None = None,
        rounding: str = "RNE",
        pipeline: int = 0,
        nan: int | None = None,
    ):
        self.format = as_format(format)
        self.output = self.format if output is None else as_format(output, "output")
        f, out = self.format, self.output
        holds = (
            out.fraction_bits >= f.fraction_bits
            and out.emax >= f.emax
            and out.emin <= f.emin
            and out.has_infinity >= f.has_infinity
        )
        if not holds:
            raise ValueError(f"output must hold every {f} number, not {out.name!r}")
        one_of("rounding", rounding, (*ROUNDINGS, "RTO"))
        self.rounding = rounding
        self.nan = out.canonical_nan if nan is None else nan
        super().__init__(
            {
                "a": In(f.storage_bits),
                "b": In(f.storage_bits),
                "subtract": In(1),
                "d": Out(out.storage_bits),
                **self._derived_ports(),
            },
            pipeline=pipeline,
            depths=STAGES,
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived unit has in addition."""
        return {}

    def _b_is_larger(self) -> Value:
        """Return 1 if the magnitude of ``b`` is larger; a unit with a comparator may override it.

        Codes without their signs have the same order as the magnitudes.
        """
        f = self.format
        magnitude = slice(f.storage_shift, f.storage_shift + f.width - 1)
        return self.b[magnitude] > self.a[magnitude]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f, out = self.format, self.output
        stages = PipelineStages(m, STAGES[self.pipeline])
        a = unpack(m, self.a, f, name="a")
        b = unpack(m, self.b, f, name="b")
        b_sign = Signal(name="b_sign_effective")
        differ = Signal(name="signs_differ")
        m.d.comb += [b_sign.eq(b.sign ^ self.subtract), differ.eq(a.sign ^ b_sign)]

        swap = Signal(name="swap")
        m.d.comb += swap.eq(self._b_is_larger())
        exponent = Mux(swap, b.exponent, a.exponent)
        distance = Signal(f.exponent_bits, name="distance")
        m.d.comb += distance.eq(exponent - Mux(swap, a.exponent, b.exponent))
        large = Mux(swap, b.significand, a.significand)
        small = Mux(swap, a.significand, b.significand)
        sign, both = Mux(swap, b_sign, a.sign), a.sign & b_sign
        nan, inf = a.nan | b.nan | (a.inf & b.inf & differ), a.inf | b.inf

        def rank(value: Value, name: str) -> Value:
            return stages.cross_extra("distance", value, f"s0_{name}")

        exponent, distance = rank(exponent, "exponent"), rank(distance, "distance")
        large, small, differ = rank(large, "large"), rank(small, "small"), rank(differ, "minus")
        sign, both = rank(sign, "sign"), rank(both, "both_negative")
        nan, inf = rank(nan, "nan"), rank(inf, "inf")

        # Guard, round and sticky bits below the output's last place are enough: more than one bit
        # is lost only at a distance of 2 or more, and then the difference has at most one leading
        # zero.
        below = out.fraction_bits - f.fraction_bits + 2
        aligned, lost = shift_right(
            m, Cat(Const(0, below), small), distance, name="align", sticky=True
        )
        large = stages.cross("aligned", Cat(Const(0, below + 1), large), "s1_large")
        aligned = stages.cross("aligned", Cat(lost, aligned), "s1_aligned")
        minus = stages.cross("aligned", differ, "s1_minus")
        total = Signal(len(large) + 1, name="total")
        m.d.comb += total.eq(
            (large + (aligned ^ minus.replicate(len(aligned))) + minus)
            & Cat((Const(1, 1)).replicate(len(large)), ~minus)
        )
        sign = stages.cross("aligned", sign, "s1_sign")
        both = stages.cross("aligned", both, "s1_both_negative")
        offset = out.bias - f.bias + 1
        code = finish(
            m,
            Exact(
                # IEEE 754, section 6.3: an exact zero sum is -0 only if both operands are -0.
                sign=Mux(total.any(), sign, both),
                word=total,
                exponent=stages.cross("aligned", exponent, "s1_exponent") + offset,
                exponent_min=1 + offset,
                exponent_max=f.emax + f.bias + offset,
                zeros=len(total) - 1,
                nan=stages.cross("aligned", nan, "s1_nan"),
                inf=stages.cross("aligned", inf, "s1_inf"),
            ),
            output=out,
            rounding=self.rounding,
            stages=stages,
            nan_code=self.nan,
        )
        m.d.comb += self.d.eq(code)
        return m
