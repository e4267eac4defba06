"""SIMD²: matrix units for nine semirings."""

from .integer import IntConfig, IntElement, IntTile

__all__ = ["IntConfig", "IntElement", "IntTile"]
