"""The code of a result: its sign (also that of a zero), its specials and its format."""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Mux, Value

from vitruvian.golden.fp.formats import FloatFormat

from ..parts.normalise import Packed
from ..parts.unpack import UnpackedCode, store
from .geometry import Geometry, Lane, ShortWindow, SmallResult
from .sideband import SideBand


@dataclass(frozen=True, kw_only=True)
class Target:
    """One format of the result, and the cases that its rounding must handle.

    Attributes
    ----------
    output : FloatFormat
        The format.
    result_bits : int
        Number of fraction bits that the result is rounded to.
    nan_code : int
        The code of a NaN result.
    denormalise : bool
        If True, the result can be subnormal.
    saturate : bool
        If True, the result can exceed the largest finite number.
    short : ShortWindow or None
        The shorter window that can be selected with this format.
    """

    output: FloatFormat
    result_bits: int
    nan_code: int
    denormalise: bool
    saturate: bool
    short: ShortWindow | None

    @property
    def packed(self) -> FloatFormat:
        """The format that the rounding works with.

        For an ``output`` without infinity it has one more exponent bit, because a number that is
        too large must not wrap around to a small exponent.
        """
        if self.output.has_infinity:
            return self.output
        e, f = self.output.exponent_bits + 1, self.output.fraction_bits
        # A format without infinity uses its largest field for numbers, so overflow shows in one bit
        # more.
        return FloatFormat("wide", e, f, 1 + e + f)

    @property
    def exact_zeros(self) -> bool:
        """True if only a zero sum rounds to zero."""
        return not self.denormalise and self.result_bits == self.output.fraction_bits


@dataclass(frozen=True, kw_only=True)
class ZeroSigns:
    """The rules for the sign of a zero result.

    Attributes
    ----------
    whole : {"ieee", "positive", "exact"}
        The rule of the unit: as IEEE 754, always +0, or +0 for a sum of zero only.
    short : ShortWindow or None
        The shorter window, which has a rule of its own.
    """

    whole: str
    short: ShortWindow | None

    @property
    def always_positive(self) -> bool:
        """True if the result of a zero sum is always +0."""
        return self.whole != "ieee" and (self.short is None or self._positive_if_short)

    @property
    def _positive_if_short(self) -> bool:
        """True if a zero result is +0 while the short window is in use."""
        return self.short is not None and self.short.zero == "positive"

    def minus(
        self, g: Geometry, lanes: Sequence[Lane], c: UnpackedCode | None, largest: Value
    ) -> Value:
        """Return 1 if a zero sum has to be -0, that is, if every term is -0.

        If truncation can never turn a sum of negative terms into zero, it is enough to test that
        all terms are negative; this needs less logic.

        Parameters
        ----------
        lanes : sequence of Lane
            The products.
        c : UnpackedCode or None
            The addend, if there is one.
        largest : Value
            Largest exponent of the products; 0 if they are all zero.
        """
        if self.always_positive:
            return Const(0, 1)
        terms = [*lanes] if c is None else [*lanes, c]
        negative = Cat(*[term.sign for term in terms]).all()
        fraction = max(g.output.fraction_bits, *[lane.fraction for lane in lanes])

        def rule(zero: str, window: int, chopped: bool) -> Value:
            if zero == "positive":
                return Const(0, 1)
            # Truncation can turn a sum of negative terms into zero, which is then +0.
            # Truncation has lost nothing only if all terms are zeros, and then the zero is −0.
            if chopped and not g.odd and (window < fraction or g.floor is not None):
                zero_c = Const(1, 1) if c is None else c.zero
                return negative & zero_c & ~largest.any()
            return negative

        whole = rule(self.whole, g.window, not g.sticky)
        if self.short is None:
            return whole
        return Mux(self.short.select, rule(self.short.zero, self.short.window, True), whole)

    def by_result(self, target: Target) -> bool:
        """Return True if a nonzero sum can round to zero and must then lose its sign."""
        if self.whole != "positive" and not self._positive_if_short:
            return False
        return self.short is not None or not target.exact_zeros

    def nonzero(self, packed: Packed, side: SideBand, target: Target) -> Value:
        """Return 1 if the result takes the sign of the sum.

        A negative sum that rounds to zero becomes -0 under the rule ``ieee`` only.

        Parameters
        ----------
        packed : Packed
            The rounded magnitude.
        side : SideBand
            The flags beside the sum.
        target : Target
            Format of the result.
        """
        if not self.by_result(target):
            return side.nonzero
        if side.short is None or self.always_positive:
            return packed.nonzero
        select = side.short if self._positive_if_short else ~side.short
        return side.nonzero & (packed.nonzero | ~select)


