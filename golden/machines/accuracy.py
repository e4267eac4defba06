"""The errors of machines: random dot products by each rule, compared with the exact sum.

All machines get the same random numbers, rounded to the formats of their operands. The exact result
is that of the rounded operands, so that the errors are those of the sum and not of the formats.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vitruvian.golden.fp.codec import code_dtype, to_float
from vitruvian.golden.fp.convert import from_float
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import encode_scale, scale_value
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.run import compute
from vitruvian.golden.machines.table import Machine, machines

#: Number of products of a dot product, a multiple of every machine's step.
TERMS = 256
_RVBNA_TERMS = 8  # products in a step of RVBNA, which may have any number


@dataclass(frozen=True)
class Errors:
    """The errors of one rule on one set of operands.

    Attributes
    ----------
    mean_ulp, worst_ulp : float
        Absolute errors in units in the last place of the exact result in the output format.
    mean_relative, worst_relative : float
        Absolute errors divided by the sum of the products' magnitudes.
    """

    mean_ulp: float
    worst_ulp: float
    mean_relative: float
    worst_relative: float


@dataclass(frozen=True)
class Listed:
    """Rows of the table of machines that have the same rule.

    Attributes
    ----------
    row : Machine
        The first of them.
    stems, machines, instructions : tuple of str
        The names of all of them.
    """

    row: Machine
    stems: tuple[str, ...]
    machines: tuple[str, ...]
    instructions: tuple[str, ...]


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    a, b = rng.random((2, *shape))
    return a, b


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    a, b = rng.standard_normal((2, *shape))
    return a, b


def _wide(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    a, b = rng.standard_normal((2, *shape)) * 2.0 ** rng.integers(-5, 6, (2, *shape))
    return a, b


def _cancelling(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return operands whose products cancel in pairs, but for a quarter of small products."""
    rows, terms = shape
    many = 3 * terms // 8
    a, b = 4 * rng.standard_normal((2, rows, many))
    small = rng.standard_normal((2, rows, terms - 2 * many))
    order = rng.permuted(np.tile(np.arange(terms), (rows, 1)), axis=1)
    left = np.concatenate([a, a, small[0]], axis=1)
    right = np.concatenate([b, -b, small[1]], axis=1)
    return np.take_along_axis(left, order, axis=1), np.take_along_axis(right, order, axis=1)


#: Name of a distribution -> function that returns random A and B of a shape.
DISTRIBUTIONS: dict[
    str, Callable[[np.random.Generator, tuple[int, int]], tuple[np.ndarray, np.ndarray]]
] = {"uniform": _uniform, "normal": _normal, "wide": _wide, "cancelling": _cancelling}


def listed() -> list[Listed]:
    """Return the rows with floating point, one entry for all of a maker that have the same rule.

    Rows with two formats are left out, and so are RVBNA with other than 8 products, operands with a
    shared exponent, and the lower fidelities of Tenstorrent but for BF16 operands and FP32 results.
    """
    groups: dict[tuple[str, object], list[Machine]] = {}
    for row in machines().values():
        rule = row.rule
        if row.kind == "integer" or "x" in row.formats.replace("xf32", ""):
            continue
        if row.machine == "rvbna" and rule.k != _RVBNA_TERMS:
            continue
        if isinstance(rule, PhaseSpec) and (rule.phases < 4 or rule.shared_bits is not None):
            if (row.formats, row.output) != ("bf16", "fp32"):
                continue
        groups.setdefault((row.maker, rule), []).append(row)
    return [
        Listed(
            rows[0],
            tuple(row.stem for row in rows),
            tuple(dict.fromkeys(row.machine for row in rows)),
            tuple(dict.fromkeys(row.instruction for row in rows)),
        )
        for rows in groups.values()
    ]


def errors(row: Machine, distribution: str, *, rows: int = 200, seed: int = 1) -> Errors:
    """Return the errors of a row of the table of machines.

    Parameters
    ----------
    row : Machine
        A row with floating point.
    distribution : str
        A key of ``DISTRIBUTIONS``.
    rows : int
        Number of dot products of 256 terms; C is zero.
    seed : int
        The same seed gives the same numbers for every row of the table.

    Raises
    ------
    ValueError
        If the row has an integer rule.
    """
    rule = row.rule
    if isinstance(rule, IntDotSpec | IntPhaseSpec):
        raise ValueError(f"{row.stem} must have a rule for floating point")
    rng = np.random.default_rng([seed, list(DISTRIBUTIONS).index(distribution)])
    x, y = DISTRIBUTIONS[distribution](rng, (rows, TERMS))
    a, b = _quantised(x, rule.input, rule), _quantised(y, rule.input_b, rule)
    c = np.zeros(rows, code_dtype(rule.output))
    d = to_float(compute(rule, a.codes, b.codes, c, a.scales, b.scales), rule.output)
    products = _products(a.values, b.values)
    exact = np.abs(list(map(math.fsum, products)))
    wrong = np.abs(list(map(math.fsum, np.column_stack([products, -d]))))
    out = rule.output
    exponent = np.maximum(np.frexp(exact)[1] - 1, out.emin)
    ulps = wrong / np.ldexp(1.0, exponent - out.fraction_bits)
    relative = wrong / np.abs(products).sum(axis=1)
    return Errors(*(float(f(x)) for x in (ulps, relative) for f in (np.mean, np.max)))


class _Operand(NamedTuple):
    """Numbers as a machine takes them: codes, their values, and scales if it has them."""

    codes: np.ndarray
    values: np.ndarray
    scales: np.ndarray | None


def _quantised(x: np.ndarray, format: FloatFormat, rule: object) -> _Operand:
    """Return numbers in the format of an operand."""
    if not isinstance(rule, DotSpec) or rule.scales is None:
        # A machine that first rounds its operands to a narrower format gets numbers of that one.
        narrow = rule.a.convert if isinstance(rule, DotSpec) else None
        if narrow is None or narrow.fraction_bits >= format.fraction_bits:
            narrow = format
        codes = from_float(x, narrow, saturate=True)
        return _Operand(codes, to_float(codes, narrow), None)
    assert rule.scales is not None
    blocks = x.reshape(len(x), -1, rule.scales.block)
    largest = np.abs(blocks).max(axis=2)
    if rule.scales.format.fraction_bits:
        scales = encode_scale(largest / to_float(format.max_finite, format), rule.scales.format)
    else:
        scales = encode_scale(
            np.ldexp(1.0, np.frexp(largest)[1] - 1 - format.emax), rule.scales.format
        )
    factor = scale_value(scales, rule.scales.format)[..., None]
    codes = from_float(blocks / factor, format, saturate=True)
    values = to_float(codes, format) * factor
    return _Operand(codes.reshape(x.shape), values.reshape(x.shape), scales)


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return numbers whose exact sum in each row is that of the products.

    The product of two floats is p + e, with e from halves of 26 bits (Dekker 1971).
    """
    product = a * b
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return np.concatenate([product, error], axis=1) if error.any() else product


def _high(x: np.ndarray) -> np.ndarray:
    """Return the upper 26 bits of float64 numbers."""
    scaled = x * ((1 << 27) + 1.0)
    return scaled - (scaled - x)
