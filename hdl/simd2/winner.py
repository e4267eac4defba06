"""⊗ and ⊕ of the semirings: candidates a + b, a · b or max(a, b), and the least of them.

Every pair of operands gives one *candidate*, the value of its ⊗. A tournament tree finds the least
candidate (⊕ = max is done as min on negated numbers, see ``hdl.simd2.operand``). Nothing is rounded
before the tournament: the candidates are exact, and the back end of the dot product rounds the
winner once. There are four steps:

1. ``candidate`` computes ⊗ of one pair, for the registers in which a sum of products keeps a
   product. A sum a + b has more bits than a product, so it needs a few registers of its own.
2. ``key_of`` makes a *key* of each candidate, behind the stage ``product``. A key is a single word,
   so that one unsigned comparison decides between two candidates.
3. ``least`` finds the least key.
4. ``decode_key`` converts that key to the number that the back end rounds.

There are two kinds of keys. From the top, their bits are::

    product or operand:   NaN | sign inverted | exponent           | fraction
    sum a + b:            NaN | sign inverted | fixed-point number | one short | not -0

The NaN bit puts NaNs above all numbers, and the inverted sign puts negative numbers below positive
ones. The rest depends on the kind:

- A product or an operand is a sign and a magnitude. Among two negative numbers the larger magnitude
  is the lesser number, so there the answer of the comparison is inverted (``sign_magnitude``).
- A sum is in two's complement. With the sign inverted, such numbers have the order of unsigned
  numbers, and no comparison is inverted.

In the key of an infinity, ``key_of`` overwrites the bits below the sign, and ``decode_key``
recognises the infinity by them (``_SPECIAL``).

The operands of a sum are in ones' complement, because negating them is then only an inversion. The
adder takes them as two's complement numbers, so its result can be one unit too small. An example
with small integers, where ~x = -x - 1:

- 5 + 2: no operand is negative, so the adder gives 7, the sum.
- 5 + (-2): the adder gets 5 and ~2 = -3 and gives 2. The sum is 3, so the result is *one short*.
- (-5) + (-2): the adder gets -6 and -3 and a carry-in of 1, which is set if both operands are
  negative. It gives -8. The sum is -7, so the result is again one short.

So the result is one short exactly if an operand is negative, and a flag bit below the word says so.
The flag also makes the order of the keys correct. The pair (2, flag) means 3: it lies above
(2, no flag), which means 2, and below (3, no flag), which means 3 as well. If two candidates have
equal values, either may win. One bit more, below the flag, is clear for -0 and set for +0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from vitruvian.golden.fp.formats import FloatFormat

from ..fp.core.geometry import BypassResult, Geometry, Lane
from .operand import fixed_bits

#: Number of bits, from the sign down, that tell an infinity from all finite numbers: the sign and
#: 12 bits more. In a product these 12 bits are ones for either sign. They hold the exponent, 7 bits
#: for FP16, and the exponent of a finite product is at most 2·(30 + 10) + 1 = 81 of 127. In a sum
#: they are ones for +∞ and zeros for −∞. The largest finite sum of two FP16 numbers has the
#: magnitude (2^11 - 1)·2^30 in 41 bits, which is 11 ones and then zeros; so a finite positive sum
#: never has 12 ones there, and a finite negative one, which is inverted, never has 12 zeros.
_SPECIAL = 13


@dataclass(frozen=True, kw_only=True)
class Widths:
    """The widths of candidates and keys.

    Attributes
    ----------
    format : FloatFormat
        Format of the operands.
    sums, products, extrema : bool
        The kinds of candidates that the unit has: a + b, a · b, and min or max of a and b.
    """

    format: FloatFormat
    sums: bool
    products: bool
    extrema: bool

    @property
    def fraction(self) -> int:
        """Fraction bits of a normalised product."""
        return 2 * self.format.fraction_bits + 1

    @property
    def exponent(self) -> int:
        """Exponent bits of a product of normalised operands."""
        return self.format.exponent_bits + 2

    @property
    def number(self) -> int:
        """Bits of a key without the NaN bit.

        A key of a sum has, from the top: the fixed-point number, the bit that says that it is one
        short, and the bit that tells +0 from −0. Other keys have sign, exponent and fraction.
        """
        if self.sums:
            return fixed_bits(self.format) + 3
        return 1 + self.exponent + self.fraction

    @property
    def low(self) -> int:
        """Bits that the key of a sum has below the fraction of a product."""
        return self.number - 1 - self.exponent - self.fraction

    @property
    def key(self) -> int:
        """Bits of a key: the number with its sign inverted, and the NaN bit above it."""
        return self.number + 1


@dataclass(frozen=True, kw_only=True)
class LaneCandidate:
    """The candidate of one lane, in the registers of a product and a few more.

    Attributes
    ----------
    word, exponent, sign : Value
        A product has its significand, exponent and sign here. The number of any other candidate's
        key is split into these three, with the sign at the top, then exponent, then word; the top
        bit of ``word`` stays 0.
    low : Value
        The bits of the number below ``word``; only a sum has them.
    inf, nan : Value
        One bit each: the candidate is an infinity of the given sign, or a NaN. For extrema ``inf``
        is always 0, because their keys have the exponent field of an infinity.
    """

    word: Value
    exponent: Value
    sign: Value
    low: Value
    inf: Value
    nan: Value


def candidate(
    m: Module,
    a: data.View,
    b: data.View,
    product: Lane,
    *,
    widths: Widths,
    mode: dict[str, Value],
    name: str,
) -> LaneCandidate:
    """Return the candidate of one pair of operands.

    Parameters
    ----------
    a, b : View of ``lane_layout``
        The operands.
    product : Lane
        Their product; significand and exponent are 0 if the operation needs no product.
    widths : Widths
        Widths of the candidate.
    mode : dict of str to Value
        Control bits of the operation, see ``hdl.simd2.mode.mode_of``.
    name : str
        First part of the new signals' names.
    """
    plus, larger = mode["plus"], mode["larger"]
    sign = product.sign
    nan = a.nan | b.nan
    inf = a.inf | b.inf
    invalid: Value = (a.inf & b.zero) | (a.zero & b.inf)
    total: Value = Const(0, widths.number - 1)
    if widths.sums:
        fixed = Signal(widths.number - 2, name=f"{name}_total")
        carry = a.fixed[-1] & b.fixed[-1]
        m.d.comb += fixed.eq((a.fixed.as_signed() + b.fixed.as_signed() + carry)[: len(fixed)])
        either = a.sign | b.sign
        # A zero sum is −0 if both operands are −0. If ⊕ is max, the operands were negated, so the
        # sum x − x, which is +0, has to be −0 here. The bit does not matter for a nonzero sum.
        minus_zero = Mux(mode["turn"], either, a.sign & b.sign)
        total = Cat(~minus_zero, either, fixed[:-1])
        sign = Mux(plus, fixed[-1], sign)
        invalid = Mux(plus, a.inf & b.inf & (a.sign ^ b.sign), invalid)
    nan = nan | invalid
    word, exponent = product.significand, product.exponent
    if widths.extrema:
        above = Signal(name=f"{name}_a_above_b")
        # The operands as keys without a NaN bit: the larger one becomes the candidate, and a NaN
        # only if both are NaNs.
        x, y = (Cat(z.significand[:-1], z.exponent, ~z.sign) for z in (a, b))
        lower = _is_less(y, x, sign_magnitude=Const(1, 1))
        m.d.comb += above.eq(b.nan | (lower & ~a.nan))
        chosen = Mux(above, x, y)
        f = widths.format.fraction_bits
        # Written as a product in [1, 2), the operand needs no other path behind the registers.
        hidden = chosen[f:-1].any()
        operand = Cat(Const(0, f), chosen[:f], hidden, Const(0, 1))
        word = _or(word, operand & larger.replicate(len(operand)))
        exponent = _or(exponent, chosen[f:-1] & larger.replicate(len(chosen) - f - 1))
        sign = Mux(larger, ~chosen[-1], sign)
        nan = Mux(larger, a.nan & b.nan, nan)
    middle = total[widths.low : widths.low + widths.fraction]
    upper = total[widths.low + widths.fraction :]
    return LaneCandidate(
        word=_or(word, middle),
        exponent=_or(exponent, upper),
        sign=sign,
        low=total[: widths.low],
        inf=inf & ~larger,
        nan=nan,
    )


def _or(x: Value, y: Value) -> Value:
    """Return ``x | y`` in the width of the longer one."""
    return (x | y)[: max(len(x), len(y))]


def key_of(m: Module, kept: LaneCandidate, *, widths: Widths, mode: dict[str, Value], name: str):
    """Return the key of a candidate behind the stage ``product``.

    Parameters
    ----------
    kept : LaneCandidate
        The candidate, in its registers.
    mode : dict of str to Value
        Control bits of the operation.
    name : str
        First part of the new signals' names.
    """
    # A NaN gets the sign of a positive number, so that no comparison with it is inverted.
    top = ~kept.sign | kept.nan
    plus, word, exponent = mode["plus"], kept.word, kept.exponent[: widths.exponent]
    fraction: Value = word[: widths.fraction]
    if widths.products or widths.extrema:
        # A nonzero product is in [1, 4): normalise it. The top bit of a sum's word is 0.
        exponent = (exponent + word[-1])[: widths.exponent]
        fraction = Mux(word[-1] | plus, word[:-1], Cat(Const(0, 1), word[:-2]))
    number = Cat(kept.low, fraction, exponent)
    # An infinity: ones, but zeros for −∞ as a sum, see ``_SPECIAL``.
    ones = kept.inf & (top | ~plus)
    zeros = kept.inf & ~top & plus
    upper = (number[1 - _SPECIAL :] | ones.replicate(_SPECIAL - 1)) & ~zeros.replicate(_SPECIAL - 1)
    key = Signal(widths.key, name=f"{name}_key")
    m.d.comb += key.eq(Cat(number[: 1 - _SPECIAL], upper, top, kept.nan))
    return key


def less(x: Value, y: Value) -> Value:
    """Return 1 if x < y as unsigned numbers of the same width.

    A balanced tree computes the borrow of x - y without the difference itself: each node has a bit
    that generates a borrow and a bit that propagates one. With a multiplexer of 44 bits behind it,
    this mapped to 208 µm² and the operator ``<`` to 227 µm².
    """
    pairs = [(~p & q, ~p | q) for p, q in zip(x, y, strict=True)]
    while len(pairs) > 1:
        following = [
            (high[0] | (high[1] & low[0]), high[1] & low[1])
            for low, high in zip(pairs[::2], pairs[1::2], strict=False)
        ]
        pairs = following + pairs[len(pairs) - len(pairs) % 2 :]
    return pairs[0][0]


def _is_less(x: Value, y: Value, *, sign_magnitude: Value) -> Value:
    """Return 1 if x is the lesser number; for equal numbers the result may be 0 or 1.

    The top bits of x and y are inverted signs. If ``sign_magnitude`` is set, the other bits are a
    magnitude, and the order of two negative numbers is inverted.
    """
    negative = ~(x[-1] | y[-1])
    return less(x, y) ^ (negative & sign_magnitude)


def least(
    m: Module,
    keys: Sequence[Value],
    *,
    sign_magnitude: Value,
    name: str,
    levels: int | None = None,
) -> list[Value]:
    """Return the least key, found by a tournament tree.

    Parameters
    ----------
    keys : sequence of Value
        The keys.
    sign_magnitude : Value
        One bit. If set, the keys hold a sign and a magnitude, otherwise fixed-point numbers.
    name : str
        First part of the new signals' names.
    levels : int, optional
        If given, build only that many levels of the tree and return all keys that are left.
    """
    level, keys = 0, list(keys)
    while len(keys) > 1 and (levels is None or level < levels):
        following: list[Value] = []
        for index in range(0, len(keys) - 1, 2):
            x, y = keys[index], keys[index + 1]
            smaller = Signal(len(x), name=f"{name}{level}_{index // 2}")
            # The bit below the NaN bit is the inverted sign; that of a NaN is 1, as if positive.
            negative = ~(x[-2] | y[-2])
            m.d.comb += smaller.eq(Mux(less(x, y) ^ (negative & sign_magnitude), x, y))
            following.append(smaller)
        if len(keys) % 2:
            following.append(keys[-1])
        keys, level = following, level + 1
    return keys


def decode_key(
    key: Value, *, widths: Widths, geometry: Geometry, mode: dict[str, Value]
) -> BypassResult:
    """Return the number of a key in the form that the back end rounds.

    Parameters
    ----------
    key : Value
        The least key.
    geometry : Geometry
        The widths of the back end.
    mode : dict of str to Value
        Control bits of the operation.
    """
    format, output = widths.format, geometry.output
    number, nan = key[:-1], key[-1]
    sign = ~number[-1]
    fixed = mode["plus"]
    inf: Value = Const(0, 1)
    if widths.sums or widths.products:
        upper, top = number[-_SPECIAL:-1], number[-1]
        inf = (upper.all() & (top | ~fixed)) | (fixed & ~upper.any() & ~top)
    special_sign, one_short = sign, Const(0, 1)
    magnitudes: list[tuple[Value, Value]] = []
    tops: list[tuple[Value, Value]] = []
    bits = geometry.output.exponent_bits
    if widths.sums:
        # A positive sum with a negative operand is one short. A negative one is not: with the word
        # -n - 1 for the sum -n, inverting the word gives exactly the magnitude n.
        one_short = fixed & number[1] & ~sign
        below = geometry.window - (widths.number - 4)  # the top bit has the weight of E_max
        total = number[2:-1] ^ sign.replicate(widths.number - 3)
        magnitudes.append((fixed, Cat(one_short.replicate(below), total)))
        tops.append((fixed, Const(format.emax + 1 + output.bias, bits)))
        special_sign = Mux(fixed & ~inf, ~number[0], sign)
    if widths.products or widths.extrema:
        field = number[-1 - widths.exponent : -1]
        fraction = number[-1 - widths.exponent - widths.fraction : -1 - widths.exponent]
        word = Cat(Const(0, geometry.window - len(fraction)), fraction, field.any())
        # The bit of weight 1, ``field.any()``, is 0 for a zero only, whose field is 0.
        magnitudes.append((~fixed, word))
        # Normalised subnormal numbers have exponents down to 1 - fraction_bits; the operands'
        # exponents are therefore ``fraction_bits`` higher than the format's.
        raised_bias = format.bias + format.fraction_bits
        scale: Value = Const(output.bias - 2 * raised_bias, signed(bits + 1))
        if widths.extrema:
            one_operand = Const(output.bias - raised_bias, signed(bits + 1))
            scale = Mux(mode["larger"], one_operand, scale)
            inf = inf | (mode["larger"] & (field == format.emax + 1 + raised_bias))
        tops.append((~fixed, (field + scale)[:bits]))
    return BypassResult(
        select=mode["semiring"],
        magnitude=_pick(magnitudes, geometry.magnitude_bits),
        one_short=one_short,
        negative=sign,
        top=_pick(tops, bits),
        special_sign=special_sign & ~nan,
        inf=inf & ~nan,
        nan=nan,
    )


def _pick(choices: list[tuple[Value, Value]], width: int) -> Value:
    """Return the selected value in ``width`` bits; ``choices`` has one or two (select, value)."""
    words = [Cat(value, Const(0, max(width - len(value), 0)))[:width] for _, value in choices]
    return words[0] if len(words) == 1 else Mux(choices[0][0], *words)
