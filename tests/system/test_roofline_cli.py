"""The commands ``roofline`` and ``network``: output, files, and one line for every mistake."""

import json
from dataclasses import replace

import pytest

from vitruvian.cli import main
from vitruvian.sim.roofline.model import Bound

GOOD = """\
component,item,work,active_us,total_us
MTE2,GM->UB,480000,22,40
MTE3,UB->GM,240000,15,40
"""


def test_a_kernel_in_full(tmp_path, capsys):
    plot, data = tmp_path / "a.svg", tmp_path / "a.json"
    line = ["roofline", "matmul", "--size", "64x64x64", "--naive"]
    assert main([*line, "--out", str(plot), "--json", str(data)]) == 0
    printed = capsys.readouterr().out
    figures = json.loads(data.read_text())
    assert " ".join(printed.split()).startswith(figures["verdict"])
    assert "naive roofline (" in printed and f"To mitigate {figures['bound']}" in printed
    assert plot.read_bytes().startswith(b"<?xml")
    assert figures["bound"] in [b.value for b in Bound] and figures["advice"]
    for each in figures["components"]:
        product = each["efficiency"] * each["time_ratio"]
        assert each["utilisation"] == pytest.approx(product)


def test_a_case_prints_all_steps_or_one(tmp_path, capsys):
    data = tmp_path / "a.json"
    assert main(["roofline", "add_relu", "--json", str(data)]) == 0
    printed, rows = capsys.readouterr().out, json.loads(data.read_text())
    assert "published 1.72×" in printed and "38.42 %" in printed
    assert [row["step"] for row in rows] == ["baseline", "RSD", "MRT"]
    used = [row["metric_utilisation"] for row in rows]
    assert used == sorted(used)
    for step in ("1", "RSD"):
        assert main(["roofline", "add_relu", "--step", step, "--size", "65536"]) == 0
        assert capsys.readouterr().out.startswith("add_relu 65536 RSD on ascend310")


def test_a_case_with_the_name_of_a_kernel_needs_a_step(capsys):
    assert main(["roofline", "matmul", "--size", "64x64x64"]) == 0
    assert capsys.readouterr().out.startswith("matmul 64×64×64 (")
    assert main(["roofline", "matmul", "--step", "0"]) == 0
    assert "baseline" in capsys.readouterr().out.splitlines()[0]
    assert main(["roofline", "matmul", "--step", "all"]) == 0
    assert "published 1.10×" in capsys.readouterr().out


def test_a_file_of_counters(tmp_path, capsys):
    path = tmp_path / "op.csv"
    path.write_text(GOOD)
    assert main(["roofline", "--counters", str(path)]) == 0
    assert "op on ascend310 (one core) takes 40.000 µs and has insufficient par" in (
        capsys.readouterr().out
    )
    lines = GOOD.splitlines()
    both = [f"operator,{lines[0]}", *(f"{op},{x}" for op in "ab" for x in lines[1:])]
    path.write_text("\n".join(both))
    assert main(["roofline", "--counters", str(path), "--json", "-"]) == 0
    out = capsys.readouterr()
    assert len(json.loads(out.out)) == 2
    assert "2 operators: insufficient parallelism 100.00 %" in out.err


