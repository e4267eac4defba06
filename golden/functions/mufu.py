"""The approximate functions of an H200: MUFU and what the assembler adds to it.

The functions of this module take codes of FP32, in int64, and return such codes. Inputs and
results that are subnormal are zero within them; ``compute`` adds what instructions without ``.ftz``
do to such numbers.
"""

from collections.abc import Callable

import ml_dtypes
import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.functions.interpolation import Interpolation

_SIGN, _MAGNITUDE, _FRACTION = 1 << 31, (1 << 31) - 1, (1 << 23) - 1
_ONE, _LEAST, _INFINITY, _NAN = 0x3F800000, 0x00800000, 0x7F800000, 0x7FFFFFFF
_BIAS = 127
_CHUNK = 1 << 15  # numbers at a time, whose arrays fit into a cache

_RCP = Interpolation(
    name="rcp", bits=16, columns=17, shifts=(32, 19, 2), constant=2023 << 19, point=34
)
_EX2 = Interpolation(name="ex2", shifts=(32, 19, 0), constant=6114 << 19, point=34)
_LG2 = Interpolation(name="lg2", shifts=(31, 19, 1), constant=837 << 19, point=21)
_SIN = Interpolation(name="sin", shifts=(33, 20, 2), constant=0, point=20)
_RSQRT = [
    Interpolation(name=f"rsqrt{odd}", shifts=(32, 18, 1), constant=-(1 << 18), point=34)
    for odd in (0, 1)
]
_SQRT = [
    Interpolation(name=f"sqrt{odd}", shifts=(33, 18 + odd, 0), constant=-(1 << 18), point=35)
    for odd in (0, 1)
]
_LG2_POINT, _SIN_POINT = 36, 38  # fraction bits of their sums
_TURN = 0x22F983 | 1 << 23  # significand of 1 / (2 π) in FP32; its exponent is −3


def _exponent(magnitude: np.ndarray) -> np.ndarray:
    return (magnitude >> 23) - _BIAS


def _truncated(value: np.ndarray, point: int) -> np.ndarray:
    """Return codes of integers / 2^point, which are not negative, rounded toward zero."""
    bits = (value / 2.0**point).view(np.int64)  # exact
    codes = (bits >> 29) - (1023 - _BIAS << 23)
    return np.where(value == 0, 0, codes)


def _rcp(x: np.ndarray) -> np.ndarray:
    sign, a = x & _SIGN, x & _MAGNITUDE
    fraction = a & _FRACTION
    significand = np.where(fraction == 0, 1 << 23, _RCP.at(fraction))
    result = significand + (_BIAS - 1 << 23) - (_exponent(a) << 23)
    result = np.where(result < _LEAST, 0, result)
    result = np.where(a < _LEAST, _INFINITY, np.where(a == _INFINITY, 0, result))
    return np.where(a > _INFINITY, _NAN, sign | result)


def _root(x: np.ndarray, tables: list[Interpolation]) -> np.ndarray:
    """Return the significands of a table for even exponents, and of another for odd ones."""
    fraction, odd = x & _FRACTION, x >> 23 & 1 == 0
    return np.where(odd, tables[1].at(fraction), tables[0].at(fraction))


def _rsqrt(x: np.ndarray) -> np.ndarray:
    sign, a = x & _SIGN, x & _MAGNITUDE
    half = _exponent(a) >> 1
    result = _root(a, _RSQRT) + (_BIAS - 1 << 23)
    result = np.where((a & _FRACTION == 0) & (a >> 23 & 1 == 1), _ONE, result) - (half << 23)
    result = np.where(a == _INFINITY, 0, result)
    result = np.where((sign > 0) | (a > _INFINITY), _NAN, result)
    return np.where(a < _LEAST, sign | _INFINITY, result)


def _sqrt(x: np.ndarray) -> np.ndarray:
    sign, a = x & _SIGN, x & _MAGNITUDE
    result = _root(a, _SQRT) + _ONE + (_exponent(a) >> 1 << 23)
    result = np.where(a == _INFINITY, _INFINITY, result)
    result = np.where((sign > 0) | (a > _INFINITY), _NAN, result)
    return np.where(a < _LEAST, sign, result)


