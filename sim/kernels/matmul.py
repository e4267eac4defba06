"""Tiled matrix product: Alg. 3 for any shape and number of cores.

A step multiplies an A tile by a B tile: MTE2 loads them to L1, MTE1 to L0A and L0B, and the Cube
executes mmad. After the last step along K, the tile of C goes to global memory (``exits``): V moves
it to UB and MTE3 from there, or FIX does both. Each control flow has its own slot and uses one
register for each pair of units: the flag in one direction marks the slot as full, the flag in the
other direction as free.

References
----------
Tang 2024, Alg. 3 and §2.4.2. The printed listing has lost its indentation. Here the tests for the
first row and column guard only the loads to L1, and only if the loaded tiles can stay in L1.
"""

import numpy as np

from vitruvian.common.validate import round_up
from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import IntDotSpec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.davinci.isa.operands import dtype_bytes
from vitruvian.sim.kernels.exits import Exit
from vitruvian.sim.kernels.kernel import matrix_kind, products_need_barrier
from vitruvian.sim.kernels.layout import pack_a, pack_b, unpack_c
from vitruvian.sim.kernels.ring import Ring, SlotAccess, together
from vitruvian.sim.kernels.tiling import DTYPES, Cut, MatmulPlan, Tiling, blocks_of, choose, plan

M, MTE1, MTE2 = Unit.M, Unit.MTE1, Unit.MTE2


