"""PageRank, label propagation and graph convolution as graphs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.applications.problem import (
    Problem,
    check_finite,
    check_number,
    check_square,
    ewise,
    reduce,
)
from vitruvian.golden.sparse.graph import Graph, Node, Swap, Vxm
from vitruvian.golden.sparse.storage import Sparse

PAGERANK = Graph(
    name="pagerank",
    given=("rank", "ones", "damping", "count", "tolerance"),
    setup=(
        Vxm("row_sum", "ones", transposed=True),
        # A vertex without outgoing weight is dangling: it has no edges to share its rank among.
        ewise("dangling", "equal", "row_sum", 0.0),
        ewise("inverse", "div", 1.0, "row_sum"),
        ewise("share", "select", "dangling", 0.0, "inverse"),
        ewise("restart", "sub", 1.0, "damping"),
    ),
    body=(
        # The rank of dangling vertices goes to all vertices, as do the jumps of the surfer.
        ewise("lost", "mul", "rank", "dangling"),
        reduce("lost_sum", "add", "lost"),
        ewise("damped", "mul", "damping", "lost_sum"),
        ewise("jumps", "add", "damped", "restart"),
        ewise("jump", "div", "jumps", "count"),
        # Divided by the row's sum here, so that the matrix itself stays as it was given.
        ewise("scaled", "mul", "rank", "share"),
        Vxm("spread", "scaled"),
        ewise("followed", "mul", "spread", "damping"),
        ewise("next", "add", "followed", "jump"),
        ewise("change", "sub", "next", "rank"),
        ewise("size", "abs", "change"),
        reduce("residual", "add", "size"),
        ewise("done", "less", "residual", "tolerance"),
        Swap("rank", "next"),
    ),
    results=("rank", "residual"),
    stop="done",
)

LABELPROP = Graph(
    name="labelprop",
    given=("belief", "labelled", "known", "ones", "tolerance"),
    setup=(
        Vxm("weight", "ones"),
        ewise("alone", "equal", "weight", 0.0),
        ewise("inverse", "div", 1.0, "weight"),
        ewise("share", "select", "alone", 0.0, "inverse"),
    ),
    body=(
        Vxm("gathered", "belief"),
        ewise("mean", "mul", "gathered", "share"),
        # Known labels stay (a boundary condition), all others become the mean.
        ewise("next", "select", "labelled", "known", "mean"),
        ewise("change", "sub", "next", "belief"),
        ewise("size", "abs", "change"),
        reduce("residual", "max", "size"),
        ewise("done", "less", "residual", "tolerance"),
        Swap("belief", "next"),
    ),
    results=("belief", "residual"),
    stop="done",
)


def pagerank(
    a: Sparse, *, damping: float = 0.85, tolerance: float = 1e-6, iterations: int = 100
) -> Problem:
    """Rank vertices by the share of time that a random surfer spends on them.

    Parameters
    ----------
    a : (N, N) Sparse
        Weights of the edges, at least 0. A vertex without outgoing weight leads to all vertices.
    damping : float
        Probability of following an edge, 0 to 1.
    tolerance : float
        The run stops if the sum of the changes is less than N·tolerance, as in NetworkX.

    Returns
    -------
    Problem
        The result ``rank`` has the sum 1.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or the damping is outside of 0 to 1.
    """
    count = check_square(a)
    check_number("damping", damping, 0, 1)
    check_number("tolerance", tolerance, 0)
    check_finite(a, negative=False)
    given = {
        "rank": np.full(count, 1 / count),
        "ones": np.ones(count),
        "damping": np.float64(damping),
        "count": np.float64(count),
        "tolerance": np.float64(count * tolerance),
    }
    return Problem(PAGERANK, {"A": a}, given, check_int("iterations", iterations, 1))


def labelprop(
    a: Sparse, labels: Sequence[int], *, tolerance: float = 1e-9, iterations: int = 1000
) -> Problem:
    """Spread the labels of some vertices to the others (harmonic functions).

    The belief of a vertex without label becomes the weighted mean of the beliefs of the vertices
    with an edge to it.

    Parameters
    ----------
    a : (N, N) Sparse
        Weights of the edges, at least 0.
    labels : (N,) sequence of int
        Class of each vertex, counted from 0; −1 if it is unknown.
    tolerance : float
        The run stops if no belief changes by as much.

    Returns
    -------
    Problem
        The result ``belief`` is an (N, classes) array.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, there is no label, or the number of labels differs
        from that of the vertices.
    """
    count = check_square(a)
    check_finite(a, negative=False)
    check_number("tolerance", tolerance, 0)
    classes = np.asarray(labels)
    if classes.shape != (count,):
        raise UserError(f"labels must have {count} elements, not the shape {classes.shape}")
    if classes.dtype.kind not in "iu":
        raise UserError(f"labels must be whole numbers, not {classes.dtype}")
    if not count or classes.max() < 0 or classes.min() < -1 or classes.max() >= count:
        raise UserError(
            "labels must be -1 or a class, counted from 0, with at least one class and at most as "
            "many as vertices"
        )
    every = np.arange(int(classes.max()) + 1)
    known: np.ndarray = np.equal(classes[:, None], every).astype(np.float64)
    given = {
        "belief": known,
        "labelled": (classes >= 0).astype(np.float64),
        "known": known,
        "ones": np.ones(count),
        "tolerance": np.float64(tolerance),
    }
    return Problem(LABELPROP, {"A": a}, given, check_int("iterations", iterations, 1))


def _real_array(name: str, array: ArrayLike) -> np.ndarray:
    """Return an array of finite real numbers as float64."""
    given = np.asarray(array)
    if given.dtype.kind not in "biuf":
        raise UserError(f"{name} must be real numbers, not {given.dtype}")
    if not np.isfinite(given).all():
        raise UserError(f"{name} must be finite, not {given[~np.isfinite(given)][0]}")
    return given.astype(np.float64)


def gcn_graph(layers: int) -> Graph:
    """Return the graph of a graph convolutional network, whose layers form one iteration.

    References
    ----------
    Zhang 2024, Fig. 4.7: SpMM, product with a dense matrix, ReLU.
    """
    body: list[Node] = []
    for layer in range(layers):
        body += [Vxm("sum", "features"), ewise("features", "rows_by", "sum", f"weights_{layer}")]
        if layer < layers - 1:
            body.append(ewise("features", "max", "features", 0.0))
    weights = tuple(f"weights_{layer}" for layer in range(layers))
    return Graph(name="gcn", given=("features", *weights), body=tuple(body), results=("features",))


def gcn(a: Sparse, features: np.ndarray, weights: Sequence[np.ndarray]) -> Problem:
    """Infer with a graph convolutional network; the last layer has no ReLU.

    Parameters
    ----------
    a : (N, N) Sparse
        Weights of the edges, at least 0. The network uses D^(−1/2)·(A + I)·D^(−1/2), where D holds
        the sums of the columns of A + I, and aggregates over incoming edges.
    features : (N, F) ndarray
    weights : sequence of ndarray
        Dense matrices, whose shapes follow one another: (F, G), (G, H), ….

    Returns
    -------
    Problem
        The result ``features`` is an (N, H) array.

    Raises
    ------
    ValueError
        If shapes do not fit, or a number is not finite.
    """
    count = check_square(a)
    check_finite(a, negative=False)
    values = _real_array("features", features)
    if values.ndim != 2 or len(values) != count:
        raise UserError(f"features must have the shape ({count}, F), not {values.shape}")
    given = {"features": values}
    width = values.shape[1]
    for layer, each in enumerate(weights):
        matrix = _real_array(f"weights of layer {layer}", each)
        if matrix.ndim != 2 or matrix.shape[0] != width:
            raise UserError(
                f"weights of layer {layer} must have {width} rows, not the shape {matrix.shape}"
            )
        given[f"weights_{layer}"] = matrix
        width = matrix.shape[1]
    if len(given) == 1:
        raise UserError("weights must have at least one matrix, not none")
    own = np.arange(count)
    whole = Sparse.from_entries(
        np.concatenate([a.rows, own]),
        np.concatenate([a.column_index, own]),
        np.concatenate([a.row_values, np.ones(count)]),
        a.shape,
    )
    # Every vertex has an edge to itself, so that no sum is 0.
    root = 1 / np.sqrt(np.bincount(whole.column_index, whole.row_values, minlength=count))
    scaled = root[whole.rows] * whole.row_values * root[whole.column_index]
    return Problem(gcn_graph(len(weights)), {"A": whole.with_values(scaled)}, given, 1)
