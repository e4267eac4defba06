"""Semirings on one pair of FP32 operands a beat, by the lanes and sums of a unit with M³XU.

The candidate is a fused sum of products that is rounded once anyway: of a · b alone, or of a · 1
and 1 · b, with −0 for C and in all other lanes. The data assignment deals the operands and the
ones; where the larger or the lesser of the two is wanted, the element
takes the other product away. ⊕ is with what the slot holds when the result is written.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.simd2.op import Op

from .mode import bits_layout, mode_of

__all__ = [
    "DEAL",
    "ELEMENT",
    "addend",
    "chosen_bits",
    "chosen_layout",
    "take_one",
    "turned",
]

#: What a data assignment is told of `hdl.simd2.mode.MODES`.
DEAL = ("semiring", "plus", "larger")
#: What an element is told of them.
ELEMENT = ("semiring", "larger", "truth", "turn")


def chosen_layout(operations: Sequence[Op], names: Sequence[str]) -> data.StructLayout:
    """Some fields of `hdl.simd2.mode.bits_layout`."""
    members = bits_layout(operations).members
    return data.StructLayout({name: members[name] for name in names})


def chosen_bits(
    operations: Sequence[Op], view: data.View, names: Sequence[str]
) -> dict[str, Value]:
    """The bits of a `chosen_layout`, constants among them."""
    found: dict[str, Value] = {}
    for name in names:
        bit = Value.cast(getattr(view, name))
        found[name] = bit if len(bit) else Const(mode_of(operations[0])[name], 1)
    return found


def addend(start: Value, semiring: Value) -> Value:
    """C of the sum: ``start``, and for a semiring −0, which changes no sum."""
    word = start & (~semiring).replicate(len(start))
    return word | Cat(Const(0, len(start) - 1), semiring)


def turned(code: Value, turn: Value, output: FloatFormat) -> Value:
    """A result with the other sign, but a NaN, where ``turn`` is set: as `better` takes it."""
    f = output.fraction_bits
    nan = code[f:-1].all() & code[f - 1]  # the canonical one
    return Cat(code[:-1], code[-1] ^ (turn & ~nan))


def take_one(
    m: Module,
    a: data.View,
    b: data.View,
    *,
    first: tuple[Value, Value],
    second: tuple[Value, Value],
    lanes: int,
    larger: Value,
    turn: Value,
) -> None:
    """Take the product of the operand that is not wanted away: a · 1, or 1 · b.

    Parameters
    ----------
    m : Module
        Where statements go, behind those that set ``a`` and ``b``.
    a, b : View of `hdl.m3xu.lanes.bus_layout`
        What the dot product gets: lanes of a and 1 first, those of 1 and b behind them.
    first, second : (Value, Value)
        FP32 code of each operand, and whether it is a NaN.
    lanes : int
        Lanes of one product.
    larger, turn : Value
        Whether one of the two is wanted at all, and whether it is the lesser one.
    """
    (x, no_x), (y, no_y) = first, second
    above = Signal(name="a_above_b")
    wants_b = Signal(name="wants_b")
    m.d.comb += [
        above.eq(Mux(x[-1] ^ y[-1], y[-1], (x[:-1] > y[:-1]) ^ x[-1])),
        wants_b.eq(no_x | (~no_y & (~above ^ turn))),
    ]
    for unwanted, base in ((wants_b, 0), (~wants_b, lanes)):
        with m.If(larger & unwanted):
            for k in range(base, base + lanes):
                one, other = a[f"lane{k}"], b[f"lane{k}"]
                factor = one if base else other  # 1, which has few bits to clear
                m.d.comb += [factor.significand.eq(0), one.zero.eq(1)]
                m.d.comb += [one.sign.eq(1), other.sign.eq(0)]
                m.d.comb += [flag.eq(0) for x in (one, other) for flag in (x.inf, x.nan)]
