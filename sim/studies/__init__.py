"""Case studies on a matrix unit with several precisions: products, convolution, FFT and others.

A kernel calls a function ``gemm(a, b, c=None)``; ``BoundMethod``, a ``Method`` on an ``Engine``, is
such a function. The engine computes on a back end (golden, the compiled RTL, or one that was added
by ``register_backend``) and counts the instructions, tiles and cycles that a unit would take.
"""

from vitruvian.sim.matrix_unit import INSTRUCTIONS, Cost, Unit
from vitruvian.sim.studies.conv import CCONV, CONV
from vitruvian.sim.studies.engine import BACKENDS, Engine, register_backend
from vitruvian.sim.studies.fft import FFT
from vitruvian.sim.studies.gemm import CGEMM, DGEMM, SGEMM
from vitruvian.sim.studies.methods import METHODS, BoundMethod, Method, NumPy, as_method
from vitruvian.sim.studies.mrf import MATCH, MRF
from vitruvian.sim.studies.neighbours import KMEANS, KNN
from vitruvian.sim.studies.rtl import CompiledMatrixUnit
from vitruvian.sim.studies.study import RunOptions, Study, StudyKernel, StudyRow

__all__ = [
    "BACKENDS",
    "INSTRUCTIONS",
    "KERNELS",
    "METHODS",
    "BoundMethod",
    "CompiledMatrixUnit",
    "Cost",
    "Engine",
    "StudyKernel",
    "Method",
    "NumPy",
    "StudyRow",
    "RunOptions",
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
