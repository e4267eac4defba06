"""Operands that separate the steps of a machine's rule, in named strata.

Uniformly random codes hardly ever reach the last kept bit of an aligned product, a cancellation or
a subnormal result. Each stratum aims at one such place.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.codec import code_dtype, unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import Machine, compute
from vitruvian.golden.machines.table import output_format

_ANY_K = 4  # terms, if the rule takes any number of them
_WIDEST = 32  # bits of a code
_WINDOW = 24  # fraction bits that a rule without a window is taken to keep


@dataclass(frozen=True, kw_only=True)
class ConformanceOperands:
    """The operands of n dot products.

    Attributes
    ----------
    a, b : (n, K) ndarray of unsigned int, codes
    c : (n,) ndarray of unsigned int, codes
    stratum : (n,) ndarray of uint8
        Index into ``STRATA``.
    scale_a, scale_b : (n, K / block) ndarray of uint8, or None
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    stratum: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None


def draw(machine: Machine, rows: int, seed: int = 1) -> ConformanceOperands:
    """Return operands of a machine, the same ones for the same seed.

    Parameters
    ----------
    machine : Machine
        A row of the table with floating-point formats.
    rows : int
        Number of dot products; the strata get equal parts.
    seed : int
        Start of the random numbers.

    Raises
    ------
    UserError
        If the row multiplies integers.
    """
    output = output_format(machine)
    a, b = machine.input, machine.input_b
    formats = [f for f in (a, b, output) if isinstance(f, FloatFormat) and f.width <= _WIDEST]
    if len(formats) < 3:
        raise UserError(
            f"NAME must be a row with floating-point formats of at most {_WIDEST} bits, "
            f"not {machine.stem}"
        )
    a, b, output = formats
    source = _Source(machine, a, b, output, np.random.default_rng(seed))
    counts = [len(part) for part in np.array_split(np.arange(rows), len(STRATA))]
    parts = [_DRAW[name](source, n) for name, n in zip(STRATA, counts, strict=True)]
    x, y, z = (np.concatenate([part[i] for part in parts]) for i in range(3))
    stratum = np.repeat(np.arange(len(STRATA), dtype=np.uint8), counts)
    operands = ConformanceOperands(
        a=x.astype(code_dtype(a)),
        b=y.astype(code_dtype(b)),
        c=z.astype(code_dtype(output)),
        stratum=stratum,
    )
    scales = {f"scale_{side}": source.scales(rows, stratum) for side in "ab"}
    return replace(operands, **scales)


_Part = tuple[np.ndarray, np.ndarray, np.ndarray]


