"""The common end of the small units: normalise, round, pack, and put the specials in."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.golden.fp.formats import FloatFormat

from .normalise import Normalised, normalise, round_and_pack
from .pipeline import Cuts

__all__ = ["ROUNDINGS", "Exact", "finish", "store"]

#: What the units can do with a number between two of the output's.
ROUNDINGS = ("RNE", "RZ")


@dataclass(frozen=True, kw_only=True)
class Exact:
    """An exact result on its way to the output format.

    Attributes
    ----------
    sign : Value
        One bit, for zero too.
    word : Value
        The magnitude; a last bit that stands for "something below" is allowed if it stays below the
        output's guard bit.
    exponent : Value
        Biased exponent (scale of the output) of the top bit of ``word``; signed.
    exponent_min, exponent_max : int
        Its range for numbers that are not zero.
    zeros : int
        How many leading zeros ``word`` can have without being zero.
    nan, inf : Value
        One bit each; ``nan`` wins.
    """

    sign: Value
    word: Value
    exponent: Value
    exponent_min: int
    exponent_max: int
    zeros: int
    nan: Value
    inf: Value


def finish(
    m: Module,
    number: Exact,
    *,
    output: FloatFormat,
    rounding: str,
    cuts: Cuts,
    saturate: bool = False,
) -> Value:
    """The code of ``number``, rounded once.

    Overflow is decided after rounding, by one comparison with the largest finite code: the exponent
    field is formed wide enough to hold any result. RNE gives infinity, or NaN where the format has
    none; RZ and ``saturate`` give the largest finite number, ``saturate`` for infinities too.

    Places ``total`` (before the normalisation) and ``normalised`` (before the rounding) may be cut.
    """
    f = output.fraction_bits
    low, high = min(number.exponent_min, 0), number.exponent_max + 1
    exponent = Signal(signed(max(high, -low).bit_length() + 1), name="top_exponent")
    m.d.comb += exponent.eq(number.exponent)
    exponent = cuts.cross("total", exponent, "total_exponent")
    word = cuts.cross("total", number.word, "total_word")
    side = {"sign": number.sign, "nan": number.nan, "inf": number.inf}
    side = {key: cuts.cross("total", value, f"total_{key}") for key, value in side.items()}

    denormalise = number.exponent_min < 1
    limit: Value | None = None
    if number.exponent_min - 1 < number.zeros:
        # The top bit may go down to exponent 1; below, the word moves right instead. (Normalising
        # all the way and coming back is right too, but maps 6 % larger on FP16 products.)
        room = exponent - 1
        room = room[: len(exponent) - 1]
        room = Mux(exponent < 1, 0, room) if denormalise else room
        limit = Cat(room, Const(0, len(word).bit_length()))
    if number.zeros:
        result = normalise(m, word, limit=limit, name="normalise")
    else:
        result = Normalised(word=word, shift=Const(0, 1), tail=None, nonzero=word.any())
    wide_bits = max((high + 1).bit_length(), output.exponent_bits + 1)
    packed = round_and_pack(
        m,
        result,
        cuts=cuts,
        exponent=exponent,
        output=FloatFormat("wide", wide_bits, f, 1 + wide_bits + f),
        result_bits=f,
        rounding=rounding,
        denormalise=denormalise,
        saturate=False,
    )
    side = {
        key: cuts.cross("normalised", value, f"normalised_{key}") for key, value in side.items()
    }
    return _pack(
        m, packed.code, side, output, inward=saturate or rounding == "RZ", saturate=saturate
    )


def _pack(
    m: Module,
    packed: Value,
    side: dict[str, Signal],
    output: FloatFormat,
    *,
    inward: bool,
    saturate: bool,
) -> Value:
    bits = output.width - 1
    shift = output.storage_shift
    largest = output.max_finite >> shift
    unlimited = largest if saturate else output.overflow >> shift
    over = Signal(name="overflow")
    m.d.comb += over.eq(packed > largest)
    magnitude = Mux(over, largest if inward else output.overflow >> shift, packed[:bits])
    magnitude = Mux(side["inf"], unlimited, magnitude)
    magnitude = Mux(side["nan"], output.canonical_nan >> shift, magnitude)
    positive = side["nan"]  # the canonical NaN, and one that stands for infinity, has no sign
    if not output.has_infinity and not saturate:
        positive = positive | side["inf"] | (over & (not inward))
    code = Signal(output.width, name="result")
    m.d.comb += code.eq(Cat(magnitude[:bits], side["sign"] & ~positive))
    return store(code, output)


def store(code: Value, format: FloatFormat) -> Value:
    """A code of ``format.width`` bits in the position it is stored in."""
    padding = format.storage_bits - format.storage_shift - format.width
    return Cat(Const(0, format.storage_shift), code, Const(0, padding))