def _lg2(x: np.ndarray) -> np.ndarray:
    sign, a = x & _SIGN, x & _MAGNITUDE
    total = (_exponent(a) << _LG2_POINT) + _LG2.at(a & _FRACTION)
    # A negative sum is complemented bit by bit.
    result = _truncated(total ^ (total >> 63), _LG2_POINT) | np.where(total < 0, _SIGN, 0)
    result = np.where(a == _ONE, 0, np.where(a == _INFINITY, _INFINITY, result))
    result = np.where((sign > 0) | (a > _INFINITY), _NAN, result)
    return np.where(a < _LEAST, _SIGN | _INFINITY, result)


def _ex2(x: np.ndarray) -> np.ndarray:
    sign, a = x & _SIGN, x & _MAGNITUDE
    e = np.clip(_exponent(a), -25, 8)
    significand = a & _FRACTION | 1 << 23
    fixed = significand << np.maximum(e, 0) >> np.maximum(-e, 0)  # 23 fraction bits
    # A negative number with a fraction is complemented bit by bit.
    negative = np.where(fixed & _FRACTION == 0, -fixed, ~fixed)
    fixed = np.where(sign > 0, negative, fixed)
    result = _EX2.at(fixed & _FRACTION) + _ONE + (fixed >> 23 << 23)
    result = np.where(result < _LEAST, 0, np.minimum(result, _INFINITY))
    result = np.where(_exponent(a) >= 8, np.where(sign > 0, 0, _INFINITY), result)
    result = np.where(a < _LEAST, _ONE, result)
    return np.where(a > _INFINITY, _NAN, result)


def _turns(a: np.ndarray) -> np.ndarray:
    """Return magnitudes / 2π as fixed-point numbers of 25 fraction bits, without whole turns.

    The product is rounded to FP32 toward zero first.
    """
    product = (a & _FRACTION | 1 << 23) * _TURN
    long = product >> 47
    significand, e = product >> 23 + long, _exponent(a) - 3 + long + 2  # of 25 fraction bits
    fixed = significand << np.clip(e, 0, 26) >> np.clip(-e, 0, 62)
    return np.where(e >= 25, 0, fixed) & (1 << 25) - 1


def _wave(x: np.ndarray, quarters: int) -> np.ndarray:
    """Return the sine of x and some quarters of a turn; that of −x is negative without any."""
    sign, a = x & _SIGN, x & _MAGNITUDE
    angle = _turns(a) + (quarters << 23)
    fraction = angle & (1 << 23) - 1
    fraction = np.where(angle >> 23 & 1, ~fraction & (1 << 23) - 1, fraction)
    result = _truncated(_SIN.at(fraction), _SIN_POINT)
    result |= np.where(angle >> 24 & 1, _SIGN, 0)
    if not quarters:
        result ^= sign
    result = np.where(a < _LEAST, _ONE if quarters else sign, result)
    return np.where(a >= _INFINITY, _NAN, result)


def _sin(x: np.ndarray) -> np.ndarray:
    return _wave(x, 0)


def _cos(x: np.ndarray) -> np.ndarray:
    return _wave(x, 1)


