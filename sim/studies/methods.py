"""Methods to multiply matrices of single precision on a matrix unit: directly, or emulated.

An emulation splits every operand into pieces of a narrow format. Each piece is the nearest value to
the remainder that the previous pieces leave. The products of pieces are added in one FP32
accumulator, the smallest first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.validate import refusal
from vitruvian.golden.fp import convert
from vitruvian.golden.m3xu import operand_dtype
from vitruvian.sim.studies.engine import Engine

_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))
_DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method to compute D = C + A·B.

    Attributes
    ----------
    name : str
        Name in tables and on the command line.
    precision : str
        Precision of the matrix instructions.
    pieces : int
        Number of pieces that an operand is split into.
    products : tuple of (int, int)
        Indices of the pieces of A and B that are multiplied, in the order of accumulation. Piece 0
        is the largest.
    scaled : bool
        If True, each operand is multiplied by the power of two that brings its largest magnitude
        into [2^14, 2^15), and the result by the inverse of both.
    """

    name: str
    precision: str
    pieces: int = 1
    products: tuple[tuple[int, int], ...] = ((0, 0),)
    scaled: bool = False

    def gemm(self, engine: Engine, a, b, c=None) -> np.ndarray:
        """Return D = C + A·B.

        Parameters
        ----------
        a : (..., M, K) ndarray of float32 or complex64
            FP64 takes float64 or complex128 instead. Except in FP32C, a complex product becomes two
            real products with K doubled and the real and imaginary parts interleaved.
        b : (..., K, N) ndarray
        c : (..., M, N) ndarray, optional
            A scaled method multiplies C by the scales of A and B; the result must not overflow.

        Returns
        -------
        (..., M, N) ndarray
            D in the dtype of the operands.

        Raises
        ------
        TypeError
            If an operand has another dtype, or some operands are real and others complex.
        """
        a, b = self._checked(a, "a"), self._checked(b, "b")
        c = None if c is None else self._checked(c, "c")
        if a.dtype.kind != b.dtype.kind or (c is not None and c.dtype.kind != a.dtype.kind):
            raise TypeError("a, b and c must all be real or all complex")
        if self.precision == "fp32c":
            return engine.gemm(a, b, c, precision="fp32c")
        if a.dtype.kind == "f":
            return self._real(engine, a, b, c)
        # Real part: [Re a, −Im a]·[Re b, Im b]; imaginary part: [Re a, Im a]·[Im b, Re b].
        left = (
            _interleave(np.real(a), -np.imag(a), axis=-1),
            _interleave(np.real(a), np.imag(a), axis=-1),
        )
        right = (
            _interleave(np.real(b), np.imag(b), axis=-2),
            _interleave(np.imag(b), np.real(b), axis=-2),
        )
        addends = (None, None) if c is None else (np.real(c), np.imag(c))
        parts = [self._real(engine, x, y, z) for x, y, z in zip(left, right, addends, strict=True)]
        return np.stack(parts, axis=-1).view(a.dtype)[..., 0]

    def seen(self, x) -> np.ndarray:
        """Return the values that the matrix instructions use for ``x``: the sum of its pieces."""
        x = self._checked(x, "x")
        if self.precision == "fp32c":
            return x
        if x.dtype.kind == "c":
            parts = np.ascontiguousarray(x)[..., None].view(np.real(x).dtype)
            return self.seen(parts).view(x.dtype)[..., 0]
        x, exponent = self._scale(x)
        total = np.zeros_like(x)
        for piece in reversed(self._split(x)):
            total += piece.astype(x.dtype)
        return np.ldexp(total, -exponent)

    def _real(self, engine: Engine, a, b, c) -> np.ndarray:
        """Return D for real operands: add the products of the pieces one after the other."""
        a, in_a = self._scale(a)
        b, in_b = self._scale(b)
        if c is not None:
            c = np.ldexp(np.ascontiguousarray(c), in_a + in_b)
        left, right = self._split(a), self._split(b)
        d: Any = c
        for i, j in self.products:
            d = engine.gemm(left[i], right[j], d, precision=self.precision)
        return np.ldexp(d, -in_a - in_b) if self.scaled else d

    def _scale(self, x):
        """Return ``x`` times a power of two, and the exponent of that power."""
        if not self.scaled or not x.size:
            return x, 0
        # frexp returns a fraction in [0.5, 1), so the largest magnitude becomes 2^14 to 2^15.
        exponent = 15 - int(np.frexp(np.abs(x).max())[1])
        return np.ldexp(x, exponent), exponent

    def _split(self, x) -> list[np.ndarray]:
        """Return the pieces of ``x`` in the operand dtype of the precision."""
        pieces = []
        for _ in range(self.pieces):
            piece = _rounded(x, self.precision)
            pieces.append(piece)
            if len(pieces) < self.pieces:
                # Exact: the piece is x rounded to fewer bits, so the difference fits x's format.
                x = x - piece.astype(x.dtype)
        return pieces

    def _checked(self, array, thing: str) -> np.ndarray:
        array = np.asarray(array)
        allowed = _DOUBLE if self.precision == "fp64" else _SINGLE
        allowed = allowed[1:] if self.precision == "fp32c" else allowed
        if array.dtype not in allowed:
            names = " or ".join(dtype.name for dtype in allowed)
            raise TypeError(f"{thing} must be {names} for {self.name}, not {array.dtype.name}")
        return array


