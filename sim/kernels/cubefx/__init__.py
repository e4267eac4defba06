"""Cube-fx: sums of many power series at once, by matrix products on the Cube.

``CubeFx`` has the options, ``build`` makes the program, and ``golden`` computes its results.

References
----------
Tang 2024, ch. 4.
"""

from vitruvian.sim.kernels.cubefx.build import CubeFx, build
from vitruvian.sim.kernels.cubefx.mapping import Mapping, best

__all__ = ["CubeFx", "Mapping", "best", "build"]
