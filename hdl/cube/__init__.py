"""The Cube: a tile of processing elements with accumulators, between streams."""

from .config import CONFIGS, MatrixUnitConfig, config
from .element import ProcessingElement
from .unit import MatrixUnit, Start

__all__ = ["CONFIGS", "MatrixUnit", "MatrixUnitConfig", "ProcessingElement", "Start", "config"]
