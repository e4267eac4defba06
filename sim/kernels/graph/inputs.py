"""Graphs out of NumPy arrays, SciPy sparse matrices, NetworkX graphs and Matrix Market files."""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from golden.simd2 import Op

from .memory import PAIR_BYTES, check_memory

__all__ = ["FORMATS", "Graph", "PrecisionWarning", "as_graph", "read_matrix", "rounded"]

#: Formats of operands by name.
FORMATS = {"fp16": np.float16, "fp32": np.float32}


class PrecisionWarning(UserWarning):
    """Operands are not what was given: the format that was asked for does not have it."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Weighted edges between V vertices.

    Attributes
    ----------
    weights : (V, V) ndarray of float64
        From the row's vertex to the column's; what is not an edge has the operation's "no edge".
    edges : (V, V) ndarray of bool
    names : tuple
        Of the vertices: those of a NetworkX graph, row numbers from 1 in a Matrix Market file, and
        from 0 in an array.
    directed : bool
        Whether some edge has no equal in the other direction.
    """

    weights: np.ndarray
    edges: np.ndarray
    names: tuple[Hashable, ...]
    directed: bool

    def __len__(self) -> int:
        return len(self.names)

    @property
    def size(self) -> int:
        """Edges; of two equal ones in both directions, one."""
        count = int(np.count_nonzero(self.edges))
        loops = int(np.count_nonzero(np.diagonal(self.edges)))
        return count if self.directed else (count + loops) // 2

    def index(self, name: Hashable) -> int:
        """Row of a vertex.

        Raises
        ------
        ValueError
            If there is no such vertex.
        """
        try:
            return self.names.index(name)
        except ValueError:
            first = ", ".join(map(repr, self.names[:4])) + (" …" if len(self.names) > 4 else "")
            raise ValueError(f"vertex must be one of {first}, not {name!r}") from None

    def edge(self, i: int, j: int) -> str:
        """An edge in words."""
        return f"{self.names[i]} → {self.names[j]}"


def as_graph(
    source: Any,
    op: Op,
    *,
    weight: str | None = "weight",
    no_edge: float | None = None,
    names: Sequence[Hashable] | None = None,
) -> Graph:
    """A graph from any of the inputs.

    Parameters
    ----------
    source : array, sparse matrix, NetworkX graph, path or Graph
        In an array every entry is an edge but infinities that say "no edge", and zeros where the
        operation is maxmul or orand. In a sparse matrix or a Matrix Market file what is stored is
        an edge, a stored zero too; what is stored twice adds up, as it does in SciPy. Of a
        multigraph's parallel edges the one that ⊕ chooses counts.
    op : Op
    weight : str or None
        Attribute of a NetworkX graph's edges; where it is missing, and with None, weights are 1.
    no_edge : float, optional
        An array's entry that is no edge either, such as 0.
    names : sequence, optional
        Of the vertices.

    Raises
    ------
    ValueError
        For an adjacency matrix that is not square or empty, a weight that is NaN, complex, or
        infinite with the sign that no absent edge has; a file that cannot be read; or more vertices
        than there is memory for.
    """
    if isinstance(source, Graph):
        return _checked(source.weights, source.edges, source.names, op)
    if isinstance(source, str | Path):
        source = read_matrix(Path(source))
        names = names if names is not None else range(1, source.shape[0] + 1)
    if hasattr(source, "adjacency") and hasattr(source, "nodes"):
        names = names if names is not None else tuple(source.nodes)
        weights, edges = _networkx(source, op, weight)
    elif hasattr(source, "tocoo"):
        _square(source.shape)
        entries = source.tocoo()
        weights, edges = np.zeros(source.shape), np.zeros(source.shape, bool)
        np.add.at(weights, (entries.row, entries.col), _real(entries.data))
        edges[entries.row, entries.col] = True
    else:
        array = np.asarray(source)
        _square(array.shape)
        weights = np.array(_real(array))
        edges = np.ones(weights.shape, bool)
        if no_edge is not None:
            edges &= ~(weights == no_edge)
    names = tuple(range(len(weights)) if names is None else names)
    if len(names) != len(weights):
        raise ValueError(f"names must be {len(weights)}, not {len(names)}")
    return _checked(weights, edges, names, op)


