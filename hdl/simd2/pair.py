"""Semirings on one pair of FP32 operands per beat, with the lanes and sums of a unit with M³XU.

Such a unit already has a fused sum of products that is rounded once, and ⊗ is expressed as such a
sum. ⊗ = × is the product a·b alone, and ⊗ = + is a·1 + 1·b; C and all other lanes are −0, which
changes no sum. For ⊗ = min and max the data assignment also passes a·1 and 1·b, and the element
sets the product of the operand that lost the comparison to zero. ⊕ combines the candidate with the
value of the slot when the result is written.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.simd2.op import Op

from .mode import bits_layout, mode_of

#: The bits of ``hdl.simd2.mode.mode_of`` that a data assignment uses.
ASSIGNMENT_BITS = ("semiring", "plus", "larger")
#: The bits of ``hdl.simd2.mode.mode_of`` that an element uses.
ELEMENT_BITS = ("semiring", "larger", "truth", "turn")


def chosen_layout(operations: Sequence[Op], names: Sequence[str]) -> data.StructLayout:
    """Return a layout of the given fields of ``hdl.simd2.mode.bits_layout``."""
    members = bits_layout(operations).members
    return data.StructLayout({name: members[name] for name in names})


def chosen_bits(
    operations: Sequence[Op], view: data.View, names: Sequence[str]
) -> dict[str, Value]:
    """Return the control bits of a ``chosen_layout`` by name, including the constant ones.

    Parameters
    ----------
    operations : sequence of Op
        The operations of the unit.
    view : View of ``chosen_layout``
    names : sequence of str
        The bits to return.
    """
    control: dict[str, Value] = {}
    for name in names:
        bit = Value.cast(getattr(view, name))
        control[name] = bit if len(bit) else Const(mode_of(operations[0])[name], 1)
    return control


def addend(start: Value, semiring: Value) -> Value:
    """Return C of the sum: ``start``, or in a semiring −0, which changes no sum."""
    word = start & (~semiring).replicate(len(start))
    return word | Cat(Const(0, len(start) - 1), semiring)


def negated_unless_nan(code: Value, negate: Value, output: FloatFormat) -> Value:
    """Return a code with the other sign if ``negate`` is set and the code is not the NaN.

    Parameters
    ----------
    code : Value
        A number, or the canonical NaN.
    negate : Value
        One bit.
    output : FloatFormat
        Format of the code.
    """
    f = output.fraction_bits
    nan = code[f:-1].all() & code[f - 1]  # only the canonical NaN occurs
    return Cat(code[:-1], code[-1] ^ (negate & ~nan))


def keep_selected(
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
    """Clear one of the products a · 1 and 1 · b: that of the operand that lost the comparison.

    Parameters
    ----------
    m : Module
        The module that gets the statements. They override earlier ones that set ``a`` and ``b``.
    a, b : View of ``hdl.m3xu.lanes.bus_layout``
        Inputs of the dot product: first the lanes of a and 1, then the lanes of 1 and b.
    first, second : (Value, Value)
        FP32 code of each operand, and a bit that is set if the operand is a NaN.
    lanes : int
        Number of lanes of one product.
    larger : Value
        One bit. If set, ⊗ is min or max; otherwise both products stay.
    turn : Value
        One bit. If set, the smaller operand is kept, otherwise the larger one.
    """
    (x, no_x), (y, no_y) = first, second
    above = Signal(name="a_above_b")
    wants_b = Signal(name="wants_b")
    m.d.comb += [
        # Compare as sign and magnitude; a NaN never wins.
        above.eq(Mux(x[-1] ^ y[-1], y[-1], (x[:-1] > y[:-1]) ^ x[-1])),
        wants_b.eq(no_x | (~no_y & (~above ^ turn))),
    ]
    for unwanted, base in ((wants_b, 0), (~wants_b, lanes)):
        with m.If(larger & unwanted):
            for k in range(base, base + lanes):
                left, right = a[f"lane{k}"], b[f"lane{k}"]
                factor = left if base else right  # 1, which has few bits to clear
                m.d.comb += [factor.significand.eq(0), left.zero.eq(1)]
                m.d.comb += [left.sign.eq(1), right.sign.eq(0)]
                m.d.comb += [flag.eq(0) for x in (left, right) for flag in (x.inf, x.nan)]
