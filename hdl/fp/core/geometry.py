"""The inputs of a dot product's back end, and the widths that follow from its parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from amaranth.hdl import Const, Value

from vitruvian.golden.fp.formats import FloatFormat, Specials
from vitruvian.golden.fp.spec import DotSpec

from ..parts.pipeline import PipelineStages
from .sideband import SideBand


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One exact product, an input of the sum.

    Attributes
    ----------
    sign, inf, nan : Value
        One bit each. If ``inf`` and ``nan`` are both set, the product is a NaN.
    exponent : Value
        Exponent on the unit's product scale (at least ``Geometry.exponent_min``), or 0 if the
        product is zero.
    significand : Value
        The product in units of ``2**-fraction``. Its value is below 4.
    fraction : int
        Number of fraction bits of ``significand``.
    """

    sign: Value
    exponent: Value
    significand: Value
    fraction: int
    nan: Value
    inf: Value

    def cross(self, stages: PipelineStages, stage: str, prefix: str) -> "Lane":
        """Return the product behind a boundary, in signals called ``prefix_field``.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        prefix : str
            First part of every new signal's name.
        """
        names = ("sign", "exponent", "significand", "nan", "inf")
        parts = {name: getattr(self, name) for name in names}
        return replace(self, **stages.cross_all(stage, parts, prefix))


@dataclass(frozen=True, kw_only=True)
class ShortWindow:
    """A second, shorter window that a unit can switch to at run time.

    The short window always truncates magnitudes ("chops") and rounds towards zero (RZ). It has two
    uses: FP8 on Hopper keeps 13 of 25 bits; and a unit that is ``ieee`` in its other precisions
    (floor, round to nearest) keeps 24 bits in the 16-bit modes of an A100.

    Attributes
    ----------
    select : Value
        One bit. If set, the short window is in use and the other attributes apply.
    window, result_bits : int
        Fraction bits that are kept of the terms and of the result.
    nan_code : int
        The code of a NaN result.
    zero : {"ieee", "positive"}
        The rule for the sign of a zero result.
    floor : int or None
        ``emax_floor`` on the product scale; it must not be above C's least exponent.
    """

    select: Value
    window: int
    result_bits: int
    nan_code: int
    zero: str = "ieee"
    floor: int | None = None


@dataclass(frozen=True, kw_only=True)
class BypassResult:
    """An exact number that replaces the sum at run time; only its rounding is left to do.

    It is valid after the stage ``sum``. It must have no more bits than the result, or the unit
    must round to nearest (RNE).

    Attributes
    ----------
    select : Value
        One bit. If set, this number replaces the sum.
    magnitude : Value
        The magnitude, ``Geometry.magnitude_bits`` wide.
    one_short : Value
        One bit. If set, ``magnitude`` is one unit of its last place less than the number's. Numbers
        in ones' complement have this form, and the rounding adds the unit.
    negative : Value
        Sign of a nonzero, finite number.
    top : Value
        Exponent, on the output's biased scale, of the bit that has the weight of E_max in a sum.
    special_sign : Value
        Sign of a zero, an infinity or a NaN.
    inf, nan : Value
        One bit each; at most one is set.
    """

    select: Value
    magnitude: Value
    one_short: Value
    negative: Value
    top: Value
    special_sign: Value
    inf: Value
    nan: Value

    @property
    def side(self) -> SideBand:
        """The flags that travel beside the number."""
        return SideBand(
            nan=self.nan,
            special=self.nan | self.inf,
            minus=self.special_sign,
            below=self.negative,
            missing=self.one_short,
            top=self.top,
            subnormal=Const(0, 1),
        )


@dataclass(frozen=True, kw_only=True)
class Bypass:
    """Candidate words that are carried around the adder and may replace its sum.

    The words share the pipeline registers of the sum's rows, because a beat uses either the sum or
    the bypass and never both.

    Attributes
    ----------
    words : sequence of Value
        The candidates in front of the stage ``sum``.
    enable : Value
        One bit in front of the stage ``sum``. If set, the beat uses the bypass.
    select : callable
        Function that takes the candidates behind the stage ``sum`` and returns the
        ``BypassResult``.
    """

    words: Sequence[Value]
    enable: Value
    select: Callable[[list[Value]], BypassResult]