def _checked(weights, edges, names, op):
    def named(where):
        i, j = np.argwhere(where)[0]
        return f"{weights[i, j]:g} (edge {names[i]} → {names[j]})"

    wrong = edges & np.isnan(weights)
    if wrong.any():
        raise ValueError(f"weights must be numbers, not {named(wrong)}")
    absent = op.no_edge
    if op is not Op.ORAND:
        sign = -np.inf if op.plus == "max" and op.times != "mul" else np.inf
        wrong = edges & (weights == -sign)
        if wrong.any():
            raise ValueError(f"weights must be finite, or {sign} for no edge, not {named(wrong)}")
    edges = edges & ~np.isinf(weights)
    if absent == 0:
        edges &= weights != 0
    weights = np.where(edges, weights + 0.0, 0.0 if absent is None else absent)  # −0 becomes +0
    same = np.array_equal(edges, edges.T) and np.array_equal(weights, weights.T)
    return Graph(weights, edges, names, not same)


def _square(shape):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"adjacency matrix must be square, not {'×'.join(map(str, shape))}")
    if not shape[0]:
        raise ValueError("adjacency matrix must have a row at least, not none")
    check_memory(*shape, pair_bytes=PAIR_BYTES, what="graph", name="vertices")


def _real(values):
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"weights must be real numbers, not {array.dtype.name}")
    return array.astype(np.float64)


def read_matrix(path: Path) -> Any:
    """A matrix out of a Matrix Market file: an array, or a sparse one.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    from scipy.io import mmread

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = mmread(path)
    except (OSError, ValueError, TypeError, EOFError, OverflowError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"graph must be a Matrix Market file, not {path}: {text}") from None
    return source


def _networkx(source, op, weight):
    where = {node: i for i, node in enumerate(source.nodes)}
    _square((len(where), len(where)))
    found: dict[tuple[int, int], float] = {}
    better = max if op.plus in ("max", "or") else min
    for start, end, data in source.edges(data=True):
        value = 1 if weight is None else data.get(weight, 1)
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"weights must be numbers, not {value!r} (edge {start} → {end})"
            ) from None
        i, j = where[start], where[end]
        for pair in {(i, j)} if source.is_directed() else {(i, j), (j, i)}:
            known = found.get(pair, value)
            found[pair] = value if np.isnan(value) else better(known, value)
    weights, edges = np.zeros((len(where),) * 2), np.zeros((len(where),) * 2, bool)
    if found:
        rows, columns = np.array(list(found)).T
        weights[rows, columns] = list(found.values())
        edges[rows, columns] = True
    return weights, edges


def rounded(values: np.ndarray, inputs: str, what: str = "weights") -> np.ndarray:
    """Operands of a format, nearest to the values; says by a warning if they are not the same.

    Parameters
    ----------
    values : ndarray of float64
    inputs : {"fp16", "fp32"}
        Only FP16 warns: what FP32 loses, results in FP32 lose as well.

    Raises
    ------
    ValueError
        If a value is above the largest of the format.
    """
    dtype = FORMATS[inputs]
    with np.errstate(over="ignore"):
        result = values.astype(dtype)
    wrong = np.isinf(result) & np.isfinite(values)
    if wrong.any():
        largest, first = np.finfo(dtype).max, values[wrong].flat[0]
        more = "; inputs='fp32' has more" if inputs == "fp16" else ""
        raise ValueError(f"{what} must be within ±{largest:.7g} in {inputs}, not {first:g}{more}")
    error = largest_error(values, result)
    if inputs == "fp16" and error:
        warnings.warn(
            f"{what} are rounded to FP16, with a relative error of up to {error:.2g}; "
            "inputs='fp32' avoids it",
            PrecisionWarning,
            stacklevel=2,
        )
    return result


def largest_error(values: np.ndarray, result: np.ndarray) -> float:
    """Largest relative difference of finite values; 0 where all are equal."""
    exact, found = values.astype(np.float64), result.astype(np.float64)
    differ = exact != found
    if not differ.any():
        return 0.0
    exact, found = exact[differ], found[differ]
    return float(np.max(np.abs(found - exact) / np.abs(exact)))
