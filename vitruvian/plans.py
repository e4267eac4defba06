"""How a library computes a product: plans of cuBLAS, measured, published, or of your own.

An instruction has one result; a library chooses the instruction, divides K among slices, and may
restart its sums. ``Plan`` says how, ``find`` has the plans of calls that were recorded on a GPU
(``load`` those of your own: ``vitruvian plans``),
``scaled_mm`` makes that of PyTorch's ``_scaled_mm`` on Hopper, and ``multiply`` computes by a plan.

>>> from vitruvian import plans
>>> print(plans.scaled_mm(512, slices=2))
h100_wgmma_e4m3_fp32; 32 terms a step; from zero every 128; 2 slices from 0, 256; \
factors by tensor; to bf16 (published)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitruvian.golden.plans import (
        LibraryCall,
        Plan,
        contiguous,
        find,
        load,
        multiply,
        recorded,
        scaled_mm,
    )

__all__ = [
    "LibraryCall",
    "Plan",
    "contiguous",
    "find",
    "load",
    "multiply",
    "recorded",
    "scaled_mm",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("vitruvian.golden.plans"), name)
    raise AttributeError(f"module 'vitruvian.plans' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
