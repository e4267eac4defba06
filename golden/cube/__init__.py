"""The Cube's arithmetic: matrix multiply-accumulate on codes."""

from golden.cube.mmad import mmad

__all__ = ["mmad"]
