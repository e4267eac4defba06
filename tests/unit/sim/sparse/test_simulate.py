"""Reports: the oracle and the roofline are bounds, figures by hand, storage and bad input."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.support.sparse_problems import PROBLEMS, problem
from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.applications import kmeans, pagerank
from vitruvian.golden.sparse.applications.problem import ewise
from vitruvian.golden.sparse.graph import Graph, Vxm
from vitruvian.sim.sparse import simulate, timing
from vitruvian.sim.sparse.application import simulate_application
from vitruvian.sim.sparse.architecture import Architecture, load_architecture
from vitruvian.sim.sparse.engine_compiled import COLUMNS
from vitruvian.sim.sparse.layout import dual_bytes, index_bytes, matrix_bytes
from vitruvian.sim.sparse.pattern import blocked, pattern_of, permuted, stored_in_blocks
from vitruvian.sim.sparse.report import TRAFFIC, SparseReport
from vitruvian.sim.sparse.schedule import schedule

MACHINE = dataclasses.replace(load_architecture(), pes=4, sub_tensor=4)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Run small cases as plain Python: Numba takes longer to start than they take."""
    monkeypatch.setattr(timing, "fitting", lambda function, size: function)


def check_bounds(report: SparseReport) -> None:
    """Check what holds for every run."""
    machine = report.architecture
    rate, pes = machine.bytes_per_cycle, machine.pes
    # The oracle is never beaten, in time or traffic.
    assert report.oracle.cycles <= report.cycles
    assert report.oracle.memory_bytes <= report.memory_bytes
    # No machine is above its roofline.
    assert report.baseline.cycles >= report.baseline.memory_bytes / rate
    assert report.baseline.cycles >= Fraction(report.baseline.operations, 3 * pes)
    assert report.cycles >= report.memory_bytes / rate
    # Single nodes write what joined ones keep.
    assert report.single_baseline.cycles >= report.baseline.cycles
    assert report.single_baseline.memory_bytes >= report.baseline.memory_bytes
    assert report.single_baseline_energy.memory >= report.baseline_energy.memory
    assert report.cycles >= Fraction(report.oracle.operations, 3 * pes)
    # The second product of a last pair may be for nothing.
    assert report.baseline.operations <= report.oracle.operations
    # Over time, all bytes are there.
    cycles, used = report.bandwidth(7)
    assert len(cycles) == 7 and (used <= 1 + 1e-9).all()
    _, csr, csc = report.occupancy()
    assert (csr + csc <= report.peak_buffer_bytes).all()
    assert report.peak_buffer_bytes <= machine.buffer_bytes
    assert sum(report.traffic.values()) == report.memory_bytes
    assert report.useful_bandwidth_share <= report.bandwidth_share
    assert set(report.traffic) == set(TRAFFIC)
    for sweep, steps in report.steps.items():
        check_sweep(report, sweep, dict(zip(COLUMNS, steps.sum(axis=0), strict=True)))


def check_sweep(report: SparseReport, sweep, of: dict[str, int]) -> None:
    """Check that a sweep loads each nonzero at least once, and that nothing vanishes."""
    if sweep.view is None:
        assert of["vectors"] == 8 * (sweep.read + sweep.written)
        return
    pattern = report.stored[sweep.view]
    index = int(index_bytes(pattern, report.architecture, np.array([0, pattern.indices])).sum())
    matrix = matrix_bytes(pattern, report.architecture) - index
    loaded = of["csc"] + of["prefetch"] + of["reload"]
    assert of["os_operations"] == pattern.nonzeros * sweep.os_features
    assert of["is_operations"] == pattern.nonzeros * sweep.is_features
    if sweep.kind == "oei":
        assert matrix <= loaded <= 3 * matrix + 2 * of["evicted"]
        assert of["reload"] <= matrix + of["evicted"]
    else:
        assert loaded == of["csc"] == matrix
        assert of["evicted"] == 0
    columns = pattern.elements if sweep.kind == "stream" else pattern.columns
    assert of["results"] == 8 * sweep.is_features * columns
    used = np.diff(pattern.row_first) > 0
    widths = np.minimum(pattern.side, pattern.elements - np.arange(len(used)) * pattern.side)
    gathered = 8 * sweep.os_features * int(widths[used].sum())
    arrays = 2 if sweep.kind == "oei" else 1
    assert of["vectors"] == arrays * index + gathered + 8 * (sweep.read + sweep.written)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(PROBLEMS),
    seed=st.integers(0, 10**6),
    kib=st.sampled_from([8, 16, 1024]),
    rate=st.sampled_from([3, 30, 900]),
    side=st.sampled_from([1, 2, 4, 256]),
    iterations=st.integers(1, 5),
    reorder=st.sampled_from(["none", "triangular", "windowed"]),
)
def test_bounds_of_all_applications(name, seed, kib, rate, side, iterations, reorder):
    machine = dataclasses.replace(MACHINE, buffer_bytes=kib << 10, memory_bytes_per_s=rate * 10**9)
    stated = problem(name, seed)
    count = min(iterations, stated.iterations)
    check_bounds(
        simulate_application(stated, machine, iterations=count, reorder=reorder, block=side)
    )


