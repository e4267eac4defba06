"""Fused dot products by the rules that a plain windowed sum does not cover.

Every rule is a sequence of the same steps, which the parameters of ``DotSpec`` name: decode (and
convert or flush), multiply (perhaps in slices), align, add, add C, round. The functions follow
these steps in 64-bit integers, with one array element for each term.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import Unpacked, code_dtype, unpack
from vitruvian.golden.fp.convert import convert
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.plain import evaluate_plain, sum_bits
from vitruvian.golden.fp.round import bit_length, jam, round_pack
from vitruvian.golden.fp.scales import unpack_scale
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.fp.window import ieee_window

_NONE = -(1 << 20)  # the largest exponent of no terms
_FAR = 62  # a right shift that leaves no bit of any term
GROUP = 16  # products in an exact sum of the lanes "sixteens"
# Rule of CDNA 3: fraction bits of the products and of C, of their sum, and of the result's sum
OWN_BITS, COMMON_BITS, TOTAL_BITS = 24, 32, 31


@dataclass
class _Products:
    """The terms of n sums and the specials among the products of each sum.

    The value of a term is significand · 2^last; it is aligned by ``exponent``.
    """

    significand: np.ndarray  # (n, T) int64, with the sign
    exponent: np.ndarray  # (n, T) int64
    last: np.ndarray  # (n, T) int64
    present: np.ndarray  # (n, T) bool: the term takes part in E_max
    all_negative: np.ndarray  # (n,) bool: every product has a negative sign
    plus: np.ndarray  # (n,) bool: there is a product of +∞
    minus: np.ndarray  # (n,) bool: there is a product of −∞
    nan: np.ndarray  # (n,) bool

    def emax(self) -> np.ndarray:
        """Return the largest exponent of each sum's terms, or ``_NONE``."""
        return np.where(self.present, self.exponent, _NONE).max(axis=1)


def evaluate(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: DotSpec,
    scale_a: np.ndarray | None = None,
    scale_b: np.ndarray | None = None,
    trace: dict[str, Any] | None = None,
) -> np.ndarray:
    """Compute one block of n fused dot products by any rule.

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    scale_a, scale_b : (n, K / block) ndarray of uint8, ``spec.scales.format`` codes, optional
    trace : dict, optional
        Receives the steps of a rule that is not plain and is computed in one sum: the ``products``,
        those with scales (``terms``), C (``addend``), and the values that the sum names.

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes

    Raises
    ------
    ValueError
        If the rule has no window, or if the sum of these formats does not fit into 62 bits.
    """
    if spec.addend.how == "late":
        inner = spec.replace(accumulate="tree")
        nothing = spec.output.negative_zero if spec.result.zero == "ieee" else 0
        total = evaluate(a, b, np.full_like(c, nothing), inner, scale_a, scale_b)
        return add_rounded(total, c, late_addition(spec))
    if spec.sum.lanes == "halves":
        terms: int = a.shape[1]
        first = np.arange(terms) % 4 < 2
        inner = spec.replace(lanes="together")
        for half in (first, ~first):
            c = evaluate(a[:, half], b[:, half], c, inner)
        return c
    if spec.is_plain:
        return evaluate_plain(a, b, c, spec)
    if spec.sum.window is None:
        raise ValueError(
            f"window must be an int for a rule with {', '.join(spec.changes)}, not None"
        )
    if sum_bits(spec, a.shape[1]) >= _FAR:
        raise ValueError(f"the sum must fit into {_FAR} bits, not {sum_bits(spec, a.shape[1])!r}")

    z = _decode(c, spec.output, spec)
    products = unscaled = _multiply(a, b, spec)
    if spec.scales is not None:
        assert scale_a is not None and scale_b is not None
        products = _scaled(products, spec, scale_a, scale_b)
    if trace is not None:
        trace.update(products=unscaled, terms=products, addend=z)
    total = _aligned_sum if spec.addend.how == "aligned" else _windowed_sum
    d = _round(*total(products, z, spec, trace), spec)
    zero = ~products.significand.any(axis=1) & (z.significand == 0) & ~products.present.any(axis=1)
    minus = products.all_negative & z.sign & (spec.result.zero == "ieee")
    d[zero] = np.where(minus, spec.output.negative_zero, 0)[zero]
    if spec.result.zero == "positive":
        d[d == spec.output.negative_zero] = 0
    return _with_specials(d, products, z, spec)


