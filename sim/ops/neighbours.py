"""The k nearest neighbours of points, on a simulated DaVinci chip."""

from typing import Any, Literal, overload

import numpy as np

from vitruvian.common.collector import paused_collector
from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int, one_of
from vitruvian.sim.davinci import Chip, Report
from vitruvian.sim.kernels.kernel import LIMITS
from vitruvian.sim.kernels.kselection.shape import METRICS, KnnShape
from vitruvian.sim.kernels.selbknn import fast_golden
from vitruvian.sim.kernels.selbknn.build import METHODS, build, largest_tile, result
from vitruvian.sim.kernels.selbknn.catalogue import needs
from vitruvian.sim.kernels.selbknn.golden import in_order
from vitruvian.sim.kernels.selbknn.operands import as_distances, prepared
from vitruvian.sim.kernels.selbknn.refine import refined
from vitruvian.sim.ops.run import chip_of, execute, half_array, returned


@overload
def knn(
    train: np.ndarray,
    query: np.ndarray,
    k: int,
    *,
    metric: str = ...,
    method: str = ...,
    refine: int | None = ...,
    chip: Chip | str = ...,
    report: Literal[False] = ...,
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def knn(
    train: np.ndarray,
    query: np.ndarray,
    k: int,
    *,
    metric: str = ...,
    method: str = ...,
    refine: int | None = ...,
    chip: Chip | str = ...,
    report: Literal[True],
) -> tuple[np.ndarray, np.ndarray, Report]: ...
@overload
def knn(
    train: np.ndarray,
    query: np.ndarray,
    k: int,
    *,
    metric: str = ...,
    method: str = ...,
    refine: int | None = ...,
    chip: Chip | str = ...,
    report: bool,
) -> Any: ...
def knn(
    train: np.ndarray,
    query: np.ndarray,
    k: int,
    *,
    metric: str = "l2",
    method: str = "selb",
    refine: int | None = None,
    chip: Chip | str = "ascend310",
    report: bool = False,
) -> Any:
    """Return the k nearest training points of each query by exhaustive search.

    The Cube computes the distances, which are rounded to FP16; the vector unit selects. The
    distances are exactly the k smallest of these. Among training points whose FP16 distance to a
    query is that of its k-th neighbour, it depends on the method which ones are returned. The
    neighbours of a query are in ascending order of the distance, and of the number if two are
    equal.

    Where the FP16 distances are too coarse, ``refine`` finds the nearest of more candidates by
    distances in FP32: ``docs/units/selbknn.md`` has the shares of the true neighbours.

    Parameters
    ----------
    train : (n, d) ndarray of float16
        Finite numbers.
    query : (m, d) ndarray of float16
    k : int
        1 … n.
    metric : {"l2", "cosine", "cosine-product"}
        The square of the Euclidean distance; 1 − x·y of the points divided by their lengths, from
        the square of their Euclidean distance; or 1 − x·y with the product rounded to FP16, as in
        the thesis, which is too coarse for points of similar directions.
    method : str
        "selb", "bitonic", "heap", or a variant of "selb" (``kernels.selbknn.build.METHODS``).
    refine : int, optional
        If given, the chip selects k + ``refine`` candidates of each query (at most n), and the host
        returns the k nearest of these by distances that it computes in FP32, with sums in the order
        of the features. The limits of k hold for the number of candidates.
    report : bool
        If True, check the program, and also return the report of the run.

    Returns
    -------
    indices : (m, k) ndarray of int64
    distances : (m, k) ndarray of float32
        FP16 numbers without ``refine``: for "cosine" half of one, for "cosine-product" 1 plus one.
    report : Report
        Only with ``report``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed; the message is one line. A search whose simulation would take
        more than some minutes (``kernels.LIMITS``) has no report. Without a report, the method
        "selb" then computes the same results on whole arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import ops
    >>> points = np.eye(16, dtype=np.float16)
    >>> indices, distances = ops.knn(points, points[:2], 1)
    >>> indices.tolist()
    [[0], [1]]
    """
    chip = chip_of(chip)
    one_of("method", method, METHODS)
    shape, operands = search(train, query, k, metric, refine)
    tile = largest_tile(shape, chip, method)
    # A large search is not simulated instruction by instruction; the fast model has the same
    # results.
    if not report and method == "selb" and _is_large(shape, chip):
        best, run = fast_golden.knn(*operands, shape.k, tile=tile), None
    else:
        needs(shape, chip, method).check(f"{method} of {shape.queries}×{shape.train}", LIMITS)
        with paused_collector():
            program = build(shape, chip, operands, method=method)
        run = execute(program, checks=report)
        best = result(run.outputs, shape)
    indices, products = in_order(best)
    results = (indices, as_distances(products, metric))
    if refine is not None:
        results = refined(query, train, indices, k, metric)
    return returned(results, run if report else None)


def _is_large(shape: KnnShape, chip: Chip) -> bool:
    try:
        needs(shape, chip).check("selb", LIMITS)
    except ValueError:
        return True
    return False


def search(
    train: np.ndarray, query: np.ndarray, k: int, metric: str, refine: int | None = None
) -> tuple[KnnShape, tuple[np.ndarray, np.ndarray]]:
    """Return the sizes and the operands of a search after checking its arguments.

    Parameters
    ----------
    train, query, k, metric, refine
        As ``knn`` takes them.

    Returns
    -------
    shape : KnnShape
        Its k is the number of candidates.
    operands : (m, e) and (n, e) ndarray of float16
        Those of ``operands.prepared``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.
    """
    one_of("metric", metric, METRICS)
    for name, points in (("train", train), ("query", query)):
        half_array(name, points)
        if points.ndim != 2 or 0 in points.shape:
            raise UserError(
                f"{name} must be (points, features), each 1 or more, not {points.shape}"
            )
        if not np.isfinite(points).all():
            at = int(np.argmin(np.isfinite(points).all(axis=1)))
            raise UserError(f"{name} must have finite elements, not those of point {at}")
    if train.shape[1] != query.shape[1]:
        raise UserError(
            f"query must have the {train.shape[1]} features of train, not {query.shape[1]}"
        )
    check_int("k", k, 1)
    if k > len(train):
        raise UserError(f"k must be at most the {len(train)} training points, not {k}")
    if refine is not None:
        # The chip selects more candidates than the user wants; the host has the last word.
        k = min(k + check_int("refine", refine, 0), len(train))
    shape = KnnShape(len(query), len(train), train.shape[1], int(k), metric)
    return shape, prepared(query, train, metric)
