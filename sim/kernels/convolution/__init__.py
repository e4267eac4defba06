"""2-D convolution: dense and in groups on the Cube, one channel at a time on the vector unit."""

from vitruvian.sim.kernels.convolution import depthwise, fold, golden, unfold
from vitruvian.sim.kernels.convolution.dense import ConvOperands, build, result
from vitruvian.sim.kernels.convolution.shape import ConvShape
from vitruvian.sim.kernels.convolution.tiling import ConvPlan, ConvTiling, choose

__all__ = [
    "ConvShape",
    "ConvOperands",
    "ConvPlan",
    "ConvTiling",
    "build",
    "choose",
    "depthwise",
    "fold",
    "golden",
    "result",
    "unfold",
]
