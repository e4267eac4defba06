"""Square matrix products in single, complex single and double precision."""

import math
from typing import Any

import numpy as np

from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.studies.methods import METHODS, NumPy
from vitruvian.sim.studies.study import RunOptions, Study, StudyKernel

#: Methods for real and for complex operands of single precision.
REAL = tuple(name for name, method in METHODS.items() if method.precision not in ("fp64", "fp32c"))
COMPLEX = (*REAL, "FP32C")


def exact_product(a, b) -> tuple[np.ndarray, np.ndarray]:
    """Return A·B of float64 matrices to about 106 bits, as a reference.

    Every number is split into halves of 26 bits, whose products are exact, and ``math.fsum`` adds
    the products without error.

    Parameters
    ----------
    a : (M, K) ndarray of float64
    b : (K, N) ndarray of float64
        No product of two halves may overflow or underflow.

    Returns
    -------
    high, low : (M, N) ndarray of float64
        The correctly rounded product, and its error, which is rounded in turn.
    """
    rows, columns = _halves(np.asarray(a, np.float64)), _halves(np.asarray(b, np.float64).T)
    high, low = np.empty((2, len(rows[0]), len(columns[0])))
    for i in range(len(high)):
        # Four exact products of halves for each element of K.
        products = np.concatenate([x[i] * y for x in rows for y in columns], axis=-1)
        for j, terms in enumerate(products.tolist()):
            high[i, j] = math.fsum(terms)
            low[i, j] = math.fsum([*terms, -high[i, j]])
    return high, low


def _halves(x):
    """Return two numbers of at most 26 bits (and a sign) with the sum x: Veltkamp's split."""
    # Dekker 1971: the rounding of ``big`` cuts x after its upper 26 bits.
    big = x * (2.0**27 + 1)
    high = big - (big - x)
    return high, x - high


def ulps(result, high, low: Any = 0.0) -> np.ndarray:
    """Return the distance of ``result`` from high + low, in units of the last place of ``high``.

    Parameters
    ----------
    result : ndarray of float32 or float64
        The unit of the last place is that of this dtype.
    high, low : ndarray of float64
        See ``exact_product``.
    """
    high = np.asarray(high)
    unit = np.spacing(np.abs(high).astype(np.asarray(result).dtype)).astype(np.float64)
    return np.abs((np.asarray(result, np.float64) - high) - low) / unit


def _sgemm(size: int, options: RunOptions) -> Study:
    random = np.random.default_rng(options.seed)
    a, b = (random.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    reference = a.astype(np.float64) @ b.astype(np.float64)

    def extras(d, _):
        return {"median ulp": float(np.median(ulps(d.astype(np.float32), reference)))}

    return Study(
        kernel="sgemm",
        title="matrix product of FP32 operands",
        setting=f"{size}×{size}×{size}, standard normal",
        reference="float64 product of the same operands",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            lambda gemm: gemm(a, b),
            reference,
            extras=extras,
            baselines={"NumPy float32": lambda: NumPy()(a, b)},
        ),
    )


def _cgemm(size: int, options: RunOptions) -> Study:
    random = np.random.default_rng(options.seed)
    a, b = (
        random.standard_normal((size, size, 2)).astype(np.float32).view(np.complex64)[..., 0]
        for _ in range(2)
    )
    return Study(
        kernel="cgemm",
        title="matrix product of complex FP32 operands",
        setting=f"{size}×{size}×{size}, parts standard normal",
        reference="complex128 product of the same operands",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            lambda gemm: gemm(a, b),
            a.astype(np.complex128) @ b.astype(np.complex128),
            baselines={"NumPy complex64": lambda: NumPy()(a, b)},
        ),
        notes=("all but FP32C compute two real products with K doubled (four real ones)",),
    )


def _dgemm(size: int, options: RunOptions) -> Study:
    random = np.random.default_rng(options.seed)
    a, b = (random.standard_normal((size, size)) for _ in range(2))
    high, low = exact_product(a, b)

    def extras(d, _):
        distances = ulps(d, high, low)
        return {"median ulp": float(np.median(distances)), "max ulp": float(distances.max())}

    def compute(gemm):
        return gemm(a, b)

    return Study(
        kernel="dgemm",
        title="matrix product of FP64 operands",
        setting=f"{size}×{size}×{size}, standard normal",
        reference="exact product; ulp of its nearest float64",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            compute, high, extras=extras, baselines={"NumPy float64": lambda: compute(NumPy())}
        ),
        notes=("the largest ulps occur where the sum cancels, as its unit is then small",),
    )


SGEMM = StudyKernel(
    name="sgemm",
    title="FP32 matrix product",
    run=_sgemm,
    size="rows, columns and depth",
    default=128,
    low=2,
    high=1024,
    methods=("FP16", "BF16", "TF32", "3xBF16", "6xBF16", "9xBF16", "3xTF32", "4xTF32", "FP32"),
    supported=REAL,
)

CGEMM = StudyKernel(
    name="cgemm",
    title="complex FP32 matrix product",
    run=_cgemm,
    size="rows, columns and depth",
    default=64,
    low=2,
    high=1024,
    methods=("FP16", "BF16", "TF32", "3xBF16", "6xBF16", "9xBF16", "3xTF32", "FP32", "FP32C"),
    supported=COMPLEX,
)

DGEMM = StudyKernel(
    name="dgemm",
    title="FP64 matrix product, on lanes that hold whole FP64 elements",
    run=_dgemm,
    size="rows, columns and depth",
    default=64,
    low=2,
    high=256,
    methods=("FP64",),
    supported=("FP64",),
    unit=Unit(k=10),
)
