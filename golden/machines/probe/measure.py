"""Results of a function that computes dot products: a simulator, a library, an own design."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int
from vitruvian.golden.fp.codec import check_codes, code_dtype, number_dtype
from vitruvian.golden.fp.formats import (
    FORMATS,
    INT_FORMATS,
    OTHER_FORMATS,
    FloatFormat,
    IntFormat,
    as_format,
)
from vitruvian.golden.machines.probe.cases import Cases, Results, cases, with_results

Function = Callable[[np.ndarray, np.ndarray, np.ndarray], ArrayLike]


def measure(
    function: Function,
    *,
    input: str,
    terms: int,
    output: str = "fp32",
    input_b: str | None = None,
    values: bool = False,
    seed: int = 1,
) -> Results:
    """Return what a function computes for operands that tell the rules of matrix units apart.

    ``name`` and ``infer`` then find the machines and the rule that return the same results.

    Parameters
    ----------
    function : callable
        Function of A and B, (N, K) ndarrays, and C, an (N,) ndarray, that returns the (N,) results
        D = C + Σ_k A_k·B_k. It gets codes of the formats, unsigned integers, and returns codes.
    input, output : str
        Formats of A, and of C and D: "fp16", "bf16", "fp8e4m3", "int8", "int32" and others.
    terms : int
        Number of terms K.
    input_b : str, optional
        Format of B, by default that of A.
    values : bool
        If True, the function gets and returns numbers instead of codes, in the array type of each
        format (float16, float32, or a type of ml_dtypes).
    seed : int
        Start of the random operands.

    Returns
    -------
    Results

    Raises
    ------
    TypeError, ValueError
        If a format is unknown, or if the function returns something else.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.machines.probe import measure, name
    >>> def unit(a, b, c):  # two fused multiply-adds in float64, rounded once
    ...     return np.float32(c + (a.astype(float) * b).sum(axis=1))
    >>> found = measure(unit, input="fp16", terms=1, values=True)
    >>> found.d.shape == found.c.shape
    True
    """
    check_int("terms", terms, 1)
    a, out = format_of(input, "input"), format_of(output, "output")
    b = a if input_b is None else format_of(input_b, "input_b")
    given = cases(a, out, terms, input_b=b, seed=seed)
    with np.errstate(all="ignore"):
        d = function(*_arguments(given, values))
    return with_results(given, _codes(np.asarray(d), given, values))


def format_of(name: str, thing: str = "format") -> FloatFormat | IntFormat:
    """Return the format of numbers or of integers with this name.

    Raises
    ------
    UserError
        If there is none.
    """
    for table in (INT_FORMATS, FORMATS, OTHER_FORMATS):
        if name in table:
            return table[name]
    return as_format(name, thing)


def _number(format: FloatFormat | IntFormat) -> np.dtype:
    """Return the type of an array of numbers."""
    if isinstance(format, FloatFormat):
        return number_dtype(format)
    return np.dtype(format.name)


def _arguments(given: Cases, values: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, c = given.a.copy(), given.b.copy(), given.c.copy()
    if not values:
        return a, b, c
    formats = (given.input, given.input_b, given.output)
    x, y, z = (v.view(_number(f)) for v, f in zip((a, b, c), formats, strict=True))
    return x, y, z


def _codes(d: np.ndarray, given: Cases, values: bool) -> np.ndarray:
    """Return the results as codes, if they are what they must be."""
    out, rows = given.output, len(given.c)
    if d.shape != (rows,):
        raise ValueError(f"results of the function must have the shape {(rows,)}, not {d.shape}")
    if values:
        if d.dtype != _number(out):
            raise TypeError(f"results of the function must be {_number(out)}, not {d.dtype}")
        return np.ascontiguousarray(d).view(given.c.dtype)
    if isinstance(out, FloatFormat):
        codes = check_codes(d, out.code_bits, "results of the function", f" ({out})")
        return codes.astype(code_dtype(out))
    if d.dtype.kind not in "iu":
        raise TypeError(f"results of the function must be integers, not {d.dtype}")
    return d.astype(given.c.dtype)
