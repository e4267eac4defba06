"""Fused sums with FP32 results on arrays of values, computed by ``golden.cube.sums_compiled``.

This is the fast path for large matrix products: ``golden.cube.mmad``, ``golden.m3xu.gemm`` and
``golden.simd2.mmo`` all use it if the parameters allow it.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import as_codes, to_float
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec, dot_spec

_LOOKED_UP_BITS = 16  # widest codes that are decoded with a table


def is_short(spec: DotSpec) -> bool:
    """Return True if the fused sums of ``spec`` fit into 64 bits and are rounded to FP32 as IEEE.

    The accuracy must be that of the ``ieee`` presets: floor with sticky, RNE, all result bits, the
    signs of zeros as in IEEE 754, no floor of E_max. Both operands have the same format.
    """
    if spec.sum.window is None or spec.sum.window + spec.k.bit_length() > 54:
        return False
    plain = dot_spec(input=spec.input, output="fp32", k=spec.k, window=spec.sum.window)
    return spec == plain


def fits_floats(spec: DotSpec) -> bool:
    """Return True if ``is_short(spec)`` and every operand is exactly an FP32 number."""
    f = spec.input
    if f.storage_bits > _LOOKED_UP_BITS:
        fp32_like = f.exponent_bits == 8 and f.width + f.storage_shift == f.storage_bits == 32
        return fp32_like and is_short(spec)
    inside = f.emin - f.fraction_bits >= -149 and f.emax <= 127 and f.fraction_bits <= 23
    return inside and is_short(spec)


def float_mmad(a: ArrayLike, b: ArrayLike, c: ArrayLike, spec: DotSpec) -> np.ndarray:
    """Return what ``golden.cube.mmad.plain_mmad`` returns, for a spec that ``fits_floats``.

    Parameters
    ----------
    a : (..., M, K) array_like of unsigned int, ``spec.input`` codes
    b : (..., K, N) array_like of unsigned int, ``spec.input`` codes
    c : (..., M, N) array_like of unsigned int, FP32 codes

    Returns
    -------
    (..., M, N) ndarray of uint32, FP32 codes
    """
    a = _values(as_codes(a, spec.input, "a"), spec.input)
    b = _values(as_codes(b, spec.input, "b"), spec.input)
    c = as_codes(c, spec.output, "c").view(np.float32)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, c))
    d = np.empty(c.shape, np.float32)
    for i in np.ndindex(lead):
        d[i] = sums("mul", a[i], b[i], c[i], spec)
    return d.view(np.uint32)


def sums(kind: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray:
    """Add fused sums to one matrix C and return D.

    Parameters
    ----------
    kind : {"mul", "squares", "sqdiff"}
        "mul" adds products; "squares" adds (a − b)² as the four products of
        ``golden.simd2.squares``; "sqdiff" adds the squares of the differences rounded to FP32.
    a, b, c : (M, K), (K, N), (M, N) ndarray of float32
    spec : DotSpec
        A spec that ``is_short``.

    Returns
    -------
    (M, N) ndarray of float32
    """
    # Imported here because Numba loads slowly
    from vitruvian.golden.cube.sums_compiled import STRIP, norms, products, squares

    # The inner loops run along rows of D. If D is narrow, Dᵀ = Cᵀ + Bᵀ·Aᵀ has longer rows.
    swap = b.shape[1] < min(a.shape[0], STRIP)
    if swap:
        a, b, c = b.T, a.T, c.T
    a, b, d = np.ascontiguousarray(a), np.ascontiguousarray(b), np.array(c, order="C")
    if kind == "sqdiff":
        norms(a, b, d, spec.k, spec.sum.window)
    else:
        compute = squares if kind == "squares" else products
        compute(a, b, d, spec.k, spec.sum.window, spec.input.emin)
    return d.T if swap else d


def _values(codes: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Return codes as FP32 numbers."""
    if format.storage_bits <= _LOOKED_UP_BITS:
        return _table(format).take(codes)
    if format.storage_shift:
        codes = codes & np.uint32(-1 << format.storage_shift & 0xFFFFFFFF)
    return codes.view(np.float32)


@lru_cache(8)
def _table(format: FloatFormat) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return to_float(np.arange(1 << format.code_bits), format).astype(np.float32)
