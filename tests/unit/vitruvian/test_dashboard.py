"""The dashboard: what counts as a change, the record, and the history that is checked in."""

import csv

import pytest

from benchmarks import dashboard
from benchmarks.dashboard import Figure


@pytest.mark.parametrize(
    ("figure", "before", "verdict"),
    [
        (Figure("area", 101.0, "µm²"), 100.0, "rose 1.0%, worse"),
        (Figure("area", 99.0, "µm²"), 100.0, "fell 1.0%, better"),
        (Figure("area", 100.01, "µm²"), 100.0, "unchanged"),
        (Figure("speed", 90.0, "1/s", rises=True), 100.0, "unchanged"),
        (Figure("speed", 80.0, "1/s", rises=True), 100.0, "fell 20.0%, worse"),
        (Figure("speed", 130.0, "1/s", rises=True), 100.0, "rose 30.0%, better"),
        (Figure("speed", 130.0, "1/s", rises=True), None, "new"),
    ],
)
def test_a_change_beyond_the_noise_is_named(figure, before, verdict):
    assert figure.verdict(before) == verdict


def test_the_last_record_of_a_figure_counts(tmp_path, root):
    history = tmp_path / "dashboard.csv"
    assert dashboard.last(history) == {}
    for value in (2.0, 1.5):
        dashboard.record([Figure("area of a unit", value, "µm²")], history)
    assert dashboard.last(history) == {"area of a unit": 1.5}
    with history.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["value"] for row in rows] == ["2", "1.5"] and tuple(rows[0]) == dashboard.COLUMNS
    assert all(row["commit"] for row in rows)


def test_the_table_tells_better_from_worse(capsys):
    dashboard.show([Figure("a", 1.0, "ns"), Figure("b", 3.0, "1/s", True)], {"a": 2.0, "b": 6.0})
    assert capsys.readouterr().out.splitlines()[-1] == "1 better, 1 worse"


def test_an_unknown_group_is_refused(capsys):
    with pytest.raises(SystemExit):
        dashboard.main(["--only", "size"])
    assert "invalid choice: 'size'" in capsys.readouterr().err
