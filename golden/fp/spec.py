"""Parameter objects of the fused dot products.

``DotSpec`` is composed of one object for each part of a rule. ``dot_spec`` makes one from all
parameters by name, as they stand in the files of machines.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from vitruvian.common.validate import check_int, check_type
from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.parts import Addend, Products, Result, Scales, Side, Sum
from vitruvian.golden.fp.scales import SCALES, ScaleFormat, as_scale

# Default of a field whose value __post_init__ derives from the other fields
_DERIVED: Any = None
_LARGEST_FLOOR = 1 << 15

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


_PRODUCTS, _ADDEND = Products(), Addend()


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
        Exponents and range of the products.
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
    products: Products = _PRODUCTS
    addend: Addend = _ADDEND
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
