"""Floating-point addition and subtraction, rounded once."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.validate import one_of

from .align import shift_right
from .finish import ROUNDINGS, Exact, finish
from .pipeline import Cuts
from .unpack import unpack

__all__ = ["Adder"]

#: The places that are registered at each pipeline depth.
_PLACES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("total",),
    2: ("aligned", "total"),
    3: ("aligned", "total", "normalised"),
}


class Adder(wiring.Component):
    """``d = a + b`` or ``d = a - b``, as IEEE 754, bit for bit as ``golden.fp.add``.

    The operand with the larger magnitude stays, the other is aligned with it; so the difference is
    never negative, one shifter does and no absolute value is taken.

    Parameters
    ----------
    format : FloatFormat or str
        Format of ``a`` and ``b``.
    output : FloatFormat or str, optional
        Format of ``d``, ``format`` by default; it must hold every number of ``format``.
    rounding : {"RNE", "RZ"}
    pipeline : int
        Register ranks, 0 (combinational) to 3.

    Members
    -------
    a, b : In(format.storage_bits)
        Codes of the operands.
    subtract : In(1)
        Whether ``b`` is subtracted.
    d : Out(output.storage_bits)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, one result a cycle; it never stalls and has no valid bit.

    Raises
    ------
    ValueError
        For a format, rounding or pipeline depth that does not exist, or an ``output`` that is too
        small.
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
        one_of("rounding", rounding, ROUNDINGS)
        one_of("pipeline", pipeline, tuple(_PLACES))
        self.rounding, self.pipeline, self.latency = rounding, pipeline, pipeline
        super().__init__(
            {
                "a": In(f.storage_bits),
                "b": In(f.storage_bits),
                "subtract": In(1),
                "d": Out(out.storage_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f, out = self.format, self.output
        cuts = Cuts(m, _PLACES[self.pipeline])
        a = unpack(m, self.a, f, name="a")
        b = unpack(m, self.b, f, name="b")
        b_sign = Signal(name="b_sign_effective")
        differ = Signal(name="signs_differ")
        m.d.comb += [b_sign.eq(b.sign ^ self.subtract), differ.eq(a.sign ^ b_sign)]

        # The codes without their signs are ordered as the magnitudes are.
        magnitude = slice(f.storage_shift, f.storage_shift + f.width - 1)
        swap = Signal(name="swap")
        m.d.comb += swap.eq(self.b[magnitude] > self.a[magnitude])
        exponent = Mux(swap, b.exponent, a.exponent)
        distance = Signal(f.exponent_bits, name="distance")
        m.d.comb += distance.eq(exponent - Mux(swap, a.exponent, b.exponent))
        large = Mux(swap, b.significand, a.significand)
        small = Mux(swap, a.significand, b.significand)

        # Guard, round and sticky below the output's last place are enough: where more than one bit
        # is cut, the distance is at least 2 and the difference has one leading zero at most.
        below = out.fraction_bits - f.fraction_bits + 2
        aligned, lost = shift_right(
            m, Cat(Const(0, below), small), distance, name="align", sticky=True
        )
        large = cuts.cross("aligned", Cat(Const(0, below + 1), large), "s1_large")
        aligned = cuts.cross("aligned", Cat(lost, aligned), "s1_aligned")
        minus = cuts.cross("aligned", differ, "s1_minus")
        total = Signal(len(large) + 1, name="total")
        m.d.comb += total.eq(
            (large + (aligned ^ minus.replicate(len(aligned))) + minus)
            & Cat((Const(1, 1)).replicate(len(large)), ~minus)
        )
        sign = cuts.cross("aligned", Mux(swap, b_sign, a.sign), "s1_sign")
        both = cuts.cross("aligned", a.sign & b_sign, "s1_both_negative")
        nan = a.nan | b.nan | (a.inf & b.inf & differ)
        offset = out.bias - f.bias + 1
        code = finish(
            m,
            Exact(
                # A sum of exactly zero is negative only if both operands are.
                sign=Mux(total.any(), sign, both),
                word=total,
                exponent=cuts.cross("aligned", exponent, "s1_exponent") + offset,
                exponent_min=1 + offset,
                exponent_max=f.emax + f.bias + offset,
                zeros=len(total) - 1,
                nan=cuts.cross("aligned", nan, "s1_nan"),
                inf=cuts.cross("aligned", a.inf | b.inf, "s1_inf"),
            ),
            output=out,
            rounding=self.rounding,
            cuts=cuts,
        )
        m.d.comb += self.d.eq(code)
        return m
