"""One way to compare a batch with what it must be, and to say what differs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["Result", "compare", "hexadecimal"]

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Result:
    """Outcome of one check.

    Attributes
    ----------
    vectors, mismatches : int
        Results compared, and those that differ.
    examples : tuple of str
        The first few mismatches in full.
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
        What was computed, for the message.
    got, expected : (N, …) ndarray of integers
        Two sides of the comparison, named by ``labels``.
    operands : mapping of str to (N, …) ndarray
        What each result was computed from.
    seed : int, optional
        Reproduces the operands.

    Raises
    ------
    ValueError
        If the two sides differ in shape, or nothing is compared.
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
    """Codes in hexadecimal, as wide as their type, separated by spaces."""
    array = np.asarray(values)
    digits = 2 * array.dtype.itemsize if array.dtype.kind in "iu" else 1
    mask = (1 << 4 * digits) - 1
    return " ".join(f"{int(value) & mask:0{digits}x}" for value in array.ravel())
