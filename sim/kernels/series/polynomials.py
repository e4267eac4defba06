"""Methods for polynomials: naive, Horner, Estrin and Motzkin, each with its golden model.

A method turns the exact coefficients into constants, which are rounded to FP16, and evaluates the
polynomial on the vector unit in FP16. As the thesis counts them, multiplications and additions are
separate instructions, each rounded; a ``fused`` method uses instructions that multiply and add with
one rounding.

References
----------
Tang 2024, §4.1.1 and §4.4.2. Knuth 1997, §4.6.4 (Horner's rule, adapted coefficients of Motzkin).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.davinci import View
from vitruvian.sim.kernels.series.functions import SeriesFunction
from vitruvian.sim.kernels.series.lanes import LaneEmitter


@dataclass(frozen=True)
class SeriesPiece:
    """The views of a piece in the Unified Buffer.

    Attributes
    ----------
    y, x : View
        The result and the input; they are different and of whole repeats.
    scratch : sequence of View
        As many further views of the piece as ``SeriesMethod.scratch`` says.
    table : sequence of View
        The constants of ``SeriesMethod.table``, each repeated to fill a block.
    """

    y: View
    x: View
    scratch: Sequence[View]
    table: Sequence[View]


@dataclass(frozen=True)
class SeriesMethod(ABC):
    """A way to evaluate a function of many inputs on the vector unit.

    Attributes
    ----------
    function : SeriesFunction
    order : int
        The number of coefficients of a polynomial.
    fused : bool
        True if a multiplication and an addition may be one instruction, rounded once.
    """

    function: SeriesFunction
    order: int
    fused: bool = False

    @property
    def scratch(self) -> int:
        """The number of buffers of a piece that the method needs besides x and y."""
        return 0

    @property
    def table(self) -> np.ndarray:
        """The constants that must be in the Unified Buffer, as (rows,) codes of FP16."""
        return np.zeros(0, np.uint16)

    @property
    @abstractmethod
    def instructions(self) -> int:
        """The number of vector instructions for a function of one piece."""

    def on_repeats(self, repeats: int) -> int:
        """Return the number of vector instructions for a function of a piece of some repeats."""
        del repeats
        return self.instructions

    @abstractmethod
    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit y = function(x) for a piece."""

    @abstractmethod
    def golden(self, x: np.ndarray) -> np.ndarray:
        """Return what ``emit`` computes, of an array of float16."""


def _like(x: np.ndarray, scalar: float) -> np.ndarray:
    return np.full_like(x, scalar)


