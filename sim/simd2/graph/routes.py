"""Routes, cycles and trees that belong to the values of a closure."""

import numpy as np

from vitruvian.golden.simd2 import Op


def times(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a ⊗ b, rounded once.

    Parameters
    ----------
    a, b : ndarray
        Arrays of the same dtype whose shapes broadcast.
    """
    with np.errstate(all="ignore"):
        if op.times == "and":
            return ((a != 0) & (b != 0)).astype(a.dtype)
        return {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[op.times](
            a, b
        )


def lost_paths(op: Op, values: np.ndarray, operands: np.ndarray, edges: np.ndarray) -> int:
    """Return a lower bound of the number of pairs with a path whose value FP32 cannot represent.

    A sum above the largest FP32 number, or a product below the smallest, looks like a missing path.
    In minmul, a product that became 0 looks like a path with an edge of weight 0. The pairs that
    are counted are one edge away from a pair whose value FP32 represents; pairs further away are
    not counted.

    Parameters
    ----------
    values : (V, V) ndarray of float32
        Result of a closure.
    operands : (V, V) ndarray of float32
        Weights of the edges.
    edges : (V, V) ndarray of bool
    """
    if op is Op.MINMUL:
        return 0 if (operands[edges] == 0).any() else int(np.count_nonzero(values == 0))
    if op not in (Op.MINPLUS, Op.MAXPLUS, Op.MAXMUL) or not edges.any():
        return 0
    absent = np.float32(op.no_edge)
    reached, weights = values != absent, operands[edges].astype(np.float64)
    # If even the extreme value and the extreme weight combine within range, nothing was lost.
    if op is Op.MAXMUL:
        smallest = values.min(where=reached, initial=np.inf)
        if float(smallest) * weights.min() >= np.finfo(np.float32).smallest_subnormal:
            return 0
    else:
        largest = max(values.max(where=reached, initial=0), -values.min(where=reached, initial=0))
        if float(largest) + np.abs(weights).max() <= np.finfo(np.float32).max:
            return 0
    one_edge_further = reached.astype(np.float32) @ edges.astype(np.float32) > 0
    return int(np.count_nonzero(one_edge_further & ~reached))


def parents(op: Op, source: int, row, edges, weights, operand, identity: float) -> np.ndarray:
    """Return the predecessor of each vertex on a best path from ``source``.

    An edge (u, v) is *tight* if the value of v equals the value of u ⊗ the weight of the edge. A
    breadth-first search over tight edges yields paths of few edges that never contain a cycle. If
    rounding leaves a vertex without such a path, the row is computed again in float64. That
    happens because Leyzorek adds in another order, and because a value that is rounded as an
    operand can improve along a cycle.

    Parameters
    ----------
    row : (V,) ndarray of float32
        Values of the paths from ``source``.
    edges : (V, V) ndarray of bool
    weights : (V, V) ndarray of float32
        Weights as the unit used them.
    operand : callable
        Function that rounds values as the closure did.
    identity : float
        Identity of ⊗.

    Returns
    -------
    (V,) ndarray of int
        −1 for the source and for vertices without a path.
    """
    row = np.array(row)  # a copy, as the value of the source changes
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
    """Return the predecessors over tight edges; ``values`` are those of ``row`` as operands."""
    before = np.full(len(row), -1)
    before[source] = source
    front = np.array([source])
    while front.size:
        unvisited = np.flatnonzero(before < 0)
        terms = times(op, values[front, None], weights[np.ix_(front, unvisited)])
        tight = edges[np.ix_(front, unvisited)] & (terms == row[unvisited])
        reached = tight.any(axis=0)
        predecessors = front[tight.argmax(axis=0)]
        before[unvisited[reached]] = predecessors[reached]
        front = unvisited[reached]
    return before


def _row(op, source, edges, weights, identity):
    """Return the values of the paths from one vertex, by Bellman–Ford in float64."""
    minimises = op.plus == "min"
    row = np.full(len(weights), float(op.identity))
    row[source] = identity
    for _ in range(len(weights)):
        terms = np.where(edges, times(op, row[:, None], weights), op.identity)
        # fmin and fmax ignore a NaN, as ⊕ does.
        new = (
            np.fmin(row, np.fmin.reduce(terms))
            if minimises
            else np.fmax(row, np.fmax.reduce(terms))
        )
        if np.array_equal(new, row):
            break
        row = new
    return row


def find_cycle(edges: np.ndarray) -> list[int] | None:
    """Return the vertices of a cycle in their order, or None if the graph has no cycle."""
    # Kahn's topological sort: remove vertices without incoming edges until none is left.
    remaining = np.ones(len(edges), bool)
    into = edges.sum(axis=0, dtype=np.int64)
    ready = np.flatnonzero(into == 0)
    while ready.size:
        remaining[ready] = False
        into -= edges[ready].sum(axis=0, dtype=np.int64)
        ready = np.flatnonzero(remaining & (into == 0))
    if not remaining.any():
        return None
    # Every remaining vertex has a remaining predecessor, so a walk backwards meets a cycle.
    return _cycle_before(
        lambda v: int(np.argmax(edges[:, v] & remaining)), int(np.argmax(remaining))
    )


def _cycle_before(before, vertex):
    """Return the cycle that a walk to predecessors reaches, in the direction of the edges.

    Parameters
    ----------
    before : callable
        Function that returns the predecessor of a vertex.
    vertex : int
        Start of the walk.
    """
    step_of: dict[int, int] = {}
    walk = []
    while vertex not in step_of:
        step_of[vertex] = len(walk)
        walk.append(vertex)
        vertex = before(vertex)
    cycle = walk[step_of[vertex] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def negative_cycle(weights: np.ndarray) -> list[int] | None:
    """Return the vertices of a cycle with a negative sum, or None if there is no such cycle.

    Parameters
    ----------
    weights : (V, V) ndarray of float64
        Weights of the edges; infinity for a missing edge.
    """
    loops = np.flatnonzero(np.diagonal(weights) < 0)
    if loops.size:
        return [int(loops[0])]
    # Bellman–Ford from a virtual source at distance 0 from every vertex.
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
        start = _endless(before)
        if start is not None:
            return _cycle_before(lambda v: int(before[v]), start)
    return None


def _endless(before):
    """Return a vertex whose chain of predecessors never ends, or None; −1 ends a chain."""
    jump, steps = before.copy(), 1
    # Pointer doubling: ``jump`` leads 1, 2, 4, … steps back. A chain of V steps must be a cycle.
    while steps < 2 * len(before):
        jump = np.where(jump >= 0, jump[jump], -1)
        steps *= 2
    stuck = np.flatnonzero(jump >= 0)
    return int(stuck[0]) if stuck.size else None


def spanning_tree(weights: np.ndarray, operands: np.ndarray, edges: np.ndarray, minimax):
    """Return the edges of a minimum spanning forest, given the minimax values of all pairs.

    An edge is in some minimum spanning forest of the operands if its weight is the minimax value of
    its ends. Rounding keeps the order of the weights, so these edges contain every minimum forest
    of the exact weights. Kruskal's algorithm selects among them by the exact weights, and for equal
    weights by the order of the vertices.

    Parameters
    ----------
    weights : (V, V) ndarray of float64
        Exact weights.
    operands, minimax : (V, V) ndarray of float32
        Weights as the unit used them, and the minimax values.
    edges : (V, V) ndarray of bool

    Returns
    -------
    list of (int, int)
        Edges (i, j) with i < j.
    """
    rows, columns = np.nonzero(np.triu(edges, 1) & (operands == minimax))
    order = np.argsort(weights[rows, columns], kind="stable")
    parent = list(range(len(weights)))  # disjoint sets with path halving

    def root(v):
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    tree = []
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        root_i, root_j = root(i), root(j)
        if root_i != root_j:
            parent[root_i] = root_j
            tree.append((i, j))
    return tree
