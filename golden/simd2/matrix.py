"""D = C ⊕ (A ⊗ B) on NumPy arrays of values."""

from math import prod

import ml_dtypes
import numpy as np

from vitruvian.golden.cube import mmad_any
from vitruvian.golden.cube.sums import is_short, sums
from vitruvian.golden.fp import PRESETS, DotSpec, fused_dot
from vitruvian.golden.simd2.op import PARTS, Op, as_op
from vitruvian.golden.simd2.plain import plain_mmo, truth
from vitruvian.golden.simd2.squares import square_sums
from vitruvian.validate import check_int, one_of

__all__ = ["OPERANDS", "SQUARES", "dot_spec", "mmo"]

#: Formats that operands can have, by the dtype of their arrays.
OPERANDS = {
    np.dtype(np.float16): "fp16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "fp32",
}
#: How addnorm may make its terms.
SQUARES = ("differences", "products")
_TERMS = 1 << 22  # that are worked on at a time
_FEW, _STACKED = 1 << 10, 1 << 18  # terms of a small matrix, and of those that go together
_LOW_BITS = np.int32(0x7FFFFFFF)
_LAST, _FIRST = np.int32(0x7FFFFFFF), np.int32(-0x80000000)
_NAN = np.uint32(0x7FC00000)


def mmo(
    op: Op | str,
    a,
    b,
    c=None,
    *,
    k: int = 4,
    preset: str = "ieee",
    window: int | None = None,
    squares: str = "differences",
) -> np.ndarray:
    """Matrix operation of a semiring, as a unit computes it.

    Parameters
    ----------
    op : Op or str
    a : (..., M, K) ndarray of float16, bfloat16 or float32
        K may be 0.
    b : (..., K, N) ndarray of the same dtype
    c : (..., M, N) ndarray of float32, optional
        ``op.identity`` by default.
    k : int
        Terms of a fused sum: where ⊕ is +, K is worked on in blocks of so many, and each is rounded
        once. The other operations do not depend on it.
    preset, window
        Accuracy of those sums, see ``dot_spec``.
    squares : {"differences", "products"}
        How addnorm makes its terms: a − b rounded to FP32 (RNE), and the exact square of that; or
        a·a − a·b − a·b + b·b, which are four terms of a sum of products, see
        ``golden.simd2.squares``. Units do the latter, of FP16; k is a multiple of 4 then.

    Returns
    -------
    (..., M, N) ndarray of float32
        Sums and products that ⊕ does not add up are exact, then rounded once (RNE). A NaN loses
        against a number, and −0 is below +0; orand takes what is neither zero nor NaN for true and
        gives 1 or 0.

    Raises
    ------
    TypeError
        For arrays of another dtype.
    ValueError
        For an unknown operation, or shapes that do not fit.
    """
    op = as_op(op)
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype not in OPERANDS or a.dtype != b.dtype:
        names = ", ".join(dtype.name for dtype in OPERANDS)
        raise TypeError(
            f"a and b must be of one dtype out of {names}, not {a.dtype.name} and {b.dtype.name}"
        )
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a and b must be (..., M, K) and (..., K, N) with one K, not {a.shape} and {b.shape}"
        )
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-1])
    if c is None:
        c = np.full(shape, op.identity, np.float32)
    c = np.asarray(c)
    if c.dtype != np.float32:
        raise TypeError(f"c must be float32, not {c.dtype.name}")
    if c.shape[-2:] != shape[-2:]:
        raise ValueError(f"c must be (..., {shape[-2]}, {shape[-1]}), not {c.shape}")
    shape = (*np.broadcast_shapes(lead, c.shape[:-2]), *shape[-2:])
    one_of("squares", squares, SQUARES)
    by_products = op is Op.ADDNORM and squares == "products"
    spec = dot_spec(
        Op.MMA if by_products else op, OPERANDS[a.dtype], k=k, preset=preset, window=window
    )
    parts = (np.broadcast_to(x, (*shape[:-2], *x.shape[-2:])) for x in (a, b, c))
    a, b, c = (x.reshape(prod(shape[:-2]), *x.shape[-2:]) for x in parts)
    d = np.empty(c.shape, np.float32)
    terms = a.shape[1] * a.shape[2] * b.shape[2]
    if op.plus != "add" and len(d) > 1 and terms <= _FEW:
        step = _STACKED // max(terms, 1)
        for some in (slice(i, i + step) for i in range(0, len(d), step)):
            d[some] = plain_mmo(op, _wide(a[some]), _wide(b[some]), c[some])
        return d.reshape(shape)
    for one, x, y, z in zip(d, a, b, c, strict=True):
        if by_products and spec is not None:
            one[:] = _squares(x, y, z, spec)
        else:
            one[:] = _matrix(op, x, y, z, spec)
    return d.reshape(shape)


