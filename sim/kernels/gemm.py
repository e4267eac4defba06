"""Matrix product on the Cube cores of a 910B: base tiles in L0, several of them along K in L1.

Every core computes a part of C, base tile by base tile, row by row. L1 has some slots with
``step_k`` base tiles of A and of B each, L0A and L0B have two slots with one base tile each, and
L0C holds one tile of C, which FIX writes to global memory. A is row-major, B is stored transposed
(N, K) or not (K, N), row-major in both cases, and C is FP32 and row-major.

References
----------
The GEMM example of pto-isa (hicann): the grid of cores, base tiles, steps, double buffers, and the
load of A to L0A by Im2Col with a filter of one pixel.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, Work, load_chip
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered
from vitruvian.sim.kernels.cache import Piece, Transfer
from vitruvian.sim.kernels.kernel import products_need_barrier
from vitruvian.sim.kernels.ring import Ring, Use
from vitruvian.sim.kernels.steps import Step, cube_kind, emit_steps, lower_steps, with_misses

M, MTE1, MTE2, FIX = Unit.M, Unit.MTE1, Unit.MTE2, Unit.FIX

#: L0C holds one tile of C.
_SUMS = Use(0)


@dataclass(frozen=True)
class Blocking:
    """The division of a product among cores and into tiles.

    Attributes
    ----------
    down, across : int
        Rows and columns of the grid of cores.
    m, k, n : int
        Size of a base tile, multiples of 16.
    step_k : int
        Number of base tiles of A and of B in a slot of L1.
    slots : int
        Number of slots of L1.
    transposed : bool
        If True, B is stored as (N, K), else as (K, N).
    """

    down: int = 4
    across: int = 6
    m: int = 128
    k: int = 64
    n: int = 256
    step_k: int = 4
    slots: int = 2
    transposed: bool = True


def build(
    m: int,
    k: int,
    n: int,
    *,
    chip: Chip | str = "ascend910b",
    blocking: Blocking | None = None,
    data: tuple[np.ndarray, np.ndarray] | None = None,
    im2col: bool | None = None,
) -> Program:
    """Build C (m, n) = A (m, k) · B (k, n) with FP16 operands and an FP32 result.

    Parameters
    ----------
    m, k, n : int
        Sizes, multiples of 16; cores without a part of C have no instructions.
    blocking : Blocking, optional
    data : (A, B), optional
        float16 arrays of shapes (m, k) and (k, n); the tensor b holds B as ``blocking`` says.
    im2col : bool, optional
        If True, load A by Im2Col, which has times of its own but whose data are not computed. The
        default is True without data and False with data.

    Raises
    ------
    ValueError
        If a size is not a multiple of 16, or the blocking does not fit the chip.
    """
    chip = load_chip(chip) if isinstance(chip, str) else chip
    blocking = blocking or Blocking()
    im2col = data is None if im2col is None else im2col
    _check(m, k, n, chip, blocking)
    program = Program(chip, f"gemm {m}×{k}×{n}")
    tensors = _tensors(program, m, k, n, blocking, data)
    for index, steps in _steps(m, k, n, chip, blocking).items():
        core = program.core(index, cube_kind(chip))
        emit_steps(_GemmEmitter(core, blocking, tensors, im2col), steps)
    return program


def _tensors(
    program: Program,
    m: int,
    k: int,
    n: int,
    b: Blocking,
    data: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[View, View, View]:
    left, right = (None, None) if data is None else data
    if right is not None and b.transposed:
        right = np.ascontiguousarray(right.T)
    return (
        program.tensor("a", (m, k), "fp16", left),
        program.tensor("b", (n, k) if b.transposed else (k, n), "fp16", right),
        program.tensor("c", (m, n), "fp32"),
    )


def lower_gemm(
    m: int, k: int, n: int, *, chip: Chip, blocking: Blocking | None = None
) -> tuple[Lowered, list[CoreStream]]:
    """Lower the program of ``build`` without data; each distinct step is built only once.

    Parameters
    ----------
    blocking : Blocking, optional
        All as in ``build``.

    Raises
    ------
    ValueError
        As in ``build``.
    """
    blocking = blocking or Blocking()
    _check(m, k, n, chip, blocking)
    program = Program(chip, f"gemm {m}×{k}×{n}")
    core = program.core(0, cube_kind(chip))
    body = _GemmEmitter(core, blocking, _tensors(program, m, k, n, blocking), True)
    return lower_steps(chip, body, _steps(m, k, n, chip, blocking))


def _check(m: int, k: int, n: int, chip: Chip, b: Blocking) -> None:
    for name, size in (("M", m), ("K", k), ("N", n), ("m", b.m), ("k", b.k), ("n", b.n)):
        if size < 1 or size % 16:
            raise ValueError(f"{name} must be a multiple of 16, not {size!r}")
    kind = chip.kind(cube_kind(chip))
    if min(b.down, b.across, b.step_k, b.slots) < 1 or b.down * b.across > kind.count:
        raise ValueError(f"grid must have 1 … {kind.count} cores, not {b.down}×{b.across}")
    # The slots in L1 (FP16), two in L0A and L0B (FP16), one in L0C (FP32); see the module.
    need = {
        "L1": b.slots * b.step_k * b.k * (b.m + b.n) * 2,
        "L0A": 4 * b.m * b.k,
        "L0B": 4 * b.k * b.n,
        "L0C": 4 * b.m * b.n,
    }
    for name, nbytes in need.items():
        room = kind.buffers[name].nbytes
        if nbytes > room:
            raise ValueError(f"base tiles must fit the {room} bytes of {name}, not take {nbytes}")


def _parts(m: int, n: int, b: Blocking) -> list[tuple[range, range]]:
    """Return the rows and columns of C of each core, in whole blocks of 16."""
    # Blocks are multiplied before they are divided, so that parts differ by one block at most.
    rows = [m // 16 * i // b.down * 16 for i in range(b.down + 1)]
    columns = [n // 16 * j // b.across * 16 for j in range(b.across + 1)]
    return [
        (range(rows[i], rows[i + 1]), range(columns[j], columns[j + 1]))
        for i in range(b.down)
        for j in range(b.across)
    ]


@dataclass(frozen=True, kw_only=True)
class _GemmStep(Step):
    """A step: the load of tiles of A and B to L1, and all products computed from them."""

    i: int
    j: int
    at: int  # first column of A
    rows: int
    columns: int
    depth: int
    slot: int
    parity: int  # L0 slot of the first product
    first: bool
    last: bool

    @property
    def key(self) -> tuple:
        """All properties that affect the times of the step."""
        return (
            self.rows,
            self.columns,
            self.depth,
            self.slot,
            self.parity,
            self.first,
            self.last,
            self.missed,
        )

    @property
    def loads(self) -> Sequence[Transfer]:
        """The pieces of A and of B."""
        a, b = 2 * self.rows * self.depth, 2 * self.columns * self.depth
        return [[(("a", self.i, self.at), a)], [(("b", self.j, self.at), b)]]

    @property
    def stores(self) -> Sequence[Piece]:
        """The tile of C, after the last step."""
        return [(("c", self.i, self.j), 4 * self.rows * self.columns)] if self.last else []


def _steps(m: int, k: int, n: int, chip: Chip, b: Blocking) -> dict[int, list[_GemmStep]]:
    """Return the steps of each core that has a part of C, by the index of the core."""
    parts = {
        index: list(_part_steps(rows, columns, k, b))
        for index, (rows, columns) in enumerate(_parts(m, n, b))
        if rows and columns
    }
    return with_misses(chip, parts)


def _part_steps(rows: range, columns: range, k: int, b: Blocking) -> Iterator[_GemmStep]:
    """Yield all steps of a core's part of C."""
    count, products = 0, 0
    deep = b.k * b.step_k
    for i in range(rows.start, rows.stop, b.m):
        for j in range(columns.start, columns.stop, b.n):
            for at in range(0, k, deep):
                depth = min(deep, k - at)
                yield _GemmStep(
                    i=i,
                    j=j,
                    at=at,
                    rows=min(b.m, rows.stop - i),
                    columns=min(b.n, columns.stop - j),
                    depth=depth,
                    slot=count % b.slots,
                    parity=products % 2,
                    first=at == 0,
                    last=at + depth == k,
                )
                count += 1
                products += ceil_div(depth, b.k)


