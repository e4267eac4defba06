"""The statements of docs/units/davinci_kernels.md and docs/results/gemm910b1.md."""

import re

import pytest

from vitruvian.cli import main
from vitruvian.flows.pages import site
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.kernels import KERNELS


def test_the_example_runs(root):
    text = (root / "docs" / "units" / "davinci_kernels.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec(code.replace('cube="rtl"', 'cube="golden"'), names)  # the RTL has its own tests
    assert names["elements"] and names["differ"] == 0


def test_commands_name_existing_kernels(root):
    text = (root / "docs" / "units" / "davinci_kernels.md").read_text()
    named = re.findall(r"vitruvian (?:kernel|trace|tune) (\S+)", text)
    assert len(named) == 5 and set(named) <= set(KERNELS)


def test_the_command_cce_of_the_page_runs(root, monkeypatch, capsys):
    text = (root / "docs" / "units" / "davinci_kernels.md").read_text()
    (line,) = re.findall(r"vitruvian (cce .*)", text)
    monkeypatch.chdir(root)
    assert main(line.split()) == 0
    assert "y (256 float16): " in capsys.readouterr().out


def test_the_launch_of_the_table_is_the_chips(root):
    text = site.text_of(root / "docs" / "results" / "gemm910b1.md")
    chip = load_chip("ascend910b")
    launch = re.search(r"launch, ([\d.]+) µs, and latency of misses .*, (\d+) ns", text)
    assert launch and float(launch[1]) == pytest.approx(float(chip.launch_s) * 1e6)
    assert chip.cache is not None
    assert float(launch[2]) == pytest.approx(float(chip.cache.latency_s) * 1e9)
    totals = re.search(r"reads ([\d.]+) and writes ([\d.]+) TB/s of all cores", text)
    memory = re.search(r"memory, ([\d.]+) TB/s; (\d+) MiB that stay", text)
    assert totals and memory and int(memory[2]) << 20 == chip.cache.nbytes
    for found, bus in ((totals[1], "memory"), (totals[2], "write"), (memory[1], "hbm")):
        # The text has three digits.
        assert float(found) * 1e12 == pytest.approx(float(chip.buses[bus].totals[-1]), rel=2e-3)
