"""Matrix multiply-accumulate: a fused dot product for every element of the result."""

from itertools import count
from math import prod
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_type
from vitruvian.golden.cube.doubles import double_mmad, fits_doubles
from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.cube.sums import fits_floats, float_mmad
from vitruvian.golden.fp import DotSpec, IntDotSpec, fused_dot, int_dot, int_matmul
from vitruvian.golden.fp.codec import as_codes
from vitruvian.golden.fp.plain import sum_bits
from vitruvian.golden.sums.products import Operands, product

_TERMS = 1 << 22  # terms per step of the plain version, which bounds its memory

# The compiled version loads Numba, which takes seconds; so it is used only if that is worth while.
_MANY = 1 << 14  # terms of a product from which on loading it pays
_LONG = 4  # elements in a row or a column of D from which on it is faster
_TILE = 1 << 11  # terms of a product from which on it is faster once it is loaded
_TILES = 256  # number of such products after which it is loaded
_MATRIX = 1 << 12  # terms of one matrix from which on the sums in float64 are faster
_WIDE = 40  # fraction bits of a product
_LARGE = 1 << 16  # terms of one matrix from which on a generated kernel is faster

_tiles = count(1)  # small products so far: a program that computes some computes many


def mmad(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    spec: DotSpec | IntDotSpec,
    threads: int = 1,
) -> np.ndarray:
    """Return D = C + A·B, computed in blocks of ``spec.k`` terms.

    The blocks follow in ascending k, and the D of a block is the C of the next.

    Parameters
    ----------
    a : (..., M, K) array_like of int
        ``spec.input`` codes, or 8-bit integers. K is at most ``spec.k`` or a multiple of it.
    b : (..., K, N) array_like of int
        ``spec.input_b`` codes, or 8-bit integers.
    c : (..., M, N) array_like of int, optional
        ``spec.output`` codes, or int32 values or codes; zero (+0) by default. Leading axes
        broadcast.
    spec : DotSpec or IntDotSpec
        Arithmetic of a block.
    threads : int
        Number of threads for large products by the rules of tensor cores.

    Returns
    -------
    (..., M, N) ndarray
        ``spec.output`` codes, or int32.

    Raises
    ------
    TypeError
        If ``spec`` has the wrong type or an operand does not hold integers.
    ValueError
        If a code is too wide, or if the shapes or K do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import PRESETS, mmad
    >>> ones = np.full((2, 16), 0x3C00, np.uint16)  # codes of 1.0 in fp16
    >>> d = mmad(ones, ones.T, spec=PRESETS["ieee"].spec("fp16"))
    >>> d.view(np.float32).tolist()
    [[16.0, 16.0], [16.0, 16.0]]
    """
    check_type("spec", spec, DotSpec, IntDotSpec)
    a, b = np.asarray(a), np.asarray(b)
    m, n = check_factors(a, b, least=1)
    terms = a.shape[-1]
    if terms > spec.k and terms % spec.k:
        raise ValueError(f"K must be at most {spec.k} or a multiple of it, not {terms!r}")
    c = np.zeros((m, n), np.uint32) if c is None else np.asarray(c)
    check_addend(c, (m, n))
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    if isinstance(spec, IntDotSpec) and not spec.saturate:
        return int_matmul(a, b, c, signed_a=spec.signed_a, signed_b=spec.signed_b)
    # Choose the method by the amount of work; all methods return the same bits.
    work = m * n * terms * prod(lead)
    many = max(m, n) >= _LONG and (work >= _MANY or (work >= _TILE and next(_tiles) > _TILES))
    if not many:
        return plain_mmad(a, b, c, spec)
    if isinstance(spec, DotSpec):
        d = _fast(a, b, c, spec, lead, threads)
        if d is not None:
            return d
    if not fits(spec, terms):
        return plain_mmad(a, b, c, spec)
    from vitruvian.golden.cube.mmad_compiled import compiled_mmad  # here, as Numba loads slowly

    return compiled_mmad(a, b, c, spec)


