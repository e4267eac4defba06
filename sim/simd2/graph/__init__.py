"""Graph problems on a SIMD² unit: shortest paths, closures, spanning trees, neighbours.

``solve`` and ``nearest_neighbours`` solve problems on a ``Machine``, which is that of
``sim.simd2``; ``estimate`` models the cycles they take on a unit.
"""

from vitruvian.sim.simd2 import BACKENDS, Counts, Fragment, Machine, register_backend
from vitruvian.sim.simd2.graph.closures import (
    ALGORITHMS,
    closure,
    default_algorithm,
    most_iterations,
)
from vitruvian.sim.simd2.graph.edges import DUPLICATES, EdgeList, GraphWarning
from vitruvian.sim.simd2.graph.files import is_edge_file
from vitruvian.sim.simd2.graph.inputs import FORMATS, Graph, PrecisionWarning, as_graph
from vitruvian.sim.simd2.graph.model import Assumption, Core, Cycles, Estimate, estimate
from vitruvian.sim.simd2.graph.outputs import write_neighbours, write_paths
from vitruvian.sim.simd2.graph.paths import Paths, Problem, Reachability, SpanningForest
from vitruvian.sim.simd2.graph.points import Neighbours, nearest_neighbours
from vitruvian.sim.simd2.graph.problems import PROBLEMS, read_graph, solve

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
    "Reachability",
    "SpanningForest",
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
