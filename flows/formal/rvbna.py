"""Proofs that RVBNA in RTL equals its rule: a dot product to odd, and an addition to odd.

A unit adds C to the rounded dot product with an adder of its own. The proofs of the dot product
have C = +0, where the addition changes nothing; the adder is proven for every pair of operands.
With four pairs only bounded cases are proven: the others take too long.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from vitruvian.flows.formal.arithmetic import ProofNumber, rounded
from vitruvian.flows.formal.harness import ProofHarness
from vitruvian.flows.formal.proof import Mutation, Proof, proof_of_cases
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.table import find
from vitruvian.hdl.fp import dot
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.core import dotcore, finish
from vitruvian.hdl.fp.core.terms import TermBuilder
from vitruvian.hdl.fp.dot import DotProduct


def _odd(word: Value, places: Value, name: str, m: Module) -> Value:
    """Return a word shifted right, with its last bit set if a one was lost."""
    kept = Signal(len(word), name=f"{name}_kept")
    lost = Signal(name=f"{name}_lost")
    # As many of the lowest bits leave as a row of ones loses by the same shift.
    left, mask = (Signal(len(word), name=f"{name}_{part}") for part in ("left", "mask"))
    m.d.comb += [
        kept.eq(word >> places),
        left.eq(Const((1 << len(word)) - 1) >> places),
        mask.eq(Cat(*reversed([~bit for bit in left]))),
        lost.eq((word & mask).any()),
    ]
    return kept | lost


def dot_reference(m: Module, spec: DotSpec, a: Sequence[Value], b: Sequence[Value]) -> Value:
    """Return the code of a dot product by the rule of RVBNA, without C.

    Parameters
    ----------
    m : Module
        The module that gets the logic.
    spec : DotSpec
        A rule of RVBNA whose sums are normal numbers of the output.
    a, b : sequence of Value
        Codes of the operands.
    """
    out, window = spec.output, spec.sum.window
    assert window is not None and out.infinity is not None
    pairs = [
        (ProofNumber(x, spec.input), ProofNumber(y, spec.input_b))
        for x, y in zip(a, b, strict=True)
    ]
    fraction = spec.input.fraction_bits + spec.input_b.fraction_bits
    # The largest sum of two shifts, which are exponent fields less one.
    most = (1 << spec.input.exponent_bits) + (1 << spec.input_b.exponent_bits) - 4
    shifts, zeros = [], []
    largest: Value = Const(0, range(most + 1))
    for k, (x, y) in enumerate(pairs):
        shift = Signal(range(most + 1), name=f"shift{k}")
        zero, top = Signal(name=f"zero{k}"), Signal(range(most + 1), name=f"largest{k}")
        m.d.comb += [shift.eq(x.shift + y.shift), zero.eq(x.zero | y.zero)]
        m.d.comb += top.eq(Mux(~zero & (shift > largest), shift, largest))
        shifts.append(shift)
        zeros.append(zero)
        largest = top
    terms: list[Value] = []
    for k, (x, y) in enumerate(pairs):
        word = Signal(window + 2, name=f"product{k}")
        distance = Signal(range(most + 1), name=f"distance{k}")
        m.d.comb += [
            # Two integer bits, and as many fraction bits as the window.
            word.eq((x.significand * y.significand) << (window - fraction)),
            distance.eq(Mux(zeros[k], 0, largest - shifts[k])),
        ]
        aligned = _odd(word, distance, f"term{k}", m)
        terms.append(Mux(x.sign ^ y.sign, -aligned, aligned))
    bits = window + 2 + len(pairs).bit_length()
    raw, total = Signal(signed(bits + 1), name="raw"), Signal(bits, name="total")
    m.d.comb += [raw.eq(sum(terms[1:], terms[0])), total.eq(abs(raw))]
    code, expected = Signal(out.width - 1, name="code"), Signal(out.width, name="expected")
    least = spec.input.emin + spec.input_b.emin
    # As if the largest product had the least exponent; the difference is added to the exponent
    # field.
    unscaled = rounded(m, total, least - window, out, "RTO")
    m.d.comb += code.eq(Mux(total == 0, 0, unscaled + (largest << out.fraction_bits)))
    infinite = [(x.inf | y.inf, x.sign ^ y.sign) for x, y in pairs]
    plus = reduce(or_, [inf & ~sign for inf, sign in infinite])
    minus = reduce(or_, [inf & sign for inf, sign in infinite])
    nan = plus & minus
    for x, y in pairs:
        nan = nan | x.nan | y.nan | (x.inf & y.zero) | (x.zero & y.inf)
    m.d.comb += expected.eq(
        Mux(
            nan,
            spec.nan_code,
            Mux(plus | minus, Cat(Const(out.infinity, out.width - 1), minus), Cat(code, raw < 0)),
        )
    )
    return expected


def add_reference(m: Module, format: FloatFormat, a: Value, b: Value) -> Value:
    """Return the code of a + b, rounded to odd, with the signs of zero of IEEE 754.

    The sum is rounded in a fixed-point number whose places follow the larger exponent. A subnormal
    sum needs no rounding, because both operands are multiples of the least number.
    """
    f, below = format.fraction_bits, 2
    x, y = ProofNumber(a, format), ProofNumber(b, format)
    less = x.shift < y.shift
    large, small = (
        Mux(less, y.significand, x.significand),
        Mux(less, x.significand, y.significand),
    )
    bits = f + 1 + below
    word, distance = Signal(bits, name="small"), Signal(format.exponent_bits, name="distance")
    top = Signal(format.exponent_bits, name="top")
    m.d.comb += [
        word.eq(small << below),
        top.eq(Mux(less, y.shift, x.shift)),
        distance.eq(Mux(less, y.shift - x.shift, x.shift - y.shift)),
    ]
    aligned = _odd(word, distance, "aligned", m)
    raw, total = Signal(signed(bits + 2), name="raw"), Signal(bits + 1, name="total")
    differ = x.sign ^ y.sign
    m.d.comb += [
        raw.eq(Mux(differ, (large << below) - aligned, (large << below) + aligned)),
        total.eq(abs(raw)),
    ]
    cases: list[Value] = []
    exact = Signal(f, name="exact")
    # A subnormal sum in units of the least number; the bits below it are zeros.
    m.d.comb += exact.eq((total << top) >> below)
    for place in range(bits + 1):
        # The exponent field of a leading one at this place, and the code of the fraction behind it.
        field = Signal(signed(format.exponent_bits + 2), name=f"field{place}")
        case, value = Signal(name=f"case{place}"), Signal(format.width, name=f"value{place}")
        cut = place - f
        kept = total[cut : cut + f] if cut >= 0 else Cat(Const(0, -cut), total[:place])[:f]
        lost = total[:cut].any() if cut > 0 else Const(0, 1)
        infinity = Const(format.exponent_mask, format.width)
        normal = Cat(kept[0] | lost, kept[1:], field[: format.exponent_bits])
        m.d.comb += [
            field.eq(top + (1 + place - (f + below))),
            case.eq(total[place] & ~total[place + 1 :].any()),
            value.eq(
                Mux(
                    field < 1,
                    exact,
                    Mux(field >= (1 << format.exponent_bits) - 1, infinity, normal),
                )
            ),
        ]
        cases.append(value[: format.width - 1] & case.replicate(format.width - 1))
    code = reduce(or_, cases)
    sign = Mux(total == 0, x.sign & y.sign, Mux(less, y.sign, x.sign) ^ (raw < 0))
    nan = x.nan | y.nan | (x.inf & y.inf & differ)
    # Infinities of different signs gave a NaN before.
    inf_sign = Mux(x.inf, x.sign, y.sign)
    expected = Signal(format.width, name="expected")
    m.d.comb += expected.eq(
        Mux(
            nan,
            format.canonical_nan,
            Mux(
                x.inf | y.inf,
                Cat(Const(format.exponent_mask, format.width - 1), inf_sign),
                Cat(code, sign),
            ),
        )
    )
    return expected


def _dot(h: ProofHarness, *, stem: str, powers: int = 0, addend: bool = True) -> None:
    """Compare the unit to the rule.

    Without ``addend``, C is +0 and changes nothing. The last ``powers`` codes of B have a zero
    fraction.
    """
    spec = find(stem).rule
    assert isinstance(spec, DotSpec)
    unit = DotProduct(spec=spec)
    h.add(unit, driven=[] if addend else [unit.c])
    a, b = ([Value.cast(port[k]) for k in range(spec.k)] for port in (unit.a, unit.b))
    for code in b[spec.k - powers :]:
        h.assume(ProofNumber(code, spec.input_b).fraction == 0)
    total = dot_reference(h.m, spec, a, b)
    expected = add_reference(h.m, spec.output, total, unit.c) if addend else total
    h.rule("sum", unit.d == expected)


def _chosen(h: ProofHarness, name: str, codes: Sequence[int], width: int) -> Value:
    """Return one of a few codes; a free index selects it, and a too large index the first one."""
    index, value = h.free(name, range(len(codes))), Signal(width, name=f"value_{name}")
    choice: Value = Const(codes[0], width)
    for number, code in enumerate(codes[1:], 1):
        choice = Mux(index == number, code, choice)
    h.m.d.comb += value.eq(choice)
    return value


def _bounded(h: ProofHarness, *, stem: str, free: int, rest: Mapping[str, Sequence[int]]) -> None:
    """Compare the unit to the rule, C = +0, where only the first ``free`` pairs have any codes.

    ``rest`` has the codes without a sign of A and of B in the other pairs. The signs of A are free,
    those of B are 0.
    """
    spec = find(stem).rule
    assert isinstance(spec, DotSpec)
    unit = DotProduct(spec=spec)
    h.add(unit, driven=[unit.c, unit.a, unit.b])
    sides: dict[str, list[Value]] = {}
    for name, format in (("a", spec.input), ("b", spec.input_b)):
        sides[name] = []
        for k in range(spec.k):
            if k < free:
                code = h.free(f"{name}{k}", format.width)
            else:
                low = _chosen(h, f"choice_{name}{k}", rest[name], format.width - 1)
                sign = h.free(f"sign{k}") if name == "a" else Const(0, 1)
                code = Cat(low, sign)
            sides[name].append(code)
        h.m.d.comb += Value.cast(getattr(unit, name)).eq(Cat(*sides[name]))
    h.rule("sum", unit.d == dot_reference(h.m, spec, sides["a"], sides["b"]))


def _add(h: ProofHarness, *, format: str) -> None:
    f = FORMATS[format]
    unit = Adder(format=f, rounding="RTO")
    h.add(unit, driven=[unit.subtract])
    h.rule("sum", unit.d == add_reference(h.m, f, unit.a, unit.b))


_TRUNCATED = {
    "name": "the result is truncated",
    "function": "round_and_pack",
    "old": "kept[0] | inexact",
    "new": "kept[0]",
}
_DOT = (
    Mutation(
        name="products are chopped",
        owner=TermBuilder,
        function="_align",
        old="shifted[extra] | lost",
        new="shifted[extra]",
    ),
    Mutation(owner=dotcore, **_TRUNCATED),
    Mutation(
        name="a guard bit is missing",
        owner=dot,
        function="sums_of",
        old='accumulate="tree"',
        new='accumulate="tree", window=(spec.sum.window or 0) - 1',
    ),
)
_ADD = (
    Mutation(owner=finish, **_TRUNCATED),
    Mutation(
        name="the bits lost in the alignment are forgotten",
        owner=Adder,
        function="elaborate",
        old="Cat(lost, aligned)",
        new="Cat(Const(0, 1), aligned)",
    ),
)


def _dot_proof(formats: str, addend: bool) -> Proof:
    """Return the proof for two pairs of an 8-bit format."""
    return proof_of_cases(
        f"rvbna.dot.{formats}",
        f"DotProduct, RVBNA, K = 2, {formats} to fp32, {'any C' if addend else 'C = +0'}",
        "The products are aligned to odd, and their sum and that with C are rounded to odd.",
        _dot,
        _DOT,
        stem=f"rvbna_{formats}_n2_fp32",
        addend=addend,
    )


#: E4M3 without a sign: zero and all normal powers of two, 2^-6 to 2^8; and the number 1.
_POWERS, _ONE = (*(field << 3 for field in range(1, 16)), 0), 0x38


def _four_proof(name: str, words: str, mutations: tuple[Mutation, ...], **bounds: Any) -> Proof:
    """Return a proof for four pairs of E4M3, of which some have few codes."""
    return proof_of_cases(
        f"rvbna.dot4.{name}",
        f"DotProduct, RVBNA, K = 4, e4m3 to fp32, C = +0; {words}",
        "The products are aligned to odd, and their sum is rounded to odd.",
        _bounded,
        mutations,
        stem="rvbna_e4m3_n4_fp32",
        **bounds,
    )


PROOFS = (
    _dot_proof("e4m3", addend=True),
    _dot_proof("e5m2", addend=False),
    # Two products never need the second guard bit, so its lack is no mutation of the first proof.
    _four_proof(
        "pairs",
        "any two pairs, two zeros",
        _DOT[:2],
        free=2,
        rest={"a": (0,), "b": (_ONE,)},
    ),
    _four_proof(
        "powers",
        "any pair, three powers of two from 2^-6 to 2^8 or zeros",
        _DOT,
        free=1,
        rest={"a": _POWERS, "b": (_ONE,)},
    ),
    proof_of_cases(
        "rvbna.add.fp32",
        "Adder, fp32, RTO",
        "Every sum is the exact one, rounded to odd.",
        _add,
        _ADD,
        format="fp32",
    ),
)
