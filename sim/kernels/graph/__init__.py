"""Graph problems on a SIMD² unit: shortest paths, closures, spanning trees, neighbours.

`solve` and `nearest_neighbours` are the applications, written for a `sim.simd2.Machine`, which is
here by the same name; `estimate` says what they cost on a unit.
"""

from ...simd2 import BACKENDS, Counts, Fragment, Machine, register_backend
from .closures import ALGORITHMS, closure, most_iterations
from .inputs import FORMATS, Graph, PrecisionWarning, as_graph
from .model import Assumption, Core, Cycles, Estimate, estimate
from .points import Neighbours, nearest_neighbours
from .problems import PROBLEMS, Paths, Problem, solve

__all__ = [
    "ALGORITHMS",
    "BACKENDS",
    "FORMATS",
    "PROBLEMS",
    "Assumption",
    "Core",
    "Counts",
    "Cycles",
    "Estimate",
    "Fragment",
    "Graph",
    "Machine",
    "Neighbours",
    "Paths",
    "PrecisionWarning",
    "Problem",
    "as_graph",
    "closure",
    "estimate",
    "most_iterations",
    "nearest_neighbours",
    "register_backend",
    "solve",
]
