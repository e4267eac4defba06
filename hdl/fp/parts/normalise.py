"""Normalisation, rounding and packing of a magnitude into a floating-point code."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.golden.fp.formats import FloatFormat

from .align import shift_right
from .pipeline import PipelineStages


@dataclass(frozen=True, kw_only=True)
class Normalised:
    """A magnitude that was shifted left until its leading one was at the top, or to a limit.

    Attributes
    ----------
    word : Value
        The shifted magnitude.
    shift : Value
        Number of positions that it was shifted to the left.
    tail : Value or None
        One bit. If set, the number continues below ``word`` with an endless row of ones, that is,
        ``word`` is one unit of its last place too small.
    nonzero : Value
        One bit. If set, the number is not zero.
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
        One bit: the OR of ``code``. It is only valid if the caller asked for it.
    """

    code: Value
    nonzero: Value


def normalise(
    m: Module,
    word: Value,
    *,
    limit: Value | None,
    name: str,
    tail: Value | None = None,
    stages: PipelineStages | None = None,
) -> Normalised:
    """Shift ``word`` left until its top bit is set, but not further than ``limit``.

    The shifter goes from the largest step to the smallest. Each step tests the bits that it would
    push out, so no separate leading-zero counter is needed. The limit is compared bit by bit with
    the steps: if the limit allows a step that is not taken, it allows all smaller steps as well.

    Parameters
    ----------
    word : Value
        The magnitude.
    limit : Value or None
        Largest number of positions, or None for any number.
    name : str
        First part of the new signals' names.
    tail : Value, optional
        The bit that is shifted in from below (default 0).
    stages : PipelineStages, optional
        The boundary ``leading`` stands behind the first two steps.
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
        if stages is not None and "leading" in stages.names and bit == max(steps - 2, 0):
            word = stages.cross("leading", word, f"{name}_word")
            taken = [stages.cross("leading", x, f"{name}_taken{i}") for i, x in enumerate(taken)]
            nonzero = stages.cross("leading", nonzero, f"{name}_nonzero")
            if limit is not None:
                limit = stages.cross("leading", limit, f"{name}_limit")
                free = stages.cross("leading", free, f"{name}_free")
            if tail is not None:
                tail = stages.cross("leading", tail, f"{name}_tail")
    shift: Value = Cat(*taken)
    return Normalised(word=word, shift=shift, tail=tail, nonzero=nonzero)


