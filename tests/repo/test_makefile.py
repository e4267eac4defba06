"""make creates .venv once, repeats an interrupted set-up, and names missing tools."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")

#: Plays the interpreter outside and inside .venv: notes its calls, and fails when told to.
PYTHON = """#!/bin/sh
echo "$@" >> calls.txt
case "$*" in
  "-V") echo Python 3.9.1;;
  *sys.version_info*) test ! -e old;;
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python;;
  *"pip install"*"[all,test]"*) test ! -e broken;;
esac
"""


@pytest.fixture
def project(root, tmp_path) -> Path:
    """Create the files that the set-up depends on, and a stand-in for Python."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path)
    stub = tmp_path / "python-stub"
    stub.write_text(PYTHON)
    stub.chmod(0o755)
    return tmp_path


def make(project: Path, target: str, **variables: str) -> tuple[int, list[str], str]:
    """Return the exit code, the new calls of the stand-in, and the output."""
    (project / "calls.txt").unlink(missing_ok=True)
    given = {"PYTHON": "./python-stub", "CXX": "true"} | variables
    outer = ("MAKE", "ARGS", "JOBS")  # of a make that runs these tests
    environment = {k: v for k, v in os.environ.items() if not k.startswith(outer)}
    done = subprocess.run(
        ["make", target, *(f"{name}={value}" for name, value in given.items())],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    calls = project / "calls.txt"
    lines = calls.read_text().splitlines() if calls.exists() else []
    return done.returncode, lines, done.stdout + done.stderr


def test_a_second_run_sets_nothing_up(project):
    code, calls, output = make(project, "sim")
    assert code == 0, output
    assert "-m venv .venv" in calls and sum("pip install" in call for call in calls) == 2
    code, calls, _ = make(project, "sim")
    assert code == 0 and calls == ["-m vitruvian verify", "examples/digits.py"]
    code, calls, _ = make(project, "test")
    assert code == 0 and len(calls) == 1 and calls[0].startswith("-m pytest")


def test_a_changed_pin_is_installed(project):
    make(project, "sim")
    os.utime(project / "constraints.txt", (2**31, 2**31))
    _, calls, _ = make(project, "sim")
    assert "-m venv .venv" not in calls and sum("pip install" in call for call in calls) == 2


def test_an_interrupted_set_up_starts_over(project):
    (project / "broken").touch()
    code, _, _ = make(project, "sim")
    assert code == 2 and not (project / ".venv" / ".stamp").exists()
    (project / ".venv" / "half").touch()
    (project / "broken").unlink()
    code, calls, output = make(project, "sim")
    assert code == 0, output
    assert "-m venv .venv" in calls and not (project / ".venv" / "half").exists()


def test_what_is_missing_is_named(project):
    code, _, output = make(project, "sim", PYTHON="no-such-python")
    assert code == 2 and "error: no-such-python not found; install Python 3.11 or newer" in output
    (project / "old").touch()
    code, _, output = make(project, "sim")
    assert code == 2 and "error: PYTHON must be Python 3.11 or newer, not Python 3.9.1" in output
    (project / "old").unlink()
    code, calls, output = make(project, "sim", CXX="no-such-compiler")
    assert code == 2 and "error: no-such-compiler not found; install it" in output
    assert "-m vitruvian verify" not in calls


@pytest.mark.parametrize(
    "target", ["sim", "davinci", "test", "exhaustive", "bench", "docs", "check"]
)
def test_a_missing_compiler_is_told_before_set_up(project, target):
    code, calls, output = make(project, target, CXX="no-such-compiler")
    assert code == 2 and "error: no-such-compiler not found; install it" in output
    assert not calls and not (project / ".venv").exists()


def test_help_lists_every_target(root, project):
    _, _, output = make(project, "help")
    for target in "sim test area verilog timing check docs clean exhaustive fuzz bench".split():
        assert f"\n{target} " in f"\n{output}"


def test_ci_runs_what_a_reader_runs(root):
    script = (root / ".ci" / "run").read_text().splitlines()
    assert script[-1] == "exec make test"
    assert os.access(root / ".ci" / "run", os.X_OK)


def test_make_davinci_writes_no_tracked_file(project):
    """``make pictures`` writes the timeline in docs/."""
    _, calls, _ = make(project, "davinci")
    (call,) = [call for call in calls if call.startswith("-m vitruvian")]
    assert "--gantt build/davinci/matmul.svg" in call and "docs/" not in call
    _, calls, _ = make(project, "pictures")
    assert any("--gantt docs/units/davinci_matmul.json" in call for call in calls)
