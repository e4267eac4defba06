"""Global placement: a sum of squared wire lengths, pulled apart until the cells cover the rows.

Each round solves the linear equations of the bound-to-bound model of wires, spreads the result by
recursive bisection, and pulls every cell a little more towards its spread place (the method of
SimPL). The ports then move to the slots at the border that suit their nets.

References
----------
P. Spindler, U. Schlichtmann and F. M. Johannes, "Kraftwerk2", TCAD 2008 (bound-to-bound model);
M.-C. Kim, D.-J. Lee and I. L. Markov, "SimPL", ICCAD 2010.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.floorplan import Floorplan

#: Rounds of global placement, and nets beyond this size pull no cells.
ROUNDS, _MOST_PINS = 40, 64
#: Most steps of conjugate gradients.
_MOST_STEPS = 100


@dataclass
class Wires:
    """The nets as arrays: pins of net n are ``first[n]`` to ``first[n + 1]``.

    Attributes
    ----------
    first : (nets + 1,) ndarray of int
    cell : (pins,) ndarray of int
        Instance of a pin, or number of instances + port.
    offset : (pins,) ndarray of float
        Distance of a pin from the middle of its cell, to the right.
    widths : (instances,) ndarray of int
        Widths of the instances in sites.
    """

    first: np.ndarray
    cell: np.ndarray
    offset: np.ndarray
    widths: np.ndarray


def wires(design: LayoutDesign, site: int) -> Wires:
    """Return the nets of a design that join at least two pins, without the largest ones."""
    first, cell, offset = [0], [], []
    count = len(design.names)
    for net in design.nets:
        if not 2 <= len(net.pins) + len(net.ports) <= _MOST_PINS:
            continue
        for instance, pin in net.pins:
            macro = design.macros[instance]
            rects = [rect for rects in macro.pins[pin].shapes.values() for rect in rects]
            middle = (min(r[0] for r in rects) + max(r[2] for r in rects)) / 2
            cell.append(instance)
            offset.append(middle - macro.width / 2)
        cell += [count + port for port in net.ports]
        offset += [0.0] * len(net.ports)
        first.append(len(cell))
    return Wires(
        np.array(first, np.int64), np.array(cell, np.int64), np.array(offset, np.float64),
        np.array([macro.width // site for macro in design.macros], np.int64),
    )  # fmt: skip


def slots(plan: Floorplan, count: int) -> np.ndarray:
    """Return at least ``count`` places (column, line, layer) for ports, at all four sides.

    Ports at the left and the right are on metal 3 (layer 1), the others on metal 2 (layer 0).
    """
    columns, lines = plan.columns, plan.lines
    across = 2 * (columns + lines)
    # Ports keep a free track between them, and stay away from the corners.
    step = max(2, int(across / (1.25 * count + 16)))
    found = [(c, e, 0) for c in range(4, columns - 4, step) for e in (0, lines - 1)]
    found += [(e, n, 1) for n in range(4, lines - 4, step) for e in (0, columns - 1)]
    if len(found) < count:
        step = 1
        found = [(c, e, 0) for c in range(1, columns - 1) for e in (0, lines - 1)]
        found += [(e, n, 1) for n in range(1, lines - 1) for e in (0, columns - 1)]
    return np.array(found, np.int64)


def place(
    design: LayoutDesign,
    plan: Floorplan,
    *,
    rounds: int = ROUNDS,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the middles of the cells, and the places of the ports.

    Returns
    -------
    middles : (instances, 2) ndarray of float
        In database units; the cells overlap a little.
    ports : (ports, 3) ndarray of int
        Column, line and layer of each port.
    """
    net = wires(design, plan.technology.site[0])
    count = len(design.names)
    free = slots(plan, len(design.ports))
    at = np.stack([[plan.x(c) for c in free[:, 0]], [plan.y(n) for n in free[:, 1]]], 1)
    chosen = np.linspace(0, len(free) - 1, len(design.ports)).astype(np.int64)
    where = np.empty((count + len(design.ports), 2))
    where[:count] = (plan.width / 2, plan.height / 2)
    # A little noise, always the same, keeps cells with equal nets apart.
    where[:count] += np.random.default_rng(1).normal(0, plan.width / 20, (count, 2))
    where[count:] = at[chosen]
    spread = where[:count].copy()
    for number in range(rounds):
        pull = 0.0 if number < 3 else 0.004 * (number - 2) ** 1.3
        for axis in (0, 1):
            for _ in range(2 if number < 3 else 1):
                _solve(net, where, spread, axis, pull, count)
        if number % 5 == 2 and number < rounds - 5 and len(design.ports):
            chosen = _assign(net, where, at, count)
            where[count:] = at[chosen]
        spread = _bisect(where[:count], net.widths, plan)
        tell(number + 1, rounds)
    return spread, free[chosen]


