"""Reports: the oracle and the roofline are bounds, figures by hand, storage and bad input."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from vitruvian.sim.sparse.workload import PAGERANK, PLAIN, Elementwise, Workload

from vitruvian.sim.sparse import simulate
from vitruvian.sim.sparse.architecture import Architecture, load_architecture
from vitruvian.sim.sparse.layout import dual_bytes
from vitruvian.sim.sparse.pattern import Pattern, blocked, pattern_of
from vitruvian.sim.sparse.report import TRAFFIC, Report

MACHINE = dataclasses.replace(load_architecture(), pes=4, sub_tensor=4)


def pattern(seed: int, n: int, share: float) -> Pattern:
    return pattern_of(sparse.csr_array(np.random.default_rng(seed).random((n, n)) < share))


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Run small cases as plain Python: Numba takes longer to start than they take."""
    monkeypatch.setattr(simulate, "fitting", lambda function, size: function)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    share=st.sampled_from([0.0, 0.05, 0.3]),
    kib=st.sampled_from([4, 8, 1024]),
    rate=st.sampled_from([3, 30, 900]),
    side=st.sampled_from([1, 2, 4]),
    workload=st.sampled_from([PLAIN, PAGERANK]),
    reorder=st.booleans(),
)
def test_bounds(seed, n, share, kib, rate, side, workload, reorder):
    given_pattern = pattern(seed, n, share)
    machine = dataclasses.replace(MACHINE, buffer_bytes=kib << 10, memory_bytes_per_s=rate * 10**9)
    order = np.random.default_rng(seed).permutation(n) if reorder else None
    report = simulate.simulate(given_pattern, machine, workload, order=order, block=side)
    rate_of, pes = machine.bytes_per_cycle, machine.pes
    # The oracle is never beaten, in time or traffic.
    assert report.oracle.cycles <= report.cycles
    assert report.oracle.memory_bytes <= report.memory_bytes
    # No machine is above its roofline.
    assert report.baseline.cycles >= report.baseline.memory_bytes / rate_of
    assert report.baseline.cycles >= Fraction(report.baseline.operations, 3 * pes)
    assert report.cycles >= report.memory_bytes / rate_of
    assert report.cycles >= Fraction(report.oracle.operations, 3 * pes)
    assert report.baseline.operations == report.oracle.operations
    # Over time, all bytes are there.
    cycles, used = report.bandwidth(7)
    assert len(cycles) == 7 and (used <= 1 + 1e-9).all()
    assert used.mean() == pytest.approx(report.bandwidth_share)
    _, csr, csc = report.occupancy()
    assert (csr + csc <= machine.buffer_bytes).all()
    assert sum(report.traffic.values()) == report.memory_bytes
    assert set(report.traffic) == set(TRAFFIC)


def test_a_diagonal_matrix_by_hand():
    machine: Architecture = dataclasses.replace(MACHINE, memory_bytes_per_s=10**9)
    report: Report = simulate.simulate(pattern_of(sparse.eye_array(8)), machine, PAGERANK)
    # Entries of 12 bytes; two index arrays; x; old x for the residual; no new x is read again
    # except by the second residual; at the end y, x and the new x. The result once.
    assert report.traffic == {
        "csc": 96,
        "reload": 0,
        "prefetch": 0,
        "vectors": 2 * 4 * 8 + 64 + 64 + 64 + 3 * 64,
        "results": 64,
    }
    # The baseline per iteration: matrix with one index array, x, y; two and two vectors.
    assert report.baseline.memory_bytes == 2 * (96 + 32 + 2 * 64 + 4 * 64)
    assert report.baseline.cycles == report.baseline.memory_bytes
    assert report.oracle.memory_bytes == 96 + 32 + 64 + 64
    assert report.oracle.operations == 2 * (8 + 5 * 8)
    assert report.speedup == float(report.baseline.cycles / report.cycles)
    assert report.energy.memory == pytest.approx(report.memory_bytes * 31.2e-12)
    assert report.energy.compute == pytest.approx(2 * (8 + 5 * 8) * 16.6e-12)
    assert report.baseline_energy.compute == pytest.approx(report.energy.compute)
    # Buffer of the baseline: traffic, matrix twice, x and y of 16 products, and e-wise vectors.
    touched = report.baseline.memory_bytes + 2 * (96 + 64 + 64) + 2 * 4 * 64
    assert touched == pytest.approx(report.baseline_energy.buffer / 12.5e-12)


def test_the_figures_have_names_and_are_finite():
    report = simulate.simulate(pattern(1, 30, 0.1), MACHINE)
    figures = report.figures()
    assert figures["nonzeros"] == report.plain.nonzeros
    numbers = [value for value in figures.values() if not isinstance(value, str)]
    assert np.isfinite(numbers).all()
    assert figures["storage_share"] == 1


def test_storage_of_dense_blocks():
    dense = pattern_of(sparse.csr_array(np.ones((32, 32))))
    blocks = blocked(dense, 16)
    assert (blocks.entries, blocks.nonzeros, blocks.indices) == (4, 1024, 2)
    assert dual_bytes(dense, MACHINE) == 2 * (1024 * 12 + 32 * 4)
    assert dual_bytes(blocks, MACHINE) == 1024 * 9 + 2 * (4 * 8 + 2 * 4)
    with pytest.raises(ValueError, match="block side must be one of 1, 2, 4, 8, 16, not 3"):
        blocked(dense, 3)
    with pytest.raises(ValueError, match="pattern must be of single nonzeros, not of blocks of 16"):
        blocked(blocks, 2)


def test_duplicates_count_once():
    twice = sparse.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert pattern_of(twice).nonzeros == 2


def test_bad_input():
    with pytest.raises(TypeError, match="matrix must be a SciPy sparse matrix, not a list"):
        pattern_of([[1]])
    with pytest.raises(ValueError, match="square with at least one row, not 2 × 3"):
        pattern_of(sparse.csr_array((2, 3)))
    small = dataclasses.replace(MACHINE, buffer_bytes=1024)
    dense = np.zeros((40, 40))
    dense[:, 7] = 1
    with pytest.raises(ValueError, match="four times as large as column 7 of 480 bytes, not 1,024"):
        simulate.simulate(pattern_of(sparse.csr_array(dense)), small)
    with pytest.raises(ValueError, match="four times as large as row 7 of 480 bytes"):
        simulate.simulate(pattern_of(sparse.csr_array(dense.T)), small)


def test_vectors_of_a_workload():
    fused = Workload(
        "two", (Elementwise(("y", "p"), "t", 1), Elementwise(("t", "p"), "q", 2)), (("x", "q"),)
    )
    assert fused.external == ("p",)
    assert fused.unfused_vectors == 6
    assert fused.operations == 3
    assert fused.handed_over == 0
    assert fused.oracle_vectors == 2
    assert PAGERANK.handed_over == 1
