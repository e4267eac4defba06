"""Run kernels in AscendC: compiled by g++, and recorded intrinsic by intrinsic.

AscendC is a C++ library whose headers end in the intrinsics of CCE C. ``compile_kernel`` compiles a
kernel with headers in which every intrinsic writes a record; ``build`` runs the program in a
process of its own and turns the records into a ``Program``, by the same sink as ``cce.build``.
This runs native code: see decision record 0053.
"""

from .build import build
from .compile import NativeKernel, compile_kernel

__all__ = ["NativeKernel", "build", "compile_kernel"]
