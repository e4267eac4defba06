"""Operators with PyTorch's names and shapes, computed by kernels on a simulated DaVinci chip.

Arrays are NumPy arrays of FP16 with the shape (N, C, H, W), or (C, H, W) for one image. Each
function runs its kernel on the chip and returns the result to the bit; with ``report=True`` the
``Report`` of the run follows it. Each name is imported at its first use, so that the import of this
module is quick.

>>> import numpy as np
>>> from vitruvian import ops
>>> ops.max_pool2d(np.arange(16, dtype=np.float16).reshape(1, 1, 4, 4), 2)
array([[[[ 5.,  7.],
         [13., 15.]]]], dtype=float16)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.sim.ops.convolution import conv2d
    from vitruvian.sim.ops.neighbours import knn
    from vitruvian.sim.ops.patches import fold, unfold
    from vitruvian.sim.ops.pooling import (
        avg_pool2d,
        avg_pool2d_backward,
        max_pool2d,
        max_pool2d_backward,
    )
    from vitruvian.sim.ops.series import taylor

__all__ = [
    "avg_pool2d",
    "avg_pool2d_backward",
    "conv2d",
    "fold",
    "knn",
    "max_pool2d",
    "max_pool2d_backward",
    "taylor",
    "unfold",
]

#: Module of each name, in ``vitruvian.sim.ops``.
_HOMES = {
    "avg_pool2d": "pooling",
    "avg_pool2d_backward": "pooling",
    "conv2d": "convolution",
    "fold": "patches",
    "knn": "neighbours",
    "max_pool2d": "pooling",
    "max_pool2d_backward": "pooling",
    "taylor": "series",
    "unfold": "patches",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"vitruvian.sim.ops.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'vitruvian.ops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
