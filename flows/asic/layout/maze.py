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


def _cut_is_near(node, cuts, stamp):
    """Return whether the net has another cut of the same layer on the next line of the column."""
    return cuts[node - 1] == stamp or cuts[node + 1] == stamp


def route(
    goals, first, columns, lines, layers, steps, weights, use, history, press, window, stamp,
    cost, seen, parent, tree, goal, cuts, pin_cuts, heap, heap_node, out, out_pins,
):  # fmt: skip
    """Join the terminals of a net, and return the number of edges, or -1 if there is no path.

    Parameters
    ----------
    goals, first : ndarray of int
        Nodes of all terminals; those of terminal t are from ``first[t]`` to ``first[t + 1]``.
    steps : (layers, 2) ndarray of int
        Every layer has each n-th column and each n-th line.
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
    edges = 0
    tree_nodes = np.empty(len(out) + 8, np.int64)
    tree_size = 0
    for t in range(1, terminals):
        for k in range(first[t], first[t + 1]):
            goal[goals[k], 0], goal[goals[k], 1] = stamp, t
    done[0] = True
    out_pins[:terminals] = -1
    for turn in range(1, terminals):
        # The box around all that is not yet joined bounds the way that is left.
        c0 = r0 = 1 << 30
        c1 = r1 = -1
        for t in range(terminals):
            if not done[t]:
                for k in range(first[t], first[t + 1]):
                    place = goals[k] % layer_stride
                    c0, c1 = min(c0, place // line_stride), max(c1, place // line_stride)
                    r0, r1 = min(r0, place % line_stride), max(r1, place % line_stride)
        mark = stamp + turn
        size = 0
        if turn == 1:
            for k in range(first[0], first[1]):
                n = goals[k]
                price = (
                    history[n] + history[n + (line_stride if (n // layer_stride) & 1 else 1)]
                    + press * (use[n] + use[n + (line_stride if (n // layer_stride) & 1 else 1)])
                )  # fmt: skip
                seen[n], cost[n], parent[n] = mark, price, -1
                size = _push(heap, size, price, n, heap_node)
        else:
            for k in range(tree_size):
                n = tree_nodes[k]
                place = n % layer_stride
                far = weights[1] * _away(place // line_stride, c0, c1)
                far += weights[0] * _away(place % line_stride, r0, r1)
                seen[n], cost[n], parent[n] = mark, 0.0, -1
                size = _push(heap, size, far, n, heap_node)
        found = -1
        while size > 0:
            size = _pop(heap, size, heap_node)
            n, key = heap_node[size], heap[size]
            layer = n // layer_stride
            column, line = (n % layer_stride) // line_stride, n % line_stride
            far = weights[1] * _away(column, c0, c1) + weights[0] * _away(line, r0, r1)
            if key > cost[n] + far + 1e-6:
                continue  # an older entry of a node that was reached again
            if goal[n, 0] == stamp and not done[goal[n, 1]]:
                if layer > 0 or not _cut_is_near(n, pin_cuts, stamp):
                    found = n
                    break
            for move in range(4):
                m, next_cost = n, cost[n]
                if move < 2:
                    ahead = 2 * move - 1
                    if layer & 1:
                        place = column + ahead
                        if place < window[0] or place > window[1]:
                            continue
                        m = n + ahead * line_stride
                        next_cost += weights[1]
                    else:
                        place = line + ahead
                        if place < window[2] or place > window[3]:
                            continue
                        m = n + ahead
                        next_cost += weights[0]
                else:
                    other = layer + 2 * move - 5
                    if other < 0 or other >= layers:
                        continue
                    if column % steps[other, 0] or (line - 1) % steps[other, 1]:
                        continue
                    m = n + (other - layer) * layer_stride
                    cut = min(m, n)
                    if _cut_is_near(cut, cuts, stamp):
                        continue
                    # A step along a column between two cuts of a layer leaves them too close.
                    p = parent[n]
                    if p >= 0 and p // layer_stride == layer and (p == n + 1 or p == n - 1):
                        q = parent[p]
                        if q >= 0 and min(p, q) == cut + (p - n) and q // layer_stride == other:
                            continue
                    next_cost += weights[2]
                ahead = line_stride if (m // layer_stride) & 1 else 1
                next_cost += history[m] + history[m + ahead] + press * (use[m] + use[m + ahead])
                if seen[m] == mark and cost[m] <= next_cost + 1e-9:
                    continue
                place = m % layer_stride
                far = weights[1] * _away(place // line_stride, c0, c1)
                far += weights[0] * _away(place % line_stride, r0, r1)
                seen[m], cost[m], parent[m] = mark, next_cost, n
                if size + 1 >= len(heap):
                    return -1
                size = _push(heap, size, next_cost + far, m, heap_node)
        if found < 0:
            return -1
        n = found
        done[goal[n, 1]] = True
        out_pins[goal[n, 1]] = n
        if n < layer_stride:
            pin_cuts[n] = stamp
        while True:
            if tree[n] != stamp:
                tree[n] = stamp
                tree_nodes[tree_size] = n
                tree_size += 1
            p = parent[n]
            if p < 0:
                break
            if p // layer_stride != n // layer_stride:
                cuts[min(n, p)] = stamp
            out[edges, 0], out[edges, 1] = p, n
            edges += 1
            n = p
        if turn == 1:
            out_pins[0] = n
            if n < layer_stride:
                pin_cuts[n] = stamp
    return edges
