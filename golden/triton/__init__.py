"""Dots and sums of tiles as Triton's compiler makes them of a machine's instructions."""

from vitruvian.golden.triton.dot import Dot, lower
from vitruvian.golden.triton.product import multiply
from vitruvian.golden.triton.scaled import multiply_scaled
from vitruvian.golden.triton.sums import sum_order

__all__ = ["Dot", "lower", "multiply", "multiply_scaled", "sum_order"]
