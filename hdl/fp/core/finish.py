"""The last steps of the small units: normalise, round, pack, and insert the specials."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.golden.fp.formats import FloatFormat

from ..parts.normalise import Normalised, normalise, round_and_pack
from ..parts.pipeline import PipelineStages
from ..parts.unpack import store

#: The roundings of the small units: to nearest even, and towards zero. ``finish`` has RTO too.
ROUNDINGS = ("RNE", "RZ")


@dataclass(frozen=True, kw_only=True)
class Exact:
    """An exact result that is still to be rounded to the output format.

    Attributes
    ----------
    sign : Value
        One bit; a zero has a sign too.
    word : Value
        The magnitude. Its last bit may be a sticky bit if it stays below the output's guard bit.
    exponent : Value
        Biased exponent (scale of the output) of the top bit of ``word``; signed.
    exponent_min, exponent_max : int
        Range of ``exponent`` for nonzero numbers.
    zeros : int
        Largest number of leading zeros that a nonzero ``word`` can have.
    nan, inf : Value
        One bit each. If both are set, the result is a NaN.
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
    stages: PipelineStages,
    saturate: bool = False,
    nan_code: int | None = None,
) -> Value:
    """Return the code of ``number``, rounded once.

    One comparison with the largest finite code decides about overflow after the rounding, because
    the exponent field is wide enough for any result. On overflow, RNE and RTO give infinity, or the
    NaN or the largest number that replaces it. RZ and ``saturate`` give the largest finite number.

    Parameters
    ----------
    number : Exact
        The exact result.
    output : FloatFormat
        Format of the code.
    rounding : {"RNE", "RZ", "RTO"}
        Rounding to nearest even, towards zero, or to odd.
    stages : PipelineStages
        The boundary ``total`` stands in front of the normalisation, ``leading`` inside of it,
        ``retimed`` behind it, and ``normalised`` in front of the rounding.
    saturate : bool
        If True, overflow and infinities give the largest finite number.
    nan_code : int, optional
        The code of every NaN, by default the format's canonical one.
    """
    f = output.fraction_bits
    low, high = min(number.exponent_min, 0), number.exponent_max + 1
    exponent = Signal(signed(max(high, -low).bit_length() + 1), name="top_exponent")
    m.d.comb += exponent.eq(number.exponent)
    exponent = stages.cross("total", exponent, "total_exponent")
    word = stages.cross("total", number.word, "total_word")
    side = {"sign": number.sign, "nan": number.nan, "inf": number.inf}
    side = {key: stages.cross("total", value, f"total_{key}") for key, value in side.items()}

    denormalise = number.exponent_min < 1
    limit: Value | None = None
    if number.exponent_min - 1 < number.zeros:
        # The left shift stops at exponent 1; below that the word moves right instead. (To normalise
        # completely and shift back is correct too, but it maps 6 % larger for FP16 products.)
        room = exponent - 1
        room = room[: len(exponent) - 1]
        room = Mux(exponent < 1, 0, room) if denormalise else room
        limit = Cat(room, Const(0, len(word).bit_length()))
    if number.zeros:
        result = normalise(m, word, limit=limit, name="normalise", stages=stages)
    else:
        word = stages.cross_extra("leading", word, "leading_word")
        result = Normalised(word=word, shift=Const(0, 1), tail=None, nonzero=word.any())
    exponent = stages.cross_extra("leading", exponent, "leading_exponent")
    for stage in ("leading", "retimed"):
        side = {
            key: stages.cross_extra(stage, value, f"{stage}_{key}") for key, value in side.items()
        }
    wide_bits = max((high + 1).bit_length(), output.exponent_bits + 1)
    packed = round_and_pack(
        m,
        result,
        stages=stages,
        exponent=exponent,
        # With an exponent that cannot overflow, the comparison with the largest number comes after
        # the rounding, which may carry into the exponent.
        output=FloatFormat("wide", wide_bits, f, 1 + wide_bits + f),
        result_bits=f,
        rounding=rounding,
        denormalise=denormalise,
        saturate=False,
    )
    side = {
        key: stages.cross("normalised", value, f"normalised_{key}") for key, value in side.items()
    }
    return _pack(
        m,
        packed.code,
        side,
        output,
        inward=saturate or rounding == "RZ",
        saturate=saturate,
        nan_code=output.canonical_nan if nan_code is None else nan_code,
    )


def _pack(
    m: Module,
    packed: Value,
    side: dict[str, Signal],
    output: FloatFormat,
    *,
    inward: bool,
    saturate: bool,
    nan_code: int,
) -> Value:
    """Return the code, with overflows, infinities and NaNs replaced.

    If ``inward`` is True, an overflow gives the largest finite number and not an infinity.
    """
    bits = output.width - 1
    shift = output.storage_shift
    largest = output.max_finite >> shift
    # A format without infinity has a NaN, or else its largest number, in the place of infinities.
    infinity = output.overflow if output.overflow_has_sign else nan_code
    unlimited = largest if saturate else infinity >> shift
    over = Signal(name="overflow")
    m.d.comb += over.eq(packed > largest)
    magnitude = Mux(over, largest if inward else infinity >> shift, packed[:bits])
    magnitude = Mux(side["inf"], unlimited, magnitude)
    magnitude = Mux(side["nan"], nan_code >> shift, magnitude)
    # The sign of a NaN, also of one that replaces a missing infinity, is that of its code.
    coded = side["nan"]
    if not output.overflow_has_sign and not saturate:
        coded = coded | side["inf"] | (over & (not inward))
    sign = side["sign"] & ~coded
    if nan_code & output.sign_mask:
        sign = sign | coded
    code = Signal(output.width, name="result")
    m.d.comb += code.eq(Cat(magnitude[:bits], sign))
    return store(code, output)
