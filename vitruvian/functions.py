"""The bits of a GPU's approximate functions: ex2, lg2, rcp, rsqrt, sqrt, sin and cos of an H200.

``compute`` takes the name of an instruction of PTX; ``instructions`` lists those with a known rule,
and ``missing`` those without. ``cuda`` takes the name of a function of CUDA C, such as ``expf``.
``divide_full`` is the division of Triton.

>>> import numpy as np
>>> from vitruvian import functions
>>> float(functions.compute("rcp.approx.ftz.f32", np.array([3], np.float32))[0])
0.3333333432674408
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.golden.functions import compute, cuda, divide_full, instructions, missing

__all__ = ["compute", "cuda", "divide_full", "instructions", "missing"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("vitruvian.golden.functions"), name)
    raise AttributeError(f"module 'vitruvian.functions' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
