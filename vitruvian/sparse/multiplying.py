"""Products of two sparse matrices over a semiring, by the names of their vertices."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.sparse import products
from vitruvian.golden.sparse.semirings import as_semiring
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.sparse.matrices import Given, given_matrix
from vitruvian.sparse.tables import write_csv, write_matrix


@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """The product of two sparse matrices.

    Attributes
    ----------
    matrix : Sparse
    vertices : tuple or None
        The vertices of the graphs in the order of the rows and columns; None for matrices.
    """

    matrix: Sparse
    vertices: tuple[Any, ...] | None = None

    def to_scipy(self) -> Any:
        """Return the matrix as a ``scipy.sparse.csr_array``."""
        import scipy.sparse

        a = self.matrix
        arrays = a.row_values.copy(), a.column_index.copy(), a.row_start.copy()
        return scipy.sparse.csr_array(arrays, shape=a.shape)

    def write(self, path: str | Path) -> None:
        """Write the stored elements, completely or not at all.

        Parameters
        ----------
        path : str or path
            A name that ends in .csv (columns row, column and value; vertices of a graph have their
            names), or in .mtx (Matrix Market, which counts from 1 and has no names).

        Raises
        ------
        UserError
            If the name has another ending, or an element is not finite (.mtx).
        OSError
            If the file cannot be written.
        """
        if Path(path).suffix.lower() not in (".csv", ".mtx"):
            raise UserError(f"path must end in .csv or .mtx, not {str(path)!r}")
        if Path(path).suffix.lower() == ".mtx":
            write_matrix(path, self.matrix)
            return
        ends = (self._named(each) for each in (self.matrix.rows, self.matrix.column_index))
        write_csv(path, ("row", "column", "value"), [*ends, self.matrix.row_values])

    def _named(self, places: np.ndarray) -> np.ndarray | Sequence[Any]:
        """Return the names of rows; rows of a matrix are their numbers."""
        names = self.vertices
        return places if names is None else [names[place] for place in places.tolist()]


def mxm(a: Any, b: Any, *, semiring: str = "mma", weight: str | None = "weight") -> MatrixProduct:
    """Return A·B, the product of two sparse matrices over a semiring (SpGEMM).

    Parameters
    ----------
    a, b : object
        Matrices as for ``as_sparse``. Two graphs or lists of edges are multiplied by the names of
        their vertices; a vertex that only one of them has is an empty row of the other.
    semiring : str
        A name in ``golden.sparse.SEMIRINGS``, such as "mma" (sums of products) or "minplus" (the
        shortest paths over two edges).
    weight : str or None
        As for ``as_sparse``.

    Returns
    -------
    MatrixProduct
        An element is stored if A and B have at least one pair of stored elements for it.

    Raises
    ------
    TypeError, ValueError
        If a matrix or the semiring is not allowed, if A does not have as many columns as B has
        rows, or if only one of both has names of vertices.

    Examples
    --------
    >>> from vitruvian import sparse
    >>> roads = [("rome", "oslo", 2.0), ("oslo", "bern", 3.0)]
    >>> two = sparse.mxm(roads, roads, semiring="minplus")
    >>> two.vertices, two.to_scipy().toarray()[0].tolist()
    (('rome', 'oslo', 'bern'), [0.0, 0.0, 5.0])
    """
    options = reading(semiring)
    left, right = (given_matrix(each, weight=weight, **options) for each in (a, b))
    return multiply(left, right, semiring)


def reading(semiring: str) -> dict[str, Any]:
    """Return the options of ``given_matrix`` for a semiring, whose ⊕ joins parallel edges.

    Raises
    ------
    ValueError
        If there is no such semiring.
    """
    plus = as_semiring(semiring).plus
    return {"parallel": plus if plus in ("min", "max") else "sum"}


def multiply(left: Given, right: Given, semiring: str) -> MatrixProduct:
    """Return the product of two matrices with their vertices; see ``mxm``."""
    if left.vertices != right.vertices:
        left, right = _united(left, right)
    return MatrixProduct(products.mxm(left.matrix, right.matrix, semiring), left.vertices)


def _united(left: Given, right: Given) -> tuple[Given, Given]:
    """Return two graphs with the vertices of both, in the order of the left one, then the rest."""
    if left.vertices is None or right.vertices is None:
        named, other = ("a", "b") if right.vertices is None else ("b", "a")
        raise UserError(
            f"a and b must both be graphs or both be matrices: {named} has names of vertices, and "
            f"{other} has none"
        )
    vertices = tuple(dict.fromkeys((*left.vertices, *right.vertices)))
    places = {vertex: place for place, vertex in enumerate(vertices)}
    united: list[Given] = []
    for given in (left, right):
        assert given.vertices is not None
        to = np.array([places[vertex] for vertex in given.vertices], np.int64)
        a, size = given.matrix, len(vertices)
        rows, columns = to[a.rows], to[a.column_index]
        matrix = Sparse.from_entries(rows, columns, a.row_values, (size, size))
        united.append(Given(matrix, vertices, given.is_directed))
    return united[0], united[1]
