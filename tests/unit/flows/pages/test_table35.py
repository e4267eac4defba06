"""Table 3.5 combines measured figures with checked-in ones."""

import csv
import json

import pytest

from vitruvian.flows.asic import baseline
from vitruvian.flows.pages import table35
from vitruvian.flows.units import reported
from vitruvian.hdl.catalogue.semirings import PUBLISHED


def store(folder, unit, areas):
    """Store a baseline with the given area for each (operations, width)."""
    rows = {}
    for variant in reported(unit):
        key = variant.configuration["operations"], variant.configuration.get("width", 16)
        if variant.configuration["size"] == 4 and key in areas:
            figures = {"10000": {"area_um2": areas[key], "delay_ps": 1500.0}}
            rows.setdefault(variant.label, figures)
    (folder / "cells").mkdir(exist_ok=True)
    (folder / "cells" / f"{unit}.json").write_text(json.dumps({"rows": rows}))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(baseline, "FOLDER", tmp_path)
    return tmp_path


def test_parts_and_ratios(folder):
    store(folder, "simd2-int", {("mma", 16): 100.0, ("all", 16): 180.0, ("mma", 32): 362.0})
    store(folder, "simd2", {("mma", 16): 200.0, ("mma-orand", 16): 214.0, ("orand", 16): 34.0})
    result = dict(table35.tables([], "cells", everything=True))
    ratios = {title: {(x[0], x[1]): x[4] for x in lines} for title, (_, lines) in result.items()}
    assert ratios == {
        "Table 3.5 (a) beside the matrix product, FP16, ratios over mma at 16 bits": {
            ("mma", "16"): "1.00",
            ("mma-orand", "16"): "1.07",
        },
        "Table 3.5 (b) alone, FP16, ratios over mma at 16 bits": {("orand", "16"): "0.17"},
        "Table 3.5 (a) beside the matrix product, integer, ratios over mma at 16 bits": {
            ("mma", "16"): "1.00",
            ("all", "16"): "1.80",
        },
        "Table 3.5 (c) widths, integer, ratios over mma at 16 bits": {
            ("mma", "16"): "1.00",
            ("all", "16"): "1.80",
            ("mma", "32"): "3.62",
        },
    }
    assert all(line[-1] == "checked in" for _, (_, lines) in result.items() for line in lines)


def test_nothing_without_rows_or_figures(folder):
    assert table35.tables([], "cells") == []
    assert table35.tables([], "cells", everything=True) == []
    store(folder, "simd2", {("all", 16): 1.0})
    assert table35.tables([], "cells", everything=True) == []


def test_published_ratios_are_those_of_the_papers_table(root):
    """Each row of the list gives one ratio; a max operation shares the ratio of its min."""
    path = root.parent / "shared" / "papers" / "figures.csv"
    if not path.is_file():
        pytest.skip("needs ../shared/papers/figures.csv")
    ratios = {}
    for row in csv.reader(path.read_text(encoding="utf-8").splitlines()):
        if not row[2].startswith("Table 3.5"):
            continue
        kind, _, name = row[0].removeprefix("simd2.").partition(".")
        also = row[-1].removeprefix("also ").replace("-", "") if row[-1][:4] == "also" else None
        for op in (name, also):
            if kind == "area" and op:
                ratios["all" if op == "all" else f"mma-{op}", 16] = float(row[4])
            elif kind == "alone" and op and op != "total":
                ratios[op, 16] = float(row[4])
        if kind == "width":
            operations = name.rstrip("0123456789")
            ratios[operations, int(name.removeprefix(operations))] = float(row[4])
    assert ratios == PUBLISHED
