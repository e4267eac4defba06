"""Number formats as data: every fact about an encoding is derived from a handful of fields."""

from dataclasses import dataclass

from vitruvian.validate import check_int, one_of

__all__ = ["FORMATS", "INT_FORMATS", "FloatFormat", "IntFormat", "as_format", "as_int_format"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point encoding: sign, exponent field, fraction field.

    A finite code stands for (−1)^s · m · 2^(E − fraction_bits); zero and subnormals have
    E = `emin` and no hidden bit in m.

    Parameters
    ----------
    name : str
    exponent_bits : int
        Width of the exponent field, 2 to 15.
    fraction_bits : int
        Width of the fraction field, without the hidden bit; at least 1.
    storage_bits : int
        Bits of the word a code is stored in.
    storage_shift : int
        Bits of that word below the encoding: ignored on input, zero on output (tf32: 13).
    has_infinity : bool
        False when the format has no code for infinity.
    nan : str
        "ieee": the all-ones exponent with a nonzero fraction is NaN (and, with a zero fraction,
        infinity). "ocp_e4m3": only the code of all ones is NaN, the rest of the all-ones exponent
        are numbers.

    Raises
    ------
    TypeError, ValueError
        For a field outside its range, or `has_infinity` that contradicts `nan`.

    References
    ----------
    IEEE 754-2019, section 3.4; OCP 8-bit Floating Point Specification, section 5.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    storage_bits: int
    storage_shift: int = 0
    has_infinity: bool = True
    nan: str = "ieee"

    def __post_init__(self):
        check_int("exponent_bits", self.exponent_bits, 2, 15)
        check_int("fraction_bits", self.fraction_bits, 1)
        check_int("storage_shift", self.storage_shift, 0)
        check_int("storage_bits", self.storage_bits, self.width + self.storage_shift)
        if self.nan not in ("ieee", "ocp_e4m3"):
            raise ValueError(f"nan must be 'ieee' or 'ocp_e4m3', not {self.nan!r}")
        if self.has_infinity != (self.nan == "ieee"):
            raise ValueError(
                f"has_infinity must be {self.nan == 'ieee'} when nan is {self.nan!r}, "
                f"not {self.has_infinity!r}"
            )

    def __str__(self):
        return self.name

    # Widths

    @property
    def width(self):
        """Bits of the encoding itself: 1 + exponent_bits + fraction_bits."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def significand_bits(self):
        """Precision p: the fraction and the hidden bit."""
        return self.fraction_bits + 1

    # Exponents

    @property
    def bias(self):
        """Exponent field of 1.0."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def emin(self):
        """Exponent of the smallest normal number, and of every subnormal (fp16: −14)."""
        return 1 - self.bias

    @property
    def emax(self):
        """Exponent of the largest number (fp16: 15, fp8e4m3: 8)."""
        return self.exponent_ones - self.bias - (1 if self.nan == "ieee" else 0)

    @property
    def exponent_ones(self):
        """The exponent field with all bits set, as a number."""
        return (1 << self.exponent_bits) - 1

    # Codes, in the position they are stored in

    @property
    def sign_mask(self):
        """The sign bit."""
        return 1 << (self.width - 1 + self.storage_shift)

    @property
    def exponent_mask(self):
        """All bits of the exponent field."""
        return self.exponent_ones << (self.fraction_bits + self.storage_shift)

    @property
    def fraction_mask(self):
        """All bits of the fraction field."""
        return ((1 << self.fraction_bits) - 1) << self.storage_shift

    @property
    def code_mask(self):
        """All bits that carry meaning."""
        return ((1 << self.width) - 1) << self.storage_shift

    @property
    def zero(self):
        """+0."""
        return 0

    @property
    def negative_zero(self):
        """−0."""
        return self.sign_mask

    @property
    def one(self):
        """1.0."""
        return self.bias << (self.fraction_bits + self.storage_shift)

    @property
    def infinity(self) -> int | None:
        """+∞, or None when the format has none."""
        return self.exponent_mask if self.has_infinity else None

    @property
    def canonical_nan(self):
        """The quiet NaN with a clear sign and only the top fraction bit set (fp8e4m3: 0x7F)."""
        if self.nan == "ocp_e4m3":
            return self.exponent_mask | self.fraction_mask
        return self.exponent_mask | (1 << (self.fraction_bits - 1 + self.storage_shift))

    def is_nan(self, code: int) -> bool:
        """Whether `code` is a NaN; bits that carry no meaning (tf32's low 13) must be zero."""
        if code & ~self.code_mask:
            return False
        fraction = code & self.fraction_mask
        if code & self.exponent_mask != self.exponent_mask:
            return False
        return fraction == self.fraction_mask if self.nan == "ocp_e4m3" else fraction != 0

    @property
    def max_finite(self):
        """The largest finite number (fp16: 65504, fp8e4m3: 448)."""
        if self.nan == "ocp_e4m3":
            return (self.exponent_mask | self.fraction_mask) - (1 << self.storage_shift)
        return self.exponent_mask - (1 << self.storage_shift)

    @property
    def min_normal(self):
        """2^emin."""
        return 1 << (self.fraction_bits + self.storage_shift)

    @property
    def min_subnormal(self):
        """2^(emin − fraction_bits)."""
        return 1 << self.storage_shift

    @property
    def overflow(self) -> int:
        """What a positive number too large to represent becomes: +∞, or NaN without one."""
        return self.canonical_nan if self.infinity is None else self.infinity


@dataclass(frozen=True)
class IntFormat:
    """A two's complement or unsigned integer of `bits` bits; a code is its unsigned bit pattern."""

    name: str
    bits: int
    signed: bool

    def __post_init__(self):
        check_int("bits", self.bits, 1, 64)

    def __str__(self):
        return self.name

    @property
    def minimum(self):
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self):
        """Largest value."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


FORMATS = {
    f.name: f
    for f in (
        FloatFormat("fp16", 5, 10, 16),
        FloatFormat("bf16", 8, 7, 16),
        FloatFormat("tf32", 8, 10, 32, storage_shift=13),
        FloatFormat("fp32", 8, 23, 32),
        FloatFormat("fp64", 11, 52, 64),
        FloatFormat("fp8e4m3", 4, 3, 8, has_infinity=False, nan="ocp_e4m3"),
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


def _lookup(value, kind, table, thing):
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{thing} must be a {kind.__name__} or a name, not {value!r}")
    one_of(thing, value, table)
    return table[value]


def as_format(value, thing="format") -> FloatFormat:
    """Return `value` if it is a `FloatFormat`, else the one of that name in `FORMATS`."""
    return _lookup(value, FloatFormat, FORMATS, thing)


def as_int_format(value, thing="integer format") -> IntFormat:
    """Return `value` if it is an `IntFormat`, else the one of that name in `INT_FORMATS`."""
    return _lookup(value, IntFormat, INT_FORMATS, thing)