def test_a_folder_of_msprof_op(tmp_path, capsys):
    files = {
        "PipeUtilization.csv": ("aic_time(us),aic_mte2_time(us)", ("100.0,70.0", "100.0,80.0")),
        "ArithmeticUtilization.csv": ("aic_cube_fops,aic_vec_fops", ("0,0", "0,0")),
        "Memory.csv": ("GM_to_UB_datas(KB)", ("1000", "1100")),
    }
    for name, (columns, rows) in files.items():
        lines = [f"block_id,{columns}", *(f"{core},{row}" for core, row in enumerate(rows))]
        (tmp_path / name).write_text("\n".join(lines))
    assert main(["roofline", "--counters", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "(block 1) takes 100.000 µs and has inefficient MTE" in printed
    (tmp_path / "Memory.csv").unlink()
    assert main(["roofline", "--counters", str(tmp_path)]) == 2
    assert "Memory.csv: counters must be a CSV file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("item,", ""), "must have the columns"),
        (GOOD.replace("480000", "many"), "op.csv:2: work must be a number, 0 or more, not 'many'"),
        (
            GOOD.replace("480000", "580000"),
            "op, MTE2: work must be within the ceilings",
        ),
        (GOOD.replace(",22,", ",50,"), "op, MTE2: active time must be at most the total of 40 µs"),
    ],
)
def test_a_wrong_file_is_one_line_and_exit_code_2(tmp_path, capsys, text, message):
    (tmp_path / "op.csv").write_text(text)
    plot = tmp_path / "a.svg"
    assert main(["roofline", "--counters", str(tmp_path / "op.csv"), "--out", str(plot)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line and not plot.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("roofline", "roofline must have a TARGET or --counters FILE, and not both"),
        ("roofline matmul --counters x.csv", "and not both"),
        ("roofline matmull", " names, not 'matmull' (did you mean matmul?)"),
        ("roofline softmax --step 1", "--step must be for one of add_relu"),
        ("roofline add_relu --step 9", "step of add_relu must be 0 … 2 or one of baseline"),
        ("roofline add_relu --step x", "step of add_relu must be 0 … 2 or one of baseline"),
        ("roofline add_relu --cores 2", "--cores must be absent for a case study"),
        ("roofline add_relu --out a.svg", "--out must be for one step of a case study"),
        ("roofline add_relu --size 3x3", "size of add_relu must be elements"),
        ("roofline matmul --core x", "core must be busiest, all or one of aicore 0, aicore 1"),
        ("roofline matmul --chip x", "chip must be one of ascend310"),
        ("roofline --counters none.csv --step 1", "--counters must come without --step"),
        ("network vgg", "NETWORK must be one of mobilenet_v3, resnet50"),
        ("network bert_base --chip ascend920", "chip must be one of ascend310, "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line and not list(tmp_path.iterdir())


def test_a_network(tmp_path, monkeypatch, capsys):
    from vitruvian.sim import networks

    whole = networks.NETWORKS["bert_base"]()
    assert sum(layer.times for layer in whole.layers) == 1 + 12 * 37 + 2
    start = replace(whole, layers=whole.layers[:6])
    monkeypatch.setitem(networks.NETWORKS, "bert_base", lambda: start)
    chart, data = tmp_path / "a.png", tmp_path / "a.json"
    assert main(["network", "bert_base", "--out", str(chart), "--json", str(data)]) == 0
    printed, figures = capsys.readouterr().out, json.loads(data.read_text())
    assert "30 runs of layers" in printed and "share of time: " in printed
    assert sum(figures["share_of_layers"].values()) == pytest.approx(1)
    assert figures["total_us"] == pytest.approx(sum(x["us"] for x in figures["layers"]))
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_layers_without_a_kernel_are_skipped_on_request(monkeypatch, capsys):
    from vitruvian.sim import networks
    from vitruvian.sim.networks.layers import MatMul, Other

    layers = (Other(name="a", operation="Resize"), MatMul(name="b", m=16, k=16, n=16))
    made = replace(networks.NETWORKS["bert_base"](), layers=layers)
    monkeypatch.setitem(networks.NETWORKS, "bert_base", lambda: made)
    assert main(["network", "bert_base"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Resize (1)" in line and line.endswith("(--skip-unknown)")
    assert main(["network", "bert_base", "--skip-unknown"]) == 0
    assert "skipped: 1 layer of kind Resize" in capsys.readouterr().out


def test_files_of_a_run_have_its_roofline(tmp_path, capsys):
    """``run --csv`` and then ``roofline --counters`` agree with ``roofline`` of the kernel."""
    folder, files = tmp_path / "f", [tmp_path / f"{n}.json" for n in "abc"]
    size = ["--chip", "ascend310", "--size", "64x64x64"]
    assert main(["kernel", "matmul", *size, "--csv", str(folder)]) == 0
    assert main(["roofline", "matmul", *size, "--json", str(files[0])]) == 0
    capsys.readouterr()
    assert main(["roofline", "--counters", str(folder), "--json", str(files[1])]) == 0
    assert "\nnote: msprof op's files have no buses" in capsys.readouterr().out
    summary = str(folder / "op_summary.csv")
    assert main(["roofline", "--counters", summary, "--json", str(files[2])]) == 0
    assert "\nnote: op_summary.csv has no bytes" in capsys.readouterr().out
    direct, detailed, short = (json.loads(file.read_text()) for file in files)
    assert direct["bound"] == detailed["bound"] == short["bound"]
    each = [
        {c["component"]: c for c in x["components"] if not c["component"].startswith("bus")}
        for x in (direct, detailed, short)
    ]
    assert each[0].keys() == each[1].keys() == each[2].keys()
    for unit, figures in each[0].items():
        for other in each[1:]:
            assert other[unit]["time_ratio"] == pytest.approx(figures["time_ratio"], rel=1e-4)
    for unit in ("M", "MTE1", "MTE2", "MTE3"):
        assert each[1][unit]["utilisation"] == pytest.approx(each[0][unit]["utilisation"], rel=1e-4)


def test_a_network_before_optimisation(monkeypatch, capsys):
    from vitruvian.sim import networks

    whole = networks.NETWORKS["mobilenet_v3"]()
    part = replace(whole, layers=whole.layers[-3:])
    monkeypatch.setitem(networks.NETWORKS, "mobilenet_v3", lambda: part)
    assert main(["network", "mobilenet_v3", "--step", "baseline"]) == 0
    printed = capsys.readouterr().out
    assert "4 runs of layers" in printed and "share of layers without buses: " in printed
    assert main(["network", "mobilenet_v3", "--step", "fast"]) == 2
    assert "--step must be one of baseline, optimised, not 'fast'" in capsys.readouterr().err
