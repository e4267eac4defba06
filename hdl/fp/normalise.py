"""Normalisation, rounding and packing of a magnitude into a floating-point code."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.golden.fp.formats import FloatFormat

from .align import shift_right
from .pipeline import Cuts

__all__ = ["Normalised", "Packed", "normalise", "round_and_pack"]


@dataclass(frozen=True, kw_only=True)
class Normalised:
    """A magnitude shifted so that its leading one (if it may be moved there) is on top.

    Attributes
    ----------
    word : Value
        The shifted magnitude.
    shift : Value
        How far it was shifted to the left.
    tail : Value or None
        If given and set: the number goes on below the word with ones without end, that is, one unit
        of the last place of ``word`` is missing.
    nonzero : Value
        Whether the number was not zero.
    """

    word: Value
    shift: Value
    tail: Value | None
    nonzero: Value


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A rounded magnitude.

    Attributes
    ----------
    code : Value
        Fraction and, above it, the exponent field.
    nonzero : Value
        Whether any bit of it is set, if that was asked for.
    """

    code: Value
    nonzero: Value


def normalise(
    m: Module, word: Value, *, limit: Value | None, name: str, tail: Value | None = None
) -> Normalised:
    """Shift ``word`` left until its top bit is set, but not further than ``limit``.

    One pass from the largest step to the smallest; each step looks at the bits it would push out.
    The limit is compared greedily along the way: once a step was allowed and not taken, the rest of
    the shift is below the limit whatever follows. ``tail`` is shifted in from below.
    """
    steps = max((len(word) - 1).bit_length(), 1)
    nonzero = word.any()
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
        below = (Const(0, 1) if tail is None else tail).replicate(step)
        m.d.comb += stage.eq(Mux(take, Cat(below, word[: len(word) - step]), word))
        taken.insert(0, take)
        word = stage
    return Normalised(word=word, shift=Cat(*taken), tail=tail, nonzero=nonzero)


def round_and_pack(
    m: Module,
    number: Normalised,
    *,
    cuts: Cuts,
    exponent: Value,
    output: FloatFormat,
    result_bits: int,
    rounding: str,
    denormalise: bool,
    saturate: bool,
    chop: Value | None = None,
    chopped_bits: int | None = None,
    tells_zero: bool = False,
) -> Packed:
    """Exponent and fraction (no sign) of the rounded number; the only place of a unit that rounds.

    Parameters
    ----------
    number : Normalised
        The magnitude, leading one on top unless it is a subnormal or zero.
    cuts : Cuts
        Place ``normalised`` stands before the rounding.
    exponent : Value
        Biased exponent of the top bit before the shift (signed).
    result_bits : int
        Fraction bits to round to; the rest of the field is zero.
    rounding : {"RNE", "RZ"}
    denormalise, saturate : bool
        Whether the exponent can fall below 1, or pass the largest one, and must be handled here.
    chop : Value, optional
        Whether to round to zero after all, and then to `chopped_bits`: what is below these counts
        as zero in ``nonzero``, but is left in the code.
    tells_zero : bool
        Whether ``nonzero`` of the result is wanted.
    """
    e_bits, f = output.exponent_bits, output.fraction_bits
    left: Value = Const(0, 1)
    tail = Const(0, 1) if number.tail is None else number.tail
    word = Cat(tail.replicate(max(result_bits + 2 - len(number.word), 0)), number.word)
    field = Signal(signed(len(exponent) + 1), name="result_exponent")
    m.d.comb += field.eq(exponent - number.shift)
    cut = len(word) - 2 - result_bits
    rest, rest_all = word[:cut].any(), word[:cut].all()
    word = word[cut:]
    if denormalise:
        under = Signal(len(field), name="result_under")
        m.d.comb += under.eq((1 - field) & (field < 1).replicate(len(field)))
        word, more = shift_right(m, word, under, name="denormalise", sticky=True)
        rest = rest | more
        # the leading one is on top of the word, and stays if it is not shifted out of the fraction
        left = number.nonzero & (under <= result_bits)
        if chop is not None and chopped_bits is not None:
            left = left & ~(chop & (under > chopped_bits))
    over = (field >= (1 << e_bits) - 1) & word[-1] if saturate else Const(0, 1)
    kept = Cat(word[1:-1], field[:e_bits] & word[-1].replicate(e_bits))
    if not denormalise:
        low = 0 if chopped_bits is None else result_bits - chopped_bits
        left = word[1 + low :].any()
        if chop is not None and low:
            left = left | (word[1 : 1 + low].any() & ~chop)
    kept = cuts.cross("normalised", kept, "s4_kept")
    over = cuts.cross("normalised", over, "s4_over")
    if tells_zero:
        left = cuts.cross("normalised", left, "s4_left")
    if rounding == "RNE":
        up = word[0] & (rest | word[1])
        if number.tail is not None:
            # a missing one: ones all the way down carry into the guard bit, or make a tie of it
            up = Mux(tail, word[0] | (rest_all & word[1]), up)
        if chop is not None:
            up = up & ~chop
        up = cuts.cross("normalised", up, "s4_round_up")
        rounded = Signal(len(kept), name="result_rounded")
        m.d.comb += rounded.eq(kept + up)
        kept, left = rounded, left | up
    if saturate:
        fraction, exponent_field = kept[:result_bits], kept[result_bits:]
        fraction = fraction & (~over).replicate(result_bits)
        kept = Cat(fraction, exponent_field | over.replicate(e_bits))
    return Packed(code=Cat(Const(0, f - result_bits), kept), nonzero=left)
