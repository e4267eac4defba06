"""Programs in a folder, and the commands that write and read it."""

import json

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.sim.davinci.machine_code.image import ImageError, ProgramImage

_KERNEL = "sim/kernels/text/scale_add.cce"
_ARGUMENTS = [
    *("--arg", "a=normal:2048", "--arg", "b=normal:2048", "--arg", "y=zeros:2048"),
    *("--arg", "scale=2", "--arg", "tiles=1"),
]


def test_there_and_back(tmp_path, root, capsys, monkeypatch):
    monkeypatch.chdir(root)
    folder, text = tmp_path / "added", tmp_path / "added.s"
    assert main(["assemble", _KERNEL, "--core", "tiny", "--out", str(folder), *_ARGUMENTS]) == 0
    image = ProgramImage.read(folder)
    assert image.words[-1] == 0
    assert [t["name"] for t in image.tensors] == ["a", "b", "y"]
    assert len(image.lines) == len(set(image.lines)) or "scale_add.cce" in image.lines[0]
    assert main(["disassemble", str(folder)]) == 0
    assert "vmuls.V dst=UB:fp16:16384 src=UB:fp16:0 repeat=16 scalar=2.0" in capsys.readouterr().out
    assert main(["disassemble", str(folder), "--out", str(text)]) == 0
    assert main(["assemble", str(text), "--out", str(tmp_path / "again")]) == 0
    again = ProgramImage.read(tmp_path / "again")
    assert np.array_equal(again.words, image.words)


def test_what_a_core_lacks_is_refused_with_the_line(tmp_path, root, capsys, monkeypatch):
    monkeypatch.chdir(root)
    folder = tmp_path / "softmax"
    arguments = [
        "--arg",
        "x=normal:256",
        "--arg",
        "y=zeros:256",
        "--arg",
        "rows=2",
        "--arg",
        "n=128",
    ]
    kernel = "sim/kernels/text/softmax.cce"
    assert main(["assemble", kernel, "--core", "tiny", "--out", str(folder), *arguments]) == 2
    error = capsys.readouterr().err
    assert "softmax.cce:" in error and "vcmax needs the group reduce" in error
    assert not folder.exists()


def test_other_versions_and_broken_folders_are_refused(tmp_path):
    image = ProgramImage(np.zeros(1, np.uint64), np.zeros(8, np.uint8))
    image.write(tmp_path / "a")
    facts = json.loads((tmp_path / "a" / "program.json").read_text())
    (tmp_path / "a" / "program.json").write_text(json.dumps(facts | {"encoding": 99}))
    with pytest.raises(ImageError, match="must be in version 3 of the encoding, not 99"):
        ProgramImage.read(tmp_path / "a")
    image.write(tmp_path / "b")
    (tmp_path / "b" / "memory.bin").write_bytes(b"")
    with pytest.raises(ImageError, match="must be complete"):
        ProgramImage.read(tmp_path / "b")
    with pytest.raises(ImageError, match="must have the files"):
        ProgramImage.read(tmp_path / "c")
