"""CORDIC that compares the angle with 0 and selects, as a first kernel would have it.

Each iteration has a ``vcmp`` and two ``vsel`` for each repeat of 128 inputs: the comparison chooses
±2^−i and ±atan(2^−i). The register holds the comparison of one repeat, so these instructions have
one repeat each. The rotation and the angle take four instructions more.

Tang 2024 does not print the kernel that it compares with. This one has about the published time.

References
----------
Volder 1959. Tang 2024, §4.4.1 and §4.4.2.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden import vector
from vitruvian.sim.kernels.series.cordic import CIRCULAR, Cordic
from vitruvian.sim.kernels.series.lanes import LaneEmitter
from vitruvian.sim.kernels.series.polynomials import SeriesPiece

_NEGATIVE = np.uint16(0x8000)


@dataclass(frozen=True)
class ComparingCordic(Cordic):
    """CORDIC with comparisons, for sin, cos and tan.

    Raises
    ------
    UserError
        If the function is another one, or the iterations are out of range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.function.name not in CIRCULAR:
            raise UserError(
                f"functions of cordic-compare must be among {', '.join(CIRCULAR)}, "
                f"not {self.function.name}"
            )

    @property
    def scratch(self) -> int:
        """Buffers for x, y, the angle, ±2^−i, a product, the sign of the reduction, ±atan."""
        return 7

    @property
    def table(self) -> np.ndarray:
        """The mask of the sign, the code of 1, 0, and ±2^−i and ±atan(2^−i) of each iteration."""
        codes = [super().table[0], super().table[1], np.uint16(0)]
        for i in self.exponents:
            step = np.array([2.0**-i, np.arctan(2.0**-i)], np.float16).view(np.uint16)
            codes += [step[0], step[0] | _NEGATIVE, step[1], step[1] | _NEGATIVE]
        return np.array(codes, np.uint16)

    @property
    def instructions(self) -> int:
        """The number of vector instructions for a piece of one repeat."""
        return self.on_repeats(1)

    def on_repeats(self, repeats: int) -> int:
        """Return the number of instructions: three for each repeat and iteration, and the rest."""
        reduction = (6 if self.function.name == "tan" else 8) + 1
        return reduction + 2 + (3 * repeats + 4) * self.iterations

    def emit(self, lanes: LaneEmitter, piece: SeriesPiece) -> None:
        """Emit the instructions; see ``SeriesMethod.emit``."""
        cos, sin, angle, factor, product, extra, turn = piece.scratch
        table, y = piece.table, piece.y
        self._reduce_circle(lanes, piece)
        lanes("vdup", cos, scalar=self._start)
        lanes("vdup", sin, scalar=0.0)
        for n in range(self.iterations):
            plus, minus, ahead, back = table[3 + 4 * n : 7 + 4 * n]
            lanes.choose(angle, table[2], (factor, plus, minus), (turn, ahead, back))
            lanes("vmul", product, factor, sin)
            lanes("vsub", angle, angle, turn)
            lanes("vmla", sin, factor, cos, reads_dst=True)
            lanes("vsub", cos, cos, product)
        if self.function.name == "tan":
            lanes("vdiv", y, sin, cos)
        else:
            lanes("vmul", y, sin if self.function.name == "sin" else cos, extra)

    def _rotated(self, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vector at the end of the rotations."""
        cos, sin = np.full_like(angle, self._start), np.zeros_like(angle)
        for i in self.exponents:
            ahead = vector.compare(angle, np.zeros_like(angle), "ge")
            factor = np.where(ahead, np.float16(2.0**-i), np.float16(-(2.0**-i)))
            turn = np.float16(np.arctan(2.0**-i))
            turned = vector.mul(factor, sin)
            angle = vector.sub(angle, np.where(ahead, turn, -turn))
            sin = vector.multiply_add(factor, cos, sin)
            cos = vector.sub(cos, turned)
        return cos, sin
