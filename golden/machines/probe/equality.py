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
    if several and found.zero == "exact" and _sees_no_flushed_zero(found):
        return replace(found, zero="positive")
    return found


def _chain(rule: ChainSpec) -> ChainSpec | DotSpec:
    """Return a windowed sum with the same results, or the chain with its plainest parameters."""
    step = rule.step
    if rule.k == 1:
        rule = replace(rule, descending=False)
    at_once = rule.products == "rounded" and rule.k == 1 and step.rounding != "RZ"
    one_by_one = rule.products == "fused" and rule.accumulators == 1 and not rule.descending
    if not rule.zero_subnormals and one_by_one:
        return step
    if not rule.zero_subnormals and at_once and step.zero == "ieee":
        return replace(step, accumulate="late")
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
    step = replace(step, nan=step.nan_code, window=ieee_window(rule.input, rule.output))
    if step.flush_result is not None and step.rounding != "RNE":
        step = replace(step, flush_result="after")
    if _is_never_tiny(step):
        step = replace(step, flush_result=None)
    a, b, least = rule.input, rule.input_b, rule.output.emin
    lowest = (a.emin - a.fraction_bits, b.emin - b.fraction_bits)
    if rule.add_c == "none" and min(*lowest, sum(lowest)) >= least:
        step = replace(step, flush=False, flush_result=None)
    return replace(rule, step=step, **found)


def _exact_chain(rule: ChainSpec) -> DotSpec | None:
    """Return the windowed sum that a chain is whose sums without C are exact, or None."""
    fused = rule.products == "fused"
    if rule.zero_subnormals or rule.k is None or rule.add_c != "last":
        return None
    if fused and rule.accumulators == 1:
        return None
    late = replace(rule.step, k=rule.k, window=None, accumulate="late", rounding="RNE")
    if _sum_bits(late) > late.result_bits or _with_c_after(late).accumulate == "late":
        return None
    zero = "exact" if fused else "ieee"
    return replace(late, accumulate="tree", rounding=rule.step.rounding, zero=zero)


def _dot(rule: DotSpec) -> DotSpec:
    rule = replace(rule, nan=rule.nan_code)
    if rule.product_overflow and product(rule).largest < Fraction(2) ** (rule.output.emax + 1):
        rule = replace(rule, product_overflow=False)
    if rule.accumulate == "aligned":
        rule = replace(rule, window=1, truncate="magnitude", emax_floor=None)
        return _without_signs(replace(rule, convert=_conversion(rule)))
    if rule.lanes == "sixteens":
        rule = replace(rule, product_exponent="sum")
    if rule.lanes == "halves" and rule.k == 4 and rule.accumulate != "late":
        rule = replace(rule, k=2, lanes="together")
    rule = _without_floor(rule)
    rule = _without_window(rule)
    rule = replace(rule, convert=_conversion(rule))
    rule = _without_rounding(rule)
    return _with_tiny_c_flushed(_without_signs(rule))


# ------------------------------------------------------------------ facts


def _has_c(rule: DotSpec) -> bool:
    """Return True if C, or the sum of the first half, is one of the terms."""
    return rule.accumulate == "tree" or (rule.accumulate == "late" and rule.lanes == "halves")


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
    if rule.slices is not None or rule.lanes == "sixteens":
        return _NEVER
    return rule.k // 2 if rule.lanes == "halves" else rule.k


def _least(rule: DotSpec) -> int:
    """Return the exponent of the least place of a result."""
    return rule.output.emin - rule.result_bits


def _last_bit(rule: DotSpec) -> int:
    """Return the exponent of a bit below which no sum has one; C may join it later."""
    terms = _terms(rule)
    if rule.accumulate == "aligned":
        return min(terms.last, addend(rule).last)
    if rule.window is None:
        return terms.last
    emax = terms.low if rule.emax_floor is None else max(terms.low, rule.emax_floor)
    return max(terms.last, emax - rule.window - (rule.truncate == "floor"))


def _coarser(rule: DotSpec) -> int:
    """Return by how many bits a place must be above q for a rounding to be exact."""
    nearest = rule.rounding == "RNE"
    if rule.truncate == "magnitude":
        return 0 if rule.rounding == "RZ" else _NEVER
    return nearest + (rule.truncate == "odd")


