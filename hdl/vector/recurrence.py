"""Digits of a quotient, a square root or a reciprocal square root, one bit in a cycle."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FORMATS

#: Fraction bits of an operand, and its bits: it is below 4.
FRACTION_BITS = FORMATS["fp32"].fraction_bits
OPERAND_BITS = FRACTION_BITS + 2
#: Steps for FP32 and FP16: the bits of a significand, one more for results below 1, and the bit
#: that rounds.
STEPS = {name: FORMATS[name].significand_bits + 2 for name in ("fp32", "fp16")}
_MOST = STEPS["fp32"]


class DigitRecurrence(wiring.Component):
    """The largest y of so many bits with m·y ≤ n, or with m·y² ≤ n, bit by bit.

    With the bits y of the steps so far, the next bit b = 2⁻ⁱ is 1 if the remainder stays at least
    0. It changes by m·b for a quotient, and by (2·m·y + m·b)·b for a root. The register ``product``
    holds m·y, or 0 for a quotient, and ``term`` holds m·b, or m. So one subtraction, of twice the
    product and the term from the remainder divided by b, serves a quotient n/m, a square root (with
    m = 1) and a reciprocal square root (with n = 1), in both formats.

    Members
    -------
    start : In(1)
        Take the operands.
    divide : In(1)
        Find a quotient.
    short : In(1)
        Take the steps of FP16.
    n, m : In(25), In(25)
        The operands with 23 fraction bits: n and m in [1, 2), or in [1, 4) if it is a root's.
    done : Out(1)
        The bits are complete; they stay until the next start.
    y : Out(27)
        The bits, the first one with the weight 1 on top; the lowest one is 1 if a remainder is
        left. Those of FP16 are 14.

    Latency
    -------
    ``done`` is 1 from the 26th cycle after ``start`` on, or from the 13th.
    """

    if TYPE_CHECKING:
        start: Signal
        divide: Signal
        short: Signal
        n: Signal
        m: Signal
        done: Signal
        y: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "divide": In(1),
                "short": In(1),
                "n": In(OPERAND_BITS),
                "m": In(OPERAND_BITS),
                "done": Out(1),
                "y": Out(_MOST + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # After step i, the numbers are multiples of 2**-(FRACTION_BITS + i).
        below = _MOST - 1
        width = FRACTION_BITS + below
        remainder = Signal(width + 4)  # divided by b, and below 12
        product, term = Signal(width + 2), Signal(width + 2)
        bits, left = Signal(_MOST), Signal(range(_MOST + 1))
        quotient = Signal()
        trial = Signal(width + 5)
        take = Signal()
        m.d.comb += [
            trial.eq(remainder - (Cat(Const(0, 1), product) + term)),
            take.eq(~trial[-1]),
            self.done.eq(left == 0),
            self.y.eq(Cat(remainder.any(), bits)),
        ]
        with m.If(self.start):
            m.d.sync += [
                remainder.eq(Cat(Const(0, below), self.n)),
                term.eq(Cat(Const(0, below), self.m)),
                product.eq(0),
                bits.eq(0),
                left.eq(Mux(self.short, STEPS["fp16"], STEPS["fp32"])),
                quotient.eq(self.divide),
            ]
        with m.Elif(left != 0):
            m.d.sync += [
                remainder.eq(Cat(Const(0, 1), Mux(take, trial, remainder))),
                bits.eq(Cat(take, bits)),
                left.eq(left - 1),
            ]
            with m.If(~quotient):
                m.d.sync += [term.eq(term >> 1), product.eq(product + Mux(take, term, 0))]
        return m
