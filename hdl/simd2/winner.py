"""⊗ and ⊕ of the semirings: candidates a + b, a · b or max(a, b), and the least of them.

A lane keeps a candidate where the sum of products keeps a product; sums need more bits than that,
and have some beside. Behind the place "product" candidates become *keys* of which the least is
wanted: sums are signed with the sign inverted, and compare like unsigned numbers; the others have a
sign and a magnitude, and the answer is turned where both are negative. Comparison is exact; what is
found is rounded once, later.

Sums are of numbers in ones' complement: −x is ~x = −x − 1, and the carry-in is set where both are
negative, so a sum with a negative operand is one short. A bit below says so, and with it the order
is right: one short and the bit set is just below the next number without.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from vitruvian.golden.fp.formats import FloatFormat

from ..fp.geometry import Geometry, Lane, Winner
from .operand import fixed_bits

__all__ = ["Candidate", "Widths", "candidate", "key_of", "least", "less", "winner_of"]

#: Top bits of a key that are all ones, or all zeros, for infinities and no finite number.
_SPECIAL = 13


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Bits of candidates and keys.

    Attributes
    ----------
    format : FloatFormat
        Of the operands.
    sums, products, extrema : bool
        Which candidates there can be.
    """

    format: FloatFormat
    sums: bool
    products: bool
    extrema: bool

    @property
    def fraction(self) -> int:
        """Fraction bits of a product, normalised."""
        return 2 * self.format.fraction_bits + 1

    @property
    def exponent(self) -> int:
        """Of a product of semirings, whose operands are normalised."""
        return self.format.exponent_bits + 2

    @property
    def number(self) -> int:
        """Of a key: a sum of fixed-point numbers, and below it whether one is missing, and is −0.

        Or, from the top, sign, exponent and fraction of a product or of an operand.
        """
        if self.sums:
            return fixed_bits(self.format) + 3
        return 1 + self.exponent + self.fraction

    @property
    def low(self) -> int:
        """What a sum has below the fraction of a product."""
        return self.number - 1 - self.exponent - self.fraction

    @property
    def key(self) -> int:
        """A number, its sign inverted, and on top of it whether it is a NaN."""
        return self.number + 1


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a lane keeps: as for a product, and what a sum has beside.

    Attributes
    ----------
    word, exponent, sign : Value
        Of products as in the sum of them. Of other candidates the number of the key, from the top:
        sign, exponent, word, of which the top bit stays clear.
    low : Value
        The rest of the number.
    inf, nan : Value
        Whether it is infinite, with the sign of the number, or a NaN; of extrema only the latter.
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
) -> Candidate:
    """One pair of operands.

    Parameters
    ----------
    a, b : View of `lane_layout`
    product : Lane
        Significand and exponent 0 where none is wanted.
    mode : dict of str to Value
        See `hdl.simd2.mode.mode_of`.
    """
    plus, larger = mode["plus"], mode["larger"]
    sign = product.sign
    nan = a.nan | b.nan
    inf = a.inf | b.inf
    spoilt: Value = (a.inf & b.zero) | (a.zero & b.inf)
    total: Value = Const(0, widths.number - 1)
    if widths.sums:
        fixed = Signal(widths.number - 2, name=f"{name}_total")
        carry = a.fixed[-1] & b.fixed[-1]
        m.d.comb += fixed.eq((a.fixed.as_signed() + b.fixed.as_signed() + carry)[: len(fixed)])
        either = a.sign | b.sign
        # x − x is +0, and −0 where signs are turned; of a sum that is not 0 it does not matter
        minus_zero = Mux(mode["turn"], either, a.sign & b.sign)
        total = Cat(~minus_zero, either, fixed[:-1])
        sign = Mux(plus, fixed[-1], sign)
        spoilt = Mux(plus, a.inf & b.inf & (a.sign ^ b.sign), spoilt)
    nan = nan | spoilt
    word, exponent = product.significand, product.exponent
    if widths.extrema:
        above = Signal(name=f"{name}_a_above_b")
        x, y = (Cat(z.significand[:-1], z.exponent, ~z.sign) for z in (a, b))
        lower = _is_less(y, x, turns=Const(1, 1))
        m.d.comb += above.eq(b.nan | (lower & ~a.nan))
        chosen = Mux(above, x, y)
        f = widths.format.fraction_bits
        hidden = chosen[f:-1].any()
        operand = Cat(Const(0, f), chosen[:f], hidden, Const(0, 1))
        word = _or(word, operand & larger.replicate(len(operand)))
        exponent = _or(exponent, chosen[f:-1] & larger.replicate(len(chosen) - f - 1))
        sign = Mux(larger, ~chosen[-1], sign)
        nan = Mux(larger, a.nan & b.nan, nan)
    middle = total[widths.low : widths.low + widths.fraction]
    upper = total[widths.low + widths.fraction :]
    return Candidate(
        word=_or(word, middle),
        exponent=_or(exponent, upper),
        sign=sign,
        low=total[: widths.low],
        inf=inf & ~larger,
        nan=nan,
    )


def _or(x: Value, y: Value) -> Value:
    return (x | y)[: max(len(x), len(y))]