def _scaled(
    function: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    chosen: np.ndarray,
    before: float,
    after: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return function(x); where chosen, that of before·x, followed by an operation of FP32."""
    values = x.astype(np.uint32).view(np.float32)
    scaled = np.where(chosen, values * np.float32(before), values)
    result = function(scaled.view(np.uint32).astype(np.int64))
    more = after(result.astype(np.uint32).view(np.float32))
    codes = np.where(np.isnan(more), _NAN, more.view(np.uint32).astype(np.int64))
    return np.where(chosen, codes, result)


def _subnormal(x: np.ndarray) -> np.ndarray:
    a = x & _MAGNITUDE
    return (a > 0) & (a < _LEAST)


def _ex2_all(x: np.ndarray) -> np.ndarray:
    low = (x > _SIGN + 0x42FC0000) & (x <= _SIGN + _INFINITY)  # below −126
    return _scaled(_ex2, x, low, 0.5, lambda r: r * r)


def _rcp_all(x: np.ndarray) -> np.ndarray:
    large = (x & _MAGNITUDE > 0x7E800000) & (x & _MAGNITUDE < _INFINITY)  # above 2^126
    first = _scaled(_rcp, x, large, 0.25, lambda r: r * np.float32(0.25))
    few = _scaled(_rcp, x, _subnormal(x), 2.0**24, lambda r: r * np.float32(2.0**24))
    return np.where(large, first, few)


def _with_subnormals(
    function: Callable[[np.ndarray], np.ndarray], after: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: _scaled(function, x, _subnormal(x), 2.0**24, after)


_FP32: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ex2.approx.ftz.f32": _ex2,
    "lg2.approx.ftz.f32": _lg2,
    "rcp.approx.ftz.f32": _rcp,
    "rsqrt.approx.ftz.f32": _rsqrt,
    "sqrt.approx.ftz.f32": _sqrt,
    "sin.approx.ftz.f32": _sin,
    "cos.approx.ftz.f32": _cos,
    "ex2.approx.f32": _ex2_all,
    "lg2.approx.f32": _with_subnormals(_lg2, lambda r: r + np.float32(-24)),
    "rcp.approx.f32": _rcp_all,
    "rsqrt.approx.f32": _with_subnormals(_rsqrt, lambda r: r * np.float32(2.0**12)),
    "sqrt.approx.f32": _with_subnormals(_sqrt, lambda r: r * np.float32(2.0**-12)),
    "sin.approx.f32": _sin,
    "cos.approx.f32": _cos,
}
#: Instructions of 16 bits: the result in FP32, rounded toward zero.
_SHORT = {"ex2.approx.f16": np.float16, "ex2.approx.ftz.bf16": ml_dtypes.bfloat16}
_MISSING = {
    "tanh.approx.f32": "its tables of some binades were not sampled",
    "tanh.approx.f16": "it is recorded, and no rule is known",
    "tanh.approx.bf16": "it is recorded, and no rule is known",
}


def instructions() -> tuple[str, ...]:
    """Return the instructions with a known rule, by their names in PTX.

    Examples
    --------
    >>> from vitruvian import functions
    >>> len(functions.instructions())
    16
    """
    return (*_FP32, *_SHORT)


def missing() -> dict[str, str]:
    """Return the recorded instructions without a known rule, and why there is none.

    Examples
    --------
    >>> from vitruvian import functions
    >>> "tanh.approx.f32" in functions.missing()
    True
    """
    return dict(_MISSING)


def compute(instruction: str, x: np.ndarray) -> np.ndarray:
    """Return an approximate function as an instruction of an H200 computes it, to the bit.

    Parameters
    ----------
    instruction : str
        Its name in PTX, for example "ex2.approx.ftz.f32".
    x : ndarray of float32, or float16 or bfloat16 as the name says

    Returns
    -------
    ndarray of the type of x

    Raises
    ------
    UserError
        If the instruction has no known rule.
    TypeError
        If x has another type.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import functions
    >>> functions.compute("ex2.approx.f32", np.array([3, 0.5], np.float32)).tolist()
    [8.0, 1.4142135381698608]
    """
    if instruction in _MISSING:
        raise UserError(
            f"instruction must be one with a known rule, not {instruction}: {_MISSING[instruction]}"
        )
    if instruction not in instructions():
        raise UserError(
            f"instruction must be one of {', '.join(instructions())}, not {instruction!r}"
        )
    wanted = np.dtype(_SHORT.get(instruction, np.float32))
    if x.dtype != wanted:
        raise TypeError(f"x must be of {wanted}, not {x.dtype}")
    function = _FP32[instruction] if wanted == np.float32 else _ex2

    def results(part: np.ndarray) -> np.ndarray:
        codes = part.astype(np.float32).view(np.uint32).astype(np.int64)
        return _as(function(codes).astype(np.uint32), wanted)

    return in_chunks(results, x)


def in_chunks(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return a function of each number of an array, with little memory beside the result."""
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _CHUNK):
            result[start : start + _CHUNK] = function(flat[start : start + _CHUNK])
    return result.reshape(x.shape)


def _as(codes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return results in their type; those of 16 bits are rounded toward zero."""
    if dtype == np.float32:
        return codes.view(np.float32)
    if dtype != np.float16:
        return (codes >> 16).astype(np.uint16).view(dtype)
    values = codes.view(np.float32)
    near = values.astype(np.float16)
    larger = (near.astype(np.float32) > values) & (values < 65536)
    return np.where(
        np.isnan(values), np.uint16(0x7FFF), near.view(np.uint16) - larger.astype(np.uint16)
    ).view(np.float16)
