"""A chart as data has what the figure had, and gives the same data when it is drawn again."""

import json

import pytest

from vitruvian.common import charts


def lines(figure):
    left, right = figure.subplots(1, 2)
    left.plot([1, 2, 4], [2, 3, 1], "o--", label="measured")
    left.axhline(1.5, color="black", ls=":")
    left.axvline(2)
    left.set(xlabel="k", ylabel="µs", xscale="log", title="times")
    left.set_xticks([1, 2, 4], ["1", "2", "4"], rotation=30, fontsize=8)
    left.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.grid(which="major", alpha=0.3)
    left.text(0.5, 0.25, "within", transform=left.transAxes, fontsize=7)
    left.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    right.broken_barh([(0, 1), (3, 2)], (-0.4, 0.8), facecolors="#56b4e9", alpha=0.25)
    right.fill_between([0, 1, 2], [1, 2, 1], step="mid", label="area")
    right.invert_yaxis()
    right.legend()


def bars(figure):
    axes = figure.add_axes((0.3, 0.2, 0.6, 0.7))
    drawn = axes.barh(["a", "b"], [3, 4], 0.7, color="#31688e", label="share")
    axes.bar_label(drawn, ["3", ""], label_type="center", fontsize=7)
    axes.set_xscale("log")
    axes.spines["top"].set_visible(False)


@pytest.mark.parametrize(("fill", "layout"), [(lines, "constrained"), (bars, None)])
def test_a_chart_drawn_again_gives_the_same_chart(fill, layout):
    text = charts.rendered(fill, 7, 4, form="json", layout=layout)
    chart = json.loads(text)
    assert charts.rendered(charts.filler(chart), 7, 4, form="json", layout=layout) == text
    assert charts.draw(chart) == charts.draw(chart)


def test_a_chart_has_the_data_in_the_units_of_its_axes():
    left, right = json.loads(charts.rendered(lines, form="json"))["axes"]
    assert left["lines"][0]["x"] == [1, 2, 4] and left["lines"][0]["label"] == "measured"
    assert left["lines"][1]["across"] == "x" and left["lines"][1]["y"][0] == 1.5
    assert left["x"]["labels"] == ["1", "2", "4"] and left["x"]["rotation"] == 30
    assert left["title"] == "times" and left["y"]["plain"] and left["legend"]["anchor"]
    assert right["areas"][0]["boxes"] == [[0, -0.4, 1, 0.8], [3, -0.4, 2, 0.8]]
    assert right["y"]["limits"][0] > right["y"]["limits"][1], "the axis is inverted"


def test_the_letters_of_a_picture_are_text():
    chart = json.loads(charts.rendered(bars, form="json", layout=None))
    (bar,) = chart["axes"][0]["bars"]
    assert [box[2] for box in bar["boxes"]] == [3, 4] and chart["axes"][0]["hidden"] == ["top"]
    svg = charts.draw(chart)
    assert ">a</text>" in svg and "<dc:date>" not in svg


def test_the_suffix_selects_the_format(tmp_path):
    for name, start in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.json", b"{")):
        charts.write_figure(tmp_path / name, bars, layout=None)
        assert (tmp_path / name).read_bytes().startswith(start)