@dataclass(frozen=True)
class BoundMethod:
    """A method on an engine: the function ``d = gemm(a, b, c)`` that kernels call."""

    method: Method
    engine: Engine

    def __call__(self, a, b, c=None) -> np.ndarray:
        return self.method.gemm(self.engine, a, b, c)

    def seen(self, x) -> np.ndarray:
        """Return the values that the method uses for ``x``; see ``Method.seen``."""
        return self.method.seen(x)


class NumPy:
    """NumPy's matrix product in the dtype of the operands, as a baseline or a reference."""

    def __call__(self, a, b, c=None) -> np.ndarray:
        d = np.matmul(a, b)
        return d if c is None else d + c

    def seen(self, x) -> np.ndarray:
        """Return ``x`` unchanged, as NumPy does not round its operands."""
        return np.asarray(x)


def _rounded(x: np.ndarray, precision: str) -> np.ndarray:
    """Return the nearest values of a narrow format (ties to even); overflow gives infinity."""
    # NumPy has no TF32, so its values are float32 with a shorter significand.
    if precision == "tf32":
        codes = np.ascontiguousarray(x).view(np.uint32)
        return convert(codes, "fp32", "tf32").astype(np.uint32, copy=False).view(np.float32)
    with np.errstate(over="ignore"):
        return x.astype(operand_dtype(precision))


def _interleave(first, second, *, axis):
    """Return the elements of two arrays alternately along an axis, which doubles in length."""
    both = np.stack([first, second], axis=axis)
    shape = list(first.shape)
    shape[axis] *= 2
    return both.reshape(shape)


def _products(pieces: int, largest: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs (i, j) of pieces with i + j ≤ ``largest``, the smallest products first."""
    pairs = [(i, j) for i in range(pieces) for j in range(pieces) if i + j <= largest]
    return tuple(sorted(pairs, key=lambda pair: (-sum(pair), -pair[0])))


#: Methods by name. A number in front of a format is the number of products. 3xTF32 and 3xBF16 split
#: an operand into two pieces (22 and 16 bits of significand) and omit the product of the two small
#: pieces. 6xBF16 and 9xBF16 use three pieces (24 bits); 6xBF16 omits the three smallest products.
METHODS = {
    method.name: method
    for method in (
        Method(name="FP16", precision="fp16"),
        Method(name="FP16 scaled", precision="fp16", scaled=True),
        Method(name="BF16", precision="bf16"),
        Method(name="TF32", precision="tf32"),
        Method(name="3xBF16", precision="bf16", pieces=2, products=_products(2, 1)),
        Method(name="6xBF16", precision="bf16", pieces=3, products=_products(3, 2)),
        Method(name="9xBF16", precision="bf16", pieces=3, products=_products(3, 4)),
        Method(name="3xTF32", precision="tf32", pieces=2, products=_products(2, 1)),
        Method(name="4xTF32", precision="tf32", pieces=2, products=_products(2, 2)),
        Method(name="FP32", precision="fp32"),
        Method(name="FP32C", precision="fp32c"),
        Method(name="FP64", precision="fp64"),
    )
}


def as_method(name: str) -> Method:
    """Return the method of a name; case and blanks do not matter.

    Raises
    ------
    ValueError
        If no method has this name.
    """
    by_plain_name = {key.lower().replace(" ", ""): method for key, method in METHODS.items()}
    method = by_plain_name.get(name.lower().replace(" ", ""))
    if method is None:
        raise ValueError(refusal("method", name, METHODS))
    return method
