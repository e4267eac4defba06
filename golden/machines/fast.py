"""The fast paths of matrix products by the rules of machines.

A rule belongs to a family, for which there are compiled loops on arrays of values (of integers for
Tenstorrent's rules). Rows and columns with an infinity or NaN, and single results that the loops
leave open, are computed by the plain form of the rule.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.cube.chopped import ZERO, decoded, loop_numbers
from vitruvian.golden.fp.codec import code_dtype, to_float
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import scale_value, unpack_scale
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.families import exponent_bits, family
from vitruvian.golden.machines.phases_fast import from_dst, phase_kernel, to_dst
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec
from vitruvian.golden.machines.table import Rule

_SHARE = 0.25  # largest share of rows or columns with an infinity or NaN
_GROUP = 16  # products in an exact sum of the lanes "sixteens"
_PARTS = 4  # parts of the rows for each thread, after each of which progress is reported
_LEAST_ROWS = 64
_REACH = 126  # exponent of the largest scale of FP32 products; FP64 products need 2^165

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Operands:
    """The codes of one matrix product, and the codes of its scales if the rule has them.

    A is (M, K), B (K, N), C (M, N), the scales of A (M, K / block), those of B (K / block, N).
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None

    def part(self, rows: Any = slice(None), columns: Any = slice(None)) -> "Operands":
        """Return the operands of some rows and columns of D."""
        return Operands(
            self.a[rows],
            self.b[:, columns],
            self.c[rows][:, columns],
            None if self.scale_a is None else self.scale_a[rows],
            None if self.scale_b is None else self.scale_b[:, columns],
        )


Plain = Callable[[Operands], np.ndarray]
#: Compute some rows of D in place; the second argument holds C on input.
Kernel = Callable[[slice, np.ndarray], None]


@dataclass
class _Work:
    """A product that is ready for its loops."""

    kernel: Kernel
    dtype: type[np.floating]  # of D in the loops
    bad_rows: np.ndarray  # (M,) and (N,) bool: these have an infinity or NaN
    bad_columns: np.ndarray
    huge: np.ndarray | None = None  # (M, N) bool: results that the kernel left open


def fast_product(
    x: Operands, rule: Rule, plain: Plain, threads: int = 1, progress: Progress | None = None
) -> np.ndarray:
    """Return D = C + A·B by a rule that has a ``family``.

    Parameters
    ----------
    x : Operands
        K is a multiple of the terms of a step.
    rule : DotSpec, ChainSpec or PhaseSpec
    plain : callable
        The plain form of the rule, as a function of operands.
    threads : int
        Number of threads; rows of D are divided among them.
    progress : callable, optional
        Function that is called with (rows done, rows in total).

    Returns
    -------
    (M, N) ndarray of unsigned int, ``rule.output`` codes
    """
    progress = progress or (lambda done, total: None)
    if isinstance(rule, PhaseSpec):
        numbers = to_dst(x.c, rule)
        _in_parts(phase_kernel(x.a, x.b, rule), numbers, threads, progress)
        return from_dst(numbers, rule)
    assert isinstance(rule, (DotSpec, ChainSpec))
    prepare: Any = {
        "chopped": _chopped,
        "late": _chopped,
        "grouped": _grouped,
        "aligned": _aligned,
        "exact": _exact,
        "chain": _chain,
        "pairs": _pairs,
        "apart": _apart,
        "two": _two,
    }[family(rule) or ""]
    work: _Work = prepare(x, rule)
    if work.bad_rows.mean() > _SHARE or work.bad_columns.mean() > _SHARE:
        return plain(x)
    number = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[rule.output.name]
    d = np.array(x.c.view(number), work.dtype, order="C")
    d = _without_subnormals(d, rule if isinstance(rule, DotSpec) else rule.step)
    with np.errstate(all="ignore"):
        _in_parts(work.kernel, d, threads, progress)
        codes = d.astype(number).view(code_dtype(rule.output))
    nan = rule.nan_code if isinstance(rule, DotSpec) else rule.step.nan_code
    codes[np.isnan(d)] = nan
    rows, columns = work.bad_rows, work.bad_columns
    if rows.any():
        codes[rows] = plain(x.part(rows))
    if columns.any():
        codes[:, columns] = plain(x.part(columns=columns))
    if work.huge is not None:
        for i in np.flatnonzero(work.huge.any(axis=1)):
            row, here = slice(i, i + 1), work.huge[i]
            codes[i, here] = plain(x.part(row, here))[0]
    return codes


