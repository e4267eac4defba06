"""Normalisation, rounding and packing of a magnitude into a floating-point code."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed

from golden.fp.formats import FloatFormat

from .align import shift_right

__all__ = ["Normalised", "normalise", "round_and_pack"]


@dataclass(frozen=True, kw_only=True)
class Normalised:
    """A magnitude shifted so that its leading one (if it may be moved there) is on top.

    Attributes
    ----------
    word : Value
        The shifted magnitude.
    shift : Value
        How far it was shifted to the left.
    """

    word: Value
    shift: Value


def normalise(m: Module, word: Value, *, limit: Value | None, name: str) -> Normalised:
    """Shift ``word`` left until its top bit is set, but not further than ``limit``.

    One pass from the largest step to the smallest; each step looks at the bits it would push out.
    The limit is compared greedily along the way: once a step was allowed and not taken, the rest of the
    shift is below the limit whatever follows.
    """
    steps = max((len(word) - 1).bit_length(), 1)
    taken: list[Value] = []
    free: Value = Const(1, 1) if limit is None else limit[steps:].any()
    for bit in reversed(range(steps)):
        step = 1 << bit
        take = Signal(name=f"{name}_take{step}")
        allowed: Value = Const(1, 1) if limit is None else free | limit[bit]
        m.d.comb += take.eq(~word[len(word) - step :].any() & allowed)
        if limit is not None:
            free = free | (limit[bit] & ~take)
        stage = Signal(len(word), name=f"{name}_by{step}")
        select = take.replicate(len(word))
        moved = Cat(Const(0, step), word[: len(word) - step])
        m.d.comb += stage.eq((moved & select) | (word & ~select))
        taken.insert(0, take)
        word = stage
    return Normalised(word=word, shift=Cat(*taken))


def round_and_pack(
    m: Module,
    number: Normalised,
    *,
    exponent: Value,
    output: FloatFormat,
    result_bits: int,
    rounding: str,
    denormalise: bool,
    saturate: bool,
) -> tuple[Value, Value]:
    """Exponent and fraction of the rounded result (no sign), and whether the number was nonzero.

    Parameters
    ----------
    number : Normalised
        The magnitude, leading one on top unless it is a subnormal or zero.
    exponent : Value
        Biased exponent of the top bit before the shift (signed).
    result_bits : int
        Fraction bits to round to; the rest of the field is zero.
    rounding : {"RNE", "RZ"}
        The only place of the unit that rounds.
    denormalise, saturate : bool
        Whether the exponent can fall below 1, or pass the largest one, and must be handled here.
    """
    e_bits, f = output.exponent_bits, output.fraction_bits
    word = Cat(Const(0, max(result_bits + 2 - len(number.word), 0)), number.word)
    field = Signal(signed(len(exponent) + 1), name="result_exponent")
    m.d.comb += field.eq(exponent - number.shift)
    if denormalise:
        under = Signal(len(field), name="result_under")
        m.d.comb += under.eq((1 - field) & (field < 1).replicate(len(field)))
        rest = word[: len(word) - 2 - result_bits].any()
        word, more = shift_right(
            m,
            word[len(word) - 2 - result_bits :],
            under,
            name="denormalise",
            sticky=True,
        )
        word = Cat(rest | more, word)
    hidden = word[-1]
    kept = word[len(word) - 1 - result_bits : len(word) - 1]
    over = (field >= (1 << e_bits) - 1) & hidden if saturate else Const(0, 1)
    packed = Cat(kept, field[:e_bits] & hidden.replicate(e_bits))
    if rounding == "RNE":
        guard = word[len(word) - 2 - result_bits]
        below = word[: len(word) - 2 - result_bits].any()
        rounded = Signal(len(packed), name="result_rounded")
        m.d.comb += rounded.eq(packed + (guard & (below | kept[0])))
        packed = rounded
    if saturate:
        packed = Cat(
            packed[:result_bits] & (~over).replicate(result_bits),
            packed[result_bits:] | over.replicate(e_bits),
        )
    return Cat(Const(0, f - result_bits), packed), number.word.any()
