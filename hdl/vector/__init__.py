"""The vector unit: lanes for FP16 and FP32 with masks, repeats and reductions, between streams."""

from .config import VectorConfig
from .operations import Condition, Format, Operation, Rounding
from .unit import VectorUnit

__all__ = ["Condition", "Format", "Operation", "Rounding", "VectorConfig", "VectorUnit"]
