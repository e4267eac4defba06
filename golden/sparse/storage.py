"""Sparse matrices that are stored twice, by rows (CSR) and by columns (CSC)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import one_of
from vitruvian.golden.sparse.storage_compiled import place

#: Rules for the value of an element that is given more than once
DUPLICATES = ("sum", "min", "max", "first")


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix with R rows, C columns and Z stored elements.

    Stored zeros are elements like all others. ``from_entries`` makes a matrix from entries in any
    order.

    Attributes
    ----------
    shape : (int, int)
        R and C.
    row_start : (R + 1,) ndarray of int64
        Row r has the elements ``row_start[r]`` up to, but not including, ``row_start[r + 1]``.
    column_index : (Z,) ndarray of int32
        Column of each element; it rises within a row.
    row_values : (Z,) ndarray of float64
        Values in the order of the rows.

    References
    ----------
    Zhang 2024, §4.4.2: the output-stationary product reads columns, the input-stationary one rows.
    """

    shape: tuple[int, int]
    row_start: np.ndarray
    column_index: np.ndarray
    row_values: np.ndarray

    @classmethod
    def from_entries(
        cls,
        rows: ArrayLike,
        columns: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int],
        *,
        duplicates: str = "sum",
    ) -> "Sparse":
        """Return the matrix with the given entries.

        Parameters
        ----------
        rows, columns : (Z,) array_like of int
            Indices, counted from 0.
        values : (Z,) array_like of float, or a number
        shape : (int, int)
            Numbers of rows and columns.
        duplicates : {"sum", "min", "max", "first"}
            Value of an element that several entries name. A sum adds in the order of the entries.

        Raises
        ------
        ValueError
            If the lengths differ, an index is outside of the matrix or the rule is unknown.
        """
        one_of("duplicates", duplicates, DUPLICATES)
        row, column = (np.asarray(each, np.int64).ravel() for each in (rows, columns))
        value = np.asarray(values, np.float64)
        if value.ndim == 0:
            value = np.full(row.shape, value)
        if not len(row) == len(column) == value.size:
            raise ValueError(
                f"rows, columns and values must have the same length, "
                f"not {len(row)}, {len(column)} and {value.size}"
            )
        if min(shape) < 0 or max(shape) >= 1 << 31:
            raise ValueError(f"shape must be between 0 and {(1 << 31) - 1}, not {shape!r}")
        for name, index, size in (("row", row, shape[0]), ("column", column, shape[1])):
            if len(index) and not (index.min() >= 0 and index.max() < size):
                bad = index.min() if index.min() < 0 else index.max()
                raise ValueError(f"{name} index must be between 0 and {size - 1}, not {bad}")
        row, column, value = row.astype(np.int32), column.astype(np.int32), value.ravel()
        if not _rises(row, column):
            order = _order(column, np.arange(len(column)), shape[1])
            order = _order(row, order, shape[0])
            row, column, value = row[order], column[order], value[order]
            differs = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
            first = np.flatnonzero(np.concatenate([[True], differs])[: len(row)])
            if len(first) < len(row):
                value = _merged(value, first, duplicates)
                row, column = row[first], column[first]
        return cls(shape, _starts(row, shape[0]), column, np.ascontiguousarray(value))

    @classmethod
    def from_rows(
        cls,
        row_start: ArrayLike,
        column_index: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int],
    ) -> "Sparse":
        """Return the matrix with the given CSR arrays, which are copied.

        Parameters
        ----------
        row_start : (R + 1,) array_like of int
        column_index : (Z,) array_like of int
            Column of each element. If it does not rise within a row, the elements are sorted, and
            those that are given more than once are added.
        values : (Z,) array_like of float
        shape : (int, int)
            R and C.

        Raises
        ------
        ValueError
            If the arrays do not fit, or an index is outside of the matrix.
        """
        start, column = np.array(row_start, np.int64), np.asarray(column_index)
        value = np.array(values, np.float64)
        fits = start.shape == (shape[0] + 1,) and bool((start[1:] >= start[:-1]).all())
        if not (fits and start[0] == 0 and start[-1] == len(column) == len(value)):
            raise ValueError(
                f"row_start must rise from 0 to the number of elements, {len(column)}, in "
                f"{shape[0]} steps"
            )
        inside = not len(column) or (column.min() >= 0 and column.max() < shape[1])
        if inside and max(shape) < 1 << 31:
            index = column.astype(np.int32)
            rises = np.empty(len(index) + 1, bool)
            rises[1:-1] = index[1:] > index[:-1]
            rises[start] = True  # From one row to the next one, the column may fall.
            if rises.all():
                return cls((shape[0], shape[1]), start, index, value)
        rows = np.repeat(np.arange(shape[0]), np.diff(start))
        return cls.from_entries(rows, column, value, shape)

    @property
    def nonzeros(self) -> int:
        """The number of stored elements."""
        return len(self.column_index)

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each element in the order of the rows: (Z,) int32."""
        counts = np.diff(self.row_start)
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), counts)

    @cached_property
    def _by_column(self) -> np.ndarray:
        return _order(self.column_index, np.arange(self.nonzeros), self.shape[1])

    @cached_property
    def column_start(self) -> np.ndarray:
        """The first element of each column in ``row_index``: (C + 1,) int64."""
        return _starts(self.column_index, self.shape[1])

    @cached_property
    def row_index(self) -> np.ndarray:
        """The row of each element in the order of the columns: (Z,) int32, rising in a column."""
        return self.rows[self._by_column]

    @cached_property
    def column_values(self) -> np.ndarray:
        """The values in the order of the columns: (Z,) float64."""
        return self.row_values[self._by_column]

    @cached_property
    def transposed(self) -> "Sparse":
        """The transposed matrix, which shares the arrays of this one."""
        csc = self.column_start, self.row_index, self.column_values
        other = Sparse((self.shape[1], self.shape[0]), *csc)
        other.__dict__.update(
            column_start=self.row_start,
            row_index=self.column_index,
            column_values=self.row_values,
            transposed=self,
        )
        return other

    @cached_property
    def has_symmetric_pattern(self) -> bool:
        """Whether an element (j, i) is stored for every stored element (i, j)."""
        other = self.transposed
        return np.array_equal(self.row_start, other.row_start) and np.array_equal(
            self.column_index, other.column_index
        )

    def with_values(self, values: ArrayLike) -> "Sparse":
        """Return a matrix with the same pattern and the given values in the order of the rows."""
        value = np.broadcast_to(np.asarray(values, np.float64), self.row_values.shape)
        other = Sparse(self.shape, self.row_start, self.column_index, np.ascontiguousarray(value))
        for name in ("rows", "_by_column", "column_start", "row_index"):
            if name in self.__dict__:  # computed before, and independent of the values
                other.__dict__[name] = self.__dict__[name]
        return other

    def pattern(self) -> "Sparse":
        """Return the matrix in which every stored element is 1."""
        ones = self.with_values(1.0)
        ones.__dict__["column_values"] = ones.row_values
        return ones

    def dense(self, missing: float = 0.0) -> np.ndarray:
        """Return the matrix as a (R, C) array with ``missing`` for elements that are not stored."""
        matrix = np.full(self.shape, missing)
        matrix[self.rows, self.column_index] = self.row_values
        return matrix


def unsigned(index: np.ndarray) -> np.ndarray:
    """Return indices as unsigned ones: Numba tests signed ones for being negative, at a cost."""
    return index.view(np.dtype(index.dtype.str.replace("i", "u")))


def _rises(row: np.ndarray, column: np.ndarray) -> bool:
    """Return whether entries are in the order of the rows, without duplicates."""
    same = row[1:] == row[:-1]
    return bool(((row[1:] > row[:-1]) | (same & (column[1:] > column[:-1]))).all())


def _starts(index: np.ndarray, size: int) -> np.ndarray:
    """Return the number of elements before each row (or column): (size + 1,) int64."""
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(index, minlength=size), out=starts[1:])
    return starts


def _order(keys: np.ndarray, order: np.ndarray, size: int) -> np.ndarray:
    """Return positions in the order of their keys, which are less than ``size``."""
    if size > 8 * len(keys) + 1024:  # Counting would take longer than a comparison of the keys.
        return order[np.argsort(keys[order], kind="stable")]
    result = np.empty(len(order), np.int64)
    place(keys, order, _starts(keys, size)[:-1], result)
    return result


def _merged(value: np.ndarray, first: np.ndarray, duplicates: str) -> np.ndarray:
    """Merge the values of equal entries, which are adjacent and begin at ``first``."""
    if duplicates == "first":
        return value[first]
    if duplicates == "sum":
        # reduceat may add long runs pairwise; bincount adds in the order of the entries.
        run = np.zeros(len(value), np.int64)
        run[first[1:]] = 1
        return np.bincount(np.cumsum(run), weights=value)
    return (np.minimum if duplicates == "min" else np.maximum).reduceat(value, first)
