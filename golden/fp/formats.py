"""Number formats as data: every fact about an encoding follows from a few fields."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from vitruvian.common.validate import check_int, check_type, one_of

T = TypeVar("T", "FloatFormat", "IntFormat")
C = TypeVar("C")


class Specials(Enum):
    """The rule by which the codes with an all-ones exponent are infinities, NaNs or numbers."""

    #: A zero fraction is an infinity, any other fraction a NaN (IEEE 754-2019, section 3.4).
    IEEE = "ieee"
    #: Only an all-ones fraction is a NaN; the other codes are numbers, and there is no infinity
    #: (OCP 8-bit Floating Point Specification, section 5, E4M3).
    OCP_E4M3 = "ocp_e4m3"
    #: All codes are numbers: there is neither an infinity nor a NaN (OCP Microscaling Formats
    #: Specification, section 5.3, FP6 and FP4).
    NONE = "none"
    #: The code of −0 is the only NaN; all other codes are numbers, and there is no infinity. The
    #: bias is one higher than usual (AMD's FP8, "finite, no negative zero": FNUZ).
    FNUZ = "fnuz"


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
    dtype : str, optional
        Name of the element type, in NumPy or ml_dtypes, whose arrays hold numbers of the format;
        None if neither has one.
    aliases : tuple of str
        Other names of the format in the names of files, in lower case and without separators.

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
    dtype: str | None = None
    aliases: tuple[str, ...] = ()

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
        return (1 << (self.exponent_bits - 1)) - (self.specials is not Specials.FNUZ)

    @property
    def emin(self) -> int:
        """The exponent of the smallest normal number and of every subnormal (fp16: −14)."""
        return 1 - self.bias

    @property
    def emax(self) -> int:
        """The exponent of the largest number (fp16: 15, fp8e4m3: 8)."""
        # Only IEEE 754 reserves the all-ones exponent for infinities and NaNs.
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
        """The code of −0; in a format without it, the code of +0."""
        return 0 if self.specials is Specials.FNUZ else self.sign_mask

    @property
    def one(self) -> int:
        """The code of 1.0."""
        return self.bias << (self.fraction_bits + self.storage_shift)

    @property
    def code_bits(self) -> int:
        """Bits of a code: those of the format, or all that are stored if some below do not count.

        FP6 and FP4 are stored in the low bits of a byte, whose other bits must be clear. TF32 is
        stored in the high bits of a word, and the low ones are ignored.
        """
        return self.storage_bits if self.storage_shift else self.width

    @property
    def has_infinity(self) -> bool:
        """True if the format has codes for infinities."""
        return self.specials is Specials.IEEE

    @property
    def has_nan(self) -> bool:
        """True if the format has codes for NaNs."""
        return self.specials is not Specials.NONE

    @property
    def infinity(self) -> int | None:
        """The code of +∞, or None if the format has no infinity."""
        return self.exponent_mask if self.has_infinity else None

    @property
    def canonical_nan(self) -> int:
        """The code that a result that is not a number has, with a clear sign.

        It is the quiet NaN with only the top fraction bit set (fp16: 0x7E00), the one NaN of OCP
        E4M3 (0x7F) or the one of an FNUZ format (0x80, although its sign is set). In a format
        without NaN, it is the largest number, as in the conversions of NVIDIA's PTX ISA to FP6 and
        FP4 (``cvt.satfinite``).
        """
        if self.specials is Specials.FNUZ:
            return self.sign_mask
        if self.specials is not Specials.IEEE:
            return self.exponent_mask | self.fraction_mask
        return self.exponent_mask | (1 << (self.fraction_bits - 1 + self.storage_shift))

    def is_nan(self, code: int) -> bool:
        """Return True if ``code`` is a NaN; unused bits (tf32's low 13) must be zero."""
        if code & ~self.code_mask:
            return False
        if self.specials is Specials.FNUZ:
            return code == self.sign_mask
        fraction = code & self.fraction_mask
        if code & self.exponent_mask != self.exponent_mask:
            return False
        _, nan = self.classify(fraction == 0, fraction != 0, fraction == self.fraction_mask)
        return bool(nan)

    def classify(
        self, fraction_zero: C, fraction_nonzero: C, fraction_ones: C
    ) -> tuple[C | None, C | None]:
        """Return the conditions that make a code with an all-ones exponent an infinity, or a NaN.

        The conditions may be Python booleans, NumPy arrays or values of a hardware description. A
        condition is None if the format has no such codes; the NaN of an FNUZ format has another
        exponent.

        Parameters
        ----------
        fraction_zero, fraction_nonzero, fraction_ones : condition
            The condition that no bit, some bit, or every bit of the fraction is set.
        """
        if self.specials is Specials.IEEE:
            return fraction_zero, fraction_nonzero
        return None, fraction_ones if self.specials is Specials.OCP_E4M3 else None

    @property
    def max_finite(self) -> int:
        """The code of the largest finite number (fp16: 65504, fp8e4m3: 448)."""
        largest = self.exponent_mask | self.fraction_mask
        if self.specials in (Specials.NONE, Specials.FNUZ):
            return largest
        if self.specials is Specials.OCP_E4M3:
            return largest - (1 << self.storage_shift)
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
        """The code that a positive overflow gives.

        It is +∞, the NaN of a format without infinity, or the largest number of a format without
        either.
        """
        return self.canonical_nan if self.infinity is None else self.infinity

    @property
    def overflow_has_sign(self) -> bool:
        """True if a negative overflow has a sign, as an infinity or a number does."""
        return self.specials in (Specials.IEEE, Specials.NONE)


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
        FloatFormat("fp16", 5, 10, 16, dtype="float16", aliases=("float16", "f16", "half")),
        FloatFormat("bf16", 8, 7, 16, dtype="bfloat16", aliases=("bfloat16", "bfloat")),
        FloatFormat(
            "tf32", 8, 10, 32, storage_shift=13, dtype="float32", aliases=("tensorfloat32",)
        ),
        FloatFormat("fp32", 8, 23, 32, dtype="float32", aliases=("float32", "f32", "single")),
        FloatFormat("fp64", 11, 52, 64, dtype="float64", aliases=("float64", "f64", "double")),
        FloatFormat(
            "fp8e4m3",
            *(4, 3, 8),
            specials=Specials.OCP_E4M3,
            dtype="float8_e4m3fn",
            aliases=("fp8e4m3fn", "float8e4m3fn", "float8e4m3", "e4m3fn", "e4m3"),
        ),
        FloatFormat("fp8e5m2", 5, 2, 8, dtype="float8_e5m2", aliases=("float8e5m2", "e5m2")),
        FloatFormat(
            "fp6e2m3",
            *(2, 3, 8),
            specials=Specials.NONE,
            dtype="float6_e2m3fn",
            aliases=("float6e2m3fn", "float6e2m3", "e2m3fn", "e2m3"),
        ),
        FloatFormat(
            "fp6e3m2",
            *(3, 2, 8),
            specials=Specials.NONE,
            dtype="float6_e3m2fn",
            aliases=("float6e3m2fn", "float6e3m2", "e3m2fn", "e3m2"),
        ),
    )
}

