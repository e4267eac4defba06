"""Counted heaps against simulated ones, and the comparisons of a quicksort against sorting."""

import numpy as np
import pytest

from benchmarks.papers.tang24.selection_costs import HostSort, heap_counts, heap_seconds
from vitruvian.sim.davinci import Unit, load_chip, simulate
from vitruvian.sim.kernels.kselection import build
from vitruvian.sim.kernels.kselection.shape import KnnShape

C310 = load_chip("ascend310")


def test_counted_instructions_and_times_are_those_of_the_program():
    values = np.random.default_rng(1).normal(size=(18, 128)).astype(np.float16)
    shape = KnnShape(18, 128, 1, 5)
    program = build(shape, method="heap", distances=values, cores=1)
    report = simulate(program, cube=None, checks=False)
    scalars = [
        i for i in program.core().instructions if i.unit == Unit.S and i.op.startswith("scalar")
    ]
    counts = heap_counts(values, 5)
    assert sum(counts.values()) == len(scalars)
    for op in ("scalar_load", "scalar_store"):
        assert counts[op] == sum(i.op == op for i in scalars)
    for text in ("branch", "assign"):
        assert counts[text] == sum(i.fields.get("text") == text for i in scalars)
    busy = sum(unit.busy for unit in report.units() if unit.unit == Unit.S)
    assert heap_seconds(values, 5, C310) == pytest.approx(busy, rel=1e-9)
    # Loads, stores and vector instructions outside of the chain take less than a thousandth.
    alone = report.total_s - float(C310.launch_s)
    assert 0 < alone - busy < 0.005 * alone


def quicksort(values):
    """Sort distinct values and return the comparisons with random pivots, all with the pivot."""
    if len(values) < 2:
        return 0
    pivot, rest = values[0], values[1:]
    small, large = rest[rest < pivot], rest[rest > pivot]
    return len(rest) + quicksort(small) + quicksort(large)


def test_comparisons_are_those_of_a_quicksort():
    rng = np.random.default_rng(0)
    for n in (1, 2, 50, 300):
        mean = np.mean([quicksort(rng.permutation(n)) for _ in range(60)])
        # The standard deviation of a sort is about 0.65 n.
        assert HostSort().comparisons(n) == pytest.approx(mean, abs=4 * 0.65 * n / 60**0.5 + 1e-9)


def test_the_cost_of_the_host():
    host = HostSort(clock_hz=1e9, threads=2, comparison_cycles=1, misprediction_cycles=2)
    assert host.seconds(4, 2) == pytest.approx(4 * 1 * 2 / 1e9 / 2)
    with pytest.raises(ValueError, match="n must be at least 1, not 0"):
        host.comparisons(0)
