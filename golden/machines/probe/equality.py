"""One rule for all rules that give the same results, whatever the operands.

``canonical`` replaces parameters that provably have no effect. Two rules with the same canonical
rule are equal. The proofs are about one sum (of a half, with the lanes "halves") and use these
bounds of its terms, which are the products and, in a "tree", C (see ``bounds``):

- no term has an exponent above *high* or below *low*, nor a bit below 2^*last*;
- a term of exponent E has no bit below 2^(E − *fine*), and is at least 2^(E − *hollow*).

Bits below q = 2^(E_max − F) are cut. The least place of a result is 2^*least*.

1. *Floor of E_max.* It has no effect if floor ≤ low. If floor − F ≤ last, no bit is cut where the
   floor is E_max, nor would one be cut without it, where q is smaller. If only a term that is alone
   can lie below the floor (a C that no product joins, or the only product), it is cut once, and
   this does not show if the rounding of the result is coarser: by a bit with "floor", by two with
   "odd", and at all with "magnitude" and RZ.
2. *Window.* If high − F ≤ last, nothing is ever cut; then F, the way to truncate and the exponents
   that products are aligned by do not matter. With "floor" it is enough that products are never cut
   and C loses at most its last bit, which the sticky bit then is. An exact sum of the products that
   C joins "after" is then the exact sum of all terms.
3. *One term.* Without a floor, a term that is alone sets E_max. It is not cut if F ≥ fine. Else it
   is at least 2^(E_max − hollow), so that its last place is at least 2^(E_max − hollow − bits); if
   that is q (RZ, RTO) or 2q (RNE) with "floor", 2q or 4q with "odd", the rounding sees on which
   side of every boundary the term lies: it is that of the exact term. With "magnitude" this holds
   for RZ and q.
4. *Two products.* Without a floor, let the larger exponent be E_max, and F ≥ fine + hollow + 2.
   Then only the other product can be cut. If it is, it has a bit below q, so that it is less than
   2^(E_max − F + fine + 1) ≤ 2^(E_max − hollow − 1), half of the first one. The sum is at least
   that half, and 3 holds with one bit more; not with "magnitude", as the sum may be a difference.
5. *A product and C.* "floor" and F of at least ``ieee_window`` round correctly; so does "odd" with
   one bit more. RZ and RTO need one bit less.
6. *Conversion.* It changes only the exponents of products with a subnormal factor, and so E_max
   only where such a product has it. If the largest exponent of these products − F ≤ last, nothing
   is cut there. The exponents do not matter with "leading" either. A conversion to a format in
   which all operands have the same exponents changes nothing.
7. *Result bits.* A sum is a multiple of q, with "floor" of q/2, and of 2^last if nothing is cut;
   it is at most the sum of the largest terms. If all its bits fit into the result, and the least
   place is not above its last bit, every rounding is exact. With block scales, a sum that has the
   last bit has a block of small terms, because exponents in a block are not far apart.
8. *Flushing.* Rounding towards zero and to odd never reaches the least normal number from below, so
   a result is judged alike before and after it. So it is if tiny results are never rounded, as the
   least place is not above the last bit of a sum. If C is flushed and products are multiples of
   2^(emin + fraction bits + 1), a tiny result would need a C below that number's half, whose
   difference to a product is not tiny; so there is none.
   If a C below the least normal number is cut whole by every product, which "magnitude" does for
   least normal exponent ≤ low − F, it is a result only if it is alone. So it is with RNE if every
   exact sum of products is a number of the result, and C less than half its place. Flushing C and
   flushing the result give a zero, of the same sign if every zero is +0.
9. *Zeros.* Without flushing, if the least place is not above the last bit of a sum, or with
   rounding to odd, no nonzero sum becomes zero, and "exact" is "positive". The results of a block
   are not tiny if flushing applies to them, so that by 8 the next block has no tiny result, and
   the last block of several no zero but +0.
10. *Groups.* The terms of the lanes "sixteens" are aligned by their scales, not by products.
    *Halves.* With K = 4, the first half is the products 0 and 1 and the second half 2 and 3, which
    are two blocks of K = 2.
11. *Late C.* If a sum of products is a number of the result that is not flushed, adding C late is
    adding it to the exact sum.
12. *Overflow of products.* It cannot happen if the largest product is below 2^(emax + 1).
13. *Other rules.* The steps of CDNA 3 ("aligned") have windows of their own. A chain of fused
    multiply-adds in rising k is a windowed sum of one product, and so is one of rounded products if
    each is added at once, with a late C. If there are as many accumulators as terms, each holds one
    rounded product, and the pairs are those of rounded products; only signs of zeros differ, which
    are lost if zeros of operands and of C become +0. If C is ignored and products are multiples of
    the least normal number, so are all sums, and nothing is flushed. Integers that wrap do not
    depend on K.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.fp.window import ieee_window
from vitruvian.golden.machines.probe.bounds import Bounds, addend, largest_subnormal, product
from vitruvian.golden.machines.probe.space import conversion_key
from vitruvian.golden.machines.spec import ChainSpec
from vitruvian.golden.machines.table import Rule

_NEVER = 1 << 20  # more bits than any window has


def equal_rules(x: Rule, y: Rule, terms: int | None = None) -> bool:
    """Return True if two rules are proved to give the same results for all operands.

    Parameters
    ----------
    terms : int, optional
        As in ``canonical``.
    """
    return canonical(x, terms) == canonical(y, terms)


def canonical(rule: Rule, terms: int | None = None) -> Rule:
    """Return the rule with a fixed value for every parameter that has no effect.

    The rule that is returned gives the same results for all operands. It may have no window where
    ``golden.fp`` computes only rules with one.

    Parameters
    ----------
    terms : int, optional
        The number of terms of all operands, for rules of an instruction with several blocks.
    """
    if isinstance(rule, IntDotSpec):
        return rule if rule.saturate else replace(rule, k=1)
    found = _chain(rule) if isinstance(rule, ChainSpec) else rule
    if not isinstance(found, DotSpec):
        return found
    found = _dot(found)
    several = terms is not None and terms > found.k
    if several and found.result.zero == "exact" and _sees_no_flushed_zero(found):
        return found.replace(zero="positive")
    return found


def _chain(rule: ChainSpec) -> ChainSpec | DotSpec:
    """Return a windowed sum with the same results, or the chain with its plainest parameters."""
    step = rule.step
    if rule.complex or rule.products == "paired":
        return rule
    if rule.k == 1:
        rule = replace(rule, descending=False)
    at_once = rule.products == "rounded" and rule.k == 1 and step.result.rounding != "RZ"
    one_by_one = rule.products == "fused" and rule.accumulators == 1 and not rule.descending
    if not rule.zero_subnormals and one_by_one:
        return step
    if not rule.zero_subnormals and at_once and step.result.zero == "ieee":
        return step.replace(accumulate="late")
    exact = _exact_chain(rule)
    if exact is not None:
        return exact
    found: dict[str, Any] = {}
    if one_by_one:
        found["k"] = 1
    cleared = rule.zero_subnormals and step.flush and rule.add_c == "last"
    if cleared and rule.accumulators > 1 and rule.k is not None and rule.k <= rule.accumulators:
        found["products"] = "rounded"
    if found.get("products", rule.products) == "rounded":
        found |= {"accumulators": 1, "descending": False, "add_c": "last"}
    elif rule.accumulators == 1:
        found["add_c"] = "last"
    # A step is also what adds two sums, so that only its window and its flushing may change.
    step = step.replace(nan=step.nan_code, window=ieee_window(rule.input, rule.output))
    if step.result.flush is not None and step.result.rounding != "RNE":
        step = step.replace(flush_result="after")
    if _is_never_tiny(step):
        step = step.replace(flush_result=None)
    a, b, least = rule.input, rule.input_b, rule.output.emin
    lowest = (a.emin - a.fraction_bits, b.emin - b.fraction_bits)
    if rule.add_c == "none" and min(*lowest, sum(lowest)) >= least:
        step = step.replace(flush=False, flush_result=None)
    return replace(rule, step=step, **found)


def _exact_chain(rule: ChainSpec) -> DotSpec | None:
    """Return the windowed sum that a chain is whose sums without C are exact, or None."""
    fused = rule.products == "fused"
    if rule.zero_subnormals or rule.k is None or rule.add_c != "last":
        return None
    if fused and rule.accumulators == 1:
        return None
    late = rule.step.replace(k=rule.k, window=None, accumulate="late", rounding="RNE")
    if _sum_bits(late) > late.result.bits or _with_c_after(late).addend.how == "late":
        return None
    zero = "exact" if fused else "ieee"
    return late.replace(accumulate="tree", rounding=rule.step.result.rounding, zero=zero)


def _dot(rule: DotSpec) -> DotSpec:
    rule = rule.replace(nan=rule.nan_code)
    if rule.products.overflow and product(rule).largest < Fraction(2) ** (rule.output.emax + 1):
        rule = rule.replace(product_overflow=False)
    if rule.addend.how == "aligned":
        rule = rule.replace(window=1, truncate="magnitude", emax_floor=None)
        return _without_signs(rule.replace(convert=_conversion(rule)))
    if rule.sum.lanes == "sixteens":
        rule = rule.replace(product_exponent="sum")
    if rule.sum.lanes == "halves" and rule.k == 4 and rule.addend.how != "late":
        rule = rule.replace(k=2, lanes="together")
    rule = _without_floor(rule)
    rule = _without_window(rule)
    rule = rule.replace(convert=_conversion(rule))
    rule = _without_rounding(rule)
    return _with_tiny_c_flushed(_without_signs(rule))


# ------------------------------------------------------------------ facts


def _has_c(rule: DotSpec) -> bool:
    """Return True if C, or the sum of the first half, is one of the terms."""
    return rule.addend.how == "tree" or (rule.addend.how == "late" and rule.sum.lanes == "halves")


def _terms(rule: DotSpec) -> Bounds:
    """Return the bounds of all terms of a sum."""
    p = product(rule)
    if not _has_c(rule):
        return p
    c = addend(rule)
    return Bounds(
        min(p.low, c.low),
        max(p.high, c.high),
        min(p.last, c.last),
        max(p.fine, c.fine),
        max(p.hollow, c.hollow),
        max(p.size, c.size),
        max(p.largest, c.largest),
    )


def _products(rule: DotSpec) -> int:
    """Return the number of products in a sum; slices and groups of products count as many."""
    if rule.products.slices is not None or rule.sum.lanes == "sixteens":
        return _NEVER
    return rule.k // 2 if rule.sum.lanes == "halves" else rule.k


def _least(rule: DotSpec) -> int:
    """Return the exponent of the least place of a result."""
    return rule.output.emin - rule.result.bits


def _last_bit(rule: DotSpec) -> int:
    """Return the exponent of a bit below which no sum has one; C may join it later."""
    terms = _terms(rule)
    if rule.addend.how == "aligned":
        return min(terms.last, addend(rule).last)
    if rule.sum.window is None:
        return terms.last
    emax = terms.low if rule.sum.floor is None else max(terms.low, rule.sum.floor)
    return max(terms.last, emax - rule.sum.window - (rule.sum.truncate == "floor"))


def _coarser(rule: DotSpec) -> int:
    """Return by how many bits a place must be above q for a rounding to be exact."""
    nearest = rule.result.rounding == "RNE"
    if rule.sum.truncate == "magnitude":
        return 0 if rule.result.rounding == "RZ" else _NEVER
    return nearest + (rule.sum.truncate == "odd")


# ------------------------------------------------------------------ steps


def _without_floor(rule: DotSpec) -> DotSpec:
    terms, floor = _terms(rule), rule.sum.floor
    if floor is None:
        return rule
    if rule.sum.window is None or floor - rule.sum.window <= terms.last or floor <= terms.low:
        return rule.replace(emax_floor=None)
    c_alone = _has_c(rule) and floor <= product(rule).low
    one = not _has_c(rule) and _products(rule) == 1 and rule.addend.how == "late"
    extra = _coarser(rule) + (rule.result.flush == "unbounded")
    if (c_alone or one) and floor - rule.sum.window + extra <= _least(rule):
        return rule.replace(emax_floor=None)
    return rule


def _without_window(rule: DotSpec) -> DotSpec:
    if not _is_uncut(rule):
        return rule
    rule = rule.replace(window=None, truncate="magnitude", product_exponent="sum", emax_floor=None)
    if rule.addend.how == "after":
        return rule.replace(accumulate="tree")
    return rule


def _is_uncut(rule: DotSpec) -> bool:
    """Return True if no bit that is cut has an effect."""
    terms, p, f = _terms(rule), product(rule), rule.sum.window
    floor = rule.sum.floor
    if f is None or max(terms.high, terms.high if floor is None else floor) - f <= terms.last:
        return True
    if floor is not None:
        return False
    count, has_c, bits = _products(rule), _has_c(rule), rule.result.bits
    if has_c and rule.sum.truncate == "floor" and rule.products.slices is None:
        c_loses_one = p.high - f <= addend(rule).last + 1 and addend(rule).high - f <= p.last
        if p.high - f <= p.last and c_loses_one and f >= addend(rule).fine:
            return True
    if not has_c and count == 1 and f >= p.fine:
        return True
    if rule.addend.how == "after":
        return False
    if not has_c and count == 1:
        return f >= p.hollow + bits + _coarser(rule)
    if not has_c and count == 2 and rule.sum.truncate != "magnitude":
        return f >= p.fine + p.hollow + 2 and f >= p.hollow + 1 + bits + _coarser(rule)
    if has_c and count == 1 and rule.products.exponent == "sum" and rule.a.convert is None:
        plain = rule.scales is None and rule.sum.truncate != "magnitude"
        exact = ieee_window(rule.input, rule.output, rule.input_b) - (rule.result.rounding != "RNE")
        return plain and f >= exact + (rule.sum.truncate == "odd")
    return False


def _is_never_tiny(rule: DotSpec) -> bool:
    """Return True if no result is below the least normal number, and not zero."""
    last = product(rule).last
    known = rule.flush and rule.addend.how != "aligned"
    return known and last > rule.output.emin + rule.output.fraction_bits


def _conversion(rule: DotSpec) -> Any:
    """Return the first conversion that has the effect of the rule's."""
    if rule.a.convert is None or rule.input.storage_bits > 16:
        return rule.a.convert
    names = ("tf32", "fp16", "bf16", "fp32")
    keys = {
        to: conversion_key(rule.input, to) + conversion_key(rule.input_b, to)
        for to in (None, rule.a.convert, *(FORMATS[name] for name in names))
    }
    found = next(to for to, key in keys.items() if key == keys[rule.a.convert])
    lossless = keys[rule.a.convert][1::2] == keys[None][1::2]
    if not lossless or rule.addend.how == "aligned":
        return found
    if rule.products.exponent == "leading" or rule.sum.window is None:
        return None
    return None if largest_subnormal(rule) - rule.sum.window <= _terms(rule).last else found


