"""Routes, cycles and trees: what the values of a closure stand for."""

import numpy as np

from vitruvian.golden.simd2 import Op

__all__ = ["find_cycle", "lost_paths", "negative_cycle", "parents", "spanning_tree", "times"]


def times(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """⊗ of arrays of one dtype, rounded once."""
    with np.errstate(all="ignore"):
        if op.times == "and":
            return ((a != 0) & (b != 0)).astype(a.dtype)
        return {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[op.times](
            a, b
        )


def lost_paths(op: Op, values: np.ndarray, operands: np.ndarray, edges: np.ndarray) -> int:
    """Return how many pairs at least have a path, and a value that FP32 cannot hold.

    These are pairs one edge behind a value that FP32 holds.

    A sum beyond the largest FP32 number, or a product below the smallest, looks as if there were
    no path; a least product that became 0 looks like one through an edge of weight 0.

    Parameters
    ----------
    values : (V, V) ndarray of float32
        Found by a closure.
    operands : (V, V) ndarray of float32
    edges : (V, V) ndarray of bool
    """
    if op is Op.MINMUL:
        return 0 if (operands[edges] == 0).any() else int(np.count_nonzero(values == 0))
    if op not in (Op.MINPLUS, Op.MAXPLUS, Op.MAXMUL) or not edges.any():
        return 0
    absent = np.float32(op.no_edge)
    there, weights = values != absent, operands[edges].astype(np.float64)
    if op is Op.MAXMUL:
        least = values.min(where=there, initial=np.inf)
        if float(least) * weights.min() >= np.finfo(np.float32).smallest_subnormal:
            return 0
    else:
        most = max(values.max(where=there, initial=0), -values.min(where=there, initial=0))
        if float(most) + np.abs(weights).max() <= np.finfo(np.float32).max:
            return 0
    further = there.astype(np.float32) @ edges.astype(np.float32) > 0
    return int(np.count_nonzero(further & ~there))


def parents(op: Op, source: int, row, edges, weights, operand, identity: float) -> np.ndarray:
    """The vertex before each on a best path from ``source``; −1 where there is none.

    An edge (u, v) is *tight* if the value of v is the value of u ⊗ its weight. Searching over tight
    edges from the source, nearest first, gives paths of few edges, and never a circle. If rounding
    left some vertex without such a path (Leyzorek adds up in another order, and values rounded as
    operands can gain by going round), the row is computed again, in float64.

    Parameters
    ----------
    row : (V,) ndarray of float32
        Values of the paths from ``source``.
    edges : (V, V) ndarray of bool
    weights : (V, V) ndarray of float32
        As the unit saw them.
    operand : callable
        Rounds values as they are fed back.
    identity : float
        Of ⊗.
    """
    row = np.array(row)
    reached = row != np.float32(op.no_edge)
    row[source] = identity
    before = _search(op, source, row, operand(row).astype(np.float32), edges, weights)
    if (before[reached] < 0).any():
        exact = weights.astype(np.float64)
        row = _row(op, source, edges, exact, identity)
        before = _search(op, source, row, row, edges, exact)
    before[source] = -1
    return before


def _search(op, source, row, values, edges, weights):
    """Vertices before each; values are those of row as operands."""
    before = np.full(len(row), -1)
    before[source] = source
    front = np.array([source])
    while front.size:
        open_ = np.flatnonzero(before < 0)
        terms = times(op, values[front, None], weights[np.ix_(front, open_)])
        tight = edges[np.ix_(front, open_)] & (terms == row[open_])
        found = tight.any(axis=0)
        front_of = front[tight.argmax(axis=0)]
        before[open_[found]] = front_of[found]
        front = open_[found]
    return before


def _row(op, source, edges, weights, identity):
    """Bellman–Ford of one row."""
    least = op.plus == "min"
    row = np.full(len(weights), float(op.identity))
    row[source] = identity
    for _ in range(len(weights)):
        terms = np.where(edges, times(op, row[:, None], weights), op.identity)
        new = np.fmin(row, np.fmin.reduce(terms)) if least else np.fmax(row, np.fmax.reduce(terms))
        if np.array_equal(new, row):
            break
        row = new
    return row


def find_cycle(edges: np.ndarray) -> list[int] | None:
    """Vertices of some cycle in their order, or None in a graph without cycles."""
    left = np.ones(len(edges), bool)
    into = edges.sum(axis=0, dtype=np.int64)
    ready = np.flatnonzero(into == 0)
    while ready.size:
        left[ready] = False
        into -= edges[ready].sum(axis=0, dtype=np.int64)
        ready = np.flatnonzero(left & (into == 0))
    if not left.any():
        return None
    # everything left has a predecessor that is left
    return _circle(lambda v: int(np.argmax(edges[:, v] & left)), int(np.argmax(left)))


def _circle(before, vertex):
    """The circle that a walk against the edges ends in, along the edges."""
    seen: dict[int, int] = {}
    walk = []
    while vertex not in seen:
        seen[vertex] = len(walk)
        walk.append(vertex)
        vertex = before(vertex)
    circle = walk[seen[vertex] :][::-1]
    first = circle.index(min(circle))
    return circle[first:] + circle[:first]


def negative_cycle(weights: np.ndarray) -> list[int] | None:
    """Vertices of a cycle with a negative sum, or None.

    Parameters
    ----------
    weights : (V, V) ndarray of float64
        Infinite where there is no edge.
    """
    loops = np.flatnonzero(np.diagonal(weights) < 0)
    if loops.size:
        return [int(loops[0])]
    size = len(weights)
    distance, before = np.zeros(size), np.full(size, -1)
    for _ in range(size):
        through = distance[:, None] + weights
        best = through.argmin(axis=0)
        new = through[best, np.arange(size)]
        lower = new < distance
        if not lower.any():
            return None
        distance[lower], before[lower] = new[lower], best[lower]
        found = _closed(before)
        if found is not None:
            return _circle(lambda v: int(before[v]), found)
    return None


def _closed(before):
    """A vertex from which the way back never ends."""
    where, steps = np.arange(len(before)), 1
    jump = before.copy()
    while steps < 2 * len(before):
        jump = np.where(jump >= 0, jump[jump], -1)
        steps *= 2
    stuck = where[jump >= 0]
    return int(stuck[0]) if stuck.size else None


def spanning_tree(weights: np.ndarray, operands: np.ndarray, edges: np.ndarray, minimax):
    """Edges of a minimum spanning forest out of the minimax values of all pairs.

    An edge is in some minimum spanning forest of the operands if its weight is the minimax value of
    its ends. Rounding keeps the order, so every minimum forest of the exact weights is among these
    edges; of several, the exact weights and then the vertices decide.

    Parameters
    ----------
    weights : (V, V) ndarray of float64
    operands, minimax : (V, V) ndarray of float32
    edges : (V, V) ndarray of bool

    Returns
    -------
    list of (int, int)
        i < j.
    """
    rows, columns = np.nonzero(np.triu(edges, 1) & (operands == minimax))
    order = np.argsort(weights[rows, columns], kind="stable")
    root = list(range(len(weights)))

    def top(v):
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    tree = []
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        one, other = top(i), top(j)
        if one != other:
            root[one] = other
            tree.append((i, j))
    return tree
