"""The fast path of matrix products by the rules of tensor cores.

``golden.cube.mmad`` uses it if a rule truncates magnitudes and makes every zero +0. Operands and C
are arrays of values in the compiled loops, and rows and columns with an infinity or NaN are left to
the general loops.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.fp.codec import code_dtype, to_float, unpack
from vitruvian.golden.fp.convert import convert
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec

#: The exponent of a zero operand, below every sum of two others.
ZERO = -(1 << 13)
_LOOKED_UP_BITS = 16  # widest codes that are decoded with a table
_INT_BITS = 31  # bits of a sum of a group of terms
_REACH = 126  # exponent of the largest scale of FP32 products; FP64 products need 2^158
_SHARE = 0.25  # largest share of rows or columns with an infinity or NaN

Product = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def fits_chopped(spec: DotSpec) -> bool:
    """Return True if ``chopped_mmad`` computes this rule.

    It must be one of the plain rules of tensor cores: truncated magnitudes, every zero +0, and
    either RZ with FP32 results or RNE with FP16 results.
    """
    if not spec.is_plain or spec.sum.window is None or spec.sum.truncate != "magnitude":
        return False
    rounding = {"fp32": "RZ", "fp16": "RNE"}.get(spec.output.name)
    if spec.result.zero != "positive" or spec.result.rounding != rounding or spec.sum.floor is None:
        return False
    if spec.output.name == "fp16" and spec.result.bits != spec.output.fraction_bits:
        return False
    return (
        all(_is_narrow(f) for f in (spec.input, spec.input_b)) and spec.sum.window <= _INT_BITS - 4
    )


def _is_narrow(format: FloatFormat) -> bool:
    """Return True if a product of two numbers is exact in FP64 and aligned without underflow."""
    return format.significand_bits <= 11 and format.exponent_bits <= 8


def chopped_mmad(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: DotSpec,
    general: Product,
    threads: int = 1,
) -> np.ndarray:
    """Return D = C + A·B, computed in blocks of ``spec.k`` terms.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
    c : (M, N) ndarray of unsigned int, ``spec.output`` codes
    spec : DotSpec
        A rule that ``fits_chopped``.
    general : callable
        Function of (a, b, c) for the rows and columns with an infinity or NaN.
    threads : int
        Number of threads; rows of D are divided among them.

    Returns
    -------
    (M, N) ndarray of unsigned int, ``spec.output`` codes
    """
    from vitruvian.golden.cube.chopped_compiled import rows  # here, as Numba loads slowly

    narrow = max(spec.input.exponent_bits, spec.input_b.exponent_bits) <= 5
    dtype = np.float32 if narrow else np.float64
    x, exp_x, special_x = decoded(a, spec.input, dtype)
    y, exp_y, special_y = decoded(b, spec.input_b, dtype)
    bad_rows, bad_columns = special_x.any(axis=1), special_y.any(axis=0)
    if bad_rows.mean() > _SHARE or bad_columns.mean() > _SHARE:
        return general(a, b, c)
    x[special_x], y[special_y] = 0, 0
    exp_x[special_x], exp_y[special_y] = ZERO, ZERO
    half = spec.output.name == "fp16"
    d = np.array(c.view(np.float16 if half else np.float32), np.float32, order="C")
    numbers = loop_numbers(spec, narrow)
    step = ceil_div(len(a), max(threads, 1))
    parts = [slice(start, start + step) for start in range(0, len(a), step)]

    def compute(part: slice) -> None:
        rows(x[part], exp_x[part], y, exp_y, d[part], *numbers)

    if len(parts) == 1:
        compute(parts[0])
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(compute, parts))
    codes = _codes(d, spec)
    if bad_rows.any():
        codes[bad_rows] = general(a[bad_rows], b, c[bad_rows])
    if bad_columns.any():
        codes[:, bad_columns] = general(a, b[:, bad_columns], c[:, bad_columns])
    return codes


def loop_numbers(spec: DotSpec, narrow: bool) -> tuple[int, int, int, int, int, bool, int, int]:
    """Return the last arguments of ``chopped_compiled.rows``; ``narrow``: products are FP32."""
    assert spec.sum.window is not None and spec.sum.floor is not None
    return (
        spec.k,
        spec.sum.window,
        spec.sum.floor,
        spec.output.emin,
        spec.result.bits,
        spec.output.name == "fp16",
        1 << (_INT_BITS - 2 - spec.sum.window),
        _REACH if narrow else 2 * _REACH,
    )


def all_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _codes(values: np.ndarray, spec: DotSpec) -> np.ndarray:
    """Return the codes of results; every NaN has the code of the rule."""
    if spec.output is FORMATS["fp16"]:
        codes = values.astype(np.float16).view(np.uint16)
    else:
        codes = values.view(np.uint32)
    nan = np.isnan(values)
    if nan.any():
        codes[nan] = spec.nan_code
    return codes


def decoded(
    codes: np.ndarray,
    format: FloatFormat,
    dtype: type[np.floating],
    wider: FloatFormat | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, exponents that are not normalised, and a mask of infinities and NaNs.

    Operands that the rule converts to a wider format have the exponents of that format.
    """
    if format.storage_bits <= _LOOKED_UP_BITS:
        values, exponents, specials = _table(format, dtype, wider)
        return values.take(codes), exponents.take(codes), specials.take(codes)
    return _decode(codes, format, dtype, wider)


@lru_cache(8)
def _table(
    format: FloatFormat, dtype: type[np.floating], wider: FloatFormat | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes = np.arange(1 << format.code_bits).astype(code_dtype(format))
    return _decode(codes, format, dtype, wider)


def _decode(
    codes: np.ndarray,
    format: FloatFormat,
    dtype: type[np.floating],
    wider: FloatFormat | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if wider is not None:
        codes, format = convert(codes, format, wider), wider
    u = unpack(codes, format)
    with np.errstate(invalid="ignore"):
        values = to_float(codes, format).astype(dtype)
    exponent = np.where(u.significand == 0, ZERO, u.exponent).astype(np.int16)
    return values, exponent, u.infinity | u.nan
