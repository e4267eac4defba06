"""The statements of docs/units/kselection.md and docs/results/knn_tiling.md."""

import re

import numpy as np
import pytest

from benchmarks.papers.tang24.selection_costs import HostSort
from benchmarks.papers.tang24.tile_times import tile_seconds
from vitruvian.flows.pages import site
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.kernels import KERNELS


def test_the_example_runs(root):
    text = (root / "docs" / "units" / "kselection.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec(code, names)
    assert names["values"].shape == (20, 5) and not names["report"].findings


def test_commands_are_those_of_the_code(root):
    text = (root / "docs" / "units" / "kselection.md").read_text()
    commands = re.findall(r"vitruvian kernel (\S+) --size (\S+?)`", text)
    assert len(commands) == 2
    for name, size in commands:
        assert len(size.split("x")) == len(KERNELS[name].sizes)


def test_times_are_those_of_the_chip_file(root):
    text = (root / "docs" / "units" / "kselection.md").read_text()
    chip = load_chip("ascend310")
    other, branch = re.search(r"take ([\d.]+) ns, a branch ([\d.]+) ns", text).groups()  # pyright: ignore
    assert (float(other), float(branch)) == pytest.approx(
        (float(chip.scalar[""]) * 1e9, float(chip.scalar["branch"]) * 1e9)
    )


def test_times_of_a_row_are_those_of_the_simulator(root):
    """The row with the fewest points, and the cost of the host."""
    text = site.text_of(root / "docs" / "results" / "knn_tiling.md")
    found = re.search(r"^\| 16 \| 1024 \| 8 \|.*?([\d.]+) … ([\d.]+) µs", text, re.M)
    assert found
    values = np.random.default_rng(8).normal(size=(16, 10240)).astype(np.float16)
    parts = [values[:, at : at + 1024] for at in range(0, 10240, 1024)]
    times = tile_seconds(parts, 8, load_chip("ascend310")) * 1e6
    assert (f"{times[0]:.1f}", f"{times[-1]:.1f}") == found.groups()
    # In the first table of the baselines, what is no selection takes 0.064 ms.
    assert HostSort().seconds(32, 4096) * 1e3 + 0.064 == pytest.approx(8.409, abs=6e-4)
