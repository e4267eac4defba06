"""The matrix unit ("Cube"): a tile of processing elements with accumulators, between streams."""

from .config import CONFIGS, MatrixUnitConfig
from .element import ProcessingElement
from .ports import Start
from .unit import MatrixUnit

__all__ = ["CONFIGS", "MatrixUnit", "MatrixUnitConfig", "ProcessingElement", "Start"]
