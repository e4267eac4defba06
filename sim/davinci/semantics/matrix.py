"""The Cube's product on fractals: golden, which is bit-exact, or fast, in FP32."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.cube import mmad
from vitruvian.golden.cube.structured import expand, unpack_places
from vitruvian.golden.fp import DotSpec, IntDotSpec, to_float
from vitruvian.golden.m3xu.gemm import complex_product
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2 import Op, as_op, mmo
from vitruvian.golden.vector import unpack_fours
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import (
    BLOCK_BYTES,
    DTYPES,
    FOURS,
    FRACTAL_BYTES,
    View,
    is_integer,
    per_block,
)

from .memory import FunctionalError, Memory

#: NumPy type of the numbers of 64 bits, which are held as codes.
_NUMBERS = {"fp64": np.dtype(np.float64), "fp32c": np.dtype(np.complex64)}

#: A function of A (m, k), B (k, n) and C (m, n), codes or integers, and of their dtypes. It
#: returns D = C + A·B (m, n). A product over a semiring has an attribute ``zero``: the code of the
#: identity of ⊕, with which an mmad starts whose ``init`` is "zero". A Cube with several operations
#: has an attribute ``semiring``: a function of an operation's mnemonic that returns its product.
Product = Callable[[np.ndarray, np.ndarray, np.ndarray, str, str, str], np.ndarray]


@lru_cache(64)
def _spec(a: str, b: str, c: str, preset: str) -> DotSpec | IntDotSpec:
    """Return the dot product of a block of K terms; K is 32 bytes of the operands."""
    k = BLOCK_BYTES // DTYPES[a].itemsize
    if is_integer(a):
        return IntDotSpec(k=k, signed_a=a == "int8", signed_b=b == "int8")
    return PRESETS[preset].spec(a, c, k=k, input_b=b)


def golden_product(preset: str = "ieee") -> Product:
    """Return the bit-exact product in an accuracy preset: one rounding for 32 bytes of K.

    If K is not a multiple of a block, +0 fills the last block.
    """
    return SpecProduct(lambda a, b, c: _spec(a, b, c, preset))


class SpecProduct:
    """The bit-exact product whose sums are rounded as a function of the dtypes says.

    If K is not a multiple of the specification's, +0 fills the last block.

    Parameters
    ----------
    spec_of : function of the dtypes of A, B and C
    semiring : function of str, optional
        Returns the product of another operation than mma, by its mnemonic.
    """

    def __init__(
        self,
        spec_of: Callable[[str, str, str], DotSpec | IntDotSpec],
        semiring: Callable[[str], Product] | None = None,
    ):
        self._spec_of = spec_of
        if semiring is not None:
            self.semiring = semiring

    def __call__(self, a, b, c, dtype_a: str, dtype_b: str, dtype_c: str) -> np.ndarray:
        """Return the codes of D; see ``Product``."""
        spec = self._spec_of(dtype_a, dtype_b, dtype_c)
        if dtype_a == "fp32c":
            assert isinstance(spec, DotSpec)
            left, right = _filled(a, spec.k // 2, 1), _filled(b, spec.k // 2, 0)
            x, y, z = (np.ascontiguousarray(v).view(np.complex64) for v in (left, right, c))
            return complex_product(x, y, z, spec).view(c.dtype)
        result = mmad(_filled(a, spec.k, 1), _filled(b, spec.k, 0), c, spec=spec)
        return np.asarray(result).astype(c.dtype)


class SemiringProduct:
    """The product D = C ⊕ (A ⊗ B), as ``golden.simd2.mmo`` defines it.

    Parameters
    ----------
    op : Op or str
    k : int
        Terms of a fused sum, if ⊕ is +.
    window : int, optional
        Fraction bits of such a sum; by default those that it needs.

    Attributes
    ----------
    op : Op
    zero : int
        The FP32 code of the identity of ⊕.
    """

    def __init__(self, op: Op | str, *, k: int, window: int | None = None) -> None:
        self.op = as_op(op)
        self.zero = int(np.float32(self.op.identity).view(np.uint32))
        self._sums = {"k": k, "window": window if self.op.plus == "add" else None}

    def __call__(self, a, b, c, dtype_a: str, dtype_b: str, dtype_c: str) -> np.ndarray:
        """Return the codes of D; see ``Product``."""
        kinds = {"fp16": np.float16, "fp32": np.float32}
        if dtype_a != dtype_b or dtype_a not in kinds or dtype_c != "fp32":
            raise ValueError(
                f"operands must be fp16 or fp32 and sums fp32, not {dtype_a}, {dtype_b}, {dtype_c}"
            )
        left, right, start = a.view(kinds[dtype_a]), b.view(kinds[dtype_a]), c.view(np.float32)
        d = mmo(self.op, left, right, start, **self._sums, squares="products")
        return d.view(np.uint32)


def _filled(x: np.ndarray, k: int, axis: int) -> np.ndarray:
    short = -x.shape[axis] % k
    if not short:
        return x
    return np.pad(x, [(0, short if i == axis else 0) for i in range(2)])


def fast_product(a, b, c, dtype_a, dtype_b, dtype_c):
    """Return C + A·B by BLAS, in FP32 or FP64; for integers in float64, which is exact.

    The error of each sum of K products is at most (K + 1)·2⁻²⁴·(|C| + Σ|A·B|) in any order of
    additions. D in FP16 is rounded once more.
    """
    if is_integer(dtype_a):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        return (exact.astype(np.int64) + c).astype(c.dtype)
    total = _single(a, dtype_a) @ _single(b, dtype_b) + _single(c, dtype_c)
    if dtype_c in _NUMBERS:
        return total.view(c.dtype)
    with np.errstate(over="ignore"):
        return total.astype(DTYPES[dtype_c]).view(c.dtype)


def _single(codes: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        return (codes.astype(np.uint32) << 16).view(np.float32)
    if dtype.startswith("fp8"):
        return to_float(codes, dtype).astype(np.float32)
    if dtype in ("fp64", "fp32c"):
        return codes.view(_NUMBERS[dtype])
    if dtype == "tf32":
        return (codes & np.uint32(0xFFFFE000)).view(np.float32)
    return codes.view(DTYPES[dtype]).astype(np.float32)


def _rtl_product() -> Product:
    """Return the compiled RTL. Its modules are imported here, because that takes long."""
    from vitruvian.sim.rtl.davinci import RtlCube

    return RtlCube()


#: Ways to compute a product, by name.
CUBES: dict[str, Callable[[], Product]] = {
    "golden": golden_product,
    "fast": lambda: fast_product,
    "rtl": _rtl_product,
}


def fractals_to_matrix(fractals: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return the first (rows, columns) elements of the matrix of (R, C, r, c) fractals."""
    outer_rows, outer_columns, r, c = fractals.shape
    whole = fractals.transpose(0, 2, 1, 3).reshape(outer_rows * r, outer_columns * c)
    return whole[:rows, :columns]


