"""The Cube's arithmetic: matrix multiply-accumulate on codes."""

from vitruvian.golden.cube.mmad import mmad, mmad_any

__all__ = ["mmad", "mmad_any"]