#: Two products and nothing between them: the smallest graph with a pair
POWER = Graph(
    name="power",
    given=("x", "done"),
    body=(Vxm("x", "x"), ewise("done", "not", "done")),
    results=("x",),
    stop="done",
)


def power(matrix, machine: Architecture, *, order=None, block: int = 1) -> SparseReport:
    """Simulate two products with a matrix."""
    pattern = pattern_of(matrix)
    n = pattern.elements
    plan = schedule(POWER, {"x": (n,), "done": ()}, {"A": (n, n)}, 2)
    return simulate.simulate(plan, {"A": pattern}, machine, order=order, block=block)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    share=st.sampled_from([0.0, 0.05, 0.3]),
    kib=st.sampled_from([2, 8, 1024]),
    rate=st.sampled_from([3, 30, 900]),
    side=st.sampled_from([1, 2, 4, 256]),
    reorder=st.booleans(),
)
def test_bounds_of_random_matrices(seed, n, share, kib, rate, side, reorder):
    rng = np.random.default_rng(seed)
    matrix = sparse.csr_array(rng.random((n, n)) < share)
    machine = dataclasses.replace(MACHINE, buffer_bytes=kib << 10, memory_bytes_per_s=rate * 10**9)
    order = rng.permutation(n) if reorder else None
    check_bounds(power(matrix, machine, order=order, block=side))


@pytest.mark.parametrize(
    "spoilt", ["time", "traffic", "baseline", "csc", "csr_space", "results", "vectors"]
)
def test_the_bounds_can_fail(spoilt):
    """Spoil a figure of the report, and see that the check notices it."""
    report = power(sparse.csr_array(np.ones((12, 12))), MACHINE)
    check_bounds(report)
    if spoilt == "time":
        changed = dataclasses.replace(report.oracle, cycles=Fraction(report.cycles + 1))
        report.__dict__["oracle"] = changed
    elif spoilt == "baseline":
        changed = dataclasses.replace(report.baseline, cycles=report.baseline.cycles - 1)
        report.__dict__["baseline"] = changed
    elif spoilt == "traffic":
        more = report.memory_bytes + 1
        report.__dict__["oracle"] = dataclasses.replace(report.oracle, memory_bytes=more)
    else:
        steps = next(steps for sweep, steps in report.steps.items() if sweep.view)
        steps[2, COLUMNS.index(spoilt)] += MACHINE.buffer_bytes if spoilt == "csr_space" else -8
    with pytest.raises(AssertionError):
        check_bounds(report)


def eye(n: int) -> Sparse:
    """Return the identity matrix."""
    return Sparse.from_entries(np.arange(n), np.arange(n), 1.0, (n, n))


