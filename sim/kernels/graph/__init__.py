"""Graph problems on a SIMD² unit: shortest paths, closures, spanning trees, neighbours.

`solve` and `nearest_neighbours` are the applications; `Machine` is the programming model that they
are written for, on a back end (golden, or whatever has been registered), and `estimate` says what
they cost on a unit.
"""

from .closures import ALGORITHMS, closure, most_iterations
from .inputs import FORMATS, Graph, PrecisionWarning, as_graph
from .machine import BACKENDS, Counts, Fragment, Machine, register_backend
from .model import Core, Cycles, Estimate, estimate
from .problems import PROBLEMS, Neighbours, Paths, Problem, nearest_neighbours, solve

__all__ = [
    "ALGORITHMS",
    "BACKENDS",
    "FORMATS",
    "PROBLEMS",
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
