"""The values that each parameter of a rule may have, for given operands."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.convert import convert
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.probe.cases import Cases
from vitruvian.golden.machines.spec import ChainSpec, RdnaSpec
from vitruvian.golden.machines.table import Rule, machines

#: Windows that are tried; golden computes the general rules in 64 bits.
_WINDOWS = range(1, 56)
_FLOOR_BELOW = 24
_FLOOR_ABOVE = 40  # floors are tried up to so far above the least normal exponent of the results


def values(rule: Rule, data: Cases) -> dict[str, list[object]]:
    """Return the values of every parameter of this kind of rule, by the parameter's name."""
    if isinstance(rule, DotSpec):
        return dot_values(data)
    if isinstance(rule, ChainSpec):
        return {
            "k": [*_divisors(data.terms), None],
            "accumulators": [1, 2, 4],
            "descending": [False, True],
            "products": ["fused", "rounded"],
            "add_c": ["last", "none"],
            "zero_subnormals": [False, True],
            "rounding": ["RNE", "RZ", "RTO"],
            "flush": [False, True],
            "flush_result": [None, "after", "before", "unbounded"],
        }
    if isinstance(rule, IntPhaseSpec):
        return {"phases": [1, 2, 3, 4]}
    if isinstance(rule, PhaseSpec):
        return {"phases": [1, 2, 3, 4], "blackhole": [False, True]}
    if isinstance(rule, RdnaSpec):
        return {"k": [2, 4], "rdna4": [False, True]}
    return {"signed_a": [False, True], "signed_b": [False, True], "saturate": [False, True]}


def dot_values(data: Cases) -> dict[str, list[object]]:
    """Return the values of the parameters of ``DotSpec``."""
    out = data.output
    assert isinstance(out, FloatFormat)
    assert isinstance(data.input, FloatFormat) and isinstance(data.input_b, FloatFormat)
    block = data.block
    scaled = data.scale is not None
    low = data.input.emin + data.input_b.emin - 2 * (data.scale.bias if data.scale else 0)
    low = max(min(low, out.emin) - _FLOOR_BELOW, out.emin - 240)
    windows: list[object] = [*_WINDOWS]
    return {
        "k": [k for k in _divisors(data.terms) if block is None or k % block == 0],
        "window": windows if scaled else [*windows, None],
        "truncate": ["magnitude", "floor", "odd"],
        "rounding": ["RZ", "RNE", "RTO"],
        "result_bits": [*range(1, out.fraction_bits + 1)],
        "emax_floor": [None, *range(low, out.emin + _FLOOR_ABOVE)],
        "zero": ["positive", "exact", "ieee"],
        "flush": [False, True],
        "flush_result": [None, "after", "before", "unbounded"],
        "product_exponent": ["sum", "leading"],
        "accumulate": ["tree", "after", "late", "aligned"],
        "lanes": ["together", "sixteens"] if scaled else ["together", "parity", "halves"],
        "convert": _conversions(data.input, data.input_b),
        "slices": [None, *known_slices(data.input.name)],
        "product_overflow": [False, True],
    }


def _divisors(terms: int) -> list[int]:
    return [k for k in range(1, terms + 1) if terms % k == 0]


def _conversions(a: FloatFormat, b: FloatFormat) -> list[object]:
    """Return the conversions that change an operand of these formats, one of each kind."""
    found: list[object] = [None]
    seen = [conversion_key(a, None) + conversion_key(b, None)]
    for name in ("tf32", "fp16", "bf16", "fp32"):
        other = FORMATS[name]
        if a.storage_bits <= 8 and name in ("tf32", "bf16"):
            continue  # the same as fp32
        if a.storage_bits > 16:
            if name == "tf32" and a.name == "fp32":
                found.append(other)
        elif other.fraction_bits >= max(a.fraction_bits, b.fraction_bits):
            key = conversion_key(a, other) + conversion_key(b, other)
            if key not in seen:
                seen.append(key)
                found.append(other)
    return found


@lru_cache
def conversion_key(format: FloatFormat, to: FloatFormat | None) -> tuple[bytes, bytes]:
    """Return the exponents and the values of all codes after a conversion, as bytes to compare."""
    if format.storage_bits > 16:
        return (b"" if to is None else to.name.encode(), b"")
    codes = np.arange(1 << format.code_bits)
    if to is not None and to != format:
        codes, format = convert(codes, format, to), to
    u = unpack(codes, format)
    value = np.ldexp(u.significand.astype(float), u.exponent - format.fraction_bits)
    value = np.where(u.nan, np.nan, np.where(u.infinity, np.inf, value))
    return np.where(value == 0, 0, u.exponent).tobytes(), value.tobytes()


@lru_cache
def known_slices(input: str) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the slices that a machine of the table has for operands of this format."""
    found = dict.fromkeys(
        m.rule.products.slices
        for m in machines().values()
        if isinstance(m.rule, DotSpec) and m.rule.products.slices and m.input.name == input
    )
    return tuple(found)


def value_of(rule: Rule, name: str) -> object:
    """Return a parameter of a rule, or of the step of a chain."""
    if isinstance(rule, ChainSpec) and not hasattr(rule, name):
        rule = rule.step
    return rule.parameters()[name] if isinstance(rule, DotSpec) else getattr(rule, name)


def changed(rule: Rule, name: str, value: object) -> Rule | None:
    """Return a rule with another value of a parameter, or None if there is no such rule."""
    try:
        if isinstance(rule, DotSpec):
            return rule.replace(**{name: value})
        if isinstance(rule, ChainSpec) and name not in ChainSpec.__dataclass_fields__:
            return replace(rule, step=rule.step.replace(**{name: value}))
        return replace(rule, **{name: value})  # pyright: ignore
    except (ValueError, TypeError):
        return None