def add_rounded(x: np.ndarray, y: np.ndarray, spec: DotSpec) -> np.ndarray:
    """Return x + y of ``spec.output`` codes, rounded and flushed as ``spec`` says."""
    one = np.full((len(x), 1), spec.output.one, code_dtype(spec.output))
    return evaluate(one, x[:, None], y, addition(spec))


def late_addition(spec: DotSpec) -> DotSpec:
    """Return the rule by which C is added to a rounded sum (``accumulate`` = "late")."""
    return addition(spec.replace(rounding="RTO" if spec.result.rounding == "RTO" else "RNE"))


def addition(spec: DotSpec) -> DotSpec:
    """Return the rule of 1 · x + y with ``spec.output`` codes, rounded and flushed as ``spec``."""
    out = spec.output
    return dot_spec(
        input=out,
        output=out,
        k=1,
        window=ieee_window(out, out),
        rounding=spec.result.rounding,
        nan=spec.result.nan,
        flush=spec.flush,
        flush_result=spec.result.flush,
    )


def _decode(codes: np.ndarray, format: FloatFormat, spec: DotSpec) -> Unpacked:
    """Decode codes; with ``spec.flush``, numbers below the least normal output become zeros."""
    u = unpack(codes, format)
    if not spec.flush:
        return u
    leading = u.exponent - format.fraction_bits + bit_length(u.significand) - 1
    return u._replace(significand=np.where(leading < spec.output.emin, 0, u.significand))


def _operand(codes: np.ndarray, format: FloatFormat, spec: DotSpec) -> tuple[Unpacked, FloatFormat]:
    """Decode operands in the format in which they are multiplied, and return that format too."""
    if spec.a.convert is None or spec.a.convert == format:
        return _decode(codes, format, spec), format
    return _decode(convert(codes, format, spec.a.convert), spec.a.convert, spec), spec.a.convert


def _multiply(a: np.ndarray, b: np.ndarray, spec: DotSpec) -> _Products:
    """Return the products, or the partial products of every pair of slices."""
    (x, format_a), (y, format_b) = _operand(a, spec.input, spec), _operand(b, spec.input_b, spec)
    sign = x.sign ^ y.sign
    product = x.significand * y.significand
    exponent = x.exponent + y.exponent
    last = exponent - (format_a.fraction_bits + format_b.fraction_bits)
    leading = last + bit_length(product) - 1
    infinity = x.infinity | y.infinity
    zero_a = (x.significand == 0) & ~x.infinity
    zero_b = (y.significand == 0) & ~y.infinity
    nan = x.nan | y.nan | (infinity & (zero_a | zero_b))
    if spec.products.overflow:
        infinity = infinity | ((product != 0) & (leading > spec.output.emax))
    parts = [
        (x.significand & p) * (y.significand & q) for p, q in spec.products.slices or ((-1, -1),)
    ]
    return _Products(
        np.concatenate([np.where(sign, -part, part) for part in parts], axis=1),
        np.tile(leading if spec.products.exponent == "leading" else exponent, len(parts)),
        np.tile(last, len(parts)),
        np.tile(product != 0, len(parts)),
        np.asarray(sign.all(axis=1)),
        np.asarray((infinity & ~sign).any(axis=1)),
        np.asarray((infinity & sign).any(axis=1)),
        np.asarray(nan.any(axis=1)),
    )


