"""The orders in which kernels of a GPU add many numbers: PyTorch's sums, and Triton's."""

from vitruvian.golden.reductions.norms import pytorch_layer_norm, pytorch_rms_norm
from vitruvian.golden.reductions.order import SumOrder, add
from vitruvian.golden.reductions.pytorch import (
    pytorch_mean,
    pytorch_norm,
    pytorch_order,
    pytorch_sum,
)
from vitruvian.golden.reductions.softmax import pytorch_softmax
from vitruvian.golden.reductions.tiles import TileOrder, add_tile

__all__ = [
    "SumOrder",
    "TileOrder",
    "add",
    "add_tile",
    "pytorch_layer_norm",
    "pytorch_mean",
    "pytorch_norm",
    "pytorch_order",
    "pytorch_rms_norm",
    "pytorch_softmax",
    "pytorch_sum",
]