def _sum_bits(rule: DotSpec) -> int:
    """Return the fraction bits that hold every sum, whose leading bit is its first one."""
    if _products(rule) == _NEVER:
        return _NEVER
    terms, p, c = _terms(rule), product(rule), addend(rule)
    count, has_c = _products(rule), _has_c(rule)
    total = count * p.largest + (c.largest if has_c else 0)
    bits = int(total / Fraction(2) ** terms.last).bit_length() - 1
    if rule.sum.window is None:
        return bits
    relative = count * p.size + (c.size if has_c else 0)
    if rule.sum.truncate != "magnitude":  # a term that is cut may grow by one unit
        relative += Fraction(count + has_c, 1 << rule.sum.window)
    depth = rule.sum.window + (rule.sum.truncate == "floor")
    most = depth + int(relative).bit_length() - 1
    if (
        rule.scales is not None
        and rule.k > rule.scales.block
        and not has_c
        and depth == rule.sum.window
    ):
        # A term with a bit at q or below has a small exponent, and so have those of its block.
        plain = product(rule.replace(scale=None, block=None))
        far = max(rule.sum.window - p.fine - (plain.high - plain.low), 0)
        smaller = relative - rule.scales.block * p.size * (1 - Fraction(1, 1 << far))
        most = max(depth - 1 + int(relative).bit_length(), depth + int(smaller).bit_length()) - 1
    return min(bits, most)


