"""The compiled matrix unit as the Cube of ``sim.davinci``, with its results and its cycles."""

from fractions import Fraction
from typing import Any

import numpy as np


class RtlCube:
    """A ``sim.davinci.semantics.Product`` that the compiled RTL computes.

    An mmad passes through the unit as one stream, in the order of ``sim.rtl.cube.matmul``. Its
    duration is the number of clock cycles from reset to the hand-shake of the last result. It does
    not depend on the data, so it is measured once for each shape. The duration in seconds is the
    chip's time of initialisation plus these cycles at the chip's clock.

    Parameters
    ----------
    config : MatrixUnitConfig, optional
        ``CONFIGS["cube_davinci"]``, 16 × 16 × 16, by default. Another unit must sum the same number
        of terms in a step, because a sum is rounded after each step.

    Attributes
    ----------
    cycles : int
        Clock cycles of all products so far.
    products : int
        Number of products so far.
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
        # Golden rounds a sum after every 32 bytes of K: 16 elements of FP16 or 32 of INT8.
        deep = 32 if dtype == "int8" else 16
        if self.config.terms(dtype) != deep:
            raise ValueError(f"unit must have {deep} terms of {dtype}, not {self.config}")
        return dtype

    def __call__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, *dtypes: str) -> np.ndarray:
        """Return C + A·B for codes or integers, bit-exact with golden.

        Parameters
        ----------
        a : (M, K) ndarray of uint16 or int8
        b : (K, N) ndarray of uint16 or int8
        c : (M, N) ndarray of uint32 or int32
        *dtypes : str
            Types of A, B and C: fp16, fp16 and fp32, or int8, int8 and int32.

        Raises
        ------
        ValueError
            If the unit has no such precision.
        """
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
        """Return the duration of an mmad in seconds, with the initialisation."""
        fields, operands = instruction.fields, instruction.operands
        key = fields["m"], fields["k"], fields["n"], operands["a"].dtype, operands["c"].dtype
        if key not in self._known:
            self._known[key] = self._count(*key)
        return chip.cube.init_s + self._known[key] / chip.clock_hz

    def _count(self, m: int, k: int, n: int, dtype: str, sum_dtype: str) -> int:
        from .cube import matmul

        kind = np.int8 if dtype == "int8" else np.uint16
        wide = np.int32 if dtype == "int8" else np.uint32
        # The control of the unit does not look at the operands, so zeros take as many cycles.
        zeros = np.zeros((m, k), kind), np.zeros((k, n), kind), np.zeros((m, n), wide)
        return matmul(self.config, *zeros, precision=self._precision(dtype)).cycles
