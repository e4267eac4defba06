"""The command ``sparse``: every application, its files, and one line for each mistake."""

import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from vitruvian.cli import main
from vitruvian.common import files, progress
from vitruvian.sim.sparse import timing
from vitruvian.sim.sparse.architecture import DEFAULT
from vitruvian.sparse import solve


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Run small cases as plain Python: Numba takes longer to start than they take."""
    monkeypatch.setattr(timing, "fitting", lambda function, size: function)


@pytest.fixture
def graph(tmp_path):
    """Return the path of a ring of eight vertices, in both directions, with a heavy diagonal."""
    lines = ["%%MatrixMarket matrix coordinate real symmetric", "8 8 16"]
    lines += [f"{v + 1} {v + 1} 3" for v in range(8)]
    lines += [
        f"{max(v, w) + 1} {min(v, w) + 1} -1" for v, w in ((v, (v + 1) % 8) for v in range(8))
    ]
    path = tmp_path / "ring.mtx"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def positive(graph):
    """Return the path of the same ring with positive weights."""
    path = graph.with_name("positive.mtx")
    path.write_text(graph.read_text().replace(" -1\n", " 1\n"))
    return path


APPLICATIONS = {
    "pagerank": ["--damping", "0.5", "--tolerance", "1e-9"],
    "kcore": [],
    "bfs": ["--source", "3"],
    "sssp": ["--source", "3"],
    "components": [],
    "kmeans": ["--clusters", "3", "--first", "1"],
    "knn": ["--hops", "2"],
    "gcn": ["--size", "3x2"],
    "gmres": ["--restart-after", "2"],
    "cg": ["--tolerance", "1e-12"],
    "bicgstab": ["--iterations", "50"],
}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_every_application_prints_its_figures(name, graph, positive, capsys):
    path = graph if name in ("gmres", "cg", "bicgstab") else positive
    assert main(["sparse", name, str(path), *APPLICATIONS[name], "--json", "-"]) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out)
    assert figures["application"] == figures["report"]["application"] == name
    assert figures["converged"] and figures["failure"] is None
    assert figures["report"]["iterations"] == figures["iterations"] >= 1
    assert figures["report"]["cycles"] > 0
    if name in ("gmres", "cg", "bicgstab"):
        assert figures["residual"] <= 1e-8 and f"{figures['residual']:.3g}" in err
    else:
        assert figures["residual"] is None and "residual" not in err
    assert len(figures["bandwidth"]["share"]) == 100
    for line in ("speedup over the baseline", "share of the oracle", "buffer: at most", "traffic"):
        assert line in err


def test_the_values_are_those_of_solve_and_the_plots_are_written(positive, tmp_path, capsys):
    folder = tmp_path / "new" / "out"
    line = ["sparse", "sssp", str(positive), "--source", "2", "--out", str(folder)]
    assert main([*line, "--blocked", "4", "--reorder", "windowed"]) == 0
    np.testing.assert_array_equal(
        np.load(folder / "values.npy"), solve("sssp", str(positive), source=2).values
    )
    printed = capsys.readouterr().out.splitlines()
    for name in ("bandwidth.svg", "occupancy.svg"):
        assert (folder / name).read_text().startswith("<?xml")
        assert str(folder / name) in printed
    assert sorted(path.name for path in folder.iterdir()) == [
        "bandwidth.svg",
        "occupancy.svg",
        "values.npy",
    ]


def test_labels_and_right_sides_are_read(positive, graph, tmp_path, capsys):
    labels = tmp_path / "labels.txt"
    labels.write_text("0\n" + "-1\n" * 3 + "1\n" + "-1\n" * 3)
    assert main(["sparse", "labelprop", str(positive), "--labels", str(labels)]) == 0
    right = tmp_path / "b.npy"
    np.save(right, np.arange(8.0))
    folder = tmp_path / "cg"
    line = ["sparse", "cg", str(graph), "--right-side", str(right), "--out", str(folder)]
    assert main(line) == 0
    dense = 3 * np.eye(8) - np.roll(np.eye(8), 1, 0) - np.roll(np.eye(8), -1, 0)
    np.testing.assert_allclose(dense @ np.load(folder / "values.npy"), np.arange(8.0), atol=1e-6)


def test_a_list_of_edges_is_read(tmp_path, capsys):
    path = tmp_path / "roads.csv"
    path.write_text("from,to,km\nrome,oslo,2\noslo,bern,0.5\nrome,bern,4\n")
    folder = tmp_path / "out"
    line = ["sparse", "sssp", str(path), "--weight", "km", "--source", "rome", "--out", str(folder)]
    assert main(line) == 0
    assert (folder / "vertices.txt").read_text().split() == ["rome", "oslo", "bern"]
    assert np.load(folder / "values.npy").tolist() == [0, 2, 2.5]
    out, err = capsys.readouterr()
    assert "values from 0 to 2.5, the largest at 'bern'" in out and err == ""
    assert main(["sparse", "kmeans", str(path), "--weight", "km", "--first", "oslo"]) == 2
    assert "clusters must be between 1 and 3, not 8" in capsys.readouterr().err
    line = ["sparse", "kmeans", str(path), "--weight", "km", "--first", "oslo", "--clusters", "2"]
    assert main(line) == 0
    assert "values from 0 to 1, the largest at 0" in capsys.readouterr().out
    path.write_text("1,2\n2,3\n")
    assert main(["sparse", "pagerank", str(path)]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: 2 of 2 edges have no weight named 'weight'")
    assert "--weight none" in warning
    assert main(["sparse", "sssp", str(path), "--weight", "none", "--source", "2"]) == 0
    assert capsys.readouterr().err == ""


def test_a_breakdown_is_reported(positive, capsys):
    text = positive.read_text().replace(" 3\n", " -3\n")
    positive.write_text(text)
    assert main(["sparse", "cg", str(positive)]) == 1
    assert "not positive definite" in capsys.readouterr().out


def machine(tmp_path, old: str, new: str):
    text = DEFAULT.read_text()
    assert text.count(old) == 1
    path = tmp_path / "machine.toml"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pes = 1024", "pes = 0", "core.pes must be an integer, 1 or more, not 0"),
        ("clock_mhz = 1000", "clock_mhz = 1000\nclok = 1", "machine.toml"),
        ("{ mib =", "{ kib =", "machine.toml"),
    ],
)
def test_a_wrong_machine_is_one_line(old, new, message, tmp_path, positive, capsys):
    path = machine(tmp_path, old, new)
    assert main(["sparse", "bfs", str(positive), "--arch", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and message in line


def test_a_buffer_that_is_too_small_is_one_line(tmp_path, capsys):
    path = tmp_path / "full.mtx"
    lines = ["%%MatrixMarket matrix coordinate pattern general", "40 40 40"]
    path.write_text("\n".join([*lines, *(f"{r + 1} 8" for r in range(40))]) + "\n")
    toml = machine(tmp_path, "mib = 64", "kib = 1")
    toml.write_text(toml.read_text().replace("{ mib =", "{ kib ="))
    assert main(["sparse", "bfs", str(path), "--arch", str(toml)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "buffer must be at least four times as large as column 7 of 480 bytes" in line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["pagerang"], "APPLICATION must be one of pagerank, "),
        (["bfs", "--damping", "0.5"], "--damping must come with another application, not with bfs"),
        (["bfs", "--size", "3x3"], "--size must come with gcn, not with bfs"),
        (["bfs", "--reorder", "vanilla"], "--reorder must be one of none, triangular, windowed"),
        (
            ["bfs", "--blocked", "3"],
            "--blocked must be one of 1, 2, 4, 8, 16, 32, 64, 128, 256, not 3",
        ),
        (["bfs", "--source", "8"], "source must be "),
        (["bfs", "--source", "-1"], "--source must be a whole number, 0 or more, not '-1'"),
        (["kmeans", "--first", "x"], "--first must be a whole number, 0 or more, not 'x'"),
        (["bfs", "--source", "²"], "--source must be a whole number, 0 or more, not '²'"),
        (["bfs", "--weight", "km"], "--weight must come with a list of edges, not with "),
        (["bfs", "--arch", "absent.toml"], "architecture must be a TOML file, not 'absent.toml'"),
        (["bfs", "--memory", "absent.toml"], "memory must be a TOML file, not 'absent.toml'"),
        (
            ["bfs", "--memory", "ddr4"],
            "--memory must be one of none, hbm2, a TOML file",
        ),
        (["bfs", "--dram-simulator", "x"], "a DRAM simulator must come with a memory"),
        (
            ["bfs", "--memory", "hbm2", "--dram-simulator", "absent"],
            "DRAM simulator must be the file of dramsim3main, not 'absent'",
        ),
        (["labelprop"], "labelprop must have --labels FILE"),
        (["labelprop", "--labels", "absent"], "--labels must be a file of numbers, not 'absent'"),
        (["labelprop", "--labels", "halves.txt"], "labels must be whole numbers, not float64"),
        (
            ["labelprop", "--labels", "huge.txt"],
            "labels must be whole numbers below 2^53, not 1e+20",
        ),
        (["labelprop", "--labels", "empty.txt"], "labels must have 8 elements, not the shape (0,)"),
        (["labelprop", "--labels", "/dev/zero"], "'/dev/zero' (file must be a file, not a device)"),
        (["cg", "--right-side", "two.npz.npy"], "--right-side must be a file of numbers"),
        (["gcn", "--size", "3"], "--size must have at least two sizes"),
    ],
)
def test_a_mistake_is_one_line(line, message, positive, capsys, monkeypatch):
    monkeypatch.chdir(positive.parent)
    positive.with_name("halves.txt").write_text("0.5\n" * 8)
    positive.with_name("huge.txt").write_text("1e20\n" * 8)
    positive.with_name("empty.txt").write_text("")
    with positive.with_name("two.npz.npy").open("wb") as file:
        np.savez(file, a=1, b=2)
    assert main(["sparse", line[0], str(positive), *line[1:]]) == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith("error: ") and message in printed


def test_a_memory_with_timing_is_slower_and_is_named(positive, capsys):
    command = ["sparse", "pagerank", str(positive), "--iterations", "2", "--json", "-"]
    found = []
    for options in ([], ["--memory", "hbm2"]):
        assert main([*command, *options]) in (0, 1)
        out, err = capsys.readouterr()
        found.append((json.loads(out)["report"], err))
    (plain, text), (timed, timed_text) = found
    assert timed["seconds"] > plain["seconds"]
    assert timed["baseline_seconds"] > plain["baseline_seconds"]
    assert (plain["memory"], timed["memory"]) == ("none", "hbm2")
    assert timed["moved_share"] > 1 and plain["moved_share"] == 1
    assert "memory: hbm2, 16 channels; bursts move" in timed_text and "hbm2" not in text


def test_a_wrong_matrix_is_one_line(tmp_path, capsys):
    assert main(["sparse", "bfs", str(tmp_path / "absent.mtx")]) == 2
    path = tmp_path / "wide.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1.0\n")
    assert main(["sparse", "bfs", str(path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "absent.mtx" in first
    assert "matrix must be square, not 2 by 3" in second


def test_triangles_are_counted_without_the_machine(tmp_path, capsys):
    path, folder = tmp_path / "edges.csv", tmp_path / "out"
    path.write_text("a,b\nb,c\nc,a\na,d\nd,d\n")
    assert main(["sparse", "triangles", str(path), "--out", str(folder), "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"application": "triangles", "rows": 4, "triangles": 1}
    assert "triangles" in solve("triangles", str(path)).tensors
    # The line may follow one that says that a loop is compiled.
    assert "triangles of edges.csv: 4 rows, 1 triangles; at most 1 at a vertex, 'a'" in err
    assert np.load(folder / "values.npy").tolist() == [1, 1, 1, 0]
    assert (folder / "vertices.txt").read_text() == "a\nb\nc\nd\n"
    assert main(["sparse", "triangles", str(path), "--values", str(tmp_path / "t.csv")]) == 0
    assert (tmp_path / "t.csv").read_text() == "vertex,triangles\na,1\nb,1\nc,1\nd,0\n"
    for option in (["--source", "a"], ["--blocked", "2"], ["--memory", "hbm2"]):
        assert main(["sparse", "triangles", str(path), *option]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {option[0]} must come with an")


def test_two_files_are_multiplied(tmp_path, capsys):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("from,to,km\nrome,oslo,2\nrome,bern,1\n")
    second.write_text("from,to,km\nbern,wien,4\noslo,wien,1\n")
    folder, table = tmp_path / "out", tmp_path / "new" / "p.csv"
    line = ["sparse", "mxm", str(first), str(second), "--weight", "km", "--semiring", "minplus"]
    assert main([*line, "--out", str(folder), "--values", str(table), "--json", "-"]) == 0
    out, err = capsys.readouterr()
    expected = {"application": "mxm", "semiring": "minplus", "rows": 4, "columns": 4, "nonzeros": 1}
    assert json.loads(out) == expected
    assert "mxm of first.csv and second.csv (minplus): 4 × 4, 1 nonzeros; values from 3 to 3" in err
    assert table.read_text() == "row,column,value\nrome,wien,3.0\n"
    assert (folder / "vertices.txt").read_text().split() == ["rome", "oslo", "bern", "wien"]
    written = scipy.sparse.csr_array(scipy.io.mmread(folder / "product.mtx"))
    assert written.toarray()[0].tolist() == [0, 0, 0, 3]
    # Sums of products by default, and matrices without names
    a = folder / "product.mtx"
    assert main(["sparse", "mxm", str(a), str(a)]) == 0
    assert "(mma): 4 × 4, 0 nonzeros" in capsys.readouterr().out


def test_values_are_written_with_the_names_of_the_vertices(positive, tmp_path, capsys):
    path, table = tmp_path / "roads.csv", tmp_path / "distances.csv"
    path.write_text('from,to,km\nrome,"oslo, north",2\nbern,rome,0.5\n')
    line = [
        "sparse",
        "sssp",
        str(path),
        "--weight",
        "km",
        "--source",
        "rome",
        "--values",
        str(table),
    ]
    assert main(line) == 0
    assert table.read_text() == 'vertex,distance\nrome,0.0\n"oslo, north",2.0\nbern,inf\n'
    assert str(table) in capsys.readouterr().out.splitlines()
    # An application without weights does not need the column.
    assert main(["sparse", "bfs", str(path), "--source", "bern", "--values", str(table)]) == 0
    assert table.read_text().splitlines()[1:] == ["rome,1.0", '"oslo, north",2.0', "bern,0.0"]
    assert capsys.readouterr().err == ""
    assert main(["sparse", "kcore", str(positive), "--values", str(table)]) == 0
    assert table.read_text() == "vertex,core\n" + "".join(f"{v},2\n" for v in range(8))


def test_long_work_shows_its_progress_on_standard_error(graph, capsys, monkeypatch):
    """Without a terminal, a line appears every ten seconds; here, the pause is left out."""
    monkeypatch.setattr(progress, "_PAUSE_S", -1.0)
    assert main(["sparse", "cg", str(graph)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("cg reads ") and lines[0].endswith("ring.mtx (0 s)")
    assert lines[1].startswith("cg iteration 1 of at most 1,000, residual ")
    assert lines[-1].startswith("cg simulates ")
    monkeypatch.undo()
    assert main(["sparse", "cg", str(graph)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["sssp", "roads.csv"], "roads.csv: weight must be one of the columns km, not 'weight'"),
        (["sssp", "roads.csv", "--weight", "kn"], "weight must be one of the columns km, not 'kn'"),
        (["bfs", "roads.csv", "--source", "rom"], "not 'rom'; the nearest is 'rome'"),
        (
            ["kmeans", "roads.csv", "--weight", "km", "--first", "x"],
            "first must be a vertex of",
        ),
        (["bfs", "roads.csv", "roads.csv"], "a second FILE must come with mxm, not with bfs"),
        (["bfs", "roads.csv", "--semiring", "mma"], "--semiring must come with mxm, not with bfs"),
        (
            ["triangles", "roads.csv", "roads.csv"],
            "FILE must come with mxm, not with triangles",
        ),
        (["triangles", "wide.mtx"], "matrix must be square, not 2 by 3"),
        (["mxm", "roads.csv"], "mxm must have two files, A and B, not one"),
        (["mxm", "wide.mtx", "wide.mtx"], "b must have as many rows as a has columns, 3, not 2"),
        (["mxm", "roads.csv", "wide.mtx", "--weight", "km"], "--weight must come with a list of"),
        (["mxm", "wide.mtx", "bare.csv"], "b has names of vertices, and a has none"),
        (["mxm", "wide.mtx", "absent.mtx"], "absent.mtx"),
        (["mxm", "wide.mtx", "wide.mtx", "--semiring", "plus"], "--semiring must be one of mma, "),
        (["mxm", "wide.mtx", "wide.mtx", "--hops", "3"], "--hops must come with another applica"),
        (["mxm", "wide.mtx", "wide.mtx", "--blocked", "4"], "--blocked must come with an applic"),
        (["mxm", "huge.mtx", "huge.mtx", "--out", "new"], "Matrix Market file must be finite"),
        (["bfs", "broken.csv"], "broken.csv"),
    ],
)
@pytest.mark.parametrize("target", ["old.csv", "new/values.csv"])
def test_a_mistake_writes_nothing(line, message, target, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "roads.csv": "from,to,km\nrome,oslo,2\n",
        "bare.csv": "1,2,1\n",
        "broken.csv": "from,to,km\nrome\n",
        "wide.mtx": "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
        "huge.mtx": "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1e200\n",
        "old.csv": "old",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert main(["sparse", *line, "--values", target]) == 2
    out, err = capsys.readouterr()
    (printed,) = err.splitlines()
    assert printed.startswith("error: ") and message in printed and out == ""
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("folder.csv", "must be a file that can be written, not 'folder.csv' (it is a folder)"),
        ("values.txt", "must be a file whose name ends in .csv, not 'values.txt'"),
        ("positive.mtx/values.csv", "must be a file that can be written"),
    ],
)
def test_a_wrong_output_is_refused_before_the_work(target, message, positive, capsys, monkeypatch):
    monkeypatch.chdir(positive.parent)
    (positive.parent / "folder.csv").mkdir()
    with pytest.raises(SystemExit) as caught:
        main(["sparse", "bfs", "absent.mtx", "--values", target])
    assert caught.value.code == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert message in printed and not [*(positive.parent / "folder.csv").iterdir()]


def test_a_disk_that_fails_leaves_the_old_table(positive, tmp_path, capsys, monkeypatch):
    def full(*_) -> None:
        raise OSError(28, "No space left on device")

    table = tmp_path / "values.csv"
    table.write_text("old")
    monkeypatch.setattr(files.os, "replace", full)
    assert main(["sparse", "bfs", str(positive), "--values", str(table)]) != 0
    assert "No space left on device" in capsys.readouterr().err
    assert table.read_text() == "old"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