def _without_rounding(rule: DotSpec) -> DotSpec:
    """Return a rule whose sums fit into the result with the plainest rounding."""
    if rule.addend.how == "after" or rule.result.bits < _sum_bits(rule):
        return rule
    flushed = rule.result.flush in ("before", "unbounded")
    flushed = flushed or (rule.result.flush == "after" and rule.result.rounding != "RNE")
    kept = _least(rule) <= _last_bit(rule)
    if not kept and not flushed:
        return rule
    rule = rule.replace(result_bits=rule.output.fraction_bits)
    if not kept:
        rule = rule.replace(flush_result="before")
    to_odd = rule.addend.how == "late" and rule.result.rounding == "RTO"
    return _with_c_after(rule if to_odd else rule.replace(rounding="RNE"))


def _with_c_after(rule: DotSpec) -> DotSpec:
    """Return a rule that adds C to the exact sum, if this is a number of the result."""
    out = rule.output
    largest = 2 * _products(rule) * product(rule).largest
    fits = rule.sum.lanes == "together" and largest < Fraction(2) ** out.emax
    whole = _last_bit(rule) >= (out.emin if rule.flush or rule.result.flush else _least(rule))
    cut = (
        rule.sum.window is not None and rule.sum.truncate == "floor"
    )  # its sticky bit would be lost
    if rule.addend.how != "late" or not fits or not whole or cut:
        return rule
    zero = "exact" if rule.result.zero == "positive" else rule.result.zero
    return rule.replace(accumulate="tree" if rule.sum.window is None else "after", zero=zero)