# ------------------------------------------------------------------ steps


def _without_floor(rule: DotSpec) -> DotSpec:
    terms, floor = _terms(rule), rule.emax_floor
    if floor is None:
        return rule
    if rule.window is None or floor - rule.window <= terms.last or floor <= terms.low:
        return replace(rule, emax_floor=None)
    c_alone = _has_c(rule) and floor <= product(rule).low
    one = not _has_c(rule) and _products(rule) == 1 and rule.accumulate == "late"
    extra = _coarser(rule) + (rule.flush_result == "unbounded")
    if (c_alone or one) and floor - rule.window + extra <= _least(rule):
        return replace(rule, emax_floor=None)
    return rule


def _without_window(rule: DotSpec) -> DotSpec:
    if not _is_uncut(rule):
        return rule
    rule = replace(rule, window=None, truncate="magnitude", product_exponent="sum", emax_floor=None)
    if rule.accumulate == "after":
        return replace(rule, accumulate="tree")
    return rule


def _is_uncut(rule: DotSpec) -> bool:
    """Return True if no bit that is cut has an effect."""
    terms, p, f = _terms(rule), product(rule), rule.window
    floor = rule.emax_floor
    if f is None or max(terms.high, terms.high if floor is None else floor) - f <= terms.last:
        return True
    if floor is not None:
        return False
    count, has_c, bits = _products(rule), _has_c(rule), rule.result_bits
    if has_c and rule.truncate == "floor" and rule.slices is None:
        c_loses_one = p.high - f <= addend(rule).last + 1 and addend(rule).high - f <= p.last
        if p.high - f <= p.last and c_loses_one and f >= addend(rule).fine:
            return True
    if not has_c and count == 1 and f >= p.fine:
        return True
    if rule.accumulate == "after":
        return False
    if not has_c and count == 1:
        return f >= p.hollow + bits + _coarser(rule)
    if not has_c and count == 2 and rule.truncate != "magnitude":
        return f >= p.fine + p.hollow + 2 and f >= p.hollow + 1 + bits + _coarser(rule)
    if has_c and count == 1 and rule.product_exponent == "sum" and rule.convert is None:
        plain = rule.scale is None and rule.truncate != "magnitude"
        exact = ieee_window(rule.input, rule.output, rule.input_b) - (rule.rounding != "RNE")
        return plain and f >= exact + (rule.truncate == "odd")
    return False


def _is_never_tiny(rule: DotSpec) -> bool:
    """Return True if no result is below the least normal number, and not zero."""
    last = product(rule).last
    known = rule.flush and rule.accumulate != "aligned"
    return known and last > rule.output.emin + rule.output.fraction_bits


def _conversion(rule: DotSpec) -> Any:
    """Return the first conversion that has the effect of the rule's."""
    if rule.convert is None or rule.input.storage_bits > 16:
        return rule.convert
    names = ("tf32", "fp16", "bf16", "fp32")
    keys = {
        to: conversion_key(rule.input, to) + conversion_key(rule.input_b, to)
        for to in (None, rule.convert, *(FORMATS[name] for name in names))
    }
    found = next(to for to, key in keys.items() if key == keys[rule.convert])
    lossless = keys[rule.convert][1::2] == keys[None][1::2]
    if not lossless or rule.accumulate == "aligned":
        return found
    if rule.product_exponent == "leading" or rule.window is None:
        return None
    return None if largest_subnormal(rule) - rule.window <= _terms(rule).last else found


def _sum_bits(rule: DotSpec) -> int:
    """Return the fraction bits that hold every sum, whose leading bit is its first one."""
    if _products(rule) == _NEVER:
        return _NEVER
    terms, p, c = _terms(rule), product(rule), addend(rule)
    count, has_c = _products(rule), _has_c(rule)
    total = count * p.largest + (c.largest if has_c else 0)
    bits = int(total / Fraction(2) ** terms.last).bit_length() - 1
    if rule.window is None:
        return bits
    relative = count * p.size + (c.size if has_c else 0)
    if rule.truncate != "magnitude":  # a term that is cut may grow by one unit
        relative += Fraction(count + has_c, 1 << rule.window)
    depth = rule.window + (rule.truncate == "floor")
    most = depth + int(relative).bit_length() - 1
    if rule.block is not None and rule.k > rule.block and not has_c and depth == rule.window:
        # A term with a bit at q or below has a small exponent, and so have those of its block.
        plain = product(replace(rule, scale=None, block=None))
        far = max(rule.window - p.fine - (plain.high - plain.low), 0)
        smaller = relative - rule.block * p.size * (1 - Fraction(1, 1 << far))
        most = max(depth - 1 + int(relative).bit_length(), depth + int(smaller).bit_length()) - 1
    return min(bits, most)


