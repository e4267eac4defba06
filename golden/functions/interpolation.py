"""Quadratic interpolation in a table, whose square lacks its low columns.

The upper bits of a fraction choose a segment, which has three coefficients; x is the rest. The sum
is c0 + c1·x + c2·s and a constant, where s is the square of x without the partial products of its
low columns (Oberman and Siu, ARITH 2005, describe such a unit). Every sum is exact.
"""

import csv
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Interpolation:
    """A table of coefficients, and the places of their lowest bits in the sum.

    Parameters
    ----------
    name : str
        The name in the file of tables.
    bits : int
        Bits of x: a fraction has 23, of which the others choose the segment.
    columns : int
        Columns that the square lacks.
    shifts : (int, int, int)
        Places of c0, c1·x and c2·s in the sum.
    constant : int
        What the sum begins with, for rounding.
    point : int
        Bits that the result drops from the sum.
    """

    name: str
    bits: int = 17
    columns: int = 19
    shifts: tuple[int, int, int]
    constant: int
    point: int

    @cached_property
    def coefficients(self) -> tuple[np.ndarray, ...]:
        """The coefficients of all segments at their places, with the constant."""
        first, second, third = (
            column << shift for column, shift in zip(_tables()[self.name], self.shifts, strict=True)
        )
        return first + self.constant, second, third

    def at(self, fraction: np.ndarray) -> np.ndarray:
        """Return the results for fractions, which are integers of 23 bits in int64."""
        segment, x = fraction >> self.bits, fraction & ((1 << self.bits) - 1)
        first, second, third = self.coefficients
        total = second[segment]
        total *= x
        total += first[segment]
        square = _squares(self.bits, self.columns)[x]
        square *= third[segment]
        total += square
        total >>= self.point
        return total


@lru_cache
def _tables() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return c0, c1 and c2 of each table."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    text = (files("vitruvian.golden.functions") / "h200.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        triple = (int(row["c0"]), int(row["c1"]), int(row["c2"]))
        found.setdefault(row["table"], []).append(triple)
    columns = {name: np.array(triples, np.int64).T for name, triples in found.items()}
    return {name: (c[0], c[1], c[2]) for name, c in columns.items()}


@lru_cache
def _squares(bits: int, columns: int) -> np.ndarray:
    """Return the square of each number without the partial products below a column.

    The products of two different bits occur twice, and so stand one column higher, once.
    """
    x = np.arange(1 << bits, dtype=np.int64)
    total = np.zeros_like(x)
    for i in range(bits):
        own = x >> i & 1
        if 2 * i >= columns:
            total += own << 2 * i
        first = max(i + 1, columns - i - 1)  # the lowest other bit whose product counts
        if first < bits:
            total += own * (x >> first << first) << i + 1
    return total
