"""The pictures: equal bytes for equal runs, all points drawn, and nothing half-written."""

import pytest

from benchmarks.papers.zhou25.misjudged import two_transfers
from vitruvian.common.charts import write_figure
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline import Bound, analyse, counters_of
from vitruvian.sim.roofline.plot import draw, draw_distribution, draw_naive


@pytest.fixture(scope="module")
def analysis():
    program = KERNELS["cubeKer"].build(chip=load_chip("ascend310"), data=False).program
    return analyse(counters_of(simulate(program, cube=None, checks=False)))


def test_equal_runs_give_equal_bytes(tmp_path, analysis):
    for name in ("a.svg", "b.svg"):
        write_figure(tmp_path / name, lambda figure: draw(figure.subplots(), analysis))
    a, b = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert a == b and a.startswith(b"<?xml")
    write_figure(tmp_path / "c.png", lambda figure: draw(figure.subplots(), analysis))
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_every_ceiling_and_every_point_is_drawn(tmp_path, analysis):
    seen = {}

    def fill(figure):
        axes = figure.subplots()
        draw(axes, analysis)
        seen["labels"] = [line.get_label() for line in axes.lines]
        seen["xs"], seen["ys"] = axes.get_xlim(), axes.get_ylim()

    write_figure(tmp_path / "a.png", fill)
    for row in analysis.rows:
        drawn = any(label.startswith(row.component.title + ":") for label in seen["labels"])
        assert drawn == ("bus" not in row.component.name)
    assert len(analysis.points) == sum(" against " in label for label in seen["labels"]) > 0
    for p in analysis.points:
        assert seen["xs"][0] < p.intensity < seen["xs"][1]
        assert seen["ys"][0] < p.performance < seen["ys"][1]


def test_operators_without_points_can_be_drawn(tmp_path):
    """An operator that only moves data has no arithmetic intensity."""
    result = analyse(two_transfers())
    assert not result.points
    write_figure(tmp_path / "a.svg", lambda figure: draw(figure.subplots(), result))


def test_the_naive_picture_and_the_distribution(tmp_path, analysis):
    write_figure(tmp_path / "a.svg", lambda figure: draw_naive(figure.subplots(), analysis))
    shares = {"a": {Bound.MTE: 0.25, Bound.COMPUTE: 0.75}, "b": {Bound.PARALLELISM: 1.0}}
    widths = {}

    def fill(figure):
        axes = figure.subplots()
        draw_distribution(axes, shares, "title")
        for container in axes.containers:
            widths[container.get_label()] = [bar.get_width() for bar in container]

    write_figure(tmp_path / "b.svg", fill)
    assert widths == {
        "compute bound": [75, 0],
        "MTE bound": [25, 0],
        "insufficient parallelism": [0, 100],
    }


def test_a_failed_picture_leaves_no_file(tmp_path):
    def fill(figure):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_figure(tmp_path / "a.svg", fill)
    assert not list(tmp_path.iterdir())