def operands(
    m: int, k: int, n: int, *, dtype: str = "fp16", seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return random A (m, k) and B (k, n): normal float16, or uniform int8.

    Parameters
    ----------
    dtype : {"fp16", "int8"}
    """
    rng = np.random.default_rng(seed)
    if dtype == "int8":
        a, b = (rng.integers(-128, 128, s, np.int8) for s in ((m, k), (k, n)))
        return a, b
    a, b = (rng.normal(size=s).astype(np.float16) for s in ((m, k), (k, n)))
    return a, b


def expected(a: np.ndarray, b: np.ndarray, out: str = "fp16", preset: str = "ieee") -> np.ndarray:
    """Compute C = A·B with the golden model of mmad.

    The sum along K proceeds in blocks of 32 bytes, each rounded once; the result is then converted
    to ``out``.

    Parameters
    ----------
    a, b : (m, k) and (k, n) ndarray of float16 or int8
    out : {"fp16", "fp32"}
        The dtype of C; int8 operands always give int32.
    preset : str
        The preset of the accuracy, see ``golden.machines.PRESETS``.
    """
    if a.dtype == np.int8:
        deep = round_up(a.shape[1], 32) - a.shape[1]
        left, right = np.pad(a, [(0, 0), (0, deep)]), np.pad(b, [(0, deep), (0, 0)])
        return np.asarray(mmad(left, right, spec=IntDotSpec(k=32)))
    deep = -a.shape[1] % 16
    left = np.pad(a, [(0, 0), (0, deep)]).view(np.uint16)
    right = np.pad(b, [(0, deep), (0, 0)]).view(np.uint16)
    sums = np.asarray(mmad(left, right, spec=PRESETS[preset].spec("fp16", k=16))).view(np.float32)
    # A sum beyond the range of FP16 becomes an infinity, which needs no warning.
    with np.errstate(over="ignore"):
        return sums if out == "fp32" else sums.astype(np.float16)


def result(c: np.ndarray, m: int, n: int) -> np.ndarray:
    """Return the tensor c of a program of ``build`` as an (m, n) matrix."""
    return unpack_c(c, m, n)


def build(
    m: int,
    k: int,
    n: int,
    *,
    chip: Chip | str = "ascend310",
    tiling: Tiling | None = None,
    cores: int | None = None,
    dtype: str = "fp16",
    out: str | None = None,
    data: tuple[np.ndarray, np.ndarray] | None = None,
    operation: str = "mma",
) -> Program:
    """Build C (m, n) = A (m, k) · B (k, n).

    Parameters
    ----------
    m, k, n : int
        Any positive sizes; the matrices in global memory are padded with zeros to whole fractals.
    tiling : Tiling, optional
        By default, that of ``choose``.
    cores : int, optional
        By default, all cores of the chip.
    dtype : str
        The dtype of A and B: fp16, int8, bf16, fp32, tf32, fp8e4m3, fp8e5m2, fp64 or fp32c. The
        Cubes of Ascend chips multiply the first two, cores in hardware those of their tile.
    out : str, optional
        The dtype of C: "fp16" (default) or "fp32", "int32" for int8 operands, that of the operands
        for fp64 and fp32c, and "fp32" for others.
    data : (A, B), optional
        Arrays of shapes (m, k) and (k, n); without them, only times can be computed. Numbers of
        fp64 and fp32c may be codes (uint64) or float64 and complex64; those of C are codes.
    operation : str
        As ``Core.mmad`` takes it. With another operation than "mma", k must be whole blocks, as the
        zeros of a last one would be operands.

    Returns
    -------
    Program
        Its tensors a, b and c are stored in fractals; ``result`` converts c to a matrix.

    Raises
    ------
    ValueError
        If a size, the tiling, the number of cores or a dtype is invalid.
    """
    chip = load_chip(chip) if isinstance(chip, str) else chip
    blocks = blocks_of(m, k, n, dtype)
    deep, sum_dtype, outs = DTYPES[dtype]
    out = outs[0] if out is None else out
    if out not in outs:
        raise ValueError(f"out of {dtype} must be one of {', '.join(outs)}, not {out!r}")
    if operation != "mma" and k % deep:
        raise ValueError(f"k must be a multiple of {deep} with {operation}, not {k}")
    c_bytes = dtype_bytes(out)
    kind = matrix_kind(chip)
    cores = kind.count if cores is None else cores
    if tiling is None:
        tiling = choose(chip, blocks, cores, c_bytes)
    p = plan(chip, blocks, tiling, cores, c_bytes)
    a = b = None
    if data is not None:
        a, b = data
        if a.shape != (m, k) or b.shape != (k, n):
            raise ValueError(f"data must be {m}×{k} and {k}×{n}, not {a.shape} and {b.shape}")
        if dtype in ("fp64", "fp32c"):
            a, b = (np.ascontiguousarray(x).view(np.uint64) for x in data)
        a, b = pack_a(a), pack_b(b)
    mb, kb, nb = blocks
    program = Program(chip, f"matmul {m}×{k}×{n} ({tiling})")
    x = program.tensor("a", (mb, kb, 16, deep), dtype, a)
    w = program.tensor("b", (kb, nb, 16, deep), dtype, b)
    y = program.tensor("c", (nb, mb, 16, 16), out)
    for number, part in enumerate(p.across):
        core = program.core(number, kind.name)
        _MatmulEmitter(core, p, part, (x, w, y), sum_dtype, operation).emit()
    return program


class _MatmulEmitter:
    """The emitter of the instructions of one core."""

    def __init__(
        self,
        core: Core,
        p: MatmulPlan,
        part: tuple[int, int, int, int],
        tensors: tuple[View, View, View],
        sum_dtype: str,
        operation: str = "mma",
    ) -> None:
        self.core, self.p, self.part, self.operation = core, p, part, operation
        self.x, self.w, self.y = tensors
        dtype, deep, slots = self.x.dtype, self.x.shape[3], p.tiling.b_num
        m, k, n = p.m.largest, p.k.largest, p.n.largest
        _, _, j0, j1 = part
        fractal = (16, deep)
        # A kept row of A has all blocks of K; otherwise each control flow has room for one tile.
        # Alg. 3 keeps a row of A for all columns, and all of the core's B for all rows, if L1 has
        # room.
        panel = p.k.blocks if p.keep_a else slots * k
        wide = p.n.bound(j1) - p.n.bound(j0)
        room = p.k.blocks * wide if p.keep_b else slots * k * n
        self.l1_a = core.allocate("L1", (panel * m, *fractal), dtype, "A in L1")
        self.l1_b = core.allocate("L1", (room, *fractal), dtype, "B in L1")
        self.l0a = core.allocate("L0A", (slots, m * k, *fractal), dtype, "A")
        self.l0b = core.allocate("L0B", (slots, k * n, *fractal), dtype, "B")
        self.l0c = core.allocate("L0C", (p.c_slots, m * n, 16, 16), sum_dtype, "C")

    def emit(self) -> None:
        """Emit all steps; every slot is free at first, and the end waits until all are free."""
        core, p, (i0, i1, j0, j1) = self.core, self.p, self.part
        slots = p.tiling.b_num
        self.in_l1, self.in_l0 = Ring(core, MTE2, MTE1, slots), Ring(core, MTE1, M, slots)
        self.exit = Exit(core, p.m.largest * p.n.largest * 256, self.y.dtype, p.c_slots)
        for i in range(i0, i1):
            for j in range(j0, j1):
                # One access covers all steps along K: it begins at the first and ends after the
                # last product.
                adding = self.exit.sums.write()
                for t in range(p.k.tiles):
                    self._step(i, j, t, adding)
                self._out(i, j)
        # Every slot was marked as free at first, so that a flag of each one is still set.
        for ring in (self.in_l1, self.in_l0, self.exit):
            ring.close()

    def _place(self, i: int, j: int, t: int, slot: int) -> tuple[int, int]:
        """Return the index of the first fractal of the A tile and of the B tile in L1."""
        p = self.p
        # Tiles of a kept row lie one behind the other; the tiles of a row have equal heights.
        at_a = p.k.bound(t) * p.m.size(i) if p.keep_a else slot * p.m.largest * p.k.largest
        if not p.keep_b:
            return at_a, slot * p.k.largest * p.n.largest
        first = p.n.bound(self.part[2])
        return at_a, p.k.blocks * (p.n.bound(j) - first) + p.k.bound(t) * p.n.size(j)

    def _step(self, i: int, j: int, t: int, adding: SlotAccess) -> None:
        """Emit the loads and the product of a step; ``adding`` covers all steps of a tile of C."""
        core, p, (i0, _, j0, _) = self.core, self.p, self.part
        m, k, n = p.m.size(i), p.k.size(t), p.n.size(j)
        with self.in_l1.write() as slot:
            at_a, at_b = self._place(i, j, t, slot)
            a, b = self.l1_a[at_a : at_a + m * k], self.l1_b[at_b : at_b + k * n]
            # With ``keep_a`` and ``keep_b``, only the first column loads A and only the first row B
            # (the tests of Alg. 3); afterwards the tiles are still in L1.
            if j == j0 or not p.keep_a:
                self._load(a, self.x, p.m, i, p.k, t)
            if i == i0 or not p.keep_b:
                self._load(b, self.w, p.k, t, p.n, j)
        with together(self.in_l1.read(), self.in_l0.write()) as (_, slot):
            # Reading L1 and writing L0 are one step of MTE1, hence one access to both rings.
            left, right = self.l0a[slot, : m * k], self.l0b[slot, : k * n]
            core.load(left, a)
            core.load(right, b)
        with self.in_l0.read():
            # The first step along K overwrites the accumulators, so V must have read them.
            if t == 0:
                adding.begin()
            elif products_need_barrier(m, n):
                core.pipe_barrier(M)
            c, deep = self.l0c[adding.slot], self.x.shape[3]
            init = "accumulate" if t else "zero"
            core.mmad(
                c,
                left,
                right,
                m=16 * m,
                k=deep * k,
                n=16 * n,
                init=init,
                operation=self.operation,
            )
        if t == p.k.tiles - 1:
            adding.end()

    def _load(self, dst: View, src: View, down: Cut, r: int, right: Cut, s: int) -> None:
        """Load the fractals of a tile from global memory, with a burst for each row of fractals."""
        rows = slice(down.bound(r), down.bound(r + 1))
        columns = slice(right.bound(s), right.bound(s + 1))
        part = src[rows, columns]
        self.core.copy(dst.reshape(*part.shape), part)

    def _out(self, i: int, j: int) -> None:
        """Emit the move of a tile of C to global memory."""
        p = self.p
        columns = slice(p.n.bound(j), p.n.bound(j + 1))
        rows = slice(p.m.bound(i), p.m.bound(i + 1))
        self.exit.store(self.y[columns, rows], self.l0c)
