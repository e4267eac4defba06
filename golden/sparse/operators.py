"""The operators of a processing element for sparse tensor algebra, on arrays of codes.

A semiring is a reduction ⊕ (one of ``PLUS``) and an operator ⊗ (one of ``TIMES``). Zhang 2024,
§4.4.3, names mul-add, and-or, min-add and aril-add. The thesis does not define ``aril``. Here it is
"assign right if left": the right operand if the left one is true, otherwise the identity of ⊕.
"""

import numpy as np

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.arith import add, maximum_number, minimum_number, mul
from vitruvian.golden.fp.codec import code_dtype, unpack
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.names import PLUS, TIMES


def truth(codes: np.ndarray, format: FloatFormat | str) -> np.ndarray:
    """Return True for each number that is neither zero nor NaN."""
    parts = unpack(codes, format)
    return ~parts.nan & (parts.infinity | (parts.significand != 0))


def identity(plus: str, format: FloatFormat | str) -> int:
    """Return the code of the identity of a reduction, which is the value of an empty column."""
    f = as_format(format)
    one_of("plus", plus, PLUS)
    assert f.infinity is not None
    return {"min": f.infinity, "max": f.infinity | f.sign_mask}.get(plus, 0)


def _bits(condition: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Return the codes of 1 and 0 for conditions."""
    one = format.bias << format.fraction_bits
    return np.where(condition, one, 0).astype(code_dtype(format))


def combine(name: str, x: np.ndarray, y: np.ndarray, format: FloatFormat | str) -> np.ndarray:
    """Return x ∘ y, element by element and rounded once (RNE).

    Parameters
    ----------
    name : str
        An operator of ``PLUS`` or ``TIMES`` other than aril.
    x, y : ndarray of unsigned int, ``format`` codes
    format : FloatFormat or str
        One of ``FORMATS``.

    Returns
    -------
    ndarray of unsigned int
        Minimum and maximum prefer a number to a NaN, and −0 < +0. "and" and "or" give 1 or 0, and
        count every operand as true that is neither zero nor NaN.
    """
    f = as_format(format)
    if name == "sub":
        return add(x, y ^ y.dtype.type(f.sign_mask), f)
    if name in ("and", "or"):
        operation = np.logical_and if name == "and" else np.logical_or
        return _bits(operation(truth(x, f), truth(y, f)), f)
    operations = {"add": add, "mul": mul, "min": minimum_number, "max": maximum_number}
    return operations[one_of("operator", name, operations)](x, y, f)


def product(
    plus: str, times: str, x: np.ndarray, y: np.ndarray, format: FloatFormat | str
) -> np.ndarray:
    """Return x ⊗ y as a processing element hands it to the reduction ⊕.

    Parameters
    ----------
    plus, times : str
        Names in ``PLUS`` and ``TIMES``.
    x, y : ndarray of unsigned int, ``format`` codes
        Matrix value and vector element.

    Returns
    -------
    ndarray of unsigned int
        If ⊕ is "or", the product is turned into 1 or 0, so that a column of one element has a
        truth value as well.
    """
    f = as_format(format)
    one_of("times", times, TIMES)
    empty = identity(plus, f)
    if times == "aril":
        d = np.where(truth(x, f), y, empty).astype(code_dtype(f))
    else:
        d = combine(times, x, y, f)
    return _bits(truth(d, f), f) if plus == "or" else d