@dataclass(frozen=True, kw_only=True)
class SmallResult:
    """A smaller format for C and D that a unit can switch to, for example FP32 beside FP64.

    The back end receives C converted to the larger format in either case.

    Attributes
    ----------
    select : Value
        One bit. If set, the result has the smaller format; it lies in the low bits and the bits
        above it are zero.
    output : FloatFormat
        The smaller format.
    nan_code : int
        The code of a NaN result in that format.
    """

    select: Value
    output: FloatFormat
    nan_code: int


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """All widths of the back end.

    Attributes
    ----------
    lanes : int
        Number of terms besides C: the products, or the partial products of slices.
    window : int
        F, the number of fraction bits that are kept below the largest exponent E_max.
    sticky : bool
        If True, terms are rounded down (floor) and a sticky bit records lost bits. If False,
        magnitudes are truncated and lost bits are forgotten.
    output : FloatFormat
        Format of C and D.
    result_bits : int
        Number of fraction bits of the result.
    exponent_min, exponent_max : int
        Range of the exponent of a nonzero, finite lane (product scale, at least 1).
    offset : int
        Difference of the scales: product scale + offset = biased exponent of ``output``.
    floor : int or None
        Least value of E_max, on the product scale, or None if E_max is never below it
        (``with_floor``).
    odd : bool
        If True, the last bit of a truncated magnitude is set if the magnitude lost bits.
    addend : bool
        If False, C is not a term of the sum.
    products : int or None
        Number of products if it differs from ``lanes``. A product is below 4 and is at least the
        sum of its partial products.
    """

    lanes: int
    window: int
    sticky: bool
    output: FloatFormat
    result_bits: int
    exponent_min: int
    exponent_max: int
    offset: int
    floor: int | None = None
    odd: bool = False
    addend: bool = True
    products: int | None = None

    @property
    def integer_bits(self) -> int:
        """Integer bits of the sum, in units of 2**E_max.

        Every product is below 4 and C is below 2, so the sum is below 4·lanes + 2. Without C it is
        below 4·lanes.
        """
        products = self.lanes if self.products is None else self.products
        return (4 * products + 2 if self.addend else 4 * products - 1).bit_length()

    @property
    def magnitude_bits(self) -> int:
        """Bits of the magnitude of the sum.

        ``round_and_pack`` appends a guard bit where the window is too short to have one.
        """
        return self.integer_bits + self.window

    @property
    def sum_bits(self) -> int:
        """Bits of the signed sum."""
        return self.magnitude_bits + 1

    @property
    def addend_range(self) -> tuple[int, int]:
        """Least and largest exponent of C on the product scale; the largest is that of inf/NaN."""
        # The offset is the output's bias less those of the operands; subnormal numbers have the
        # exponent 1.
        return 1 - self.offset, (1 << self.output.exponent_bits) - 1 - self.offset

    @property
    def addend_fraction(self) -> int:
        """Fraction bits of C in units of its exponent."""
        return self.output.fraction_bits

    @property
    def shifts_subnormals(self) -> bool:
        """True if a normalised number is shifted back where it is subnormal."""
        return True

    @property
    def floor_of_zero(self) -> bool:
        """True if the floor matters only for C = 0.

        In that case it is enough to give a zero C the floor as its exponent.
        """
        return self.floor is not None and self.floor <= self.addend_range[0]

    @property
    def scaled_bits(self) -> int:
        """Bits of E_max as a signed number on the product scale."""
        low, high = self.addend_range if self.addend else (0, 0)
        reach = max(-low, high, self.exponent_max, self.floor or 0, -(self.floor or 0))
        return reach.bit_length() + 1

    @property
    def gap_bits(self) -> int:
        """Bits of the distance by which C can be below E_max."""
        # C is at its lowest, and the highest term or the floor sets E_max.
        highest = max(self.addend_range[1], self.exponent_max, self.floor or 0)
        return (highest - self.addend_range[0]).bit_length()

    @property
    def only_addend_subnormal(self) -> bool:
        """True if every nonzero sum that has a nonzero product is a normal number.

        Such a sum is a multiple of half of 2**(E_max - F), and E_max is at least the exponent of
        the smallest product. Only C alone can be subnormal.
        """
        return self.floor is None and self.exponent_min + self.offset - self.window - 1 >= 1

    @property
    def can_overflow(self) -> bool:
        """True if the sum can exceed the largest finite number of ``output``.

        It cannot if three conditions hold: the products alone stay below that number; a C near the
        largest number shifts all products out of the window; and C itself loses no bits (floor
        would increase the magnitude of a negative C). A product that is truncated to odd never
        leaves the window.
        """
        top = self.exponent_max + self.offset
        infinity = (1 << self.output.exponent_bits) - 1
        cut = self.sticky and self.window < self.output.fraction_bits
        cut = self.addend and (cut or self.odd)
        return cut or top + max(self.integer_bits, self.window + 3) >= infinity


def with_floor(geometry: Geometry, emax_floor: int | None, bias: int) -> Geometry:
    """Return a copy of ``geometry`` with a lower limit for E_max.

    Parameters
    ----------
    emax_floor : int or None
        The limit as an unbiased exponent. None, or a limit below every nonzero term, has no effect.
    bias : int
        Sum of the biases of both operand formats; it converts ``emax_floor`` to the product scale.
    """
    # A floor below every possible term has no effect, and costs a comparator.
    least = geometry.exponent_min
    if geometry.addend:
        least = min(least, geometry.addend_range[0])
    if emax_floor is None or emax_floor + bias <= least:
        return replace(geometry, floor=None)
    return replace(geometry, floor=emax_floor + bias)


def check_rule(spec: DotSpec) -> None:
    """Check that the plain datapaths can realise a rule.

    Raises
    ------
    ValueError
        If the rule is not plain, if its zeros are those of CDNA, or if a format is FNUZ.
    """
    if not spec.is_plain:
        changed = ", ".join(spec.changes)
        raise ValueError(f"spec must be a plain rule, as this unit has no {changed}")
    if spec.result.zero == "exact":
        raise ValueError("zero must be 'ieee' or 'positive' in hardware, not 'exact'")
    for format in (spec.input, spec.input_b, spec.output):
        if format.specials is Specials.FNUZ:
            raise ValueError(f"format must have a −0 in hardware, not be {format.name!r}")
