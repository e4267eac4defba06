"""The outcome of a sparse application."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a sparse application.

    Attributes
    ----------
    application : str
    dataflow : {"oei", "plain"}
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

    def __repr__(self) -> str:
        outcome = self.failure or ("converged" if self.converged else "not converged")
        plural = "" if self.iterations == 1 else "s"
        shape = " × ".join(map(str, self.values.shape))
        residual = "" if self.residual is None else f"residual {self.residual:.2g}, "
        return (
            f"<Result of {self.application}: {outcome} after {self.iterations} iteration{plural}, "
            f"{residual}{shape} values of {self.values.dtype}>"
        )
