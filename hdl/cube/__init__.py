"""The matrix unit ("Cube"): a tile of processing elements with accumulators, between streams."""

from .config import MatrixUnitConfig
from .element import ProcessingElement
from .ports import Start
from .presets import BLACKWELL, CONFIGS
from .unit import MatrixUnit

__all__ = ["BLACKWELL", "CONFIGS", "MatrixUnit", "MatrixUnitConfig", "ProcessingElement", "Start"]
