"""The core around the units: queues, flags, buffers, and the units joined."""

from .board import CoreBoard
from .config import CORES, CoreConfig
from .core import Core

__all__ = ["CORES", "Core", "CoreBoard", "CoreConfig"]
