# pyright: basic
"""Legal placement: every cell on sites of a row, and swaps that shorten the wires.

The functions with loops are plain Python for Numba; positions of cells are sites and rows.
"""

from collections.abc import Callable

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.common.errors import UserError
from vitruvian.flows.asic.layout.floorplan import Floorplan
from vitruvian.flows.asic.layout.wires import Wires

#: A swap that makes the wires longer by so many sites is kept in 37 of 100 cases at first.
_HEAT = 2.0
#: Tries of a swap for each cell.
TRIES = 1500


def legalise(middles: np.ndarray, net: Wires, plan: Floorplan) -> tuple[np.ndarray, np.ndarray]:
    """Return the first site and the row of each cell, near ``middles``, without overlap.

    Returns
    -------
    sites, rows : (instances,) ndarray of int

    Raises
    ------
    UserError
        If the cells do not fit into the rows.
    """
    site, height = plan.technology.site
    wish = (middles[:, 0] - plan.left) / site - net.widths / 2
    level = (middles[:, 1] - plan.bottom) / height - 0.5
    order = np.argsort(wish, kind="stable")
    segments = np.array(plan.segments, np.int64)
    sites, rows = fitting(_tetris, len(wish))(
        order, wish, level, net.widths, plan.rows, segments, height / site
    )
    if (rows < 0).any():
        lost = int((rows < 0).sum())
        raise UserError(f"utilisation must leave rows with room for all cells, not for {lost} less")
    return sites, rows


