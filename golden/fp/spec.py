"""Parameter objects of the fused dot products.

``DotSpec`` is composed of one object for each part of a rule. ``dot_spec`` makes one from all
parameters by name, as they stand in the files of machines.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from vitruvian.common.validate import check_int, check_type, one_of
from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.scales import SCALES, ScaleFormat, as_scale

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


#: Parameter of ``dot_spec`` -> its place in a ``DotSpec``, in the order in which texts show them
_PLACES = {
    "input": "a.format",
    "output": "result.format",
    "k": "sum.k",
    "window": "sum.window",
    "truncate": "sum.truncate",
    "rounding": "result.rounding",
    "result_bits": "result.bits",
    "emax_floor": "sum.floor",
    "nan": "result.nan",
    "zero": "result.zero",
    "input_b": "b.format",
    "convert": "a.convert",
    "flush": "flush",
    "flush_result": "result.flush",
    "product_exponent": "products.exponent",
    "slices": "products.slices",
    "accumulate": "addend.how",
    "lanes": "sum.lanes",
    "scale": "scales.format",
    "block": "scales.block",
    "product_overflow": "products.overflow",
}
#: Place -> the values with which a rule is a plain one
_PLAIN_VALUES: dict[str, tuple[object, ...]] = {
    "a.convert": (None,),
    "flush": (False,),
    "products.exponent": ("sum",),
    "products.slices": (None,),
    "products.overflow": (False,),
    "sum.truncate": ("floor", "magnitude"),
    "sum.lanes": ("together",),
    "addend.how": ("tree",),
    "result.rounding": ("RNE", "RZ"),
    "result.flush": (None,),
    "scales": (None,),
}
_PLAIN = tuple((place, attrgetter(place), values) for place, values in _PLAIN_VALUES.items())


@dataclass(frozen=True, kw_only=True, repr=False)
class DotSpec:
    """The fused dot product D = C + Σ_{k<K} A_k·B_k, defined to the bit.

    1. E_max is the largest of the exponents E_a + E_b of the nonzero products (which are not
       normalised), the exponent E_c of a nonzero C, and ``sum.floor``.
    2. Every term is truncated to a multiple of q = 2^(E_max − ``sum.window``).
    3. The truncated terms are added exactly; the sum is normalised and rounded once.

    A rule with ``products``, ``addend``, ``scales`` and ``flush`` at their defaults is these three
    steps; the other parts have further values for the steps of some machines. ``dot_spec`` makes a
    rule from all parameters by name, ``parameters`` gives them, and ``replace`` changes some.

    Parameters
    ----------
    a, b : Side
        The operands.
    sum : Sum
        How terms are aligned and added.
    result : Result
        How the sum is rounded.
    products : Products
        What a product is.
    addend : Addend
        How C is added.
    scales : Scales, optional
        The scales of blocks.
    flush : bool
        If True, operands and C below the least normal number of the output format become zeros of
        their sign (AMX, Arm, Gaudi).

    Raises
    ------
    TypeError, ValueError
        If a part has the wrong type, if the operands are converted to two formats, or if a block
        of scales does not divide K.
    """

    a: Side
    b: Side
    sum: Sum
    result: Result
    products: Products = Products()
    addend: Addend = Addend()
    scales: Scales | None = None
    flush: bool = False

    def __post_init__(self) -> None:
        for name, kind in (
            ("a", Side),
            ("b", Side),
            ("sum", Sum),
            ("result", Result),
            ("products", Products),
            ("addend", Addend),
            ("flush", bool),
        ):
            check_type(name, getattr(self, name), kind)
        if self.a.convert != self.b.convert:
            raise ValueError(f"b.convert must be that of a, {self.a.convert}, not {self.b.convert}")
        if self.scales is not None:
            check_type("scales", self.scales, Scales)
            check_int("scales.block", self.scales.block, 1, self.k)
            if self.k % self.scales.block:
                raise ValueError(
                    f"scales.block must divide k = {self.k}, not be {self.scales.block!r}"
                )

    # What the rules of all kinds of machines have

    @property
    def input(self) -> FloatFormat:
        """The format of A."""
        return self.a.format

    @property
    def input_b(self) -> FloatFormat:
        """The format of B."""
        return self.b.format

    @property
    def output(self) -> FloatFormat:
        """The format of C and D."""
        return self.result.format

    @property
    def k(self) -> int:
        """The number of terms in a block."""
        return self.sum.k

    @property
    def nan_code(self) -> int:
        """The code of a NaN result."""
        nan = self.result.nan
        return self.result.format.canonical_nan if nan is None else nan

    # Other spellings

    @property
    def is_plain(self) -> bool:
        """True if the three steps above are the whole rule.

        The fast models realise these rules, and so do all units of hardware that have dot products,
        but for the zeros "exact". ``hdl.fp.dot`` realises other rules as well.
        """
        return all(value_of(self) in values for _, value_of, values in _PLAIN)

    @property
    def changes(self) -> tuple[str, ...]:
        """The parts that make the rule another one than the three steps above."""
        found = ((place, value_of(self), values) for place, value_of, values in _PLAIN)
        return tuple(
            f"{place}={value!r}" if isinstance(value, str) else f"{place}={value}"
            for place, value, values in found
            if value not in values
        )

    def parameters(self) -> dict[str, Any]:
        """Return the value of each parameter of ``dot_spec``."""
        absent = ("scale", "block") if self.scales is None else ()
        return {
            name: None if name in absent else attrgetter(place)(self)
            for name, place in _PLACES.items()
        }

    def replace(self, **parameters: Any) -> "DotSpec":
        """Return this rule with other values of some parameters of ``dot_spec``.

        Raises
        ------
        TypeError, ValueError
            As ``dot_spec``.
        """
        return dot_spec(**{**self.parameters(), **parameters})

    def __repr__(self) -> str:
        """Return the shortest call of ``dot_spec`` that makes this rule."""
        parameters = self.parameters()
        least = dot_spec(
            input=self.input, output=self.output, k=self.k, window=self.sum.window
        ).parameters()
        needed = ("input", "output", "k", "window")
        shown = [
            f"{name}={_shown(name, value)}"
            for name, value in parameters.items()
            if name in needed or value != least[name]
        ]
        return f"dot_spec({', '.join(shown)})"


def _shown(name: str, value: object) -> str:
    """Return a parameter as text; formats with a name of their own are shown by it."""
    if name == "nan":
        return f"{value:#x}"
    if isinstance(value, (FloatFormat, ScaleFormat)):
        known = FORMATS | OTHER_FORMATS if isinstance(value, FloatFormat) else SCALES
        return repr(value.name if known.get(value.name) == value else value)
    return repr(value)


def dot_spec(
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
) -> DotSpec:
    """Return the rule with these parameters, each of which is a field of a part of ``DotSpec``.

    Parameters
    ----------
    input, output : FloatFormat or str
        Format of A and B; format of C and D.
    k, window, truncate, emax_floor, lanes
        ``k``, ``window``, ``truncate``, ``floor`` and ``lanes`` of ``Sum``.
    rounding, result_bits, nan, zero, flush_result
        ``rounding``, ``bits``, ``nan``, ``zero`` and ``flush`` of ``Result``.
    input_b : FloatFormat or str, optional
        Format of B, by default that of A.
    convert : FloatFormat or str, optional
        ``convert`` of both ``Side`` objects.
    flush : bool
        ``flush`` of ``DotSpec``.
    product_exponent, slices, product_overflow
        ``exponent``, ``slices`` and ``overflow`` of ``Products``.
    accumulate : str
        ``how`` of ``Addend``.
    scale, block
        ``format`` and ``block`` of ``Scales``; both or neither.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range, or if ``nan`` is not a NaN of the
        output format.

    Examples
    --------
    >>> dot_spec(input="fp16", output="fp32", k=8, window=24, truncate="magnitude", rounding="RZ")
    dot_spec(input='fp16', output='fp32', k=8, window=24, truncate='magnitude', rounding='RZ')
    """
    a, out = as_format(input, "input"), as_format(output, "output")
    b = a if input_b is None else as_format(input_b, "input_b")
    to = None if convert is None else as_format(convert, "convert")
    if scale is None and block is not None:
        raise ValueError(f"block must be None without a scale, not {block!r}")
    try:
        return DotSpec(
            a=Side(a, to),
            b=Side(b, to),
            products=Products(exponent=product_exponent, slices=slices, overflow=product_overflow),
            sum=Sum(k=k, window=window, truncate=truncate, floor=emax_floor, lanes=lanes),
            addend=Addend(accumulate),
            result=Result(
                format=out,
                rounding=rounding,
                bits=result_bits,  # pyright: ignore
                nan=nan,
                zero=zero,
                flush=flush_result,
            ),
            scales=None if scale is None else Scales(as_scale(scale), block),  # pyright: ignore
            flush=flush,
        )
    except (TypeError, ValueError) as error:
        # A message begins with a place; the caller knows the parameter.
        place, _, rest = str(error).partition(" ")
        names = {place: name for name, place in _PLACES.items()}
        raise type(error)(f"{names.get(place, place)} {rest}") from None


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
