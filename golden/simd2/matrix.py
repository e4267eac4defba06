"""The matrix operation D = C ⊕ (A ⊗ B) on NumPy arrays of values."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.cube import mmad_any
from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.cube.sums import is_short, sums
from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot, number_dtype
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2.op import PARTS, Op, as_op
from vitruvian.golden.simd2.plain import plain_mmo, truth
from vitruvian.golden.simd2.squares import square_sums

#: Formats of operands, keyed by the dtype of their arrays
OPERANDS: dict[np.dtype[Any], str] = {number_dtype(name): name for name in ("fp16", "bf16", "fp32")}
#: Ways in which addnorm can form its terms
SQUARES = ("differences", "products")
_TERMS = 1 << 22  # terms per step, which bounds the memory
# Matrices of at most so many terms are computed together, up to so many terms in one step
_FEW, _STACKED = 1 << 10, 1 << 18
_LOW_BITS = np.int32(0x7FFFFFFF)
_LAST, _FIRST = np.int32(0x7FFFFFFF), np.int32(-0x80000000)  # ranks of a NaN
_NAN = np.uint32(0x7FC00000)


def mmo(
    op: Op | str,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    k: int = 4,
    preset: str = "ieee",
    window: int | None = None,
    squares: str = "differences",
) -> np.ndarray:
    """Return D = C ⊕ (A ⊗ B) as a unit computes it.

    Parameters
    ----------
    a : (..., M, K) array_like of float16, bfloat16 or float32
        K may be 0.
    b : (..., K, N) array_like of the same dtype
    c : (..., M, N) array_like of float32, optional
        ``op.identity`` by default.
    k : int
        Terms of a fused sum. If ⊕ is +, K is computed in blocks of ``k`` terms, and the sum is
        rounded once per block. The other operations do not depend on it.
    preset : str
        Accuracy of those sums; see ``sum_spec``.
    window : int, optional
        Fraction bits that an ``ieee`` sum keeps; see ``sum_spec``.
    squares : {"differences", "products"}
        Terms of addnorm. "differences": a − b is rounded to FP32 (RNE) and squared exactly.
        "products": a·a − a·b − a·b + b·b, four terms of a sum of products; see
        ``golden.simd2.squares``. The hardware computes "products", of FP16 operands and with k a
        multiple of 4.

    Returns
    -------
    (..., M, N) ndarray of float32
        If ⊕ is not +, the results of ⊗ are exact and then rounded once (RNE). Minimum and maximum
        prefer a number to a NaN, and −0 < +0. orand counts every operand as true that is neither
        zero nor NaN, and gives 1 or 0.

    Raises
    ------
    TypeError
        If an array has the wrong dtype.
    ValueError
        If the operation or an option is unknown, or if the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import mmo
    >>> inf = np.inf
    >>> roads = np.array([[0, 2, inf], [inf, 0, 3], [inf, inf, 0]], np.float16)
    >>> mmo("minplus", roads, roads).tolist()  # shortest paths of at most two edges
    [[0.0, 2.0, 5.0], [inf, 0.0, 3.0], [inf, inf, 0.0]]
    """
    op = as_op(op)
    a, b, c = _operands(op, a, b, c)
    one_of("squares", squares, SQUARES)
    by_products = op is Op.ADDNORM and squares == "products"
    sum_op = Op.MMA if by_products else op
    spec = sum_spec(sum_op, OPERANDS[a.dtype], k=k, preset=preset, window=window)
    shape = c.shape
    a, b, c = (x.reshape(prod(shape[:-2]), *x.shape[-2:]) for x in (a, b, c))
    d = np.empty(c.shape, np.float32)
    terms = a.shape[1] * a.shape[2] * b.shape[2]
    if op.plus != "add" and len(d) > 1 and terms <= _FEW:
        # For small matrices a call costs more than the arithmetic, so many share one call.
        step = _STACKED // max(terms, 1)
        for part in (slice(i, i + step) for i in range(0, len(d), step)):
            d[part] = plain_mmo(op, _wide(a[part]), _wide(b[part]), c[part])
        return d.reshape(shape)
    for matrix, x, y, z in zip(d, a, b, c, strict=True):
        if by_products and spec is not None:
            matrix[:] = _squares(x, y, z, spec)
        else:
            matrix[:] = _matrix(op, x, y, z, spec)
    return d.reshape(shape)


def _operands(
    op: Op, a: ArrayLike, b: ArrayLike, c: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A, B and C as arrays with the same leading axes; see ``mmo`` for the errors."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype not in OPERANDS or a.dtype != b.dtype:
        names = ", ".join(dtype.name for dtype in OPERANDS)
        raise TypeError(
            f"a and b must have the same dtype, one of {names}, "
            f"not {a.dtype.name} and {b.dtype.name}"
        )
    m, n = check_factors(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    c = np.full((*lead, m, n), op.identity, np.float32) if c is None else np.asarray(c)
    if c.dtype != np.float32:
        raise TypeError(f"c must be float32, not {c.dtype.name}")
    check_addend(c, (m, n))
    lead = np.broadcast_shapes(lead, c.shape[:-2])
    a, b, c = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, c))
    return a, b, c


def sum_spec(
    op: Op, format: str, *, k: int = 4, preset: str = "ieee", window: int | None = None
) -> DotSpec | None:
    """Return the arithmetic of an operation's fused sums, or None if ⊕ is not +.

    Parameters
    ----------
    format : str
        Format of the operands. The terms of addnorm are squares of FP32 numbers in any case.
    k : int
        Terms of a block.
    preset : str
        Accuracy of the sums. Sums of FP32 terms are always ``ieee``.
    window : int, optional
        Fraction bits that an ``ieee`` sum keeps, at least as many as the preset needs; with any
        other preset it must be None.

    Raises
    ------
    ValueError
        If the preset is unknown or does not have the format, or if ``window`` is too narrow or the
        preset does not allow one.
    """
    check_int("k", k, 1)
    if op.plus != "add":
        return None
    one_of("preset", preset, PRESETS)
    if op.times == "sqdiff" or format == "fp32":
        format, preset = "fp32", "ieee"
    spec = PRESETS[preset].spec(format, k=k)
    if window is None:
        return spec
    if spec.sum.window is None or PRESETS[preset].is_machine:
        raise ValueError(f"window must be None with preset {preset}, not {window!r}")
    check_int("window", window, spec.sum.window)
    return dot_spec(input=spec.input, output=spec.output, k=k, window=window)


def _matrix(
    op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec | None
) -> np.ndarray:
    """Return the D of one matrix, by the fastest method that gives the right bits."""
    if spec is not None and not is_short(spec):
        return _product(a, b, c, spec) if op is Op.MMA else _norms(a, b, c, spec)
    a, b = _wide(a), _wide(b)
    if spec is not None:
        return sums(op.times, a, b, c, spec)
    if op is Op.ORAND:
        # A float32 sum of zeros and ones is zero only if all of them are.
        trues = truth(a).astype(np.float32) @ truth(b).astype(np.float32)
        return ((trues != 0) | truth(c)).astype(np.float32)
    if op.times in ("min", "max"):
        return _extrema(a, b, c, flip=np.int32(-1 if op.plus == "max" else 0))
    if _is_plain(op, a, b, c):
        return _quick(op, a, b, c)
    return _ranked(op, a, b, c)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


def _squares(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray:
    if spec.k % PARTS or not is_short(spec):
        return square_sums(a, b, c, spec)
    return sums("squares", _wide(a), _wide(b), c, spec)


def _product(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray:
    x, y, z = (np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}") for x in (a, b, c))
    return mmad_any(x, y, z, spec=spec).view(np.float32)


def _norms(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray:
    """Return the fused sums of squared differences, computed in groups of rows."""
    a, b = _wide(a), _wide(b)
    d = np.array(c).view(np.uint32)
    columns = np.ascontiguousarray(b.T)
    rows = max(_TERMS // max(spec.k * b.shape[1], 1), 1)
    for i in range(0, a.shape[0], rows):
        for start in range(0, a.shape[1], spec.k):
            block = slice(start, start + spec.k)
            with np.errstate(all="ignore"):
                x = (a[i : i + rows, None, block] - columns[None, :, block]).view(np.uint32)
            d[i : i + rows] = fused_dot(x, x, d[i : i + rows], spec)
    return d.view(np.float32)


def _is_plain(op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> bool:
    """Return True if no NaN and no zeros of both signs can occur in the results of ⊗ and C.

    Then comparing floating-point numbers gives the right bits. A sum is −0 only if both operands
    are −0. A zero product, or one that underflows in FP32, has the sign that the signs of its
    operands give.
    """
    if any(np.isnan(x).any() for x in (a, b, c)):
        return False
    (a_low, a_high), (b_low, b_high) = ((_least(x), _most(x)) for x in (a, b))
    infinity = np.float32(np.inf)
    if op.times == "add":
        opposite = (a_high == infinity and b_low == -infinity) or (
            a_low == -infinity and b_high == infinity
        )
        return not opposite and not (_minus_zero(c) or (_minus_zero(a) and _minus_zero(b)))
    if any(np.isinf(x).any() and not y.all() for x, y in ((a, b), (b, a))):
        return False  # ∞·0 can occur
    signs = [np.signbit(x) for x in (a, b)]
    if any(s.any() != s.all() for s in signs):
        return False
    negative = any(s.any() for s in signs) and not all(s.any() for s in signs)
    return not (np.signbit(c[c == 0]) != negative).any()


def _least(x: np.ndarray) -> np.float32:
    return x.min(initial=np.float32(np.inf))


def _most(x: np.ndarray) -> np.float32:
    return x.max(initial=np.float32(-np.inf))


def _minus_zero(x: np.ndarray) -> bool:
    """Return True if any element is −0."""
    return bool((np.ascontiguousarray(x).view(np.uint32) == 1 << 31).any())


def _quick(op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    from vitruvian.golden.simd2.matrix_compiled import quick  # here, as Numba loads slowly

    sign = np.float32(-1 if op.plus == "max" else 1)  # max(x) = −min(−x)
    d = sign * c
    quick(np.ascontiguousarray(a), np.ascontiguousarray(b), d, op.times == "mul", sign)
    return sign * d


def _ranked(op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    from vitruvian.golden.simd2.matrix_compiled import TURN, WORST, ranked

    flip = np.int32(-1 if op.plus == "max" else 0)
    d = _ranks(c, flip, nan=_LAST)
    d += TURN
    ranked(np.ascontiguousarray(a), np.ascontiguousarray(b), d, op.times == "mul", flip)
    is_nan = d > WORST
    d -= TURN
    d[is_nan] = _LAST
    return _values(d, flip)


def _extrema(a: np.ndarray, b: np.ndarray, c: np.ndarray, *, flip: np.int32) -> np.ndarray:
    from vitruvian.golden.simd2.matrix_compiled import ranked_extrema

    d = _ranks(c, flip, nan=_LAST)
    ranked_extrema(_ranks(a, flip, nan=_FIRST), _ranks(b, flip, nan=_FIRST), d)
    return _values(d, flip)


def _ranks(x: np.ndarray, flip: np.int32, *, nan: np.int32) -> np.ndarray:
    """Return int32 ranks in the order of the numbers, with −0 before +0.

    If ``flip`` is −1, the order is reversed. A NaN gets the rank ``nan``.
    """
    # Sign and magnitude become two's complement: a negative number's magnitude bits are inverted.
    bits = np.array(x, order="C").view(np.int32)
    bits ^= (bits >> 31) & _LOW_BITS
    bits ^= flip
    bits[np.isnan(x)] = nan
    return bits


def _values(ranks: np.ndarray, flip: np.int32) -> np.ndarray:
    """Return the numbers that have these ranks; the last rank stands for the canonical NaN."""
    bits = ranks ^ flip
    bits ^= (bits >> 31) & _LOW_BITS
    return np.where(ranks == _LAST, _NAN, bits.view(np.uint32)).view(np.float32)
