"""python -m sim run: figures, JSON, one line for a mistake."""

import json

import networkx as nx
import numpy as np
import pytest
from scipy.io import mmwrite

from sim.cli import main


@pytest.fixture
def karate(tmp_path):
    file = tmp_path / "karate.mtx"
    mmwrite(
        file, nx.to_scipy_sparse_array(nx.karate_club_graph(), dtype=float), symmetry="symmetric"
    )
    return str(file)


def test_shortest_paths_of_a_file(karate, tmp_path, capsys):
    file = tmp_path / "found.json"
    assert main(["run", "apsp", "--graph", karate, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    found = json.loads(file.read_text())
    graph = nx.convert_node_labels_to_integers(nx.karate_club_graph(), first_label=1)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    far = found["extreme"]
    assert far["value"] == max(max(row.values()) for row in lengths.values())
    assert lengths[far["source"]][far["target"]] == far["value"]
    assert nx.path_weight(graph, far["route"], "weight") == far["value"]
    assert (found["vertices"], found["edges"], found["directed"]) == (34, 78, False)
    assert found["instructions"]["mmo"] == 27 * found["iterations"]
    for text in ("farthest pair", "iterations", "instructions", "cycles (model)", " → "):
        assert text in out


@pytest.mark.parametrize("problem", ["mcp", "mst", "gtc", "knn"])
def test_other_problems(problem, karate, capsys):
    assert main(["run", problem, "--graph", karate, "--json", "-", "--inputs", "fp16"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["problem"] == problem and "mmo" in captured.err
    assert "warning" not in captured.err


def test_a_warning_is_a_line(tmp_path, capsys):
    file = tmp_path / "p.mtx"
    mmwrite(file, np.array([[0.0, 0.3], [0.7, 0.0]]))
    arguments = ["run", "maxrp", "--graph", str(file), "--algorithm", "bellman-ford"]
    assert main([*arguments, "--inputs", "fp16", "--no-check", "--unit", "8x4x8"]) == 0
    captured = capsys.readouterr()
    assert (
        captured.err.startswith("warning: weights are rounded to FP16") and "8×4×8" in captured.out
    )


def test_the_model(capsys):
    assert main(["run", "apsp", "--model", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["rows"]
    assert any(item["source"].startswith("assumed") for item in found["assumptions"])
    assert [row["vertices"] for row in rows[::3]] == [1024, 2048, 4096, 8192, 16384]
    assert all(row["ratio"] > 1 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["apsp"], "one of --graph FILE and --model"),
        (["apsp", "--graph", "nowhere.mtx"], "must be a Matrix Market file, not nowhere.mtx"),
        (["apsp", "--graph", "x", "--algorithm", "dijkstra"], "--algorithm must be one of"),
        (["apsp", "--graph", "x", "--inputs", "fp8"], "--inputs must be one of fp16, fp32"),
        (["apsp", "--graph", "x", "--backend", "gpu"], "--backend must be one of golden"),
        (["apsp", "--graph", "x", "--unit", "5x4x4"], "sizes that divide 16, not 5×4×4"),
        (["knn", "--model"], "--model must be of one of apsp"),
        (["aplp", "--graph", "KARATE"], "without cycles, not one with 1 → 2 → 1"),
        (["maxrp", "--graph", "KARATE"], "within [0, 1], not 4 (edge 1 → 2)"),
        (["knn", "--graph", "KARATE", "--neighbours", "34"], "count must be from 1 to 33"),
    ],
)
def test_a_mistake_is_one_line(arguments, said, karate, capsys):
    assert main(["run", *(karate if a == "KARATE" else a for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count("\n") == 1 and not captured.out
