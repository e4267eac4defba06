"""Hostile command lines; ``make fuzz`` runs two hundred, this test a few."""

import os
import subprocess
import sys

import pytest

from tests.system import fuzz_commands
from vitruvian.cli import COMMANDS


def test_hostile_command_lines_end_with_0_1_or_2_and_one_line(root):
    script = root / "tests" / "system" / "fuzz_commands.py"
    done = subprocess.run(
        [sys.executable, script, "--count", "40", "--seed", "11", "--seconds", "90"],
        cwd=root,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 command lines (seed 11): 0 with faults" in done.stdout


def test_every_command_is_in_the_lines_and_a_seed_repeats_them():
    lines = list(fuzz_commands.lines(200, 3))
    assert lines == list(fuzz_commands.lines(200, 3)) != list(fuzz_commands.lines(200, 4))
    named = {" ".join(line[:2]) for line in lines}
    for command in set(COMMANDS) - {"timing"}:  # area has its options
        assert f"vitruvian {command}" in named


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        ("traceback", "traceback"),
        ("file", "half.json is not whole"),
        ("memory", "traceback"),
        ("lines", "2 lines on standard error"),
        ("input", "an input was changed"),
        ("hang", "no end after 1 s"),
    ],
)
def test_what_no_command_may_do_is_found(tmp_path, plant, fault):
    outcome = fuzz_commands.run([plant], tmp_path, 1 if plant == "hang" else 60)
    assert fault in outcome.faults
