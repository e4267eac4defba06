"""The results of Cube-fx, to the bit: logarithms, products, exponentials, and a matrix product.

The inputs are the elements of an (N/16, 16) matrix V. Products of the logarithms of V by sequence
matrices are the logarithms of the powers of V; a product of the powers by the coefficients is the
sum of each series. The thesis takes positive inputs. For others,

- the logarithm is that of |x|, and odd powers of negative inputs get the sign −;
- the logarithm of 0 is replaced by −20, because −∞ times the zeros of a sequence matrix would be a
  NaN in the results of 15 other inputs. The power 0 is then 1, and all others are 0: e⁻²⁰ is less
  than half of the smallest number of FP16. The logarithm of that number is −16.6, so no other input
  is affected.

References
----------
Tang 2024, §4.2, Alg. 7, and §4.3.1.
"""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden import vector
from vitruvian.golden.cube import mmad
from vitruvian.golden.machines.presets import PRESETS

#: The smallest logarithm; see the module.
LEAST_LOG = -20.0

_SIDE = 16
_SPEC = PRESETS["ieee"].spec("fp16", "fp32", k=_SIDE)


def sequence_matrix(number: int, order: int, merged: int = 1) -> np.ndarray:
    """Return the sequence matrix of a loop step, padded with zeros to whole fractals.

    Row number·t + u has the exponents 0 … k − 1 in the columns u·k … u·k + k − 1, for u < t; the
    last matrix lacks the rows from 16 on. (Alg. 7 counts the exponents from 1; a column for the
    power 0 is needed for constant terms, and the orders of Table 4.1 count it.)

    Parameters
    ----------
    number : int
        Number of the loop step.
    order : int
        Number k of powers.
    merged : int
        Number t of merged matrices.

    Returns
    -------
    (16, 16·⌈k·t/16⌉) ndarray of float16
    """
    matrix = np.zeros((_SIDE, -(-order * merged // _SIDE) * _SIDE), np.float16)
    for u in range(merged):
        row = number * merged + u
        if row < _SIDE:
            matrix[row, u * order : (u + 1) * order] = np.arange(order)
    return matrix


def coefficient_matrix(coefficients: np.ndarray, merged: int = 1) -> np.ndarray:
    """Return the block-diagonal coefficient matrix, padded with zeros to whole fractals.

    Parameters
    ----------
    coefficients : (j, k) ndarray of float16
    merged : int
        Number t of copies on the diagonal.

    Returns
    -------
    (16·⌈k·t/16⌉, 16·⌈j·t/16⌉) ndarray of float16
    """
    functions, order = coefficients.shape
    sides = [-(-size * merged // _SIDE) * _SIDE for size in (order, functions)]
    matrix = np.zeros(sides, np.float16)
    for u in range(merged):
        rows = slice(u * order, (u + 1) * order)
        matrix[rows, u * functions : (u + 1) * functions] = coefficients.T
    return matrix


def powers(x: np.ndarray, order: int, merged: int = 1, halvings: int = 0) -> np.ndarray:
    """Return the powers of the inputs (Alg. 7).

    A power p ≥ 1 of x has a relative error of about p·|ln |x||·2⁻¹¹, that of the logarithm
    rounded to FP16, plus that of rounding p·ln |x| to FP16.

    Parameters
    ----------
    x : (16·n,) ndarray of float16
        Finite numbers whose powers do not exceed 65504.
    merged : int
        Number of merged sequence matrices; the powers do not depend on it.
    halvings : int
        The powers are those of x / 2**halvings.

    Returns
    -------
    (16·n, k) ndarray of float16
    """
    scale = np.float16(2.0**-halvings)
    logs = vector.maximum(
        vector.ln(vector.mul(vector.absolute(x), scale)), np.float16(LEAST_LOG)
    ).reshape(-1, _SIDE)
    negative = np.signbit(x).reshape(-1, _SIDE)
    result = np.zeros((*logs.shape, order), np.float16)
    for number in range(ceil_div(_SIDE, merged)):
        matrix = sequence_matrix(number, order, merged)
        exponents = mmad(logs.view(np.uint16), matrix.view(np.uint16), spec=_SPEC)
        found = vector.exp(
            vector.convert(exponents.astype(np.uint32).view(np.float32), "fp32", "fp16")
        )
        for u in range(min(merged, _SIDE - number * merged)):
            result[:, number * merged + u] = found[:, u * order : (u + 1) * order]
    result[..., 1::2] *= np.where(negative, np.float16(-1), np.float16(1))[..., None]
    # An odd power that vanishes is +0 in the kernel, also that of a negative input.
    return (result + np.float16(0)).reshape(-1, order)


def taylor(
    x: np.ndarray, coefficients: np.ndarray, merged: int = 1, halvings: int = 0
) -> np.ndarray:
    """Return the sums of the series: the powers times the coefficients, on the Cube.

    The Cube rounds once to FP32 for each 16 rows of the coefficient matrix, and the result is
    rounded to FP16. With merged matrices, the rows of a function may be in two such blocks, so the
    last bit may depend on their number.

    Parameters
    ----------
    x : (16·n,) ndarray of float16
        Finite numbers.
    coefficients : (j, k) ndarray of float16
        The coefficients of the powers of x / 2**halvings.
    merged : int
        Number t of merged matrices.

    Returns
    -------
    (j, 16·n) ndarray of float16
    """
    functions, order = coefficients.shape
    matrix = coefficient_matrix(coefficients, merged)
    found = powers(x, order, merged, halvings).reshape(-1, _SIDE, order)
    result = np.zeros((functions, *found.shape[:2]), np.float16)
    for number in range(ceil_div(_SIDE, merged)):
        inputs = range(number * merged, min((number + 1) * merged, _SIDE))
        # Columns without an exponent are e⁰ = 1; their rows of coefficients are zero.
        left = np.ones((len(found), matrix.shape[0]), np.float16)
        for u, at in enumerate(inputs):
            left[:, u * order : (u + 1) * order] = found[:, at]
        rounded = _product(left, matrix)
        for u, at in enumerate(inputs):
            result[:, :, at] = rounded[:, u * functions : (u + 1) * functions].T
    return result.reshape(functions, -1)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two FP16 matrices on the Cube, from FP32 rounded to FP16."""
    sums = mmad(a.view(np.uint16), b.view(np.uint16), spec=_SPEC)
    return vector.convert(sums.astype(np.uint32).view(np.float32), "fp32", "fp16")
