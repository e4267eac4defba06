"""The orders in which kernels of a GPU add many numbers: PyTorch's sums, and Triton's."""

from vitruvian.golden.reductions.order import SumOrder, add
from vitruvian.golden.reductions.pytorch import (
    pytorch_mean,
    pytorch_norm,
    pytorch_order,
    pytorch_sum,
)
from vitruvian.golden.reductions.tiles import TileOrder, add_tile

__all__ = [
    "SumOrder",
    "TileOrder",
    "add",
    "add_tile",
    "pytorch_mean",
    "pytorch_norm",
    "pytorch_order",
    "pytorch_sum",
]