@dataclass(frozen=True)
class Naive(SeriesMethod):
    """The sum of a_i·x^i in rising order, with each power made from the one before."""

    @property
    def scratch(self) -> int:
        """One buffer for the power, and one for the product if it is not fused."""
        return 1 if self.fused else 2

    @property
    def instructions(self) -> int:
        """3·order − 4, or 2·order − 2 if fused; but 1 for a constant."""
        return max((2 if self.fused else 3) * (self.order - 2) + 2, 1)

    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit the instructions; see ``SeriesMethod.emit``."""
        a = self.function.half(self.order)
        y, x = piece.y, piece.x
        if self.order == 1:
            lanes("vdup", y, scalar=a[0])
            return
        lanes("vmuls", y, x, scalar=a[1])
        if self.order > 2:
            lanes("vmul", piece.scratch[0], x, x)
        # The square stands before this addition, which waits for the product.
        lanes("vadds", y, y, scalar=a[0])
        power = piece.scratch[0] if self.order > 2 else x
        for n in range(2, self.order):
            if self.fused:
                lanes("vaxpy", y, power, reads_dst=True, scalar=a[n])
            else:
                lanes("vmuls", piece.scratch[1], power, scalar=a[n])
            # The next power is independent of the sum, so that it needs no barrier of its own.
            if n + 1 < self.order:
                lanes("vmul", power, power, x)
            if not self.fused:
                lanes("vadd", y, y, piece.scratch[1])

    def golden(self, x: np.ndarray) -> np.ndarray:
        """Return the rounded sum; see ``SeriesMethod.golden``."""
        a = self.function.half(self.order)
        if self.order == 1:
            return _like(x, a[0])
        y, power = vector.add(vector.mul(x, _like(x, a[1])), _like(x, a[0])), x
        for coefficient in a[2:]:
            power = vector.mul(power, x)
            if self.fused:
                y = vector.multiply_add(power, _like(x, coefficient), y)
            else:
                y = vector.add(y, vector.mul(power, _like(x, coefficient)))
        return y


@dataclass(frozen=True)
class Horner(SeriesMethod):
    """Horner's rule, ((a_n·x + a_{n−1})·x + …)·x + a_0."""

    @property
    def table(self) -> np.ndarray:
        """a_0 … a_{n−2} for the fused form, whose addend is a vector."""
        a = self.function.half(self.order)
        return a[: max(self.order - 2, 0) if self.fused else 0].view(np.uint16)

    @property
    def instructions(self) -> int:
        """2·order − 2, or order if fused; but 1 for a constant."""
        return max(self.order if self.fused else 2 * (self.order - 1), 1)

    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit the instructions; see ``SeriesMethod.emit``."""
        a = self.function.half(self.order)
        y, x = piece.y, piece.x
        if self.order == 1:
            lanes("vdup", y, scalar=a[0])
            return
        lanes("vmuls", y, x, scalar=a[-1])
        lanes("vadds", y, y, scalar=a[-2])
        for n in reversed(range(self.order - 2)):
            if self.fused:
                lanes("vmadd", y, x, piece.table[n], reads_dst=True)
            else:
                lanes("vmul", y, y, x)
                lanes("vadds", y, y, scalar=a[n])

    def golden(self, x: np.ndarray) -> np.ndarray:
        """Return the rounded value; see ``SeriesMethod.golden``."""
        a = self.function.half(self.order)
        y = _like(x, a[-1])
        for step, coefficient in enumerate(a[-2::-1]):
            if self.fused and step:
                y = vector.multiply_add(y, x, _like(x, coefficient))
            else:
                y = vector.add(vector.mul(y, x), _like(x, coefficient))
        return y


@dataclass(frozen=True)
class Estrin(SeriesMethod):
    """Estrin's scheme: pairs a_{2i} + a_{2i+1}·x, then pairs of these then with x⁴, and so on.

    The instructions of a level are independent of each other.
    """

    @property
    def scratch(self) -> int:
        """The pairs but for the one in y, and the power."""
        return (self.order + 1) // 2 - 1 + (self.order > 2)

    @property
    def instructions(self) -> int:
        """2·(order − 1) + ⌈log2 order⌉ − 1; a fused pair of pairs saves one.

        An odd order has one more, which makes a vector of its last coefficient.
        """
        if self.order == 1:
            return 1
        pairs = (self.order + 1) // 2
        squares = (self.order - 1).bit_length() - 1
        combining = (pairs - 1) * (1 if self.fused else 2)
        return 2 * (self.order // 2) + self.order % 2 + squares + combining

    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit the instructions; see ``SeriesMethod.emit``."""
        a = self.function.half(self.order)
        y, x, scratch = piece.y, piece.x, piece.scratch
        # Pair i is a_2i + a_(2i+1)·x; y has pair 0, and in the end the result.
        parts = [y, *scratch[: (self.order + 1) // 2 - 1]]
        for part, high in zip(parts, a[1::2], strict=False):
            lanes("vmuls", part, x, scalar=high)
        if self.order % 2:
            # The last coefficient of an odd order has no partner.
            lanes("vdup", parts[-1], scalar=a[-1])
        power = x
        for level in range((self.order - 1).bit_length()):
            if level:
                # An odd number of parts leaves the last one as it is.
                pairs = list(zip(parts[::2], parts[1::2], strict=False))
                if not self.fused:
                    for _, high in pairs:
                        # All products first, so that one barrier serves all sums.
                        lanes("vmul", high, high, power)
                    for low, high in pairs:
                        lanes("vadd", low, low, high)
                else:
                    for low, high in pairs:
                        lanes("vmla", low, high, power, reads_dst=True)
                parts = parts[::2]
            else:
                for part, low in zip(parts, a[: self.order // 2 * 2 : 2], strict=False):
                    lanes("vadds", part, part, scalar=low)
            if len(parts) > 1:
                lanes("vmul", scratch[-1], power, power)
                power = scratch[-1]

    def golden(self, x: np.ndarray) -> np.ndarray:
        """Return the rounded value; see ``SeriesMethod.golden``."""
        a = self.function.half(self.order)
        values = [
            vector.add(vector.mul(x, _like(x, a[n + 1])), _like(x, a[n]))
            if n + 1 < self.order
            else _like(x, a[n])
            for n in range(0, self.order, 2)
        ]
        power = x
        while len(values) > 1:
            power = vector.mul(power, power)
            joined = []
            for n in range(0, len(values), 2):
                value = values[n]
                if n + 1 < len(values):
                    high = values[n + 1]
                    value = (
                        vector.multiply_add(high, power, value)
                        if self.fused
                        else vector.add(value, vector.mul(high, power))
                    )
                joined.append(value)
            values = joined
        return values[0]
