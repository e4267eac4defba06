"""Functions of CUDA's mathematical library in FP32: what they do around the approximate ones.

The steps and the coefficients are those of NVIDIA's published bitcode (libdevice 10, as it comes
with Triton 3.8), compiled without ``-use_fast_math``.
"""

from collections.abc import Callable, Iterable

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.fused import Numbers, fused
from vitruvian.golden.functions.mufu import compute, in_chunks

_NAN = np.uint32(0x7FFFFFFF).view(np.float32)


def canonical(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers with the code 7FFFFFFF for each NaN."""
    return np.where(np.isnan(x), _NAN, x)


def _numbers(codes: str) -> np.ndarray:
    """Return FP32 numbers by their codes in hexadecimal digits."""
    return np.array([int(code, 16) for code in codes.split()], np.uint32).view(np.float32)


_LOG2_E, _LOG2_E_LOW, _TWICE_LOG2_E, _STEP = _numbers("3fb8aa3b 32a57060 4038aa3b 3bbb989d")
_LN_2 = _numbers("3f317218")[0]
_LOG = _numbers("be055027 3e1039f6 bdf8cdcc 3e0f2955 be2ad8b9 3e4ced0b be7fff22 3eaaaa78 bf000000")
_TANH = _numbers("3c80f082 bd563cae 3e085941 beaaa9ed 00000000")
_TANH_LEAST, _TANH_MOST = _numbers("3f19999a 41102cb4")
_ERF = _numbers("38b1e96a ba574d20 3baad5ea bcdc1be7 3de718af bec093ac 3e0375d3")
_ERF_FAR = _numbers("3789ca3c b9f560b9 3bac840b bd0c8162 3e1cf906 3f6a937e 3f20d842")
_ERF_LEAST = _numbers("3f8060fe")[0]
_LOG_SPLIT = 0x3F2AAAAB  # two thirds: arguments are scaled to 2/3 to 4/3


def _polynomial(coefficients: Iterable[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return a polynomial by fused multiply-adds, the highest power first."""
    first, *others = coefficients
    total = first
    for coefficient in others:
        total = fused(total, x, coefficient)
    return total


def _expf(x: np.ndarray) -> np.ndarray:
    place = np.nan_to_num(np.clip(fused(x, _STEP, np.float32(0.5)), 0, 1))
    power = np.floor(place.astype(np.float64) * 252).astype(np.int32)  # that of 2, plus 126
    rest = fused(x, _LOG2_E_LOW, fused(x, _LOG2_E, (126 - power).astype(np.float32)))
    scale = ((power + 1) << 23).view(np.float32)
    return compute("ex2.approx.ftz.f32", rest) * scale


def _logf(x: np.ndarray) -> np.ndarray:
    small = x < np.float32(2.0**-126)
    y = np.where(small, x * np.float32(2.0**23), x)
    codes = y.view(np.int32)
    power = (codes - np.int32(_LOG_SPLIT)) & np.int32(-1 << 23)  # 2^23 times that of 2
    least = np.where(small, np.float32(-23), np.float32(0))
    exponent = fused(power.astype(np.float32), np.float32(2.0**-23), least)
    f = (codes - power).view(np.float32) - np.float32(1)
    inner = fused(_polynomial(_LOG, f) * f, f, f)
    result = fused(exponent, _LN_2, inner)
    infinite = np.where(y > 0, y, _NAN)  # a negative number has no logarithm
    result = np.where(y.view(np.uint32) > 0x7F7FFFFF, infinite, result)
    return np.where(y == 0, np.float32(-np.inf), result)


def _with_sign(x: np.ndarray, of: np.ndarray) -> np.ndarray:
    return (x.view(np.uint32) | of.view(np.uint32) & np.uint32(1 << 31)).view(np.float32)


def _tanhf(x: np.ndarray) -> np.ndarray:
    a = np.abs(x)
    power = compute("ex2.approx.ftz.f32", a * _TWICE_LOG2_E)
    part = compute("rcp.approx.ftz.f32", power + np.float32(1))
    far = np.where(a >= _TANH_MOST, np.float32(1), fused(part, np.float32(-2), np.float32(1)))
    near = fused(_polynomial(_TANH, x * x), x, x)
    return np.where(a >= _TANH_LEAST, _with_sign(far, x), near)


def _erff(x: np.ndarray) -> np.ndarray:
    a = np.abs(x)
    near = fused(_polynomial(_ERF, x * x), x, x)
    far = fused(_polynomial(_ERF_FAR, a), -a, -a)
    far = np.float32(1) - compute("ex2.approx.ftz.f32", far)
    return np.where(a >= _ERF_LEAST, _with_sign(far, x), near)


def divide_full(a: Numbers, b: Numbers) -> np.ndarray:
    """Return a / b as ``div.full.f32`` computes it on an H200, which is the division of Triton.

    NVIDIA's assembler multiplies by an approximate reciprocal, and scales both numbers first if b
    is large or subnormal.

    Parameters
    ----------
    a, b : ndarray of float32
        They may be broadcast.

    Returns
    -------
    ndarray of float32
        Each NaN has the code 7FFFFFFF.

    Raises
    ------
    TypeError
        If a or b has another type.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import functions
    >>> functions.divide_full(np.array([10], np.float32), np.float32(3)).tolist()
    [3.3333334922790527]
    """
    for name, array in (("a", a), ("b", b)):
        if array.dtype != np.float32:
            raise TypeError(f"{name} must be of float32, not {array.dtype}")
    size = np.abs(b)
    small = np.where(size < np.float32(2.0**-126), np.float32(2.0**24), np.float32(1))
    factor = np.where(size > np.float32(2.0**126), np.float32(0.25), small)
    with np.errstate(all="ignore"):
        reciprocal = compute("rcp.approx.ftz.f32", np.atleast_1d(b * factor))
        result = a * factor * reciprocal.reshape(np.shape(b))
    return canonical(result)


_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "expf": _expf,
    "logf": _logf,
    "tanhf": _tanhf,
    "erff": _erff,
    "rsqrtf": lambda x: compute("rsqrt.approx.f32", x),
    "__expf": lambda x: compute("ex2.approx.f32", x * _LOG2_E),
    "__logf": lambda x: compute("lg2.approx.f32", x) * _LN_2,
}


def cuda(function: str, x: np.ndarray) -> np.ndarray:
    """Return a function of CUDA's mathematical library in FP32 on an H200, to the bit.

    Parameters
    ----------
    function : {"expf", "logf", "tanhf", "erff", "rsqrtf", "__expf", "__logf"}
        Its name in CUDA C. PyTorch's ``exp``, ``log``, ``tanh``, ``erf`` and ``rsqrt`` of FP32
        call the first five.
    x : ndarray of float32

    Returns
    -------
    ndarray of float32
        Each NaN has the code 7FFFFFFF.

    Raises
    ------
    UserError
        If the function is another one.
    TypeError
        If x has another type.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import functions
    >>> functions.cuda("expf", np.array([1, -1], np.float32)).tolist()
    [2.7182817459106445, 0.3678794801235199]
    """
    if function not in _FUNCTIONS:
        raise UserError(f"function must be one of {', '.join(_FUNCTIONS)}, not {function!r}")
    if x.dtype != np.float32:
        raise TypeError(f"x must be of float32, not {x.dtype}")
    return in_chunks(lambda part: canonical(_FUNCTIONS[function](part)), x)
