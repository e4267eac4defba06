"""⊗ and ⊕ of the semirings: candidates a + b, a · b or max(a, b), and the least of them.

Candidates are *keys*, unsigned numbers of which the least is wanted: from the top a class (−∞,
finite, +∞, NaN), then the number. Sums, and the larger of two operands, are fixed-point numbers;
products are exponent and fraction. Comparison is exact; what is found is rounded once, later.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from golden.fp.formats import FloatFormat

from ..fp.geometry import Winner
from .operand import fixed_bits

__all__ = ["candidate", "least", "winner_of"]

_FINITE = 1  # classes: 0 is −∞, 2 is +∞, 3 is NaN


def _product_exponent_bits(format: FloatFormat) -> int:
    return (2 * (2 * format.bias + format.fraction_bits) + 1).bit_length()


def candidate(
    m: Module,
    a: data.View,
    b: data.View,
    product: Value,
    *,
    format: FloatFormat,
    multiply: Value,
    larger: Value,
    truth: Value,
    turn: Value,
    name: str,
) -> Value:
    """The key of one pair of operands.

    Parameters
    ----------
    a, b : View of `lane_layout`
    product : Value
        Of their significands.
    multiply, larger : Value
        Whether the candidate is a·b, or max(a, b); else it is a + b.
    truth : Value
        Whether it is −1 if both are true, else 0.
    turn : Value
        Whether the operands' signs were turned.
    """
    drop_a, drop_b = Signal(name=f"{name}_drop_a"), Signal(name=f"{name}_drop_b")
    above = Signal(name=f"{name}_a_above_b")
    both = Signal(name=f"{name}_both_true")
    m.d.comb += [
        above.eq(a.order > b.order),
        drop_a.eq((larger & ~above) | truth),
        drop_b.eq((larger & above) | truth),
        both.eq(truth & ~(a.zero | a.nan | b.zero | b.nan)),
    ]
    x, y = (
        Value.cast(operand.fixed) & (~drop).replicate(len(operand.fixed))
        for operand, drop in ((a, drop_a), (b, drop_b))
    )
    total = Signal(fixed_bits(format) + 1, name=f"{name}_total")
    m.d.comb += total.eq((x.as_signed() + y.as_signed())[: len(total)])
    # −1 in units of the smallest subnormal
    minus_one = (-(1 << -(format.emin - format.fraction_bits))) & ((1 << len(total)) - 1)
    total_or_one = total | (Const(minus_one, len(total)) & both.replicate(len(total)))
    # Of a sum that is 0: x − x is +0, and −0 where signs are turned. Of others it does not matter.
    minus_zero = Mux(turn & ~larger, a.sign | b.sign, (a.sign | drop_a) & (b.sign | drop_b))
    sum_key = Cat(~minus_zero, total_or_one[:-1], ~total_or_one[-1])

    sign = a.sign ^ b.sign
    zero = a.zero | b.zero
    high = product[-1]
    fraction = Mux(high, product[:-1], Cat(Const(0, 1), product[:-2]))
    exponent = (a.exponent + b.exponent + high)[: _product_exponent_bits(format)]
    magnitude = Cat(fraction, exponent)
    magnitude = magnitude & (~zero).replicate(len(magnitude))
    low = len(sum_key) - len(magnitude) - 1
    product_key = Cat(Const(0, low), magnitude ^ sign.replicate(len(magnitude)), ~sign)

    a_inf, b_inf = a.inf & ~drop_a, b.inf & ~drop_b
    plus = Mux(multiply, (a.inf | b.inf) & ~sign, a_inf & ~a.sign | b_inf & ~b.sign)
    minus = Mux(multiply, (a.inf | b.inf) & sign, a_inf & a.sign | b_inf & b.sign)
    spoilt = Mux(multiply, (a.inf & b.zero) | (a.zero & b.inf), plus & minus)
    nan = ((a.nan & ~drop_a) | (b.nan & ~drop_b) | spoilt) & ~truth
    key = Signal(len(sum_key) + 2, name=f"{name}_key")
    m.d.comb += key.eq(
        Cat(Mux(multiply, product_key, sum_key), nan | ~(plus | minus), nan | (plus & ~minus))
    )
    return key


def least(m: Module, keys: Sequence[Value], *, name: str) -> Value:
    """The least key, by a balanced tree."""
    level, keys = 0, list(keys)
    while len(keys) > 1:
        following: list[Value] = []
        for index in range(0, len(keys) - 1, 2):
            x, y = keys[index], keys[index + 1]
            smaller = Signal(len(x), name=f"{name}{level}_{index // 2}")
            m.d.comb += smaller.eq(Mux(x < y, x, y))
            following.append(smaller)
        if len(keys) % 2:
            following.append(keys[-1])
        keys, level = following, level + 1
    return keys[0]


def winner_of(
    key: Value, *, format: FloatFormat, output: FloatFormat, select: Value, multiply: Value
) -> Winner:
    """What a key stands for, as the back end takes it.

    A fixed-point sum has ``emax + 2`` for the exponent of its top magnitude bit: sums are below
    four times the power of two at ``emax``.
    """
    kind, number = key[-2:], key[:-2]
    finite = kind == _FINITE
    sum_word = Cat(number[1:-1], ~number[-1])
    sign = ~number[-1]
    width = _product_exponent_bits(format) + 2 * format.fraction_bits + 1
    magnitude = number[-1 - width : -1] ^ sign.replicate(width)
    fraction_bits = 2 * format.fraction_bits + 1
    exponent = magnitude[fraction_bits:]
    fraction = magnitude[:fraction_bits]
    significand = Cat(Const(0, output.fraction_bits - fraction_bits), fraction, exponent.any())
    top = format.emax + 1 + 2 * format.bias  # of the fixed word's hidden place, product scale
    units = len(sum_word) - 2  # fraction bits of the fixed word
    minus_zero = ~number[0] & ~sum_word.any() & ~multiply
    return Winner(
        select=select,
        reference=Mux(multiply, exponent - 2 * format.fraction_bits, top),
        magnitude=significand & finite.replicate(len(significand)),
        is_fixed=~multiply,
        fixed=sum_word & finite.replicate(len(sum_word)),
        fraction=units,
        sign=Mux(finite, sign | minus_zero, ~kind[1]),
        inf=~finite & ~(kind[0] & kind[1]),
        nan=kind[0] & kind[1],
    )