def _in_parts(kernel: Kernel, d: np.ndarray, threads: int, progress: Progress) -> None:
    """Compute the rows of D in parts, several at a time."""
    rows = len(d)
    step = max(ceil_div(rows, threads * _PARTS), min(_LEAST_ROWS, ceil_div(rows, threads)), 1)
    parts = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
    if threads == 1 or len(parts) == 1:
        for part in parts:
            kernel(part, d[part])
            progress(part.stop, rows)
        return
    views = [d[part] for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        for part, _ in zip(parts, pool.map(kernel, parts, views), strict=True):
            progress(part.stop, rows)


def _chopped(x: Operands, rule: DotSpec) -> _Work:
    """Prepare one truncated sum for each step."""
    from vitruvian.golden.cube.chopped_compiled import rows  # here, as Numba loads slowly

    narrow = exponent_bits(rule) <= 5 and rule.scales is None
    dtype = np.float32 if narrow else np.float64
    a, exp_a, bad_a = decoded(x.a, rule.input, dtype, rule.a.convert)
    b, exp_b, bad_b = decoded(x.b, rule.input_b, dtype, rule.a.convert)
    if rule.scales is not None:
        assert x.scale_a is not None and x.scale_b is not None
        a, exp_a, bad_a = _scaled(a, exp_a, bad_a, x.scale_a, rule, 1)
        b, exp_b, bad_b = _scaled(b, exp_b, bad_b, x.scale_b, rule, 0)
    rows_bad, columns_bad = _cleared(a, exp_a, bad_a, 1), _cleared(b, exp_b, bad_b, 0)
    if rule.products.slices is not None:
        a, exp_a, b, exp_b = _sliced(a, exp_a, b, exp_b, rule)
        rule = rule.replace(k=rule.k * len(rule.products.slices))
    if rule.addend.how == "tree":
        numbers = loop_numbers(rule, narrow)

        def tree(part: slice, d: np.ndarray) -> None:
            rows(a[part], exp_a[part], b, exp_b, d, *numbers)

        return _Work(tree, np.float32, rows_bad, columns_bad)

    k = rule.k
    inner = rule.replace(k=k // 2) if rule.sum.lanes == "halves" else rule
    numbers = loop_numbers(inner, narrow)
    own = [i for i in range(k) if i % 4 < 2 or rule.sum.lanes != "halves"]
    own += [i for i in range(k) if i not in own]
    steps = [np.asarray(own) + start for start in range(0, a.shape[1], k)]
    parts = [
        tuple(np.ascontiguousarray(v) for v in (a[:, s], exp_a[:, s], b[s], exp_b[s]))
        for s in steps
    ]

    def late(part: slice, d: np.ndarray) -> None:
        for p, exp_p, q, exp_q in parts:
            total = np.zeros_like(d)
            rows(p[part], exp_p[part], q, exp_q, total, *numbers)
            with np.errstate(all="ignore"):  # a worker has a state of its own
                d += total
                if rule.output.name == "fp16":
                    d[...] = d.astype(np.float16)

    return _Work(late, np.float32, rows_bad, columns_bad)


def _sliced(
    a: np.ndarray, exp_a: np.ndarray, b: np.ndarray, exp_b: np.ndarray, rule: DotSpec
) -> tuple[np.ndarray, ...]:
    """Return one term, with the exponent of the whole product, for each partial product."""
    assert rule.products.slices is not None
    masks_a, masks_b = zip(*rule.products.slices, strict=True)
    x, exp_x = _masked(a, exp_a, rule.a.convert or rule.input, masks_a, rule.k)
    y, exp_y = _masked(b.T, exp_b.T, rule.a.convert or rule.input_b, masks_b, rule.k)
    return x, exp_x, np.ascontiguousarray(y.T), np.ascontiguousarray(exp_y.T)


def _masked(
    values: np.ndarray, exponents: np.ndarray, f: FloatFormat, masks: tuple[int, ...], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values with masked significands, mask by mask for each block of ``k`` values."""
    places = f.fraction_bits - exponents.astype(np.int32)
    significand = np.ldexp(np.abs(values), places).astype(np.int64)
    parts = [np.ldexp((significand & mask).astype(values.dtype), -places) for mask in masks]
    shape = (len(values), values.shape[1] // k, k)
    split = [np.copysign(part, values).reshape(shape) for part in parts]
    every = [exponents.reshape(shape)] * len(masks)
    x, y = (np.concatenate(v, axis=2).reshape(len(values), -1) for v in (split, every))
    return x, y


def _scaled(
    values: np.ndarray,
    exponents: np.ndarray,
    bad: np.ndarray,
    codes: np.ndarray,
    rule: DotSpec,
    axis: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Multiply values by the scales of their blocks, which are powers of two."""
    assert rule.scales is not None
    u = unpack_scale(codes, rule.scales.format)
    factor = np.where(u.nan, 1.0, scale_value(codes, rule.scales.format))
    exponent = u.exponent.astype(np.int16)
    factor, exponent, nan = (
        np.repeat(v, rule.scales.block, axis) for v in (factor, exponent, u.nan)
    )
    return values * factor, exponents + exponent, bad | nan


def _cleared(values: np.ndarray, exponents: np.ndarray, bad: np.ndarray, axis: int) -> np.ndarray:
    """Replace infinities and NaNs by zeros; return which rows (axis 1) or columns (0) had them."""
    values[bad], exponents[bad] = 0, ZERO
    return np.asarray(bad.any(axis=axis))


def _grouped(x: Operands, rule: DotSpec) -> _Work:
    """Prepare exact sums of 16 products with scales."""
    from vitruvian.golden.cube.chopped_compiled import grouped_rows

    assert x.scale_a is not None and x.scale_b is not None
    a, *more_a, bad_rows = _groups(x.a, x.scale_a, rule, rule.input)
    b, *more_b, bad_columns = _groups(x.b.T, x.scale_b.T, rule, rule.input_b)
    b, *more_b = (np.ascontiguousarray(v.T) for v in (b, *more_b))
    numbers: Any = (
        rule.k // _GROUP,
        rule.sum.window,
        rule.sum.floor,
        rule.output.emin,
        rule.result.bits,
        2 * _REACH,
    )

    def kernel(part: slice, d: np.ndarray) -> None:
        arguments: Any = (a[part], *(v[part] for v in more_a), b, *more_b, d, *numbers)
        grouped_rows(*arguments)

    return _Work(kernel, np.float32, bad_rows, bad_columns)


def _groups(
    codes: np.ndarray, scales: np.ndarray, rule: DotSpec, f: FloatFormat
) -> tuple[Any, ...]:
    """Return values, scales, exponents, marks of nonzero values, and which rows have a NaN."""
    assert rule.scales is not None
    values = to_float(codes, f).astype(np.float32)
    u = unpack_scale(scales, rule.scales.format)
    factor = np.where(u.nan, 0, scale_value(scales, rule.scales.format))
    exponent = np.where(u.significand == 0, ZERO, u.exponent).astype(np.int16)
    factor, exponent = (
        np.repeat(v, rule.scales.block // _GROUP, axis=1) for v in (factor, exponent)
    )
    nonzero = (values != 0).reshape(len(codes), codes.shape[1] // _GROUP, _GROUP)
    there = (nonzero << np.arange(_GROUP)).sum(axis=2).astype(np.uint16)
    return values, factor, exponent, there, u.nan.any(axis=1)


def _aligned(x: Operands, rule: DotSpec) -> _Work:
    """Prepare the rule of CDNA 3."""
    from vitruvian.golden.cube.chopped_compiled import aligned_rows

    narrow = exponent_bits(rule) <= 5
    dtype = np.float32 if narrow else np.float64
    a, exp_a, bad_a = decoded(x.a, rule.input, dtype)
    b, exp_b, bad_b = decoded(x.b, rule.input_b, dtype)
    bad_rows, bad_columns = _cleared(a, exp_a, bad_a, 1), _cleared(b, exp_b, bad_b, 0)
    huge = np.zeros(x.c.shape, np.bool)
    lanes = 2 if rule.sum.lanes == "parity" else 1
    top = rule.output.emax if rule.products.overflow else -2 * ZERO
    # E_max has no floor here, so that FP64 products, of at least 2^-266, need larger scales.
    numbers = (rule.k, lanes, rule.output.emin, top, _REACH if narrow else 4 * _REACH)

    def kernel(part: slice, d: np.ndarray) -> None:
        aligned_rows(a[part], exp_a[part], b, exp_b, d, huge[part], *numbers)

    return _Work(kernel, np.float32, bad_rows, bad_columns, huge)


def _exact(x: Operands, rule: DotSpec) -> _Work:
    """Prepare exact sums that are rounded once."""
    from vitruvian.golden.cube.chains_compiled import exact_rows

    a, exp_a, bad_a = decoded(x.a, rule.input, np.float64)
    b, exp_b, bad_b = decoded(x.b, rule.input_b, np.float64)
    bad_rows, bad_columns = _cleared(a, exp_a, bad_a, 1), _cleared(b, exp_b, bad_b, 0)

    def kernel(part: slice, d: np.ndarray) -> None:
        exact_rows(a[part], b, d, rule.k, rule.result.zero == "exact")

    return _Work(kernel, np.float32, bad_rows, bad_columns)


def _numbers(codes: np.ndarray, f: FloatFormat, step: DotSpec, cleared: bool) -> np.ndarray:
    """Return operands as numbers of the output format, flushed or cleared as the rule says."""
    out = np.float32 if step.output.name == "fp32" else np.float64
    if cleared:
        codes = np.where(codes & codes.dtype.type(f.exponent_mask) == 0, 0, codes)
    with np.errstate(invalid="ignore"):
        return _without_subnormals(np.ascontiguousarray(to_float(codes, f).astype(out)), step)


def _without_subnormals(values: np.ndarray, step: DotSpec) -> np.ndarray:
    """Return values in which numbers below the least normal are zeros if the rule flushes them."""
    if not step.flush:
        return values
    least = values.dtype.type(2.0**step.output.emin)
    return np.where(np.abs(values) < least, np.copysign(values.dtype.type(0), values), values)


def _chain(x: Operands, rule: DotSpec | ChainSpec) -> _Work:
    """Prepare chains of fused multiply-adds."""
    from vitruvian.golden.cube.chains_compiled import chains

    chain = rule if isinstance(rule, ChainSpec) else ChainSpec(step=rule)
    step = chain.step
    a, b = _numbers(x.a, step.input, step, False), _numbers(x.b, step.input_b, step, False)
    unbounded = step.result.flush == "unbounded"
    factor, bad = a.dtype.type(1), _nothing_bad(x)
    if unbounded:
        # Twice a result that is judged is a normal number, so it is rounded to full precision.
        factor = a.dtype.type(2)
        bad[0][:] = not _bounded(a, b, x, step)
        with np.errstate(over="ignore"):  # then the bound is exceeded, and the plain form is used
            b = b * factor
    numbers = (
        chain.k or max(a.shape[1], 1),
        chain.accumulators,
        chain.descending,
        chain.add_c == "last",
        float(factor) * 2.0**step.output.emin if step.result.flush else 0.0,
    )

    def kernel(part: slice, d: np.ndarray) -> None:
        if unbounded:
            d *= factor
        chains(a[part], b, d, *numbers)
        if unbounded:
            d /= factor

    return _Work(kernel, a.dtype.type, *bad)


def _bounded(a: np.ndarray, b: np.ndarray, x: Operands, step: DotSpec) -> bool:
    """Return True if no sum of the finite numbers reaches a quarter of the largest number."""
    sizes: list[float] = []
    for values in (a, b, _numbers(x.c, step.output, step, False)):
        finite = np.abs(values[np.isfinite(values)])
        sizes.append(float(finite.max(initial=0)))
    limit = 2.0 ** (step.output.emax - 2)
    return sizes[0] * sizes[1] * max(a.shape[1], 1) + sizes[2] < limit and sizes[1] < limit


def _pairs(x: Operands, rule: ChainSpec) -> _Work:
    """Prepare sums of rounded products, added in pairs."""
    from vitruvian.golden.cube.chains_compiled import pairs

    step = rule.step
    a, b = _numbers(x.a, step.input, step, True), _numbers(x.b, step.input_b, step, True)
    k, tiny = rule.k or 1, 2.0**step.output.emin

    def kernel(part: slice, d: np.ndarray) -> None:
        pairs(a[part], b, d, k, tiny)

    return _Work(kernel, np.float32, *_nothing_bad(x))


def _apart(x: Operands, rule: DotSpec) -> _Work:
    """Prepare truncated sums to which C is added afterwards."""
    from vitruvian.golden.cube.apart_compiled import apart_rows

    a, exp_a, bad_a = decoded(x.a, rule.input, np.float64, rule.a.convert)
    b, exp_b, bad_b = decoded(x.b, rule.input_b, np.float64, rule.a.convert)
    bad_rows, bad_columns = _cleared(a, exp_a, bad_a, 1), _cleared(b, exp_b, bad_b, 0)
    a, b = _without_subnormals(a, rule), _without_subnormals(b, rule)
    exp_a[a == 0], exp_b[b == 0] = ZERO, ZERO
    k = rule.k
    if rule.products.slices is not None:
        a, exp_a, b, exp_b = _sliced(a, exp_a, b, exp_b, rule)
        k *= len(rule.products.slices)
    assert rule.sum.window is not None
    numbers = (
        k,
        rule.sum.window,
        rule.products.exponent == "leading",
        rule.sum.truncate == "odd",
        2.0**rule.output.emin if rule.result.flush else 0.0,
    )

    def kernel(part: slice, d: np.ndarray) -> None:
        apart_rows(a[part], exp_a[part], b, exp_b, d, *numbers)

    return _Work(kernel, np.float32, bad_rows, bad_columns)


def _two(x: Operands, rule: DotSpec | ChainSpec) -> _Work:
    """Prepare sums of two products that are rounded before C is added."""
    from vitruvian.golden.cube.apart_compiled import two_rows

    step = rule if isinstance(rule, DotSpec) else rule.step
    a, b = (
        _numbers(codes, f, step, False).astype(np.float64)
        for codes, f in ((x.a, step.input), (x.b, step.input_b))
    )
    odd, tiny = step.result.rounding == "RTO", 2.0**step.output.emin if step.result.flush else 0.0

    def kernel(part: slice, d: np.ndarray) -> None:
        two_rows(a[part], b, d, odd, tiny)

    return _Work(kernel, np.float32, *_nothing_bad(x))


def _nothing_bad(x: Operands) -> tuple[np.ndarray, np.ndarray]:
    nothing: Any = (np.zeros(len(x.a), np.bool), np.zeros(x.b.shape[1], np.bool))
    return nothing
