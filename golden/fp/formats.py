"""Number formats as data: every fact about an encoding follows from a few fields."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from vitruvian.validate import check_int, check_type, one_of

__all__ = [
    "FORMATS",
    "INT_FORMATS",
    "FloatFormat",
    "IntFormat",
    "Specials",
    "as_format",
    "as_int_format",
]

T = TypeVar("T", "FloatFormat", "IntFormat")


class Specials(Enum):
    """The rule by which the codes with an all-ones exponent are infinities, NaNs or numbers."""

    #: A zero fraction is an infinity, any other fraction a NaN (IEEE 754-2019, section 3.4).
    IEEE = "ieee"
    #: Only an all-ones fraction is a NaN; the other codes are numbers, and there is no infinity
    #: (OCP 8-bit Floating Point Specification, section 5, E4M3).
    OCP_E4M3 = "ocp_e4m3"


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point encoding: a sign, an exponent field and a fraction field.

    A finite code stands for (−1)^s · m · 2^(E − fraction_bits). For zero and for subnormals, E is
    ``emin`` and m has no hidden bit.

    Parameters
    ----------
    name : str
        Name of the format; the key in ``FORMATS``.
    exponent_bits : int
        Width of the exponent field, 2 to 15.
    fraction_bits : int
        Width of the fraction field without the hidden bit, at least 1.
    storage_bits : int
        Width of the word that stores a code.
    storage_shift : int
        Number of unused bits below the encoding in that word. They are ignored on input and zero
        on output (tf32: 13).
    specials : Specials
        The rule for infinities and NaNs.

    Raises
    ------
    TypeError, ValueError
        If a field has the wrong type or is out of range.

    References
    ----------
    IEEE 754-2019, section 3.4; OCP 8-bit Floating Point Specification, section 5.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    storage_bits: int
    storage_shift: int = 0
    specials: Specials = Specials.IEEE

    def __post_init__(self) -> None:
        check_int("exponent_bits", self.exponent_bits, 2, 15)
        check_int("fraction_bits", self.fraction_bits, 1)
        check_int("storage_shift", self.storage_shift, 0)
        check_int("storage_bits", self.storage_bits, self.width + self.storage_shift)
        check_type("specials", self.specials, Specials)

    def __str__(self) -> str:
        return self.name

    # Widths

    @property
    def width(self) -> int:
        """The number of bits in the encoding: 1 + exponent_bits + fraction_bits."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def significand_bits(self) -> int:
        """The precision p: the fraction bits and the hidden bit."""
        return self.fraction_bits + 1

    # Exponents

    @property
    def bias(self) -> int:
        """The exponent field of 1.0."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def emin(self) -> int:
        """The exponent of the smallest normal number and of every subnormal (fp16: −14)."""
        return 1 - self.bias

    @property
    def emax(self) -> int:
        """The exponent of the largest number (fp16: 15, fp8e4m3: 8)."""
        # OCP E4M3 has numbers with the all-ones exponent, which IEEE 754 reserves.
        return self.exponent_ones - self.bias - (1 if self.has_infinity else 0)

    @property
    def exponent_ones(self) -> int:
        """The exponent field with all bits set, as an integer."""
        return (1 << self.exponent_bits) - 1

    # Codes, at the bit position at which they are stored

    @property
    def sign_mask(self) -> int:
        """The mask of the sign bit."""
        return 1 << (self.width - 1 + self.storage_shift)

    @property
    def exponent_mask(self) -> int:
        """The mask of the exponent field."""
        return self.exponent_ones << (self.fraction_bits + self.storage_shift)

    @property
    def fraction_mask(self) -> int:
        """The mask of the fraction field."""
        return ((1 << self.fraction_bits) - 1) << self.storage_shift

    @property
    def code_mask(self) -> int:
        """The mask of all bits that carry meaning."""
        return ((1 << self.width) - 1) << self.storage_shift

    @property
    def zero(self) -> int:
        """The code of +0."""
        return 0

    @property
    def negative_zero(self) -> int:
        """The code of −0."""
        return self.sign_mask

    @property
    def one(self) -> int:
        """The code of 1.0."""
        return self.bias << (self.fraction_bits + self.storage_shift)

    @property
    def has_infinity(self) -> bool:
        """True if the format has codes for infinities."""
        return self.specials is Specials.IEEE

    @property
    def infinity(self) -> int | None:
        """The code of +∞, or None if the format has no infinity."""
        return self.exponent_mask if self.has_infinity else None

    @property
    def canonical_nan(self) -> int:
        """The code of the canonical NaN, whose sign is clear.

        It is the quiet NaN with only the top fraction bit set (fp16: 0x7E00), or the one NaN of
        OCP E4M3 (0x7F).
        """
        if self.specials is Specials.OCP_E4M3:
            return self.exponent_mask | self.fraction_mask
        return self.exponent_mask | (1 << (self.fraction_bits - 1 + self.storage_shift))

    def is_nan(self, code: int) -> bool:
        """Return True if ``code`` is a NaN; unused bits (tf32's low 13) must be zero."""
        if code & ~self.code_mask:
            return False
        fraction = code & self.fraction_mask
        if code & self.exponent_mask != self.exponent_mask:
            return False
        if self.specials is Specials.OCP_E4M3:
            return fraction == self.fraction_mask
        return fraction != 0

    @property
    def max_finite(self) -> int:
        """The code of the largest finite number (fp16: 65504, fp8e4m3: 448)."""
        if self.specials is Specials.OCP_E4M3:
            return (self.exponent_mask | self.fraction_mask) - (1 << self.storage_shift)
        return self.exponent_mask - (1 << self.storage_shift)

    @property
    def min_normal(self) -> int:
        """The code of 2^emin, the smallest normal number."""
        return 1 << (self.fraction_bits + self.storage_shift)

    @property
    def min_subnormal(self) -> int:
        """The code of 2^(emin − fraction_bits), the smallest subnormal number."""
        return 1 << self.storage_shift

    @property
    def overflow(self) -> int:
        """The code that a positive overflow gives: +∞, or NaN if there is no infinity."""
        return self.canonical_nan if self.infinity is None else self.infinity


@dataclass(frozen=True)
class IntFormat:
    """A two's complement or unsigned integer; a code is its unsigned bit pattern.

    Parameters
    ----------
    name : str
        Name of the format; the key in ``INT_FORMATS``.
    bits : int
        Width, 1 to 64.
    signed : bool
        If True, the integer is two's complement.

    Raises
    ------
    TypeError, ValueError
        If ``bits`` is not an int or is out of range.
    """

    name: str
    bits: int
    signed: bool

    def __post_init__(self) -> None:
        check_int("bits", self.bits, 1, 64)

    def __str__(self) -> str:
        return self.name

    @property
    def minimum(self) -> int:
        """The smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """The largest value."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


FORMATS = {
    f.name: f
    for f in (
        FloatFormat("fp16", 5, 10, 16),
        FloatFormat("bf16", 8, 7, 16),
        FloatFormat("tf32", 8, 10, 32, storage_shift=13),
        FloatFormat("fp32", 8, 23, 32),
        FloatFormat("fp64", 11, 52, 64),
        FloatFormat("fp8e4m3", 4, 3, 8, specials=Specials.OCP_E4M3),
        FloatFormat("fp8e5m2", 5, 2, 8),
    )
}

INT_FORMATS = {
    f.name: f
    for f in (
        IntFormat("int8", 8, True),
        IntFormat("uint8", 8, False),
        IntFormat("int32", 32, True),
    )
}


def _lookup(value: Any, kind: type[T], table: dict[str, T], thing: str) -> T:
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{thing} must be a {kind.__name__} or a name, not {value!r}")
    one_of(thing, value, table)
    return table[value]


def as_format(value: FloatFormat | str, thing: str = "format") -> FloatFormat:
    """Return the format called ``value``; a ``FloatFormat`` is returned unchanged.

    Parameters
    ----------
    value : FloatFormat or str
        A format or a key of ``FORMATS``.
    thing : str
        Name of the argument, for error messages.

    Raises
    ------
    TypeError
        If ``value`` is neither a ``FloatFormat`` nor a string.
    ValueError
        If ``value`` is not a key of ``FORMATS``.
    """
    return _lookup(value, FloatFormat, FORMATS, thing)


def as_int_format(value: IntFormat | str, thing: str = "integer format") -> IntFormat:
    """Return the format called ``value`` in ``INT_FORMATS``, as ``as_format`` does."""
    return _lookup(value, IntFormat, INT_FORMATS, thing)