def _solve(
    net: Wires, where: np.ndarray, spread: np.ndarray, axis: int, pull: float, count: int
) -> None:
    """Move all cells along an axis to the least sum of squared lengths."""
    sparse = need("scipy.sparse", "layout")
    shift = net.offset if axis == 0 else np.zeros(len(net.offset))
    rows, columns, weights = bounds(net, where[net.cell, axis] + shift)
    a, b = net.cell[rows], net.cell[columns]
    gap = shift[columns] - shift[rows]  # a + shift = b + shift
    diagonal = np.full(count, 1e-9)
    right = np.zeros(count)
    both = (a < count) & (b < count)
    for from_, to, sign in ((a, b, 1.0), (b, a, -1.0)):
        mine = from_ < count
        np.add.at(diagonal, from_[mine], weights[mine])
        np.add.at(right, from_[mine], sign * (weights * gap)[mine])
        fixed = mine & (to >= count)
        np.add.at(right, from_[fixed], weights[fixed] * where[to[fixed], axis])
    anchor = pull / np.maximum(np.abs(where[:count, axis] - spread[:, axis]), 400.0)
    diagonal += anchor
    right += anchor * spread[:, axis]
    matrix = sparse.coo_matrix(
        (
            np.concatenate([-weights[both], -weights[both], diagonal]),
            (
                np.concatenate([a[both], b[both], np.arange(count)]),
                np.concatenate([b[both], a[both], np.arange(count)]),
            ),
        ),
        shape=(count, count),
    ).tocsr()
    where[:count, axis] = _conjugate(matrix, right, where[:count, axis], diagonal)


def _conjugate(matrix: Any, right: np.ndarray, x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Solve linear equations by conjugate gradients, preconditioned by the diagonal.

    SciPy's own has dot products of several threads, which take seconds on a busy machine.
    """
    x = x.copy()
    rest = right - matrix @ x
    least = 1e-8 * float((right * right).sum())
    scaled = rest / diagonal
    way = scaled.copy()
    size = float((rest * scaled).sum())
    for _ in range(_MOST_STEPS):
        if size <= 0 or float((rest * rest).sum()) <= least:
            break
        image = matrix @ way
        step = size / float((way * image).sum())
        x += step * way
        rest -= step * image
        scaled = rest / diagonal
        size, before = float((rest * scaled).sum()), size
        way = scaled + size / before * way
    return x


def bounds(net: Wires, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the springs of the bound-to-bound model: pins, pins and weights.

    Parameters
    ----------
    at : (pins,) ndarray of float
        Position of every pin along an axis.
    """
    sizes = np.diff(net.first)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((at, owner))  # the pins of each net from low to high
    low, high = order[net.first[:-1]], order[net.first[1:] - 1]
    inner = np.ones(len(at), bool)
    inner[low] = inner[high] = False
    pins = np.flatnonzero(inner)
    rows = np.concatenate([low, pins, pins])
    columns = np.concatenate([high, low[owner[pins]], high[owner[pins]]])
    length = np.maximum(np.abs(at[rows] - at[columns]), 100.0)
    return rows, columns, 1 / ((sizes[owner[rows]] - 1) * length)


def _assign(net: Wires, where: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """Return the slot of each port, so that the ports are near the other pins of their nets."""
    ports = len(where) - count
    wish = np.full((ports, 2), np.nan)
    for n in range(len(net.first) - 1):
        members = net.cell[net.first[n] : net.first[n + 1]]
        inside, outside = members[members < count], members[members >= count]
        if len(inside) and len(outside):
            wish[outside - count] = where[inside].mean(0)
    lost = np.isnan(wish[:, 0])
    wish[lost] = where[count:][lost]
    cost = np.abs(wish[:, None] - at[None]).sum(2)
    _, chosen = need("scipy.optimize", "layout").linear_sum_assignment(cost)
    return chosen


def _bisect(middles: np.ndarray, widths: np.ndarray, plan: Floorplan) -> np.ndarray:
    """Return places that cover the rows evenly, in the order of ``middles``."""
    site, height = plan.technology.site
    left = plan.left + plan.tap * site
    right = plan.left + (plan.sites - plan.tap) * site
    out = np.empty_like(middles)
    stack = [(np.arange(len(middles)), float(left), float(right), 0, plan.rows)]
    while stack:
        cells, x0, x1, r0, r1 = stack.pop()
        total = int(widths[cells].sum())
        if r1 - r0 == 1:
            order = cells[np.argsort(middles[cells, 0], kind="stable")]
            ends = np.cumsum(widths[order])
            out[order, 0] = x0 + (x1 - x0) * (ends - widths[order] / 2) / max(total, 1)
            out[order, 1] = plan.bottom + (r0 + 0.5) * height
            continue
        if not len(cells):
            continue
        upright = len(cells) == 1 or (r1 - r0) * height >= x1 - x0
        order = cells[np.argsort(middles[cells, 1 if upright else 0], kind="stable")]
        ends = np.cumsum(widths[order])
        if upright:
            middle = (r0 + r1) // 2
            cut = int(np.searchsorted(ends, total * (middle - r0) / (r1 - r0)))
            stack.append((order[:cut], x0, x1, r0, middle))
            stack.append((order[cut:], x0, x1, middle, r1))
        else:
            cut = max(1, int(np.searchsorted(ends, total / 2)))
            share = ends[cut - 1] / total if cut else 0.0
            stack.append((order[:cut], x0, x0 + (x1 - x0) * share, r0, r1))
            stack.append((order[cut:], x0 + (x1 - x0) * share, x1, r0, r1))
    return out
