"""The arithmetic of the Cube, the DaVinci core's matrix unit: multiply-accumulate on codes."""

from vitruvian.golden.cube.mmad import mmad, mmad_any

__all__ = ["mmad", "mmad_any"]
