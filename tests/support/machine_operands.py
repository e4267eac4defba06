"""Operands of matrix products by the rules of machines, with the corners of their formats."""

import numpy as np

from vitruvian.golden.fp import from_float, unpack
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.sums.products import Operands

#: "bits": all codes, few of them infinities and NaNs. "few": small integers, whose sums are often
#: zero or ties. "normal": normal numbers and zeros. "tiny": codes with small exponents.
#: "subnormal": subnormal operands, and C of the size of their products.
KINDS = ("bits", "few", "normal", "tiny", "subnormal")


def codes(rng, f, shape, kind):
    """Return random codes of a format."""
    size = int(np.prod(shape))
    if kind == "few":
        return from_float(rng.integers(-3, 4, size).astype(float), f).reshape(shape)
    if kind == "normal":
        numbers = rng.standard_normal(size) * (rng.random(size) < 0.7)
        return from_float(numbers, f).reshape(shape)
    x = rng.integers(0, 1 << f.code_bits, size, dtype=np.uint64).astype(code_dtype(f))
    if kind == "subnormal":
        return (x & x.dtype.type(f.sign_mask | f.fraction_mask)).reshape(shape)
    if kind == "tiny":
        field = f.exponent_mask & 3 << f.fraction_bits + f.storage_shift
        return (x & x.dtype.type(f.sign_mask | f.fraction_mask | field)).reshape(shape)
    u = unpack(x, f)
    x[(u.nan | u.infinity) & (rng.random(size) < 0.99)] = 0
    return x.reshape(shape)


def operands(rng, rule, kind, rows=9, columns=20, steps=2, terms=12):
    """Return operands of a rule; a rule without a number of terms gets ``terms``."""
    k = steps * rule.k if rule.k else terms
    a = codes(rng, rule.input, (rows, k), kind)
    b = codes(rng, rule.input_b, (k, columns), kind)
    c = codes(rng, rule.output, (rows, columns), "bits" if kind == "tiny" else kind)
    if kind == "tiny":
        c[::2] = 0
    elif kind == "subnormal":
        size = 2.0 ** (rule.input.emin + rule.input_b.emin)
        c = from_float(rng.standard_normal(c.size) * size, rule.output).reshape(c.shape)
    elif kind == "bits":
        c[::3] = codes(rng, rule.output, (len(c[::3]), columns), "normal")
        c[1::3] = codes(rng, rule.output, (len(c[1::3]), columns), "tiny")
    if getattr(rule, "scales", None) is None:
        return Operands(a, b, c)
    full = 256 if kind == "bits" else rule.scales.format.nan
    low, high = (115, 140) if kind != "bits" and rule.scales.format.name == "ue8m0" else (0, full)
    scales = [rng.integers(low, high, n).astype(np.uint8) for n in (rows, columns)]
    scales = [np.tile(s[:, None], k // rule.scales.block) for s in scales]
    for s in scales:  # one scale differs from those of its row
        s[0, -1] = low
    return Operands(a, b, c, scales[0], np.ascontiguousarray(scales[1].T))
