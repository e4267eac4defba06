"""Every step of a case study improves the utilisation that the paper follows, in its order."""

from dataclasses import replace
from itertools import pairwise

import pytest

from vitruvian.sim.papers.zhou25 import CASES
from vitruvian.sim.papers.zhou25.published import PUBLISHED
from vitruvian.sim.papers.zhou25.rooflines import case_rows, case_table, distribution
from vitruvian.sim.roofline import Bound


def regressions(rows):
    """Return the steps whose metric or whose time is not better than that of the step before."""
    return [
        after.step.name
        for before, after in pairwise(rows)
        if after.metric.utilisation <= before.metric.utilisation
        or after.analysis.counters.total_s >= before.analysis.counters.total_s
    ]


@pytest.fixture(scope="module", params=sorted(CASES))
def rows(request):
    return case_rows(CASES[request.param])


def test_every_step_improves_the_metric(rows):
    assert len(rows) >= 2 and not regressions(rows)


def test_steps_in_another_order_are_noticed(rows):
    assert regressions(rows[::-1]) == [row.step.name for row in rows[-2::-1]]
    assert regressions([rows[0], rows[0]]) == [rows[0].step.name]


def test_the_steps_are_those_of_the_paper(rows):
    published = PUBLISHED.get(rows[0].case.name)
    if published:
        assert [row.step.name for row in rows] == list(published)


def test_the_table_has_a_row_for_each_step(rows):
    header, cells = case_table(rows[0].case, rows)
    assert [row[0] for row in cells] == [row.step.name for row in rows]
    assert all(len(row) == len(header) for row in cells)
    assert rows[0].as_dict()["metric"] == rows[0].case.metric


def test_the_chip_and_the_size_of_a_case_can_be_chosen():
    case = CASES["add_relu"]
    small = case_rows(case, "ascend910", size=(32768,))
    assert small[0].analysis.counters.chip == "ascend910"
    assert small[0].analysis.counters.total_s < case_rows(case)[0].analysis.counters.total_s
    assert replace(small[0], step=case.steps[1]).published.utilisation == 0.6624


def test_a_distribution_adds_up():
    shares = distribution([Bound.MTE, Bound.MTE, Bound.COMPUTE, Bound.PARALLELISM])
    assert shares == {Bound.COMPUTE: 0.25, Bound.MTE: 0.5, Bound.PARALLELISM: 0.25}
    assert list(shares) == [Bound.COMPUTE, Bound.MTE, Bound.PARALLELISM]
