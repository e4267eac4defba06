"""Comparison of a batch of results with the expected ones, and messages for mismatches."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a comparison. Two results can be added.

    Attributes
    ----------
    vectors : int
        Number of compared results.
    mismatches : int
        Number of results that differ.
    examples : tuple of str
        The first few mismatches, with operands and results.
    """

    vectors: int
    mismatches: int
    examples: tuple[str, ...] = ()

    def __add__(self, other: "Result") -> "Result":
        return Result(
            vectors=self.vectors + other.vectors,
            mismatches=self.mismatches + other.mismatches,
            examples=(self.examples + other.examples)[:_SHOWN],
        )


def compare(
    operation: str,
    *,
    got: np.ndarray,
    expected: np.ndarray,
    operands: Mapping[str, np.ndarray],
    seed: int | None = None,
    labels: tuple[str, str] = ("RTL", "golden"),
) -> Result:
    """Compare results bit for bit.

    Parameters
    ----------
    operation : str
        Name of the computation, for messages.
    got, expected : (N, …) ndarray of integers
        The two sides of the comparison.
    operands : mapping of str to (N, …) ndarray
        Operands of each result.
    seed : int, optional
        Seed of the operands, for messages.
    labels : pair of str
        Names of the two sides, for messages.

    Raises
    ------
    ValueError
        If the two sides differ in shape, or are empty.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or not got.size:
        raise ValueError(
            f"both sides must have one shape with at least one result, "
            f"not {got.shape} and {expected.shape}"
        )
    differs = got != expected
    wrong = np.flatnonzero(differs.reshape(len(got), -1).any(axis=1))
    examples = []
    for i in wrong[:_SHOWN]:
        values = "; ".join(f"{name} = {hexadecimal(array[i])}" for name, array in operands.items())
        origin = "" if seed is None else f" (seed {seed})"
        examples.append(
            f"{operation}, vector {i}{origin}: {values}; "
            f"{labels[0]} {hexadecimal(got[i])}, {labels[1]} {hexadecimal(expected[i])}"
        )
    return Result(vectors=len(got), mismatches=len(wrong), examples=tuple(examples))


def hexadecimal(values: object) -> str:
    """Return codes in hexadecimal with all digits of their type, separated by spaces."""
    array = np.asarray(values)
    digits = 2 * array.dtype.itemsize if array.dtype.kind in "iu" else 1
    mask = (1 << 4 * digits) - 1
    return " ".join(f"{int(value) & mask:0{digits}x}" for value in array.ravel())
