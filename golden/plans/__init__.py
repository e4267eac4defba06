"""How a library computes a product: the order of its sums, and what follows them."""

from vitruvian.golden.plans.plan import Plan, contiguous, scaled_mm
from vitruvian.golden.plans.product import multiply
from vitruvian.golden.plans.recorded import LibraryCall, load, recorded
from vitruvian.golden.plans.search import find

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
