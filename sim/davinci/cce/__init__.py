"""Read kernels in CCE C, the C dialect of the device, and run them.

``read`` turns a source text into a ``CceKernel``. ``CceKernel.run`` runs the kernel on one core,
and passes every intrinsic with its evaluated and checked arguments to a ``Sink``. ``build`` uses
such a sink to turn a kernel into a ``Program`` for the simulator.
"""

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, IntrinsicCall, Sink
from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table
from vitruvian.sim.davinci.cce.intrinsics.vector import CONVERSIONS
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.sink.program import ProgramSink
from vitruvian.sim.davinci.isa.vector import CONDITIONS

from .build import build, build_mixed
from .kernel import LIMIT, CceKernel, KernelParameter, read, read_file

__all__ = [
    "CONDITIONS",
    "CONVERSIONS",
    "LIMIT",
    "Address",
    "IntrinsicCall",
    "CceError",
    "CceKernel",
    "KernelParameter",
    "SourcePosition",
    "ProgramSink",
    "Sink",
    "build",
    "build_mixed",
    "intrinsic_table",
    "read",
    "read_file",
]
