"""Completion in the shell: what argcomplete is told for a line that is not finished."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]

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
        ("vitruvian run --no-", {"--no-checks", "--no-edge"}),
        ("vitruvian zzz --j", set()),
    ],
)
def test_a_line_is_completed(line, expected):
    assert set(completions(line)) == expected


def test_only_the_named_command_has_options():
    assert "--size" not in completions("vitruvian verify --")
