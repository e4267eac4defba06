"""Closures A ⊕ A² ⊕ A³ … of a matrix, by three algorithms that consist of matrix operations."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import ceil_div, one_of, round_up
from vitruvian.golden.simd2 import Op, compress
from vitruvian.golden.simd2.op import GROUP, KEPT
from vitruvian.sim.simd2 import Machine
from vitruvian.sim.simd2.graph.inputs import FORMATS

#: Default number of vertices in a block of Floyd–Warshall.
BLOCK = 128

ALGORITHMS = ("bellman-ford", "leyzorek", "floyd-warshall")


class Operand:
    """A conversion of FP32 results to the operand format, which records the largest error.

    Attributes
    ----------
    error : float
        Largest relative error of all conversions so far; infinite if a value overflowed.
    """

    def __init__(self, inputs: str) -> None:
        self.dtype = np.dtype(FORMATS[inputs])
        self.error = 0.0

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """Return a result as an operand."""
        if self.dtype == d.dtype:
            return d
        with np.errstate(all="ignore"):
            operand = d.astype(self.dtype)
            back = operand.astype(np.float32)
            differ = back != d
            if differ.any():
                # A value that overflows gives an infinite error here, which must be kept.
                exact = d[differ].astype(np.float64)
                error = np.abs(back[differ] - exact) / np.abs(exact)
                self.error = max(self.error, float(error.max()))
        return operand


@dataclass(frozen=True)
class Closure:
    """The result of an algorithm.

    Attributes
    ----------
    values : (V, V) ndarray of float32
    iterations : int
        Number of operations on whole matrices; for Floyd–Warshall, the number of blocks.
    converged : bool
        True if the last iteration changed nothing; False if it did or if that was not checked.
    stopped : bool
        True if ``stop`` ended the algorithm.
    """

    values: np.ndarray
    iterations: int
    converged: bool
    stopped: bool


def default_algorithm(
    vertices: int, *, block: int = BLOCK, sparse: bool = False, check: bool = True
) -> str:
    """Return the algorithm that takes the fewest operations on a graph of this size.

    Blocked Floyd–Warshall visits every triple of vertices about once, Leyzorek once in every
    iteration. If the graph has only one block, Floyd–Warshall starts with Leyzorek on the whole
    matrix, so Leyzorek alone takes less. It is also chosen if ``check`` is False, because
    Floyd–Warshall has no check. See decision 0009.

    Parameters
    ----------
    block : int
        Vertices in a block of Floyd–Warshall.
    sparse : bool
        If True, the edges are in 2:4 form, which only Bellman–Ford can use.
    check : bool
        If False, the algorithm does not stop early.
    """
    if sparse:
        return "bellman-ford"
    return "floyd-warshall" if vertices > block and check else "leyzorek"


def most_iterations(algorithm: str, vertices: int, *, block: int = BLOCK) -> int:
    """Return the number of iterations that includes every path of any graph.

    The first iteration starts from paths of one edge. Bellman–Ford adds one edge to the paths in
    every iteration; Leyzorek doubles their number of edges. A path without a cycle has at most
    V − 1 edges.

    Parameters
    ----------
    algorithm : str
        A name in ``ALGORITHMS``.
    block : int
        Vertices in a block of Floyd–Warshall.

    Raises
    ------
    ValueError
        If the algorithm is unknown.
    """
    one_of("algorithm", algorithm, ALGORITHMS)
    if algorithm == "bellman-ford":
        return max(vertices - 1, 0)
    if algorithm == "leyzorek":
        return max(vertices - 1, 0).bit_length()
    return ceil_div(vertices, block)


def closure(
    machine: Machine,
    op: Op,
    start: np.ndarray,
    operand: Operand,
    *,
    algorithm: str = "leyzorek",
    check: bool = True,
    block: int = BLOCK,
    sparse: bool = False,
    stop: Callable[[np.ndarray], bool] | None = None,
) -> Closure:
    """Return the best values over all paths, given the values of single edges.

    Parameters
    ----------
    op : Op
        A semiring: ⊕ chooses between paths, ⊗ extends a path.
    start : (V, V) ndarray of float32
        The adjacency matrix. If the diagonal contains the identity of ⊗, the result includes paths
        without edges. The operand format must represent every value.
    operand : Operand
        Conversion of the results of one iteration to operands of the next.
    algorithm : str
        ``bellman-ford``: D = D ⊕ (D ⊗ A). ``leyzorek``: D = D ⊕ (D ⊗ D). ``floyd-warshall``: the
        closure of a block of vertices, then its rows, its columns, and all paths through them.
    check : bool
        If True, stop when an iteration changes nothing. Floyd–Warshall always computes all blocks.
    block : int
        Vertices in a block of Floyd–Warshall.
    sparse : bool
        If True, Bellman–Ford uses A in 2:4 form, D = D ⊕ (A ⊗ D). It takes half of the operations
        if A fits into one compressed matrix, and the same number if A needs two.
    stop : callable, optional
        Called with D before the first and after every iteration; the algorithm ends if it returns
        True.

    Raises
    ------
    ValueError
        If the algorithm is unknown, or is not Bellman–Ford while ``sparse`` is True.
    """
    if sparse and algorithm != "bellman-ford":
        raise ValueError(f"algorithm must be bellman-ford for sparse edges, not {algorithm!r}")
    limit = most_iterations(algorithm, len(start), block=block)
    if stop and stop(start):
        return Closure(start, 0, False, True)
    if algorithm == "floyd-warshall":
        return _floyd_warshall(machine, op, start, operand, block=block, check=check, stop=stop)
    d, edges = start, operand(start)
    parts = _two_of_four(op, edges) if sparse else []
    for count in range(1, limit + 1):
        x = operand(d)
        if sparse:
            new = _apply_parts(machine, op, parts, x, d)
        else:
            new = machine.apply(op, x, edges if algorithm == "bellman-ford" else x, d)
        # A closure that one iteration leaves unchanged is a fixed point of all further iterations.
        same = check and np.array_equal(new, d)
        d = new
        if stop and stop(d):
            return Closure(d, count, False, True)
        if same:
            return Closure(d, count, True, False)
    return Closure(d, limit, False, False)


def _two_of_four(op, edges):
    """Return at most two compressed matrices that together contain all edges but loops."""
    size = len(edges)
    remaining = np.full((size, round_up(size, GROUP)), op.no_edge, edges.dtype)
    remaining[:, :size] = edges
    np.fill_diagonal(remaining, op.no_edge)
    parts = []
    # Every pass removes two of the four elements of each group, so there are at most two passes.
    while (remaining != op.no_edge).any():
        values, indices = compress(op, remaining)
        parts.append((values, indices))
        pairs = indices.reshape(size, -1, KEPT).astype(np.int64)
        np.put_along_axis(remaining.reshape(size, -1, GROUP), pairs, op.no_edge, axis=-1)
    return parts


def _apply_parts(machine, op, parts, x, d):
    """Return D ⊕ (A ⊗ X) for a compressed A in parts.

    A is padded to whole groups of columns, so X is padded to the same number of rows.
    """
    if parts and len(x) % GROUP:
        more = GROUP - len(x) % GROUP
        x = np.pad(x, ((0, more), (0, 0)), constant_values=op.no_edge)
    for values, indices in parts:
        d = machine.apply_sparse(op, values, indices, x, d)
    return d


def _floyd_warshall(machine, op, start, operand, *, block, check, stop):
    """Return the closure by blocked Floyd–Warshall; see ``closure`` for the parameters."""
    d = start.copy()
    count = 0
    for begin in range(0, len(d), block):
        # First all paths inside the block, then those from and to it, then those through it.
        part = slice(begin, begin + block)
        inner = closure(
            machine, op, np.ascontiguousarray(d[part, part]), operand, check=check
        ).values
        d[part, part] = inner
        inner = operand(inner)
        d[part] = machine.apply(op, inner, operand(d[part]), d[part])
        columns = np.ascontiguousarray(d[:, part])
        d[:, part] = machine.apply(op, operand(columns), inner, columns)
        count += 1
        # With a single block, the closure of that block is already the whole result.
        if len(d) > block:
            columns = np.ascontiguousarray(d[:, part])
            d = machine.apply(op, operand(columns), operand(d[part]), d)
        if stop and stop(d):
            return Closure(d, count, False, True)
    return Closure(d, count, False, False)
