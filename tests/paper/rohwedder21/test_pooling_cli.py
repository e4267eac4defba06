"""The command pooling, and the statements of docs/results/pooling.md that no constant changes."""

import json
import re
from dataclasses import replace

import pytest

from vitruvian.cli import main
from vitruvian.common import charts
from vitruvian.flows.pages import site
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.pooling import METHODS, Pooling, build
from vitruvian.sim.kernels.pooling.build import timed
from vitruvian.sim.kernels.pooling.layers import LAYERS, MEASURED
from vitruvian.sim.papers.rohwedder21 import pages, study

C910 = load_chip("ascend910")


@pytest.fixture
def few(monkeypatch):
    """Reduce the experiments: a small input, and images of up to five pixels a side."""
    small = replace(MEASURED[0], side=7, channels=32)
    monkeypatch.setattr(study, "MEASURED", (small,))
    monkeypatch.setattr(study, "largest_side", lambda *_: 5)


def test_the_command_prints_tables_and_writes_files(few, tmp_path, capsys):
    (tmp_path / "pooling.md").write_text(
        "# Page\n<!-- pooling: strides -->\nold\n<!-- /pooling -->\nEnd.\n"
    )
    out, json_ = str(tmp_path), str(tmp_path / "runs.json")
    assert main(["pooling", "--out", out, "--json", json_]) == 0
    text = capsys.readouterr().out
    assert "7×7×32" in text and "forward with mask" in text and "published" in text
    for name in ("pooling_inception.json", "pooling_strides.json"):
        assert charts.draw(json.loads((tmp_path / name).read_text())).startswith("<?xml")
    page = (tmp_path / "pooling.md").read_text()
    assert "old" not in page and "| (3, 3) | 5 |" in page and page.endswith("End.\n")
    runs = json.loads((tmp_path / "runs.json").read_text())
    assert len(runs["inception"]) == 15 and len(runs["strides"]) == 3 * 5 * 2
    assert all(run["cycles"] > 0 for run in runs["inception"] + runs["strides"])
    assert main(["pooling", "--ties", "all", "--json", json_]) == 0
    ties = json.loads((tmp_path / "runs.json").read_text())["inception"]
    fewer = [a["vector"] - b["vector"] for a, b in zip(runs["inception"], ties, strict=True)]
    # Without the subtraction of each of the nine positions, in the five methods with a mask.
    assert [n > 0 for n in fewer] == [False] * 5 + [True] * 5 + [False] * 5


def test_the_same_runs_give_the_same_plot():
    runs = [
        study.PoolingRun(figure, method, 9, 1, 2, 1, 100, 1, 0, 1, 0, 0, 0, {})
        for figure in study.FIGURES
        for method in METHODS
    ]
    assert pages.inception_plot(runs) == pages.inception_plot(runs)


@pytest.mark.parametrize("form", study.FIGURES)
def test_shared_instructions_have_the_times_of_built_ones(form):
    """Cores that share their instructions take as long as cores with addresses of their own."""
    options = study.FIGURES[form]
    layer = LAYERS[22]
    pooling = Pooling(
        layer.patches(), 2, 17, "max", "im2col", options["backward"], options["argmax"]
    )
    built, shared = build(pooling, C910), timed(pooling, C910)
    assert len(built) == len(shared)
    times = [simulate(p, cube=None, checks=False).total_ps for p in (built, shared)]
    assert times[0] == times[1]


def test_the_table_has_the_error_of_the_published_speedup():
    run = study.PoolingRun("forward", "direct", 9, 1, 2, 1, 640, 1, 0, 1, 0, 0, 0, {})
    runs = [run] + [
        study.PoolingRun("forward", name, 9, 1, 2, 1, 100, 1, 0, 1, 0, 0, 0, {})
        for name in list(METHODS)[1:]
    ]
    runs += [
        study.PoolingRun(figure, method, 9, 1, 2, 1, 100, 1, 0, 1, 0, 0, 0, {})
        for figure in list(study.FIGURES)[1:]
        for method in METHODS
    ]
    header, rows = pages.inception_table(runs)
    assert dict(zip(header, rows[0], strict=True))["error"] == "+100 %"
    assert rows[1][-3:] == ("1.00", "5.0", "-80 %")


def test_the_counts_of_the_page_are_those_of_the_kernels(root):
    text = site.text_of(root / "docs" / "results" / "pooling.md")
    part = re.search(r"<!-- pooling: counts -->\n(.*?)<!-- /pooling -->", text, re.S)
    assert part
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part[1].splitlines()]
    found = {(row[0], row[1]): row[2:9] for row in rows[2:]}
    assert len(found) == 3 * len(METHODS)
    layer = MEASURED[-1]
    for figure, form in study.FIGURES.items():
        for method in ("im2col", "expansion", "strided"):
            pooling = Pooling(
                layer.patches(), 1, 1, "max", method, form["backward"], form["argmax"]
            )
            run = study._run(figure, pooling, C910)
            _, (row,) = pages.counts_table([run])
            assert list(row[2:9]) == found[figure, method]


def test_the_published_numbers_are_those_of_the_figures():
    assert list(study.PUBLISHED.values()) == [3.2, 5.0, 5.8]
    assert [f"{l.side}×{l.channels}" for l in MEASURED] == ["17×768", "35×288", "71×192"]  # noqa: E741
