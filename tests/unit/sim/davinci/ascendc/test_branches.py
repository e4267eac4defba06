"""Other values of scalar reads: the other sides of branches on data."""

import platform
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.ascendc.branches import Rerun, ScalarReads, other_sides
from vitruvian.sim.davinci.checks.check import check

SOURCE = str(Path(__file__).parent / "kernels" / "branches.cpp")
CHIP = load_chip("ascend910b")

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def explored(kernel, first, *, defines=None, runs=100):
    """Return the findings of the first run, and those of the others."""
    compiled = compile_kernel(SOURCE, CHIP, kernel=kernel, defines=defines)
    x = np.zeros(128, np.float16)
    x[0] = first
    arguments = {"x": x, "y": x, "n": 1}
    arguments = {p.name: arguments[p.name] for p in compiled.parameters}
    record = partial(build, {compiled.kind: compiled}, CHIP, arguments, limit=300)
    reads = ScalarReads()
    program, _ = record(reads=reads)
    known = check(program)
    rerun = Rerun(lambda other: record(reads=other)[0], reads)
    return known, other_sides(rerun, check, program, known, runs=runs)


def test_a_barrier_that_is_missing_on_the_other_side():
    known, done = explored("branches", 1)
    assert not known and not done.failed and done.runs == done.possible
    (finding,) = done.findings
    assert finding.check == "hazard"
    line = finding.message.partition(":")[2]
    assert "when the read at" in line and "branches.cpp:14 returns 0x" in line
    assert "vadd" in line and "branches.cpp:18" in line


def test_what_the_first_run_has_is_not_found_again():
    known, done = explored("branches", 5)
    assert [f.check for f in known] == ["hazard"] and not done.findings
    assert not explored("branches", 1, defines={"BARRIER": "1"})[1].findings


def test_runs_are_limited():
    _, done = explored("branches", 1, runs=1)
    assert (done.runs, done.possible) == (1, 6) and not done.findings


def test_a_kernel_that_does_not_end_with_another_value():
    known, done = explored("loops", 0)
    assert not known and not done.findings
    assert len(done.failed) == done.runs - 1, "the negated 0 is 0, too"
    assert all("must end within 300 intrinsics" in line for line in done.failed)
