"""``sim.simd2.graph``: readers of graphs, their warnings and limits, and the writers of results."""

import bz2
import gzip
import math
import warnings

import networkx as nx
import numpy as np
import pytest
from scipy.io import mmread, mmwrite
from scipy.sparse import coo_array, csr_array

import vitruvian.sim.simd2.graph.files as files_module
from vitruvian.common import matrix_market
from vitruvian.sim.simd2.graph import (
    PROBLEMS,
    GraphWarning,
    PrecisionWarning,
    SpanningForest,
    default_algorithm,
    nearest_neighbours,
    read_graph,
    solve,
    write_neighbours,
    write_paths,
)

TWICE = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 5\n2 3 1\n1 2 3\n2 3 7\n"


class Frame:
    """The part of a pandas data frame that the reader uses."""

    iloc = None

    def __init__(self, data, index=None):
        self.data = data
        self.columns = list(data)
        self.index = list(range(len(next(iter(data.values()))))) if index is None else index

    def __getitem__(self, name):
        return self.data[name]

    def to_numpy(self):
        return np.array([self.data[name] for name in self.columns]).T


def quiet(*args, **kwargs):
    """Solve a problem; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return solve(*args, **kwargs)


def test_repeated_entries_are_refused_or_combined_by_a_rule(tmp_path):
    file = tmp_path / "twice.mtx"
    file.write_text(TWICE)
    sparse = coo_array((np.array([5.0, 1, 3, 7]), ([0, 1, 0, 1], [1, 2, 1, 2])), shape=(3, 3))
    refused = r"must not be repeated, but 2 are, the first {} → {} with 5 and 3 \(duplicates="
    for source, first in ((file, (1, 2)), (sparse, (0, 1))):
        with pytest.raises(ValueError, match=refused.format(*first)):
            solve("apsp", source)
        for name, value in (("sum", 8), ("min", 3), ("max", 5), ("first", 5)):
            result = quiet("apsp", source, duplicates=name)
            assert result.value(*first) == value
            assert result.graph.notes[0].startswith("2 edges were repeated: ")
        assert quiet("gtc", source).value(*first) == 1  # gtc ignores weights
    with pytest.raises(ValueError, match="duplicates must be one of sum, min, max, first, not 'x'"):
        solve("apsp", file, duplicates="x")
    with pytest.raises(ValueError, match="must not be given for a dense matrix"):
        solve("apsp", np.ones((2, 2)), duplicates="min")
    file.write_text(TWICE.replace("general", "symmetric").replace("1 2 5", "2 1 3"))
    with pytest.raises(ValueError, match=r"in one triangle, not '2 3 1' \(line 4\)"):
        solve("apsp", file)


def test_zeros_of_a_dense_array_cause_a_warning():
    zeros = np.array([[0, 2.0, 0], [0, 0, 3.0], [0, 0, 0]])
    with pytest.warns(GraphWarning, match="4 zeros of the matrix are edges of weight 0; no_edge=0"):
        assert solve("apsp", zeros).value(0, 2) == 0
    assert quiet("apsp", zeros, no_edge=0).value(0, 2) == 5
    assert quiet("apsp", zeros, no_edge=math.inf).value(0, 2) == 0
    with pytest.warns(GraphWarning, match="4 zeros of the matrix are not edges; no_edge=0"):
        solve("gtc", zeros)
    assert quiet("gtc", zeros != 0).values.sum() == 6
    with pytest.raises(ValueError, match="no_edge must not be given for a sparse matrix, not 0"):
        solve("apsp", coo_array(zeros), no_edge=0)


def test_a_stored_zero_is_an_edge_of_the_closure():
    stored = coo_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), shape=(3, 3))
    assert quiet("gtc", stored).value(0, 2) == 1
    assert quiet("gtc", nx.DiGraph([("a", "b", {"weight": 0})])).value("a", "b") == 1


def test_missing_weights_cause_one_warning():
    graph = nx.Graph([("a", "b", {"weight": 3}), ("b", "c", {}), ("c", "d", {"distance": 9})])
    with pytest.warns(GraphWarning) as heard:
        assert solve("apsp", graph).value("a", "d") == 5
    assert len(heard) == 1
    assert str(heard[0].message).startswith("2 of 3 edges have no weight named 'weight' and got")
    assert quiet("apsp", graph, weight=None).value("a", "d") == 3
    quiet("gtc", graph)


def test_rounding_and_underflow_of_fp32_weights_cause_a_warning():
    with pytest.warns(PrecisionWarning, match=r"rounded to FP32, with .* up to 1.5e-08$"):
        solve("apsp", [(0, 1, 0.1)])
    with pytest.warns(PrecisionWarning) as heard:
        result = solve("maxrp", [(0, 1, 1e-60), (1, 2, 0.5)])
    assert result.value(0, 1) == 0
    texts = [str(warning.message) for warning in heard]
    assert "up to 1, and 1 of them became 0" in texts[0]
    assert texts[1].startswith("at least 1 pairs of vertices seem to have no path, as FP32")


@pytest.mark.parametrize(
    ("problem", "weight", "count"), [("maxrp", 2.0**-80, 2), ("minrp", 2.0**-80, 3)]
)
def test_values_that_fp32_cannot_represent_cause_a_warning(problem, weight, count):
    chain = [(i, i + 1, weight) for i in range(3)]
    with pytest.warns(PrecisionWarning, match=f"at least {count} pairs .* FP32 cannot hold"):
        solve(problem, chain)
    quiet(problem, [(0, 1, 2.0**-70), (1, 2, 2.0**-70)])
    with pytest.warns(PrecisionWarning, match="1 pairs of vertices seem to have no path"):
        solve("apsp", [(0, 1, 2.0**127), (1, 2, 2.0**127)])


def test_tuples_and_frames_are_lists_of_edges():
    edges = [("b", "a", 2), ("a", "c", 5)]
    expected = quiet("apsp", nx.DiGraph([(u, v, {"weight": w}) for u, v, w in edges]))
    frame = Frame({"to": ["a", "c"], "weight": [2, 5], "from": ["b", "a"]})
    for source in (edges, iter(edges), [(u, v, {"weight": w}) for u, v, w in edges], frame):
        result = quiet("apsp", source)
        assert result.graph.names == ("b", "a", "c") and result.value("b", "c") == 7
        assert np.array_equal(result.values, expected.values)
    result = quiet("apsp", [(3, 1, 4), (1, 2, 1)], directed=False)
    assert result.graph.names == (1, 2, 3) and result.value(2, 3) == 5
    assert quiet("apsp", edges, names="abcd").graph.names == tuple("abcd")
    forest = quiet("mst", iter(edges))  # undirected by default
    assert isinstance(forest, SpanningForest) and forest.tree == [("b", "a"), ("a", "c")]
    square = Frame({"x": [math.inf, 1.0], "y": [4.0, math.inf]}, index=["x", "y"])
    assert quiet("apsp", square).value("x", "y") == 4
    with pytest.warns(GraphWarning, match="1 of 2 edges have no weight"):
        solve("apsp", [(0, 1), (1, 2, 5)])
    quiet("apsp", [(0, 1), (1, 2)], weight=None)
    for source, text in (
        ([(0, 1, 2, 3)], r"edges must be \(source, target\) or .*, not \(0, 1, 2, 3\)"),
        ([(0, 1, "x")], r"weights must be numbers, not 'x' \(edge 0 → 1\)"),
        ([(0, 1, 1), (1, 0, 2)], "edges must not be repeated, but 1 are, the first 0 → 1"),
        (Frame({"u": [1], "v": [2], "km": [3]}), "one of the columns km, not 'weight'"),
        (Frame({"u": [1]}), "must have a column of sources and one of targets"),
    ):
        with pytest.raises(ValueError, match=text):
            solve("apsp", source, directed=False)
    with pytest.raises(ValueError, match="between the vertices in names, not b → a"):
        solve("apsp", edges, names=["a", "c"])
    with pytest.raises(
        ValueError, match="directed must not be given for a graph that is not a list"
    ):
        solve("apsp", np.ones((2, 2)), directed=False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "source,target,weight\n1,2,5\n2,10,1.5\n"),
        ("a.csv", "# comment\n1;2;5\n\n2;10;1.5\n"),
        ("a.tsv", "target\tsource\tnote\tweight\n2\t1\tx\t5\n10\t2\ty\t1.5\n"),
        ("a.txt", "% from KONECT\n1 2 5\n2 10 1.5\n"),
        ("a.csv.gz", "\ufeff1,2,5\n2,10,1.5\n"),
        ("a.edges.bz2", "1,2,5\n2,10,1.5\n"),
    ],
)
def test_edge_lists_in_files(name, text, tmp_path):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(name[name.rindex(".") :], bytes)
    (tmp_path / name).write_bytes(pack(text.encode()))
    result = quiet("apsp", tmp_path / name)
    assert result.graph.names == (1, 2, 10) and result.value(1, 10) == 6.5


def test_a_header_of_two_columns_is_recognised(tmp_path):
    (tmp_path / "a.csv").write_text("source,target\n1,2\n2,10\n")
    assert quiet("gtc", tmp_path / "a.csv").graph.names == (1, 2, 10)


def test_a_header_is_recognised_by_the_name_of_the_weights(tmp_path):
    (tmp_path / "a.csv").write_text("one,other,,cost\n1,2,x,5\n2,10,y,1.5\n")
    assert quiet("apsp", tmp_path / "a.csv", weight="cost").value(1, 10) == 6.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.csv: the file has no edges"),
        ("one,other,cost\n1,2,5\n", "weight must be one of the columns cost, not 'weight'"),
        (
            ",".join(f"c{i}" for i in range(5000)) + "\n" + "1," * 4999 + "1\n",
            r"one of the columns c2, .*, c9, … \(4,998 in all\), not 'weight'$",
        ),
        ("1,2," + "x" * 9999 + "\n1,2,y\n", "columns xxxxx.*x…, not 'weight'$"),
        ("1,2,3\n1,2," + "x" * 9999, r"weights must be numbers, not 'x{60}…' \(line 2\)$"),
        ("1,2,3,4\n", r"columns must be source, target and weight, .* not 4 .*\(line 1\)"),
        ("1,2,3\n1,2,3,4\n", "line 2 must have 3 columns, not 4"),
        ("1,2,3\n2,3,x\n", r"weights must be numbers, not 'x' \(line 2\)"),
        ("source,target,km\n1,2,3\n", "weight must be one of the columns km, not 'weight'"),
        ('1,"2\n3",4\n', "must be a list of edges"),
        ("1,\xff", None),
    ],
)
def test_a_bad_list_of_edges_is_refused(text, message, tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(
        ValueError, match=message or "must be a list of edges, not .*a.csv"
    ) as caught:
        solve("apsp", file)
    assert len(str(caught.value)) < 400


def test_names_and_weights_missing_in_a_list(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("a,007,\nb,a,2\n")
    with pytest.warns(GraphWarning, match="1 of 2 edges"):
        result = solve("apsp", file)
    assert result.graph.names == ("a", "007", "b") and result.value("b", "007") == 3


@pytest.mark.parametrize("graph", [nx.Graph(), nx.DiGraph(), np.zeros((0, 0))], ids=str)
def test_a_graph_without_vertices_is_refused(graph):
    with pytest.raises(ValueError, match="adjacency matrix must have at least one row, not 0"):
        solve("apsp", graph)


def test_a_bomb_and_absurd_headers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_market, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(files_module, "UNPACKED_LIST_BYTES", 1 << 20)
    head = "%%MatrixMarket matrix coordinate real general\n"
    for name, pack in (("b.mtx.gz", gzip.compress), ("b.csv.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(pack(head.encode() + b"% x\n" * (1 << 19)))
        with pytest.raises(
            ValueError, match=rf"{name}: graph must unpack to at most 1 MiB; unpack"
        ):
            solve("apsp", tmp_path / name)
    file = tmp_path / "h.mtx"
    dense = head.replace("coordinate", "array")
    for text, message in (
        (head + "3 3 999999999999\n1 2 5\n", "999,999,999,999 entries must follow line 2"),
        (dense + "1000000 1000000\n1\n", "1,000,000,000,000 entries must follow line 2"),
        (
            head + "9" * 30 + " 3 1\n1 2 5\n",
            r"sizes must be rows, columns and entries, not '9999.* \(line 2\)",
        ),
        (head + "3 3\n", r"sizes must be rows, columns and entries, not '3 3' \(line 2\)"),
        (head + "% nothing\n", "line of sizes is missing"),
        ("3 3 1\n1 2 5\n", "line 1 must begin with %%MatrixMarket"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=f"must be a Matrix Market file, not .*: .*{message}"):
            solve("apsp", file)
    with pytest.raises(ValueError, match="graph must be a file, not"):
        solve("apsp", tmp_path)
    monkeypatch.setattr(files_module, "free_bytes", lambda: 40)
    monkeypatch.setattr(matrix_market, "free_bytes", lambda: 40)
    file.write_text(head + "3 3 2\n1 2 5\n2 3 1\n")
    with pytest.raises(ValueError, match="matrix must fit into the free memory of 0 MiB, not 3 by"):
        solve("apsp", file)
    (tmp_path / "l.csv").write_text("1,2\n" * 20)
    with pytest.raises(ValueError, match=r"l\.csv: graph must have at most 40 bytes, not 80 bytes"):
        solve("apsp", tmp_path / "l.csv")


def test_the_fast_algorithm_is_the_default():
    """Above one block of vertices, Floyd–Warshall takes at most half of Leyzorek's operations."""
    assert [default_algorithm(v) for v in (1, 128, 129)] == ["leyzorek"] * 2 + ["floyd-warshall"]
    assert default_algorithm(500, check=False) == "leyzorek"
    graph = nx.cycle_graph(200)
    result, other = (quiet("apsp", graph, weight=None, algorithm=x) for x in (None, "leyzorek"))
    assert result.algorithm == "floyd-warshall" and np.array_equal(result.values, other.values)
    assert result.counts.mmo < 0.6 * other.counts.mmo


