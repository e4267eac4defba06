"""Sparse matrices from Matrix Market files."""

import os

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import reason_of
from vitruvian.common.matrix_market import read_entries
from vitruvian.golden.sparse.storage import Sparse


def read_matrix(path: str | os.PathLike[str], *, duplicates: str = "sum") -> Sparse:
    """Read a Matrix Market file, which may be packed by gzip or bzip2.

    Both triangles of symmetric and skew-symmetric matrices are returned. Elements of a pattern are
    1. A dense matrix (``array``) is returned without its zeros; elsewhere zeros are stored.

    Parameters
    ----------
    duplicates : {"sum", "min", "max", "first"}
        Value of an element that several lines name.

    Raises
    ------
    ValueError
        If the file cannot be read, is a device, unpacks to more than 256 MiB, has more than a third
        of the free memory, or is not a Matrix Market file of a real matrix of finite numbers. The
        message names the line. Complex and Hermitian matrices are refused.

    References
    ----------
    Boisvert et al. 1996.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from vitruvian import sparse
    >>> with NamedTemporaryFile("w", suffix=".mtx") as file:
    ...     print("%%MatrixMarket matrix coordinate real general", file=file)
    ...     print("2 2 1", "1 2 0.5", sep=chr(10), file=file, flush=True)
    ...     matrix = sparse.read_matrix(file.name)
    >>> matrix.shape
    (2, 2)
    """
    try:
        found = read_entries(path)
    except (ValueError, OSError) as error:
        raise UserError(f"{os.fspath(path)}: {reason_of(error)}") from None
    rows, columns, values = found.rows, found.columns, found.values
    if found.is_dense:
        stored = np.flatnonzero(values)
        rows, columns, values = rows[stored], columns[stored], values[stored]
    return Sparse.from_entries(rows, columns, values, found.shape, duplicates=duplicates)
