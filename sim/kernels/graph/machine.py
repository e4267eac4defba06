"""A machine with a SIMD² unit: its matrix instructions, what they count, and any size made of them.

The low level is that of the thesis (004, Tables 3.2 and 3.3): operands are 16×16 fragments of
registers, filled from memory or with a value, combined by one instruction, and stored. The high
level, `Machine.apply`, takes matrices of any size, as the thesis' Figure 3.6 does for min-plus.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden.simd2 import Op, as_op
from golden.simd2 import mmo as golden_mmo
from golden.simd2.matrix import OPERANDS

from ..engine import Unit

__all__ = ["BACKENDS", "TILE", "Counts", "Fragment", "Machine", "padding", "register_backend"]

#: Rows, columns and depth of a matrix instruction (Table 3.2).
TILE = 16

#: Who computes: callables with the interface of `golden.simd2.mmo`.
BACKENDS: dict[str, Callable[..., Any]] = {"golden": golden_mmo}

_KINDS = ("matrixa", "matrixb", "accum")


def register_backend(name: str, mmo: Callable[..., Any]) -> None:
    """Let machines compute with ``mmo``, which has the interface of `golden.simd2.mmo`.

    If it has a method ``on(unit)``, machines call what that gives instead: a callable with the same
    parameters that returns D and the clock cycles it took on the unit.

    Raises
    ------
    TypeError
        If it cannot be called.
    """
    if not callable(mmo):
        raise TypeError(f"mmo must be a callable like golden.simd2.mmo, not {mmo!r}")
    BACKENDS[name] = mmo


@dataclass(frozen=True)
class Counts:
    """Instructions by kind.

    Attributes
    ----------
    loads, stores : int
        16×16 fragments moved: two operands for each ``mmo``, and C and D of each output tile.
    fills : int
        Fragments set to one value: C where none is given.
    mmo : int
        Matrix operations, 16×16×16 each.
    """

    loads: int = 0
    stores: int = 0
    fills: int = 0
    mmo: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.loads + other.loads,
            self.stores + other.stores,
            self.fills + other.fills,
            self.mmo + other.mmo,
        )

    @classmethod
    def of(cls, m: int, n: int, k: int, *, c: bool = True) -> "Counts":
        """Of C ⊕ (A ⊗ B) on m × k and k × n elements; without ``c``, C is filled."""
        tiles, depth = _up(m) * _up(n), _up(k)
        return cls(
            loads=tiles * (2 * depth + bool(c)),
            stores=tiles,
            fills=tiles * (not c),
            mmo=tiles * depth,
        )


def _up(size: int) -> int:
    return -(-size // TILE)


@dataclass
class Fragment:
    """16×16 elements in registers.

    Attributes
    ----------
    kind : {"matrixa", "matrixb", "accum"}
    values : (16, 16) ndarray
        Of float16, bfloat16 or float32; an accumulator is float32.
    """

    kind: str
    values: np.ndarray = field(repr=False)


def padding(op: Op) -> tuple[float, float]:
    """What fills A and B up along K, so that no bit of D changes.

    A NaN loses against every number and leaves a NaN, so it is that under min and max: ``no_edge``
    would beat a C that is NaN, and a negative product in maxmul. A sum takes in −0 · +0; a sum of
    squares is never −0, and takes in (0 − 0)².
    """
    if op.plus in ("min", "max"):
        return np.nan, np.nan
    return (-0.0, 0.0) if op is Op.MMA else (0.0, 0.0)


class Machine:
    """Computes matrix operations on a back end and counts the instructions they take.

    Parameters
    ----------
    unit : Unit
        Rows, columns and terms that it takes at a time, 4×4×4 by default; they divide 16.
        Its preset is for ``mma`` alone.
    backend : str
        A name in `BACKENDS`.
    tilewise : bool
        Let `apply` run every single instruction. The bits and the counts are the same, only slower.
    watch : callable, optional
        Called with the `Counts` of every `apply` when it is done.

    Attributes
    ----------
    counts : Counts
    clocks : int
        Clock cycles that hardware took, if hardware computed.

    Raises
    ------
    ValueError
        For a back end that is not there, or a unit whose sizes do not divide 16.
    """

    def __init__(
        self,
        unit: Unit | None = None,
        backend: str = "golden",
        *,
        tilewise: bool = False,
        watch: Callable[[Counts], None] | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(
                f"backend must be one of {', '.join(BACKENDS)}, not {backend!r} "
                "(others are added by sim.kernels.graph.register_backend)"
            )
        self.unit = unit or Unit(m=4, n=4, k=4)
        if any(TILE % size for size in (self.unit.m, self.unit.n, self.unit.k)):
            sizes = f"{self.unit.m}×{self.unit.n}×{self.unit.k}"
            raise ValueError(f"unit must have sizes that divide {TILE}, not {sizes}")
        self.backend = backend
        self.tilewise = tilewise
        self.watch = watch
        self.counts = Counts()
        self.clocks = 0

    def matrix(self, kind: str, m: int, n: int, k: int, dtype) -> Fragment:
        """Declare a fragment of an m×n×k operation; what is in it is undefined (here: zeros).

        Raises
        ------
        ValueError
            For another kind, or a shape other than 16×16×16.
        TypeError
            For a dtype that such a fragment cannot have.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
        if (m, n, k) != (TILE, TILE, TILE):
            raise ValueError(f"shape must be {TILE}×{TILE}×{TILE}, not {m}×{n}×{k}")
        dtype = np.dtype(dtype)
        allowed = (np.dtype(np.float32),) if kind == "accum" else tuple(OPERANDS)
        if dtype not in allowed:
            names = ", ".join(d.name for d in allowed)
            raise TypeError(f"dtype of {kind} must be one of {names}, not {dtype.name}")
        return Fragment(kind, np.zeros((TILE, TILE), dtype))

    def fillmatrix(self, fragment: Fragment, value: float) -> None:
        """Set all elements of a fragment to a value."""
        fragment.values[:] = value
        self.counts += Counts(fills=1)

    def loadmatrix(self, fragment: Fragment, source: np.ndarray, ld: int) -> None:
        """Load a fragment from memory: row i begins at ``source[i * ld]``.

        Raises
        ------
        ValueError
            For memory that is not one-dimensional or too short, a ``ld`` below 16.
        TypeError
            For memory of another dtype.
        """
        fragment.values[:] = _rows(source, ld, fragment)
        self.counts += Counts(loads=1)

    def storematrix(self, target: np.ndarray, fragment: Fragment, ld: int) -> None:
        """Store an accumulator to memory; see `loadmatrix`."""
        if fragment.kind != "accum":
            raise ValueError(f"fragment must be an accum to be stored, not a {fragment.kind}")
        _rows(target, ld, fragment)[:] = fragment.values
        self.counts += Counts(stores=1)

    def mmo(self, d: Fragment, a: Fragment, b: Fragment, c: Fragment, opcode: Op | str) -> None:
        """One instruction: D = C ⊕ (A ⊗ B); D may be C.

        Raises
        ------
        ValueError
            For fragments of the wrong kind, or an unknown operation.
        """
        kinds = tuple(fragment.kind for fragment in (d, a, b, c))
        if kinds != ("accum", "matrixa", "matrixb", "accum"):
            raise ValueError(
                f"fragments must be accum, matrixa, matrixb, accum, not {', '.join(kinds)}"
            )
        d.values[:] = self._compute(as_op(opcode), a.values, b.values, c.values)
        self.counts += Counts(mmo=1)

    def apply(self, op: Op | str, a: np.ndarray, b: np.ndarray, c=None) -> np.ndarray:
        """D = C ⊕ (A ⊗ B) on (M, K) and (K, N) matrices of any size; see `golden.simd2.mmo`."""
        op, before = as_op(op), self.counts
        a, b = np.asarray(a), np.asarray(b)
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(f"a and b must be matrices, not {a.shape} and {b.shape}")
        if self.tilewise:
            d = self._tiles(op, a, b, c)
        else:
            d = self._compute(op, a, b, c)
            self.counts += Counts.of(*d.shape, a.shape[1], c=c is not None)
        if self.watch:
            now = self.counts
            self.watch(
                Counts(
                    now.loads - before.loads,
                    now.stores - before.stores,
                    now.fills - before.fills,
                    now.mmo - before.mmo,
                )
            )
        return d

    def _compute(self, op, a, b, c) -> np.ndarray:
        mmo = BACKENDS[self.backend]
        settings = {"k": self.unit.k, "preset": self.unit.preset}
        if not hasattr(mmo, "on"):
            return mmo(op, a, b, c, **settings)
        d, clocks = mmo.on(self.unit)(op, a, b, c, **settings)
        self.clocks += clocks
        return d

    def _tiles(self, op, a, b, c) -> np.ndarray:
        """Figure 3.6 for each output tile."""
        (m, k), n = a.shape, b.shape[1]
        if b.shape[0] != k or a.dtype != b.dtype or (c is not None and c.shape != (m, n)):
            return golden_mmo(op, a, b, c)  # says what is wrong
        left, right = padding(op)
        one = _memory(a, left)
        other = _memory(b, right)
        add = None if c is None else _memory(np.asarray(c, np.float32), 0.0)
        wide = TILE * _up(n)
        result = np.zeros(TILE * _up(m) * wide, np.float32)
        x = self.matrix("matrixa", TILE, TILE, TILE, a.dtype)
        y = self.matrix("matrixb", TILE, TILE, TILE, a.dtype)
        z = self.matrix("accum", TILE, TILE, TILE, np.float32)
        deep = TILE * _up(k)
        for i in range(0, TILE * _up(m), TILE):
            for j in range(0, wide, TILE):
                if add is None:
                    self.fillmatrix(z, op.identity)
                else:
                    self.loadmatrix(z, add[i * wide + j :], wide)
                for t in range(0, deep, TILE):
                    self.loadmatrix(x, one[i * deep + t :], deep)
                    self.loadmatrix(y, other[t * wide + j :], wide)
                    self.mmo(z, x, y, z, op)
                self.storematrix(result[i * wide + j :], z, wide)
        return result.reshape(-1, wide)[:m, :n].copy()


def _memory(x: np.ndarray, fill: float) -> np.ndarray:
    """A matrix, filled up to whole tiles, as it lies in memory."""
    rows, columns = (TILE * _up(size) for size in x.shape)
    whole = np.full((rows, columns), fill, x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    return whole.reshape(-1)


def _rows(memory: np.ndarray, ld: int, fragment: Fragment) -> np.ndarray:
    """The (16, 16) view of memory that a fragment is moved from or to."""
    if memory.ndim != 1 or not memory.flags.c_contiguous:
        raise ValueError(f"memory must be a contiguous array of one dimension, not {memory.shape}")
    if memory.dtype != fragment.values.dtype:
        raise TypeError(
            f"memory must be {fragment.values.dtype.name} as the fragment, not {memory.dtype.name}"
        )
    needed = (TILE - 1) * ld + TILE
    if ld < TILE or memory.size < needed:
        raise ValueError(
            f"ld must be at least {TILE} and memory hold 15·ld + {TILE} elements, "
            f"not {ld} and {memory.size}"
        )
    size = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory, (TILE, TILE), (ld * size, size))
