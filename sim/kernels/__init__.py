"""Case studies on a matrix unit with several precisions: products, convolution, FFT and others.

A kernel is written for a callable ``gemm(a, b, c=None)``; a `Method` on an `Engine` is one. The
engine computes on a back end (golden, the compiled RTL, or whatever has been registered) and counts
what a unit would have taken: instructions, tiles, cycles.
"""

from .conv import CCONV, CONV
from .engine import BACKENDS, INSTRUCTIONS, Cost, Engine, Unit, register_backend
from .fft import FFT
from .gemm import CGEMM, DGEMM, SGEMM
from .methods import METHODS, Bound, Method, NumPy, as_method
from .mrf import MATCH, MRF
from .neighbours import KMEANS, KNN
from .rtl import CompiledUnit
from .study import Kernel, Row, Setting, Study

__all__ = [
    "BACKENDS",
    "INSTRUCTIONS",
    "KERNELS",
    "METHODS",
    "Bound",
    "CompiledUnit",
    "Cost",
    "Engine",
    "Kernel",
    "Method",
    "NumPy",
    "Row",
    "Setting",
    "Study",
    "Unit",
    "as_method",
    "register_backend",
]

#: The case studies by name.
KERNELS = {
    kernel.name: kernel
    for kernel in (SGEMM, CGEMM, DGEMM, CONV, CCONV, FFT, KNN, KMEANS, MRF, MATCH)
}
