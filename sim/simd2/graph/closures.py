"""Closures A ⊕ A² ⊕ A³ … of a matrix by three algorithms, each a list of matrix operations."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vitruvian.golden.simd2 import Op, compress
from vitruvian.golden.simd2.op import GROUP, KEPT
from vitruvian.sim.simd2 import Machine
from vitruvian.sim.simd2.graph.inputs import FORMATS
from vitruvian.validate import one_of

__all__ = [
    "ALGORITHMS",
    "BLOCK",
    "Closure",
    "Operand",
    "closure",
    "default_algorithm",
    "most_iterations",
]

#: Rows that blocked Floyd–Warshall works on at a time.
BLOCK = 128

ALGORITHMS = ("bellman-ford", "leyzorek", "floyd-warshall")


class Operand:
    """FP32 results on their way back to a unit as operands of a format.

    Attributes
    ----------
    error : float
        Largest relative error of what was fed back; infinite if something overflowed.
    """

    def __init__(self, inputs: str) -> None:
        self.dtype = np.dtype(FORMATS[inputs])
        self.error = 0.0

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """The operand of a result."""
        if self.dtype == d.dtype:
            return d
        with np.errstate(all="ignore"):
            given = d.astype(self.dtype)
            back = given.astype(np.float32)
            differ = back != d
            if differ.any():
                exact = d[differ].astype(np.float64)
                error = np.abs(back[differ] - exact) / np.abs(exact)
                self.error = max(self.error, float(error.max()))
        return given


@dataclass(frozen=True)
class Closure:
    """What an algorithm found.

    Attributes
    ----------
    values : (V, V) ndarray of float32
    iterations : int
        Matrix operations on whole matrices; of Floyd–Warshall, blocks of rows.
    converged : bool
        Whether the last iteration changed nothing. Without the check it is not known, and False.
    stopped : bool
        Whether ``stop`` ended it.
    """

    values: np.ndarray
    iterations: int
    converged: bool
    stopped: bool


def default_algorithm(
    vertices: int, *, block: int = BLOCK, sparse: bool = False, check: bool = True
) -> str:
    """Return the algorithm that takes the fewest operations on a graph of so many vertices.

    Blocked Floyd–Warshall goes through every triple of vertices about once, Leyzorek once an
    iteration. Up to one block, Floyd–Warshall begins with Leyzorek on the whole matrix, so that
    alone is less; it is taken without the check, too, which Floyd–Warshall does not have. See
    decision 0009.
    """
    if sparse:
        return "bellman-ford"
    return "floyd-warshall" if vertices > block and check else "leyzorek"


def most_iterations(algorithm: str, vertices: int, *, block: int = BLOCK) -> int:
    """Iterations after which every path is in, whatever the graph.

    Beginning with single edges, Bellman–Ford adds an edge to the paths each time, and Leyzorek
    doubles them; a cycle through all vertices has as many edges as vertices.

    Raises
    ------
    ValueError
        For an unknown algorithm.
    """
    one_of("algorithm", algorithm, ALGORITHMS)
    if algorithm == "bellman-ford":
        return max(vertices - 1, 0)
    if algorithm == "leyzorek":
        return max(vertices - 1, 0).bit_length()
    return -(-vertices // block)


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
    """Best over all paths, from the best over single edges.

    Parameters
    ----------
    start : (V, V) ndarray of float32
        The adjacency matrix; with the ⊗ identity on its diagonal, paths without edges count too.
        Every value is one of the operands' format.
    algorithm : str
        ``bellman-ford``: D = D ⊕ (D ⊗ A). ``leyzorek``: D = D ⊕ (D ⊗ D). ``floyd-warshall``:
        the closure of a block of vertices, then its rows, its columns and everything through them.
    check : bool
        End when an iteration changes nothing; Floyd–Warshall always takes all blocks.
    sparse : bool
        Bellman–Ford with A in 2:4 form, D = D ⊕ (A ⊗ D): half of the operations where A is that,
        and as many where it takes two such matrices.
    stop : callable, optional
        Looks at D before all and after each iteration, and ends everything by True.

    Raises
    ------
    ValueError
        For ``sparse`` with another algorithm, or an unknown one.
    """
    if sparse and algorithm != "bellman-ford":
        raise ValueError(f"algorithm must be bellman-ford for sparse edges, not {algorithm!r}")
    most = most_iterations(algorithm, len(start), block=block)
    if stop and stop(start):
        return Closure(start, 0, False, True)
    if algorithm == "floyd-warshall":
        return _floyd_warshall(machine, op, start, operand, block=block, check=check, stop=stop)
    d, edges = start, operand(start)
    parts = _two_of_four(op, edges) if sparse else []
    for count in range(1, most + 1):
        given = operand(d)
        if sparse:
            new = _through(machine, op, parts, given, d)
        else:
            new = machine.apply(op, given, edges if algorithm == "bellman-ford" else given, d)
        same = check and np.array_equal(new, d)
        d = new
        if stop and stop(d):
            return Closure(d, count, False, True)
        if same:
            return Closure(d, count, True, False)
    return Closure(d, most, False, False)


def _two_of_four(op, edges):
    """Compressed matrices that have all edges but loops together: two at most."""
    size = len(edges)
    left = np.full((size, -(-size // GROUP) * GROUP), op.no_edge, edges.dtype)
    left[:, :size] = edges
    np.fill_diagonal(left, op.no_edge)
    parts = []
    while (left != op.no_edge).any():
        values, indices = compress(op, left)
        parts.append((values, indices))
        pairs = indices.reshape(size, -1, KEPT).astype(np.int64)
        np.put_along_axis(left.reshape(size, -1, GROUP), pairs, op.no_edge, axis=-1)
    return parts


def _through(machine, op, parts, given, d):
    """D ⊕ (A ⊗ D), with rows of D for all columns of the compressed A."""
    if parts and len(given) % GROUP:
        more = GROUP - len(given) % GROUP
        given = np.pad(given, ((0, more), (0, 0)), constant_values=op.no_edge)
    for values, indices in parts:
        d = machine.apply_sparse(op, values, indices, given, d)
    return d


def _floyd_warshall(machine, op, start, operand, *, block, check, stop):
    d = start.copy()
    count = 0
    for begin in range(0, len(d), block):
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
        if len(d) > block:
            columns = np.ascontiguousarray(d[:, part])
            d = machine.apply(op, operand(columns), operand(d[part]), d)
        if stop and stop(d):
            return Closure(d, count, False, True)
    return Closure(d, count, False, False)
