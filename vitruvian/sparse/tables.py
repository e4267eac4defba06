"""Results as text: tables of comma-separated values, and matrices in Matrix Market form."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import open_whole
from vitruvian.golden.sparse.storage import Sparse

#: Rows that become text at once, so that a large table does not stand in memory twice
_ROWS = 1 << 16


def write_csv(
    path: str | Path, header: Sequence[str], columns: Sequence[np.ndarray | Sequence[Any]]
) -> None:
    """Write columns of one length as comma-separated values, completely or not at all.

    A float is the shortest text with its value, such as 0.1 or inf; a truth value is 1 or 0. A name
    that contains a comma, a quotation mark or a line break is quoted.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    columns : sequence of (N,) ndarray or sequence

    Raises
    ------
    UserError
        If ``path`` does not end in .csv.
    OSError
        If the file cannot be written.
    """
    _check_suffix(path, ".csv")
    with open_whole(path) as file:
        for rows in ([header], *_parts(columns)):
            text = StringIO()
            csv.writer(text, lineterminator="\n").writerows(rows)
            file.write(text.getvalue().encode())


def _parts(columns: Sequence[np.ndarray | Sequence[Any]]) -> Iterator[Iterable[Sequence[Any]]]:
    """Yield some rows of the columns at a time."""
    for begin in range(0, len(columns[0]), _ROWS):
        parts = (column[begin : begin + _ROWS] for column in columns)
        yield zip(*map(_plain, parts), strict=True)


def _plain(column: np.ndarray | Sequence[Any]) -> Sequence[Any]:
    """Return Python's numbers for an array, whose text is the shortest one with their value."""
    if not isinstance(column, np.ndarray):
        return column
    return (column.astype(np.int64) if column.dtype == bool else column).tolist()


def write_matrix(path: str | Path, matrix: Sparse) -> None:
    """Write a matrix in Matrix Market form, completely or not at all.

    Raises
    ------
    UserError
        If ``path`` does not end in .mtx, or if an element is not finite: the form has no infinity.
    OSError
        If the file cannot be written.
    """
    _check_suffix(path, ".mtx")
    if not np.isfinite(matrix.row_values).all():
        bad = matrix.row_values[~np.isfinite(matrix.row_values)][0]
        raise UserError(f"elements of a Matrix Market file must be finite, not {bad}; .csv has all")
    sizes = " ".join(map(str, (*matrix.shape, matrix.nonzeros)))
    with open_whole(path) as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{sizes}\n".encode())
        for rows in _parts((matrix.rows + 1, matrix.column_index + 1, matrix.row_values)):
            file.write("".join(f"{i} {j} {x!r}\n" for i, j, x in rows).encode())


def _check_suffix(path: str | Path, suffix: str) -> None:
    if Path(path).suffix.lower() != suffix:
        raise UserError(f"path must end in {suffix}, not {str(path)!r}")
