"""Polling of global memory as an order between cores."""

import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.ascendc.polling import Polls

SOURCE = str(Path(__file__).parent / "kernels" / "polling.cpp")
CHIP = load_chip("ascend910b")

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def simulated(kernel, defines=None):
    compiled = compile_kernel(SOURCE, CHIP, kernel=kernel, defines=defines)
    arguments = {"x": np.zeros(40, np.int32)}
    program, _ = build({compiled.kind: compiled}, CHIP, arguments, blocks=2, limit=5000)
    return program, simulate(program)


@pytest.mark.parametrize("kernel", ["scalars", "blocks"])
def test_a_poll_orders_two_cores(kernel):
    """What follows a poll comes after what precedes the write that it sees, also in time."""
    program, report = simulated(kernel)
    assert not report.findings
    assert report.outputs["x"][[0, 16, 32]].tolist() == [1, 7, 8]
    modes = [i.fields["mode"] for c in program for i in c.instructions if i.op == "cross_wait"]
    assert modes == ["seen"], "one write is waited for, however often the word was read"


@pytest.mark.parametrize(
    "defines", [{"WAIT": ""}, {"ORDER": "x[0]=1;x[16]=7;"}, {"WAIT": "if(x[0]==9)return;"}]
)
def test_what_no_poll_orders_is_a_race(defines):
    """No poll at all, a word that comes before the data, and a word that is read once."""
    _, report = simulated("scalars", defines)
    assert any("race" in f.message and "GM[64:68]" in f.message for f in report.findings)


def test_a_word_that_is_polled_may_be_read_elsewhere():
    """Another place reads the word once, while the other core writes it again."""
    again = {"ORDER": "x[16]=7;x[0]=1;x[0]=3;", "WAIT": "while(x[0]==0){}if(x[0]==9)return;"}
    assert not simulated("scalars", again)[1].findings


def test_stores_to_a_line_are_seen_together():
    """The word may come before the data in its line of the cache, as in the library's messages."""
    line = {"ORDER": "x[0]=1;x[4]=7;", "WAIT": "while(x[0]!=1){}x[36]=x[4];"}
    assert not simulated("scalars", line)[1].findings
    apart = {"ORDER": "x[0]=1;x[20]=7;", "WAIT": "while(x[0]!=1){}x[36]=x[20];"}
    assert any("race" in f.message for f in simulated("scalars", apart)[1].findings)


def test_without_the_order_of_polls_there_are_races(monkeypatch):
    monkeypatch.setattr(Polls, "order", lambda *_: 0)
    _, report = simulated("scalars")
    assert len([f for f in report.findings if f.check == "race"]) == 2
