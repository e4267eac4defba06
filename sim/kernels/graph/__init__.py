"""Graph problems on a SIMD² unit: shortest paths, closures, spanning trees, neighbours.

`solve` and `nearest_neighbours` are the applications, written for a `sim.simd2.Machine`, which is
here by the same name; `estimate` says what they cost on a unit.
"""

from ...simd2 import BACKENDS, Counts, Fragment, Machine, register_backend
from .closures import ALGORITHMS, closure, default_algorithm, most_iterations
from .edges import DUPLICATES, EdgeList, GraphWarning
from .files import is_edge_file
from .inputs import FORMATS, Graph, PrecisionWarning, as_graph
from .model import Assumption, Core, Cycles, Estimate, estimate
from .outputs import write_neighbours, write_paths
from .points import Neighbours, nearest_neighbours
from .problems import PROBLEMS, Paths, Problem, read_graph, solve

__all__ = [
    "ALGORITHMS",
    "BACKENDS",
    "DUPLICATES",
    "FORMATS",
    "PROBLEMS",
    "Assumption",
    "Core",
    "Counts",
    "Cycles",
    "EdgeList",
    "Estimate",
    "Fragment",
    "Graph",
    "GraphWarning",
    "Machine",
    "Neighbours",
    "Paths",
    "PrecisionWarning",
    "Problem",
    "as_graph",
    "closure",
    "default_algorithm",
    "estimate",
    "is_edge_file",
    "most_iterations",
    "nearest_neighbours",
    "read_graph",
    "register_backend",
    "solve",
    "write_neighbours",
    "write_paths",
]
