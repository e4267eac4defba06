"""CCE C: kernels as they are written for the device, read and run.

`read` turns a source into a `Kernel`; `Kernel.run` runs it for one core and gives every intrinsic,
its arguments evaluated and checked, to a `Sink`. `build` makes a `Program` of it that way.
"""

from .build import build, build_mixed
from .errors import CceError, Position
from .intrinsics import CONDITIONS, CONVERSIONS, intrinsics
from .kernel import LIMIT, Kernel, Parameter, read, read_file
from .machine import Address, Call, Sink
from .sink import ProgramSink

__all__ = [
    "CONDITIONS",
    "CONVERSIONS",
    "LIMIT",
    "Address",
    "Call",
    "CceError",
    "Kernel",
    "Parameter",
    "Position",
    "ProgramSink",
    "Sink",
    "build",
    "build_mixed",
    "intrinsics",
    "read",
    "read_file",
]
