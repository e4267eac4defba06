"""The cores of a sparse accelerator: output-stationary, element-wise and input-stationary."""

from .config import ISConfig, Kind, OSConfig, Plus, Times
from .is_core import ISCore
from .os_core import OSCore

__all__ = ["ISConfig", "ISCore", "Kind", "OSConfig", "OSCore", "Plus", "Times"]
