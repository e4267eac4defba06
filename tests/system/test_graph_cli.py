"""The command ``graph``: figures, JSON, and one line for a mistake."""

import json
import subprocess
import sys
import warnings

import networkx as nx
import numpy as np
import pytest
from scipy.io import mmwrite

from vitruvian.cli import main
from vitruvian.sim.graph_problems import GRAPH_PROBLEMS
from vitruvian.sim.simd2.graph import PROBLEMS


@pytest.fixture
def karate(tmp_path):
    file = tmp_path / "karate.mtx"
    mmwrite(
        file, nx.to_scipy_sparse_array(nx.karate_club_graph(), dtype=float), symmetry="symmetric"
    )
    return str(file)


def test_shortest_paths_of_a_file(karate, tmp_path, capsys):
    file = tmp_path / "found.json"
    assert main(["graph", "apsp", "--graph", karate, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    report = json.loads(file.read_text())
    graph = nx.convert_node_labels_to_integers(nx.karate_club_graph(), first_label=1)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    far = report["extreme"]
    assert far["value"] == max(max(row.values()) for row in lengths.values())
    assert lengths[far["source"]][far["target"]] == far["value"]
    assert nx.path_weight(graph, far["route"], "weight") == far["value"]
    assert (report["vertices"], report["edges"], report["directed"]) == (34, 78, False)
    assert report["instructions"]["mmo"] == 27 * report["iterations"]
    for text in ("farthest pair", "iterations", "instructions", "cycles (model)", " → "):
        assert text in out


@pytest.mark.parametrize("problem", ["mcp", "mst", "gtc", "knn"])
def test_other_problems(problem, karate, capsys):
    assert main(["graph", problem, "--graph", karate, "--json", "-", "--input", "fp16"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["problem"] == problem and "mmo" in captured.err
    assert "warning" not in captured.err


@pytest.mark.parametrize("vertices", [13, 14])
def test_a_tree_is_shown_up_to_twelve_edges(vertices, tmp_path, capsys):
    file = tmp_path / "path.csv"
    file.write_text("".join(f"{v},{v + 1},1\n" for v in range(1, vertices)))
    assert main(["graph", "mst", "--graph", str(file), "--undirected"]) == 0
    out = capsys.readouterr().out
    assert "12–13" in out and ("…" in out) == (vertices > 13)


def test_standard_output_needs_no_writable_file(karate, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("vitruvian.common.files._try", refuse)
    assert main(["graph", "mst", "--graph", karate, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "mst"
    with pytest.raises(SystemExit):
        main(["graph", "mst", "--graph", karate, "--json", "x.json"])


def test_a_warning_is_a_line(tmp_path, capsys):
    file = tmp_path / "p.mtx"
    mmwrite(file, np.array([[0.0, 0.3], [0.7, 0.0]]))
    arguments = ["graph", "maxrp", "--graph", str(file), "--algorithm", "bellman-ford"]
    assert main([*arguments, "--input", "fp16", "--all-iterations", "--unit", "8x4x8"]) == 0
    captured = capsys.readouterr()
    assert (
        captured.err.startswith("warning: weights are rounded to FP16") and "8×4×8" in captured.out
    )


def test_a_warning_is_a_line_even_if_python_hides_warnings(tmp_path, capsys):
    file = tmp_path / "p.mtx"
    mmwrite(file, np.array([[0.0, 0.3], [0.7, 0.0]]))
    arguments = ["graph", "maxrp", "--graph", str(file), "--input", "fp16", "--all-iterations"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*arguments, "--unit", "8x4x8"]) == 0
    assert capsys.readouterr().err.startswith("warning: weights are rounded to FP16")


def test_the_model(capsys):
    assert main(["graph", "apsp", "--model", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = report["rows"]
    assert any(item["source"].startswith("assumed") for item in report["assumptions"])
    assert [row["vertices"] for row in rows[::3]] == [1024, 2048, 4096, 8192, 16384]
    assert all(row["ratio"] > 1 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["relu"],
            "one of apsp, aplp, mcp, maxrp, minrp, mst, gtc, knn, not 'relu'",
        ),
        (["apps", "--model"], "not 'apps' (did you mean apsp?)"),
        (["apsp"], "one of --graph FILE and --model"),
        (["apsp", "--graph", "nowhere.mtx"], "must be a Matrix Market file, not nowhere.mtx"),
        (["apsp", "--graph", "x", "--algorithm", "dijkstra"], "--algorithm must be one of"),
        (["apsp", "--graph", "x", "--input", "fp8"], "--input must be one of fp16, fp32"),
        (["apsp", "--graph", "x", "--backend", "gpu"], "--backend must be one of golden"),
        (["apsp", "--graph", "x", "--unit", "5x4x4"], "sizes that divide 16, not 5×4×4"),
        (["knn", "--model"], "--model must come with apsp, aplp, mcp"),
        (["apsp", "--graph", "x", "--duplicates", "y"], "--duplicates must be one of sum, min"),
        (["apsp", "--graph", "KARATE", "--undirected"], "must come with a list of edges, not"),
        (["apsp", "--graph", "KARATE", "--weight", "km"], "must come with a list of edges, not"),
        (["apsp", "--graph", "KARATE", "--no-edge", "0"], "--no-edge must not be given for a sp"),
        (["apsp", "--graph", "KARATE", "--route", "1", "x"], "must name vertices (1, 2, 3, 4, …)"),
        (["apsp", "--graph", "TWICE"], "1 → 2 with 5 and 3 (--duplicates min takes the smallest"),
        (["aplp", "--graph", "KARATE"], "without cycles, not one with 1 → 2 → 1"),
        (["maxrp", "--graph", "KARATE"], "within [0, 1], not 4 (edge 1 → 2)"),
        (["knn", "--graph", "KARATE", "--neighbours", "34"], "count must be from 1 to 33"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, karate, tmp_path, capsys):
    twice = tmp_path / "twice.mtx"
    twice.write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 5\n1 2 3\n")
    files = {"KARATE": karate, "TWICE": str(twice)}
    assert main(["graph", *(files.get(a, a) for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not captured.out


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["apsp", "--graph", "KARATE", "--neighbours", "5"], "--neighbours"),
        (["knn", "--graph", "KARATE", "--algorithm", "leyzorek"], "--algorithm"),
        (["apsp", "--model", "--graph", "KARATE"], "--graph"),
        (["apsp", "--model", "--backend", "golden"], "--backend"),
        (
            ["apsp", "--graph", "x", "--all-iterations", "--algorithm", "floyd-warshall"],
            "--all-iterations",
        ),
    ],
)
def test_an_option_that_does_not_apply_is_refused(arguments, option, karate, capsys):
    """It is refused even with its default value."""
    assert main(["graph", *(karate if a == "KARATE" else a for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {option} must come with ") and not captured.out
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--out"])
def test_an_unwritable_file_is_found_before_the_work(option, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["graph", "apsp", "--graph", "nowhere.mtx", option, "/proc/no/x.csv"])
    captured = capsys.readouterr()
    assert stop.value.code == 2 and f"{option}: must be a file that can be written" in captured.err


def test_names_keep_their_type_in_json(karate, capsys):
    assert main(["graph", "mst", "--graph", karate, "--json", "-"]) == 0
    edges = json.loads(capsys.readouterr().out)["tree"]["edges"]
    assert len(edges) == 33 and all(isinstance(name, int) for edge in edges for name in edge)


def test_routes_and_values_come_out(tmp_path, capsys):
    graph, values = tmp_path / "roads.csv", tmp_path / "values.csv"
    graph.write_text("source,target,km\nBonn,Ulm,4.5\nUlm,Jena,2\nKiel,Bonn,1\n")
    arguments = ["graph", "apsp", "--graph", str(graph), "--weight", "km", "--out", str(values)]
    routes = ["--route", "Bonn", "Jena", "--route", "Jena", "Bonn"]
    assert main([*arguments, *routes, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert "6.5: Bonn → Ulm → Jena" in captured.err and "no path" in captured.err
    assert "leyzorek (by default)" in captured.err
    first, second = json.loads(captured.out)["routes"]
    assert first["value"] == 6.5 and first["route"] == ["Bonn", "Ulm", "Jena"]
    assert second["value"] is None and second["route"] is None
    assert values.read_text().splitlines()[1] == "Bonn,0,4.5,6.5,inf"
    assert main([*arguments, "--undirected", *routes]) == 0
    assert "6.5: Jena → Ulm → Bonn" in capsys.readouterr().out


def test_no_cycles_are_printed_for_a_unit_that_does_not_exist(karate, capsys):
    assert main(["graph", "knn", "--graph", karate, "--input", "fp32", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["cycles"] is None
    assert "no 4×4×4 unit with addnorm on FP32 operands exists" in captured.err


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit):
        main(["graph", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "Examples: vitruvian graph apsp --graph" in out and "(default: golden)" in out


def test_the_names_of_the_problems_are_those_of_the_library():
    assert GRAPH_PROBLEMS == (*PROBLEMS, "knn")


def test_the_names_of_the_problems_do_not_import_numpy():
    code = "import sys, vitruvian.commands.graph; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