def targets_of(
    g: Geometry, *, nan_code: int, short: ShortWindow | None, small: SmallResult | None
) -> list[Target]:
    """Return the formats that results can have, the larger one first.

    Parameters
    ----------
    nan_code : int
        The code of a NaN in the larger format.
    short : ShortWindow or None
        The shorter window; in a unit with two formats it belongs to the smaller one.
    small : SmallResult or None
        The smaller format.
    """
    whole = Target(
        output=g.output,
        result_bits=g.result_bits,
        nan_code=nan_code,
        denormalise=not g.only_addend_subnormal,
        saturate=g.can_overflow,
        short=short if small is None else None,
    )
    if small is None:
        return [whole]
    return [
        whole,
        Target(
            output=small.output,
            result_bits=small.output.fraction_bits,
            nan_code=small.nan_code,
            denormalise=True,
            saturate=True,
            short=short,
        ),
    ]


def sign_beside(nan: Value, special: Value, negative: Value, zero: Value, *, code: bool) -> Value:
    """Return the sign of a special result or of a zero sum.

    Parameters
    ----------
    nan, special : Value
        The result is a NaN; the result is a NaN or an infinity.
    negative : Value
        Sign of the infinity.
    zero : Value
        Sign of a zero sum.
    code : bool
        Sign of the NaN.
    """
    if isinstance(zero, Const):  # always +0
        return negative | nan if code else negative & ~nan
    return Mux(nan, int(code), Mux(special, negative, zero))


def code_of(
    packed: Packed,
    side: SideBand,
    target: Target,
    *,
    zeros: ZeroSigns,
    bypassed: bool,
    flush: bool = False,
) -> Value:
    """Return the code: the rounded exponent and fraction with a sign, or a special.

    Parameters
    ----------
    packed : Packed
        The rounded magnitude.
    side : SideBand
        The flags beside the sum.
    target : Target
        Format of the result.
    zeros : ZeroSigns
        Rules for the sign of a zero.
    bypassed : bool
        If True, a bypass may replace the sum. The sign of a zero is then always ``minus``.
    flush : bool
        If True, a result below the least normal number is a zero of its sign.
    """
    output, short = target.output, target.short
    f, e = output.fraction_bits, output.exponent_bits
    fraction, field = packed.code[:f], packed.code[f : f + e]
    if short is not None and side.short is not None:
        cut = f - short.result_bits
        # The short window's result has fewer fraction bits, stored at the top of the same field.
        fraction = Cat(fraction[:cut] & (~side.short).replicate(cut), fraction[cut:])
    below = side.below if side.flip is None else side.below ^ side.flip
    special, is_nan = side.special, side.nan
    nonzero = zeros.nonzero(packed, side, target)
    if flush:
        # A field of 0 is a subnormal result, which the rule replaces by zero.
        fraction = fraction & field.any().replicate(f)
        if zeros.by_result(target):
            nonzero = nonzero & field.any()
    if bypassed:
        sign = Mux(nonzero & ~special, below, side.minus)
    elif zeros.always_positive:
        sign = Mux(special, side.minus, below & nonzero)
    else:
        sign = (below & nonzero & ~special) | side.minus
    if not output.has_infinity:
        # Without infinity, overflow gives a NaN.
        over = packed.code > output.max_finite >> output.storage_shift
        special, is_nan = special | over, is_nan | over
        sign = Mux(over, int(target.nan_code & output.sign_mask != 0), sign)
    nan: Value = Const(target.nan_code >> output.storage_shift & ((1 << f) - 1), f)
    if short is not None and side.short is not None:
        nan = Mux(side.short, short.nan_code >> output.storage_shift & ((1 << f) - 1), nan)
    # The fraction of an infinity is 0, and that of a NaN comes from its code.
    payload = Mux(is_nan, nan, 0)
    code = Cat((fraction & (~special).replicate(f)) | payload, field | special.replicate(e), sign)
    return store(code, output)
