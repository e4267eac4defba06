"""vitruvian kernel, trace, cce, list of DaVinci kernels: results, files, mistakes in a line."""

import gzip
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from vitruvian.cli import main

TEXT = Path(__file__).parents[2] / "sim" / "kernels" / "text"
SOFTMAX = str(TEXT / "softmax.cce")
ARGUMENTS = ["--arg", "x=normal:256", "--arg", "y=zeros:256", "--arg", "rows=2", "--arg", "n=128"]


def test_a_product_is_compared_and_drawn(tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("p.json", "t.json", "g.svg")]
    options = ["--json", files[0], "--trace", files[1], "--gantt", files[2], "--timeline"]
    assert main(["kernel", "matmul", "--size", "64x48x32", "--tiling", "2,3,1,2", *options]) == 0
    out = capsys.readouterr().out
    assert "2,048 elements compared with golden: 0 differ" in out and "2×3×1, bNum 2" in out
    report = json.loads(Path(files[0]).read_text())
    assert report["differ"] == 0 and not report["findings"] and 0 < report["share_of_peak"] < 1
    events = json.loads(Path(files[1]).read_text())["traceEvents"]
    assert any(event.get("name") == "mmad" for event in events)
    assert "<svg" in Path(files[2]).read_text()


def test_strict_reports_hazards_and_flags_left_set(tmp_path, capsys):
    """The finding is printed, is a part of the JSON, and makes the exit code 1."""
    file = tmp_path / "twice.cce"
    file.write_text("""__global__ __aicore__ void twice(__gm__ half *y) {
    __ubuf__ half *u = (__ubuf__ half *)((uintptr_t)0);
    vector_dup(u, (half)1, 1, 1, 1, 8, 8);
    vadds(u, u, (half)1, 1, 1, 1, 8, 8);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(y, u, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
}
""")
    report = tmp_path / "r.json"
    argv = ["cce", str(file), "--arg", "y=zeros:128", "--json", str(report)]
    for more in ([], ["--strict"]):
        assert main([*argv, *more]) == 1
        out = capsys.readouterr().out
        assert "twice.cce:3" in out and "pipe_barrier(V) between them is missing" in out
        assert "is still set when the kernel ends" in out
        found = [finding["check"] for finding in json.loads(report.read_text())["findings"]]
        assert found == ["flag", "hazard"]
    out = str(tmp_path / "t.json")
    for command in (["kernel", "softmax"], ["trace", "softmax", "--out", out]):
        assert main([*command, "--size", "1x3", "--strict"]) == 0
    capsys.readouterr()
    assert main(["kernel", "softmax", "--strict", "--no-checks"]) == 2
    assert capsys.readouterr().err == "error: --strict must come without --no-checks\n"


def test_names_of_files_are_printed_as_they_are(tmp_path, capsys, monkeypatch):
    """Brackets that look like markup of the console are a part of the name."""
    monkeypatch.chdir(tmp_path)
    options = ["--trace", "[red]t.json", "--gantt", "[bold]g.svg"]
    assert main(["kernel", "relu", "--size", "1x128", *options]) == 0
    out = capsys.readouterr().out
    assert "[red]t.json: " in out and "[bold]g.svg\n" in out


def test_a_wrong_result_is_exit_code_1(monkeypatch, capsys):
    from vitruvian.sim.davinci.semantics import CUBES

    monkeypatch.setitem(CUBES, "rtl", lambda: lambda a, b, c, *_: c)
    assert main(["kernel", "matmul", "--size", "16x16x16", "--cube", "rtl"]) == 1
    assert "differ" in capsys.readouterr().out


def test_other_cubes(capsys):
    assert main(["kernel", "matmul", "--size", "32x32x32", "--cube", "fast"]) == 0
    assert main(["kernel", "matmul", "--size", "32x32x32", "--cube", "none"]) == 0
    assert "data not computed" in capsys.readouterr().out


def test_trace_has_its_own_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "reluKer", "--size", "5000", "--cores", "1"]) == 0
    plain = json.loads((tmp_path / "reluKer.json").read_text())
    assert plain["traceEvents"]
    options = ["--size", "5000", "--cores", "1", "--out", "t.json.gz"]
    assert main(["trace", "reluKer", *options]) == 0
    with gzip.open(tmp_path / "t.json.gz", "rt", encoding="utf-8") as file:
        assert json.load(file) == plain