def test_a_diagonal_matrix_by_hand():
    machine: Architecture = dataclasses.replace(MACHINE, memory_bytes_per_s=10**9)
    report = simulate_application(pagerank(eye(8)), machine, iterations=2)
    vector, matrix, index = 64, 96, 32
    # Three sweeps: the first computes lost rank and input; the second reads the matrix for two
    # products; the third ends the second iteration.
    assert report.traffic == {
        "csc": matrix,
        "reload": 0,
        "prefetch": 0,
        "vectors": 4 * vector + 2 * index + vector + 4 * vector + 3 * vector,
        "results": vector,
    }
    # The baseline per iteration: the matrix with one index array, x, y; then the operators for
    # lost rank (2 vectors), input (3), next rank (2) and residual (2).
    assert report.baseline.memory_bytes == 2 * (matrix + index + 2 * vector + 9 * vector)
    assert report.baseline.cycles == report.baseline.memory_bytes
    # Two sections. In the first, three vectors enter and the input leaves. In the second, four
    # enter and the rank leaves.
    assert report.oracle.memory_bytes == 4 * vector + matrix + index + 5 * vector
    assert report.oracle.operations == report.baseline.operations == 2 * (8 + 8 * 8)
    assert report.speedup == float(report.baseline.cycles / report.cycles)
    assert report.energy.memory == pytest.approx(report.memory_bytes * 31.25e-12)
    assert report.energy.compute == pytest.approx(2 * (8 + 8 * 8) * 6e-12)
    assert report.baseline_energy.compute == pytest.approx(report.energy.compute)
    # Buffer of the baseline: traffic; matrix, x and y twice; the operators' vectors.
    touched = report.baseline.memory_bytes + 2 * (matrix + 2 * vector) + 2 * 9 * vector
    assert touched == pytest.approx(report.baseline_energy.buffer / 1.75e-12)
    # Buffer of SIDA: traffic; matrix for OS, IS and the conversion, which a repacking may add to;
    # x and y of OS, x and two accesses to partial results of IS; the operators' vectors.
    touched = report.memory_bytes + 2 * report.total("repacked")
    touched += 3 * matrix + 2 * vector + 3 * vector + 2 * 9 * vector
    assert touched == pytest.approx(report.energy.buffer / 1.75e-12)


def test_points_and_coordinates_by_hand():
    """The matrix of k-means is not square, and each column serves both products at once."""
    points = Sparse.from_entries([0, 1, 2, 2], [0, 1, 0, 1], 1.0, (3, 2))
    report = simulate_application(kmeans(points, clusters=2, first=0), MACHINE, iterations=1)
    stream = next(sweep for sweep in report.steps if sweep.kind == "stream")
    steps = report.steps[stream]
    of = dict(zip(COLUMNS, steps.sum(axis=0), strict=True))
    # Two columns in one sub-tensor: loader, OS core, e-wise core, IS core, and the results.
    assert len(steps) == 5
    assert of["csc"] == 4 * 12
    assert of["vectors"] == 2 * 4 + 3 * 8  # an index array of two columns; the choice
    assert of["results"] == 3 * 8
    assert of["os_operations"] == of["is_operations"] == 4
    assert steps[:, COLUMNS.index("csc_space")].tolist() == [48, 48, 48, 48, 0]
    with pytest.raises(ValueError, match="square for an order of its rows and columns, not 3 × 2"):
        simulate_application(
            kmeans(points, clusters=2, first=0), MACHINE, iterations=1, reorder="triangular"
        )


def test_features_take_time_in_the_cores():
    one, many = (
        simulate_application(problem("labelprop", 3), MACHINE, iterations=2),
        simulate_application(problem("sssp", 3), MACHINE, iterations=2),
    )
    for report, features in ((one, 3), (many, 1)):
        sweep = next(sweep for sweep in report.steps if sweep.kind == "oei")
        assert (sweep.os_features, sweep.is_features) == (features, features)


def test_golden_tells_the_number_of_iterations():
    stated = problem("pagerank", 4)
    report = simulate_application(stated, MACHINE)
    assert report.iterations == 11 or report.iterations > 3
    assert (
        report.cycles == simulate_application(stated, MACHINE, iterations=report.iterations).cycles
    )


def test_a_run_without_iterations_takes_no_time():
    report = simulate_application(problem("cg", 1), MACHINE, iterations=0)
    assert report.cycles == report.memory_bytes == report.peak_buffer_bytes == 0
    assert np.isnan(report.speedup) and report.figures()["iterations"] == 0
    with pytest.raises(ValueError, match="run must have an iteration to show, not 0 iterations"):
        report.bandwidth()