def _without_rounding(rule: DotSpec) -> DotSpec:
    """Return a rule whose sums fit into the result with the plainest rounding."""
    if rule.accumulate == "after" or rule.result_bits < _sum_bits(rule):
        return rule
    flushed = rule.flush_result in ("before", "unbounded")
    flushed = flushed or (rule.flush_result == "after" and rule.rounding != "RNE")
    kept = _least(rule) <= _last_bit(rule)
    if not kept and not flushed:
        return rule
    rule = replace(rule, result_bits=rule.output.fraction_bits)
    if not kept:
        rule = replace(rule, flush_result="before")
    to_odd = rule.accumulate == "late" and rule.rounding == "RTO"
    return _with_c_after(rule if to_odd else replace(rule, rounding="RNE"))


def _with_c_after(rule: DotSpec) -> DotSpec:
    """Return a rule that adds C to the exact sum, if this is a number of the result."""
    out = rule.output
    largest = 2 * _products(rule) * product(rule).largest
    fits = rule.lanes == "together" and largest < Fraction(2) ** out.emax
    whole = _last_bit(rule) >= (out.emin if rule.flush or rule.flush_result else _least(rule))
    cut = rule.window is not None and rule.truncate == "floor"  # its sticky bit would be lost
    if rule.accumulate != "late" or not fits or not whole or cut:
        return rule
    zero = "exact" if rule.zero == "positive" else rule.zero
    return replace(rule, accumulate="tree" if rule.window is None else "after", zero=zero)


def _without_signs(rule: DotSpec) -> DotSpec:
    """Return a rule whose flushing and zeros have the plainest values with the same effect."""
    last = _last_bit(rule)
    kept = _least(rule) <= (min(last, addend(rule).last) if rule.accumulate == "after" else last)
    towards = rule.rounding == "RTO" or (rule.rounding == "RZ" and rule.accumulate != "late")
    if rule.flush_result is not None and (kept or towards):
        rule = replace(rule, flush_result="after")
    if _is_never_tiny(rule):
        rule = replace(rule, flush_result=None)
    # The zero of a late sum is that of the products; it is no flushed one if they are not tiny.
    whole = rule.accumulate == "late" and last >= rule.output.emin
    unflushed = rule.flush_result is None or whole
    if unflushed and rule.zero == "exact" and (kept or rule.rounding == "RTO"):
        rule = replace(rule, zero="positive")
    return rule


def _sees_no_flushed_zero(rule: DotSpec) -> bool:
    """Return True if only the first block of several can have a result that is flushed."""
    last, least = product(rule).last, rule.output.emin
    whole = last > least + rule.output.fraction_bits and rule.accumulate in ("tree", "after")
    return whole and rule.flush_result is not None


def _with_tiny_c_flushed(rule: DotSpec) -> DotSpec:
    """Return a rule that flushes results instead of C, if C has an effect only when it is alone."""
    p, least = product(rule), rule.output.emin
    operands = (rule.input, rule.input_b)
    normal = all(f.emin - f.fraction_bits >= least for f in operands) and p.last >= least
    cut = rule.accumulate == "tree" and rule.truncate == "magnitude" and rule.window is not None
    vanishes = cut and least <= p.low - (rule.window or 0)
    if rule.rounding == "RNE" and (rule.accumulate == "after" or rule.window is None):
        alone = replace(rule, accumulate="after")
        bits = rule.result_bits
        vanishes = _sum_bits(alone) <= bits and _last_bit(alone) - bits - 2 >= least
    if not (normal and vanishes):
        return rule
    if rule.flush and rule.zero != "ieee":
        return replace(rule, flush=False, flush_result="after", zero="positive")
    if rule.flush_result is not None:
        return replace(rule, flush_result="after")
    return rule
