"""A machine with a SIMD² unit: its matrix instructions, their counts, and matrices of any size.

The low level is that of Zhang 2024 (Tables 3.2 and 3.3): operands are fragments of registers. They
are filled from memory or with a value, combined by one instruction, and stored. The high level,
``Machine.apply``, takes matrices of any size, as Zhang 2024 (Figure 3.6) does for min-plus.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2 import Op, as_op
from vitruvian.golden.simd2 import mmo as golden_mmo
from vitruvian.golden.simd2 import mmo_sparse as golden_mmo_sparse
from vitruvian.golden.simd2.matrix import OPERANDS, SQUARES
from vitruvian.sim.backends import check_name, compute
from vitruvian.sim.matrix_unit import Unit

from .backends import BACKENDS, SPARSE_BACKENDS
from .instructions import DEEP, KINDS, TILE, Counts, Fragment, tiles


def padding(op: Op) -> tuple[float, float]:
    """Return the values that pad A and B along K without changing a bit of D.

    Under min and max the padding is NaN: a NaN loses against every number, and C stays NaN if it
    is NaN. ``no_edge`` is not suitable: it would replace a C that is NaN, and in maxmul a negative
    product. A sum is padded with −0 · +0 = −0, which changes no sum. A sum of squares is never −0,
    so (0 − 0)² = +0 does not change it.
    """
    if op.plus in ("min", "max"):
        return np.nan, np.nan
    return (-0.0, 0.0) if op is Op.MMA else (0.0, 0.0)


class Machine:
    """A machine that computes matrix operations on a back end and counts its instructions.

    Parameters
    ----------
    unit : Unit
        Rows, columns and terms that the unit takes at a time, 4×4×4 by default; all three must
        divide 16. The preset applies to ``mma`` only.
    backend : str
        A name in ``BACKENDS``.
    squares : {"differences", "products"}, optional
        How ``addnorm`` forms its terms, see ``golden.simd2.mmo``; by default the back end decides.
    tilewise : bool
        If True, ``apply`` runs every instruction one by one. The bits and the counts are the same,
        but it is slower.
    watch : callable, optional
        Called with the ``Counts`` of every ``apply`` when it is done.

    Attributes
    ----------
    counts : Counts
        Instructions so far.
    measured_cycles : int
        Clock cycles that hardware took so far; 0 if the back end does not measure them.

    Raises
    ------
    ValueError
        If the back end or ``squares`` is unknown, or a size of the unit does not divide 16.
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
        check_name(backend, BACKENDS, "sim.simd2.register_backend")
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
        self.measured_cycles = 0

    def matrix(self, kind: str, m: int, n: int, k: int, dtype) -> Fragment:
        """Declare a fragment for an m×n×k operation.

        A new fragment contains zeros; a program must not rely on that.

        Parameters
        ----------
        kind : {"matrixa", "matrixb", "accum"}
        m, n, k : int
            16, 16 and 16 or 32. If k is 32, ``matrixa`` is compressed 2:4: it holds 16×16 values
            and their indices.
        dtype : dtype
            float16, bfloat16 or float32; an accumulator must be float32.

        Raises
        ------
        ValueError
            If the kind is unknown, or the shape is neither 16×16×16 nor 16×16×32.
        TypeError
            If a fragment of this kind cannot have this dtype.
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
            # Any two different indices in a group are valid; 0 and 1 are the smallest.
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
        source : (size,) ndarray
            Memory, of the fragment's dtype.
        ld : int
            Elements from the start of one row to the start of the next (leading dimension).
        indices : (size,) ndarray of uint8, optional
            Indices of a compressed ``matrixa``, with the same layout as the values; only a
            compressed ``matrixa`` has them.

        Raises
        ------
        ValueError
            If the memory is not one-dimensional or too short, ``ld`` is below 16, or ``indices``
            is missing for a compressed ``matrixa`` or given for another fragment.
        TypeError
            If the memory has another dtype than the fragment.
        """
        if (indices is None) != (fragment.indices is None):
            expected = "given" if indices is None else "None"
            raise ValueError(
                f"indices must be {expected} for a {fragment.kind} of k = {fragment.k}"
            )
        fragment.values[:] = _rows(source, ld, fragment.values)
        if indices is not None and fragment.indices is not None:
            fragment.indices[:] = _rows(indices, ld, fragment.indices)
        self.counts += Counts(loads=len(fragment.values) // TILE)

    def storematrix(self, target: np.ndarray, fragment: Fragment, ld: int) -> None:
        """Store an accumulator to memory: row i begins at ``target[i * ld]``.

        Parameters
        ----------
        target : (size,) ndarray of float32
            Memory.
        fragment : Fragment
            An accumulator.
        ld : int
            Elements from the start of one row to the start of the next.

        Raises
        ------
        TypeError, ValueError
            If the fragment is not an accumulator, or the memory does not fit, see ``loadmatrix``.
        """
        if fragment.kind != "accum":
            raise ValueError(f"fragment must be an accum to be stored, not a {fragment.kind}")
        _rows(target, ld, fragment.values)[:] = fragment.values
        self.counts += Counts(stores=1)

    def mmo(self, d: Fragment, a: Fragment, b: Fragment, c: Fragment, opcode: Op | str) -> None:
        """Run one instruction: D = C ⊕ (A ⊗ B). D may be the same fragment as C.

        Parameters
        ----------
        d, c : Fragment
            Accumulators.
        a, b : Fragment
            A ``matrixa`` and a ``matrixb`` of the same depth.

        Raises
        ------
        ValueError
            If a fragment is of the wrong kind, A and B have different depths, or the operation is
            unknown.
        """
        kinds = tuple(fragment.kind for fragment in (d, a, b, c))
        if kinds != ("accum", "matrixa", "matrixb", "accum"):
            raise ValueError(
                f"fragments must be accum, matrixa, matrixb, accum, not {', '.join(kinds)}"
            )
        if a.k != b.k:
            raise ValueError(f"a and b must have the same k, not {a.k} and {b.k}")
        d.values[:] = self._compute(as_op(opcode), a.values, a.indices, b.values, c.values)
        self.counts += Counts(mmo=1, sparse=int(a.indices is not None))

    def apply(self, op: Op | str, a, b, c=None) -> np.ndarray:
        """Return D = C ⊕ (A ⊗ B) for matrices of any size.

        Parameters
        ----------
        a, b : (M, K), (K, N) ndarray of float16, bfloat16 or float32
        c : (M, N) ndarray of float32, optional

        Returns
        -------
        (M, N) ndarray of float32

        Raises
        ------
        TypeError, ValueError
            See ``golden.simd2.mmo``.
        """
        return self._whole(as_op(op), np.asarray(a), None, np.asarray(b), c)

    def apply_sparse(self, op: Op | str, values, indices, b, c=None) -> np.ndarray:
        """Return D = C ⊕ (A ⊗ B) for an A that is compressed 2:4.

        Parameters
        ----------
        values, indices : (M, K/2) ndarray
            The compressed A, see ``golden.simd2.compress``.
        b : (K, N) ndarray
        c : (M, N) ndarray of float32, optional

        Returns
        -------
        (M, N) ndarray of float32

        Raises
        ------
        TypeError, ValueError
            See ``golden.simd2.mmo_sparse``; also if the back end has no 2:4 form.
        """
        return self._whole(as_op(op), np.asarray(values), np.asarray(indices), np.asarray(b), c)

    def _whole(self, op, a, indices, b, c):
        """Return D and add the instructions to the counts; ``indices`` is None for a dense A."""
        before = self.counts
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(f"a and b must be matrices, not {a.shape} and {b.shape}")
        if self.tilewise:
            d = self._tiles(op, a, indices, b, c)
        else:
            # The whole matrices at once have the bits of the loop over tiles, which tests compare.
            d = self._compute(op, a, indices, b, c)
            self.counts += Counts.of(
                len(a), b.shape[1], len(b), c=c is not None, sparse=indices is not None
            )
        if self.watch:
            self.watch(self.counts - before)
        return d

    def _settings(self, op) -> dict[str, Any]:
        # ``squares`` is passed only if the user chose it, so each back end has its own default.
        settings: dict[str, Any] = {"k": self.unit.k, "preset": self.unit.preset}
        if op is Op.ADDNORM and self.squares:
            settings["squares"] = self.squares
        return settings

    def _compute(self, op, a, indices, b, c) -> np.ndarray:
        if indices is None:
            backend, operands = BACKENDS[self.backend], (op, a, b, c)
        elif self.backend in SPARSE_BACKENDS:
            backend, operands = SPARSE_BACKENDS[self.backend], (op, a, indices, b, c)
        else:
            names = ", ".join(SPARSE_BACKENDS)
            raise ValueError(f"backend must be one of {names} for 2:4, not {self.backend!r}")
        d, cycles = compute(backend, self.unit, operands, self._settings(op))
        self.measured_cycles += cycles
        return d

    def _tiles(self, op, a, indices, b, c) -> np.ndarray:
        """Run the loop of Zhang 2024 (Figure 3.6) for each output tile."""
        c = None if c is None else np.asarray(c)
        self._check(op, a, indices, b, c)
        deep = TILE if indices is None else DEEP
        (m, n), depth = (len(a), b.shape[1]), tiles(len(b), deep)
        # Terms of these two change no bit of D.
        a_fill, b_fill = padding(op)
        # Padded sizes. A compressed A has TILE values a tile, although the tile is DEEP elements.
        a_columns, columns = TILE * depth, TILE * tiles(n)
        a_memory = _memory(a, a_fill, m, a_columns)
        b_memory = _memory(b, b_fill, deep * depth, n)
        index_memory = None if indices is None else _index_memory(indices, m, a_columns)
        c_memory = None if c is None else _memory(c, 0.0, m, n)
        result = np.zeros(TILE * tiles(m) * columns, np.float32)
        x = self.matrix("matrixa", TILE, TILE, deep, a.dtype)
        y = self.matrix("matrixb", TILE, TILE, deep, a.dtype)
        z = self.matrix("accum", TILE, TILE, deep, np.float32)
        for i in range(0, TILE * tiles(m), TILE):
            for j in range(0, columns, TILE):
                if c_memory is None:
                    self.fillmatrix(z, op.identity)
                else:
                    self.loadmatrix(z, c_memory[i * columns + j :], columns)
                for t in range(depth):
                    start = i * a_columns + t * TILE
                    tile_indices = None if index_memory is None else index_memory[start:]
                    self.loadmatrix(x, a_memory[start:], a_columns, tile_indices)
                    self.loadmatrix(y, b_memory[t * deep * columns + j :], columns)
                    self.mmo(z, x, y, z, op)
                self.storematrix(result[i * columns + j :], z, columns)
        return result.reshape(-1, columns)[:m, :n].copy()

    def _check(self, op, a, indices, b, c):
        """Raise the errors of golden, by calling it on operands without rows."""
        if c is not None and c.shape != (len(a), b.shape[1]):
            raise ValueError(f"c must be ({len(a)}, {b.shape[1]}), not {c.shape}")
        empty = None if c is None else c[:0]
        settings = self._settings(op)
        if indices is None:
            golden_mmo(op, a[:0], b, empty, **settings)
        else:
            # The first call checks A, its indices and B; the second one checks C.
            golden_mmo_sparse(op, a, indices, b[:, :0], None, **settings)
            golden_mmo(op, a[:0, :0], b[:0], empty, **settings)


def _memory(x: np.ndarray, fill: float, rows: int, columns: int) -> np.ndarray:
    """Return a matrix as flat memory, padded with ``fill`` to whole tiles."""
    whole = np.full((TILE * tiles(rows), TILE * tiles(columns)), fill, x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    return whole.reshape(-1)


def _index_memory(indices: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return indices as flat memory; padded values are the first two of their groups."""
    whole = np.tile(np.array([0, 1], np.uint8), (TILE * tiles(rows), columns // 2))
    whole[: indices.shape[0], : indices.shape[1]] = indices
    return whole.reshape(-1)


def _rows(memory: np.ndarray, ld: int, registers: np.ndarray) -> np.ndarray:
    """Return the view of memory that is moved to or from the registers."""
    if memory.ndim != 1 or not memory.flags.c_contiguous:
        raise ValueError(f"memory must be a contiguous array of one dimension, not {memory.shape}")
    if memory.dtype != registers.dtype:
        raise TypeError(
            f"memory must be {registers.dtype.name} like the fragment, not {memory.dtype.name}"
        )
    rows = len(registers)
    if ld < TILE or memory.size < (rows - 1) * ld + TILE:
        raise ValueError(
            f"ld must be at least {TILE} and memory must hold {rows - 1}·ld + {TILE} elements, "
            f"not {ld} and {memory.size}"
        )
    # The memory may end with the last element of the last row, so it cannot be reshaped.
    size = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory, registers.shape, (ld * size, size))
