"""A lower bound and an estimate of the time of a tiled product, for searches.

The lower bound is the largest of several that hold for every order of events:

- A unit executes its work serially. It starts when its first operands can have arrived, and after
  its last instruction the last tile still passes through the later units.
- The steps that use the same slot wait for each other, so at most ``b_num`` steps overlap.
- A bus has a limited throughput for each number of transfers. The least time of all transfers of
  all cores is the solution of a linear programme over the numbers of simultaneous transfers.
"""

import numpy as np

from vitruvian.common.extras import need
from vitruvian.sim.davinci import Chip
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.kernels.sequences import InstructionTable
from vitruvian.sim.kernels.tiling import MatmulPlan, busiest

linprog = need("scipy.optimize", "ascend").linprog

_NAMES = ("A1", "B1", "A0", "B0", "mmad", "V", "out")


def lower_bound(chip: Chip, p: MatmulPlan, dtype: str = "fp16", out: str = "fp16") -> float:
    """Return the least attoseconds that the program of a plan can take, launch included.

    Parameters
    ----------
    dtype, out : str
        The dtypes of the operands and of the result.

    Raises
    ------
    ValueError
        If each core has a bus of its own, which the linear programme does not cover.
    """
    table = InstructionTable(chip, p, dtype, out)
    timing = {x: [chip.timing(table.instructions[i]) for i in table.at[x].ravel()] for x in _NAMES}
    counts = [table.counts(part) for part in p.across]
    busy = {
        x: max(int(np.dot(c[x].ravel(), [t.period for t in timing[x]])) for c in counts)
        for x in _NAMES
    }
    # The quickest tile of each kind, as edge tiles may be smaller.
    shortest = {x: min(t.period for t in timing[x]) for x in _NAMES}
    _, _, down, right = busiest(p)
    depth, slots, c_slots = p.k.tiles, p.tiling.b_num, p.c_slots
    steps, tiles = down * right * depth, down * right
    mte2 = busy["A1"] + busy["B1"] if len(p.across) == 1 else _most(counts, timing)
    mte1 = busy["A0"] + busy["B0"]
    load, fill = shortest["A1"] + shortest["B1"], shortest["A0"] + shortest["B0"]
    leave = shortest["V"] + shortest["out"]
    first = load + fill + depth * shortest["mmad"]  # until the first tile of C is complete
    units = (
        mte2 + fill + shortest["mmad"] + leave,
        load + mte1 + shortest["mmad"] + leave,
        load + fill + busy["mmad"] + leave,
        first + busy["V"] + shortest["out"],
        first + shortest["V"] + busy["out"],
    )
    # The round trips of the slots of L0, of L1, of L0C, and of UB.
    slot_bounds = (
        load + steps * (fill + shortest["mmad"]) // slots + leave,
        (mte2 + steps * fill) // slots,
        load
        + fill
        + tiles * (depth * shortest["mmad"] + shortest["V"]) // c_slots
        + shortest["out"],
        first + tiles * leave // c_slots,
    )
    bound = float(max(*units, *slot_bounds))
    if timing["A1"][0].bus is not None and timing["A1"][0].bus == timing["out"][0].bus:
        idle = fill + shortest["mmad"] + leave + ((steps - 1) * fill if slots == 1 else 0)
        before = first + shortest["V"]
        bound = max(bound, _bus(chip, table, counts, timing, idle, before))
    return float(chip.launch_s * ATTO) + bound


def _most(counts, timing) -> int:
    """Return the largest work of MTE2 on any core, in attoseconds."""
    return max(
        sum(int(np.dot(c[x].ravel(), [t.period for t in timing[x]])) for x in ("A1", "B1"))
        for c in counts
    )


def _bus(chip: Chip, table: InstructionTable, counts, timing, idle: int, before: int) -> float:
    """Return the least attoseconds in which the bus can move the bytes of all cores.

    Each core reads at most one tile and writes at most one tile at a time. A state is a pair
    (number of cores that read, number that write), and the variables of the linear programme are
    the times spent in each state. All bytes must be moved. Every reader must be off the bus while
    it initialises and for ``idle`` after its last transfer; every writer while it initialises and
    for ``before`` its first transfer.
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
        raise ValueError(f"bus must be shared by all cores for a bound, not {bus.name}")
    alone = max(float(t.rate) for name in moved for t in timing[name]) / ATTO
    states = [(r, w) for r in range(cores + 1) for w in range(cores + 1) if r + w]
    read, write = [], []
    for r, w in states:
        share = min(float(bus.total(r + w)) / ATTO / (r + w), alone)
        read.append(share * r)
        write.append(share * w)
    unit = 1e12  # in microseconds, the coefficients of the programme are near 1
    rows = [read, write, [cores - r for r, _ in states], [cores - w for _, w in states]]
    rows = [[*row, extra] for row, extra in zip(rows, (0, 0, cores, cores), strict=True)]
    need = [
        (moved["A1"] + moved["B1"]) / unit,
        moved["out"] / unit,
        (starts["A1"] + starts["B1"] + cores * idle) / unit,
        (starts["out"] + cores * before) / unit,
    ]
    solution = linprog(np.ones(len(states) + 1), A_ub=-np.array(rows), b_ub=-np.array(need))
    return float(solution.fun) * unit if solution.success else 0.0


def estimate(chip: Chip, p: MatmulPlan, dtype: str = "fp16", out: str = "fp16") -> float:
    """Estimate the attoseconds of a plan, to order the plans of a search.

    The tiles of C pass through five stages (loads to L1, loads to L0, the Cube, V, stores). Within
    a tile, a stage starts one step after the stage before it and ends one step after it. The
    estimate assumes that all cores read at the same time, that they write while they read, and that
    all tiles have the size of the first.

    Parameters
    ----------
    dtype, out : str
        The dtypes of the operands and of the result.
    """
    table = InstructionTable(chip, p, dtype, out)
    number = {x: int(table.at[x].ravel()[0]) for x in _NAMES}
    timing = {x: chip.timing(table.instructions[i]) for x, i in number.items()}
    size = {x: table.instructions[i].work.nbytes for x, i in number.items()}
    period = {x: t.period for x, t in timing.items()}
    _, _, down, right = busiest(p)
    depth, cores, slots = p.k.tiles, len(p.across), p.tiling.b_num
    alone = both = 0.0  # attoseconds per byte and core if cores only read, and if they also write
    if timing["A1"].bus is not None and timing["A1"].bus == timing["out"].bus:
        bus = chip.buses[timing["A1"].bus]
        alone = cores / (float(bus.total(cores)) / ATTO)
        both = 2 * cores / (float(bus.total(2 * cores)) / ATTO)
    fill, mul = period["A0"] + period["B0"], period["mmad"]
    leave = [0.0] * p.c_slots  # the time at which each slot of C has left L0C
    away = [0.0] * p.c_slots  # and UB
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
