"""What programs compute: every instruction as a function on NumPy memories.

`Functional` has the memories of a program's cores and carries instructions out one by one, in
whatever order it is told; vector arithmetic is `golden.vector`'s and the Cube's `golden.cube`'s, to
the bit.
"""

from .functional import Functional
from .matrix import CUBES, Product, golden_product
from .memory import FunctionalError, Memory

__all__ = ["CUBES", "Functional", "FunctionalError", "Memory", "Product", "golden_product"]
