"""The compiled matrix unit as the Cube of `sim.davinci`: its results, and its cycles."""

from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["RtlCube"]


class RtlCube:
    """A `sim.davinci.semantics.Product` that is computed by the compiled RTL.

    An mmad goes through the unit as one stream, as `sim.rtl.cube.matmul` orders it. How long it
    takes is counted from reset to the hand-shake of the last result, which no data change, once for
    each shape; the chip's clock makes seconds of it, and the chip's initialisation comes before.

    Parameters
    ----------
    config : MatrixUnitConfig, optional
        `CONFIGS["cube_davinci"]`, 16 × 16 × 16, by default. Another must have the same terms a
        step, or the sums are rounded elsewhere.

    Attributes
    ----------
    cycles : int
        Of all products so far.
    products : int
    """

    def __init__(self, config: Any = None) -> None:
        from vitruvian.hdl.cube import CONFIGS

        self.config = CONFIGS["cube_davinci"] if config is None else config
        self.cycles = self.products = 0
        self._known: dict[tuple, int] = {}

    def _precision(self, dtype: str) -> str:
        if dtype not in self.config.precisions:
            names = ", ".join(self.config.precisions)
            raise ValueError(f"dtype of mmad must be one of {names} on this unit, not {dtype!r}")
        deep = 32 if dtype == "int8" else 16
        if self.config.terms(dtype) != deep:
            raise ValueError(f"unit must have {deep} terms of {dtype}, not {self.config}")
        return dtype

    def __call__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, *dtypes: str) -> np.ndarray:
        """C + A·B of codes or integers, to the bit what golden gives."""
        from .cube import matmul

        kinds = set(dtypes[:2])
        if len(kinds) != 1 or dtypes[2] != ("int32" if "int8" in kinds else "fp32"):
            shown = ", ".join(dtypes)
            raise ValueError(f"dtypes of mmad must be fp16 to fp32 or int8 to int32, not {shown}")
        done = matmul(self.config, a, b, c, precision=self._precision(dtypes[0]))
        self.cycles += done.cycles
        self.products += 1
        return done.d.astype(c.dtype, copy=False)

    def period_s(self, instruction: Any, chip: Any) -> Fraction:
        """Seconds of an mmad: initialisation and the cycles of the hand-shake."""
        f, operands = instruction.fields, instruction.operands
        key = f["m"], f["k"], f["n"], operands["a"].dtype, operands["c"].dtype
        if key not in self._known:
            self._known[key] = self._count(*key)
        return chip.cube.init_s + self._known[key] / chip.clock_hz

    def _count(self, m: int, k: int, n: int, dtype: str, sum_dtype: str) -> int:
        from .cube import matmul

        kind = np.int8 if dtype == "int8" else np.uint16
        wide = np.int32 if dtype == "int8" else np.uint32
        zeros = np.zeros((m, k), kind), np.zeros((k, n), kind), np.zeros((m, n), wide)
        return matmul(self.config, *zeros, precision=self._precision(dtype)).cycles
