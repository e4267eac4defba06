"""The product of two tiles by a dot."""

from functools import lru_cache

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.fp import convert
from vitruvian.golden.fp.codec import as_codes, code_dtype
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.products import multiply as multiply_by_rule
from vitruvian.golden.machines.products import product_of_rule
from vitruvian.golden.machines.spec import fma_step
from vitruvian.golden.machines.table import machines
from vitruvian.golden.triton.dot import Dot

_FMA = {"fma_fp32": "fp32", "fma_fp64": "fp64"}
_NAN = np.uint32(0x7FFFFFFF)  # of an addition on an NVIDIA GPU
_CUT = np.uint32(0xFFFFE000)  # the bits of FP32 that TF32 has
_HALF = np.uint32(0x1000)
_LIMIT = 1 << 31


def multiply(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, dot: Dot, threads: int | None = 1
) -> np.ndarray:
    """Return C + A·B as a dot adds its terms.

    Parameters
    ----------
    a, b, c : (M, K), (K, N), (M, N) ndarray
        Codes, unsigned integers, of the formats of operands and result; for "int32" arrays of int8
        and int32.
    dot : Dot
    threads : int, optional
        As those of ``vitruvian.machines.multiply``.

    Returns
    -------
    (M, N) ndarray of the type of C

    Raises
    ------
    TypeError, ValueError
        If an array has another type or shape.
    UserError
        If a sum of integers leaves the range in which the instruction is known.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.triton import lower, multiply
    >>> one = np.full((16, 32), 0x38, np.uint8)  # 1.0 in e4m3
    >>> dot = lower("h200", "e4m3", (16, 16, 32))
    >>> d = multiply(one, one.T, np.zeros((16, 16), np.uint32), dot)
    >>> float(d.view(np.float32)[0, 0])
    32.0
    """
    shape = check_factors(a, b)
    check_addend(c, shape)
    if dot.rule == "int32":
        return _integers(a, b, c, dot.saturate)
    first, second = _formats(dot)
    x, y = as_codes(a, first, "a"), as_codes(b, second, "b")
    if dot.convert:
        x, y = _widened(x, first, dot.convert), _widened(y, second, dot.convert)
    if dot.rule in _FMA:
        return product_of_rule(x, y, c, fma_step(_FMA[dot.rule], _FMA[dot.rule]), threads)
    rule = machines()[dot.rule].rule
    if not isinstance(rule, DotSpec):
        assert not isinstance(rule, PhaseSpec)
        return multiply_by_rule(x, y, c, machine=dot.rule, threads=threads)
    if dot.reordered:
        places = _order(x.shape[1], dot.group, dot.pair)
        x, y = x[:, places], y[places]
    if dot.split:
        return _split(x, y, c, rule, threads)
    if dot.input == "fp32":
        x, y = x & _CUT, y & _CUT
    if not dot.restart:
        return product_of_rule(x, y, c, rule, threads)
    for start in range(0, x.shape[1], dot.restart):
        part = slice(start, start + dot.restart)
        c = _added(c, product_of_rule(x[:, part], y[part], None, rule, threads))
    return c


def _formats(dot: Dot) -> tuple[FloatFormat, FloatFormat]:
    """Return the formats of A and B as they come."""
    if dot.convert or dot.rule in _FMA or dot.input == "fp32":
        a, _, b = dot.input.partition("x")
        return FORMATS[_NAMES.get(a, a)], FORMATS[_NAMES.get(b or a, b or a)]
    row = machines()[dot.rule]
    assert isinstance(row.input, FloatFormat) and isinstance(row.input_b, FloatFormat)
    return row.input, row.input_b


_NAMES = {"e4m3": "fp8e4m3", "e5m2": "fp8e5m2"}


def _widened(codes: np.ndarray, source: FloatFormat, target: str) -> np.ndarray:
    wide = np.asarray(convert(codes, source.name, target))
    return wide.astype(code_dtype(FORMATS[target]))


@lru_cache(64)
def _order(terms: int, group: int, pair: int) -> np.ndarray:
    """Return the places along K in the order of the instructions of one warp.

    A thread of four holds ``group`` neighbours of the first half of a block, and as many of its
    second half. An instruction takes a register of each: ``pair`` neighbours.
    """
    block = 8 * group
    if terms % block:
        raise UserError(f"K of a tile must be a multiple of {block} for these loads, not {terms}")
    starts, parts = np.arange(0, terms, block), np.arange(0, group, pair)
    halves, threads = np.arange(0, block, 4 * group), np.arange(0, 4 * group, group)
    place = np.add.outer(starts, parts)[:, :, None] + halves
    place = place[..., None] + threads
    return (place[..., None] + np.arange(pair)).ravel()


def _split(
    x: np.ndarray, y: np.ndarray, c: np.ndarray, rule: DotSpec, threads: int | None
) -> np.ndarray:
    """Return the sum of three products in TF32, which is added to C at last."""
    big_x, big_y = (v + _HALF & _CUT for v in (x, y))  # to nearest, ties away from zero
    with np.errstate(all="ignore"):
        rest_x, rest_y = (
            (v.view(np.float32) - big.view(np.float32)).view(np.uint32) & _CUT
            for v, big in ((x, big_x), (y, big_y))
        )
    rest = product_of_rule(rest_x, big_y, None, rule, threads)
    rest = product_of_rule(big_x, rest_y, rest, rule, threads)
    rest[np.isnan(rest.view(np.float32))] = 0
    return _added(c, product_of_rule(big_x, big_y, rest, rule, threads))


def _added(c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the codes of the sum of two arrays of FP32."""
    with np.errstate(all="ignore"):
        total = c.view(np.float32) + d.view(np.float32)
    codes = total.view(np.uint32)
    codes[np.isnan(total)] = _NAN
    return codes


def _integers(a: np.ndarray, b: np.ndarray, c: np.ndarray, saturate: int) -> np.ndarray:
    """Return the sum of int8 products in int32."""
    if a.dtype != np.int8 or b.dtype != np.int8 or c.dtype != np.int32:
        raise TypeError(f"a, b, c must be int8, int8, int32, not {a.dtype}, {b.dtype}, {c.dtype}")
    # Sums of int8 products are exact in float64, whose product is fast.
    x, y, total = a.astype(np.float64), b.astype(np.float64), c.astype(np.int64)
    reach = np.abs(total) + (np.abs(x) @ np.abs(y)).astype(np.int64)
    if saturate == 0 or np.max(reach, initial=0) < _LIMIT:
        return (total + (x @ y).astype(np.int64)).astype(np.int32)
    if saturate < 0:
        raise UserError("sums of int8 must stay within int32 on this machine")
    for start in range(0, a.shape[1], saturate):
        part = slice(start, start + saturate)
        total = total + (x[:, part] @ y[part]).astype(np.int64)
        total = np.clip(total, -_LIMIT, _LIMIT - 1)
    return total.astype(np.int32)