def _fast(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: DotSpec,
    lead: tuple[int, ...],
    threads: int,
) -> np.ndarray | None:
    """Compute large matrices in floating point, or return None."""
    terms = a.shape[-1]
    work = a.shape[-2] * terms * b.shape[-1]
    in_floats = work >= _MATRIX and fits(spec, terms) and fits_floats(spec)
    # Sums of wide products are seldom exact or ties, so that the sums in float64 are faster.
    if in_floats and 2 * spec.input.fraction_bits > _WIDE:
        return float_mmad(a, b, c, spec)
    if work >= _LARGE:
        shorter = spec.replace(k=min(spec.k, terms))
        formats = ((a, spec.input, "a"), (b, spec.input_b, "b"), (c, spec.output, "c"))
        codes = [as_codes(x, format, name) for x, format, name in formats]
        x, y, z = (np.broadcast_to(each, (*lead, *each.shape[-2:])) for each in codes)
        d, in_doubles = np.empty(z.shape, z.dtype), fits_doubles(spec)
        for i in np.ndindex(lead):
            if in_doubles:
                one = double_mmad(x[i], y[i], z[i], spec)
            else:
                one = product(Operands(x[i], y[i], z[i]), shorter, threads)
            if one is None:
                break
            d[i] = one
        else:
            return d
    return float_mmad(a, b, c, spec) if in_floats else None


def mmad_any(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    *,
    spec: DotSpec | IntDotSpec,
    threads: int = 1,
) -> np.ndarray:
    """Return D = C + A·B for any K: whole blocks, then the rest as a shorter block.

    With K = 0, D is C bit for bit.

    Parameters
    ----------
    a, b, c, spec, threads
        The same as those of ``mmad``, except that ``c`` is required.
    """
    whole = a.shape[-1] - a.shape[-1] % spec.k
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    d = np.broadcast_to(c, (*lead, *c.shape[-2:]))
    for part in (slice(0, whole), slice(whole, None)):
        if a[..., part].size and b[..., part, :].size:
            d = mmad(a[..., part], b[..., part, :], d, spec=spec, threads=threads)
    return np.ascontiguousarray(d)


def fits(spec: DotSpec | IntDotSpec, terms: int) -> TypeGuard[DotSpec]:
    """Return True if ``compiled_mmad`` can hold the sums of a spec, for K = ``terms``."""
    if not isinstance(spec, DotSpec) or spec.sum.window is None:
        return False
    if not spec.is_plain or spec.result.zero == "exact":
        return False
    widest = max(f.fraction_bits for f in (spec.input, spec.input_b, spec.output))
    return widest <= 52 and sum_bits(spec, min(spec.k, terms)) <= 126


def plain_mmad(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec | IntDotSpec
) -> np.ndarray:
    """Return what ``mmad`` returns, as broadcast dot products on arrays of matching shapes."""
    m, n, terms = a.shape[-2], b.shape[-1], a.shape[-1]
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    d = np.broadcast_to(c, (*lead, m, n))
    columns = np.swapaxes(b, -1, -2)
    step = max(_TERMS // max(n * min(spec.k, terms) * prod(lead), 1), 1)
    rows = [
        _rows(a[..., i : i + step, :], columns, d[..., i : i + step, :], spec)
        for i in range(0, max(m, 1), step)
    ]
    return np.concatenate(rows, axis=-2)


def _rows(
    a: np.ndarray, columns: np.ndarray, d: np.ndarray, spec: DotSpec | IntDotSpec
) -> np.ndarray:
    """Return the result for some rows of A.

    ``a`` is (..., rows, K), ``columns`` is B transposed, (..., N, K), and ``d`` is (..., rows, N).
    """
    for start in range(0, a.shape[-1], spec.k):
        block = slice(start, start + spec.k)
        x, y = a[..., :, None, block], columns[..., None, :, block]
        if isinstance(spec, DotSpec):
            d = fused_dot(x, y, d, spec)
        else:
            signs = {"signed_a": spec.signed_a, "signed_b": spec.signed_b}
            d = int_dot(x, y, d, saturate=spec.saturate, **signs)
    return np.asarray(d)
