"""The places of a sparse matrix' nonzeros in both orders: all that its traffic depends on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitruvian.common.extras import need
from vitruvian.common.validate import ceil_div, check_int

sparse = need("scipy.sparse", "sparse")

#: Sides of square blocks, in which a row or a column takes one byte; 1 stores single nonzeros.
BLOCK_SIDES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, eq=False)
class Pattern:
    """The nonzeros of a matrix, or its blocks of nonzeros, in CSC and CSR order.

    Attributes
    ----------
    elements, columns : int
        Rows of the matrix, which are the elements of a vector that it multiplies, and its columns.
    nonzeros : int
    side : int
        Side of a block; 1 if the entries are single nonzeros.
    col_first, col_rows : (n + 1,), (entries,) ndarray of int64, int32
        The block rows of block column c are col_rows[col_first[c] : col_first[c + 1]], ascending.
    row_first, row_cols : (n + 1,), (entries,) ndarray of int64, int32
    col_work, row_work : (entries + 1,) ndarray of int64
        Prefix sums of the nonzeros of the entries in either order; (1,) if each entry has one.
    blocks : Pattern or None
        The blocks in which memory stores the nonzeros, if the entries are nonzeros that are loaded
        and evicted one by one but stored in blocks.
    """

    elements: int
    columns: int
    nonzeros: int
    side: int
    col_first: np.ndarray
    col_rows: np.ndarray
    row_first: np.ndarray
    row_cols: np.ndarray
    col_work: np.ndarray
    row_work: np.ndarray
    blocks: "Pattern | None" = None

    @property
    def indices(self) -> int:
        """Block columns, which is also the number of block rows of a square matrix."""
        return len(self.col_first) - 1

    @property
    def square(self) -> bool:
        """True if the matrix has as many rows as columns."""
        return self.elements == self.columns

    @property
    def transposed(self) -> "Pattern":
        """The pattern of the transpose, which shares the arrays of this one."""
        return Pattern(
            elements=self.columns,
            columns=self.elements,
            nonzeros=self.nonzeros,
            side=self.side,
            col_first=self.row_first,
            col_rows=self.row_cols,
            row_first=self.col_first,
            row_cols=self.col_rows,
            col_work=self.row_work,
            row_work=self.col_work,
            blocks=self.blocks and self.blocks.transposed,
        )

    @property
    def stored_side(self) -> int:
        """Side of the blocks in which memory stores the nonzeros."""
        return self.blocks.side if self.blocks else self.side

    @property
    def entries(self) -> int:
        """Nonzeros, or blocks with nonzeros."""
        return len(self.col_rows)


def pattern_of(matrix: Any) -> Pattern:
    """Return the pattern of a SciPy sparse matrix; explicit zeros count as nonzeros.

    Raises
    ------
    TypeError
        If ``matrix`` is not a SciPy sparse matrix or array.
    ValueError
        If it has no row or no column.
    """
    if not sparse.issparse(matrix):
        raise TypeError(f"matrix must be a SciPy sparse matrix, not a {type(matrix).__name__}")
    if len(matrix.shape) != 2 or not min(matrix.shape):
        shape = " × ".join(map(str, matrix.shape))
        raise ValueError(f"matrix must have at least one row and one column, not {shape}")
    coordinates = matrix.tocoo()
    ones = np.ones(coordinates.nnz, np.int8)
    # Duplicates are summed; the sums, of which nothing depends, may wrap around.
    places = sparse.coo_array((ones, (coordinates.row, coordinates.col)), shape=matrix.shape)
    return _pattern(places.tocsr(), matrix.shape, 1, weighted=False)


def blocked(pattern: Pattern, side: int) -> Pattern:
    """Return the pattern of blocks in the UOP-CP-CP format of Zhang 2024 §4.4.5.

    Parameters
    ----------
    pattern : Pattern
        Single nonzeros.
    side : int
        Side of a square block, one of ``BLOCK_SIDES``.

    Raises
    ------
    ValueError
        If ``side`` is not allowed or the pattern consists of blocks.
    """
    check_int("block side", side, 1)
    if side not in BLOCK_SIDES:
        raise ValueError(
            f"block side must be one of {', '.join(map(str, BLOCK_SIDES))}, not {side}"
        )
    if pattern.side != 1:
        raise ValueError(f"pattern must be of single nonzeros, not of blocks of {pattern.side}")
    if side == 1:
        return pattern
    shape = ceil_div(pattern.elements, side), ceil_div(pattern.columns, side)
    rows = np.repeat(np.arange(pattern.elements), np.diff(pattern.row_first)) // side
    cols = pattern.row_cols // side
    ones = np.ones(len(rows), np.int64)
    blocks = sparse.coo_array((ones, (rows, cols)), shape=shape).tocsr()
    return _pattern(blocks, (pattern.elements, pattern.columns), side, weighted=True)


def stored_in_blocks(pattern: Pattern, side: int) -> Pattern:
    """Return a pattern whose nonzeros memory stores in blocks; its entries stay nonzeros.

    Raises
    ------
    ValueError
        As ``blocked``.
    """
    blocks = blocked(pattern, side)
    return pattern if side == 1 else replace(pattern, blocks=blocks)


def permuted(pattern: Pattern, order: np.ndarray) -> Pattern:
    """Return the pattern with rows and columns in another order.

    Both take the same order, because an element that a column produces is the one that the row of
    the same number consumes.

    Parameters
    ----------
    pattern : Pattern
        Single nonzeros of a square matrix.
    order : (n,) ndarray of int
        The old number of each new row.

    Raises
    ------
    ValueError
        If the matrix is not square, or the order is not a permutation.
    """
    check_square(pattern)
    if not np.array_equal(np.sort(order), np.arange(pattern.indices)):
        raise ValueError(f"order must be a permutation of the {pattern.indices} rows")
    new = np.empty(pattern.indices, np.int64)
    new[order] = np.arange(pattern.indices)
    rows = np.repeat(np.arange(pattern.indices), np.diff(pattern.row_first))
    ones = np.ones(len(rows), np.int8)
    shape = (pattern.indices, pattern.indices)
    places = sparse.coo_array((ones, (new[rows], new[pattern.row_cols])), shape=shape)
    return _pattern(places.tocsr(), shape, 1, weighted=False)


def check_square(pattern: Pattern) -> None:
    """Raise ValueError unless rows and columns can take the same order."""
    if not pattern.square:
        raise ValueError(
            f"matrix must be square for an order of its rows and columns, "
            f"not {pattern.elements} × {pattern.columns}"
        )


def _pattern(rows: Any, shape: tuple[int, int], side: int, *, weighted: bool) -> Pattern:
    """Return the pattern of a CSR array whose values are the nonzeros of the entries."""
    rows.sum_duplicates()
    cols = rows.tocsc()
    cols.sort_indices()
    none = np.zeros(1, np.int64)
    total = int(rows.data.sum()) if weighted else rows.nnz
    return Pattern(
        elements=shape[0],
        columns=shape[1],
        nonzeros=total,
        side=side,
        col_first=cols.indptr.astype(np.int64),
        col_rows=cols.indices.astype(np.int32),
        row_first=rows.indptr.astype(np.int64),
        row_cols=rows.indices.astype(np.int32),
        col_work=np.concatenate([none, np.cumsum(cols.data)]) if weighted else none,
        row_work=np.concatenate([none, np.cumsum(rows.data)]) if weighted else none,
    )
