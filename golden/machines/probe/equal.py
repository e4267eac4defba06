"""Rules with different parameters that give the same results for all operands.

``normal_form`` replaces parameters that provably have no effect, so that two rules with the same
normal form are equal. The proofs use the largest and the least exponents of products:

- lo: no nonzero product, and no C that is one of the terms, has a bit below 2^lo;
- hi: no exponent E_a + E_b, and none of such a C, is above hi.

Bits below q = 2^(E_max − F) are cut, so that lo may be replaced by the least E_max − F where sums
are meant (by one less with "floor", whose sticky bit is below q).

1. *Floor of E_max.* If floor − F ≤ lo, no bit is cut where the floor is E_max, nor would one be
   cut without it, where the unit is smaller. If floor ≤ the least exponent, it never is E_max. If
   it is at most the least exponent of a product, only a C that is alone is cut there; with K = 1
   and a late C, only a product that is alone. That does not show if the rounding of the result is
   coarser: by a bit with "floor", by two with "odd" (a sticky bit remains), and at all with
   "magnitude" and RZ. A product that is alone has at most f_a + f_b fraction bits below its own
   exponent.
2. *Window.* If hi − F ≤ lo, nothing is ever cut; then F, the way to truncate and the exponents that
   products are aligned by do not matter. With "floor" it is enough that products are never cut and
   C loses at most its last bit, which the sticky bit then is. An exact sum of the products that C
   joins "after" is then the exact sum of all terms; so is one that C joins "late" if it is a number
   of the output format that is not flushed.
3. *One product.* With K = 1, "floor" and F of at least ``ieee_window``, the sum is rounded
   correctly; so it is with "odd" and one bit more (``golden.fp.window`` has the proof; an odd last
   bit at least two bits below the last place of the result shows on which side of a half-way point
   the sum lies). RZ and RTO have no half-way points, so they need one bit less.
4. *Conversion.* It changes only the exponents of products with a subnormal factor, and so E_max
   only where such a product has it. If the largest exponent of these products − F ≤ lo, nothing is
   cut there. The exponents do not matter with "leading" either. A conversion to a format in which
   all operands have the same exponents changes nothing.
5. *Result bits.* A sum is a multiple of 2^(E_max − F), with "floor" of half of that, and less than
   the sum of the largest terms. If all its bits fit into the result, and the result's least place
   is not above lo, every rounding is exact.
6. *Flushing.* Rounding towards zero and to odd never reaches the least normal number from below, so
   flushing before rounding is flushing after it; and so it is if tiny results are never rounded,
   as their least place is not above lo. If C is flushed, a tiny result needs a C that products
   nearly cancel, with a bit below 2^(lo − f); without one, no result is tiny.
7. *Zeros.* Without flushing, if the least place of the result is not above lo, or with rounding to
   odd, no nonzero sum becomes zero, and "exact" is "positive". Products that C is added to late
   may be zero as well.
8. *Halves.* With K = 4, the first half is the products 0 and 1 and the second half 2 and 3, which
   are two blocks of K = 2.
9. *Overflow of products.* It cannot happen if the largest product is a number of the result.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.fp.window import ieee_window
from vitruvian.golden.machines.probe.space import conversion_key
from vitruvian.golden.machines.spec import ChainSpec
from vitruvian.golden.machines.table import Rule

__all__ = ["equal_rules", "normal_form"]


def equal_rules(x: Rule, y: Rule) -> bool:
    """Return True if two rules are proved to give the same results for all operands."""
    return normal_form(x) == normal_form(y)


def normal_form(rule: Rule) -> tuple[tuple[str, Any], ...]:
    """Return the parameters of a rule, those without an effect at a value of their own."""
    if isinstance(rule, ChainSpec):
        step = normal_form(replace(rule.step, window=ieee_window(rule.input, rule.output)))
        found = {n: getattr(rule, n) for n in rule.__dataclass_fields__ if n != "step"}
        if rule.accumulators == 1 and not rule.descending and rule.products == "fused":
            found["k"] = 1
        return (("step", step), *found.items())
    found = {n: getattr(rule, n) for n in rule.__dataclass_fields__}
    if isinstance(rule, DotSpec) and rule.scale is None and rule.accumulate != "aligned":
        _normalise(rule, found)
    return tuple(found.items())


def _largest(format: FloatFormat) -> Fraction:
    """Return the bound 2 − 2^−f of a significand."""
    return 2 - Fraction(1, 1 << format.fraction_bits)


def _normalise(rule: DotSpec, found: dict[str, Any]) -> None:
    a, b, out = rule.input, rule.input_b, rule.output
    found["nan"] = rule.nan_code
    tree = rule.accumulate == "tree"
    least = out.emin - rule.result_bits  # the least place of a result
    lo = a.emin - a.fraction_bits + b.emin - b.fraction_bits
    hi, low_exponent = a.emax + b.emax, a.emin + b.emin
    if rule.product_exponent == "leading":
        hi, low_exponent = hi + 1, lo
    products, hi_products = lo, hi
    low_product = low_exponent
    if tree:
        lo = min(lo, out.emin - out.fraction_bits)
        hi, low_exponent = max(hi, out.emax), min(low_exponent, out.emin)
    window, floor = rule.window, rule.emax_floor
    if floor is not None and (window is None or floor - window <= lo or floor <= low_exponent):
        floor = found["emax_floor"] = None
    one = (tree and floor is not None and floor <= low_product) or (
        rule.accumulate == "late" and rule.k == 1
    )
    if floor is not None and window is not None and one and not rule.slices:
        finer = {"floor": 1, "odd": 2, "magnitude": 0 if rule.rounding == "RZ" else 1 << 20}
        if floor - window + finer[rule.truncate] <= least:
            floor = found["emax_floor"] = None
    uncut = window is None or (max(hi, floor or hi) - window <= lo)
    if not tree and rule.k == 1 and floor is None and not rule.slices:
        # A product alone has the largest exponent, and its own fraction bits.
        own = a.fraction_bits + b.fraction_bits + (rule.product_exponent == "leading")
        uncut = uncut or window is None or window >= own
    if tree and rule.truncate == "floor" and window is not None and floor is None:
        # A floor of E_max could cut a C that is alone; without one, a C that is largest is not cut.
        ends = (hi_products - window <= lo + 1, hi - window <= products)
        uncut = uncut or (all(ends) and window >= out.fraction_bits)
    if uncut:
        found |= {"window": None, "truncate": "magnitude", "product_exponent": "sum"}
        found["emax_floor"] = None
    exact = ieee_window(a, out, b) if rule.convert is None else 1 << 20
    if rule.k == 1 and tree and floor is None and window is not None:
        extra = {"floor": 0, "odd": 1}.get(rule.truncate, 1 << 20) - (rule.rounding != "RNE")
        if window >= exact + extra and rule.product_exponent == "sum" and not rule.slices:
            found |= {"window": None, "truncate": "magnitude"}
    lo_cut = lo
    if window is not None and not uncut:
        lo_cut = max(lo, low_exponent - window - (rule.truncate == "floor"))
    subnormal = max(a.emin + b.emax, a.emax + b.emin)
    same = conversion_key(a, rule.convert) + conversion_key(b, rule.convert)
    if a.storage_bits <= 16 and rule.convert is not None:
        inert = same == conversion_key(a, None) + conversion_key(b, None)
        hidden = window is None or (not tree and subnormal - window <= lo)
        if inert or uncut or hidden or rule.product_exponent == "leading":
            found["convert"] = None
        else:
            found["convert"] = same
    # Bits that a sum may have
    if window is not None and rule.accumulate != "after":
        total = rule.k * _largest(a) * _largest(b) + (_largest(out) if tree else 0)
        bits = window + int(total).bit_length() - 1 + (rule.truncate == "floor")
        if not tree:
            size = rule.k * _largest(a) * _largest(b) * Fraction(2) ** (a.emax + b.emax - products)
            bits = min(bits, int(size).bit_length() - 1)
        if rule.result_bits >= bits and least <= lo_cut:
            found["result_bits"] = out.fraction_bits
            if tree or rule.rounding != "RTO":
                found["rounding"] = "RNE"
    if uncut and rule.accumulate == "after":
        found["accumulate"] = "tree"
    size = rule.k * _largest(a) * _largest(b) * Fraction(2) ** (a.emax + b.emax - products)
    fits = int(size).bit_length() <= rule.result_bits + 1 and products >= out.emin
    fits = fits and products + int(size).bit_length() <= out.emax + 1
    never_tiny = rule.flush and products - out.fraction_bits >= out.emin
    quiet = rule.flush_result is None or rule.zero != "positive" or never_tiny
    if uncut and rule.accumulate == "late" and rule.lanes == "together" and fits and quiet:
        found |= {"accumulate": "tree", "result_bits": out.fraction_bits}
        found["rounding"] = "RTO" if rule.rounding == "RTO" else "RNE"
    if rule.lanes == "halves" and rule.k == 4 and rule.accumulate != "late":
        found |= {"k": 2, "lanes": "together"}
    exactly = found["rounding"] in ("RTO",) or (
        found["rounding"] == "RZ" and rule.accumulate != "late"
    )
    if rule.flush_result is not None and (exactly or least <= lo_cut):
        found["flush_result"] = "after"
    if never_tiny:
        found["flush_result"] = None
    kept = least <= lo_cut or found["rounding"] == "RTO"
    if found["flush_result"] is None and rule.zero == "exact" and kept:
        found["zero"] = "positive"
    largest = _largest(a) * _largest(b) * Fraction(2) ** (a.emax + b.emax)
    if rule.product_overflow and largest < Fraction(2) ** (out.emax + 1):
        found["product_overflow"] = False
