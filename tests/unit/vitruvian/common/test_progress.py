"""Progress appears on a terminal after a delay, and nowhere else."""

import importlib
import io
import time

import numpy as np
import pytest
from rich.console import Console

from vitruvian.common import progress as module
from vitruvian.common.progress import Progress
from vitruvian.sim.davinci import Program, load_chip, simulate


@pytest.fixture
def terminal(monkeypatch):
    """A stand-in for a terminal on standard error."""
    screen = io.StringIO()
    monkeypatch.setattr(
        module, "SafeConsole", lambda stderr: Console(file=screen, force_terminal=True, width=80)
    )
    return screen


def wait_for(screen, text):
    deadline = time.monotonic() + 5
    while text not in screen.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    return text in screen.getvalue()


def test_nothing_appears_before_the_delay(terminal):
    with Progress("short", after_s=60) as bar:
        bar("short", 1, 2)
    assert terminal.getvalue() == ""
    with Progress("at once"):
        pass
    assert "at once" in terminal.getvalue()


def test_a_bar_appears_after_the_delay_with_the_latest_state(terminal):
    with Progress("long", after_s=0.05) as bar:
        bar("checking", 1, 4)
        assert wait_for(terminal, "checking")
        bar("timing", 2, 4)
        assert wait_for(terminal, "timing")
        assert "2/4" in terminal.getvalue()
    with pytest.raises(KeyError), Progress("broken", after_s=0.2):
        raise KeyError
    time.sleep(0.3)
    assert "broken" not in terminal.getvalue(), "the timer ends with the work"


def test_nothing_appears_without_a_terminal(capsys):
    with Progress("quiet", lines=False, after_s=0.01):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_simulate_reports_its_tasks(monkeypatch):
    # The function ``simulate`` hides the module of the same name.
    monkeypatch.setattr(importlib.import_module("vitruvian.sim.davinci.simulate"), "_REPORTED", 2)
    program = Program(load_chip("ascend310"))
    x = program.tensor("x", (128,), "fp16", np.zeros(128, np.float16))
    core = program.core()
    u = core.allocate("UB", (128,), "fp16")
    core.copy(u, x)
    core.pipe_barrier()
    core.vrelu(u, u)
    seen = []
    simulate(program, progress=lambda *state: seen.append(state))
    assert seen == [
        ("preparing", 0, 1),
        ("checking", 0, 1),
        ("timing", 0, 1),
        ("computing data", 0, 3),
        ("computing data", 2, 3),
    ]