def round_and_pack(
    m: Module,
    number: Normalised,
    *,
    stages: PipelineStages,
    exponent: Value,
    output: FloatFormat,
    result_bits: int,
    rounding: str,
    denormalise: bool,
    saturate: bool,
    chop: Value | None = None,
    chopped_bits: int | None = None,
    tells_zero: bool = False,
    flush: bool = False,
    unbounded: bool = False,
) -> Packed:
    """Return the exponent and fraction (no sign) of the rounded number.

    All floating-point rounding of a unit happens here.

    Parameters
    ----------
    number : Normalised
        The magnitude, with the leading one at the top unless it is subnormal or zero.
    stages : PipelineStages
        The boundary ``normalised`` stands in front of the rounding. A retimed design has
        ``retimed`` instead, in front of the shift of a subnormal number.
    exponent : Value
        Biased exponent of the top bit before the shift (signed).
    output : FloatFormat
        Format of the result.
    result_bits : int
        Number of fraction bits to round to; the rest of the fraction field is zero.
    rounding : {"RNE", "RZ", "RTO"}
        Rounding to nearest even, towards zero, or to odd.
    denormalise : bool
        If True, the exponent can fall below 1 and the result is then a subnormal number.
    saturate : bool
        If True, the exponent can exceed the largest one and the result is then infinity.
    chop : Value, optional
        One bit. If set, round towards zero and to ``chopped_bits`` instead. The bits below these
        stay in ``code``, but ``nonzero`` ignores them.
    chopped_bits : int, optional
        Number of fraction bits to round to if ``chop`` is set.
    tells_zero : bool
        If True, compute ``nonzero`` of the result.
    flush : bool
        If True, the caller replaces a subnormal result by zero, so only its exponent field counts:
        a number that rounds up to the least normal number has one, and it is at least half of that.
    unbounded : bool
        If True, with ``flush``, such a number is rounded as though exponents had no lower bound.
    """
    e_bits, f = output.exponent_bits, output.fraction_bits
    result_nonzero: Value = Const(0, 1)
    tail = Const(0, 1) if number.tail is None else number.tail
    word = Cat(tail.replicate(max(result_bits + 2 - len(number.word), 0)), number.word)
    # One bit more than the exponent: the shift of a subnormal number makes the field negative.
    field = Signal(signed(len(exponent) + 1), name="result_exponent")
    m.d.comb += field.eq(exponent - number.shift)
    cut = len(word) - 2 - result_bits
    rest, rest_all = word[:cut].any(), word[:cut].all()
    word = word[cut:]

    def rank(value: Value, name: str) -> Value:
        return stages.cross_extra("retimed", value, f"s4_{name}")

    field = rank(field, "field")
    word, nonzero = rank(word, "word"), rank(number.nonzero, "nonzero")
    rest, rest_all, tail = rank(rest, "rest"), rank(rest_all, "rest_all"), rank(tail, "tail")
    chop = None if chop is None else rank(chop, "chop")
    if denormalise and flush and unbounded:
        # A number at least half as large as the least normal one has the field 0, and the carry of
        # its rounding makes that 1.
        word = Mux(field < 0, 0, word)[: len(word)]
        result_nonzero = word[-2:].any()
    elif denormalise and flush:
        below = field < 1
        rest = rest | (word[0] & below)
        half = Cat(word[1:], Const(0, 1)) & (field == 0).replicate(len(word))
        word = Mux(below, half, word)[: len(word)]
        result_nonzero = word[-2:].any()
    elif denormalise:
        under = Signal(len(field), name="result_under")
        m.d.comb += under.eq((1 - field) & (field < 1).replicate(len(field)))
        word, more = shift_right(m, word, under, name="denormalise", sticky=True)
        rest = rest | more
        # The leading one is at the top, so the result is nonzero if that bit stays in the fraction.
        result_nonzero = nonzero & (under <= result_bits)
        if chop is not None and chopped_bits is not None:
            result_nonzero = result_nonzero & ~(chop & (under > chopped_bits))
    # Without the leading one at the top the number is subnormal, whatever its field says.
    over = (field >= (1 << e_bits) - 1) & word[-1] if saturate else Const(0, 1)
    kept = Cat(word[1:-1], field[:e_bits] & word[-1].replicate(e_bits))
    if not denormalise:
        low = 0 if chopped_bits is None else result_bits - chopped_bits
        result_nonzero = word[1 + low :].any()
        if chop is not None and low:
            result_nonzero = result_nonzero | (word[1 : 1 + low].any() & ~chop)
    kept = stages.cross("normalised", kept, "s4_kept")
    over = stages.cross("normalised", over, "s4_over")
    if tells_zero:
        result_nonzero = stages.cross("normalised", result_nonzero, "s4_left")
    if rounding == "RNE":
        up = word[0] & (rest | word[1])
        if number.tail is not None:
            # With endless ones below the word, a guard bit of 1 is more than a tie. A guard bit of
            # 0 with nothing but ones below it is exactly a tie, because 0.0111…₂ = 0.1₂.
            up = Mux(tail, word[0] | (rest_all & word[1]), up)
        if chop is not None:
            up = up & ~chop
        up = stages.cross("normalised", up, "s4_round_up")
        # A carry out of the fraction goes into the exponent field and leaves a zero fraction, so
        # rounding up to the next power of two, or to infinity, needs no case of its own.
        rounded = Signal(len(kept), name="result_rounded")
        m.d.comb += rounded.eq(kept + up)
        kept, result_nonzero = rounded, result_nonzero | up
    elif rounding == "RTO":
        inexact = stages.cross("normalised", word[0] | rest, "s4_inexact")
        kept, result_nonzero = Cat(kept[0] | inexact, kept[1:]), result_nonzero | inexact
    if saturate:
        fraction, exponent_field = kept[:result_bits], kept[result_bits:]
        fraction = fraction & (~over).replicate(result_bits)
        kept = Cat(fraction, exponent_field | over.replicate(e_bits))
    return Packed(code=Cat(Const(0, f - result_bits), kept), nonzero=result_nonzero)
