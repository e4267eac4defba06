"""The back end ``rtl`` of the case studies: the compiled RTL of the unit, with its clock cycles."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.studies.engine import register_backend


class CompiledMatrixUnit:
    """A back end with the parameters and the bits of ``golden.m3xu.gemm``, run by Verilator.

    Nothing is imported or built before the first product. The model of a unit is built once and
    kept in the cache.
    """

    def __call__(self, a, b, c=None, **settings: Any) -> np.ndarray:
        """Return D = C + A·B; see ``sim.rtl.m3xu.gemm``."""
        from vitruvian.sim.rtl.m3xu import gemm

        return gemm(a, b, c, **settings)

    def on(self, unit: Unit) -> Callable[..., tuple[np.ndarray, int]]:
        """Return the function that computes on ``unit`` and returns D and the clock cycles."""

        def gemm(a, b, c=None, **settings: Any) -> tuple[np.ndarray, int]:
            from vitruvian.sim.rtl.m3xu import compute

            result = compute(a, b, c, m=unit.m, n=unit.n, **settings)
            return result.d, result.cycles

        return gemm

    def check(self, unit: Unit, precision: str) -> None:
        """Check that the unit can be built.

        Raises
        ------
        ValueError
            If a size is above the largest that the RTL generator accepts.
        """
        from vitruvian.sim.rtl.m3xu import unit_for

        sizes = {"m": unit.m, "n": unit.n, "k": unit.k}
        unit_for(precision, multiplier_bits=unit.multiplier_bits, preset=unit.preset, **sizes)


register_backend("rtl", CompiledMatrixUnit())
