# pyright: basic
"""The search of the router: shortest paths on the grid of tracks, written for Numba.

A node is a crossing of a column and a line on a layer: (layer × (columns + 1) + column) ×
(lines + 1) + line. Even layers run along the lines of a column, odd ones along the columns of a
line. Link n leads to node n from the node before it on its track. A net that uses a node claims
both links at the node, so two nets conflict if they use the same node or neighbours on a track:
ends of wires reach half a pitch beyond their nodes.
"""

import numpy as np


def _push(heap, size, key, value, keys_value):
    """Add an entry to a binary heap of keys with values, and return its size."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap[above] <= key:
            break
        heap[at] = heap[above]
        keys_value[at] = keys_value[above]
        at = above
    heap[at] = key
    keys_value[at] = value
    return size + 1


def _pop(heap, size, keys_value):
    """Remove the first entry of a heap, which is then behind the others at ``size - 1``."""
    size -= 1
    key, value = heap[size], keys_value[size]
    first, first_value = heap[0], keys_value[0]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        keys_value[at] = keys_value[below]
        at = below
    heap[at] = key
    keys_value[at] = value
    heap[size], keys_value[size] = first, first_value
    return size


def _away(at, low, high):
    """Return the distance of a number from a range."""
    if at < low:
        return low - at
    return at - high if at > high else 0


def _cut_is_near(node, cuts, stamp, aside):
    """Return whether the net has another cut of the same layer on the next line of the column.

    If ``aside`` is not 0, the cut on the next column of the line, so many nodes away, counts, too.
    """
    if aside and (cuts[node - aside] == stamp or cuts[node + aside] == stamp):
        return True
    return cuts[node - 1] == stamp or cuts[node + 1] == stamp


def _price(node, line_stride, layer_stride, use, history, press):
    """Return what the two links of a node cost."""
    ahead = node + (line_stride if (node // layer_stride) & 1 else 1)
    return history[node] + history[ahead] + press * (use[node] + use[ahead])


def _next(goals, first, done, near, line_stride, layer_stride, bounds):
    """Write the box of the terminal that is nearest to the net, and return it."""
    best = -1
    for t in range(len(done)):
        if not done[t] and (best < 0 or near[t] < near[best]):
            best = t
    bounds[0] = bounds[2] = 1 << 30
    bounds[1] = bounds[3] = -1
    for k in range(first[best], first[best + 1]):
        column, line = divmod(goals[k] % layer_stride, line_stride)
        bounds[0], bounds[1] = min(bounds[0], column), max(bounds[1], column)
        bounds[2], bounds[3] = min(bounds[2], line), max(bounds[3], line)
    return best


def _approach(node, goals, first, done, near, line_stride, layer_stride, weights):
    """Let every terminal that is not joined know how near a node of the net is."""
    column, line = divmod(node % layer_stride, line_stride)
    for t in range(len(done)):
        if not done[t]:
            to_column, to_line = divmod(goals[first[t]] % layer_stride, line_stride)
            way = weights[1] * abs(column - to_column) + weights[0] * abs(line - to_line)
            near[t] = min(near[t], way)


def _far(node, line_stride, layer_stride, bounds, weights):
    """Return a lower bound of the cost from a node to the box."""
    column, line = divmod(node % layer_stride, line_stride)
    return weights[1] * _away(column, bounds[0], bounds[1]) + weights[0] * _away(
        line, bounds[2], bounds[3]
    )


def _neighbour(
    move, node, line_stride, layer_stride, layers, steps, bumps, window, cuts, stamp, parent
):  # fmt: skip
    """Return the node of a move (back, ahead, down, up), or -1 if a rule forbids it."""
    layer = node // layer_stride
    column, line = divmod(node % layer_stride, line_stride)
    if move < 2:
        ahead = 2 * move - 1
        if layer & 1:
            if column + ahead < window[0] or column + ahead > window[1]:
                return -1
            return node + ahead * line_stride
        if line + ahead < window[2] or line + ahead > window[3]:
            return -1
        return node + ahead
    other = layer + 2 * move - 5
    if other < 0 or other >= layers:
        return -1
    if column % steps[other, 0] or line % steps[other, 1]:
        return -1
    target = node + (other - layer) * layer_stride
    cut = min(target, node)
    aside = line_stride * bumps[cut // layer_stride]
    if _cut_is_near(cut, cuts, stamp, aside):
        return -1
    # A step along a column between two cuts of a layer would leave them too close.
    p = parent[node]
    if p >= 0 and (abs(p - node) == 1 or (aside and abs(p - node) == aside)):
        q = parent[p]
        if q >= 0 and q // layer_stride == other:
            return -1
    return target


def _search(
    size, mark, stamp, line_stride, layer_stride, layers, steps, bumps, weights, use, history,
    press, window, bounds, cost, seen, parent, goal, done, cuts, pin_cuts, heap, heap_node,
):  # fmt: skip
    """Return the first node of a terminal that is not joined yet, or -1 if there is no path."""
    while size > 0:
        size = _pop(heap, size, heap_node)
        n, key = heap_node[size], heap[size]
        if key > cost[n] + _far(n, line_stride, layer_stride, bounds, weights) + 1e-6:
            continue  # an older entry of a node that was reached again
        if goal[n, 0] == stamp and not done[goal[n, 1]]:
            if n >= layer_stride or not _cut_is_near(n, pin_cuts, stamp, 0):
                return n
        for move in range(4):
            m = _neighbour(
                move, n, line_stride, layer_stride, layers, steps, bumps, window, cuts, stamp,
                parent,
            )  # fmt: skip
            if m < 0:
                continue
            step = weights[2] if move > 1 else weights[(n // layer_stride) & 1]
            reached = cost[n] + step + _price(m, line_stride, layer_stride, use, history, press)
            if seen[m] == mark and cost[m] <= reached + 1e-9:
                continue
            seen[m], cost[m], parent[m] = mark, reached, n
            if size + 1 >= len(heap):
                return -1
            far = _far(m, line_stride, layer_stride, bounds, weights)
            size = _push(heap, size, reached + far, m, heap_node)
    return -1


def route(
    goals, first, columns, lines, layers, steps, bumps, weights, use, history, press, window, stamp,
    cost, seen, parent, tree, goal, cuts, pin_cuts, heap, heap_node, out, out_pins,
):  # fmt: skip
    """Join the terminals of a net, and return the number of edges, or -1 if there is no path.

    Parameters
    ----------
    goals, first : ndarray of int
        Nodes of all terminals; those of terminal t are from ``first[t]`` to ``first[t + 1]``.
    steps : (layers, 2) ndarray of int
        Every layer has each n-th column and each n-th line.
    bumps : (layers,) ndarray of int
        1 if the cuts of a net above a layer must not lie on neighbouring columns of a line.
    weights : (3,) ndarray of float
        Cost of a step along the lines, of a step along the columns, and of a via.
    use, history : ndarray
        Nets that claim each link, and the price of links that were in conflict.
    press : float
        Price of a link for every other net that claims it.
    window : (4,) ndarray of int
        First and last column, first and last line of the search.
    stamp : int
        A number that no earlier call had; marks of other numbers do not count.
    out : (N, 2) ndarray of int
        Receives the edges.
    out_pins : (terminals,) ndarray of int
        Receives the node where the net meets each terminal.
    """
    line_stride = lines + 1
    layer_stride = (columns + 1) * line_stride
    terminals = len(first) - 1
    done = np.zeros(terminals, np.bool_)
    bounds = np.zeros(4, np.int64)
    tree_nodes = np.empty(len(out) + 8, np.int64)
    edges = tree_size = 0
    for t in range(1, terminals):
        for k in range(first[t], first[t + 1]):
            goal[goals[k], 0], goal[goals[k], 1] = stamp, t
    done[0] = True
    near = np.full(terminals, 1e18)
    _approach(goals[0], goals, first, done, near, line_stride, layer_stride, weights)
    for turn in range(1, terminals):
        _next(goals, first, done, near, line_stride, layer_stride, bounds)
        mark = stamp + turn
        size = 0
        for k in range(first[1] if turn == 1 else tree_size):
            n = goals[k] if turn == 1 else tree_nodes[k]
            price = 0.0
            if turn == 1:
                price = _price(n, line_stride, layer_stride, use, history, press)
            seen[n], cost[n], parent[n] = mark, price, -1
            far = _far(n, line_stride, layer_stride, bounds, weights)
            size = _push(heap, size, price + far, n, heap_node)
        n = _search(
            size, mark, stamp, line_stride, layer_stride, layers, steps, bumps, weights, use,
            history, press, window, bounds, cost, seen, parent, goal, done, cuts, pin_cuts, heap,
            heap_node,
        )  # fmt: skip
        if n < 0:
            return -1
        done[goal[n, 1]] = True
        out_pins[goal[n, 1]] = n
        if n < layer_stride:
            pin_cuts[n] = stamp
        while True:
            if tree[n] != stamp:
                tree[n] = stamp
                tree_nodes[tree_size] = n
                tree_size += 1
                _approach(n, goals, first, done, near, line_stride, layer_stride, weights)
            p = parent[n]
            if p < 0:
                break
            if p // layer_stride != n // layer_stride:
                cuts[min(n, p)] = stamp
            if edges >= len(out):
                return -1
            out[edges, 0], out[edges, 1] = p, n
            edges += 1
            n = p
        if turn == 1:
            out_pins[0] = n
            if n < layer_stride:
                pin_cuts[n] = stamp
    return edges
