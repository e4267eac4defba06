"""Proofs that arithmetic units equal word-level references, for every operand.

A reference adds in one wide fixed-point number and rounds once at the bit that the leading one
selects. It has neither the Booth rows, the alignment, nor the leading-zero counts of the RTL.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.flows.formal.harness import ProofHarness
from vitruvian.flows.formal.proof import Mutation, Proof, proof_of_cases
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import dot_spec
from vitruvian.golden.fp.window import ieee_window
from vitruvian.hdl.fp.core import dotcore, finish, terms
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.mul import Multiplier


class ProofNumber:
    """The fields and the class of a code."""

    def __init__(self, code: Value, format: FloatFormat):
        code = Value.cast(code)
        f, e = format.fraction_bits, format.exponent_bits
        self.format = format
        self.fraction, self.exponent, self.sign = code[:f], code[f : f + e], code[f + e]
        ones = self.exponent == (1 << e) - 1
        none = Const(0, 1)
        self.inf = ones & (self.fraction == 0) if format.has_infinity else none
        quiet = ones & (self.fraction != 0) if format.has_infinity else none
        if format.specials.value == "ocp_e4m3":
            quiet = ones & (self.fraction == (1 << f) - 1)
        self.nan = quiet
        self.significand = Cat(self.fraction, self.exponent != 0)
        self.zero = ~(self.exponent.any() | self.fraction.any())
        #: Distance of the significand's place from that of a subnormal.
        self.shift = Mux(self.exponent == 0, 0, self.exponent - 1)[:e]


def rounded(
    m: Module, total: Value, weight: int, format: FloatFormat, rounding: str = "RNE"
) -> Value:
    """Return the code without a sign of a fixed-point number, rounded once.

    Parameters
    ----------
    total : Value
        The magnitude.
    weight : int
        The exponent of its lowest bit.
    format : FloatFormat
        An IEEE format.
    rounding : {"RNE", "RTO"}
        To nearest even, or to odd.
    """
    f, width, limit = format.fraction_bits, len(total), format.infinity
    assert limit is not None
    cases: list[Value] = []
    for top in range(width):
        exponent = weight + top
        # The exponent of the result's last place, which is at least that of a subnormal.
        cut = max(exponent - f, format.emin - f) - weight
        kept: Value = total[cut:] if cut > 0 else Cat(Const(0, -cut), total)
        half = total[cut - 1] if 0 < cut <= width else Const(0, 1)
        below = total[: cut - 1].any() if cut > 1 else Const(0, 1)
        # The hidden bit adds 1 to the exponent field, and so does a carry out of the fraction.
        base = (max(exponent, format.emin) + format.bias - 1) << f
        value, case = Signal(format.width + 1, name=f"value{top}"), Signal(name=f"case{top}")
        fraction = kept[: f + 1] + (half & (below | kept[0]))
        if rounding == "RTO":
            fraction = kept[: f + 1] | half | below
        m.d.comb += [
            case.eq(total[top] & ~total[top + 1 :].any()),
            value.eq(base + fraction),
        ]
        code = Mux(value >= limit, limit, value) if base < limit else Const(limit)
        cases.append(code[: format.width - 1] & case.replicate(format.width - 1))
    return reduce(or_, cases)


def _multiply(
    h: ProofHarness, *, format: str, output: str | None = None, multiplier: str = "booth"
) -> None:
    unit = h.add(Multiplier(format=format, output=output, multiplier=multiplier))
    a, b = ProofNumber(unit.a, unit.format), ProofNumber(unit.b, unit.format)
    m, f, out = h.m, unit.format, unit.output
    product = Signal(2 * f.significand_bits, name="product")
    m.d.comb += product.eq(a.significand * b.significand)
    bits = len(product) + 2 * (1 << f.exponent_bits)
    total = Signal(bits, name="total")
    m.d.comb += total.eq(product << (a.shift + b.shift))
    code = rounded(m, total, 2 * (f.emin - f.fraction_bits), out)
    nan = a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf)
    inf = a.inf | b.inf
    expected = Signal(out.width)
    m.d.comb += expected.eq(
        Mux(
            nan,
            out.canonical_nan,
            Cat(Mux(inf, out.infinity, code)[: out.width - 1], a.sign ^ b.sign),
        )
    )
    h.rule("product", unit.d == expected)


def _dot(h: ProofHarness, *, format: str, output: str) -> None:
    """Compare a dot product of two pairs with C = ±0 to the exact sum, rounded once."""
    f, out = FORMATS[format], FORMATS[output]
    spec = dot_spec(input=f, output=out, k=2, window=ieee_window(f, out))
    unit = DotProduct(spec=spec)
    h.add(unit, driven=[unit.c])
    m, c_sign = h.m, h.free("c_sign")
    m.d.comb += unit.c.eq(Cat(Const(0, out.width - 1), c_sign))
    pairs = [(ProofNumber(unit.a[k], f), ProofNumber(unit.b[k], f)) for k in range(2)]
    # The term of the larger exponent moves to the left, by the difference of the exponents.
    most = 2 * ((1 << f.exponent_bits) - 2)
    width = 2 * f.significand_bits + most
    products, shifts = [], []
    for k, (a, b) in enumerate(pairs):
        product = Signal(2 * f.significand_bits, name=f"product{k}")
        shift = Signal(range(most + 1), name=f"shift{k}")
        m.d.comb += [product.eq(a.significand * b.significand), shift.eq(a.shift + b.shift)]
        products.append(product)
        shifts.append(shift)
    less = shifts[0] < shifts[1]
    large, small = Mux(less, products[1], products[0]), Mux(less, products[0], products[1])
    distance, least = Signal(range(most + 1)), Signal(range(most + 1))
    differ = pairs[0][0].sign ^ pairs[0][1].sign ^ pairs[1][0].sign ^ pairs[1][1].sign
    high = Signal(width)
    raw, total = Signal(signed(width + 2)), Signal(width + 1)
    m.d.comb += [
        distance.eq(Mux(less, shifts[1] - shifts[0], shifts[0] - shifts[1])),
        least.eq(Mux(less, shifts[0], shifts[1])),
        high.eq(large << distance),
        raw.eq(Mux(differ, high - small, high + small)),
        total.eq(abs(raw)),
    ]
    code = Signal(out.width - 1)
    unscaled = rounded(m, total, 2 * (f.emin - f.fraction_bits), out)
    m.d.comb += code.eq(Mux(total == 0, 0, unscaled + (least << out.fraction_bits)))
    signs = [a.sign ^ b.sign for a, b in pairs]
    assert out.infinity is not None
    infinite = [a.inf | b.inf for a, b in pairs]
    nan = Cat(
        *(a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf) for a, b in pairs),
        infinite[0] & infinite[1] & (signs[0] ^ signs[1]),
    ).any()
    inf = Cat(*infinite).any()
    # An exact zero sum is -0 only if all its terms are (IEEE 754, section 6.3).
    zero_sign = Cat(signs[0], signs[1], c_sign).all() & pairs_are_zero(pairs)
    large_sign = Mux(less, signs[1], signs[0])
    sign = Mux(total == 0, zero_sign, large_sign ^ (raw < 0))
    expected = Signal(out.width)
    inf_sign = Mux(infinite[0], signs[0], signs[1])
    m.d.comb += expected.eq(
        Mux(
            nan,
            out.canonical_nan,
            Mux(
                inf,
                Cat(Const(out.infinity, out.width - 1), inf_sign),
                Cat(code, sign),
            ),
        )
    )
    h.rule("sum", unit.d == expected)


def pairs_are_zero(pairs: list[tuple[ProofNumber, ProofNumber]]) -> Value:
    """Return 1 if every product is zero."""
    return Cat(*(a.zero | b.zero for a, b in pairs)).all()


_TIES_UP = {
    "name": "ties round away from zero",
    "function": "round_and_pack",
    "old": "up = word[0] & (rest | word[1])",
    "new": "up = word[0]",
}
_MULTIPLY = (
    Mutation(owner=finish, **_TIES_UP),
    Mutation(
        name="zero times infinity is infinite",
        owner=Multiplier,
        function="elaborate",
        old=" | (a.zero & b.inf)",
        new="",
    ),
)
_DOT = (
    Mutation(owner=dotcore, **_TIES_UP),
    Mutation(
        name="the negation of a product misses its carry",
        owner=terms.TermBuilder,
        function="build",
        old="ones.append(sign)",
        new="ones.append(Const(0, 1))",
    ),
)


def _product_proof(name: str, shown: str, operands: str, **options: str) -> Proof:
    return proof_of_cases(
        f"fp.multiply.{name}",
        f"Multiplier, {shown}",
        f"Every product is the exact one, rounded once{operands}.",
        _multiply,
        _MULTIPLY,
        format=name,
        **options,
    )


def _sum_proof(name: str) -> Proof:
    return proof_of_cases(
        f"fp.dot.{name}",
        f"DotProduct, K = 2, {name} to fp32, C = ±0",
        "Every dot product is the exact sum of the exact products, rounded once.",
        _dot,
        _DOT,
        format=name,
        output="fp32",
    )


PROOFS = (
    _product_proof("fp8e5m2", "fp8e5m2 to fp16", "", output="fp16"),
    _product_proof(
        "fp16", "fp16, multiplier dsp", ", for every class of operands", multiplier="dsp"
    ),
    _sum_proof("fp8e5m2"),
    _sum_proof("fp8e4m3"),
)
