"""The three cores of a sparse accelerator, its buffer and control, and the pipeline of them."""

from .buffer import DualBuffer
from .config import ISConfig, Kind, OSConfig, Plus, Times
from .control import PipelineControl
from .ewise_config import EwiseConfig
from .ewise_core import EwiseCore
from .is_core import ISCore
from .oei import OEIPipeline
from .oei_config import OEIConfig, Refusal
from .os_core import OSCore

__all__ = [
    "DualBuffer", "EwiseConfig", "EwiseCore", "ISConfig", "ISCore", "Kind", "OEIConfig",
    "OEIPipeline", "OSConfig", "OSCore", "PipelineControl", "Plus", "Refusal", "Times",
]  # fmt: skip
