"""Nearest neighbours of points, by the squared distances of one addnorm operation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op
from vitruvian.sim.simd2 import Counts, Machine
from vitruvian.sim.simd2.graph.files import read_matrix
from vitruvian.sim.simd2.graph.inputs import FORMATS, rounded
from vitruvian.sim.simd2.graph.memory import POINT_BYTES, check_memory
from vitruvian.sim.studies.neighbours import nearest
from vitruvian.validate import one_of

__all__ = ["Neighbours", "nearest_neighbours"]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest points of each query.

    Attributes
    ----------
    indices : (Q, count) ndarray of int
        Nearest first; of points at the same distance the first.
    squares : (Q, count) ndarray of float32
        Their squared distances.
    inputs : str
    counts : Counts
    clocks : int
    """

    indices: np.ndarray
    squares: np.ndarray
    inputs: str
    counts: Counts
    clocks: int


def nearest_neighbours(
    points: Any,
    count: int,
    queries: Any = None,
    *,
    inputs: str | None = None,
    machine: Machine | None = None,
) -> Neighbours:
    """The ``count`` nearest points of each query, by one addnorm operation.

    Parameters
    ----------
    points : (P, F) array or path of a Matrix Market file
    queries : (Q, F) array, optional
        By default the points themselves, each without itself.
    inputs : {"fp16", "fp32"}, optional
        By default FP16 if it has all coordinates.

    Raises
    ------
    ValueError
        For coordinates that are no finite numbers, features that do not agree, a count that is not
        there.
    """
    given = _points(points, "points")
    asked = given if queries is None else _points(queries, "queries")
    if given.shape[1] != asked.shape[1]:
        raise ValueError(
            f"queries must have {given.shape[1]} features as the points, not {asked.shape[1]}"
        )
    most = len(given) - (queries is None)
    if not 1 <= count <= most:
        raise ValueError(f"count must be from 1 to {most}, not {count}")
    check_memory(
        len(asked),
        len(given),
        pair_bytes=POINT_BYTES,
        what="points" if queries is None else "queries",
        name="rows",
    )
    if inputs is None:
        with np.errstate(over="ignore"):
            small = all((x.astype(np.float16) == x).all() for x in (given, asked))
        inputs = "fp16" if small else "fp32"
    one_of("inputs", inputs, FORMATS)
    machine = machine or Machine()
    counts, clocks = machine.counts, machine.clocks
    machine.counts, machine.clocks = Counts(), 0
    try:
        y = rounded(given, inputs, "coordinates")
        x = y if queries is None else rounded(asked, inputs, "coordinates")
        squares = machine.apply(Op.ADDNORM, x, np.ascontiguousarray(y.T))
        own, taken = machine.counts, machine.clocks
    finally:
        machine.counts, machine.clocks = counts + machine.counts, clocks + machine.clocks
    if queries is None:
        np.fill_diagonal(squares, np.nan)  # comes last
    indices = nearest(squares, count)
    return Neighbours(indices, np.take_along_axis(squares, indices, axis=1), inputs, own, taken)


def _points(source, what):
    if isinstance(source, str | Path):
        source = read_matrix(Path(source))
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
