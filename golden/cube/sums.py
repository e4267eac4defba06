"""Fused sums with FP32 results, on arrays of values; ``golden.cube.sums_compiled`` makes them.

This is the one way to a large matrix product: ``golden.cube.mmad``, ``golden.m3xu.gemm`` and
``golden.simd2.mmo`` all end here wherever the parameters allow it.
"""

from functools import lru_cache

import numpy as np

from vitruvian.golden.fp.codec import as_codes, to_float
from vitruvian.golden.fp.spec import DotSpec

__all__ = ["fits_floats", "float_mmad", "is_short", "sums"]

_LOOKED_UP_BITS = 16


def is_short(spec):
    """Whether sums are rounded once, to nearest, to FP32, and have room in one word of 64 bits."""
    if spec.window is None or spec.window + spec.k.bit_length() > 54:
        return False
    plain = DotSpec(input=spec.input, output="fp32", k=spec.k, window=spec.window)
    return spec == plain


def fits_floats(spec):
    """Whether ``float_mmad`` can do a spec: ``is_short``, of operands that are FP32 numbers."""
    f = spec.input
    if f.storage_bits > _LOOKED_UP_BITS:
        fp32_like = f.exponent_bits == 8 and f.width + f.storage_shift == f.storage_bits == 32
        return fp32_like and is_short(spec)
    inside = f.emin - f.fraction_bits >= -149 and f.emax <= 127 and f.fraction_bits <= 23
    return inside and is_short(spec)


def float_mmad(a, b, c, spec):
    """As ``golden.cube.mmad.plain_mmad``, for a spec that ``fits_floats``."""
    a = _values(as_codes(a, spec.input, "a"), spec.input)
    b = _values(as_codes(b, spec.input, "b"), spec.input)
    c = as_codes(c, spec.output, "c").view(np.float32)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, c))
    d = np.empty(c.shape, np.float32)
    for i in np.ndindex(lead):
        d[i] = sums("mul", a[i], b[i], c[i], spec)
    return d.view(np.uint32)


def sums(kind, a, b, c, spec):
    """D of one matrix: C and sums of products ("mul"), "squares" by products or "sqdiff".

    Parameters
    ----------
    kind : {"mul", "squares", "sqdiff"}
    a, b, c : (M, K), (K, N), (M, N) ndarray of float32
    spec : DotSpec
        One that ``is_short``.
    """
    # numba takes its time to load
    from vitruvian.golden.cube.sums_compiled import STRIP, norms, products, squares

    swap = b.shape[1] < min(a.shape[0], STRIP)  # the strips shall be long
    if swap:
        a, b, c = b.T, a.T, c.T
    a, b, d = np.ascontiguousarray(a), np.ascontiguousarray(b), np.array(c, order="C")
    if kind == "sqdiff":
        norms(a, b, d, spec.k, spec.window)
    else:
        compute = squares if kind == "squares" else products
        compute(a, b, d, spec.k, spec.window, spec.input.emin)
    return d.T if swap else d


def _values(codes, format):
    """Codes as FP32 numbers."""
    if format.storage_bits <= _LOOKED_UP_BITS:
        return _table(format).take(codes)
    if format.storage_shift:
        codes = codes & np.uint32(-1 << format.storage_shift & 0xFFFFFFFF)
    return codes.view(np.float32)


@lru_cache(8)
def _table(format):
    with np.errstate(invalid="ignore"):
        return to_float(np.arange(1 << format.storage_bits), format).astype(np.float32)
