"""Parameter objects of the fused dot products."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vitruvian.common.validate import check_int, check_type, one_of
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.fp.scales import ScaleFormat, as_scale

# Allowed values of the parameters that are names
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "truncate": ("floor", "magnitude", "odd"),
    "rounding": ("RNE", "RZ", "RTO"),
    "zero": ("ieee", "positive", "exact"),
    "flush_result": (None, "after", "before", "unbounded"),
    "product_exponent": ("sum", "leading"),
    "accumulate": ("tree", "after", "late", "aligned"),
    "lanes": ("together", "parity", "halves", "sixteens"),
}
# Values of the parameters that a plain rule does not change
_PLAIN = {
    "convert": None,
    "flush": False,
    "flush_result": None,
    "product_exponent": "sum",
    "slices": None,
    "accumulate": "tree",
    "lanes": "together",
    "scale": None,
    "product_overflow": False,
}

# Default of a field whose value __post_init__ derives from the other fields
_DERIVED: Any = None


@dataclass(frozen=True, kw_only=True)
class DotSpec:
    """The fused dot product D = C + Σ_{k<K} A_k·B_k, defined to the bit.

    1. E_max is the largest of the exponents E_a + E_b of the nonzero products (which are not
       normalised), the exponent E_c of a nonzero C, and ``emax_floor``.
    2. Every term is truncated to a multiple of q = 2^(E_max − window).
    3. The truncated terms are added exactly; the sum is normalised and rounded once.

    Parameters
    ----------
    input, output : FloatFormat or str
        Format of A and B; format of C and D.
    input_b : FloatFormat or str, optional
        Format of B, by default that of A.
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
    rounding : str
        "RNE", "RZ" or "RTO" (to odd). An overflow gives an infinity with all three (NaN if the
        format has no infinity).
    result_bits : int, optional
        Fraction bits of the result, by default all of the output format's; the bits below are
        zero. A subnormal result is a multiple of 2^(emin − result_bits).
    emax_floor : int, optional
        Lower bound on E_max.
    nan : int, optional
        Code of every NaN result, by default the output format's canonical NaN. It also takes the
        place of both infinities in a format without infinity.
    zero : str
        Sign of a zero result. "ieee": a sum that is exactly zero is +0, except that it is −0 if C
        and every product are negative zeros; a negative sum that rounds to zero is −0.
        "positive": every zero is +0, as on machines by NVIDIA. "exact": a sum that is
        exactly zero is +0, and a negative sum that rounds to zero is −0 (CDNA 1 and 3).
    convert : FloatFormat or str, optional
        Format to which the operands are first converted (RNE). In a wider format the subnormals of
        a narrow one are normal numbers, so its products have other exponents (Gaudi 2 and 3, FP8
        on Hopper and Blackwell); TF32 rounds FP32 operands (Gaudi).
    flush : bool
        If True, operands and C below the least normal number of the output format become zeros of
        their sign (AMX, Arm, Gaudi).
    flush_result : str, optional
        If a result below the least normal number becomes a zero of its sign: "after" judges the
        rounded result (CDNA 2, Gaudi), "before" the exact one (Arm), and "unbounded" the result
        rounded to its full precision as though there were no least exponent, which is tininess
        after rounding in IEEE 754-2019, section 7.5 (AMX, AVX-512). The three differ in exact
        values that are rounded up to the least normal number.
    product_exponent : str
        "sum": E_a + E_b. "leading": the exponent of the product's leading one (Gaudi 2).
    slices : tuple of (int, int), optional
        Masks of the significands of A and B. Each pair gives a partial product that is truncated by
        itself, with the exponent of the whole product (Gaudi, FP32 from narrow multipliers).
    accumulate : str
        How C is added. "tree": as one of the terms. "after": to the exact sum of the truncated
        products, whose E_max ignores C; one rounding follows (Gaudi 2). "late": to the rounded sum
        of the products; this addition has IEEE zeros and rounds RTO if ``rounding`` is RTO, else
        RNE (FP8 of ``mma.sync`` on Hopper and Blackwell, RVBNA, Arm). "aligned": as on CDNA 3, in
        which the sum T of the products truncated at their own E_max, then T and C, then their sum
        are floored (see ``golden.fp.general``).
    lanes : str
        How products are grouped. "together"; "parity": even and odd k are summed apart (CDNA 3);
        "halves": k mod 4 of 0 or 1 in a first sum, whose result is the C of the second, with the
        other half (FP8 of ``mma.sync``); "sixteens": exact sums of 16 products are the terms
        (MXFP4 and NVFP4 on Blackwell).
    scale : ScaleFormat or str, optional
        Format of a scale that each block of A, and each of B, is multiplied by.
    block : int, optional
        Number of values that share a scale.
    product_overflow : bool
        If True, a product of 2^(emax + 1) of the output or more is an infinity (CDNA 3).

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range, or if ``nan`` is not a NaN of the
        output format.
    """

    input: FloatFormat
    output: FloatFormat
    k: int
    window: int | None
    truncate: str = "floor"
    rounding: str = "RNE"
    result_bits: int = _DERIVED
    emax_floor: int | None = None
    nan: int | None = None
    zero: str = "ieee"
    input_b: FloatFormat = _DERIVED
    convert: FloatFormat | None = None
    flush: bool = False
    flush_result: str | None = None
    product_exponent: str = "sum"
    slices: tuple[tuple[int, int], ...] | None = None
    accumulate: str = "tree"
    lanes: str = "together"
    scale: ScaleFormat | None = None
    block: int | None = None
    product_overflow: bool = False

    if TYPE_CHECKING:  # the arguments may be names or None; the attributes never are

        def __init__(
            self,
            *,
            input: FloatFormat | str,
            output: FloatFormat | str,
            k: int,
            window: int | None,
            truncate: str = "floor",
            rounding: str = "RNE",
            result_bits: int | None = None,
            emax_floor: int | None = None,
            nan: int | None = None,
            zero: str = "ieee",
            input_b: FloatFormat | str | None = None,
            convert: FloatFormat | str | None = None,
            flush: bool = False,
            flush_result: str | None = None,
            product_exponent: str = "sum",
            slices: tuple[tuple[int, int], ...] | None = None,
            accumulate: str = "tree",
            lanes: str = "together",
            scale: ScaleFormat | str | None = None,
            block: int | None = None,
            product_overflow: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        input, output = as_format(self.input, "input"), as_format(self.output, "output")
        # The types are those of the finished object; an argument may still be None here.
        no_input_b = self.input_b is None  # pyright: ignore[reportUnnecessaryComparison]
        input_b = input if no_input_b else as_format(self.input_b, "input_b")
        check_int("k", self.k, 1)
        if self.window is not None:
            check_int("window", self.window, 1)
        for name, allowed in _CHOICES.items():
            one_of(name, getattr(self, name), allowed)
        all_bits = self.result_bits is None  # pyright: ignore[reportUnnecessaryComparison]
        result_bits = output.fraction_bits if all_bits else self.result_bits
        check_int("result_bits", result_bits, 1, output.fraction_bits)
        if self.emax_floor is not None:
            check_int("emax_floor", self.emax_floor, -(1 << 15), 1 << 15)
        if self.nan is not None:
            check_int("nan", self.nan, 0, (1 << output.storage_bits) - 1)
            if not output.is_nan(self.nan):
                raise ValueError(f"nan must be a NaN code of {output.name}, not {self.nan:#x}")
        for name in ("flush", "product_overflow"):
            check_type(name, getattr(self, name), bool)
        if self.convert is not None:
            object.__setattr__(self, "convert", as_format(self.convert, "convert"))
        self._check_scale()
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "input_b", input_b)
        object.__setattr__(self, "result_bits", result_bits)

    @property
    def nan_code(self) -> int:
        """The code of a NaN result."""
        return self.output.canonical_nan if self.nan is None else self.nan

    @property
    def is_plain(self) -> bool:
        """True if the three steps above are the whole rule.

        The fast models realise these rules, and so do all units of hardware that have dot products,
        but for ``zero="exact"``. ``hdl.fp.dot`` realises other rules as well.
        """
        return not self.changes

    @property
    def changes(self) -> tuple[str, ...]:
        """The parameters that make the rule another one than the three steps above."""
        odd = ("truncate='odd'",) if self.truncate == "odd" else ()
        odd += ("rounding='RTO'",) if self.rounding == "RTO" else ()
        return odd + tuple(
            f"{name}={getattr(self, name)!s}"
            for name, value in _PLAIN.items()
            if getattr(self, name) != value
        )

    def _check_scale(self) -> None:
        if self.scale is None:
            if self.block is not None:
                raise ValueError(f"block must be None without a scale, not {self.block!r}")
            return
        object.__setattr__(self, "scale", as_scale(self.scale))
        check_int("block", self.block, 1, self.k)
        if self.block is not None and self.k % self.block:
            raise ValueError(f"block must divide k = {self.k}, not be {self.block!r}")


@dataclass(frozen=True, kw_only=True)
class IntDotSpec:
    """The integer dot product D = C + Σ_{k<K} A_k·B_k of 8-bit operands with a 32-bit result.

    Parameters
    ----------
    k : int
        Number of terms in a block, at least 1.
    signed_a, signed_b : bool
        If True, the operand is int8, otherwise uint8.
    saturate : bool
        If True, the exact sum of a block, including C, is clipped to int32 instead of wrapping.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.
    """

    k: int
    signed_a: bool = True
    signed_b: bool = True
    saturate: bool = False

    def __post_init__(self) -> None:
        check_int("k", self.k, 1)
        for name in ("signed_a", "signed_b", "saturate"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
