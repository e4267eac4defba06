"""The back end ``rtl``: products by the compiled RTL of the unit, with the cycles it took."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.studies.engine import register_backend

__all__ = ["CompiledUnit"]


class CompiledUnit:
    """A back end: `golden.m3xu.gemm`'s interface and bits, from Verilator's model of the unit.

    Nothing is loaded or built before the first product; a unit's model is built once and cached.
    """

    def __call__(self, a, b, c=None, **settings: Any) -> np.ndarray:
        """D = C + A·B; see `sim.rtl.m3xu.gemm`."""
        from vitruvian.sim.rtl.m3xu import gemm

        return gemm(a, b, c, **settings)

    def on(self, unit: Unit) -> Callable[..., tuple[np.ndarray, int]]:
        """The same on a unit of given rows and columns, with the clock cycles."""

        def gemm(a, b, c=None, **settings: Any) -> tuple[np.ndarray, int]:
            from vitruvian.sim.rtl.m3xu import compute

            found = compute(a, b, c, m=unit.m, n=unit.n, **settings)
            return found.d, found.cycles

        return gemm

    def check(self, unit: Unit, precision: str) -> None:
        """Refuse a unit that cannot be built.

        Raises
        ------
        ValueError
            For sizes above the generator's.
        """
        from vitruvian.sim.rtl.m3xu import unit_for

        sizes = {"m": unit.m, "n": unit.n, "k": unit.k}
        unit_for(precision, multiplier_bits=unit.multiplier_bits, preset=unit.preset, **sizes)


register_backend("rtl", CompiledUnit())
