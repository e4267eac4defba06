"""Motzkin's method: polynomials of degree 4 with preconditioned coefficients.

A polynomial is cut into blocks of five coefficients, Σ x^s·p(x) with p of degree 4, of which one
block may be shorter. Preconditioning saves a multiplication of the four of Horner's rule and takes
one addition more, so that a block has eight instructions either way. It divides by the coefficient
of x⁴; where this one is zero, or too small for FP16, or would make rounding errors grow, the block
is evaluated with Horner's rule.

References
----------
Tang 2024, §4.1.1, names the method and its counts for degree 4. Knuth 1997, §4.6.4, eq. 9, has the
preconditioning.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from vitruvian.golden import vector
from vitruvian.golden.fp.reference import encode
from vitruvian.sim.davinci import View
from vitruvian.sim.kernels.series.lanes import LaneEmitter
from vitruvian.sim.kernels.series.polynomials import SeriesMethod, SeriesPiece

#: Coefficients of a whole block.
_WHOLE = 5
#: The bound on rounding errors of a preconditioned block, in those of Horner's rule at |x| = 1.
_GROWTH = 8


@dataclass(frozen=True)
class Block:
    """Consecutive coefficients of a polynomial.

    Attributes
    ----------
    start : int
        The index of the first coefficient.
    numbers : (n,) tuple of Fraction
        The coefficients, or α_0 … α_4 if they are preconditioned.
    adapted : bool
        True for α_0 … α_4: ((y + x + α_2)·y + α_3)·α_4 with y = (x + α_0)·x + α_1.
    """

    start: int
    numbers: tuple[Fraction, ...]
    adapted: bool

    @property
    def half(self) -> np.ndarray:
        """The numbers rounded to FP16."""
        codes = [encode(a, "fp16", "RNE") for a in self.numbers]
        return np.array(codes, np.uint16).view(np.float16)


def preconditioned(u: tuple[Fraction, ...]) -> tuple[Fraction, ...] | None:
    """Return α_0 … α_4 of a polynomial of degree 4, or None if FP16 does not have good ones.

    Parameters
    ----------
    u : tuple of Fraction
        The five coefficients u_0 … u_4.
    """
    if abs(u[4]) < Fraction(1, 1 << 14):  # below FP16's normal numbers
        return None
    a0 = (u[3] / u[4] - 1) / 2
    b = u[2] / u[4] - a0 * (a0 + 1)
    a1 = u[1] / u[4] - a0 * b
    a2 = b - 2 * a1
    a3 = u[0] / u[4] - a1 * (a1 + a2)
    # Rounding errors are in proportion to the sum of the magnitudes of all terms.
    y = 1 + abs(a0) + abs(a1)
    size = abs(u[4]) * ((y + 1 + abs(a2)) * y + abs(a3))
    if size > _GROWTH * sum(map(abs, u)):
        return None
    return a0, a1, a2, a3, u[4]


@dataclass(frozen=True)
class Motzkin(SeriesMethod):
    """A polynomial as blocks of degree 4, most of them preconditioned if possible."""

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, the lowest first.

        Only one may be short, the first or the last: whichever leaves more preconditioned blocks.
        """
        a = self.function.exact(self.order)
        short = self.order % _WHOLE
        cuts = [tuple(range(0, self.order, _WHOLE))]
        if short and self.order > _WHOLE:
            cuts.append((0, *range(short, self.order, _WHOLE)))
        choices = []
        for starts in cuts:
            blocks = []
            for start, end in zip(starts, (*starts[1:], self.order), strict=True):
                u = a[start:end]
                alphas = preconditioned(u) if len(u) == _WHOLE else None
                blocks.append(Block(start, alphas or u, alphas is not None))
            choices.append(tuple(blocks))
        return max(choices, key=lambda blocks: sum(b.adapted for b in blocks))

    @property
    def _shifts(self) -> tuple[int, ...]:
        """The powers of x between the blocks."""
        starts = [block.start for block in self.blocks]
        return tuple(high - low for low, high in pairwise(starts))

    @property
    def _powers(self) -> tuple[int, ...]:
        """The powers of x to compute, each from those before it."""
        largest = max(self._shifts, default=1)
        needed = {1: (), 2: (2,), 3: (2, 3), 4: (2, 4), 5: (2, 4, 5)}[largest]
        return tuple(sorted({*needed, *(n for n in self._shifts if n > 1)}))

    @property
    def scratch(self) -> int:
        """The powers, a block, and the inner quadratic of a preconditioned block."""
        return len(self._powers) + 2

    @property
    def instructions(self) -> int:
        """Two for each degree of a block, two to join a block (one if fused), and the powers.

        A block of one coefficient at the bottom is added by one instruction, also if fused. At
        the top, it is multiplied as it is by one instruction.
        """
        total = len(self._powers)
        last = len(self.blocks) - 1
        for n, block in enumerate(self.blocks):
            degree = len(block.numbers) - 1
            total += 2 * degree
            if degree == 0:
                total += n == 0 or last == 0
            if n < last:
                constant = degree == 0 or (n + 1 == last and len(self.blocks[last].numbers) == 1)
                total += 1 if self.fused and not constant else 2
                total -= degree == 0
        return total

    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit the instructions; see ``SeriesMethod.emit``."""
        x = piece.x
        part, inner, *buffers = piece.scratch
        powers: dict[int, View] = {1: x}
        for n, buffer in zip(self._powers, buffers, strict=True):
            low, high = _factors(n)
            lanes("vmul", buffer, powers[low], powers[high])
            powers[n] = buffer
        top = self.blocks[-1]
        if len(top.numbers) > 1 or len(self.blocks) == 1:
            _emit_block(lanes, top, piece.y, x, inner)
        for block, above, shift in zip(
            self.blocks[-2::-1], self.blocks[:0:-1], self._shifts[::-1], strict=True
        ):
            constant = above is top and len(top.numbers) == 1
            if len(block.numbers) > 1:
                _emit_block(lanes, block, part, x, inner)
            if constant:
                lanes("vmuls", piece.y, powers[shift], scalar=top.half[0])
            elif self.fused and len(block.numbers) > 1:
                lanes("vmadd", piece.y, powers[shift], part, reads_dst=True)
                continue
            else:
                lanes("vmul", piece.y, piece.y, powers[shift])
            if len(block.numbers) > 1:
                lanes("vadd", piece.y, piece.y, part)
            else:
                lanes("vadds", piece.y, piece.y, scalar=block.half[0])

    def golden(self, x: np.ndarray) -> np.ndarray:
        """Return the rounded value; see ``SeriesMethod.golden``."""
        powers = {1: x}
        for n in self._powers:
            low, high = _factors(n)
            powers[n] = vector.mul(powers[low], powers[high])
        y = _golden_block(self.blocks[-1], x)
        for n in reversed(range(len(self.blocks) - 1)):
            part = _golden_block(self.blocks[n], x)
            power = powers[self.blocks[n + 1].start - self.blocks[n].start]
            constant = len(self.blocks[n].numbers) == 1 or (
                n + 2 == len(self.blocks) and len(self.blocks[-1].numbers) == 1
            )
            if self.fused and not constant:
                y = vector.multiply_add(y, power, part)
            else:
                y = vector.add(vector.mul(y, power), part)
        return y


def _factors(n: int) -> tuple[int, int]:
    """Return the powers whose product is x^n, both among those computed before."""
    return {2: (1, 1), 3: (2, 1), 4: (2, 2), 5: (4, 1)}[n]


def _emit_block(lanes: LaneEmitter, block: Block, y: View, x: View, inner: View) -> None:
    """Emit y = the value of a block; ``inner`` may be overwritten."""
    a = block.half
    if len(a) == 1:
        lanes("vdup", y, scalar=a[0])
    elif block.adapted:
        lanes("vadds", inner, x, scalar=a[0])
        lanes("vmul", inner, inner, x)
        lanes("vadds", inner, inner, scalar=a[1])
        lanes("vadd", y, inner, x)
        lanes("vadds", y, y, scalar=a[2])
        lanes("vmul", y, y, inner)
        lanes("vadds", y, y, scalar=a[3])
        lanes("vmuls", y, y, scalar=a[4])
    else:
        lanes("vmuls", y, x, scalar=a[-1])
        for n in reversed(range(1, len(a) - 1)):
            lanes("vadds", y, y, scalar=a[n])
            lanes("vmul", y, y, x)
        lanes("vadds", y, y, scalar=a[0])


def _golden_block(block: Block, x: np.ndarray) -> np.ndarray:
    a = [np.full_like(x, number) for number in block.half]
    if not block.adapted:
        y = a[-1]
        for coefficient in a[-2::-1]:
            y = vector.add(vector.mul(y, x), coefficient)
        return y
    inner = vector.add(vector.mul(vector.add(x, a[0]), x), a[1])
    outer = vector.add(vector.add(inner, x), a[2])
    return vector.mul(vector.add(vector.mul(outer, inner), a[3]), a[4])
