"""The core around the units: queues, flags, buffers, and the units joined."""

from .config import CORES, CoreConfig
from .core import Core, CoreBoard

__all__ = ["CORES", "Core", "CoreBoard", "CoreConfig"]
