"""Ways to multiply matrices of single precision on a matrix unit: directly, or out of pieces.

An emulation cuts every operand into pieces of a narrow format, each the nearest to what the pieces
before it left over, and adds up products of pieces, the smallest first, in one FP32 accumulator.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.fp import convert
from vitruvian.golden.m3xu import operand_dtype
from vitruvian.sim.studies.engine import Engine

__all__ = ["METHODS", "Bound", "Method", "NumPy", "as_method"]

_SINGLE = (np.dtype(np.float32), np.dtype(np.complex64))
_DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to form D = C + A·B.

    Attributes
    ----------
    name : str
        What a table calls it.
    precision : str
        Of its matrix instructions.
    pieces : int
        That an operand is cut into.
    products : tuple of (int, int)
        Pieces of A and B that meet, in the order of accumulation; piece 0 is the largest.
    scaled : bool
        Multiply each operand by the power of two that brings its largest magnitude into
        [2^14, 2^15), and the result by the inverse.
    """

    name: str
    precision: str
    pieces: int = 1
    products: tuple[tuple[int, int], ...] = ((0, 0),)
    scaled: bool = False

    def gemm(self, engine: Engine, a, b, c=None) -> np.ndarray:
        """D = C + A·B.

        Parameters
        ----------
        engine : Engine
        a : (..., M, K) ndarray of float32 or complex64
            Of float64 for FP64. Complex operands are taken as real ones of twice the size (two
            products with K doubled, parts interleaved), but in FP32C.
        b : (..., K, N) ndarray
        c : (..., M, N) ndarray, optional
            Of a scaled method it is scaled likewise, and must have room for that.

        Returns
        -------
        (..., M, N) ndarray
            Of the operands' dtype.

        Raises
        ------
        TypeError
            For operands of another dtype.
        """
        a, b = self._checked(a, "a"), self._checked(b, "b")
        c = None if c is None else self._checked(c, "c")
        if a.dtype.kind != b.dtype.kind or (c is not None and c.dtype.kind != a.dtype.kind):
            raise TypeError("a, b and c must all be real or all complex")
        if self.precision == "fp32c":
            return engine.gemm(a, b, c, precision="fp32c")
        if a.dtype.kind == "f":
            return self._real(engine, a, b, c)
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
        """Values that the matrix instructions work with instead of ``x``: the sum of its pieces."""
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
        """Real operands: the products of the pieces, one after the other."""
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
        """``x`` times a power of two, and its exponent."""
        if not self.scaled or not x.size:
            return x, 0
        exponent = 15 - int(np.frexp(np.abs(x).max())[1])
        return np.ldexp(x, exponent), exponent

    def _split(self, x) -> list[np.ndarray]:
        """Pieces of ``x`` in the operand dtype of the precision."""
        found = []
        for _ in range(self.pieces):
            piece = _rounded(x, self.precision)
            found.append(piece)
            if len(found) < self.pieces:
                x = x - piece.astype(x.dtype)  # exact
        return found

    def _checked(self, array, thing: str) -> np.ndarray:
        array = np.asarray(array)
        allowed = _DOUBLE if self.precision == "fp64" else _SINGLE
        allowed = allowed[1:] if self.precision == "fp32c" else allowed
        if array.dtype not in allowed:
            names = " or ".join(dtype.name for dtype in allowed)
            raise TypeError(f"{thing} must be {names} for {self.name}, not {array.dtype.name}")
        return array


@dataclass(frozen=True)
class Bound:
    """A method on an engine: what kernels are written for. A call is ``d = gemm(a, b, c)``."""

    method: Method
    engine: Engine

    def __call__(self, a, b, c=None) -> np.ndarray:
        return self.method.gemm(self.engine, a, b, c)

    def seen(self, x) -> np.ndarray:
        """See `Method.seen`."""
        return self.method.seen(x)


class NumPy:
    """The machine's own matrix product in the operands' dtype, as a yardstick or a reference."""

    def __call__(self, a, b, c=None) -> np.ndarray:
        d = np.matmul(a, b)
        return d if c is None else d + c

    def seen(self, x) -> np.ndarray:
        """``x`` itself."""
        return np.asarray(x)


def _rounded(x: np.ndarray, precision: str) -> np.ndarray:
    """Nearest values of a narrow format (ties to even); too large ones become infinite."""
    if precision == "tf32":
        codes = np.ascontiguousarray(x).view(np.uint32)
        return convert(codes, "fp32", "tf32").astype(np.uint32, copy=False).view(np.float32)
    with np.errstate(over="ignore"):
        return x.astype(operand_dtype(precision))


def _interleave(first, second, *, axis):
    """first and second in turn along an axis, twice its length."""
    both = np.stack([first, second], axis=axis)
    shape = list(first.shape)
    shape[axis] *= 2
    return both.reshape(shape)


def _products(pieces: int, largest: int) -> tuple[tuple[int, int], ...]:
    """Pairs whose numbers add up to at most ``largest``, the smallest products first."""
    pairs = [(i, j) for i in range(pieces) for j in range(pieces) if i + j <= largest]
    return tuple(sorted(pairs, key=lambda pair: (-sum(pair), -pair[0])))


#: By name. A number before a format is the number of its products: 3xTF32 leaves out the product of
#: the two small pieces, 3xBF16 likewise (two pieces, 16 bits of significand); 6xBF16 and 9xBF16
#: have three pieces (24 bits), without and with the three smallest products.
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
    """Look up a method; case and blanks do not matter.

    Raises
    ------
    ValueError
        If there is none of this name.
    """
    plain = {key.lower().replace(" ", ""): method for key, method in METHODS.items()}
    found = plain.get(name.lower().replace(" ", ""))
    if found is None:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {name!r}")
    return found
