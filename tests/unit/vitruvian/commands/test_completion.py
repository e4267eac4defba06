"""Completion in the shell: what argcomplete is told for a line that is not finished."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]

#: Run the command line as a shell function of argcomplete does, with file descriptor 8 for answers.
COMPLETE = """
import os, sys
os.dup2(1, 8)
sys.argv = ["vitruvian"]
from vitruvian.__main__ import run
run()
"""


def completions(line: str) -> list[str]:
    """Return the words that the command line offers at the end of ``line``."""
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
        "PYTHONPATH": str(REPOSITORY),
    }
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_marker_is_where_argcomplete_looks_for_it():
    assert "PYTHON_ARGCOMPLETE_OK" in (REPOSITORY / "vitruvian" / "__main__.py").read_text()[:1024]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vitruvian ver", {"verify", "verilog"}),
        ("vitruvian verify --vec", {"--vectors"}),
        ("vitruvian tune matmul --output", {"--output-dtype"}),
        ("vitruvian trace relu --ou", {"--out"}),
        ("vitruvian kernel --no-", {"--no-checks"}),
        ("vitruvian graph --no-", {"--no-edge"}),
        ("vitruvian k", {"kernel", "knn"}),
        ("vitruvian zzz --j", set()),
    ],
)
def test_a_line_is_completed(line, expected):
    assert set(completions(line)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vitruvian machines h100_wgmma_e4m3_", {f"h100_wgmma_e4m3_fp{n}" for n in (16, 32)}),
        ("vitruvian kernel matm", {"matmul"}),
        ("vitruvian graph aps", {"apsp"}),
        ("vitruvian graph matm", set()),
        ("vitruvian kernel aps", set()),
        ("vitruvian taylor --method cu", {"cube"}),
        ("vitruvian knn --method bit", {"bitonic"}),
        ("vitruvian roofline add_r", {"add_relu"}),
        ("vitruvian trace relu --chip ascend310", {"ascend310", "ascend310p"}),
        ("vitruvian area dot --preset a", {"a100", "a2", "ada"}),
        ("vitruvian area dot --pre", {"--preset"}),
        ("vitruvian area intdot --pre", set()),
        ("vitruvian area int", {"intdot"}),
        ("vitruvian fpga --board ulx", {"ulx3s"}),
        ("vitruvian studies sg", {"sgemm"}),
        ("vitruvian silicon --preset v", {"v100"}),
        ("vitruvian formats fp8e", {"fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"}),
        ("vitruvian network res", {"resnet50"}),
        ("vitruvian sparse pager", {"pagerank"}),
        ("vitruvian formal cube.que", {"cube.queue"}),
        ("vitruvian verify --vectors 1", set()),
    ],
)
def test_names_are_offered_where_names_are_wanted(line, expected, tmp_path, monkeypatch):
    # Files whose names begin with the same letters must not be offered.
    for name in ("h100_wgmma_e4m3_x", "matm.txt", "a.txt", "res.txt", "1.txt", "v.txt", "ulx.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    found = set(completions(line))
    assert expected <= found and not any(word.endswith((".txt", "_x")) for word in found)
    assert found == expected or "formats" in line


def test_files_are_offered_where_files_are_wanted(tmp_path, monkeypatch):
    for name in ("mine.toml", "mine.bin", "mine.onnx"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert completions("vitruvian kernel relu --chip mi") == ["mine.toml"]
    assert completions("vitruvian network mi") == ["mine.onnx"]
    for line in ("vitruvian area --config mi", "vitruvian probe read mi"):
        assert {"mine.toml", "mine.bin"} <= set(completions(line))


def test_only_the_named_command_has_options():
    assert "--size" not in completions("vitruvian verify --")
