"""A machine with a SIMD² unit: its matrix instructions, what they count, and any size made of them.

The low level is that of Zhang 2024 (Tables 3.2 and 3.3): operands are fragments of registers,
filled from memory or with a value, combined by one instruction, and stored. The high level,
`Machine.apply`, takes matrices of any size, as the thesis' Figure 3.6 does for min-plus.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op, as_op
from vitruvian.golden.simd2 import mmo as golden_mmo
from vitruvian.golden.simd2 import mmo_sparse as golden_mmo_sparse
from vitruvian.golden.simd2.matrix import OPERANDS, SQUARES
from vitruvian.sim.matrix_unit import Unit
from vitruvian.validate import one_of

from .backends import BACKENDS, SPARSE_BACKENDS
from .instructions import DEEP, KINDS, TILE, Counts, Fragment, tiles

__all__ = ["Machine", "padding"]


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
    squares : {"differences", "products"}, optional
        How ``addnorm`` makes its terms, see `golden.simd2.mmo`; by default as the back end does.
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
        For a back end or squares that are not there, or a unit whose sizes do not divide 16.
    """

    def __init__(
        self,
        unit: Unit | None = None,
        backend: str = "golden",
        *,
        squares: str | None = None,
        tilewise: bool = False,
        watch: Callable[[Counts], None] | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(
                f"backend must be one of {', '.join(BACKENDS)}, not {backend!r} "
                "(others are added by sim.simd2.register_backend)"
            )
        self.unit = unit or Unit(m=4, n=4, k=4)
        if any(TILE % size for size in (self.unit.m, self.unit.n, self.unit.k)):
            sizes = f"{self.unit.m}×{self.unit.n}×{self.unit.k}"
            raise ValueError(f"unit must have sizes that divide {TILE}, not {sizes}")
        if squares is not None and squares not in SQUARES:
            raise ValueError(f"squares must be one of {', '.join(SQUARES)}, not {squares!r}")
        self.backend = backend
        self.squares = squares
        self.tilewise = tilewise
        self.watch = watch
        self.counts = Counts()
        self.clocks = 0

    def matrix(self, kind: str, m: int, n: int, k: int, dtype) -> Fragment:
        """Declare a fragment of an m×n×k operation; what is in it is undefined (here: zeros).

        With k = 32, ``matrixa`` is compressed 2:4: 16×16 values and their indices.

        Raises
        ------
        ValueError
            For another kind, or a shape other than 16×16×16 and 16×16×32.
        TypeError
            For a dtype that such a fragment cannot have.
        """
        one_of("kind", kind, KINDS)
        if (m, n) != (TILE, TILE) or k not in (TILE, DEEP):
            shapes = f"{TILE}×{TILE}×{TILE} or {TILE}×{TILE}×{DEEP}"
            raise ValueError(f"shape must be {shapes}, not {m}×{n}×{k}")
        dtype = np.dtype(dtype)
        allowed = (np.dtype(np.float32),) if kind == "accum" else tuple(OPERANDS)
        if dtype not in allowed:
            names = ", ".join(d.name for d in allowed)
            raise TypeError(f"dtype of {kind} must be one of {names}, not {dtype.name}")
        fragment = Fragment(kind, k, np.zeros((k if kind == "matrixb" else TILE, TILE), dtype))
        if kind == "matrixa" and k == DEEP:
            fragment.indices = np.tile(np.array([0, 1], np.uint8), (TILE, TILE // 2))
        return fragment

    def fillmatrix(self, fragment: Fragment, value: float) -> None:
        """Set all elements of a fragment to a value."""
        fragment.values[:] = value
        self.counts += Counts(fills=len(fragment.values) // TILE)

    def loadmatrix(
        self, fragment: Fragment, source: np.ndarray, ld: int, indices: np.ndarray | None = None
    ) -> None:
        """Load a fragment from memory: row i begins at ``source[i * ld]``.

        Parameters
        ----------
        indices : ndarray of uint8, optional
            For a compressed ``matrixa``, and only for one: laid out as the values.

        Raises
        ------
        ValueError
            For memory that is not one-dimensional or too short, a ``ld`` below 16, indices that are
            missing or not asked for.
        TypeError
            For memory of another dtype.
        """
        if (indices is None) != (fragment.indices is None):
            what = "given" if indices is None else "None"
            raise ValueError(f"indices must be {what} for a {fragment.kind} of k = {fragment.k}")
        fragment.values[:] = _rows(source, ld, fragment.values)
        if indices is not None and fragment.indices is not None:
            fragment.indices[:] = _rows(indices, ld, fragment.indices)
        self.counts += Counts(loads=len(fragment.values) // TILE)

    def storematrix(self, target: np.ndarray, fragment: Fragment, ld: int) -> None:
        """Store an accumulator to memory; see `loadmatrix`."""
        if fragment.kind != "accum":
            raise ValueError(f"fragment must be an accum to be stored, not a {fragment.kind}")
        _rows(target, ld, fragment.values)[:] = fragment.values
        self.counts += Counts(stores=1)

    def mmo(self, d: Fragment, a: Fragment, b: Fragment, c: Fragment, opcode: Op | str) -> None:
        """One instruction: D = C ⊕ (A ⊗ B); D may be C.

        Raises
        ------
        ValueError
            For fragments of the wrong kind, A and B of different depths, or an unknown operation.
        """
        kinds = tuple(fragment.kind for fragment in (d, a, b, c))
        if kinds != ("accum", "matrixa", "matrixb", "accum"):
            raise ValueError(
                f"fragments must be accum, matrixa, matrixb, accum, not {', '.join(kinds)}"
            )
        if a.k != b.k:
            raise ValueError(f"a and b must be of one k, not {a.k} and {b.k}")
        d.values[:] = self._compute(as_op(opcode), a.values, a.indices, b.values, c.values)
        self.counts += Counts(mmo=1, sparse=int(a.indices is not None))

    def apply(self, op: Op | str, a, b, c=None) -> np.ndarray:
        """D = C ⊕ (A ⊗ B) on (M, K) and (K, N) matrices of any size; see `golden.simd2.mmo`."""
        return self._whole(as_op(op), np.asarray(a), None, np.asarray(b), c)

    def apply_sparse(self, op: Op | str, values, indices, b, c=None) -> np.ndarray:
        """The same with a compressed A; see `golden.simd2.mmo_sparse`."""
        return self._whole(as_op(op), np.asarray(values), np.asarray(indices), np.asarray(b), c)

    def _whole(self, op, a, indices, b, c):
        before = self.counts
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(f"a and b must be matrices, not {a.shape} and {b.shape}")
        if self.tilewise:
            d = self._tiles(op, a, indices, b, c)
        else:
            d = self._compute(op, a, indices, b, c)
            given = {"c": c is not None, "sparse": indices is not None}
            self.counts += Counts.of(len(a), b.shape[1], len(b), **given)
        if self.watch:
            self.watch(self.counts - before)
        return d

    def _settings(self, op) -> dict[str, Any]:
        settings: dict[str, Any] = {"k": self.unit.k, "preset": self.unit.preset}
        if op is Op.ADDNORM and self.squares:
            settings["squares"] = self.squares
        return settings

    def _compute(self, op, a, indices, b, c) -> np.ndarray:
        settings = self._settings(op)
        if indices is None:
            mmo, given = BACKENDS[self.backend], (op, a, b, c)
        elif self.backend in SPARSE_BACKENDS:
            mmo, given = SPARSE_BACKENDS[self.backend], (op, a, indices, b, c)
        else:
            able = ", ".join(SPARSE_BACKENDS)
            raise ValueError(f"backend must be one of {able} for 2:4, not {self.backend!r}")
        if not hasattr(mmo, "on"):
            return mmo(*given, **settings)
        d, clocks = mmo.on(self.unit)(*given, **settings)
        self.clocks += clocks
        return d

    def _tiles(self, op, a, indices, b, c) -> np.ndarray:
        """Figure 3.6 for each output tile."""
        c = None if c is None else np.asarray(c)
        self._check(op, a, indices, b, c)
        deep = TILE if indices is None else DEEP
        (m, n), depth = (len(a), b.shape[1]), tiles(len(b), deep)
        left, right = padding(op)
        length, wide = TILE * depth, TILE * tiles(n)
        one, other = _memory(a, left, m, length), _memory(b, right, deep * depth, n)
        places = None if indices is None else _places(indices, m, length)
        add = None if c is None else _memory(c, 0.0, m, n)
        result = np.zeros(TILE * tiles(m) * wide, np.float32)
        x = self.matrix("matrixa", TILE, TILE, deep, a.dtype)
        y = self.matrix("matrixb", TILE, TILE, deep, a.dtype)
        z = self.matrix("accum", TILE, TILE, deep, np.float32)
        for i in range(0, TILE * tiles(m), TILE):
            for j in range(0, wide, TILE):
                if add is None:
                    self.fillmatrix(z, op.identity)
                else:
                    self.loadmatrix(z, add[i * wide + j :], wide)
                for t in range(depth):
                    here = i * length + t * TILE
                    which = None if places is None else places[here:]
                    self.loadmatrix(x, one[here:], length, which)
                    self.loadmatrix(y, other[t * deep * wide + j :], wide)
                    self.mmo(z, x, y, z, op)
                self.storematrix(result[i * wide + j :], z, wide)
        return result.reshape(-1, wide)[:m, :n].copy()

    def _check(self, op, a, indices, b, c):
        """Let golden say what is wrong, on no rows."""
        if c is not None and c.shape != (len(a), b.shape[1]):
            raise ValueError(f"c must be ({len(a)}, {b.shape[1]}), not {c.shape}")
        none = None if c is None else c[:0]
        settings = self._settings(op)
        if indices is None:
            golden_mmo(op, a[:0], b, none, **settings)
        else:
            golden_mmo_sparse(op, a, indices, b[:, :0], None, **settings)
            golden_mmo(op, a[:0, :0], b[:0], none, **settings)


def _memory(x: np.ndarray, fill: float, rows: int, columns: int) -> np.ndarray:
    """A matrix, filled up to whole tiles, as it lies in memory."""
    whole = np.full((TILE * tiles(rows), TILE * tiles(columns)), fill, x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    return whole.reshape(-1)


def _places(indices: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Indices as `_memory`; values that were filled up are the first two of their groups."""
    whole = np.tile(np.array([0, 1], np.uint8), (TILE * tiles(rows), columns // 2))
    whole[: indices.shape[0], : indices.shape[1]] = indices
    return whole.reshape(-1)


def _rows(memory: np.ndarray, ld: int, registers: np.ndarray) -> np.ndarray:
    """The view of memory that registers are moved from or to."""
    if memory.ndim != 1 or not memory.flags.c_contiguous:
        raise ValueError(f"memory must be a contiguous array of one dimension, not {memory.shape}")
    if memory.dtype != registers.dtype:
        raise TypeError(
            f"memory must be {registers.dtype.name} as the fragment, not {memory.dtype.name}"
        )
    rows = len(registers)
    if ld < TILE or memory.size < (rows - 1) * ld + TILE:
        raise ValueError(
            f"ld must be at least {TILE} and memory hold {rows - 1}·ld + {TILE} elements, "
            f"not {ld} and {memory.size}"
        )
    size = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory, registers.shape, (ld * size, size))
