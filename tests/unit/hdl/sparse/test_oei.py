"""The OEI pipeline against golden and NetworkX on the karate club."""

import networkx as nx
import numpy as np
import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

from vitruvian.golden.sparse.buffer import csr_beats
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.sparse.oei_config import OEIConfig
from vitruvian.sim.bench.sparse.oei import compare_passes
from vitruvian.sim.bench.sparse.passes import directed_passes, one_pass, programs, random_passes
from vitruvian.sim.rtl import StreamError, compile

SMALL = OEIConfig(
    lanes=2, rows=64, columns=2, capacity=256, beats=4, registers=8, instructions=32, format="fp32"
)
F32 = np.float32


class Mutants(OEIPipeline):
    """A pipeline with one of several mistakes, which an input chooses.

    0: none. 1: the second product starts with zero, whatever its operator is. 2: the element-wise
    core also computes the columns of the padding. 3: its stage counts as finished when it starts.
    4: the results are read before the last row has reached them. 5: the first product counts as
    complete when its elements are in the buffer.
    """

    mutant: Signal

    def _derived_ports(self):
        return {"mutant": In(3)}

    def _identity(self, m):
        return Mux(self.mutant == 1, 0, super()._identity(m))

    def _exists(self, column):
        return super()._exists(column) | (self.mutant == 2)

    def _drained(self, waits):
        return super()._drained(waits) | (self.mutant == 4)

    def _complete(self, next_column, end):
        return super()._complete(next_column, end) | (self.mutant == 5)

    def _finished(self, at_work):
        return super()._finished(at_work) | (self.mutant == 3)


@pytest.fixture(scope="module")
def model():
    return compile(Mutants(config=SMALL))


@pytest.mark.parametrize("stall_rate", [0, 0.5])
def test_random_passes_equal_golden(model, stall_rate):
    passes = random_passes(np.random.default_rng(11), SMALL, 5)
    held = {"mutant": 0}
    result = compare_passes(model, SMALL, passes, seed=11, stall_rate=stall_rate, held=held)
    assert not result.mismatches and result.vectors > 50, result.examples


@pytest.mark.parametrize("mutant", [1, 2, 3])
def test_mutants_are_noticed(model, mutant):
    passes = random_passes(np.random.default_rng(11), SMALL, 5)
    assert {p.second[0] for p in passes} & {"min", "max"}
    try:
        held = {"mutant": mutant}
        result = compare_passes(model, SMALL, passes, seed=11, held=held, quiet_limit=1000)
        assert result.mismatches
    except StreamError as error:
        assert "hung" in str(error) or "surplus" in str(error)


@pytest.mark.long
def test_directed_passes_find_what_only_a_wide_pipeline_shows():
    """Regression: with few random passes, no last row waited for a bank (mutant 4), and no row
    noticed mutant 5. Both show only if a beat has many lanes.
    """
    wide = OEIConfig(
        lanes=8, rows=16, columns=8, capacity=64, beats=2, registers=4, instructions=32,
        format="fp16",
    )  # fmt: skip
    model = compile(Mutants(config=wide))
    passes = directed_passes(np.random.default_rng(11), wide)
    for mutant in (0, 4, 5):
        result = compare_passes(model, wide, passes, seed=11, held={"mutant": mutant})
        assert bool(result.mismatches) == (mutant > 0), (mutant, result.examples)


def codes(x):
    return np.asarray(x, F32).view(np.uint32)


def club(weight):
    """Return the columns of the karate club, where ``weight`` gives the value of an edge."""
    graph = nx.karate_club_graph()
    columns = [
        [(r, int(codes(weight(graph, r)))) for r in sorted(graph[c])] for c in range(len(graph))
    ]
    return graph, columns


def run(model, given):
    """Return z and y of a pass, after a comparison of both with golden."""
    result = compare_passes(model, SMALL, [given], seed=3, held={"mutant": 0})
    assert not given.refused and not result.mismatches, result.examples
    n = given.size
    return given.z.ravel().view(np.uint32)[:n], given.y[:n]


def test_pagerank_of_the_karate_club(model):
    """Each pass makes two iterations. The host only scales the vector for the next pass."""
    graph, columns = club(lambda g, r: 1 / g.degree(r))
    n = len(columns)
    damping, t = F32(0.85), np.full(n, 0.15 / n, F32)
    tensors = {"s": damping, "t": t}
    x = np.full(n, 1 / n, F32)
    pair = ("add", "mul")
    for _ in range(12):
        given = one_pass(SMALL, columns, codes(x), programs(SMALL)[0], tensors, pair, pair)
        _, y = run(model, given)
        x = damping * y.view(F32) + t
    expected = nx.pagerank(graph, alpha=0.85, tol=1e-12, weight=None)
    # 24 iterations leave an error of 0.85^24 · 2 = 4 % at most; the graph mixes much faster. The
    # rest are roundings of fp32, 2^-24 each in sums of at most 17 terms.
    assert np.abs(x - [expected[v] for v in range(n)]).max() < 1e-5


def test_levels_of_the_karate_club(model):
    """Two products over minimum and plus give the distances within one and two edges."""
    graph, columns = club(lambda g, r: 1)
    n = len(columns)
    for v in range(n):
        columns[v] = sorted([*columns[v], (v, int(codes(0)))])
    x = np.full(n, np.inf, F32)
    x[0] = 0
    pair = ("min", "add")
    tensors = {"s": 1, "t": np.zeros(n)}
    given = one_pass(SMALL, columns, codes(x), programs(SMALL)[0], tensors, pair, pair)
    z, y = run(model, given)
    distance = nx.single_source_shortest_path_length(graph, 0)
    for edges, vector in ((1, z), (2, y)):
        expected = [d if (d := distance[v]) <= edges else np.inf for v in range(n)]
        assert vector.view(F32).tolist() == expected


def test_a_matrix_larger_than_the_buffer_passes_if_its_rows_are_finished_early(model):
    """A band of 64 rows has more elements than CSR space, but its rows free their space."""
    n = SMALL.rows
    columns = [
        [(r, int(codes(r - c + 10))) for r in range(max(c - 3, 0), min(c + 4, n))] for c in range(n)
    ]
    assert sum(map(len, columns)) > SMALL.capacity
    assert csr_beats(columns, 2, 2, SMALL.capacity).refused_at is None
    tensors = {"s": 0.5, "t": np.ones(n)}
    pair = ("add", "mul")
    run(
        model,
        one_pass(SMALL, columns, codes(np.arange(n)), programs(SMALL)[0], tensors, pair, pair),
    )


def test_a_wrong_config_is_refused():
    with pytest.raises(TypeError, match="config must be an OEIConfig, not 8"):
        OEIPipeline(config=8)  # type: ignore[arg-type]