def key_of(m: Module, kept: Candidate, *, widths: Widths, mode: dict[str, Value], name: str):
    """The key of a candidate, behind the place "product"."""
    top = ~kept.sign | kept.nan  # a NaN is not among the negative numbers
    plus, word, exponent = mode["plus"], kept.word, kept.exponent[: widths.exponent]
    fraction: Value = word[: widths.fraction]
    if widths.products or widths.extrema:
        # normalised; a sum, whose top bit of the word is clear, stays as it is
        exponent = (exponent + word[-1])[: widths.exponent]
        fraction = Mux(word[-1] | plus, word[:-1], Cat(Const(0, 1), word[:-2]))
    number = Cat(kept.low, fraction, exponent)
    ones = kept.inf & (top | ~plus)
    zeros = kept.inf & ~top & plus
    upper = (number[1 - _SPECIAL :] | ones.replicate(_SPECIAL - 1)) & ~zeros.replicate(_SPECIAL - 1)
    key = Signal(widths.key, name=f"{name}_key")
    m.d.comb += key.eq(Cat(number[: 1 - _SPECIAL], upper, top, kept.nan))
    return key


def less(x: Value, y: Value) -> Value:
    """Whether unsigned x is less than y: where a borrow begins, and how far it goes on.

    Two of three gates of a subtractor; `x < y` mapped to 227 µm² with a choice of 44 bits, this to
    208.
    """
    pairs = [(~p & q, ~p | q) for p, q in zip(x, y, strict=True)]
    while len(pairs) > 1:
        following = [
            (high[0] | (high[1] & low[0]), high[1] & low[1])
            for low, high in zip(pairs[::2], pairs[1::2], strict=False)
        ]
        pairs = following + pairs[len(pairs) - len(pairs) % 2 :]
    return pairs[0][0]


def _is_less(x: Value, y: Value, *, turns: Value) -> Value:
    """Whether x is the lesser number; of equal ones it does not matter.

    The top bits are inverted signs; where ``turns``, the rest is a magnitude, and the order of two
    negative numbers is the other one.
    """
    negative = ~(x[-1] | y[-1])
    return less(x, y) ^ (negative & turns)


def least(
    m: Module,
    keys: Sequence[Value],
    *,
    turns: Value,
    name: str,
    levels: int | None = None,
) -> list[Value]:
    """The least key, by a balanced tree; with ``levels`` only so many levels of it.

    ``turns`` is whether keys have magnitudes.
    """
    level, keys = 0, list(keys)
    while len(keys) > 1 and (levels is None or level < levels):
        following: list[Value] = []
        for index in range(0, len(keys) - 1, 2):
            x, y = keys[index], keys[index + 1]
            smaller = Signal(len(x), name=f"{name}{level}_{index // 2}")
            # a NaN has the sign of a positive number
            negative = ~(x[-2] | y[-2])
            m.d.comb += smaller.eq(Mux(less(x, y) ^ (negative & turns), x, y))
            following.append(smaller)
        if len(keys) % 2:
            following.append(keys[-1])
        keys, level = following, level + 1
    return keys


def winner_of(key: Value, *, widths: Widths, geometry: Geometry, mode: dict[str, Value]) -> Winner:
    """What a key stands for, as the back end takes it."""
    format, output = widths.format, geometry.output
    number, nan = key[:-1], key[-1]
    sign = ~number[-1]
    fixed = mode["plus"]
    inf: Value = Const(0, 1)
    if widths.sums or widths.products:
        upper, top = number[-_SPECIAL:-1], number[-1]
        inf = (upper.all() & (top | ~fixed)) | (fixed & ~upper.any() & ~top)
    minus, missing = sign, Const(0, 1)
    folded: list[tuple[Value, Value]] = []
    tops: list[tuple[Value, Value]] = []
    bits = geometry.output.exponent_bits
    if widths.sums:
        # ones' complement: with a negative operand one is missing, but for a negative sum none is
        missing = fixed & number[1] & ~sign
        below = geometry.window - (widths.number - 4)  # the top bit has the place of E_max
        total = number[2:-1] ^ sign.replicate(widths.number - 3)
        folded.append((fixed, Cat(missing.replicate(below), total)))
        tops.append((fixed, Const(format.emax + 1 + output.bias, bits)))
        minus = Mux(fixed & ~inf, ~number[0], sign)
    if widths.products or widths.extrema:
        field = number[-1 - widths.exponent : -1]
        fraction = number[-1 - widths.exponent - widths.fraction : -1 - widths.exponent]
        word = Cat(Const(0, geometry.window - len(fraction)), fraction, field.any())
        folded.append((~fixed, word))
        raised = format.bias + format.fraction_bits  # an operand's exponent is so much higher
        scale: Value = Const(output.bias - 2 * raised, signed(bits + 1))
        if widths.extrema:
            one = Const(output.bias - raised, signed(bits + 1))
            scale = Mux(mode["larger"], one, scale)
            inf = inf | (mode["larger"] & (field == format.emax + 1 + raised))
        tops.append((~fixed, (field + scale)[:bits]))
    return Winner(
        select=mode["semiring"],
        folded=_pick(folded, geometry.magnitude_bits),
        missing=missing,
        below=sign,
        top=_pick(tops, bits),
        minus=minus & ~nan,
        inf=inf & ~nan,
        nan=nan,
    )


def _pick(choices: list[tuple[Value, Value]], width: int) -> Value:
    """The value that is chosen, in as many bits."""
    words = [Cat(value, Const(0, max(width - len(value), 0)))[:width] for _, value in choices]
    return words[0] if len(words) == 1 else Mux(choices[0][0], *words)