def dot_spec(op: Op, format: str, *, k: int = 4, preset: str = "ieee", window: int | None = None):
    """What a fused sum of an operation is; None where it has none.

    Those of addnorm are squares of FP32 numbers and, as all sums of FP32, ``ieee`` always. A
    ``window`` is for ``ieee`` sums, and not narrower than they ask for.

    Raises
    ------
    ValueError
        For a preset that does not have the format, or a window that it cannot have.
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
    if spec.window is None or PRESETS[preset].rows:
        raise ValueError(f"window must be None with preset {preset}, not {window!r}")
    check_int("window", window, spec.window)
    return DotSpec(input=spec.input, output=spec.output, k=k, window=window)


def _matrix(op, a, b, c, spec):
    """One matrix; a and b in the operands' format."""
    if op.plus == "add" and not is_short(spec):
        return _product(a, b, c, spec) if op is Op.MMA else _norms(a, b, c, spec)
    a, b = _wide(a), _wide(b)
    if op.plus == "add":
        return sums(op.times, a, b, c, spec)
    if op is Op.ORAND:
        found = truth(a).astype(np.float32) @ truth(b).astype(np.float32)
        return ((found != 0) | truth(c)).astype(np.float32)
    if op.times in ("min", "max"):
        return _extrema(a, b, c, flip=np.int32(-1 if op.plus == "max" else 0))
    if _is_plain(op, a, b, c):
        return _quick(op, a, b, c)
    return _ranked(op, a, b, c)


def _wide(x):
    return x.astype(np.float32)


def _squares(a, b, c, spec):
    if spec.k % PARTS or not is_short(spec):
        return square_sums(a, b, c, spec)
    return sums("squares", _wide(a), _wide(b), c, spec)


def _product(a, b, c, spec):
    codes = [np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}") for x in (a, b, c)]
    return mmad_any(*codes, spec=spec).view(np.float32)


def _norms(a, b, c, spec):
    """Fused sums of squared differences, some rows at a time."""
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


def _is_plain(op, a, b, c):
    """Whether no NaN can come up, and no zeros of both signs.

    A sum is −0 only if both operands are; so is C. The product of a zero, and one that is too small
    for FP32, have the sign of the operands.
    """
    if any(np.isnan(x).any() for x in (a, b, c)):
        return False
    (a_low, a_high), (b_low, b_high) = ((_least(x), _most(x)) for x in (a, b))
    endless = np.float32(np.inf)
    if op.times == "add":
        opposite = (a_high == endless and b_low == -endless) or (
            a_low == -endless and b_high == endless
        )
        return not opposite and not (_minus_zero(c) or (_minus_zero(a) and _minus_zero(b)))
    if any(np.isinf(x).any() and not y.all() for x, y in ((a, b), (b, a))):
        return False
    signs = [np.signbit(x) for x in (a, b)]
    if any(s.any() != s.all() for s in signs):
        return False
    negative = any(s.any() for s in signs) and not all(s.any() for s in signs)
    return not (np.signbit(c[c == 0]) != negative).any()


def _least(x):
    return x.min(initial=np.float32(np.inf))


def _most(x):
    return x.max(initial=np.float32(-np.inf))


def _minus_zero(x):
    return bool((np.ascontiguousarray(x).view(np.uint32) == 1 << 31).any())


def _quick(op, a, b, c):
    from vitruvian.golden.simd2.matrix_compiled import quick  # numba takes its time to load

    sign = np.float32(-1 if op.plus == "max" else 1)
    d = sign * c
    quick(np.ascontiguousarray(a), np.ascontiguousarray(b), d, op.times == "mul", sign)
    return sign * d


def _ranked(op, a, b, c):
    from vitruvian.golden.simd2.matrix_compiled import TURN, WORST, ranked

    flip = np.int32(-1 if op.plus == "max" else 0)
    d = _ranks(c, flip, nan=_LAST)
    d += TURN
    ranked(np.ascontiguousarray(a), np.ascontiguousarray(b), d, op.times == "mul", flip)
    nothing = d > WORST
    d -= TURN
    d[nothing] = _LAST
    return _values(d, flip)


def _extrema(a, b, c, *, flip):
    from vitruvian.golden.simd2.matrix_compiled import ranked_extrema

    d = _ranks(c, flip, nan=_LAST)
    ranked_extrema(_ranks(a, flip, nan=_FIRST), _ranks(b, flip, nan=_FIRST), d)
    return _values(d, flip)


def _ranks(x, flip, *, nan):
    """Int32 in the order of the numbers, −0 before +0; in the other order if ``flip`` is −1."""
    bits = np.array(x, order="C").view(np.int32)
    bits ^= (bits >> 31) & _LOW_BITS
    bits ^= flip
    bits[np.isnan(x)] = nan
    return bits


def _values(ranks, flip):
    """The numbers of ranks; the last rank is the NaN."""
    bits = ranks ^ flip
    bits ^= (bits >> 31) & _LOW_BITS
    return np.where(ranks == _LAST, _NAN, bits.view(np.uint32)).view(np.float32)