def test_values_in_files(tmp_path):
    result = quiet("apsp", [("a b", "c", 0.5), ("c", "d,e", 2)])
    for name in ("v.npy", "v.csv", "v.mtx"):
        write_paths(result, tmp_path / name)
    assert np.array_equal(np.load(tmp_path / "v.npy"), result.values)
    text = (tmp_path / "v.csv").read_text().splitlines()
    assert text[:2] == [',a b,c,"d,e"', "a b,0,0.5,2.5"] and text[3] == '"d,e",inf,inf,0'
    stored = csr_array(mmread(tmp_path / "v.mtx"))
    assert stored.nnz == 6 and stored[0, 2] == 2.5
    assert "% vertex 1 is a b\n" in (tmp_path / "v.mtx").read_text()
    again = read_graph(PROBLEMS["apsp"], tmp_path / "v.mtx")
    assert np.array_equal(again.weights, result.values)
    wide = quiet("mcp", [(1, 2, 3)])
    write_paths(wide, tmp_path / "w.mtx")
    assert (tmp_path / "w.mtx").read_text().splitlines()[2:] == ["2 2 1", "1 2 3"]
    with pytest.raises(ValueError, match=r"output must end in .npy, .csv, .mtx, not 'x.txt'"):
        write_paths(result, "x.txt")


def test_neighbours_in_files(tmp_path):
    mmwrite(tmp_path / "p.mtx", np.array([[0.0], [1.0], [3.0]]))
    result = nearest_neighbours(tmp_path / "p.mtx", 2)
    for name in ("n.npy", "n.csv", "n.mtx"):
        write_neighbours(result, tmp_path / name)
    array = np.load(tmp_path / "n.npy")
    assert array["neighbour"].tolist() == [[2, 3], [1, 3], [2, 1]]
    assert array["square"].tolist() == [[1, 9], [1, 4], [4, 9]]
    assert (tmp_path / "n.csv").read_text().startswith("point,neighbour,square\n1,2,1\n1,3,9\n")
    assert csr_array(mmread(tmp_path / "n.mtx")).toarray()[2].tolist() == [9, 4, 0]