class _Source:
    """Random codes of the formats of one machine."""

    def __init__(
        self,
        machine: Machine,
        a: FloatFormat,
        b: FloatFormat,
        c: FloatFormat,
        rng: np.random.Generator,
    ):
        self.machine, self.a, self.b, self.c, self.rng = machine, a, b, c, rng
        self.terms: int = machine.rule.k or _ANY_K
        window = machine.rule.sum.window if isinstance(machine.rule, DotSpec) else None
        self.window: int = window or _WINDOW

    def between(self, low: int, high: int, *shape: int) -> np.ndarray:
        """Return random integers from ``low`` to ``high``."""
        return self.rng.integers(low, high + 1, shape)

    def chance(self, probability: float, *shape: int) -> np.ndarray:
        """Return random truth values."""
        return self.rng.random(shape) < probability

    def numbers(self, format: FloatFormat, exponent: np.ndarray) -> np.ndarray:
        """Return finite codes with these exponents, as far as the format has them."""
        bits = format.fraction_bits
        fraction = self.rng.integers(0, 1 << bits, exponent.shape)
        # Powers of two and full significands are more frequent than in uniform fractions.
        shape = self.rng.random(exponent.shape)
        fraction = np.where(shape < 0.3, 0, np.where(shape > 0.9, (1 << bits) - 1, fraction))
        exponent = np.minimum(exponent, format.emax)
        below = np.clip(format.emin - exponent, 0, bits + 1)
        significand = ((1 << bits) | fraction) >> below
        field = np.where(below > 0, 0, exponent + format.bias)
        code = (field << bits) | (significand & ((1 << bits) - 1))
        sign = self.rng.integers(0, 2, exponent.shape) << (format.width - 1)
        code = (code | sign) << format.storage_shift
        return _finite(code, format)

    def products(self, exponent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return codes of A and B whose products have about these exponents."""
        a, b = self.a, self.b
        share = exponent // 2 + self.between(-6, 6, *exponent.shape)
        share = np.clip(share, exponent - b.emax, exponent - b.emin)
        share = np.clip(share, a.emin - a.fraction_bits, a.emax)
        return self.numbers(a, share), self.numbers(b, exponent - share)

    def thinned(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Set one operand of some products to zero, and keep from one product to all of them."""
        n, terms = a.shape
        keep = self.between(1, terms, n, 1)
        gone = self.rng.random((n, terms)).argsort(axis=1) >= keep
        side = self.chance(0.5, n, terms)
        return (
            np.where(gone & side, self.zeros(self.a, n, terms), a),
            np.where(gone & ~side, self.zeros(self.b, n, terms), b),
        )

    def zeros(self, format: FloatFormat, *shape: int) -> np.ndarray:
        """Return zeros of both signs."""
        return np.where(self.chance(0.5, *shape), format.negative_zero, 0)

    def addend(self, exponent: np.ndarray, zero: float = 0.25) -> np.ndarray:
        """Return codes of C with these exponents, some of them zeros."""
        n = len(exponent)
        return np.where(self.chance(zero, n), self.zeros(self.c, n), self.numbers(self.c, exponent))

    def dot(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the result of the rule with C = +0; block scales are 1."""
        rule, n = self.machine.rule, len(a)
        c = np.zeros(n, np.uint64)
        scales = rule.scales if isinstance(rule, DotSpec) else None
        ones = None
        if scales is not None:
            one = scales.format.bias << scales.format.fraction_bits
            ones = np.full((n, self.terms // scales.block), one, np.uint8)
        return compute(rule, a, b, c, ones, ones).astype(np.int64)

    def scales(self, rows: int, stratum: np.ndarray) -> np.ndarray | None:
        """Return codes of scales near 1, any codes among the specials, or None."""
        rule = self.machine.rule
        scales = rule.scales if isinstance(rule, DotSpec) else None
        if scales is None:
            return None
        one = scales.format.bias << scales.format.fraction_bits
        near = one + self.between(-8, 8, rows, self.terms // scales.block)
        anything = self.between(0, 255, rows, self.terms // scales.block)
        special = stratum == list(STRATA).index("specials")
        return np.where(special[:, None], anything, near).astype(np.uint8)


def _finite(code: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Replace infinities and NaNs by the largest number of their sign."""
    u = unpack(code, format)
    largest = format.max_finite | np.where(u.sign, format.sign_mask, 0)
    return np.where(u.nan | u.infinity, largest, code)


def _special_codes(format: FloatFormat) -> tuple[np.ndarray, ...]:
    """Return infinities, NaNs (quiet and signalling) and zeros, those that the format has."""
    codes = [format.overflow, format.canonical_nan, 0]
    if format.has_infinity:
        codes.append(format.overflow + (1 << format.storage_shift))
    signed = np.unique([[code, code | format.sign_mask] for code in codes])
    u = unpack(signed, format)
    zero = (u.significand == 0) & ~u.infinity & ~u.nan
    return tuple(signed[kind] for kind in (u.infinity, u.nan, zero) if kind.any())


def _normal(s: _Source, n: int) -> _Part:
    a, b = s.thinned(*s.products(s.between(-4, 4, n, s.terms)))
    return a, b, s.addend(s.between(-6, 6, n))


def _wide(s: _Source, n: int) -> _Part:
    low, high = s.a.emin + s.b.emin, min(s.a.emax + s.b.emax, s.c.emax - 4)
    a, b = s.thinned(*s.products(s.between(low, high, n, s.terms)))
    return a, b, s.addend(s.between(max(low, s.c.emin), min(high, s.c.emax), n))


def _cut(s: _Source, n: int) -> _Part:
    low, high = s.a.emin + s.b.emin, min(s.a.emax + s.b.emax, s.c.emax)
    top = s.between(min(low + s.window, high), high, n, 1)
    distance = s.between(s.window - 16, s.window + 4, n, s.terms)
    first = s.between(0, s.terms - 1, n)
    distance[np.arange(n), first] = 0
    a, b = s.products(np.maximum(top - distance, low))
    # A power of two less a small number loses a place at its top, which shows the guard bits.
    power = np.flatnonzero(s.chance(0.4, n))
    a[power, first[power]] &= ~s.a.fraction_mask
    b[power, first[power]] &= ~s.b.fraction_mask
    a, b = s.thinned(a, b)
    return a, b, s.addend(top[:, 0] - s.between(s.window - 8, s.window + 4, n), 0.5)


def _cancel(s: _Source, n: int) -> _Part:
    a, b, c = _cut(s, n)
    if s.terms > 1:
        a[:, 1], b[:, 1] = a[:, 0] ^ s.a.sign_mask, b[:, 0]
        b[:, 1] ^= np.where(s.chance(0.5, n), 1 << s.b.storage_shift, 0)
    return _finite(a, s.a), _finite(b, s.b), c


def _unnormalised(s: _Source, n: int) -> _Part:
    in_a = s.chance(0.5, n)  # the side of the subnormal
    below = s.between(0, 6, n)
    top = np.where(in_a, s.a.emin + s.b.emax, s.a.emax + s.b.emin) - below
    distance = s.between(s.window - 16, s.window + 2, n, s.terms)
    a, b = s.products(np.maximum(top[:, None] - distance, s.a.emin + s.b.emin))
    tiny = [s.numbers(f, f.emin - s.between(1, f.fraction_bits, n)) for f in (s.a, s.b)]
    large = [s.numbers(f, f.emax - below) for f in (s.a, s.b)]
    a[:, 0] = np.where(in_a, tiny[0], large[0])
    b[:, 0] = np.where(in_a, large[1], tiny[1])
    if s.terms > 2:
        # In half of the rows a second product takes away the first, but for its last bit.
        half = s.chance(0.5, n)
        a[:, 1] = np.where(half, a[:, 0] ^ s.a.sign_mask, a[:, 1])
        b[:, 1] = np.where(half, b[:, 0] ^ (1 << s.b.storage_shift), b[:, 1])
    a, b = _finite(a, s.a), _finite(b, s.b)
    return a, b, s.addend(top - s.between(0, s.window, n), 0.6)


def _large_zeros(s: _Source, n: int) -> _Part:
    low = s.a.emin + s.b.emin - 2
    a, b = s.products(low + s.between(0, s.window - 4, n, 1) + s.between(0, 3, n, s.terms))
    high = s.chance(0.5, n, s.terms)
    zero = s.chance(0.5, n, s.terms)
    large_a = s.numbers(s.a, s.a.emax - s.between(0, 1, n, s.terms))
    large_b = s.numbers(s.b, s.b.emax - s.between(0, 1, n, s.terms))
    a = np.where(zero, np.where(high, large_a, s.zeros(s.a, n, s.terms)), a)
    b = np.where(zero, np.where(high, s.zeros(s.b, n, s.terms), large_b), b)
    return a, b, s.addend(s.between(low, low + s.window, n), 0.5)


def _late(s: _Source, n: int) -> _Part:
    a, b, _ = _cut(s, n)
    d = s.dot(a, b)
    flips = np.where(s.chance(0.5, n), s.between(0, 7, n), 0) << s.c.storage_shift
    near = _finite((d ^ s.c.sign_mask) ^ flips, s.c)
    far = s.numbers(s.c, unpack(d, s.c).exponent + s.between(-30, 30, n))
    return a, b, np.where(s.chance(0.3, n), near, far)


def _zeros(s: _Source, n: int) -> _Part:
    a, b, _ = _normal(s, n)
    cancels = s.chance(0.5, n)
    pair, other = a.copy(), b.copy()
    pair[:, 1::2] = pair[:, : s.terms // 2 * 2 : 2] ^ s.a.sign_mask
    other[:, 1::2] = other[:, : s.terms // 2 * 2 : 2]
    if s.terms % 2:
        pair[:, -1] = 0
    zero_a = s.zeros(s.a, n, s.terms)
    a = np.where(cancels[:, None], _finite(pair, s.a), zero_a)
    b = np.where(cancels[:, None], other, b)
    small = s.numbers(s.c, s.between(s.c.emin - s.c.fraction_bits, s.c.emin, n))
    # If all products are negative zeros, the sign of the result depends on C alone.
    negative = s.chance(0.5, n) & ~cancels
    a = np.where(negative[:, None], s.a.negative_zero, a)
    b = np.where(negative[:, None], b & ~s.b.sign_mask, b)
    return a, b, np.where(s.chance(0.75, n), s.zeros(s.c, n), small)


def _overflow(s: _Source, n: int) -> _Part:
    high = min(s.a.emax + s.b.emax, s.c.emax)
    a, b = s.thinned(*s.products(high - s.between(0, 3, n, s.terms)))
    same = s.chance(0.7, n)[:, None]
    a, b = np.where(same, a & ~s.a.sign_mask, a), np.where(same, b & ~s.b.sign_mask, b)
    return a, b, s.addend(s.c.emax - s.between(0, 2, n), 0.3)


def _tiny(s: _Source, n: int) -> _Part:
    low = s.a.emin + s.b.emin - s.a.fraction_bits - s.b.fraction_bits
    start = max(s.c.emin - s.c.fraction_bits - 4, low)
    a, b = s.thinned(*s.products(s.between(start, start + 32, n, s.terms)))
    odd = s.chance(0.3, n)[:, None]  # every operand is subnormal
    a = np.where(odd, s.numbers(s.a, s.between(s.a.emin - 4, s.a.emin, n, s.terms)), a)
    exponent = s.between(s.c.emin - s.c.fraction_bits, s.c.emin + 1, n)
    return a, b, s.addend(exponent, 0.5)


def _specials(s: _Source, n: int) -> _Part:
    a, b, c = _normal(s, n)

    def placed(codes: np.ndarray, format: FloatFormat, probability: float) -> np.ndarray:
        kinds = _special_codes(format)
        choice = s.between(0, len(kinds) - 1, *codes.shape)
        picked = np.zeros_like(codes)
        for number, kind in enumerate(kinds):
            picked = np.where(choice == number, s.rng.choice(kind, codes.shape), picked)
        return np.where(s.chance(probability, *codes.shape), picked, codes)

    few = 0.7 / s.terms
    return placed(a, s.a, few), placed(b, s.b, few), placed(c, s.c, 0.2)


def _random(s: _Source, n: int) -> _Part:
    a, b = (s.rng.integers(0, 1 << f.width, (n, s.terms)) << f.storage_shift for f in (s.a, s.b))
    return a, b, s.rng.integers(0, 1 << s.c.width, n) << s.c.storage_shift


#: The strata in their order, each with a sentence about its rows.
STRATA = {
    "normal": "All terms are near to 1.",
    "wide": "The exponents of the products are spread over the whole range.",
    "cut": "One product is the largest; the others end some bits above or below the last kept one.",
    "cancel": "The largest products cancel but for their last bits, and smaller ones remain.",
    "unnormalised": "A subnormal's product has the largest exponent; its few bits show the cuts.",
    "large_zeros": "Zeros are multiplied by large numbers, beside products that are small.",
    "late": "C is near to the negative sum of the products, or up to 30 places away from it.",
    "zeros": "Every product is zero, or the products cancel exactly; zeros have both signs.",
    "overflow": "The sum is near the largest number, or C is.",
    "tiny": "ConformanceOperands, results or C are subnormal.",
    "specials": "Some operands are infinities, NaNs or zeros.",
    "random": "All bit patterns are equally frequent.",
}
_DRAW: dict[str, Callable[[_Source, int], _Part]] = {
    "normal": _normal,
    "wide": _wide,
    "cut": _cut,
    "cancel": _cancel,
    "unnormalised": _unnormalised,
    "large_zeros": _large_zeros,
    "late": _late,
    "zeros": _zeros,
    "overflow": _overflow,
    "tiny": _tiny,
    "specials": _specials,
    "random": _random,
}