def test_the_figures_have_names_and_are_finite():
    report = simulate_application(problem("bicgstab", 1), MACHINE, iterations=3)
    figures = report.figures()
    assert figures["nonzeros"] == problem("bicgstab", 1).matrices["A"].nonzeros
    numbers = [value for value in figures.values() if not isinstance(value, str)]
    assert np.isfinite(numbers).all()
    assert figures["storage_share"] == 1
    assert figures["product_sweeps"] == 6


def test_storage_of_dense_blocks():
    dense = pattern_of(sparse.csr_array(np.ones((32, 32))))
    blocks = blocked(dense, 16)
    assert (blocks.entries, blocks.nonzeros, blocks.indices) == (4, 1024, 2)
    assert dual_bytes(dense, MACHINE) == 2 * (1024 * 12 + 32 * 4)
    assert dual_bytes(blocks, MACHINE) == 1024 * 9 + 2 * (4 * 8 + 2 * 4)
    with pytest.raises(ValueError, match=r"block side must be one of 1, 2, .* 128, 256, not 3"):
        blocked(dense, 3)
    with pytest.raises(ValueError, match="pattern must be of single nonzeros, not of blocks of 16"):
        blocked(blocks, 2)


def test_blocks_larger_than_16_have_two_coordinates():
    dense = pattern_of(sparse.csr_array(np.ones((512, 512))))
    blocks = stored_in_blocks(dense, 256)
    assert (blocks.entries, blocks.stored_side) == (512 * 512, 256)
    assert dual_bytes(blocks, MACHINE) == 512 * 512 * 10 + 2 * (4 * 8 + 2 * 4)
    # The coordinates of both blocks of a block column come with its first column.
    bounds = np.array([0, 100, 256, 300, 512])
    assert index_bytes(blocks, MACHINE, bounds).tolist() == [20, 0, 20, 0]


def test_single_nodes_write_and_read_their_results():
    """x A, its square and half of it: joined nodes keep the n squares on chip."""
    body = (Vxm("x", "x"), ewise("a", "mul", "x", "x"), ewise("x", "mul", "a", 0.5))
    graph = Graph(name="g", given=("x",), body=body, results=("x",))
    n = 7
    matrix = pattern_of(sparse.eye_array(n, format="csr"))
    plan = schedule(graph, {"x": (n,)}, {"A": (n, n)}, 1)
    report = simulate.simulate(plan, {"A": matrix}, MACHINE)
    more = report.single_baseline.memory_bytes - report.baseline.memory_bytes
    assert more == 2 * n * MACHINE.value_bytes
    # The memory's interface and the operator each touch the buffer.
    buffer = report.single_baseline_energy.buffer - report.baseline_energy.buffer
    assert buffer == pytest.approx(2 * more * 1.75e-12)
    assert report.figures()["single_speedup"] == report.single_speedup


def test_duplicates_count_once():
    twice = sparse.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert pattern_of(twice).nonzeros == 2


def test_bad_input():
    with pytest.raises(TypeError, match="matrix must be a SciPy sparse matrix, not a list"):
        pattern_of([[1]])
    with pytest.raises(ValueError, match="at least one row and one column, not 0 × 3"):
        pattern_of(sparse.csr_array((0, 3)))
    small = dataclasses.replace(MACHINE, buffer_bytes=1024)
    dense = np.zeros((40, 40))
    dense[:, 7] = 1
    with pytest.raises(ValueError, match="four times as large as column 7 of 480 bytes, not 1,024"):
        power(sparse.csr_array(dense), small)
    with pytest.raises(ValueError, match="four times as large as row 7 of 480 bytes"):
        power(sparse.csr_array(dense.T), small)
    with pytest.raises(ValueError, match="reorder must be one of none, triangular, windowed"):
        simulate_application(problem("bfs", 1), MACHINE, iterations=1, reorder="vanilla")
    with pytest.raises(ValueError, match="matrix must have at least one row and one column"):
        empty = Sparse.from_entries([], [], [], (3, 0))
        simulate_application(kmeans(empty, clusters=1, first=0), MACHINE, iterations=1)
    with pytest.raises(ValueError, match="matrix must be square for an order"):
        permuted(pattern_of(sparse.csr_array((2, 3))), np.arange(2))
