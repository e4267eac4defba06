"""The parts of a rule: operands, products, sum, addend, result and scales of a ``DotSpec``."""

from dataclasses import dataclass
from typing import Any

from vitruvian.common.validate import check_int, check_type, one_of
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import ScaleFormat

# Default of a field whose value __post_init__ derives from the other fields
_DERIVED: Any = None
_LARGEST_FLOOR = 1 << 15


@dataclass(frozen=True)
class Side:
    """An operand of the products, A or B.

    Parameters
    ----------
    format : FloatFormat
        Format of the codes.
    convert : FloatFormat, optional
        Format to which the codes are first converted (RNE). In a wider format the subnormals of a
        narrow one are normal numbers, so its products have other exponents (Gaudi 2 and 3, FP8 on
        Hopper and Blackwell); TF32 rounds FP32 operands (Gaudi).
    """

    format: FloatFormat
    convert: FloatFormat | None = None

    def __post_init__(self) -> None:
        check_type("format", self.format, FloatFormat)
        if self.convert is not None:
            check_type("convert", self.convert, FloatFormat)


@dataclass(frozen=True, kw_only=True)
class Products:
    """The products, and the exponents by which they are aligned.

    Parameters
    ----------
    exponent : str
        "sum": E_a + E_b. "leading": the exponent of the product's leading one (Gaudi 2).
    slices : tuple of (int, int), optional
        Masks of the significands of A and B. Each pair gives a partial product that is truncated by
        itself, with the exponent of the whole product (Gaudi, FP32 from narrow multipliers).
    overflow : bool
        If True, a product of 2^(emax + 1) of the output or more is an infinity (CDNA 3).
    """

    exponent: str = "sum"
    slices: tuple[tuple[int, int], ...] | None = None
    overflow: bool = False

    def __post_init__(self) -> None:
        one_of("products.exponent", self.exponent, ("sum", "leading"))
        check_type("products.overflow", self.overflow, bool)


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The alignment and the addition of the terms.

    Parameters
    ----------
    k : int
        Number of terms in a block, at least 1. A longer dot product is computed block after
        block, and the D of a block is the C of the next.
    window : int or None
        Fraction bits F that are kept below E_max. With None, nothing is truncated.
    truncate : str
        "magnitude": magnitudes are truncated, and the bits cut off are lost. "odd": likewise, but
        the last bit of a magnitude that lost bits is set (RISC-V RVBNA). "floor": two's
        complement values are truncated, and one sticky bit, the OR of all bits cut from any term,
        joins the sum with weight q/2; so 2·Σ + sticky, in units of q/2, is normalised and rounded.
    floor : int, optional
        Lower bound on E_max.
    lanes : str
        How products are grouped. "together"; "parity": even and odd k are summed apart (CDNA 3);
        "halves": k mod 4 of 0 or 1 in a first sum, whose result is the C of the second, with the
        other half (FP8 of ``mma.sync``); "sixteens": exact sums of 16 products are the terms
        (MXFP4 and NVFP4 on Blackwell).
    """

    k: int
    window: int | None
    truncate: str = "floor"
    floor: int | None = None
    lanes: str = "together"

    def __post_init__(self) -> None:
        check_int("sum.k", self.k, 1)
        if self.window is not None:
            check_int("sum.window", self.window, 1)
        one_of("sum.truncate", self.truncate, ("floor", "magnitude", "odd"))
        if self.floor is not None:
            check_int("sum.floor", self.floor, -_LARGEST_FLOOR, _LARGEST_FLOOR)
        one_of("sum.lanes", self.lanes, ("together", "parity", "halves", "sixteens"))


@dataclass(frozen=True)
class Addend:
    """The addition of C.

    Parameters
    ----------
    how : str
        "tree": C is one of the terms. "after": C is added to the exact sum of the truncated
        products, whose E_max ignores C; one rounding follows (Gaudi 2). "late": C is added to the
        rounded sum of the products; this addition has IEEE zeros and rounds RTO if the result's
        rounding is RTO, else RNE (FP8 of ``mma.sync`` on Hopper and Blackwell, RVBNA, Arm).
        "aligned": as on CDNA 3, in which the sum T of the products truncated at their own E_max,
        then T and C, then their sum are floored (see ``golden.fp.general``).
    """

    how: str = "tree"

    def __post_init__(self) -> None:
        one_of("addend.how", self.how, ("tree", "after", "late", "aligned"))


@dataclass(frozen=True, kw_only=True)
class Result:
    """The rounding of the sum to D, and the codes of special results.

    Parameters
    ----------
    format : FloatFormat
        Format of C and D.
    rounding : str
        "RNE", "RZ" or "RTO" (to odd). An overflow gives an infinity with all three (NaN if the
        format has no infinity).
    bits : int, optional
        Fraction bits of the result, by default all of the format's; the bits below are zero. A
        subnormal result is a multiple of 2^(emin − bits).
    nan : int, optional
        Code of every NaN result, by default the format's canonical NaN. It also takes the place of
        both infinities in a format without infinity.
    zero : str
        Sign of a zero result. "ieee": a sum that is exactly zero is +0, except that it is −0 if C
        and every product are negative zeros; a negative sum that rounds to zero is −0.
        "positive": every zero is +0, as on machines by NVIDIA. "exact": a sum that is exactly zero
        is +0, and a negative sum that rounds to zero is −0 (CDNA 1 and 3).
    flush : str, optional
        If a result below the least normal number becomes a zero of its sign: "after" judges the
        rounded result (CDNA 2, Gaudi), "before" the exact one (Arm), and "unbounded" the result
        rounded to its full precision as though there were no least exponent, which is tininess
        after rounding in IEEE 754-2019, section 7.5 (AMX, AVX-512). The three differ in exact
        values that are rounded up to the least normal number.
    """

    format: FloatFormat
    rounding: str = "RNE"
    bits: int = _DERIVED
    nan: int | None = None
    zero: str = "ieee"
    flush: str | None = None

    def __post_init__(self) -> None:
        check_type("result.format", self.format, FloatFormat)
        one_of("result.rounding", self.rounding, ("RNE", "RZ", "RTO"))
        # The type is that of the finished object; an argument may still be None here.
        all_bits = self.bits is None  # pyright: ignore[reportUnnecessaryComparison]
        bits = self.format.fraction_bits if all_bits else self.bits
        check_int("result.bits", bits, 1, self.format.fraction_bits)
        object.__setattr__(self, "bits", bits)
        if self.nan is not None:
            check_int("result.nan", self.nan, 0, (1 << self.format.storage_bits) - 1)
            if not self.format.is_nan(self.nan):
                name = self.format.name
                raise ValueError(f"result.nan must be a NaN code of {name}, not {self.nan:#x}")
        one_of("result.zero", self.zero, ("ieee", "positive", "exact"))
        one_of("result.flush", self.flush, (None, "after", "before", "unbounded"))


@dataclass(frozen=True)
class Scales:
    """The scales of blocks of A and of B.

    Parameters
    ----------
    format : ScaleFormat
        Format of a scale that each block of A, and each of B, is multiplied by.
    block : int
        Number of values that share a scale; it divides K.
    """

    format: ScaleFormat
    block: int

    def __post_init__(self) -> None:
        check_type("scales.format", self.format, ScaleFormat)
        check_int("scales.block", self.block, 1)

    def __str__(self) -> str:
        return f"{self.format} for {self.block} values"
