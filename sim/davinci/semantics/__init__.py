"""The results of programs: every instruction as a function on NumPy memories.

``Functional`` has the memories of a program's cores and carries out instructions one by one, in the
order in which its caller gives them. It is bit-exact: vector arithmetic is that of
``golden.vector``, and products of the Cube are those of ``golden.cube``.
"""

from .functional import Functional
from .matrix import CUBES, Product, golden_product
from .memory import FunctionalError, Memory

__all__ = ["CUBES", "Functional", "FunctionalError", "Memory", "Product", "golden_product"]
