"""Chapter 3 of Zhang 2024 on our own core: the semiring Cube beside the core's vector unit.

The published speedups are those of a GPU, with 4 pairs of the matrix unit for an FP32 lane; the
core has 64. Ratios that are compared with published ones are scaled by that (``scale``).
"""

import csv

import numpy as np
import pytest

from benchmarks import simd2_applications as benchmark
from benchmarks.papers.zhang24 import applications, crossover, plain
from vitruvian.golden.simd2 import Op, mmo
from vitruvian.sim.kernels.semirings import cube, vector

CHIP, SIDE = "ascend310p", 1024

#: §3.6.2: geometric means over the operations, and the range of plus-mul and plus-norm.
MEANS, FUSED = (7.9, 9.9), (3.1, 5.96)

#: §3.6.5, Fig. 3.13: gain of a 2:4 unit over a dense one.
SPARSE = (1.67, 1.9)


def scaled(name, op, out, side=SIDE):
    """Return the scaled speedup of a square product."""
    shape = (side, side, side)
    return benchmark.speedup(name, op, out, CHIP, shape) * benchmark.scale(CHIP)


def test_the_core_has_64_pairs_for_a_lane():
    assert benchmark.scale("ascend310p") == 4 / 64
    # The 310's measured rates of both units are not whole steps of its clock.
    assert benchmark.scale("ascend310") == pytest.approx(4 / 64, rel=0.01)


def test_two_instructions_are_within_the_published_means():
    """The published vector units have FP32 lanes, so the results are FP32 here."""
    for op in (Op.MINPLUS, Op.MINMUL):
        assert MEANS[0] <= scaled(op.mnemonic, op, "fp32") <= MEANS[1]


def test_one_instruction_is_within_the_published_range():
    assert FUSED[0] <= scaled("mma", Op.MMA, "fp32") <= FUSED[1]


def test_addnorm_misses_the_published_range_and_its_product_form_does_not():
    """Four products for a pair give a quarter of the rate, 2.2; the form by norms has mma's."""
    assert scaled("addnorm", Op.ADDNORM, "fp32") == pytest.approx(2.2, abs=0.05)
    assert FUSED[0] <= scaled("addnorm by norms", Op.MMA, "fp32") <= FUSED[1]


def test_a_compressed_operand_gains_what_is_published():
    dense, sparse = (
        benchmark.seconds("minplus", Op.MINPLUS, "fp16", CHIP, (SIDE, SIDE, SIDE), unit)
        for unit in ("cube", "sparse")
    )
    assert SPARSE[0] <= dense / sparse <= SPARSE[1]


def test_the_table_is_what_the_simulator_gives(root):
    with (root / "docs" / "results" / "data" / "simd2_micro.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["operation"] for row in rows] == [name for name, *_ in benchmark.ROWS]
    for row, (name, op, out) in zip(rows, benchmark.ROWS, strict=True):
        value = benchmark.speedup(name, op, out, CHIP, (512, 512, 512))
        assert row["ascend310p, 512"] == benchmark.shown(value)
        assert row["vector instructions"] == str(vector.instructions_per_term(op))


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.mnemonic)
def test_plain_numpy_computes_golden(op):
    """Selections have golden's bits; sums of 24 small whole numbers are exact, too."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 2 if op is Op.ORAND else 9, s) for s in ((16, 24), (24, 8)))
    a, b = a.astype(np.float32), b.astype(np.float32)
    assert np.array_equal(plain.product(op, a, b), mmo(op, a, b))


@pytest.mark.parametrize("name", applications.APPLICATIONS)
def test_applications_compute_what_libraries_compute(name):
    vertices = 128
    _, seconds, values = applications.library(name, vertices)
    assert seconds >= 0
    if name == "knn":
        points = applications.points(vertices)
        d = cube.expected("addnorm", points, np.ascontiguousarray(points.T), "fp32")
        assert np.allclose(values, d, rtol=0, atol=1e-3)  # norms are below 128, of float32
        return
    benchmark.check_values(name, vertices, values)
    iterations = applications.leyzorek(name, vertices)
    assert 1 < iterations <= applications.worst(vertices)
    # Leyzorek doubles the edges of a path with each iteration, Bellman and Ford add one.
    assert iterations <= applications.bellman_ford(name, vertices) < vertices
    wrong = values.copy()
    wrong.flat[np.flatnonzero(np.isfinite(wrong) & (wrong != 0))[0]] *= 3
    with pytest.raises(SystemExit, match=f"{name}: values differ from those of the library"):
        benchmark.check_values(name, vertices, wrong)


def test_times_of_an_application():
    """Iterations times a product, and the check if there is one."""
    found = {"cube": 2.0, "check": 0.5, "leyzorek": 3, "worst": 7, "bellman": 11}
    times = benchmark.times_of(found, "cube")
    assert times == {"check": 7.5, "no check": 14.0, "bellman-ford": 27.5}
    del found["check"]
    assert benchmark.times_of(found, "cube")["check"] == 6.0


def test_crossover():
    assert crossover.crossover((0.8, 0.9), (0.1, 0.5)) is None
    assert crossover.crossover((0.8, 0.9), (1.1, 5.0)) == 0.8
    # Both logarithms half way: density √(0.1 · 0.01).
    where = crossover.crossover((0.9, 0.99), (0.1, 10.0))
    assert where == pytest.approx(1 - 0.1**1.5)
    a, b = crossover.operands(64, 0.9)
    assert a.shape == b.shape == (64, 64) and 0.05 < a.nnz / 4096 < 0.15
    assert crossover.sparse_seconds("golden", "minplus", 64, 0.9) >= 0
    assert crossover.dense_seconds("mmo", 64) >= 0


def test_the_tables_of_applications_are_what_the_simulator_gives(root):
    """At 512 vertices, all columns but those of the libraries' times."""
    folder = root / "docs" / "results" / "data"
    with (folder / "simd2_application_times.csv").open(newline="") as file:
        times = {(row["application"], row["vertices"]): row for row in csv.DictReader(file)}
    with (folder / "simd2_applications.csv").open(newline="") as file:
        gains = {(row["application"], row["vertices"]): row for row in csv.DictReader(file)}
    for name in applications.APPLICATIONS:
        x = benchmark.application(name, 512, CHIP)
        row = times[name, "512"]
        counts = [row[key] for key in ("Leyzorek", "without check", "Bellman–Ford")]
        assert counts == [str(x[key]) for key in ("leyzorek", "worst", "bellman")]
        expected = [benchmark.shown(value) for value in benchmark.gains_of(x)[:-1]]
        assert list(gains[name, "512"].values())[2:-1] == expected
