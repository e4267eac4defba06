"""Other constants of the chips, and the tables of docs/results/constants.md."""

import csv
import json

import numpy as np
import pytest

from benchmarks import constants
from benchmarks.papers.constants.figures import FIGURES, Setting, classes, compute
from benchmarks.papers.constants.readings import READINGS, chip_text, chip_with, memory, pipelined
from benchmarks.papers.tang24 import two_kernels
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.kselection.shape import KnnShape

#: The readings that the chip files hold.
ADOPTED = {"ascend310": "P", "ascend910": "G"}


@pytest.mark.parametrize("name", ADOPTED)
def test_the_files_of_the_chips_hold_the_adopted_readings(name):
    chip, held = chip_with(name, ADOPTED[name]), load_chip(name)
    for field in ("vector", "scalar", "buses", "routes", "cube", "launch_s"):
        assert getattr(chip, field) == getattr(held, field), field
    other = chip_with(name, set(READINGS) - set(ADOPTED[name]))
    assert (other.vector, other.buses) != (held.vector, held.buses)


def test_a_reading_changes_its_constants_alone():
    base = chip_with("ascend310")
    assert float(base.vector[""].init_s) == 40e-9 and not base.vector[""].drain_s
    assert [float(base.buses["interconnect"].total(n)) / 1e9 for n in (1, 2, 3, 4)] == [
        24,
        36,
        40,
        42,
    ]
    other = chip_with("ascend310", "P", {"ascend310": pipelined(10, 20)})
    assert float(other.vector[""].drain_s) == 20e-9
    assert float(other.vector[""].start_s) == pytest.approx(10 / 0.68e9, rel=2e-3)
    assert other.buses == base.buses
    assert chip_text("ascend910", "", {"ascend310": pipelined(10)}) == chip_text("ascend910")
    assert (
        float(chip_with("ascend910", "", {"ascend910": memory(75)}).buses["memory"].total(1))
        == 75e9
    )


def test_every_figure_is_computed_and_published():
    """The groups that take seconds; the others have the same form."""
    now = frozenset("PG")
    found = compute(Setting(now), ("cases 310", "cases 910", "pooling"))
    known = json.loads(constants.VALUES.read_text(encoding="utf-8"))["settings"]
    adopted = known["base"] | known["P"] | known["G"]
    assert set(adopted) >= set(FIGURES)
    for key, value in found.items():
        assert adopted[key] == pytest.approx(value, abs=6e-6), key
    assert classes(Setting(now), ("matmul",)) == {"matmul": ["MTE bound (MTE2)"] * 2}


def test_the_page_has_the_tables_of_the_values(root):
    tables = constants.Tables(json.loads(constants.VALUES.read_text(encoding="utf-8")))
    text = (root / "docs" / "results" / "constants.md").read_text(encoding="utf-8")
    for name, rows in constants.parts(tables).items():
        path = root / "docs" / "results" / "data" / f"constants_{name}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == rows
        assert f"[Table](data/{path.name})" in text


def test_a_selection_alone_finds_the_neighbours():
    rng = np.random.default_rng(3)
    distances = rng.normal(size=(18, 512)).astype(np.float16)
    shape = KnnShape(18, 512, 8, 5)
    for method in ("selb", "selb-soft-compare", "bitonic"):
        report = simulate(two_kernels.selection(shape, distances, method, load_chip("ascend310")))
        assert not report.findings
        found = report.outputs["values"].swapaxes(1, 2).reshape(-1, 5)[:18]
        assert (np.sort(found, 1) == np.sort(distances, 1)[:, :5]).all()


def test_the_two_kernels_have_a_launch_each():
    chip, shape = load_chip("ascend310"), KnnShape(16, 512, 32, 4)
    distances = np.random.default_rng(4).normal(size=(16, 512)).astype(np.float16)
    first = two_kernels.distances_seconds(shape, chip)
    second = two_kernels.selection_seconds(shape, distances, "selb", chip)
    assert min(first, second) > float(chip.launch_s)
