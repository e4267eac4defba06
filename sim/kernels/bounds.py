"""What a tiled product takes at least, without running it: a bound for searches.

Each bound is one that no order of events beats. A unit does its work one after the other, begins
when its first operands can be there, and the last tile has its way to go after it. The steps of one
slot wait for each other, so b_num slots do at most so many at a time. A bus gives so much to so
many transfers: how long the transfers of all cores take at least is a linear programme over how
many of them run at once.
"""

import numpy as np
from scipy.optimize import linprog

from vitruvian.sim.davinci import Chip
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.kernels.sequences import Table
from vitruvian.sim.kernels.tiling import Plan, busiest

__all__ = ["estimate", "lower_bound"]

_NAMES = ("A1", "B1", "A0", "B0", "mmad", "V", "out")


def lower_bound(chip: Chip, p: Plan, dtype: str = "fp16", out: str = "fp16") -> float:
    """Attoseconds that the program of a plan takes at least, launch included."""
    table = Table(chip, p, dtype, out)
    timing = {x: [chip.timing(table.instructions[i]) for i in table.at[x].ravel()] for x in _NAMES}
    counts = [table.counts(part) for part in p.across]
    busy = {
        x: max(int(np.dot(c[x].ravel(), [t.period for t in timing[x]])) for c in counts)
        for x in _NAMES
    }
    # Of one tile, the quickest there is.
    least = {x: min(t.period for t in timing[x]) for x in _NAMES}
    _, _, down, right = busiest(p)
    depth, slots, c_slots = p.k.tiles, p.tiling.b_num, p.c_slots
    steps, tiles = down * right * depth, down * right
    mte2 = busy["A1"] + busy["B1"] if len(p.across) == 1 else _most(counts, timing)
    mte1 = busy["A0"] + busy["B0"]
    load, fill = least["A1"] + least["B1"], least["A0"] + least["B0"]
    leave = least["V"] + least["out"]
    first = load + fill + depth * least["mmad"]  # until the first tile of C is complete
    units = (
        mte2 + fill + least["mmad"] + leave,
        load + mte1 + least["mmad"] + leave,
        load + fill + busy["mmad"] + leave,
        first + busy["V"] + least["out"],
        first + least["V"] + busy["out"],
    )
    rings = (
        load + steps * (fill + least["mmad"]) // slots + leave,
        (mte2 + steps * fill) // slots,
        load + fill + tiles * (depth * least["mmad"] + least["V"]) // c_slots + least["out"],
        first + tiles * leave // c_slots,
    )
    bound = float(max(*units, *rings))
    if timing["A1"][0].bus is not None and timing["A1"][0].bus == timing["out"][0].bus:
        idle = fill + least["mmad"] + leave + ((steps - 1) * fill if slots == 1 else 0)
        before = first + least["V"]
        bound = max(bound, _bus(chip, table, counts, timing, idle, before))
    return float(chip.launch_s * ATTO) + bound


def _most(counts, timing) -> int:
    """MTE2's work on the core that has the most of it."""
    return max(
        sum(int(np.dot(c[x].ravel(), [t.period for t in timing[x]])) for x in ("A1", "B1"))
        for c in counts
    )


