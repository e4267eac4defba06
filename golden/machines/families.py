"""Which compiled loops compute a rule."""

from vitruvian.golden.cube.chopped import fits_chopped
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec, fma_step
from vitruvian.golden.machines.table import Rule

_EXACT_BITS, _SHORT_BITS = 53, 11  # significand bits of FP64, and of an operand of short products
_MOST_TERMS = 16  # terms of a step whose truncated sum fits into 32 bits
_ODD_BITS = 29  # widest window of terms whose magnitudes, rounded to odd, fit into 32 bits
_WIDEST = 36  # window of sums of four groups that fit into the significand of FP64


def family(rule: Rule) -> str | None:
    """Return the name of the loops that compute a rule, or None if there are none.

    "chopped": one truncated sum, perhaps of converted operands, of slices or with scales. "late":
    likewise, and C is added afterwards. "grouped": exact sums of 16 products with scales.
    "aligned": CDNA 3. "exact": the exact sum, rounded once. "chain": fused multiply-adds. "pairs":
    rounded products. "apart": a truncated sum without C (Gaudi 2, RVBNA). "two": two products,
    whose sum is rounded before C is added (Arm). "phases": Tenstorrent.
    """
    if isinstance(rule, ChainSpec):
        return _chain_family(rule)
    if isinstance(rule, PhaseSpec):
        return "phases" if _is_phased(rule) else None
    if not isinstance(rule, DotSpec):
        return None
    if is_fma(rule):
        return "chain"
    if _is_apart(rule):
        return "apart"
    if _is_two(rule):
        return "two"
    plain = rule.replace(
        accumulate="tree",
        lanes="together",
        product_overflow=False,
        convert=None,
        scale=None,
        block=None,
        slices=None,
    )
    if rule.products.slices is not None:
        # A slice is multiplied as a short number that has the exponents of FP32.
        plain = plain.replace(input=FORMATS["bf16"], input_b=FORMATS["bf16"])
        if exponent_bits(rule) > 8 or rule.scales is not None or rule.addend.how == "late":
            return None
    if not plain.is_plain:
        return None
    if rule.sum.window is None:
        return "exact" if rule == plain and _is_exact(rule) else None
    if rule.addend.how == "aligned":
        return "aligned" if _is_aligned(rule) else None
    if rule.scales is not None:
        return _scaled_family(rule, plain)
    if rule.products.overflow or not fits_chopped(plain) or exponent_bits(rule) > 8:
        return None
    names = {("tree", "together"): "chopped", ("late", "together"): "late"}
    return (names | {("late", "halves"): "late"}).get((rule.addend.how, rule.sum.lanes))


def _chain_family(rule: ChainSpec) -> str | None:
    if rule.products == "fused":
        return "chain" if is_fma(rule.step) and not rule.zero_subnormals else None
    short = rule.input.significand_bits <= _SHORT_BITS and rule.output.name == "fp32"
    step = rule.step.replace(rounding="RNE", flush_result=None)
    odd = (rule.step.result.rounding, rule.step.result.flush) == ("RTO", "before")
    if is_fma(step) and short and odd and rule.step.flush and not rule.zero_subnormals:
        return "two" if rule.k == 2 else None
    flushed = rule.zero_subnormals and rule.step.result.flush == "after" and not rule.step.flush
    return "pairs" if is_fma(rule.step) and short and flushed and rule.k in (2, 4) else None


def is_fma(rule: DotSpec) -> bool:
    """Return True for a fused multiply-add of numbers of the output format, with RNE."""
    out = rule.output
    if (
        out.name not in ("fp32", "fp64")
        or rule.input != rule.input_b
        or rule.result.flush == "before"
    ):
        return False
    plain = rule.replace(flush=False, flush_result=None, nan=None)
    return _within(rule.input, out) and plain == fma_step(rule.input, out)


def _within(f: FloatFormat, out: FloatFormat) -> bool:
    """Return True if every number of a format is one of the output format."""
    least = f.emin - f.fraction_bits >= out.emin - out.fraction_bits
    return least and f.emax <= out.emax and f.fraction_bits <= out.fraction_bits


def exponent_bits(rule: DotSpec) -> int:
    """Return the exponent bits of the widest format of the operands, converted or not."""
    return max(f.exponent_bits for f in (rule.input, rule.input_b, rule.a.convert or rule.input))