class _GemmEmitter:
    """The emitter of the instructions of one core."""

    def __init__(
        self, core: Core, blocking: Blocking, tensors: tuple[View, View, View], im2col: bool
    ) -> None:
        self.core, self.b, self.im2col = core, blocking, im2col
        self.x, self.w, self.y = tensors
        b, deep = blocking, blocking.k * blocking.step_k
        self.a1 = [core.allocate("L1", (b.m * deep,), "fp16", "A in L1") for _ in range(b.slots)]
        self.b1 = [core.allocate("L1", (b.n * deep,), "fp16", "B in L1") for _ in range(b.slots)]
        self.a0 = [core.allocate("L0A", (b.m * b.k,), "fp16", "A") for _ in "01"]
        self.b0 = [core.allocate("L0B", (b.k * b.n,), "fp16", "B") for _ in "01"]
        self.c0 = core.allocate("L0C", (b.m * b.n,), "fp32", "C")

    def begin(self) -> None:
        """Mark every slot as free."""
        core = self.core
        self.in_l1, self.in_l0 = Ring(core, MTE2, MTE1, self.b.slots), Ring(core, MTE1, M)
        self.sums = Ring(core, M, FIX, 1)

    def end(self) -> None:
        """Wait until every slot is free."""
        for ring in (self.in_l1, self.in_l0, self.sums):
            ring.close()

    def step(self, s: _GemmStep) -> None:
        """Emit the loads and products of a step, and the store of C after the last step."""
        # ``lower_gemm`` emits each distinct step once, so that a step says itself which slots it
        # uses.
        core, use = self.core, Use(s.slot)
        a1 = self.a1[s.slot][: s.rows * s.depth]
        b1 = self.b1[s.slot][: s.columns * s.depth]
        depth, columns = slice(s.at, s.at + s.depth), slice(s.j, s.j + s.columns)
        w = self.w[columns, depth] if self.b.transposed else self.w[depth, columns]
        with self.in_l1.write(use):
            core.nd2nz(a1, self.x[s.i : s.i + s.rows, depth], missed=s.missed[0])
            core.nd2nz(b1, w, missed=s.missed[1])
        self.in_l1.read(use).begin()
        for number, at in enumerate(range(0, s.depth, self.b.k)):
            self._product(s, a1, b1, at, Use((s.parity + number) % 2))
        if s.last:
            self.sums.write(_SUMS).end()
            with self.sums.read(_SUMS):
                c = self.y[s.i : s.i + s.rows, s.j : s.j + s.columns]
                m, n, stride = s.rows, s.columns, self.y.strides[0]
                core.matrix_out(c, self.c0, m=m, n=n, layout="nd", dst_stride=stride)

    def _product(self, s: _GemmStep, a1: View, b1: View, at: int, use: Use) -> None:
        """Emit one product with its loads to L0."""
        core, depth = self.core, min(self.b.k, s.depth - at)
        a0, b0 = self.a0[use.slot], self.b0[use.slot]
        with self.in_l0.write(use):
            self._load(s, a0, a1, at, depth)
            self._load_b(s, b0, b1, at, depth)
            if at + depth == s.depth:  # the last product of the step has read the slot in L1
                self.in_l1.read(Use(s.slot)).end()
        with self.in_l0.read(use):
            # The first product of a tile of C overwrites L0C, so FIX must have read the previous
            # tile.
            begins = s.first and at == 0
            if begins:
                self.sums.write(_SUMS).begin()
            elif products_need_barrier(s.rows // 16, s.columns // 16):
                core.pipe_barrier(M)
            init = "zero" if begins else "accumulate"
            core.mmad(self.c0, a0, b0, m=s.rows, k=depth, n=s.columns, init=init)

    def _load_b(self, s: _GemmStep, b0: View, b1: View, at: int, depth: int) -> None:
        """Emit the load of a base tile of B to L0B."""
        if self.b.transposed:
            self.core.load(b0, b1[at * s.columns :], repeat=s.columns * depth // 256)
            return
        # L1 holds columns of fractals, L0B rows of transposed fractals: load one row at a time.
        for row in range(depth // 16):
            part = b1[(at // 16 + row) * 256 :]
            step, count = s.depth // 16 * 512, s.columns // 16
            place = b0[row * count * 256 :]
            self.core.load(place, part, repeat=count, src_stride=step, transpose=True)

    def _load(self, s: _GemmStep, a0: View, a1: View, at: int, depth: int) -> None:
        """Emit the load of a base tile of A to L0A."""
        core = self.core
        if self.im2col:
            # The second form of the instruction, m × k elements at a time, has no builder method.
            core.add(
                MTE1,
                "im2col",
                operands={"dst": a0, "src": a1},
                reads=(a1.span,),
                writes=(a0[: s.rows * depth].span,),
                path="L1->L0A",
                work=Work(nbytes=2 * s.rows * depth, repeats=s.rows * depth // 256),
            )
        else:
            # L1 holds columns of fractals, L0A rows of fractals: load one column at a time.
            for column in range(depth // 16):
                part = a1[(at // 16 + column) * s.rows * 16 :]
                step = depth // 16 * 512
                core.load(a0[column * 256 :], part, repeat=s.rows // 16, dst_stride=step)
