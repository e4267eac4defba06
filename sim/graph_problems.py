"""Names and titles of the graph problems that ``sim.simd2.graph`` solves.

The command line needs the names for its help texts. They are in a module of their own, because
``sim.simd2`` imports NumPy and Numba, which would make every command slower to start.
"""

#: Problems of paths between vertices: title by name. The names are those of Zhang 2024 (Table 3.4).
PATH_PROBLEMS = {
    "apsp": "all-pairs shortest paths",
    "aplp": "critical (longest) paths of an acyclic graph",
    "mcp": "maximum capacity paths",
    "maxrp": "maximum reliability paths",
    "minrp": "minimum reliability paths of an acyclic graph",
    "mst": "minimum spanning tree or forest, by minimax paths",
    "gtc": "transitive closure",
}

#: Name of the problem of points instead of vertices.
NEAREST_NEIGHBOURS = "knn"

#: Names of all problems.
GRAPH_PROBLEMS = (*PATH_PROBLEMS, NEAREST_NEIGHBOURS)
