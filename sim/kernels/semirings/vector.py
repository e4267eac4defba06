"""A product over a semiring on the vector unit: D (m, n) = A (m, k) ⊗ B (k, n), one tile at a time.

A term of a tile needs one instruction for ⊗ and one for ⊕, on whole repeats: ``vbrcb`` fills a
block with each element of a column of A, and strides of 0 let 128 rows use the same row of B. So
an instruction has 128 repeats, and neither the scalar unit nor the start of an instruction limits
the kernel. ⊗ of a step stands before ⊕ of the step before it, in another buffer, so that one
barrier is enough for both. Sums are multiply-adds and need no instruction for ⊗.

The global memory holds A transposed, which is the order that ``vbrcb`` reads.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vitruvian.golden.simd2 import Op, as_op, mmo
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View
from vitruvian.sim.davinci.isa.lanes import ALL, prefix
from vitruvian.sim.davinci.timing.engine import run
from vitruvian.sim.kernels.kernel import vector_kind
from vitruvian.sim.kernels.ring import Ring, Use
from vitruvian.sim.kernels.steps import lower_steps

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Most rows of a tile, terms that are loaded at once, and terms whose A is spread at once.
ROWS, DEPTH, SPREAD = 128, 16, 4
#: Bytes of a row of a tile of D; sums, which need no buffers for ⊗, have twice as many.
ROW_BYTES = 512
_BLOCK, _REPEAT = 32, 256
#: Bytes of the Unified Buffer that tiles of ``ROWS`` rows need.
_ROOM = 1 << 18
#: The result of each tile has one buffer.
_DONE = Use(0)

#: Instructions for ⊗ and ⊕; the matrix product has no instruction for ⊗.
_INSTRUCTIONS = {
    Op.MMA: ("", "vmla"),
    Op.MINPLUS: ("vadd", "vmin"),
    Op.MAXPLUS: ("vadd", "vmax"),
    Op.MINMUL: ("vmul", "vmin"),
    Op.MAXMUL: ("vmul", "vmax"),
    Op.MINMAX: ("vmax", "vmin"),
    Op.MAXMIN: ("vmin", "vmax"),
    Op.ORAND: ("vand", "vor"),
    Op.ADDNORM: ("vsub", "vmla"),
}
_SELECTING = ("min", "max", "and")


def instructions_per_term(op: Op | str) -> int:
    """Return the number of vector instructions that a lane executes for a term."""
    return sum(bool(name) for name in _INSTRUCTIONS[as_op(op)])


def lane_dtype(op: Op | str, out: str = "fp16") -> str:
    """Return the dtype of the lanes for results in ``out``.

    FP16 lanes are exact where ⊗ selects an operand. Where ⊕ is a minimum or a maximum and the
    result is FP16, they are exact, too: rounding keeps the order, so the minimum of the rounded
    terms is the rounded minimum.

    Raises
    ------
    ValueError
        If a sum is to be FP16, or the result of a selection FP32.
    """
    op = as_op(op)
    allowed = ("fp32",) if op.plus == "add" else ("fp16",)
    if op.plus != "add" and op.times not in _SELECTING:
        allowed = ("fp16", "fp32")
    if out not in allowed:
        raise ValueError(f"out of {op.mnemonic} must be {' or '.join(allowed)}, not {out!r}")
    return out


def default_out(op: Op | str) -> str:
    """Return the narrowest dtype of the results."""
    return "fp32" if as_op(op).plus == "add" else "fp16"


def expected(op: Op | str, a: np.ndarray, b: np.ndarray, out: str) -> np.ndarray:
    """Return A ⊗ B as the vector unit computes it: golden, with one term in each sum."""
    d = mmo(op, a, b, k=1)
    with np.errstate(over="ignore"):
        return d if out == "fp32" else d.astype(np.float16)


@dataclass(frozen=True)
class _Tile:
    """A step of a tile: ``DEPTH`` terms or fewer of all its elements.

    Attributes
    ----------
    i, j, at : int
        First row, column and term.
    rows, columns, depth : int
    slot : int
        Slot of the operands.
    """

    i: int
    j: int
    at: int
    rows: int
    columns: int
    depth: int
    slot: int
    first: bool
    last: bool

    @property
    def key(self) -> tuple:
        """All properties that affect times."""
        return self.rows, self.columns, self.depth, self.slot, self.first, self.last


class _Emitter:
    """The emitter of the instructions of one core."""

    def __init__(self, core: Core, op: Op, tensors: tuple[View, View, View]) -> None:
        self.core, self.op = core, op
        self.times, self.plus = _INSTRUCTIONS[op]
        self.at, self.b, self.d = tensors
        operand, self.dtype = self.at.dtype, self.d.dtype
        width = self.d.itemsize
        self.per_block = _BLOCK // width
        self.lanes = _REPEAT // width
        self.columns = ROW_BYTES // width * (1 if self.times else 2)
        self.wide = self.dtype != operand
        # Vector cores of the 910B have less memory, and half of the rows.
        self.rows = ROWS if core.kind.buffers["UB"].nbytes >= _ROOM else ROWS // 2
        sides = {"A": (DEPTH, self.rows), "B": (DEPTH, self.columns)}

        def operands_of(dtype: str) -> list[View]:
            return [core.allocate("UB", shape, dtype, name) for name, shape in sides.items()]

        self.raw = [operands_of(operand) for _ in "01"]
        self.operands = operands_of(self.dtype) if self.wide else []
        self.spread = [
            core.allocate("UB", (SPREAD, self.rows, self.per_block), self.dtype, "spread A")
            for _ in "01"
        ]
        size = (self.rows, self.columns)
        self.sums = core.allocate("UB", size, self.dtype, "D")
        self.terms = [
            core.allocate("UB", size, self.dtype, "terms") for _ in ("01" if self.times else "")
        ]

    def begin(self) -> None:
        """Mark every slot as free."""
        self.loads = Ring(self.core, MTE2, V)
        self.done = Ring(self.core, V, MTE3, 1)

    def end(self) -> None:
        """Wait until every slot is free."""
        self.loads.close()
        self.done.close()

    def steps(self, m: int, k: int, n: int) -> Iterator[_Tile]:
        """Yield the steps of all tiles."""
        count = 0
        for i in range(0, m, self.rows):
            for j in range(0, n, self.columns):
                for at in range(0, k, DEPTH):
                    yield _Tile(
                        i=i,
                        j=j,
                        at=at,
                        rows=min(self.rows, m - i),
                        columns=min(self.columns, n - j),
                        depth=min(DEPTH, k - at),
                        slot=count % 2,
                        first=at == 0,
                        last=at + DEPTH >= k,
                    )
                    count += 1

    def step(self, s: _Tile) -> None:
        """Emit the loads and the terms of a step, and the store of D after the last one."""
        core, use = self.core, Use(s.slot)
        a, b = (
            view.reshape(view.size)[: s.depth * width].reshape(s.depth, width)
            for view, width in zip(self.raw[s.slot], (s.rows, s.columns), strict=True)
        )
        with self.loads.write(use):
            core.copy(a, self.at[s.at : s.at + s.depth, s.i : s.i + s.rows])
            core.copy(b, self.b[s.at : s.at + s.depth, s.j : s.j + s.columns])
        self.loads.read(use).begin()
        if s.first:
            self.done.write(_DONE).begin()
            self._clear(s)
        if self.wide:
            a, b = self._widen(a, b)
            self.loads.read(use).end()
        self._spread(s, a, 0)
        core.pipe_barrier(V)
        # Steps have an even number of terms, so the last ones of the step before wait in buffer 1.
        waiting = 1 if self.times and not s.first else None
        for t in range(s.depth):
            if t % SPREAD == 0 and t + SPREAD < s.depth:
                self._spread(s, a, t + SPREAD)
            waiting = self._term(s, b, t, waiting)
            core.pipe_barrier(V)
        if not self.wide:
            self.loads.read(use).end()
        if s.last:
            if waiting is not None:
                self._add(s, waiting)
            self._store(s)

    def _clear(self, s: _Tile) -> None:
        """Set D to 0 if ⊕ is +; otherwise the first term is D."""
        if self.op.plus == "add":
            self.core.vdup(self.sums.reshape(self.sums.size)[: s.rows * s.columns], 0.0)

    def _widen(self, *raw: View) -> list[View]:
        """Convert the operands to the dtype of the lanes."""
        wide = []
        for view, source in zip(self.operands, raw, strict=True):
            target = view.reshape(view.size)[: source.size]
            self.core.vconv(target, source.reshape(source.size))
            wide.append(target.reshape(*source.shape))
        self.core.pipe_barrier(V)
        return wide

    def _spread(self, s: _Tile, a: View, t: int) -> None:
        """Fill a block with each element of some columns of A."""
        count = min(SPREAD, s.depth - t)
        target = self.spread[t // SPREAD % 2]
        self.core.vbrcb(target, a[t : t + count], repeat=count * s.rows // 8)

    def _term(self, s: _Tile, b: View, t: int, waiting: int | None) -> int | None:
        """Emit ⊗ of term t and ⊕ of the buffer that waits; return the buffer that waits then."""
        name, target, written = self.plus, self.sums, None
        if self.times:
            name = self.times
            # The first term of a tile is its D, unless squares are still to be added.
            if not s.first or t or self.op.plus == "add":
                target, written = self.terms[t % 2], t % 2
        a = self.spread[t // SPREAD % 2]
        block = a.reshape(a.size)[t % SPREAD * s.rows * self.per_block :]
        # Every row has its own block of A, and all rows the same row of B.
        strides = {"dst": (1, s.columns // self.per_block), "src0": (0, 1), "src1": (1, 0)}
        for at in range(0, s.columns, self.lanes):
            operands = {"src0": block, "src1": b[t, at:]}
            self._emit(name, target, operands, s.rows, at, strides)
        if waiting is not None:
            self._add(s, waiting)
        return written

    def _add(self, s: _Tile, number: int) -> None:
        """Emit ⊕ of a buffer of terms."""
        row = s.columns // self.per_block
        terms = self.terms[number].reshape(self.terms[number].size)
        for at in range(0, s.columns, self.lanes):
            sums = self.sums.reshape(self.sums.size)[at:]
            # addnorm adds the square of the difference.
            first = terms[at:] if self.op is Op.ADDNORM else sums
            operands = {"src0": first, "src1": terms[at:]}
            strides = dict.fromkeys(("dst", "src0", "src1"), (1, row))
            self._emit(self.plus, self.sums, operands, s.rows, at, strides)

    def _emit(self, name: str, target: View, operands: dict, rows: int, at: int, strides) -> None:
        """Emit an instruction on the lanes from a column on, with a repeat for each row."""
        dst = target.reshape(target.size)[at:]
        count = strides["dst"][1] * self.per_block - at
        mask = prefix(count) if count < self.lanes else ALL
        self.core.vector(name, {"dst": dst, **operands}, repeat=rows, mask=mask, strides=strides)

    def _store(self, s: _Tile) -> None:
        """Emit the move of D to global memory."""
        self.done.write(_DONE).end()
        with self.done.read(_DONE):
            part = self.d[s.i : s.i + s.rows, s.j : s.j + s.columns]
            tile = self.sums.reshape(self.sums.size)[: s.rows * s.columns]
            self.core.copy(part, tile.reshape(s.rows, s.columns))


def _check(m: int, k: int, n: int) -> None:
    for name, size, unit in (("m", m, 16), ("k", k, SPREAD), ("n", n, 16)):
        if size < 1 or size % unit:
            raise ValueError(f"{name} must be a multiple of {unit}, not {size!r}")


def _program(
    op: Op | str, m: int, k: int, n: int, chip: Chip, out: str, data=None
) -> tuple[Program, _Emitter]:
    op = as_op(op)
    dtype = "uint16" if out == "bits" and op is Op.ORAND else lane_dtype(op, out)
    _check(m, k, n)
    operand = "uint16" if out == "bits" else "fp16"
    program = Program(chip, f"{op.mnemonic} {m}×{k}×{n} on the vector unit")
    a, b = (None, None) if data is None else (np.ascontiguousarray(data[0].T), data[1])
    at = program.tensor("a", (k, m), operand, a)
    tensors = at, program.tensor("b", (k, n), operand, b), program.tensor("d", (m, n), dtype)
    return program, _Emitter(program.core(0, vector_kind(chip).name), op, tensors)


def build(
    op: Op | str,
    m: int,
    k: int,
    n: int,
    *,
    chip: Chip,
    out: str | None = None,
    data: tuple[np.ndarray, np.ndarray] | None = None,
) -> Program:
    """Build D (m, n) = A (m, k) ⊗ B (k, n) on one core.

    Parameters
    ----------
    m, k, n : int
        Multiples of 16, 4 and 16. Repeats are full if n is a multiple of the lanes: 64 in FP32,
        128 otherwise.
    out : {"fp16", "fp32", "bits"}, optional
        The dtype of D, by default ``default_out``. With "bits", which ``orand`` alone has, an
        element of B and of D is 16 elements of a row, and one of A is 0 or 0xFFFF.
    data : (A, B), optional
        float16 arrays, or uint16 for bits; without them, only times can be computed.

    Raises
    ------
    ValueError
        If a size or ``out`` is not allowed.
    """
    program, body = _program(op, m, k, n, chip, out or default_out(op), data)
    body.begin()
    for step in body.steps(m, k, n):
        body.step(step)
    body.end()
    return program


def seconds(op: Op | str, m: int, k: int, n: int, *, chip: Chip, out: str | None = None) -> float:
    """Return the seconds of ``build``'s program, launch included; each distinct step is built once.

    Parameters
    ----------
    op, m, k, n, chip, out
        See ``build``.
    """
    program, body = _program(op, m, k, n, chip, out or default_out(op))
    times = run(lower_steps(program.chip, body, {0: list(body.steps(m, k, n))})[0])
    return times.total * 1e-18
