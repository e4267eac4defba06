"""Output files are whole or absent; links and what is no plain file stay what they are."""

import os
import subprocess
import sys

import pytest

from vitruvian.files import write_whole


@pytest.mark.parametrize("write", [write_whole, write_whole])
def test_a_symbolic_link_stays_and_its_file_is_written(write, tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    write(link, "after")
    assert link.is_symlink() and target.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


@pytest.mark.parametrize("module", ["vitruvian.files", "vitruvian.flows.cache"])
def test_standard_output_is_not_replaced_by_a_file(module, root, tmp_path):
    name = {"vitruvian.files": "write_whole", "vitruvian.flows.cache": "write_whole"}[module]
    before = os.lstat("/dev/stdout")
    code = f"from pathlib import Path; from {module} import *; import {module} as m\n"
    code += f"m.{name}(Path('/dev/stdout'), 'whole')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=root)
    assert (tmp_path / "out").read_text() == "whole"
    after = os.lstat("/dev/stdout")
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
