"""Wrong implementations of RVBNA, each of which a set of conformance vectors must notice.

Each one makes a single mistake that an implementer could make. A set in which one of them passes
cannot tell it from a correct implementation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.general import add_rounded
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import Machine, compute
from vitruvian.golden.machines.rvbna import printed_run
from vitruvian.sim.conformance.stimulus_classes import ConformanceOperands

#: A wrong implementation: it returns D for operands.
FaultModel = Callable[[ConformanceOperands], np.ndarray]


def wrong_rules(machine: Machine) -> dict[str, FaultModel]:
    """Return the wrong implementations of a row of RVBNA by name; none for another rule.

    Mistakes that no operands of the row's formats can show are left out.

    Parameters
    ----------
    machine : Machine
        A row of the table.
    """
    rule = machine.rule
    if machine.rule_name != "rvbna" or not isinstance(rule, DotSpec) or rule.sum.window is None:
        return {}
    changed = partial(_changed, rule)
    input_a, input_b, out = rule.input, rule.input_b, rule.output
    largest = input_a.emax + input_b.emax
    # The largest reference exponent of a zero or subnormal operand's product
    small = max(input_a.emin + input_b.emax, input_a.emax + input_b.emin)
    smallest = input_a.emin + input_b.emin
    last = smallest - input_a.fraction_bits - input_b.fraction_bits
    underflows = smallest < out.emin
    wrong: dict[str, FaultModel] = {
        "C is added and rounded to nearest": partial(_two_steps, rule, "RTO", "RNE"),
        "C is added and truncated": partial(_two_steps, rule, "RTO", "RZ"),
        "C is a term of the sum": changed(accumulate="tree"),
        "a sum of negative zeros is -0": changed(zero="ieee"),
        "NaN results are 0x7FFFFFFF": changed(nan=0x7FFFFFFF),
        "subnormal results are flushed": changed(flush_result="after"),
        "subnormal operands are flushed": partial(_flushed, rule),
    }
    if rule.k > 1 or underflows:  # else the dot product is exact
        wrong |= {
            "the dot product is rounded to nearest": partial(_two_steps, rule, "RNE", "RTO"),
            "the dot product is truncated": partial(_two_steps, rule, "RZ", "RTO"),
            "C joins the exact sum": changed(accumulate="after"),
            "the printed pseudocode": partial(_printed, rule, ()),
        }
    if rule.k > 1:
        wrong["products are chopped"] = changed(truncate="magnitude")
        wrong["no guard bits"] = changed(window=out.fraction_bits)
        wrong["one guard bit less"] = changed(window=rule.sum.window - 1)
    if rule.k > 1 and (largest if rule.k > 2 else small) - rule.sum.window > last:
        # A sum that is much smaller than its largest product shows where the products are cut.
        wrong |= {
            "one guard bit more": changed(window=rule.sum.window + 1),
            "products are floored, with a sticky bit": changed(truncate="floor"),
            "products are normalised before they are aligned": changed(product_exponent="leading"),
        }
    if rule.k > 1 and small - rule.sum.window > last:
        wrong["zero products take part in the largest exponent"] = partial(_with_zeros, rule)
    if rule.k > 2:
        wrong["products are added two at a time"] = partial(_in_pairs, rule)
    if underflows:
        wrong["the printed pseudocode, its mask repaired"] = partial(_printed, rule, ("mask",))
    if underflows and rule.k > 1:
        name = "the printed pseudocode, its subnormal path repaired"
        wrong[name] = partial(_printed, rule, ("subnormal",))
    if largest + 2 > out.emax:
        wrong["an overflow is the largest number"] = partial(_saturated, rule)
    return wrong


def _run(rule: DotSpec, x: ConformanceOperands) -> np.ndarray:
    return compute(rule, x.a, x.b, x.c)


def _changed(rule: DotSpec, **parameters: Any) -> FaultModel:
    return partial(_run, rule.replace(**parameters))


def _two_steps(rule: DotSpec, dot: str, sum_: str, x: ConformanceOperands) -> np.ndarray:
    """Round the dot product and the addition of C in these ways."""
    inner = rule.replace(rounding=dot, accumulate="tree")
    total = compute(inner, x.a, x.b, np.zeros_like(x.c))
    return add_rounded(total, x.c, rule.replace(rounding=sum_))


def _flushed(rule: DotSpec, x: ConformanceOperands) -> np.ndarray:
    a, b = (
        np.where(codes & f.exponent_mask == 0, codes & f.sign_mask, codes)
        for codes, f in ((x.a, rule.input), (x.b, rule.input_b))
    )
    return compute(rule, a, b, x.c)


def _with_zeros(rule: DotSpec, x: ConformanceOperands) -> np.ndarray:
    """Add for each zero product two others that cancel, with its operands' exponents.

    A zero counts as 2^emin there. The sum keeps its value, and the largest exponent may grow.
    """

    def nonzero(codes: np.ndarray, format: FloatFormat) -> np.ndarray:
        magnitude = codes & (format.sign_mask - 1)
        return np.where(magnitude == 0, format.min_normal, codes)

    u, v = unpack(x.a, rule.input), unpack(x.b, rule.input_b)
    special = u.nan | u.infinity | v.nan | v.infinity
    zero = ((u.significand == 0) | (v.significand == 0)) & ~special
    first, second = nonzero(x.a, rule.input), nonzero(x.b, rule.input_b)
    plus = np.where(zero, first & (rule.input.sign_mask - 1), x.a)
    minus = np.where(zero, plus | rule.input.sign_mask, 0)
    b = np.where(zero, second, x.b)
    again = np.where(zero, second, 0)
    operands = np.concatenate([plus, minus], axis=1), np.concatenate([b, again], axis=1)
    return compute(rule.replace(k=2 * rule.k), *operands, x.c)


def _in_pairs(rule: DotSpec, x: ConformanceOperands) -> np.ndarray:
    """Add the products of each pair by the rule, one pair after the other, beginning with C."""
    d = x.c
    for k in range(0, rule.k, 2):
        pair = np.s_[:, k : k + 2]
        d = compute(rule.replace(k=x.a[pair].shape[1]), x.a[pair], x.b[pair], d)
    return d


def _printed(rule: DotSpec, repairs: tuple[str, ...], x: ConformanceOperands) -> np.ndarray:
    return printed_run(x.a, x.b, x.c, rule, repairs)


def _saturated(rule: DotSpec, x: ConformanceOperands) -> np.ndarray:
    """Return the largest number where finite operands overflow."""
    out = rule.output
    kinds = unpack(x.a, rule.input), unpack(x.b, rule.input_b)
    finite = ~np.any([(u.infinity | u.nan).any(axis=1) for u in kinds], axis=0)
    inner = rule.replace(accumulate="tree")
    total = _limited(compute(inner, x.a, x.b, np.zeros_like(x.c)), finite, rule)
    z = unpack(x.c, out)
    return _limited(add_rounded(total, x.c, rule), finite & ~z.infinity & ~z.nan, rule)


def _limited(codes: np.ndarray, finite: np.ndarray, rule: DotSpec) -> np.ndarray:
    sign = codes & rule.output.sign_mask
    over = finite & ((codes ^ sign) == rule.output.overflow)
    return np.where(over, sign | rule.output.max_finite, codes)