def _codes(dtype: str) -> np.dtype:
    """Return the NumPy type of the elements as codes."""
    kind = DTYPES[dtype]
    return np.dtype(f"u{kind.itemsize}") if kind.kind == "f" else kind


def matrix_product(memory: Memory, instr: Instruction, product: Product) -> None:
    """Carry out mmad.

    With k numbers in 32 bytes, A is (M/16, K/k, 16, k), B is (K/k, N/16, 16, k), as loads of
    fractals leave them in L0A and L0B, and C is (N/16, M/16, 16, 16). Integers of 4 bits are
    multiplied as integers of 8 bits, since their sums are exact. A sparse B is expanded first.
    """
    f, operands = instr.fields, instr.operands
    if "operation" in f:
        if not hasattr(product, "semiring"):
            raise FunctionalError(instr, f"this Cube has no {f['operation']}")
        product = product.semiring(f["operation"])
    m, k, n = f["m"], f["k"], f["n"]
    if f.get("a_transposed"):
        raise FunctionalError(instr, "a transposed A is not modelled; load its fractals transposed")
    va, vb, vc = operands["a"], operands["b"], operands["c"]
    deep = per_block(va.dtype)
    mf, nf, kf = ceil_div(m, 16), ceil_div(n, 16), ceil_div(k, deep)
    layout = f.get("a_layout", "")
    if layout == "vector":
        a = _stack(memory, va, (1, kf, 1, deep))
    else:
        a = _stack(memory, va, (mf, kf + kf % 2 if layout == "even" else kf, 16, deep))
    c = _stack(memory, vc, (nf, mf, 16, 16))
    left = fractals_to_matrix(a, m, k)
    if f.get("sparse"):
        right = _expanded(memory, instr, vb, (ceil_div(k // 2, deep), nf))
    else:
        b = _stack(memory, vb, (kf, nf, 16, deep))
        right = fractals_to_matrix(b.transpose(1, 0, 2, 3), n, k).T
    rows = c.transpose(1, 0, 2, 3)
    if f["init"] == "accumulate":
        start = fractals_to_matrix(rows, m, n)
    elif f["init"] == "bias":
        view = operands["bias"]
        width = DTYPES[view.dtype].itemsize
        bias = memory.at(view, (n,), (width,)).view(_codes(view.dtype))
        start = np.broadcast_to(bias, (m, n))
    else:
        start = _started(m, n, getattr(product, "zero", 0), c.dtype)
    kinds = ("int8" if v.dtype == FOURS else v.dtype for v in (va, vb, vc))
    dtype_a, dtype_b, dtype_c = kinds
    left, right, start = (np.ascontiguousarray(x) for x in (left, right, start))
    result = product(left, right, start, dtype_a, dtype_b, dtype_c)
    if m % 16 or n % 16:  # the rest of the last fractals stays as it is
        whole = np.array(rows.transpose(0, 2, 1, 3)).reshape(mf * 16, nf * 16)
        whole[:m, :n] = result
        result = whole
    c[...] = result.reshape(mf, 16, nf, 16).transpose(2, 0, 1, 3)


@lru_cache(8)
def _started(m: int, n: int, zero: int, dtype: np.dtype) -> np.ndarray:
    """Return (m, n) elements of one value, which nobody may change."""
    values = np.full((m, n), zero, dtype)
    values.flags.writeable = False
    return values


def _expanded(
    memory: Memory, instr: Instruction, view: View, fractals: tuple[int, int]
) -> np.ndarray:
    """Return the (k, n) B of a sparse product, whose places its loads have kept."""
    k, n = instr.fields["k"], instr.fields["n"]
    count = fractals[0] * fractals[1]
    starts = [view.offset + i * FRACTAL_BYTES for i in range(count)]
    missing = next((start for start in starts if start not in memory.places), None)
    if missing is not None:
        raise FunctionalError(instr, f"no load has brought the places of fractal L0B[{missing}]")
    places = unpack_places(np.stack([memory.places[start] for start in starts]))
    weights, kept = (
        fractals_to_matrix(part.transpose(1, 0, 2, 3), n, k // 2).T
        for part in (
            _stack(memory, view, (*fractals, 16, BLOCK_BYTES)),
            places.reshape(*fractals, 16, BLOCK_BYTES),
        )
    )
    try:
        return expand(weights, kept)
    except ValueError as error:
        raise FunctionalError(instr, str(error)) from None


def _stack(memory: Memory, view: View, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Return fractals that follow each other as codes, or as integers of 4 bits."""
    if view.dtype == FOURS:
        pairs = (*shape[:3], shape[3] // 2)
        return unpack_fours(_stack(memory, replace(view, dtype="uint8"), pairs))
    width = DTYPES[view.dtype].itemsize
    strides = [width]
    for count in shape[:0:-1]:
        strides.append(strides[-1] * count)
    return memory.at(view, shape, tuple(reversed(strides))).view(_codes(view.dtype))
