"""CCE C: kernels as they are written for the device, read and run.

`read` turns a source into a `Kernel`; `Kernel.run` runs it for one core and gives every intrinsic,
its arguments evaluated and checked, to a `Sink`. `build` makes a `Program` of it that way.
"""

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, Call, Sink
from vitruvian.sim.davinci.cce.intrinsics.table import CONDITIONS, CONVERSIONS, intrinsic_table
from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.sink.program import ProgramSink

from .build import build, build_mixed
from .kernel import LIMIT, Kernel, Parameter, read, read_file

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
    "intrinsic_table",
    "read",
    "read_file",
]