def _is_exact(rule: DotSpec) -> bool:
    rounded = (
        rule.output.name == "fp32" and rule.result.rounding == "RNE" and rule.result.bits == 23
    )
    bits = rule.input.significand_bits + rule.input_b.significand_bits
    fits = bits <= _EXACT_BITS and exponent_bits(rule) <= 8 and rule.k <= _MOST_TERMS
    return rounded and fits and rule.result.zero in ("exact", "ieee")


def _is_apart(rule: DotSpec) -> bool:
    """Return True if products are truncated without C, and the result has one of two roundings."""
    f, g = (rule.a.convert or own for own in (rule.input, rule.input_b))
    if rule.sum.window is None or not _is_fp32(rule) or exponent_bits(rule) > 8:
        return False
    others = (rule.sum.floor, rule.sum.lanes, rule.scales, rule.products.overflow)
    bits = rule.sum.window + 2 + rule.k.bit_length()
    if others != (None, "together", None, False) or bits > _EXACT_BITS:
        return False
    how = (rule.addend.how, rule.sum.truncate, rule.result.rounding, rule.result.zero)
    leading, sliced = rule.products.exponent == "leading", rule.products.slices is not None
    if how == ("late", "odd", "RTO", "positive"):
        short = max(f.significand_bits, g.significand_bits) <= _SHORT_BITS
        plain = not (rule.flush or rule.result.flush or leading or sliced)
        return plain and short and rule.sum.window <= _ODD_BITS
    if how != ("after", "magnitude", "RNE", "ieee") or (leading and sliced):
        return False
    # The largest product is not truncated to zero, so only zeros have a sum of −0.
    kept = leading or rule.sum.window >= f.fraction_bits + g.fraction_bits
    short = f.significand_bits + g.significand_bits <= _EXACT_BITS
    return kept and short and rule.result.flush in (None, "after")


def _is_two(rule: DotSpec) -> bool:
    plain = rule.replace(accumulate="tree")
    if (
        rule.addend.how != "late"
        or rule.sum.window is not None
        or not plain.is_plain
        or rule.k != 2
    ):
        return False
    short = max(f.significand_bits for f in (rule.input, rule.input_b)) <= _SHORT_BITS
    rounded = _is_fp32(rule) and (rule.result.rounding, rule.result.zero) == ("RNE", "ieee")
    return rounded and short and exponent_bits(rule) <= 8


def _is_fp32(rule: DotSpec) -> bool:
    return rule.output.name == "fp32" and rule.result.bits == rule.output.fraction_bits


def _is_phased(rule: PhaseSpec) -> bool:
    half = "fp16" if rule.narrow else "bf16"
    return rule.shared_bits is None and rule.output.name in ("fp32", half)


def _is_aligned(rule: DotSpec) -> bool:
    rounded = (
        rule.output.name == "fp32" and rule.result.rounding == "RNE" and rule.result.bits == 23
    )
    short = max(f.significand_bits for f in (rule.input, rule.input_b)) <= _SHORT_BITS
    fits = short and exponent_bits(rule) <= 8 and rule.k <= _MOST_TERMS and rule.a.convert is None
    named = (
        rule.sum.truncate == "magnitude" and rule.result.zero == "exact" and rule.sum.floor is None
    )
    # Infinities among the products of the lanes "parity" would be left to no plain form.
    return rounded and fits and named and rule.sum.lanes in ("together", "parity")


def _scaled_family(rule: DotSpec, plain: DotSpec) -> str | None:
    """Return the family of a rule with scales, in the forms that machines have."""
    if rule.addend.how != "tree" or rule.products.overflow or rule.output.name != "fp32":
        return None
    if rule.sum.lanes == "sixteens":
        names = (
            rule.input.name,
            rule.input_b.name,
            rule.sum.truncate,
            rule.result.zero,
            rule.result.rounding,
        )
        fits = names == ("fp4e2m1", "fp4e2m1", "magnitude", "positive", "RZ")
        fits = fits and rule.a.convert is None and rule.sum.floor is not None
        return (
            "grouped"
            if fits and rule.sum.window is not None and rule.sum.window <= _WIDEST
            else None
        )
    together = rule.sum.lanes == "together" and fits_chopped(plain) and exponent_bits(rule) <= 5
    return (
        "chopped"
        if together and rule.scales is not None and rule.scales.format.name == "ue8m0"
        else None
    )
