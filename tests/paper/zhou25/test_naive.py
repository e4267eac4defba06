"""Issues 1 to 3 of Zhou et al. 2025, §2.3: the naive roofline misjudges, the other one does not."""

from dataclasses import replace

import pytest

from benchmarks.papers.zhou25.misjudged import (
    mixed_precision,
    mixed_precision_kernel,
    two_transfers,
    two_transfers_kernel,
)
from benchmarks.papers.zhou25.pruning import PAPER, structure_of
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.roofline import Bound, analyse
from vitruvian.sim.roofline.naive import naive_points, naive_utilisations

EXAMPLES = [
    (two_transfers, two_transfers_kernel, ("MTE2 GM->L0A", "MTE2 GM->L0B"), Bound.MTE),
    (mixed_precision, mixed_precision_kernel, ("M fp16", "M int8"), Bound.COMPUTE),
]


@pytest.mark.parametrize(("ideal", "kernel", "items", "bound"), EXAMPLES)
def test_figure_3(ideal, kernel, items, bound):
    counters = ideal()
    assert naive_utilisations(counters) == pytest.approx({items[0]: 2 / 3, items[1]: 1 / 3})
    result = analyse(counters)
    assert result.highest.utilisation == 1.0 and result.bound == bound
    assert result.rows[0].efficiency == result.rows[0].time_ratio == 1.0


@pytest.mark.parametrize(("ideal", "kernel", "items", "bound"), EXAMPLES)
@pytest.mark.parametrize("chip", ["ascend310", "ascend910"])
def test_figure_3_as_a_kernel(ideal, kernel, items, bound, chip):
    """Only the initialisation of each instruction is missing from 100 %."""
    chip = load_chip(chip)
    counters = kernel(chip)
    result, naive = analyse(counters), naive_utilisations(counters)
    assert naive[items[0]] == pytest.approx(2 * naive[items[1]])
    assert sum(naive.values()) == pytest.approx(result.highest.utilisation)
    assert result.highest.utilisation > 0.9 and result.bound == bound
    assert max(naive.values()) < 0.67 < analyse(counters).utilisation_threshold + 0.03
    assert result.rows[0].time_ratio == pytest.approx(1)
    assert chip.cube is not None
    unit = chip.routes["GM->L0A"].init_s if bound == Bound.MTE else chip.cube.init_s
    lost = 2 * 16 * float(unit) / counters.total_s
    assert result.highest.utilisation == pytest.approx(1 - lost, rel=1e-9)


def test_the_naive_points_pair_every_precision_with_every_path():
    two = two_transfers()
    both = replace(two, counts=[*two.counts, *mixed_precision().counts], total_s=1.0)
    points = naive_points(both)
    assert len(points) == 4  # 2 precisions, 2 paths
    for p in points:
        assert p.intensity == pytest.approx((1 << 30) / (2 << 20 if "L0A" in p.path else 1 << 20))
        assert p.utilisation <= 1


def test_180_combinations_become_45_and_then_7():
    assert sum(map(len, PAPER.precisions.values())) == 9
    transfers = len(PAPER.direct) + sum(map(len, PAPER.engines.values()))
    assert transfers == 20 and len(PAPER.direct) == 12
    assert len(PAPER.naive()) == len(set(PAPER.naive())) == 180
    assert len(PAPER.by_component()) == 45
    pruned = PAPER.pruned()
    assert len(pruned) == 7
    missing = {(u, e) for u in PAPER.precisions for e in PAPER.engines} - set(pruned)
    assert missing == {("Vector", "MTE-L1"), ("Scalar", "MTE-L1")}  # as §4.3 has them


def test_only_the_named_transfers_decide_the_seven():
    """The five that the text names, and one that connects the scalar unit, give the same pairs."""
    named = [("L0A", "Cube"), ("L0B", "Cube"), ("L0C", "UB"), ("L0C", "Vector"), ("Vector", "UB")]
    assert set(named) < set(PAPER.direct)
    few = replace(PAPER, direct=(*named, ("UB", "Scalar"), ("Cube", "L0C")))
    assert few.pruned() == PAPER.pruned()
    # A wrong structure gives other numbers: L1 to UB would let MTE-L1 feed the vector unit.
    engines = {**PAPER.engines, "MTE-L1": (*PAPER.engines["MTE-L1"], ("L1", "UB"))}
    wrong = replace(PAPER, engines=engines)
    assert (len(wrong.naive()), len(wrong.pruned())) == (189, 9)


@pytest.mark.parametrize(
    ("chip", "kind", "count"),
    [("ascend310", None, 9), ("ascend910b", "cube", 3), ("ascend910b", "vector", 4)],
)
def test_combinations_of_a_chip(chip, kind, count):
    structure = structure_of(load_chip(chip), kind)
    naive, pairs = structure.naive(), structure.by_component()
    assert len(naive) > len(pairs) > len(structure.pruned()) == count
