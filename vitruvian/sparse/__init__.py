"""Sparse applications: graph analytics and linear solvers on SIDA's dataflow.

``solve`` runs one of thirteen applications on a sparse matrix, on the golden models and, on demand,
on the simulated machine; ``mxm`` multiplies two matrices. Each name is imported at its first use,
so that the import of this module is quick.

>>> import numpy as np
>>> from vitruvian import sparse
>>> ring = np.roll(np.eye(4), 1, axis=1)
>>> sparse.solve("bfs", ring, source=1).values
array([3., 0., 1., 2.])
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.golden.sparse.applications.problem import Problem
    from vitruvian.golden.sparse.storage import Sparse
    from vitruvian.sim.sparse.matrix_market import read_matrix
    from vitruvian.sparse.matrices import as_sparse
    from vitruvian.sparse.multiplying import MatrixProduct, mxm
    from vitruvian.sparse.result import Result
    from vitruvian.sparse.solving import problem, solve

__all__ = [
    "MatrixProduct",
    "Problem",
    "Result",
    "Sparse",
    "as_sparse",
    "mxm",
    "problem",
    "read_matrix",
    "solve",
]

#: Module of each name, below ``vitruvian``.
_HOMES = {
    "MatrixProduct": "sparse.multiplying",
    "Problem": "golden.sparse.applications.problem",
    "Result": "sparse.result",
    "Sparse": "golden.sparse.storage",
    "as_sparse": "sparse.matrices",
    "mxm": "sparse.multiplying",
    "problem": "sparse.solving",
    "read_matrix": "sim.sparse.matrix_market",
    "solve": "sparse.solving",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"vitruvian.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'vitruvian.sparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
