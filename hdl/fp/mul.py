"""Floating-point multiplication, rounded once."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.formats import FloatFormat, as_format

from .core.finish import ROUNDINGS, Exact, finish
from .parts.multiply import multiply
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


class Multiplier(PipelinedUnit):
    """Multiplier ``d = a * b`` of IEEE 754, bit-exact with ``golden.fp.mul``.

    Parameters
    ----------
    format : FloatFormat or str
        Format of ``a`` and ``b``.
    output : FloatFormat or str, optional
        Format of ``d``, by default ``format``. An FP32 product of FP16 operands is exact.
    rounding : {"RNE", "RZ", "RTO"}
        Rounding to nearest even, towards zero, or to odd. An overflow gives infinity with RNE and
        RTO, and the largest number with RZ.
    pipeline : int
        Number of register ranks, 0 (combinational) to 2.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and a carry-save tree, for standard cells. ``dsp``: ``*``, for the
        DSP blocks of an FPGA.

    Members
    -------
    a, b : In(format.storage_bits)
        Codes of the operands.
    d : Out(output.storage_bits)
        Code of the product.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.

    Raises
    ------
    ValueError
        If a format, the rounding, the pipeline depth or the multiplier is unknown.
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
        one_of("rounding", rounding, (*ROUNDINGS, "RTO"))
        self.rounding = rounding
        super().__init__(
            {
                "a": In(self.format.storage_bits),
                "b": In(self.format.storage_bits),
                "d": Out(self.output.storage_bits),
            },
            pipeline=pipeline,
            depths=_STAGES,
            multiplier=multiplier,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        f, out = self.format, self.output
        stages = PipelineStages(m, _STAGES[self.pipeline])
        a, b = (
            unpack(m, stages.cross_extra("operand", x, f"s0_{name}"), f, name=name)
            for x, name in ((self.a, "a"), (self.b, "b"))
        )
        product = multiply(
            m, a.significand, b.significand, name="product", multiplier=self.multiplier
        )
        # The product of two significands in [1, 2) is in [1, 4), so its top bit has the weight 2.
        offset = out.bias - 2 * f.bias + 1
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
            stages=stages,
        )
        m.d.comb += self.d.eq(code)
        return m
