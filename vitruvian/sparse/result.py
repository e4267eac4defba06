"""The outcome of a sparse application."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.sparse.tables import write_csv

#: The name of an application's values in a table
_COLUMNS = {
    "pagerank": "rank",
    "kcore": "core",
    "bfs": "level",
    "sssp": "distance",
    "components": "component",
    "kmeans": "center",
    "knn": "near",
    "labelprop": "class",
    "gcn": "feature",
    "gmres": "x",
    "cg": "x",
    "bicgstab": "x",
    "triangles": "triangles",
}

#: Applications whose values are rows of the matrix, which a table names
_ROWS = ("components", "kmeans")


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a sparse application.

    Attributes
    ----------
    application : str
    dataflow : {"plain", "oei"}
    values : ndarray
        The answer, one row per vertex, point or unknown. ``chosen`` of kmeans is one per cluster.
    iterations : int
        Iterations of the dataflow graph; GMRES counts its restarts.
    converged : bool
        True if the run ended by its stop condition, and not by the limit of iterations or a
        failure. Applications without a stop condition converge.
    failure : str or None
        Why the run broke down, for example because CG's matrix is not positive definite.
    tensors : dict of str to ndarray
        All results of the dataflow graph by name, ``values`` before its conversion among them.
    reads : int
        Passes over the matrix in the iterations and in the confirmations of a residual. The OEI
        dataflow needs up to half as many.
    vertices : tuple or None
        The vertices of a NetworkX graph in the order of ``values``.
    report : Report or None
        The report of the simulated machine; see ``vitruvian.sim.sparse.report``.
    residual : float or None
        ‖b − A·x‖/‖b‖ of a solver, computed from ``values`` after the run whatever its outcome; for
        b = 0, the norm of A·x. None for other applications.
    """

    application: str
    dataflow: str
    values: np.ndarray
    iterations: int
    converged: bool
    failure: str | None
    tensors: dict[str, np.ndarray]
    reads: int
    vertices: tuple[Any, ...] | None
    report: Any
    residual: float | None = None

    def by_vertex(self) -> dict[Any, Any]:
        """Return the values by the vertices of a NetworkX graph, or by their numbers.

        Raises
        ------
        ValueError
            If ``values`` does not have one row per vertex, as the clusters of kmeans.
        """
        if self.application == "kmeans":
            raise UserError("kmeans has one value per cluster, not one per vertex")
        names = range(len(self.values)) if self.vertices is None else self.vertices
        rows = self.values.tolist() if self.values.ndim == 1 else list(self.values)
        return dict(zip(names, rows, strict=True))

    def table(self) -> tuple[list[str], list[Sequence[Any]]]:
        """Return the names and the columns of a table of the values.

        Returns
        -------
        header : list of str
            The row's name (``vertex``, ``cluster`` of kmeans, or ``row`` of a system), and the
            values' (such as ``rank``, ``distance`` or ``x``; ``feature_0``, … of gcn).
        columns : list of sequence
            Vertices of a graph have their names, and all others their numbers.
        """
        system, clusters = self.residual is not None, self.application == "kmeans"
        row = "row" if system else "cluster" if clusters else "vertex"
        names = None if clusters else self.vertices
        first = range(len(self.values)) if names is None else names
        column = _COLUMNS[self.application]
        if self.values.ndim == 2:
            columns: list[Sequence[Any]] = [*self.values.T]  # pyright: ignore[reportAssignmentType]
            return [row, *(f"{column}_{i}" for i in range(len(columns)))], [first, *columns]
        values: Any = self.values
        if self.application in _ROWS and self.vertices is not None:
            values = [self.vertices[place] for place in self.values.tolist()]
        return [row, column], [first, values]

    def write_csv(self, path: str | Path) -> None:
        """Write ``table`` as comma-separated values, completely or not at all.

        Raises
        ------
        UserError
            If ``path`` does not end in .csv.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from vitruvian import sparse
        >>> paths = sparse.solve("sssp", [("rome", "oslo", 2.5)], source="rome")
        >>> with TemporaryDirectory() as folder:
        ...     paths.write_csv(f"{folder}/paths.csv")
        ...     Path(f"{folder}/paths.csv").read_text().split()
        ['vertex,distance', 'rome,0.0', 'oslo,2.5']
        """
        write_csv(path, *self.table())

    def __repr__(self) -> str:
        outcome = self.failure or ("converged" if self.converged else "not converged")
        plural = "" if self.iterations == 1 else "s"
        shape = " × ".join(map(str, self.values.shape))
        residual = "" if self.residual is None else f"residual {self.residual:.2g}, "
        return (
            f"<Result of {self.application}: {outcome} after {self.iterations} iteration{plural}, "
            f"{residual}{shape} values of {self.values.dtype}>"
        )
