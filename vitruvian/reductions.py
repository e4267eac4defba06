"""The bits of sums of many numbers on a GPU: PyTorch's ``sum``, and Triton's ``tl.sum``.

``pytorch_sum`` is ``torch.sum`` of a contiguous tensor, in the order that ``pytorch_order`` says;
``pytorch_mean``, ``pytorch_norm``, ``pytorch_softmax``, ``pytorch_layer_norm`` and
``pytorch_rms_norm`` follow from the published kernels beside it, and no GPU has confirmed them;
``add_tile`` is ``tl.sum`` in a layout, and ``add`` a sum in any order of threads.

>>> from vitruvian import reductions
>>> print(reductions.pytorch_order(16384, 64))
32 × 16 threads; vectors of 4
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.golden.reductions import (
        SumOrder,
        TileOrder,
        add,
        add_tile,
        pytorch_layer_norm,
        pytorch_mean,
        pytorch_norm,
        pytorch_order,
        pytorch_rms_norm,
        pytorch_softmax,
        pytorch_sum,
    )

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


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("vitruvian.golden.reductions"), name)
    raise AttributeError(f"module 'vitruvian.reductions' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