def _tetris(order, wish, level, widths, row_count, segments, ratio):
    """Give each cell, from left to right, the row where it moves least, as long as it has room.

    A part of a row between taps is a place of its own. A cell is put behind those on its left;
    those that overhang at the right then move back.
    """
    parts = len(segments)
    front = np.zeros(row_count * parts, np.int64)
    used = np.zeros(row_count * parts, np.int64)
    end = np.zeros(row_count * parts, np.int64)
    for place in range(row_count * parts):
        front[place], end[place] = segments[place % parts, 0], segments[place % parts, 1]
    chosen = np.full(len(wish), -1, np.int64)
    sites = np.zeros(len(wish), np.int64)
    rows = np.full(len(wish), -1, np.int64)
    for k in range(len(order)):
        cell = order[k]
        best, best_at, best_cost = -1, 0, 1e18
        for place in range(row_count * parts):
            low, high = segments[place % parts, 0], segments[place % parts, 1]
            if used[place] + widths[cell] > high - low:
                continue
            at = max(front[place], round(wish[cell]))
            # A cell that overhangs will have to move back.
            back = max(at + widths[cell] - high, 0)
            cost = abs(at - back - wish[cell]) + back + ratio * abs(place // parts - level[cell])
            if cost < best_cost:
                best, best_at, best_cost = place, at, cost
        if best >= 0:
            chosen[cell], rows[cell], sites[cell] = best, best // parts, best_at
            front[best] = best_at + widths[cell]
            used[best] += widths[cell]
    for k in range(len(order) - 1, -1, -1):
        cell = order[k]
        if chosen[cell] >= 0:
            sites[cell] = min(sites[cell], end[chosen[cell]] - widths[cell])
            end[chosen[cell]] = sites[cell]
    return sites, rows


def improve(
    sites: np.ndarray,
    rows: np.ndarray,
    ports: np.ndarray,
    net: Wires,
    plan: Floorplan,
    *,
    tries: int = TRIES,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return sites and rows after swaps and moves, and the wire length before and after.

    Parameters
    ----------
    ports : (ports, 2) ndarray of float
        Positions of the ports.

    Returns
    -------
    sites, rows : (instances,) ndarray of int
    before, after : float
        Half perimeters of all nets, in database units.
    """
    site, height = plan.technology.site
    count = len(net.widths)
    start = (sites, rows)
    sites, rows = sites.copy(), rows.copy()
    owner = np.repeat(np.arange(len(net.first) - 1), np.diff(net.first))
    inside = np.flatnonzero(net.cell < count)
    by_cell = inside[np.argsort(net.cell[inside], kind="stable")]
    cell_first = np.searchsorted(net.cell[by_cell], np.arange(count + 1))
    x = np.concatenate([np.zeros(count), ports[:, 0]])
    y = np.concatenate([np.zeros(count), ports[:, 1]])
    origin = (plan.left, plan.bottom + height / 2)
    grid = np.full((plan.rows, plan.sites), -1, np.int64)
    for tap in plan.taps:
        grid[:, tap : tap + plan.tap] = -2  # neither free nor a cell
    for cell in range(count):
        grid[rows[cell], sites[cell] : sites[cell] + net.widths[cell]] = cell
        x[cell] = origin[0] + site * (sites[cell] + net.widths[cell] / 2)
        y[cell] = origin[1] + height * rows[cell]
    args = (
        sites, rows, x, y, grid, net.first, net.cell, net.offset, net.widths, cell_first,
        owner[by_cell], float(site), float(height), float(origin[0]), float(origin[1]),
    )  # fmt: skip
    run = fitting(_anneal, tries * count // 200)
    before = after = 0.0
    rounds = 20
    for number in range(rounds):
        heat = _HEAT * site * (1 - number / (rounds - 2)) if number < rounds - 2 else 0.0
        lengths = run(*args, max(1, tries * count // rounds), heat, number + 1)
        before, after = (lengths[0] if number == 0 else before), lengths[1]
        tell(number + 1, rounds)
    if after > before:  # the heat of the swaps has cost more than they gained
        return *start, before, before
    return sites, rows, before, after


def _draw(state, below):
    """Return a number from 0 to ``below`` - 1; the numbers of a seed are always the same."""
    state[0] = (state[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return (state[0] >> 8) % below


def _length(n, x, y, first, cell, offset):
    """Return the half perimeter of a net."""
    x0 = y0 = 1e18
    x1 = y1 = -1e18
    for p in range(first[n], first[n + 1]):
        at = x[cell[p]] + offset[p]
        x0, x1 = min(x0, at), max(x1, at)
        at = y[cell[p]]
        y0, y1 = min(y0, at), max(y1, at)
    return x1 - x0 + y1 - y0


def _room(grid, row, at, width, one, other):
    """Return whether sites of a row are free, but for two cells that move away."""
    if at < 0 or at + width > grid.shape[1]:
        return False
    for s in range(at, at + width):
        if grid[row, s] != -1 and grid[row, s] != one and grid[row, s] != other:
            return False
    return True


def _target(c, x, y, first, cell, offset, cell_first, cell_nets, draw):
    """Return a place for a cell: the middle of the bounds of one of its nets without itself."""
    k0, k1 = cell_first[c], cell_first[c + 1]
    if k0 == k1:
        return x[c], y[c]
    n = cell_nets[k0 + draw % (k1 - k0)]
    x0 = y0 = 1e18
    x1 = y1 = -1e18
    for p in range(first[n], first[n + 1]):
        if cell[p] != c:
            x0, x1 = min(x0, x[cell[p]] + offset[p]), max(x1, x[cell[p]] + offset[p])
            y0, y1 = min(y0, y[cell[p]]), max(y1, y[cell[p]])
    if x1 < x0:
        return x[c], y[c]
    return (x0 + x1) / 2, (y0 + y1) / 2


def _around(c, d, x, y, first, cell, offset, cell_first, cell_nets):
    """Return the length of the nets of one or two cells; common nets count once."""
    total = 0.0
    for k in range(cell_first[c], cell_first[c + 1]):
        total += _length(cell_nets[k], x, y, first, cell, offset)
    if d >= 0:
        for k in range(cell_first[d], cell_first[d + 1]):
            n = cell_nets[k]
            common = False
            for p in range(first[n], first[n + 1]):
                if cell[p] == c:
                    common = True
                    break
            if not common:
                total += _length(n, x, y, first, cell, offset)
    return total


def _put(c, site, row, sites, rows, x, y, grid, widths, pitch, height, left, bottom):
    """Write a cell into its sites."""
    sites[c], rows[c] = site, row
    for s in range(site, site + widths[c]):
        grid[row, s] = c
    x[c] = left + pitch * (site + widths[c] / 2)
    y[c] = bottom + height * row


def _lift(c, sites, rows, grid, widths):
    """Take a cell out of its sites."""
    for s in range(sites[c], sites[c] + widths[c]):
        grid[rows[c], s] = -1


def _anneal(
    sites, rows, x, y, grid, first, cell, offset, widths, cell_first, cell_nets, pitch, height,
    left, bottom, tries, heat, seed,
):  # fmt: skip
    """Try moves of random cells to where their nets pull them, and keep those that pay."""
    state = np.array([seed], np.int64)
    count = len(sites)
    begin = 0.0
    for n in range(len(first) - 1):
        begin += _length(n, x, y, first, cell, offset)
    total = begin
    for _ in range(tries):
        c = _draw(state, count)
        if _draw(state, 2):
            tx, ty = _target(
                c, x, y, first, cell, offset, cell_first, cell_nets, _draw(state, 1 << 20)
            )
        else:
            tx, ty = x[c], y[c]
        row = round((ty - bottom) / height) + _draw(state, 3) - 1
        at = round((tx - left) / pitch - widths[c] / 2) + _draw(state, 15) - 7
        row = min(max(row, 0), grid.shape[0] - 1)
        at = min(max(at, 0), grid.shape[1] - widths[c])
        d = grid[row, min(at + widths[c] // 2, grid.shape[1] - 1)]
        if d == c or d < 0:
            d = -1
        old_at, old_row = sites[c], rows[c]
        if d >= 0:
            at = sites[d]
            back = old_at
            if old_row == row and abs(sites[d] - old_at) < widths[c] + widths[d] + 1:
                # Neighbours change their order inside of their common sites.
                if old_at < sites[d]:
                    back, at = old_at, sites[d] + widths[d] - widths[c]
                else:
                    back = old_at + widths[c] - widths[d]
            if not _room(grid, old_row, back, widths[d], c, d):
                continue
        else:
            back = 0
        if not _room(grid, row, at, widths[c], c, d):
            continue
        if d >= 0 and old_row == row and at < back + widths[d] and back < at + widths[c]:
            continue
        old = _around(c, d, x, y, first, cell, offset, cell_first, cell_nets)
        d_at, d_row = (sites[d], rows[d]) if d >= 0 else (0, 0)
        _lift(c, sites, rows, grid, widths)
        if d >= 0:
            _lift(d, sites, rows, grid, widths)
            _put(d, back, old_row, sites, rows, x, y, grid, widths, pitch, height, left, bottom)
        _put(c, at, row, sites, rows, x, y, grid, widths, pitch, height, left, bottom)
        change = _around(c, d, x, y, first, cell, offset, cell_first, cell_nets) - old
        if change <= 0 or (heat > 0 and _draw(state, 1 << 20) < (1 << 20) * np.exp(-change / heat)):
            total += change
            continue
        _lift(c, sites, rows, grid, widths)
        if d >= 0:
            _lift(d, sites, rows, grid, widths)
            _put(d, d_at, d_row, sites, rows, x, y, grid, widths, pitch, height, left, bottom)
        _put(c, old_at, old_row, sites, rows, x, y, grid, widths, pitch, height, left, bottom)
    return begin, total
