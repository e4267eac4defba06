"""Operands of a semiring unit, decoded once for a whole row or column of elements.

⊕ = max is done as min on numbers with the other sign, so signs are turned here, and turned back
when a result is written. Only +, × and max are left for ⊗ then.
"""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.fp.formats import FloatFormat, as_format, check_int

from ..fp.normalise import normalise
from ..fp.unpack import unpack

__all__ = ["Decode", "fixed_bits", "lane_layout", "shape_layout"]


def fixed_bits(format: FloatFormat) -> int:
    """A number in units of the smallest subnormal: a sign and all magnitude bits."""
    return 1 + format.emax - format.emin + 1 + format.fraction_bits


def lane_layout(format: FloatFormat) -> data.StructLayout:
    """A decoded operand.

    ``significand`` and ``exponent`` are as for a product: in products of semirings subnormals are
    normalised too, and the exponent has ``fraction_bits`` more. ``fixed`` is the number in two's
    complement, in units of the smallest subnormal (of infinity anything); ``order`` rises with it,
    −0 before +0, and is 0 for a NaN.
    """
    return data.StructLayout(
        {
            "significand": format.fraction_bits + 1,
            "exponent": format.exponent_bits + 1,
            "sign": 1,
            "zero": 1,
            "inf": 1,
            "nan": 1,
            "fixed": fixed_bits(format),
            "order": format.width,
        }
    )


def shape_layout() -> data.StructLayout:
    """How operands are to be decoded: for the sum of products or for what else."""
    return data.StructLayout(
        {
            "product": 1,  # of a semiring: normalised
            "fixed": 1,  # not as a product: significand 0
            "turn": 1,  # the other sign
        }
    )


class Decode(wiring.Component):
    """One operand bus in, decoded lanes out; combinational.

    Parameters
    ----------
    format : FloatFormat or str
        Up to five exponent bits.
    k : int
        Operands.

    Members
    -------
    bus : In(k × storage_bits)
    shape : In(shape_layout)
    lanes : Out(k × lane_layout)
    """

    if TYPE_CHECKING:
        bus: Signal
        shape: data.View
        lanes: data.View

    def __init__(self, *, format: FloatFormat | str = "fp16", k: int):
        self.format = as_format(format)
        check_int("k", k, 1)
        if self.format.exponent_bits > 5 or not self.format.has_infinity:
            raise ValueError(
                f"format must have infinities and at most 5 exponent bits, not {self.format.name}"
            )
        self.k = k
        super().__init__(
            {
                "bus": In(data.ArrayLayout(self.format.storage_bits, k)),
                "shape": In(shape_layout()),
                "lanes": Out(data.ArrayLayout(lane_layout(self.format), k)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for k in range(self.k):
            self._build_lane(m, Value.cast(self.bus[k]), self.lanes[k], f"x{k}")
        return m

    def _build_lane(self, m: Module, code: Value, lane: data.View, name: str) -> None:
        format, shape = self.format, self.shape
        f = format.fraction_bits
        view = unpack(m, code, format, name=name)
        sign = view.sign ^ shape.turn
        number = normalise(m, view.significand, limit=None, name=f"{name}_normalise")
        significand = Mux(shape.product, number.word, view.significand)
        raised = view.exponent + f - number.shift
        m.d.comb += [
            lane.significand.eq(significand & (~shape.fixed).replicate(f + 1)),
            lane.exponent.eq(Mux(shape.product, raised, view.exponent)),
            lane.sign.eq(sign),
            lane.zero.eq(view.zero),
            lane.inf.eq(view.inf),
            lane.nan.eq(view.nan),
        ]
        magnitude = self._shifted(m, view.significand, view.exponent, name)
        width = fixed_bits(format)
        m.d.comb += lane.fixed.eq((magnitude ^ sign.replicate(width)) + sign)
        order = Cat(code[: format.width - 1] ^ sign.replicate(format.width - 1), ~sign)
        m.d.comb += lane.order.eq(order & (~view.nan).replicate(format.width))

    def _shifted(self, m: Module, significand: Value, exponent: Value, name: str) -> Value:
        """The significand ``exponent - 1`` further up."""
        steps = exponent - 1
        word: Value = significand
        for bit in range(self.format.exponent_bits):
            step = 1 << bit
            here = Signal(min(len(word) + step, fixed_bits(self.format)), name=f"{name}_up{step}")
            m.d.comb += here.eq(Mux(steps[bit], Cat(Const(0, step), word), word))
            word = here
        return word
