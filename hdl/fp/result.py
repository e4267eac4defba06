"""The code of a result: its sign, that of zeros by either rule, and the specials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Mux, Value

from vitruvian.golden.fp.formats import FloatFormat

from .finish import store
from .geometry import Geometry, Lane, ShortWindow
from .normalise import Packed
from .unpack import Unpacked

__all__ = ["Target", "ZeroSigns", "code_of", "sign_beside"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One format of the result, and what its rounding has to look after.

    Attributes
    ----------
    output : FloatFormat
    result_bits : int
        Fraction bits that it is rounded to.
    nan_code : int
    denormalise, saturate : bool
        Whether a sum can be subnormal or too large.
    short : ShortWindow or None
        Run-time shortening of this format.
    """

    output: FloatFormat
    result_bits: int
    nan_code: int
    denormalise: bool
    saturate: bool
    short: ShortWindow | None

    @property
    def packed(self) -> FloatFormat:
        """What is rounded to: without infinity the largest exponent must not wrap around."""
        if self.output.has_infinity:
            return self.output
        e, f = self.output.exponent_bits + 1, self.output.fraction_bits
        return FloatFormat("wide", e, f, 1 + e + f)

    @property
    def exact_zeros(self) -> bool:
        """Whether no sum but zero rounds to zero."""
        return not self.denormalise and self.result_bits == self.output.fraction_bits


@dataclass(frozen=True, kw_only=True)
class ZeroSigns:
    """The rule for the sign of a zero result, and that of a short window.

    Attributes
    ----------
    whole : {"ieee", "positive"}
    short : ShortWindow or None
    """

    whole: str
    short: ShortWindow | None

    @property
    def always_positive(self) -> bool:
        """Whether no zero is ever -0."""
        return self.whole == "positive" and (self.short is None or self._positive_if_short)

    @property
    def _positive_if_short(self) -> bool:
        return self.short is not None and self.short.zero == "positive"

    def minus(self, g: Geometry, lanes: Sequence[Lane], c: Unpacked, largest: Value) -> Value:
        """Whether a zero sum is -0: where every term is a zero with that sign.

        Where no sum of negative terms is cut to nothing, it is enough that all are negative.
        """
        if self.always_positive:
            return Const(0, 1)
        negative = Cat(*[lane.sign for lane in lanes], c.sign).all()
        fraction = max(g.output.fraction_bits, *[lane.fraction for lane in lanes])

        def rule(zero: str, window: int, chopped: bool) -> Value:
            if zero == "positive":
                return Const(0, 1)
            if chopped and (window < fraction or g.floor is not None):
                return negative & c.zero & ~largest.any()
            return negative

        whole = rule(self.whole, g.window, not g.sticky)
        if self.short is None:
            return whole
        return Mux(self.short.select, rule(self.short.zero, self.short.window, True), whole)

    def by_result(self, target: Target) -> bool:
        """Whether a sum that rounds to zero must not leave its sign."""
        if self.whole != "positive" and not self._positive_if_short:
            return False
        return self.short is not None or not target.exact_zeros

    def nonzero(self, packed: Packed, side: Mapping[str, Value], target: Target) -> Value:
        """Whether the result has the sign of the sum: a -0 of a sum below zero is only `ieee`."""
        if not self.by_result(target):
            return side["nonzero"]
        if self.always_positive:
            return packed.nonzero
        select = side["short"] if self._positive_if_short else ~side["short"]
        return side["nonzero"] & (packed.nonzero | ~select)


def sign_beside(nan: Value, special: Value, negative: Value, zero: Value, *, code: bool) -> Value:
    """The sign of a special, and that of a zero sum; ``code`` is that of a NaN."""
    if isinstance(zero, Const):  # always +0
        return negative | nan if code else negative & ~nan
    return Mux(nan, int(code), Mux(special, negative, zero))


def code_of(
    packed: Packed,
    side: Mapping[str, Value],
    target: Target,
    *,
    zeros: ZeroSigns,
    of_winner: bool,
) -> Value:
    """Sign and specials around the rounded exponent and fraction.

    Parameters
    ----------
    packed : Packed
    side : mapping of str to Value
        ``below``, ``nonzero``, ``special``, ``nan`` and ``minus``; ``flip`` and ``short`` if any.
    target : Target
    zeros : ZeroSigns
    of_winner : bool
        Whether a winner may stand in place of the sum: its ``minus`` is that of a zero, whatever
        it is.
    """
    output, short = target.output, target.short
    f, e = output.fraction_bits, output.exponent_bits
    fraction, field = packed.code[:f], packed.code[f : f + e]
    if short is not None:
        cut = f - short.result_bits
        fraction = Cat(fraction[:cut] & (~side["short"]).replicate(cut), fraction[cut:])
    below = side["below"] ^ side["flip"] if "flip" in side else side["below"]
    special, is_nan = side["special"], side["nan"]
    nonzero = zeros.nonzero(packed, side, target)
    if of_winner:
        sign = Mux(nonzero & ~special, below, side["minus"])
    elif zeros.always_positive:
        sign = Mux(special, side["minus"], below & nonzero)
    else:
        sign = (below & nonzero & ~special) | side["minus"]
    if not output.has_infinity:
        over = packed.code > output.max_finite >> output.storage_shift
        special, is_nan = special | over, is_nan | over
        sign = Mux(over, int(target.nan_code & output.sign_mask != 0), sign)
    nan: Value = Const(target.nan_code >> output.storage_shift & ((1 << f) - 1), f)
    if short is not None:
        nan = Mux(side["short"], short.nan_code >> output.storage_shift & ((1 << f) - 1), nan)
    payload = Mux(is_nan, nan, 0)
    code = Cat((fraction & (~special).replicate(f)) | payload, field | special.replicate(e), sign)
    return store(code, output)
