"""Nearest neighbours of points, from the squared distances that one addnorm operation computes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2 import Op
from vitruvian.sim.simd2 import Counts, Machine
from vitruvian.sim.simd2.graph.files import read_matrix
from vitruvian.sim.simd2.graph.inputs import FORMATS, rounded
from vitruvian.sim.simd2.graph.memory import POINT_BYTES, check_memory
from vitruvian.sim.simd2.nearest import nearest


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest points of each query.

    Attributes
    ----------
    indices : (Q, count) ndarray of int
        Indices of the points, nearest first. Points at the same distance are in rising order.
    squares : (Q, count) ndarray of float32
        Squared distances of these points.
    inputs : str
        Format of the operands.
    counts : Counts
        Instructions.
    measured_cycles : int
        Clock cycles that hardware took; 0 if no hardware computed.
    """

    indices: np.ndarray
    squares: np.ndarray
    inputs: str
    counts: Counts
    measured_cycles: int


def nearest_neighbours(
    points: Any,
    count: int,
    queries: Any = None,
    *,
    inputs: str | None = None,
    machine: Machine | None = None,
) -> Neighbours:
    """Return the ``count`` nearest points of each query, computed by one addnorm operation.

    Parameters
    ----------
    points : (P, F) array or path of a Matrix Market file
        P points with F features.
    count : int
        Neighbours of each query.
    queries : (Q, F) array or path, optional
        By default every point is a query, and is not its own neighbour.
    inputs : {"fp16", "fp32"}, optional
        Format of the operands; by default FP16 if it represents all coordinates.
    machine : Machine, optional
        Machine that computes; the instructions are added to its counts. By default a new machine
        on golden.

    Raises
    ------
    ValueError
        If a coordinate is not a finite number, the queries have another number of features than the
        points, ``count`` is out of range, or the distances do not fit into memory.
    """
    x = _points(points, "points")
    q = x if queries is None else _points(queries, "queries")
    if x.shape[1] != q.shape[1]:
        raise ValueError(
            f"queries must have {x.shape[1]} features like the points, not {q.shape[1]}"
        )
    limit = len(x) - (queries is None)
    if not 1 <= count <= limit:
        raise ValueError(f"count must be from 1 to {limit}, not {count}")
    check_memory(
        len(q),
        len(x),
        pair_bytes=POINT_BYTES,
        what="points" if queries is None else "queries",
        name="rows",
    )
    if inputs is None:
        # Only coordinates that FP16 represents give exact differences in FP16.
        with np.errstate(over="ignore"):
            exact = all((values.astype(np.float16) == values).all() for values in (x, q))
        inputs = "fp16" if exact else "fp32"
    one_of("inputs", inputs, FORMATS)
    machine = machine or Machine()
    counts, cycles = machine.counts, machine.measured_cycles
    b = rounded(x, inputs, "coordinates")
    a = b if queries is None else rounded(q, inputs, "coordinates")
    squares = machine.apply(Op.ADDNORM, a, np.ascontiguousarray(b.T))
    if queries is None:
        np.fill_diagonal(squares, np.nan)  # ``nearest`` takes a NaN last
    indices = nearest(squares, count)
    return Neighbours(
        indices,
        np.take_along_axis(squares, indices, axis=1),
        inputs,
        machine.counts - counts,
        machine.measured_cycles - cycles,
    )


def _points(source: Any, what: str) -> np.ndarray:
    """Return points as a matrix of float64; ``what`` names them in messages."""
    if isinstance(source, str | Path):
        source = cast(Any, read_matrix(Path(source)))
    if hasattr(source, "toarray"):
        check_memory(*source.shape, pair_bytes=8, what=what, name="rows")
        source = source.toarray()
    array = np.asarray(source)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise ValueError(f"{what} must be a matrix of numbers, not {array.dtype} {array.shape}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite numbers, not {array[~np.isfinite(array)][0]}")
    return array
