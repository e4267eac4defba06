"""2-D convolution: dense and in groups on the Cube, one channel at a time on the vector unit."""

from vitruvian.sim.kernels.convolution import depthwise, fold, golden, unfold
from vitruvian.sim.kernels.convolution.dense import Operands, build, result
from vitruvian.sim.kernels.convolution.shape import ConvShape
from vitruvian.sim.kernels.convolution.tiling import Plan, Tiling, choose

__all__ = [
    "ConvShape",
    "Operands",
    "Plan",
    "Tiling",
    "build",
    "choose",
    "depthwise",
    "fold",
    "golden",
    "result",
    "unfold",
]
