"""``sim.simd2.graph.estimate``: its counts, cycles by hand, and the table of the documentation."""

import csv
from dataclasses import fields

import networkx as nx
import pytest

from vitruvian.golden.simd2 import Op
from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.simd2.graph import ALGORITHMS, Core, Counts, estimate, most_iterations, solve


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("vertices", [1, 30, 150, 256])
def test_the_model_counts_what_a_run_counts(algorithm, vertices):
    graph = nx.path_graph(vertices)
    result = solve(
        "apsp", graph, algorithm=algorithm, check=algorithm == "floyd-warshall", block=64
    )
    assert result.iterations == most_iterations(algorithm, vertices, block=64)
    expected = estimate("minplus", vertices, algorithm, block=64)
    assert expected.iterations == result.iterations
    if algorithm == "floyd-warshall":  # blocks may converge early
        assert result.counts.mmo <= expected.counts.mmo
    else:
        assert expected.counts == result.counts


def test_cycles_by_hand():
    core = Core()
    assert [core.interval(op) for op in Op] == [64] * 8 + [256]
    assert core.interval("minplus", "fp32") == 512 and core.interval("mma", "fp32") == 128
    counts = Counts.of(32, 32, 32)
    assert counts == Counts(loads=4 * 5, stores=4, mmo=8)
    cycles = core.cycles("minplus", counts, checked=160)
    assert (cycles.compute, cycles.check) == (8 * 64 + 4 * 8, 10)
    assert cycles.memory == (16 * 512 + 8 * 1024) // 32
    assert cycles.overlapped == 544 + 10 and cycles.serial == 544 + 512 + 10
    assert core.vector_cycles("minplus", counts).compute == 8 * 4096 * 2 // 16
    assert core.vector_cycles("mma", counts).compute == 8 * 4096 // 16
    row = estimate("minplus", 4096)
    assert row.iterations == 12 and 7.5 < row.ratio < 8


def test_the_model_is_of_units_that_are_built():
    """An element takes one pair of FP32 operands in two cycles; addnorm needs FP16 and k = 4."""
    core = Core(unit=Unit(m=2, n=2, k=2))
    assert core.interval("minplus", "fp32") == 8 * 8 * 16 * 2
    assert core.interval("mma", "fp32") == 8 * 8 * 8 * 2
    assert not core.builds("addnorm") and not Core().builds("addnorm", "fp32")
    with pytest.raises(
        ValueError, match="addnorm must have operands and lanes that a unit exists for, not FP32"
    ):
        Core().cycles("addnorm", Counts(mmo=1), "fp32")
    with pytest.raises(ValueError, match="not FP16 operands on k = 2"):
        core.interval("addnorm")


def test_a_compressed_operand_by_hand():
    """It takes the cycles of a dense one for twice the depth, two fragments of B, and indices."""
    core, counts = Core(), Counts.of(16, 16, 64, sparse=True)
    assert counts == Counts(loads=7, stores=1, mmo=2, sparse=2)
    cycles = core.cycles("minplus", counts)
    assert cycles.compute == 2 * 64 + 8
    assert cycles.memory == (2 * (3 * 512 + 64) + 2 * 1024) // 32


def test_every_number_that_is_not_counted_has_a_source():
    rows = Core().assumptions()
    assert len(rows) == len(fields(Core)) + 4
    for row in rows:
        known = ("assumed", "Zhang 2024, ", "hdl.cube builds")
        assert row.value and any(text in row.source for text in known), row
    sources = {row.name: row.source for row in Core(latency_cycles=5).assumptions()}
    assert sources["latency of an output tile, cycles"] == "given"
    assert [text for text in sources.values() if text == "given"] == ["given"]


def test_the_table_of_the_documentation(root):
    with (root / "docs" / "results" / "data" / "simd2_model.csv").open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    assert len(lines) == 9
    for vertices, name, *cells in lines:
        name = name.strip("`")
        rows = [
            estimate("minplus", int(vertices.replace(",", "")), name, inputs=inputs)
            for inputs in ("fp16", "fp32")
        ]
        millions = [row.simd2.overlapped for row in rows] + [rows[0].vector.overlapped]
        expected = [f"{x / 1e6:,.0f}" for x in millions] + [f"{row.ratio:.2f}" for row in rows]
        assert cells == expected