#: Formats of machines that golden computes and the hardware generator does not list.
OTHER_FORMATS = {
    f.name: f
    for f in (
        FloatFormat(
            "fp4e2m1",
            *(2, 1, 8),
            specials=Specials.NONE,
            dtype="float4_e2m1fn",
            aliases=("float4e2m1fn", "float4e2m1", "e2m1fn", "e2m1"),
        ),
        FloatFormat(
            "fp8e4m3fnuz",
            *(4, 3, 8),
            specials=Specials.FNUZ,
            dtype="float8_e4m3fnuz",
            aliases=("float8e4m3fnuz", "e4m3fnuz"),
        ),
        FloatFormat(
            "fp8e5m2fnuz",
            *(5, 2, 8),
            specials=Specials.FNUZ,
            dtype="float8_e5m2fnuz",
            aliases=("float8e5m2fnuz", "e5m2fnuz"),
        ),
        # E4M3 with the infinities and NaNs of IEEE 754 (Intel Gaudi 2)
        FloatFormat("fp8e4m3i", 4, 3, 8, dtype="float8_e4m3", aliases=("float8e4m3ieee", "e4m3i")),
        # The result of the short sums of FP8 products (NVIDIA Ada and Hopper), in an fp32 word
        FloatFormat("e8m13", 8, 13, 32, storage_shift=10, dtype="float32"),
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
        A format or a key of ``FORMATS`` or ``OTHER_FORMATS``.
    thing : str
        Name of the argument, for error messages.

    Raises
    ------
    TypeError
        If ``value`` is neither a ``FloatFormat`` nor a string.
    ValueError
        If ``value`` is not a key of ``FORMATS`` or ``OTHER_FORMATS``.
    """
    return _lookup(value, FloatFormat, {**FORMATS, **OTHER_FORMATS}, thing)


def as_int_format(value: IntFormat | str, thing: str = "integer format") -> IntFormat:
    """Return the format called ``value`` in ``INT_FORMATS``, as ``as_format`` does."""
    return _lookup(value, IntFormat, INT_FORMATS, thing)
