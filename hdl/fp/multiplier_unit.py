"""Floating-point multiplication, rounded once."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.validate import one_of

from .finish import ROUNDINGS, Exact, finish
from .multiply import check_multiplier, multiply
from .pipeline import Cuts
from .unpack import unpack

__all__ = ["Multiplier"]

#: The places that are registered at each pipeline depth.
_PLACES: dict[int, tuple[str, ...]] = {0: (), 1: ("total",), 2: ("total", "normalised")}


class Multiplier(wiring.Component):
    """``d = a * b``, as IEEE 754, bit for bit as ``golden.fp.mul``.

    Parameters
    ----------
    format : FloatFormat or str
        Format of ``a`` and ``b``.
    output : FloatFormat or str, optional
        Format of ``d``, ``format`` by default. FP16 into FP32 is exact.
    rounding : {"RNE", "RZ"}
    pipeline : int
        Register ranks, 0 (combinational) to 2.
    multiplier : {"booth", "dsp"}
        Booth rows, or ``*``, which an FPGA has blocks for.

    Members
    -------
    a, b : In(format.storage_bits)
        Codes of the operands.
    d : Out(output.storage_bits)
        Code of the product.

    Latency
    -------
    ``latency = pipeline`` cycles, one result a cycle; it never stalls and has no valid bit.

    Raises
    ------
    ValueError
        For a format, rounding, pipeline depth or multiplier that does not exist.
    """

    if TYPE_CHECKING:
        a: Signal
        b: Signal
        d: Signal

    def __init__(
        self,
        *,
        format: FloatFormat | str,
        output: FloatFormat | str | None = None,
        rounding: str = "RNE",
        pipeline: int = 0,
        multiplier: str = "booth",
    ):
        self.format = as_format(format)
        self.output = self.format if output is None else as_format(output, "output")
        one_of("rounding", rounding, ROUNDINGS)
        one_of("pipeline", pipeline, tuple(_PLACES))
        self.multiplier = check_multiplier(multiplier)
        self.rounding, self.pipeline, self.latency = rounding, pipeline, pipeline
        super().__init__(
            {
                "a": In(self.format.storage_bits),
                "b": In(self.format.storage_bits),
                "d": Out(self.output.storage_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f, out = self.format, self.output
        cuts = Cuts(m, _PLACES[self.pipeline])
        a = unpack(m, self.a, f, name="a")
        b = unpack(m, self.b, f, name="b")
        product = multiply(
            m, a.significand, b.significand, name="product", multiplier=self.multiplier
        )
        offset = out.bias - 2 * f.bias + 1  # the product's top bit weighs twice the exponents' sum
        code = finish(
            m,
            Exact(
                sign=a.sign ^ b.sign,
                word=product,
                exponent=a.exponent + b.exponent + offset,
                exponent_min=2 + offset,
                exponent_max=2 * (f.emax + f.bias) + offset,
                zeros=2 * f.significand_bits - 1,
                nan=a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf),
                inf=a.inf | b.inf,
            ),
            output=out,
            rounding=self.rounding,
            cuts=cuts,
        )
        m.d.comb += self.d.eq(code)
        return m
