"""Dots of tiles as Triton's compiler makes them of a machine's instructions, in their order."""

from vitruvian.golden.triton.dot import Dot, lower
from vitruvian.golden.triton.product import multiply
from vitruvian.golden.triton.scaled import multiply_scaled

__all__ = ["Dot", "lower", "multiply", "multiply_scaled"]
