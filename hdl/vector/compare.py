"""The comparator of a slice: two pairs of FP16 codes or one pair of FP32 codes.

Codes have the order of integers with sign and magnitude, so nothing is added or subtracted. The
32-bit comparison is composed of the two 16-bit ones.
"""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, Value


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order of two codes; every attribute is one bit.

    Attributes
    ----------
    below : Value
        a < b as integers with sign and magnitude, so -0 < +0.
    same : Value
        The codes are equal.
    both_zero : Value
        Both are zeros of any sign.
    a_nan, b_nan : Value
    larger_b : Value
        The magnitude of b is larger.
    """

    below: Value
    same: Value
    both_zero: Value
    a_nan: Value
    b_nan: Value
    larger_b: Value


def _order(m: Module, name: str, a_sign: Value, b_sign: Value, **bits: Value) -> Order:
    less, equal = bits["less"], bits["equal"]
    below = Signal(name=f"{name}_below")
    larger = Signal(name=f"{name}_larger_b")
    m.d.comb += [
        # Of two negative numbers the one with the larger magnitude is less.
        below.eq(Mux(a_sign, ~b_sign | ~(less | equal), ~b_sign & less)),
        larger.eq(less),
    ]
    return Order(
        below=below,
        same=equal & (a_sign == b_sign),
        both_zero=bits["zero"],
        a_nan=bits["a_nan"],
        b_nan=bits["b_nan"],
        larger_b=larger,
    )


def split_order(m: Module, a: Value, b: Value, wide: Value) -> tuple[Order, Order]:
    """Return the orders of the lower and of the upper FP16 codes of two words.

    If ``wide`` is set, the second result is the order of the FP32 codes instead.

    Parameters
    ----------
    a, b : Value
        Words of 32 bits.
    wide : Value
        One bit.
    """
    less = [Signal(name=f"less{k}") for k in range(2)]
    equal = [Signal(name=f"equal{k}") for k in range(2)]
    # Bit 15 is a sign in FP16 and a fraction bit in FP32.
    low_a, low_b = (Cat(word[:15], word[15] & wide) for word in (a, b))
    high_less, high_equal = Signal(), Signal()
    m.d.comb += [
        high_less.eq(a[16:31] < b[16:31]),
        high_equal.eq(a[16:31] == b[16:31]),
        less[0].eq(low_a < low_b),
        equal[0].eq(low_a == low_b),
        less[1].eq(high_less | (wide & high_equal & less[0])),
        equal[1].eq(high_equal & (~wide | equal[0])),
    ]
    either = a | b
    low_zero = ~either[:15].any()
    high_zero = ~either[16:31].any()
    zeros = (low_zero, high_zero & (~wide | (low_zero & ~either[15])))
    nans = [(_low_nan(word), _high_nan(word, wide)) for word in (a, b)]
    orders = [
        _order(
            m,
            f"order{k}",
            a[15 + 16 * k],
            b[15 + 16 * k],
            less=less[k],
            equal=equal[k],
            zero=zeros[k],
            a_nan=nans[0][k],
            b_nan=nans[1][k],
        )
        for k in range(2)
    ]
    return orders[0], orders[1]


def _low_nan(word: Value) -> Value:
    return word[10:15].all() & word[:10].any()


def _high_nan(word: Value, wide: Value) -> Value:
    """Return 1 if the upper FP16 code, or the FP32 code, is a NaN."""
    # The exponent of FP32 has three bits more, which are the top fraction bits of FP16.
    three, rest = word[23:26], word[16:23].any()
    fp16 = three.any() | rest
    fp32 = three.all() & (rest | word[:16].any())
    return word[26:31].all() & Mux(wide, fp32, fp16)
