"""The programs of ``matmul`` as indices into a table, for searches that time thousands of them.

They equal the programs of ``matmul.build`` in every property that an engine reads, instruction by
instruction; a test checks this.
"""

from functools import lru_cache

import numpy as np

from vitruvian.sim.davinci import Chip, Core, Instruction, Program, Unit
from vitruvian.sim.davinci.checks.hazards import PIPELINED
from vitruvian.sim.davinci.timing.lowering import Lowered, lower_sequences
from vitruvian.sim.kernels.kernel import complete_kind
from vitruvian.sim.kernels.tiling import DTYPES, FRACTAL, Cut, MatmulPlan

V, M, MTE1, MTE2, MTE3 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3

#: Pairs of units with flags.
_PAIRS = (
    (MTE1, MTE2),
    (MTE2, MTE1),
    (M, MTE1),
    (MTE1, M),
    (V, M),
    (M, V),
    (MTE3, V),
    (V, MTE3),
)
#: The flags that mark a slot as free.
_BACK = ((MTE1, MTE2), (M, MTE1), (V, M), (MTE3, V))
_SLOTS = 8
_ABSENT = -1


@lru_cache(16)
def _flags(chip: Chip) -> tuple[Instruction, ...]:
    """Return every set_flag, then every wait_flag, then a barrier of M.

    The table has one entry for each flag, so it takes the flags one by one and not from a ``Ring``.
    A plan has at most as many slots as the chip has registers, so the entries for further registers
    are never used.
    """
    core = Program(chip).core()
    for add in (core.set_flag, core.wait_flag):
        for source, target in _PAIRS:
            for register in range(_SLOTS):
                add(source, target, register % chip.event_registers)
    core.pipe_barrier(M)
    return tuple(core.instructions)


def _set(source: Unit, target: Unit) -> int:
    return _PAIRS.index((source, target)) * _SLOTS


def _wait(source: Unit, target: Unit) -> int:
    return len(_PAIRS) * _SLOTS + _set(source, target)


#: The index of the barrier of M.
_BARRIER = 2 * len(_PAIRS) * _SLOTS


def steps_of(p: MatmulPlan) -> int:
    """Return the number of steps of the busiest core."""
    i0, i1, j0, j1 = p.across[0]
    return (i1 - i0) * (j1 - j0) * p.k.tiles


def lower_matmul(chip: Chip, p: MatmulPlan, dtype: str = "fp16", out: str = "fp16") -> Lowered:
    """Return the arrays of the program that ``matmul.build`` builds for a plan.

    Parameters
    ----------
    dtype, out : str
        The dtypes of the operands and of the result.
    """
    table = InstructionTable(chip, p, dtype, out)
    sequences = {
        (chip.kind().name, number): table.sequence(part) for number, part in enumerate(p.across)
    }
    return lower_sequences(chip, table.instructions, sequences)[0]