def test_kernels_are_listed(capsys, tmp_path):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for file in ("scale_add.cce", "softmax.cce", "cube.cce"):
        assert f"from {file}" in out and (TEXT / file).is_file()
    assert main(["list", "mte*", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["configuration"] for row in rows} >= {"mte1A", "mte2+3Con"}
    assert {row["unit"] for row in rows} == {"davinci"}


def test_a_file_of_cce_runs(tmp_path, capsys):
    saved = tmp_path / "y.npz"
    assert main(["cce", SOFTMAX, *ARGUMENTS, "--blocks", "2", "--out", str(saved)]) == 0
    y = np.load(saved)["y"].reshape(2, 128).astype(float)
    # The sum of 128 values, each within 2^-11 of it for every one of 16 roundings.
    assert np.abs(y.sum(axis=1) - 1).max() < 16 * 2.0**-11
    assert "y (256 float16)" in capsys.readouterr().out


def test_a_race_is_exit_code_1(tmp_path, capsys):
    text = Path(SOFTMAX).read_text().replace("wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);", "", 1)
    file = tmp_path / "broken.cce"
    file.write_text(text)
    assert main(["cce", str(file), *ARGUMENTS]) == 1
    assert "broken.cce:" in capsys.readouterr().out


def test_cores_of_all_kinds_run_a_file(tmp_path, capsys):
    """Half a sum on the Cube core's side, the other on the vector cores'; a pointer may be null."""
    text = tmp_path / "both.cce"
    text.write_text(
        """__global__ __aicore__ void both(__gm__ float *y, __gm__ float *unused) {
#ifdef __DAV_C220_CUBE__
            if (unused == nullptr) y[0] = 1.0f;
#endif
#ifdef __DAV_C220_VEC__
            y[1 + get_subblockid()] = 2.0f;
#endif
        }"""
    )
    options = ["--chip", "ascend910b", "--arg", "y=zeros:8", "--arg", "unused=null"]
    assert main(["cce", str(text), *options, "--kind", "all"]) == 0
    assert "y (8 float32): 1 2 2 0 0" in capsys.readouterr().out
    assert main(["cce", str(text), *options, "--kind", "vector"]) == 0
    assert "y (8 float32): 0 2 0 0 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kernel", "nothing"], "`vitruvian list davinci` prints them, not 'nothing'"),
        (["kernel", "apsp"], "KERNEL must be one of matmul, "),
        (["trace", "apsp"], "KERNEL must be one of matmul, "),
        (
            ["kernel", "matmul", "--cube", "x"],
            "--cube must be one of golden, rtl, fast, none",
        ),
        (["kernel", "matmul", "--chip", "z80"], "chip must be one of"),
        (
            ["kernel", "matmul", "--size", "3x3"],
            "size of matmul must be M×K×N, each 1 or more",
        ),
        (["kernel", "matmul", "--cores", "9"], "cores must be 1 … 2, not 9"),
        (["kernel", "relu", "--cores", "9" * 20], "cores must be 1 … 2, not 99999999999999999999"),
        (
            ["kernel", "matmul", "--tiling", "1,2"],
            "tiling of matmul must be mTiles,kTiles,nTiles,bNum, each 1 or more, not 1,2",
        ),
        (
            ["kernel", "relu", "--tiling", "1,1,1,1"],
            "tiling must be None for relu, which has no tiling",
        ),
        (
            ["kernel", "relu", "--cube", "rtl"],
            "--cube must be golden or none for relu, which has no",
        ),
        (["kernel", "matmul", "--tiling", "99,1,1,1"], "mTiles must be 1 … 16"),
        (
            ["kernel", "maxpool", "--size", "1x2x3x1"],
            "window of maxpool must be within the 2 pixels",
        ),
        (["kernel", "cc2ub", "--chip", "ascend910b"], "cores with all units"),
        (["kernel", "avgpool-im2col", "--chip", "ascend910b"], "vector cores have no Im2Col"),
        (["cce", "no-such.cce"], "no-such.cce"),
        (["cce", SOFTMAX, "--arg", "z=1"], "--arg must be of one of x, y, rows, n, not 'z'"),
        (["cce", SOFTMAX], "--arg x=VALUE must be given (fp16 *)"),
        (["cce", SOFTMAX, "--arg", "x=5"], "--arg x must be a file .npy, zeros:N"),
        (["cce", SOFTMAX, "--kind", "cube"], "--kind must be one of aicore, all, not 'cube'"),
        (["cce", SOFTMAX, *ARGUMENTS, "--cube", "none"], "--cube must be one of golden, rtl, fast"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "Traceback" not in error


def test_a_size_that_is_none(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["kernel", "matmul", "--size", "big"])
    assert raised.value.code == 2 and "must be numbers like 256x256x256" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["kernel", "relu", "--gantt", "x.bmp"],
            "--gantt: must be a file whose name ends in .svg or",
        ),
        (["trace", "relu", "--out", "x.txt"], "--out: must be a file whose name ends in .json or"),
        (
            ["kernel", "relu", "--trace", "/proc/zz/a.json"],
            "--trace: must be a file that can be",
        ),
        (["cce", SOFTMAX, "--out", "x.npy"], "--out: must be a file whose name ends in .npz"),
        (["cce", SOFTMAX, "--out", "/proc/zz/a.npz"], "--out: must be a file that can be writt"),
    ],
)
def test_an_output_file_that_cannot_be_written_is_refused_before_the_run(
    arguments, message, monkeypatch, capsys
):
    monkeypatch.setattr("vitruvian.sim.davinci.load_chip", None)  # no work may begin
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    error = capsys.readouterr().err
    assert raised.value.code == 2 and message in error and error.count("\n") == 1


