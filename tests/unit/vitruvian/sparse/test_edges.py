"""Lists of edges in every form, and edges without weights."""

import gzip
import tomllib
import warnings

import networkx as nx
import numpy as np
import pytest

from vitruvian import sparse
from vitruvian.sim.simd2.graph import GraphWarning
from vitruvian.sparse.solving import solve

EDGES = [("a", "b", 2.0), ("b", "c", 0.5), ("a", "c", 4.0), ("c", "a", 1.0)]


def frame(**columns):
    """Return what ``sparse`` needs of a pandas data frame, which no extra installs."""

    class Frame(dict):
        iloc = None
        columns = property(lambda self: list(self))
        index = property(lambda self: range(len(next(iter(self.values())))))

    return Frame(columns)


def test_edges_from_tuples_frames_and_text(tmp_path):
    starts, ends, weights = (list(each) for each in zip(*EDGES, strict=True))
    for name, mark in (("a.csv", ","), ("a.tsv", "\t"), ("a.edges", " "), ("b.csv", ";")):
        lines = [mark.join(map(str, edge)) for edge in EDGES]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    named = tmp_path / "named.csv"
    named.write_text("km,from,to\n" + "".join(f"{w},{u},{v}\n" for u, v, w in EDGES))
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    files = [tmp_path / "a.csv", str(tmp_path / "a.tsv"), tmp_path / "a.edges", tmp_path / "b.csv"]
    sources = [EDGES, tuple(EDGES), iter(EDGES), *files, packed]
    sources += [[(u, v, {"weight": w}) for u, v, w in EDGES]]
    sources += [frame(source=starts, target=ends, weight=weights)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = [solve("sssp", each, source="a").by_vertex() for each in sources]
        results += [solve("sssp", named, source="a", weight="km").by_vertex()]
        results += [
            solve("sssp", frame(km=weights, u=starts, v=ends), source="a", weight="km").by_vertex()
        ]
    assert results == [{"a": 0.0, "b": 2.0, "c": 2.5}] * len(results)


def test_vertices_that_are_whole_numbers_are_in_their_order():
    result = solve("bfs", [(30, 7), (7, 12)], source=30)
    assert result.vertices == (7, 12, 30) and result.values.tolist() == [1, 2, 0]


def test_repeated_edges_add_up_and_the_shortest_counts_for_paths():
    edges = [(0, 1, 3.0), (0, 1, 1.0), (1, 0, 1.0)]
    assert sparse.as_sparse(edges).dense().tolist() == [[0, 4], [1, 0]]
    assert solve("sssp", edges).values.tolist() == [0, 1]


def test_a_frame_with_its_columns_as_index_is_a_matrix():
    class Table:
        columns = index = ("x", "y")
        iloc = None

        def to_numpy(self):
            return np.array([[0.0, 2.0], [0.0, 0.0]])

    assert solve("sssp", Table(), source="x").by_vertex() == {"x": 0.0, "y": 2.0}


WEIGHTED = nx.Graph([(1, 2, {"weight": 5.0}), (2, 3, {"weight": 1.0})])


@pytest.mark.parametrize(
    ("source", "weight", "words"),
    [
        (WEIGHTED, "wieght", r"2 of 2 edges .* 'wieght' .*; the nearest attribute is 'weight'"),
        (nx.path_graph(4), "weight", "3 of 3 edges have no weight named 'weight' and got the weig"),
        ([(0, 1), (1, 0, 2.0)], "weight", "1 of 2 edges have no weight"),
        (nx.Graph([(1, 2, {"weight": 5.0}), (2, 3)]), "weight", "1 of 2 edges have no weight"),
        (frame(source=[0], target=[1]), "weight", "1 of 1 edges have no weight"),
    ],
)
def test_edges_without_weights_are_counted(source, weight, words):
    """Regression: edges without the attribute got the weight 1 without a word."""
    with pytest.warns(GraphWarning, match=words) as caught:
        solve("pagerank", source, weight=weight)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve("pagerank", source, weight=None)
        for app in ("bfs", "knn", "kcore"):  # an edge is an edge
            solve(app, source, weight=weight)


def test_an_extra_installs_networkx(root):
    """Regression: only the extra of the tests did, though the first example needs it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert any("networkx" in each for each in project["optional-dependencies"]["graphs"])
