"""Compiled loops of searches that follow the edges of reached vertices only.

Indices are unsigned, because Numba tests signed ones for being negative, and the loops have a
condition, because a range counts its steps: both would take most of the time here.

Everything that is compiled must be in this file, because Numba's cache does not notice a change in
another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np


@numba.njit(cache=True, nogil=True, error_model="numpy")
def search(
    start: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    frontier: np.ndarray,
    visited: np.ndarray,
    level: np.ndarray,
    depth: float,
    iterations: int,
) -> tuple[int, bool]:
    """Set the level of every vertex that the frontier reaches.

    Parameters
    ----------
    start, index, values : ndarray
        CSR arrays; an element of 0 or NaN is no edge.
    frontier : (F,) ndarray of uint32
    visited : (N,) ndarray of bool
    level : (N,) ndarray of float64

    Returns
    -------
    iterations : int
    done : bool
        True if the last iteration reached no vertex.
    """
    queue = np.empty(len(level) + len(frontier), np.uint32)
    queue[: len(frontier)] = frontier
    one = np.uint64(1)
    begin, end = np.uint64(0), np.uint64(len(frontier))
    for iteration in range(1, iterations + 1):
        depth, last = depth + 1.0, end
        place = begin
        while place < last:
            i = queue[place]
            e, stop = start[i], start[i + one]
            while e < stop:
                j = index[e]
                if not visited[j] and values[e] != 0.0 and values[e] == values[e]:
                    visited[j] = True
                    level[j] = depth
                    queue[end] = j
                    end += one
                e += one
            place += one
        if end == last:
            return iteration, True
        begin = last
    return iterations, False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def relax(
    start: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    distance: np.ndarray,
    iterations: int,
) -> tuple[int, bool]:
    """Shorten the distances until none changes; an iteration reads those of the one before.

    Parameters
    ----------
    start, index, values : ndarray
        CSR arrays.
    distance : (N,) ndarray of float64

    Returns
    -------
    iterations : int
    done : bool
        True if the last iteration shortened no distance.
    """
    size, one = len(distance), np.uint64(1)
    frontier, after = np.empty(size, np.uint32), np.empty(size, np.uint32)
    held = np.empty(size, np.float64)
    changed_in = np.zeros(size, np.int64)
    count = np.uint64(0)
    for i in range(size):
        if distance[i] < np.inf:
            frontier[count] = i
            count += one
    for iteration in range(1, iterations + 1):
        place = np.uint64(0)
        while place < count:
            held[place] = distance[frontier[place]]
            place += one
        found, place = np.uint64(0), np.uint64(0)
        while place < count:
            i, x = frontier[place], held[place]
            e, stop = start[i], start[i + one]
            while e < stop:
                j, z = index[e], x + values[e]
                if z < distance[j]:
                    distance[j] = z
                    if changed_in[j] != iteration:
                        changed_in[j] = iteration
                        after[found] = j
                        found += one
                e += one
            place += one
        if not found:
            return iteration, True
        frontier, after, count = after, frontier, found
    return iterations, False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def settle(start: np.ndarray, index: np.ndarray, values: np.ndarray, distance: np.ndarray) -> int:
    """Settle the nearest vertex, then the next one (Dijkstra), and count the hops of the paths.

    Parameters
    ----------
    start, index, values : ndarray
        CSR arrays; no value is negative.
    distance : (N,) ndarray of float64

    Returns
    -------
    int
        The largest number of hops that a vertex needs for its distance.
    """
    size, one = len(distance), np.uint64(1)
    key = np.empty(len(index) + size, np.float64)
    vertex = np.empty(len(index) + size, np.uint32)
    given = distance.copy()
    count = np.uint64(0)
    for i in range(size):
        if distance[i] < np.inf:
            _push(key, vertex, count, distance[i], i)
            count += one
    while count:
        x, i = key[0], vertex[0]
        count -= one
        _drop(key, vertex, count)
        if x > distance[i]:  # A shorter path came later.
            continue
        e, stop = start[i], start[i + one]
        while e < stop:
            j, z = index[e], x + values[e]
            if z < distance[j]:
                distance[j] = z
                _push(key, vertex, count, z, j)
                count += one
            e += one
    # A search over the edges of shortest paths gives the hops.
    reached = (given == distance) & (distance < np.inf)
    begin, end, hops = np.uint64(0), np.uint64(0), 0
    for i in range(size):
        if reached[i]:
            vertex[end] = i
            end += one
    while True:
        last, place = end, begin
        while place < last:
            i = vertex[place]
            x = distance[i]
            e, stop = start[i], start[i + one]
            while e < stop:
                j = index[e]
                if not reached[j] and x + values[e] == distance[j] and distance[j] < np.inf:
                    reached[j] = True
                    vertex[end] = j
                    end += one
                e += one
            place += one
        if end == last:
            return hops
        begin, hops = last, hops + 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _push(key, vertex, place, x, i):
    """Add an entry to a binary heap with ``place`` entries."""
    one = np.uint64(1)
    while place:
        above = (place - one) >> one
        if key[above] <= x:
            break
        key[place], vertex[place] = key[above], vertex[above]
        place = above
    key[place], vertex[place] = x, i


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _drop(key, vertex, count):
    """Replace the first entry of a binary heap by the one after its ``count`` remaining ones."""
    one = np.uint64(1)
    x, i, place = key[count], vertex[count], np.uint64(0)
    while True:
        below = (place << one) + one
        if below >= count:
            break
        if below + one < count and key[below + one] < key[below]:
            below += one
        if key[below] >= x:
            break
        key[place], vertex[place] = key[below], vertex[below]
        place = below
    key[place], vertex[place] = x, i


@numba.njit(cache=True, nogil=True, error_model="numpy")
def spread(start: np.ndarray, index: np.ndarray, label: np.ndarray) -> int:
    """Give every vertex the number of the first vertex from which a path leads to it.

    Parameters
    ----------
    start, index : ndarray
        CSR arrays.
    label : (N,) ndarray of float64
        The result.

    Returns
    -------
    int
        The largest number of hops between a vertex and the one that names it.
    """
    one = np.uint64(1)
    reached = np.zeros(len(label), np.bool_)
    queue = np.empty(len(label), np.uint32)
    most = 0
    for first in range(len(label)):
        if reached[first]:
            continue
        reached[first] = True
        label[first], queue[0] = first, first
        begin, end, hops = np.uint64(0), one, 0
        while True:
            last, place = end, begin
            while place < last:
                i = queue[place]
                e, stop = start[i], start[i + one]
                while e < stop:
                    j = index[e]
                    if not reached[j]:
                        reached[j] = True
                        label[j] = first
                        queue[end] = j
                        end += one
                    e += one
                place += one
            if end == last:
                break
            begin, hops = last, hops + 1
        most = max(most, hops)
    return most


@numba.njit(cache=True, nogil=True, error_model="numpy")
def peel(
    start: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    degree: np.ndarray,
    core: np.ndarray,
    k: float,
    iterations: int,
) -> tuple[int, bool]:
    """Remove all vertices with less than k neighbours at once, again and again, for rising k.

    Parameters
    ----------
    start, index, values : ndarray
        CSR arrays; every value is positive.
    degree : (N,) ndarray of float64
        The number of neighbours; it is overwritten.
    core : (N,) ndarray of float64
        The result.

    Returns
    -------
    iterations : int
        Removals, and iterations that raised k because no vertex had few neighbours.
    done : bool
        True if no vertex is left.
    """
    size, one = len(degree), np.uint64(1)
    alive = np.ones(size, np.bool_)
    low, after = np.empty(size, np.uint32), np.empty(size, np.uint32)
    left, count = size, _few(degree, alive, k, low)
    for iteration in range(1, iterations + 1):
        place = np.uint64(0)
        while place < count:
            core[low[place]] = k - 1.0
            alive[low[place]] = False
            place += one
        left -= np.int64(count)
        found, place = np.uint64(0), np.uint64(0)
        while place < count:
            i = low[place]
            e, stop = start[i], start[i + one]
            while e < stop:
                j = index[e]
                before = degree[j]
                degree[j] = before - values[e]
                if alive[j] and before >= k and degree[j] < k:
                    after[found] = j
                    found += one
                e += one
            place += one
        if not left:
            return iteration, True
        if not count:
            k += 1.0
            found = _few(degree, alive, k, after)
        low, after, count = after, low, found
    return iterations, False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _few(degree, alive, k, found):
    """List the vertices that are left with less than k neighbours, and return their number."""
    count, one = np.uint64(0), np.uint64(1)
    for i in range(len(degree)):
        if alive[i] and degree[i] < k:
            found[count] = i
            count += one
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def cycle_to(
    start: np.ndarray, index: np.ndarray, values: np.ndarray, distance: np.ndarray
) -> np.ndarray:
    """Return the vertices of a cycle that shortens the distances without end.

    Parameters
    ----------
    start, index, values : ndarray
        CSR arrays.
    distance : (N,) ndarray of float64
        Distances before the first iteration; they are overwritten.

    Returns
    -------
    (L,) ndarray of int32
        The vertices in the order of the edges; empty if the distances settle.
    """
    size = len(distance)
    parent = np.full(size, -1, np.int32)
    seen = np.zeros(size, np.int64)
    walk = 0
    for _ in range(size):
        changed = False
        for i in range(size):
            if distance[i] == np.inf:
                continue
            for e in range(start[i], start[i + 1]):
                j, z = index[e], distance[i] + values[e]
                if z < distance[j]:
                    distance[j], parent[j], changed = z, i, True
        if not changed:
            break
        # The parents of a vertex form a path, unless a cycle shortened its own distances.
        first = walk + 1
        for begin in range(size):
            walk += 1
            at = begin
            while at >= 0 and seen[at] < first:
                seen[at] = walk
                at = parent[at]
            if at >= 0 and seen[at] == walk:
                length, last = 1, at
                while parent[last] != at:
                    last = parent[last]
                    length += 1
                cycle = np.empty(length, np.int32)
                for place in range(length):
                    cycle[length - 1 - place] = at
                    at = parent[at]
                return cycle
    return np.empty(0, np.int32)
