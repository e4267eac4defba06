"""Selection of the k smallest distances: the baselines that SelB-k-NN is compared with.

``Bitonic`` and ``Heap`` are methods for the search of ``sim.kernels.selbknn``; ``build`` makes a
program of one of them alone, from distances in global memory. ``golden`` has the same algorithms in
NumPy.

References
----------
Tang 2024, §3.1 and §3.5.
"""

from vitruvian.sim.kernels.kselection.bitonic import Bitonic
from vitruvian.sim.kernels.kselection.build import METHODS, build, result
from vitruvian.sim.kernels.kselection.heap import Heap

__all__ = ["METHODS", "Bitonic", "Heap", "build", "result"]
