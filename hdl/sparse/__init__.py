"""The cores of a sparse accelerator: output-stationary, element-wise and input-stationary."""

from .config import ISConfig, Kind, OSConfig, Plus, Times
from .ewise_config import EwiseConfig
from .ewise_core import EwiseCore
from .is_core import ISCore
from .os_core import OSCore

__all__ = [
    "EwiseConfig", "EwiseCore", "ISConfig", "ISCore", "Kind", "OSConfig", "OSCore", "Plus", "Times",
]  # fmt: skip
