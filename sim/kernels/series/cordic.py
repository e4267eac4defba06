"""CORDIC: rotations by angles whose tangents are powers of two, on the vector unit.

Each iteration takes the sign of the angle that is left and rotates by ±atan(2^−i), or, for
hyperbolic functions, by ±atanh(2^−i); the signs are OR-ed into the codes of the factors ±2^−i, so
that there is no comparison. An iteration has six instructions, some of which multiply and add.

The iterations reach angles up to 1.74, and 1.11 for hyperbolic functions. Therefore sin and cos are
computed of x − q·π, with the sign (−1)^q, and tan needs no sign. tanh is computed of
x − q·ln 2 as (s·(1 + m) + c·(1 − m)) / (c·(1 + m) + s·(1 − m)), with sinh, cosh and m = 4^−q; the
sigmoid of x is ½ + ½·tanh(x/2).

References
----------
Volder 1959; Walther 1971 (hyperbolic, iterations 4 and 13 twice). Tang 2024, §4.4.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import atan, atanh, log, pi, sqrt

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden import vector
from vitruvian.sim.davinci import View
from vitruvian.sim.kernels.series.lanes import LaneEmitter
from vitruvian.sim.kernels.series.polynomials import SeriesMethod, SeriesPiece

#: The functions of each kind of rotation.
CIRCULAR, HYPERBOLIC = ("sin", "cos", "tan"), ("tanh", "sigmoid")

#: The largest |x| of sin, cos and tan: up to it, q·π is exact as a product of 11 bits.
LARGEST_ANGLE = 32.0

#: π and ln 2 as sums of a number of eight bits and the rest, and the number of ±1 in FP16.
_PI = (201 / 64, pi - 201 / 64)
_LN2 = (177 / 256, log(2) - 177 / 256)
#: Adding this number rounds to an integer, which is then in the lowest bits of the code.
_ROUND = 1536.0
#: tanh is 1 in FP16 from here on, and m is a normal number up to here.
_SATURATED = 4.8

_SIGN, _UNIT = 0x8000, 0x3C00


@dataclass(frozen=True)
class Cordic(SeriesMethod):
    """CORDIC with a number of iterations; ``order`` and ``fused`` do not matter.

    Attributes
    ----------
    iterations : int
        1 … 12; the code of 2^−i is a normal number of FP16 up to there.

    Raises
    ------
    UserError
        If the function is none of CORDIC's, or the iterations are out of range.
    """

    iterations: int = field(default=8, kw_only=True)

    def __post_init__(self) -> None:
        check_int("iterations", self.iterations, 1, 12)
        if self.function.name not in CIRCULAR + HYPERBOLIC:
            names = ", ".join(CIRCULAR + HYPERBOLIC)
            raise UserError(f"functions of cordic must be among {names}, not {self.function.name}")

    @property
    def circular(self) -> bool:
        """True for sin, cos and tan."""
        return self.function.name in CIRCULAR

    @cached_property
    def exponents(self) -> tuple[int, ...]:
        """The exponents i of the iterations: from 0, or from 1 with some of them twice."""
        if self.circular:
            return tuple(range(self.iterations))
        return tuple(sorted((*range(1, 14), 4, 13)))[: self.iterations]

    @property
    def _angles(self) -> list[float]:
        """The angle of each iteration divided by 2^−i, which is rounded to FP16."""
        function = atan if self.circular else atanh
        return [function(2.0**-i) * 2.0**i for i in self.exponents]

    @property
    def _start(self) -> float:
        """The length that the circular rotations bring to 1."""
        gain = 1.0
        for i in self.exponents:
            gain *= sqrt(1 + 4.0**-i)
        return 1 / gain

    @property
    def scratch(self) -> int:
        """Buffers for x, y, the angle, the sign, a product, and the sign or m of the reduction."""
        return 6

    @property
    def table(self) -> np.ndarray:
        """The mask of the sign, the code of 1, and the codes of 2^−i."""
        codes = [_SIGN, _UNIT, *(_UNIT - (i << 10) for i in self.exponents)]
        return np.array(codes, np.uint16)

    @property
    def instructions(self) -> int:
        """Six for each iteration, fewer in the first and last; the reduction, and the quotient."""
        name, later = self.function.name, self.iterations - 1
        # The last iteration leaves out the angle, and for sin and cos what the result does not use.
        last = {"sin": 3, "cos": 4}.get(name, 5)
        first = 5 if self.circular else 4
        rotations = first - 1 if later == 0 else first + 6 * (later - 1) + last
        if self.circular:
            return rotations + (6 if name == "tan" else 8) + 1
        return rotations + 10 + 8 + (3 if name == "sigmoid" else 0)

    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit the instructions; see ``SeriesMethod.emit``."""
        cos, sin, angle, sign, product, extra = piece.scratch
        table, y = piece.table, piece.y
        if self.circular:
            self._reduce_circle(lanes, piece)
        else:
            self._reduce_exponent(lanes, piece)
        for n, ratio in enumerate(self._angles):
            lanes("vand", sign, angle, table[0])
            last = n + 1 == self.iterations
            if n == 0 and not self.circular:
                # From the vector (1, 0): cosh stays 1, and the sinh is ±½.
                lanes("vor", sin, sign, table[2])
                lanes("vdup", cos, scalar=1.0)
                if not last:
                    lanes("vaxpy", angle, sin, reads_dst=True, scalar=-ratio)
                continue
            lanes("vor", sign, sign, table[2 + n])
            if n == 0:
                lanes("vmuls", sin, sign, scalar=self._start)
                lanes("vdup", cos, scalar=self._start)
            else:
                if not (last and self.function.name == "sin"):
                    lanes("vmul", product, sign, sin)
                if not (last and self.function.name == "cos"):
                    lanes("vmla", sin, sign, cos, reads_dst=True)
                if not (last and self.function.name == "sin"):
                    lanes("vsub" if self.circular else "vadd", cos, cos, product)
            if not last:
                lanes("vaxpy", angle, sign, reads_dst=True, scalar=-ratio)
        if self.function.name == "tan":
            lanes("vdiv", y, sin, cos)
        elif self.circular:
            lanes("vmul", y, sin if self.function.name == "sin" else cos, extra)
        else:
            self._quotient(lanes, piece)

    def _reduce_circle(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit angle = x − q·π, and extra = (−1)^q, with q the integer nearest to x/π."""
        angle, quotient, extra = piece.scratch[2], piece.scratch[4], piece.scratch[5]
        lanes("vmuls", quotient, piece.x, scalar=1 / pi)
        lanes("vadds", quotient, quotient, scalar=_ROUND)
        if self.function.name != "tan":
            lanes("vshl", _bits(extra), _bits(quotient), amount=15)
            lanes("vor", extra, extra, piece.table[1])
        lanes("vadds", quotient, quotient, scalar=-_ROUND)
        lanes("vmuls", angle, quotient, scalar=-_PI[0])
        lanes("vadd", angle, angle, piece.x)
        lanes("vaxpy", angle, quotient, reads_dst=True, scalar=-_PI[1])

    def _reduce_exponent(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit angle = x − q·ln 2, and extra = 4^−q, with q the integer nearest to x/ln 2."""
        whole, angle, quotient = piece.scratch[1], piece.scratch[2], piece.scratch[4]
        extra = piece.scratch[5]
        x = piece.x
        if self.function.name == "sigmoid":
            lanes("vmuls", whole, x, scalar=0.5)
            x = whole
        lanes("vmins", whole, x, scalar=_SATURATED)
        lanes("vmaxs", whole, whole, scalar=-_SATURATED)
        # The quotient is −q. Its code, moved to twice the exponent, is the code of 4^−q.
        lanes("vmuls", quotient, whole, scalar=-1 / log(2))
        lanes("vadds", quotient, quotient, scalar=_ROUND)
        lanes("vshl", _bits(extra), _bits(quotient), amount=11)
        lanes("vadds", _bits(extra), _bits(extra), scalar=_UNIT)
        lanes("vadds", quotient, quotient, scalar=-_ROUND)
        lanes("vmuls", angle, quotient, scalar=_LN2[0])
        lanes("vadd", angle, angle, whole)
        lanes("vaxpy", angle, quotient, reads_dst=True, scalar=_LN2[1])

    def _quotient(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit y = tanh or sigmoid from cosh, sinh and m."""
        cosh, sinh, below, plus, above, m = piece.scratch
        lanes("vadds", plus, m, scalar=1.0)
        lanes("vmuls", m, m, scalar=-1.0)
        lanes("vadds", m, m, scalar=1.0)
        lanes("vmul", above, sinh, plus)
        lanes("vmla", above, cosh, m, reads_dst=True)
        lanes("vmul", below, cosh, plus)
        lanes("vmla", below, sinh, m, reads_dst=True)
        lanes("vdiv", piece.y, above, below)
        if self.function.name == "sigmoid":
            lanes("vmuls", piece.y, piece.y, scalar=0.5)
            lanes("vadds", piece.y, piece.y, scalar=0.5)

    # The golden model.

    def golden(self, x: np.ndarray) -> np.ndarray:
        """Return the rounded value; see ``SeriesMethod.golden``."""
        name = self.function.name
        if self.circular:
            whole, q = vector.mul(x, _of(x, 1 / pi)), _PI
        else:
            whole = vector.mul(x, _of(x, 0.5)) if name == "sigmoid" else x
            x = vector.maximum(vector.minimum(whole, _of(x, _SATURATED)), _of(x, -_SATURATED))
            whole, q = vector.mul(x, _of(x, -1 / log(2))), (-_LN2[0], -_LN2[1])
        q_code = vector.add(whole, _of(x, _ROUND))
        q_float = vector.sub(q_code, _of(x, _ROUND))
        angle = vector.add(vector.mul(q_float, _of(x, -q[0])), x)
        angle = vector.multiply_add(q_float, _of(x, -q[1]), angle)
        cos, sin = self._rotated(angle)
        number = (q_code.view(np.uint16) - 0x6600).astype(np.uint16)
        if self.circular:
            sign = np.where(number & 1, np.float16(-1), np.float16(1))
            if name == "tan":
                return vector.div(sin, cos)
            return vector.mul(sin if name == "sin" else cos, sign)
        m = (_UNIT + (number << 11)).astype(np.uint16).view(np.float16)
        one = _of(x, 1)
        plus, minus = vector.add(m, one), vector.sub(one, m)
        above = vector.multiply_add(cos, minus, vector.mul(sin, plus))
        below = vector.multiply_add(sin, minus, vector.mul(cos, plus))
        tanh = vector.div(above, below)
        if name == "tanh":
            return tanh
        return vector.add(vector.mul(tanh, _of(x, 0.5)), _of(x, 0.5))

    def _rotated(self, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vector at the end of the rotations, of which hyperbolic ones scale it."""
        cos = _of(angle, self._start if self.circular else 1)
        sin = np.zeros_like(angle)
        for factor, ratio in self._steps(angle):
            sign = np.copysign(factor, angle)
            turned = vector.mul(sign, sin)
            sin = vector.multiply_add(sign, cos, sin)
            cos = vector.sub(cos, turned) if self.circular else vector.add(cos, turned)
            angle = vector.multiply_add(sign, _of(angle, -ratio), angle)
        return cos, sin

    def _steps(self, like: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        for i, ratio in zip(self.exponents, self._angles, strict=True):
            yield _of(like, 2.0**-i), ratio


def _of(x: np.ndarray, scalar: float) -> np.ndarray:
    return np.full_like(x, scalar, dtype=np.float16)


def _bits(view: View) -> View:
    return view.astype("int16")