def test_the_default_file_of_a_trace_is_tried_before_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relu.json").mkdir()
    monkeypatch.setattr("vitruvian.sim.davinci.load_chip", None)
    assert main(["trace", "relu"]) == 2
    assert "--out must be a file that can be written, not 'relu.json'" in capsys.readouterr().err


def test_two_outputs_are_not_one_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("vitruvian.sim.davinci.load_chip", None)
    file = str(tmp_path / "a.json")
    assert main(["kernel", "relu", "--json", file, "--trace", file]) == 2
    assert "--json and --trace must be two files, not both" in capsys.readouterr().err


def test_files_have_the_mode_of_the_umask_and_are_written_whole(tmp_path, monkeypatch):
    import vitruvian.sim.davinci.report.trace

    before = os.umask(0o027)
    try:
        files = [tmp_path / name for name in ("p.json", "t.json.gz", "g.svg", "y.npz")]
        options = [
            x
            for o, f in zip(("--json", "--trace", "--gantt"), files, strict=False)
            for x in (o, str(f))
        ]
        assert main(["kernel", "relu", "--size", "1x128", *options]) == 0
        assert main(["cce", SOFTMAX, *ARGUMENTS, "--out", str(files[3])]) == 0
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o640] * 4

    def broken(report, file):
        file.write("half")
        raise ValueError("a trace must not be half")

    monkeypatch.setattr(vitruvian.sim.davinci.report.trace, "write_trace", broken)
    assert main(["trace", "relu", "--size", "1x128", "--out", str(tmp_path / "u.json")]) == 2
    assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize("size", ["100000x100000x100000", "999999999x999999999x999999999"])
@pytest.mark.parametrize("cube", ["golden", "none"])
def test_a_product_that_would_take_hours_is_one_line_before_the_work(size, cube, capsys):
    assert main(["kernel", "matmul", "--size", size, "--cube", cube]) == 2
    error = capsys.readouterr().err
    assert "instructions of matmul" in error and "must be at most 2,000,000, not about" in error
    assert error.count("\n") == 1


def test_the_compiled_unit_takes_smaller_products(capsys):
    assert main(["kernel", "matmul", "--size", "1024x1040x1024", "--cube", "rtl"]) == 2
    assert "must be at most 1,073,741,824, not about" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["trace", "tune"])
def test_help_is_in_sentences_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as raised:
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert raised.value.code == 0
    assert f"Example: vitruvian {command} matmul" in text and "default: ascend310)." in text


def test_lines_and_counters(tmp_path, capsys):
    folder = tmp_path / "new" / "counters"
    words = ["kernel", "matmul", "--size", "64x64x64", "--lines", "2", "--csv", str(folder)]
    assert main([*words, "--json", str(tmp_path / "r.json")]) == 0
    out = capsys.readouterr().out
    table = out[out.index("source line") :].splitlines()
    assert "kernels/matmul.py:" in table[1] and "core.copy(" in table[1]
    assert table[3].startswith("… and ") and str(folder / "Memory.csv") in out
    rows = json.loads((tmp_path / "r.json").read_text())["lines"]
    assert rows[0]["critical_s"] >= rows[1]["critical_s"] and rows[0]["function"] == "_load"
    assert (folder / "op_summary.csv").read_text().startswith("Op Name,OP Type,Task Type,")
    assert main(["kernel", "relu", "--lines"]) == 0, "N has a default"
    same = str(tmp_path / "x")
    assert main(["kernel", "relu", "--csv", same, "--json", same]) == 2
    assert "--json and --csv must be two files" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        main(["kernel", "relu", "--csv", str(tmp_path / "file")])
    assert "--csv: must be a folder that files can be written to" in capsys.readouterr().err