class InstructionTable:
    """The instructions of a plan: flags, then one instruction per operation and size of tile.

    Attributes
    ----------
    instructions : list of Instruction
    at : dict of str to (m, k, n) ndarray of int
        Indices of the instructions by name and by the size of the tile along each direction. The
        names are "A1" and "B1" (loads to L1), "A0" and "B0" (loads to L0A and L0B), "mmad", "V"
        (from L0C to UB) and "out" (to global memory).
    """

    def __init__(self, chip: Chip, p: MatmulPlan, dtype: str, out: str) -> None:
        # The table has the moves of the vector unit of the same core.
        complete_kind(chip)
        self.p = p
        self.instructions = list(_flags(chip))
        core = Program(chip).core()
        deep, sum_dtype, _ = DTYPES[dtype]
        # A cut has tiles of at most two sizes, so eight combinations describe all steps.
        sizes = [_sizes(cut) for cut in (p.m, p.k, p.n)]
        shape = tuple(len(x) for x in sizes)
        self.at = {
            name: np.full(shape, _ABSENT) for name in ("A1", "B1", "A0", "B0", "mmad", "V", "out")
        }
        # Times do not depend on addresses, so every view is at the start of its buffer.
        gm, l1 = core.view("GM", 0, (1,), dtype), core.view("L1", 0, (1,), dtype)
        a0, b0 = core.view("L0A", 0, (1,), dtype), core.view("L0B", 0, (1,), dtype)
        c0, ub = core.view("L0C", 0, (1,), sum_dtype), core.view("UB", 0, (1,), out)
        c = core.view("GM", 0, (1,), out)
        for place in np.ndindex(shape):
            m, k, n = (x[i] for x, i in zip(sizes, place, strict=True))
            self._add(core, "A1", place, core.copy, l1, gm, bursts=1, burst_bytes=m * k * FRACTAL)
            self._add(core, "B1", place, core.copy, l1, gm, bursts=1, burst_bytes=k * n * FRACTAL)
            self._add(core, "A0", place, core.load, a0, l1, repeat=m * k)
            self._add(core, "B0", place, core.load, b0, l1, repeat=k * n)
            self._add(core, "mmad", place, core.mmad, c0, a0, b0, m=16 * m, k=deep * k, n=16 * n)
            self._add(core, "V", place, core.matrix_out, ub, c0, m=16 * m, n=16 * n)
            size = m * n * 256 * ub.itemsize
            self._add(core, "out", place, core.copy, c, ub, bursts=1, burst_bytes=size)

    def _add(self, core: Core, name: str, place, method, *args, **fields) -> None:
        self.at[name][place] = len(self.instructions)
        method(*args, **fields)
        self.instructions.append(core.instructions[-1])

    def counts(self, part: tuple[int, int, int, int]) -> dict[str, np.ndarray]:
        """Return the number of times that one core executes each instruction of ``at``."""
        p, (i0, i1, j0, j1) = self.p, part
        depth = p.k.tiles
        m = np.bincount(_kind(p.m, np.arange(i0, i1)), minlength=2)
        k = np.bincount(_kind(p.k, np.arange(depth)), minlength=2)
        n = np.bincount(_kind(p.n, np.arange(j0, j1)), minlength=2)
        one = np.eye(2, dtype=np.int64)
        m_first, n_first = one[_kind(p.m, np.array(i0))], one[_kind(p.n, np.array(j0))]
        last = one[_kind(p.k, np.array(depth - 1))]
        shape = self.at["A1"].shape

        def times(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
            return np.einsum("i,j,k->ijk", x, y, z)[: shape[0], : shape[1], : shape[2]]

        steps, tiles = times(m, k, n), times(m, last, n)
        return {
            "A1": times(m, k, n_first) if p.keep_a else steps,
            "B1": times(m_first, k, n) if p.keep_b else steps,
            "A0": steps,
            "B0": steps,
            "mmad": steps,
            "V": tiles,
            "out": tiles,
        }

    def sequence(self, part: tuple[int, int, int, int]) -> np.ndarray:
        """Return the program of one core as indices into ``instructions``."""
        p, (i0, i1, j0, j1) = self.p, part
        slots, depth = p.tiling.b_num, p.k.tiles
        i, j, t = (x.ravel() for x in np.mgrid[i0:i1, j0:j1, 0:depth])
        slot = np.arange(len(i)) % slots
        c = np.arange(len(i)) // depth % p.c_slots
        first, last = t == 0, t == depth - 1
        size = tuple(_kind(cut, x) for cut, x in ((p.m, i), (p.k, t), (p.n, j)))
        at = {name: numbers[size] for name, numbers in self.at.items()}
        m, _, n = (np.array(_sizes(cut))[x] for cut, x in zip((p.m, p.k, p.n), size, strict=True))

        def only(when: np.ndarray, numbers: np.ndarray | int) -> np.ndarray:
            return np.where(when, numbers, _ABSENT)

        # A row per step, a column per instruction of the longest step; absent ones are dropped.
        columns = [
            _wait(MTE1, MTE2) + slot,
            only((j == j0) | (not p.keep_a), at["A1"]),
            only((i == i0) | (not p.keep_b), at["B1"]),
            _set(MTE2, MTE1) + slot,
            _wait(MTE2, MTE1) + slot,
            _wait(M, MTE1) + slot,
            at["A0"],
            at["B0"],
            _set(MTE1, MTE2) + slot,
            _set(MTE1, M) + slot,
            _wait(MTE1, M) + slot,
            only(first, _wait(V, M) + c),
            only(~first & (m * n < PIPELINED), _BARRIER),
            at["mmad"],
            _set(M, MTE1) + slot,
            only(last, _set(M, V) + c),
            only(last, _wait(M, V) + c),
            only(last, _wait(MTE3, V) + c),
            only(last, at["V"]),
            only(last, _set(V, M) + c),
            only(last, _set(V, MTE3) + c),
            only(last, _wait(V, MTE3) + c),
            only(last, at["out"]),
            only(last, _set(MTE3, V) + c),
        ]
        body = np.stack(columns, axis=1).ravel()
        counts = (slots, slots, p.c_slots, p.c_slots)
        registers = [(pair, r) for pair, n in zip(_BACK, counts, strict=True) for r in range(n)]
        begin = [_set(*pair) + r for pair, r in registers]
        end = [_wait(*pair) + r for pair, r in registers]
        return np.concatenate([begin, body[body != _ABSENT], end])


def _sizes(cut: Cut) -> list[int]:
    """Return the sizes of the tiles of a cut: the larger one, and the smaller one if any."""
    return sorted({cut.size(0), cut.size(cut.tiles - 1)}, reverse=True)


def _kind(cut: Cut, tile: np.ndarray) -> np.ndarray:
    """Return the index into ``_sizes`` of each tile's size."""
    extra = cut.blocks % cut.tiles
    return (tile >= extra).astype(np.int64) if extra else np.zeros_like(tile)
