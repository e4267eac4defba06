"""Tables of the values: read back by Python's own reader, with the names of the vertices."""

import csv
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from tests.support.sparse_problems import PROBLEMS, matrix, system
from vitruvian import sparse
from vitruvian.common.errors import UserError
from vitruvian.sparse import tables

#: Arguments of each application besides the matrix, for 40 vertices
NEEDED: dict[str, dict[str, Any]] = {
    "labelprop": {"labels": [0, 1] + [-1] * 38, "tolerance": 1e-4},
    "gcn": {"features": np.eye(40, 3), "weights": [np.ones((3, 2))]},
    **{name: {"b": np.arange(40.0)} for name in ("gmres", "cg", "bicgstab")},
}


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


@pytest.mark.parametrize("name", [*PROBLEMS, "triangles"])
def test_every_application_writes_its_values(name, tmp_path):
    a = system(1, symmetric=True)[0] if name in ("cg", "gmres", "bicgstab") else matrix(1)
    result = sparse.solve(name, a, **NEEDED.get(name, {}))
    result.write_csv(tmp_path / "values.csv")
    header, rows = read(tmp_path / "values.csv")
    first = {"kmeans": "cluster"}.get(name, "row" if "b" in NEEDED.get(name, {}) else "vertex")
    assert header[0] == first and len(header) == (3 if name == "gcn" else 2)
    assert [row[0] for row in rows] == [str(place) for place in range(len(result.values))]
    values = np.array([row[1:] for row in rows], float)
    expected = result.values.astype(float).reshape(len(rows), -1)
    assert values.tobytes() == expected.tobytes()  # the shortest text has every bit


def test_names_of_vertices_are_quoted_and_infinity_is_a_word(tmp_path):
    names = ['a,"b"', "c\nd", "é", "7"]
    edges = [(names[0], names[1], 0.1), (names[2], names[3], 1.0)]
    result = sparse.solve("sssp", edges, source=names[0])
    result.write_csv(tmp_path / "d.csv")
    header, rows = read(tmp_path / "d.csv")
    assert header == ["vertex", "distance"] and [row[0] for row in rows] == names
    assert [float(row[1]) for row in rows] == [0, 0.1, np.inf, np.inf]


def test_components_and_centers_are_named_by_vertices(tmp_path):
    graph = nx.disjoint_union(nx.path_graph(3), nx.path_graph(2))
    graph = nx.relabel_nodes(graph, dict(enumerate("vwxyz")))
    sparse.solve("components", graph).write_csv(tmp_path / "c.csv")
    expected = [["v", "v"], ["w", "v"], ["x", "v"], ["y", "y"], ["z", "y"]]
    assert read(tmp_path / "c.csv") == (["vertex", "component"], expected)
    result = sparse.solve("kmeans", graph, clusters=2, first="x", weight=None)
    result.write_csv(tmp_path / "k.csv")
    centers = [list(graph)[place] for place in result.values]
    assert read(tmp_path / "k.csv")[1] == [["0", "x"], ["1", centers[1]]]


def test_a_long_table_is_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS", 3)
    result = sparse.solve("bfs", np.eye(10, k=1))
    result.write_csv(tmp_path / "d.csv")
    assert [row[1] for row in read(tmp_path / "d.csv")[1]] == [f"{i}.0" for i in range(10)]


def test_a_failure_leaves_the_old_file(tmp_path):
    result = sparse.solve("bfs", np.eye(3, k=1))
    with pytest.raises(UserError, match=r"path must end in \.csv, not '.*values\.txt'"):
        result.write_csv(tmp_path / "values.txt")
    path = tmp_path / "old.csv"
    path.write_text("old")

    class Breaks(list):
        def __getitem__(self, place):
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        tables.write_csv(path, ["a"], [Breaks([1, 2])])
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        result.write_csv(tmp_path / "folder.csv")
    assert not [*(tmp_path / "folder.csv").iterdir()]


def test_progress_tells_the_iterations_and_the_residual(capsys):
    a, b = system(1, symmetric=True)
    for app, words in (("cg", "residual"), ("gmres", "residual")):
        texts: list[str] = []
        result = sparse.solve(app, a, b=b, progress=texts.append)
        assert len(texts) == result.iterations
        assert texts[-1].startswith(f"iteration {result.iterations} of at most 1,000, {words} ")
        assert float(texts[-1].split()[-1]) == pytest.approx(result.residual, rel=0.1)
    for dataflow in ("plain", "oei"):
        texts = []
        result = sparse.solve(
            "pagerank", matrix(1), dataflow=dataflow, simulate=True, progress=texts.append
        )
        *iterations, last = texts
        assert len(iterations) == result.iterations and "change" in iterations[0]
        assert last == f"simulates {result.iterations} iterations"
    assert capsys.readouterr() == ("", "")


def test_progress_is_quiet_unless_it_is_asked_for(capsys, monkeypatch):
    from vitruvian.common import progress

    a, b = system(1, symmetric=True)
    sparse.solve("cg", a, b=b)
    assert capsys.readouterr() == ("", "")
    # Without a terminal, a line appears when the pause between two lines has passed.
    monkeypatch.setattr(progress, "_PAUSE_S", -1.0)
    result = sparse.solve("cg", a, b=b, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == result.iterations
    assert err.startswith("cg iteration 1 of at most 1,000, residual ")