def _without_signs(rule: DotSpec) -> DotSpec:
    """Return a rule whose flushing and zeros have the plainest values with the same effect."""
    last = _last_bit(rule)
    kept = _least(rule) <= (min(last, addend(rule).last) if rule.addend.how == "after" else last)
    towards = rule.result.rounding == "RTO" or (
        rule.result.rounding == "RZ" and rule.addend.how != "late"
    )
    if rule.result.flush is not None and (kept or towards):
        rule = rule.replace(flush_result="after")
    if _is_never_tiny(rule):
        rule = rule.replace(flush_result=None)
    # The zero of a late sum is that of the products; it is no flushed one if they are not tiny.
    whole = rule.addend.how == "late" and last >= rule.output.emin
    unflushed = rule.result.flush is None or whole
    if unflushed and rule.result.zero == "exact" and (kept or rule.result.rounding == "RTO"):
        rule = rule.replace(zero="positive")
    return rule


def _sees_no_flushed_zero(rule: DotSpec) -> bool:
    """Return True if only the first block of several can have a result that is flushed."""
    last, least = product(rule).last, rule.output.emin
    whole = last > least + rule.output.fraction_bits and rule.addend.how in ("tree", "after")
    return whole and rule.result.flush is not None


def _with_tiny_c_flushed(rule: DotSpec) -> DotSpec:
    """Return a rule that flushes results instead of C, if C has an effect only when it is alone."""
    p, least = product(rule), rule.output.emin
    operands = (rule.input, rule.input_b)
    normal = all(f.emin - f.fraction_bits >= least for f in operands) and p.last >= least
    cut = (
        rule.addend.how == "tree"
        and rule.sum.truncate == "magnitude"
        and rule.sum.window is not None
    )
    vanishes = cut and least <= p.low - (rule.sum.window or 0)
    if rule.result.rounding == "RNE" and (rule.addend.how == "after" or rule.sum.window is None):
        alone = rule.replace(accumulate="after")
        bits = rule.result.bits
        vanishes = _sum_bits(alone) <= bits and _last_bit(alone) - bits - 2 >= least
    if not (normal and vanishes):
        return rule
    if rule.flush and rule.result.zero != "ieee":
        return rule.replace(flush=False, flush_result="after", zero="positive")
    if rule.result.flush is not None:
        return rule.replace(flush_result="after")
    return rule
