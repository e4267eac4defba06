"""``vitruvian exhaustive``: counts, resumption, a mutant, and wrong arguments."""

import json
import re
from dataclasses import replace

import pytest

from vitruvian.cli import main
from vitruvian.golden.fp import FORMATS
from vitruvian.sim.bench import exhaustive
from vitruvian.sim.bench.exhaustive import ExhaustiveProgress, run_tasks, tasks
from vitruvian.sim.verify.compare import Result

SMALL = [task for task in tasks() if task.inputs <= 1 << 16]


def test_what_is_covered():
    names = {task.name: task.inputs for task in tasks()}
    small = [f.name for f in FORMATS.values() if f.storage_bits == 8]
    dots = {name for name in names if name.startswith("DotProduct K=1")}
    assert dots == {f"DotProduct K=1 {a} x {b}" for a in small for b in small}
    assert names["all pairs: Multiplier format=fp16 output=fp32"] == 1 << 32
    assert any(name.startswith("fp16 codes") for name in names)


@pytest.mark.parametrize("task", SMALL, ids=lambda task: task.name)
def test_small_tasks_whole(task, tmp_path):
    progress = ExhaustiveProgress(tmp_path / "progress.json")
    *_, (_, left, _, result) = run_tasks([task], progress=progress)
    assert left == 0 and result.mismatches == 0, result.examples
    assert result.vectors % task.inputs == 0 and result.vectors >= task.inputs


def test_it_goes_on_where_it_stopped(tmp_path):
    """Five chunks of 4096 inputs, then the rest; no chunk is repeated or omitted."""
    path = tmp_path / "progress.json"
    seen = []
    task = next(task for task in SMALL if task.name.startswith("DotProduct"))

    def run(model, numbers):
        seen.append(int(numbers[0]))
        return task.run(model, numbers)

    counted = replace(task, run=run)
    for limit in (5 * 4096, None):
        *_, (_, left, _, result) = run_tasks(
            [counted], progress=ExhaustiveProgress(path), chunk_bits=12, limit=limit
        )
        assert left == (11 if limit else 0)
    assert sorted(seen) == list(range(0, 65536, 4096)) and result.vectors == 65536
    assert json.loads(path.read_text())["tasks"][task.name]["mismatches"] == 0


def test_another_design_starts_again_and_a_broken_file_is_no_file(tmp_path):
    path = tmp_path / "progress.json"
    progress = ExhaustiveProgress(path)
    assert progress.open("t", key="one", chunks=3) == [0, 1, 2]
    progress.add("t", 1, Result(vectors=10, mismatches=0))
    progress.save()
    assert ExhaustiveProgress(path).open("t", key="one", chunks=3) == [0, 2]
    assert ExhaustiveProgress(path).open("t", key="two", chunks=3) == [0, 1, 2]
    path.write_text(path.read_text()[:40])
    assert ExhaustiveProgress(path).open("t", key="one", chunks=3) == [0, 1, 2]


def test_the_command(tmp_path, capsys, monkeypatch):
    rows, progress = tmp_path / "rows.json", tmp_path / "progress.json"
    arguments = ["exhaustive", "all pairs: Multiplier format=fp16", "--jobs", "1"]
    arguments += ["--chunk", "65536", "--progress", str(progress), "--json", str(rows)]
    assert main([*arguments, "--limit", "131072"]) == 0
    (row,) = json.loads(rows.read_text())
    assert row["vectors"] == 131072 and row["mismatches"] == 0
    assert "inputs are left" in capsys.readouterr().out

    # A wrong expected result is counted as a mismatch, and the count is kept.
    monkeypatch.setattr(exhaustive, "expected", lambda unit, control, **operands: operands["a"])
    assert main([*arguments, "--limit", "65536"]) == 1
    (row,) = json.loads(rows.read_text())
    assert row["vectors"] == 196608 and 0 < row["mismatches"] <= 65536 and row["examples"]


def test_the_progress_says_how_fast_it_goes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    arguments = ["exhaustive", "all pairs: Multiplier format=fp16", "--jobs", "1"]
    arguments += ["--chunk", "65536", "--progress", str(tmp_path / "p.json")]
    assert main([*arguments, "--limit", "262144"]) == 0
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    speeds = re.findall(r"(\S+) M/s, (\S+) min left", output)
    assert speeds and all(float(a) > 0 and float(b) > 0 for a, b in speeds)


@pytest.mark.parametrize("content", [b"PK\x03\x04 mine", b'{"version": 1}', b"", None])
@pytest.mark.parametrize("options", [[], ["--restart"]])
def test_a_progress_file_of_somebody_else_is_never_replaced(tmp_path, capsys, content, options):
    path = tmp_path / "mine.npz"
    path.mkdir() if content is None else path.write_bytes(content)
    arguments = ["exhaustive", "*fp8e4m3 x fp8e4m3", "--limit", "1", "--progress", str(path)]
    try:
        code = main([*arguments, *options])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2 and not out and len(err.splitlines()) == 1, err
    assert "must be a file that can be written" in err or "--progress: the progress file" in err
    assert path.is_dir() if content is None else path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "task must match one of"),
        (["--chunk", "1000"], "--chunk must be a power of two, not 1000"),
        (["--limit", "0"], "must be a whole number from 1 to 1099511627776, not '0'"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    try:
        code = main(["exhaustive", *arguments])
    except SystemExit as stop:
        code = stop.code
    error = capsys.readouterr().err
    assert code == 2 and message in error and len(error.splitlines()) == 1