def _bus(chip: Chip, table: Table, counts, timing, idle: int, before: int) -> float:
    """The least time in which all bytes pass, each core reading and writing at most one at a time.

    A state is how many read and how many write; its time is unknown. All bytes must have passed,
    and every core's reader (its writer) is off the bus while it initialises, and for ``idle`` after
    its last transfer (``before`` its first).
    """
    bus = chip.buses[timing["A1"][0].bus]
    cores = len(counts)
    moved = {"A1": 0, "B1": 0, "out": 0}
    starts = dict.fromkeys(moved, 0)
    for name in moved:
        for c in counts:
            size = [table.instructions[i].work.nbytes for i in table.at[name].ravel()]
            moved[name] += int(np.dot(c[name].ravel(), size))
            starts[name] += int(np.dot(c[name].ravel(), [t.init for t in timing[name]]))
    if bus.per_core:
        raise ValueError(f"bus of a bound must be shared by all cores, not {bus.name}")
    alone = max(float(t.rate) for name in moved for t in timing[name]) / ATTO
    states = [(r, w) for r in range(cores + 1) for w in range(cores + 1) if r + w]
    read, write = [], []
    for r, w in states:
        share = min(float(bus.total(r + w)) / ATTO / (r + w), alone)
        read.append(share * r)
        write.append(share * w)
    unit = 1e12  # microseconds keep the numbers of the programme near 1
    rows = [read, write, [cores - r for r, _ in states], [cores - w for _, w in states]]
    rows = [[*row, extra] for row, extra in zip(rows, (0, 0, cores, cores), strict=True)]
    need = [
        (moved["A1"] + moved["B1"]) / unit,
        moved["out"] / unit,
        (starts["A1"] + starts["B1"] + cores * idle) / unit,
        (starts["out"] + cores * before) / unit,
    ]
    found = linprog(np.ones(len(states) + 1), A_ub=-np.array(rows), b_ub=-np.array(need))
    return float(found.fun) * unit if found.success else 0.0


def estimate(chip: Chip, p: Plan, dtype: str = "fp16", out: str = "fp16") -> float:
    """Attoseconds about, for an order in which to try: tile after tile of C through five stages.

    Within a tile, a stage begins a step after the one before it and ends a step after it. All cores
    are taken to read at once, and to write while they read; tiles to be all of the first's size.
    """
    table = Table(chip, p, dtype, out)
    number = {x: int(table.at[x].ravel()[0]) for x in _NAMES}
    timing = {x: chip.timing(table.instructions[i]) for x, i in number.items()}
    size = {x: table.instructions[i].work.nbytes for x, i in number.items()}
    period = {x: t.period for x, t in timing.items()}
    _, _, down, right = busiest(p)
    depth, cores, slots = p.k.tiles, len(p.across), p.tiling.b_num
    alone = both = 0.0
    if timing["A1"].bus is not None and timing["A1"].bus == timing["out"].bus:
        bus = chip.buses[timing["A1"].bus]
        alone = cores / (float(bus.total(cores)) / ATTO)
        both = 2 * cores / (float(bus.total(2 * cores)) / ATTO)
    fill, mul = period["A0"] + period["B0"], period["mmad"]
    leave = [0.0] * p.c_slots  # when each slot of C has left L0C, and UB
    away = [0.0] * p.c_slots
    loaded = filled = made = left = written = 0.0
    for tile in range(down * right):
        i, j, c = tile // right, tile % right, tile % p.c_slots
        a = depth if j == 0 or not p.keep_a else 0
        b = depth if i == 0 or not p.keep_b else 0
        read = a * size["A1"] + b * size["B1"]
        shared = min(read, size["out"]) if tile else 0
        load = max(
            shared * both + (read - shared) * alone, a * timing["A1"].data + b * timing["B1"].data
        )
        load += a * timing["A1"].init + b * timing["B1"].init
        load += (depth - 1) * fill if slots == 1 else 0
        step = load / depth
        begin = max(loaded, filled - (slots - 1) * fill, 0.0)
        loaded = begin + load
        start = max(filled, begin + step, made - (slots - 1) * mul)
        filled = max(start + depth * fill, loaded + fill)
        if slots == 1:
            filled = max(filled, start + depth * fill + (depth - 1) * mul)
        first = max(made, start + fill, leave[c])
        made = max(first + depth * mul, filled + mul)
        left = leave[c] = max(left, made, away[c]) + period["V"]
        write = timing["out"].data
        if both:
            write = max(write, size["out"] * (both if left < loaded else alone))
        written = away[c] = max(written, left) + timing["out"].init + write
    return float(chip.launch_s * ATTO) + written