def _scaled(p: _Products, spec: DotSpec, scale_a: np.ndarray, scale_b: np.ndarray) -> _Products:
    """Multiply the terms by their scales, after they are added in groups if the rule says so."""
    n, terms = p.significand.shape
    assert spec.scales is not None
    x, y = unpack_scale(scale_a, spec.scales.format), unpack_scale(scale_b, spec.scales.format)
    size = 1
    if spec.sum.lanes == "sixteens":
        size = GROUP
        # The scale is outside, so the sum is formed at the least exponent that a product can have.
        least = spec.input.emin + spec.input_b.emin
        least -= spec.input.fraction_bits + spec.input_b.fraction_bits
        values = (p.significand << (p.last - least)).reshape(n, terms // size, size).sum(axis=2)
        present = p.present.reshape(n, terms // size, size).any(axis=2)
        p = replace(
            p,
            significand=values,
            exponent=np.zeros_like(values),
            last=np.full_like(values, least),
            present=present,
        )
    each = spec.scales.block // size  # terms that share a scale
    factor = np.repeat(x.significand * y.significand, each, axis=1)
    exponent = np.repeat(x.exponent + y.exponent, each, axis=1)
    return replace(
        p,
        significand=p.significand * factor,
        exponent=p.exponent + exponent,
        last=p.last + exponent - 2 * spec.scales.format.fraction_bits,
        present=p.present & (factor != 0),
        nan=p.nan | x.nan.any(axis=1) | y.nan.any(axis=1),
    )


def _shift(value: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return floor(value · 2^places)."""
    return (value << np.clip(places, 0, _FAR)) >> np.clip(-places, 0, _FAR)


def _truncated(value: np.ndarray, places: np.ndarray, how: str) -> np.ndarray:
    """Return value · 2^places truncated to integers: "floor", "magnitude" or "odd"."""
    if how == "floor":
        return _shift(value, places)
    magnitude = np.abs(value)
    kept = _shift(magnitude, places)
    if how == "odd":
        lost = (places < 0) & (_shift(kept, -places) != magnitude)
        kept |= lost
    return np.where(value < 0, -kept, kept)


def _windowed_sum(
    p: _Products, z: Unpacked, spec: DotSpec, trace: dict[str, Any] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add the terms, truncated at one E_max, and C; return sign, magnitude and last exponent."""
    assert spec.sum.window is not None
    last_c = z.exponent - spec.output.fraction_bits
    addend = np.where(z.sign, -z.significand, z.significand)
    emax = p.emax()
    if spec.addend.how == "tree":
        emax = np.maximum(emax, np.where(z.significand == 0, _NONE, z.exponent))
    if spec.sum.floor is not None:
        emax = np.maximum(emax, spec.sum.floor)
    emax = np.where(emax == _NONE, 0, emax)
    unit = emax - spec.sum.window
    places = p.last - unit[:, None]
    kept = _truncated(p.significand, places, spec.sum.truncate)
    total = kept.sum(axis=1)
    if trace is not None:
        trace.update(emax=emax, kept=kept, total=total, unit=unit)
    if spec.addend.how == "after":
        return _exact_sum(total, unit, addend, last_c)
    place_c = last_c - unit
    kept_c = _truncated(addend, place_c, spec.sum.truncate)
    total = total + kept_c
    if spec.sum.truncate == "floor":  # append the sticky bit, which halves the unit
        lost = (places < 0) & (_shift(_shift(p.significand, places), -places) != p.significand)
        lost_c = (place_c < 0) & (_shift(_shift(addend, place_c), -place_c) != addend)
        total = (total << 1) | (lost.any(axis=1) | lost_c)
        unit = unit - 1
    if trace is not None:
        trace.update(kept_c=kept_c, total=total, unit=unit)
    return total < 0, np.abs(total), unit


def _exact_sum(
    x: np.ndarray, last_x: np.ndarray, y: np.ndarray, last_y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x · 2^last_x + y · 2^last_y as sign, magnitude (shortened by ``jam``) and exponent."""
    last = np.minimum(np.where(x == 0, last_y, last_x), np.where(y == 0, last_x, last_y))
    total = np.zeros(len(x), object)
    for value, exponent in ((x, last_x), (y, last_y)):
        total += value.astype(object) << np.where(value == 0, 0, exponent - last).astype(object)
    return (total < 0).astype(np.bool), *jam(np.abs(total), last)


def _aligned_sum(
    p: _Products, z: Unpacked, spec: DotSpec, trace: dict[str, Any] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add the terms and C by the rule of CDNA 3; return sign, magnitude and last exponent.

    T, the sum of the products truncated at 2^(E_d − 24), is floored at 2^(E_m − 32) and C at
    2^(E_m − 24); E_d is the largest exponent of the products, and E_m that of them and C. The sum
    is floored to 32 significant bits. With the lanes "parity", even and odd products are summed
    with exponents of their own and floored at 2^(E_d − 24), and a C far below E_m is dropped.
    """
    emax = p.emax()
    parity = spec.sum.lanes == "parity"
    total = np.zeros(len(emax), np.int64)
    for lane in (slice(0, None, 2), slice(1, None, 2)) if parity else (slice(None),):
        own = np.where(p.present[:, lane], p.exponent[:, lane], _NONE).max(axis=1)
        places = p.last[:, lane] - (own - OWN_BITS)[:, None]
        kept = _truncated(p.significand[:, lane], places, "magnitude")
        part = kept.sum(axis=1)
        total += _shift(part, own - emax) if parity else part
        if trace is not None:
            trace.setdefault("lanes", []).append((lane, own, kept))
    common = np.maximum(emax, z.exponent)
    total = _shift(total, (emax - OWN_BITS) - (common - COMMON_BITS))
    addend = np.where(z.sign, -z.significand, z.significand)
    if parity:
        addend = np.where(z.exponent < common - OWN_BITS - 1, 0, addend)
    last_c = z.exponent - spec.output.fraction_bits
    addend = _shift(addend, last_c - (common - OWN_BITS))
    unit = common - COMMON_BITS
    if trace is not None:
        trace.update(emax=emax, common=common, kept=total, kept_c=addend)
    total = total + (addend << (COMMON_BITS - OWN_BITS))
    leading = np.maximum(unit + bit_length(np.abs(total)) - 1, spec.output.emin)
    drop = np.maximum(leading - TOTAL_BITS - unit, 0)
    total = (total >> drop) << drop
    if trace is not None:
        trace.update(total=total, unit=unit)
    return total < 0, np.abs(total), unit


def _round(
    sign: np.ndarray, magnitude: np.ndarray, exponent: np.ndarray, spec: DotSpec
) -> np.ndarray:
    """Round to ``spec.output`` and flush; ``magnitude`` is below 2^60."""
    out = spec.output
    d = round_pack(
        sign,
        magnitude,
        exponent,
        out,
        spec.result.rounding,
        result_bits=spec.result.bits,
        overflow="infinity",
    )
    if spec.result.flush is None:
        return d
    if spec.result.flush == "before":
        tiny = exponent + bit_length(magnitude) - 1 < out.emin
    elif spec.result.flush == "unbounded":
        # Twice the value is rounded to the same precision if the value is at least half of the
        # least normal number; smaller values are below twice that number in either case.
        twice = round_pack(
            sign, magnitude, exponent + 1, out, spec.result.rounding, result_bits=spec.result.bits
        )
        double_least = 2 << (out.fraction_bits + out.storage_shift)
        tiny = (twice & ~twice.dtype.type(out.sign_mask)) < double_least
    else:
        tiny = d & d.dtype.type(out.exponent_mask) == 0
    return np.where(tiny, d & d.dtype.type(out.sign_mask), d)


def _with_specials(d: np.ndarray, p: _Products, z: Unpacked, spec: DotSpec) -> np.ndarray:
    """Replace the results of rows with an infinity or NaN among the products or in C."""
    plus, minus = p.plus | (z.infinity & ~z.sign), p.minus | (z.infinity & z.sign)
    nan = p.nan | z.nan | (plus & minus)
    out = spec.output
    if not out.has_infinity:  # ``round_pack`` gave the canonical NaN for an overflow
        d = np.where(d == out.canonical_nan, d.dtype.type(spec.nan_code), d)
    if out.overflow_has_sign:
        d = np.where(plus, d.dtype.type(out.overflow), d)
        d = np.where(minus, d.dtype.type(out.overflow | out.sign_mask), d)
    else:
        nan |= plus | minus
    return np.where(nan, d.dtype.type(spec.nan_code), d)
