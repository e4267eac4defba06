"""Output files: complete or absent; links and devices are kept."""

import os
import subprocess
import sys

from vitruvian.files import write_whole


def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    write_whole(link, "after")
    assert link.is_symlink() and target.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_standard_output_is_not_replaced_by_a_file(root, tmp_path):
    before = os.lstat("/dev/stdout")
    code = "from pathlib import Path; from vitruvian.files import write_whole\n"
    code += "write_whole(Path('/dev/stdout'), 'whole')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=root)
    assert (tmp_path / "out").read_text() == "whole"
    after = os.lstat("/dev/stdout")
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
