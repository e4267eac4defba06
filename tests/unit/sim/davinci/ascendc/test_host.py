"""Host programs: allocations, copies, launches, and mistakes outside of kernels."""

import os
import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.ascendc.host import run_host
from vitruvian.sim.davinci.cce import CceError

HOST = Path(__file__).parent / "kernels" / "host.cpp"
CHIP = load_chip("ascend910b")

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def launches(folder, *defines):
    """Run the host program and return the findings of its launches, and calls of the second."""
    compiled = compile_kernel(str(HOST), CHIP, defines=dict.fromkeys(defines, "1"), host=True)
    found, chains = [], {}

    def finish(program, functional):
        report = simulate(program)
        found.append([finding.check for finding in report.findings])
        chains.clear()
        chains.update(program.calls)
        return report.outputs

    count = run_host({compiled.kind: compiled}, CHIP, finish, folder=str(folder))
    assert count == len(found)
    return found, chains


def test_a_host_program(tmp_path):
    """The second launch takes what the first one wrote, and the host reads the result."""
    assert launches(tmp_path)[0] == [[], []]
    result = np.fromfile(tmp_path / "output.bin", np.float32)
    assert np.array_equal(result, 9 * np.arange(128, dtype=np.float32))


def test_a_missing_flag_in_a_launch(tmp_path):
    """Both launches have the race, and each line its calls, up to the host's main."""
    found, chains = launches(tmp_path, "WITHOUT_FLAG")
    assert len(found) == 2 and all("race" in checks for checks in found)
    lines = HOST.read_text().splitlines()
    launched = next(n for n, line in enumerate(lines, 1) if "scaled<0><<<" in line)
    ends = {chain.rpartition("called by ")[2] for chain in chains.values()}
    assert ends == {f"main at {HOST}:{launched}"}
    assert not any("lambda" in chain or "vitruvian_host" in chain for chain in chains.values())


@pytest.mark.parametrize(
    ("define", "text", "message"),
    [
        ("CRASH", "x[0] = 1", "must not access 0x10000000000: no memory of its own is there"),
        (
            "OUTSIDE",
            "outside",
            "a copy of 4096 bytes must be inside an allocation, not at 0x100000",
        ),
        (
            "NOTHING",
            "exit",
            "the host program broke off after this line: it ended with exit code 3",
        ),
    ],
)
def test_a_mistake_of_the_host(tmp_path, define, text, message):
    """A crash outside of kernels is a line, too."""
    with pytest.raises(CceError) as caught:
        launches(tmp_path, define)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    if define != "NOTHING":
        line = HOST.read_text()[: HOST.read_text().index(text)].count("\n") + 1
        assert caught.value.position.line == line


@pytest.mark.skipif(
    "VITRUVIAN_ASCENDC_HEADERS" not in os.environ,
    reason="VITRUVIAN_ASCENDC_HEADERS must name a clone of asc-devkit",
)
def test_the_official_headers(root):
    """The example has the same result with the library's own headers."""
    compiled = compile_kernel(
        str(root / "examples" / "ascendc_add.cpp"),
        CHIP,
        headers=os.environ["VITRUVIAN_ASCENDC_HEADERS"],
    )
    x = np.arange(512, dtype=np.float16)
    arguments = {"x": x, "y": x, "z": np.zeros_like(x), "n": 512}
    program, functional = build({compiled.kind: compiled}, CHIP, arguments)
    assert np.array_equal(functional.read("z"), x + x) and not simulate(program).findings
