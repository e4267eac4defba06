"""What goes into the back end of a dot product, and the widths that follow from its parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from amaranth.hdl import Value

from vitruvian.golden.fp.formats import FloatFormat

__all__ = ["Geometry", "Guests", "Lane", "ShortWindow", "SmallResult", "Winner", "floored"]


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One exact product on its way into the sum.

    Attributes
    ----------
    sign, inf, nan : Value
        One bit each; ``inf`` may be set together with ``nan``, which then wins.
    exponent : Value
        On the unit's product scale (``Geometry.exponent_min`` upwards); 0 if the product is zero.
    significand : Value
        The product in units of ``2**-fraction``, below 4.
    fraction : int
        Fraction bits of ``significand``.
    """

    sign: Value
    exponent: Value
    significand: Value
    fraction: int
    nan: Value
    inf: Value


@dataclass(frozen=True, kw_only=True)
class ShortWindow:
    """A run-time choice of fewer bits, with chopped magnitudes and RZ.

    FP8 on Hopper keeps 13 of 25 bits; an A100's 16-bit modes in a unit that is ``ieee`` otherwise
    keep 24, where the unit cuts to floor and rounds to nearest.

    Attributes
    ----------
    select : Value
        One bit: cut terms and result short.
    window, result_bits : int
        What remains then.
    nan_code : int
        The code of a NaN result then.
    zero : {"ieee", "positive"}
        The sign of a zero result then.
    floor : int or None
        ``emax_floor`` then, on the product scale; not above C's least exponent.
    """

    select: Value
    window: int
    result_bits: int
    nan_code: int
    zero: str = "ieee"
    floor: int | None = None


@dataclass(frozen=True, kw_only=True)
class Winner:
    """A run-time choice of one exact number in place of the sum: only the rounding is left.

    It comes behind the place "sum", and needs fewer bits than the result has, or RNE.

    Attributes
    ----------
    select : Value
        One bit.
    folded : Value
        ``magnitude_bits`` of the geometry: the magnitude.
    missing : Value
        Whether it is less by one unit than the number.
    below : Value
        The sign of a nonzero number.
    top : Value
        Exponent, on the output's biased scale, of the place that E_max has in a sum.
    minus, inf, nan : Value
        ``minus`` is the sign of a zero and of a special.
    """

    select: Value
    folded: Value
    missing: Value
    below: Value
    top: Value
    minus: Value
    inf: Value
    nan: Value


@dataclass(frozen=True, kw_only=True)
class Guests:
    """What becomes a winner, on its way past the sum.

    Attributes
    ----------
    words : sequence of Value
        Before the place "sum", where they may take the registers of the sum's rows.
    early : Value
        Whether they are wanted, there.
    winner : callable
        Takes them behind it and returns the `Winner`.
    """

    words: Sequence[Value]
    early: Value
    winner: Callable[[list[Value]], Winner]


@dataclass(frozen=True, kw_only=True)
class SmallResult:
    """A run-time choice of a smaller format for C and D: FP32 in a unit that also has FP64.

    C comes on the scale of the larger format all the same.

    Attributes
    ----------
    select : Value
        One bit: the result is to be of the smaller format, in the low bits, with zeros above.
    output : FloatFormat
    nan_code : int
        The code of a NaN result then.
    """

    select: Value
    output: FloatFormat
    nan_code: int


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Every width of the back end.

    Attributes
    ----------
    lanes : int
        Number of products.
    window : int
        F, the fraction bits kept below the largest exponent.
    sticky : bool
        Floor with a sticky bit instead of chopped magnitudes.
    output : FloatFormat
        Format of C and D.
    result_bits : int
        Fraction bits of the result.
    exponent_min, exponent_max : int
        Range of a nonzero, finite lane's exponent (product scale, at least 1).
    offset : int
        Product scale + offset = biased exponent of ``output``.
    floor : int or None
        ``emax_floor`` on the product scale, if it can act: `floored`.
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

    @property
    def integer_bits(self) -> int:
        """Products are below 4 and C below 2 (units of 2**E_max): the sum is below 4·lanes + 2."""
        return (4 * self.lanes + 2).bit_length()

    @property
    def magnitude_bits(self) -> int:
        """The magnitude of the sum; room for a guard bit below the result is made if F is short."""
        return self.integer_bits + self.window

    @property
    def sum_bits(self) -> int:
        """The signed sum."""
        return self.magnitude_bits + 1

    @property
    def addend_range(self) -> tuple[int, int]:
        """C's exponent on the product scale (a special C included)."""
        return 1 - self.offset, (1 << self.output.exponent_bits) - 1 - self.offset

    @property
    def floor_of_zero(self) -> bool:
        """Whether the floor acts only while C is zero: then it is the exponent of that zero."""
        return self.floor is not None and self.floor <= self.addend_range[0]

    @property
    def scaled_bits(self) -> int:
        """E_max on the product scale, signed."""
        low, high = self.addend_range
        reach = max(-low, high, self.exponent_max, self.floor or 0, -(self.floor or 0))
        return reach.bit_length() + 1

    @property
    def gap_bits(self) -> int:
        """How far C can be below E_max."""
        highest = max(self.addend_range[1], self.exponent_max, self.floor or 0)
        return (highest - self.addend_range[0]).bit_length()

    @property
    def only_addend_subnormal(self) -> bool:
        """Whether a sum with a nonzero product is always a normal number.

        The sum is a multiple of half of 2**(E_max - F), E_max at least the smallest product's.
        """
        return self.floor is None and self.exponent_min + self.offset - self.window - 1 >= 1

    @property
    def can_overflow(self) -> bool:
        """Whether the sum can pass the largest finite number of ``output``.

        It cannot if the products alone stay below and are cut completely beside a C near the top,
        and C itself is not cut (floor makes a negative C larger).
        """
        top = self.exponent_max + self.offset
        infinity = (1 << self.output.exponent_bits) - 1
        cut = self.sticky and self.window < self.output.fraction_bits
        return cut or top + max(self.integer_bits, self.window + 3) >= infinity


def floored(geometry: Geometry, emax_floor: int | None, bias: int) -> Geometry:
    """The geometry with a floor, if not every nonzero term lies above it anyway.

    ``bias`` is the sum of the operands': what brings ``emax_floor`` to the product scale.
    """
    least = min(geometry.exponent_min, geometry.addend_range[0])
    if emax_floor is None or emax_floor + bias <= least:
        return replace(geometry, floor=None)
    return replace(geometry, floor=emax_floor + bias)
