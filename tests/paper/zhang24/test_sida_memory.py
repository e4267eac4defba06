"""The memory with timing: our model beside DRAMsim3, and the figures of docs/results/sida.md."""

import csv

import numpy as np
import pytest

from benchmarks.papers.zhang24.planning import simulate_pattern
from benchmarks.papers.zhang24.standins import stand_in
from benchmarks.sida_memory import HBM2, figures_of, traces
from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.dram import DramMemory
from vitruvian.sim.sparse.pattern import pattern_of


@pytest.fixture(scope="module")
def reference(root) -> list[list[str]]:
    """Return the rows that DRAMsim3 and our model gave, without the head."""
    path = root / "docs" / "results" / "data" / "sida_memory_reference.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def test_the_model_still_gives_its_shares_of_the_peak(reference):
    found = {name: float(ours) for name, _, ours, _ in reference}
    memory = DramMemory(HBM2, 1, 1)
    for name, (atoms, writes) in traces().items():
        cycles, _ = memory.serve(atoms.astype(np.int64), writes)
        share = HBM2.channel.burst * len(atoms) / cycles
        # The table has three decimals.
        assert share == pytest.approx(found[name], abs=0.0006), name


def test_the_model_is_near_dramsim3(reference):
    """The bounds are those that the page states; nothing is fitted to them."""
    errors = {name: float(error.split()[0]) / 100 for name, _, _, error in reference}
    assert len(errors) == 8 + 36
    assert max(map(abs, errors.values())) < 0.03
    sweeps = [abs(error) for name, error in errors.items() if "sweep" in name]
    assert len(sweeps) == 36 and np.mean(sweeps) < 0.003
    for _, theirs, ours, error in reference:
        # The error of the time is that of the shares, but for their three decimals.
        rounding = 0.0006 * (1 / float(ours) + 1 / float(theirs))
        assert float(theirs) / float(ours) - 1 == pytest.approx(
            float(error.split()[0]) / 100, abs=rounding
        )


def test_pagerank_of_a_matrix_at_full_size():
    """The stand-in "gy" of docs/results/sida.md, to the last digit that is given there."""
    pattern = pattern_of(stand_in("gy"))
    machine = load_architecture()
    plain = figures_of(simulate_pattern(pattern, machine, "pagerank"))
    timed = figures_of(simulate_pattern(pattern, machine, "pagerank", memory=HBM2))
    assert plain["useful"] == pytest.approx(0.999, abs=0.001)
    assert timed["useful"] == pytest.approx(0.861, abs=0.001)
    assert (plain["joined"], timed["joined"]) == pytest.approx((1.886, 1.907), abs=0.001)
    # The baseline that stays at its roofline is faster than the timed one.
    assert timed["joined_peak"] < plain["joined"] < timed["joined"]
