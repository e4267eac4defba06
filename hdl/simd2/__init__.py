"""SIMD²: arithmetic for nine semirings (Zhang 2024, chapter 3), on FP16 or integer operands."""

from .integer import IntConfig, IntElement, IntTile

__all__ = ["IntConfig", "IntElement", "IntTile"]
