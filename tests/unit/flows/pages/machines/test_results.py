"""Tables of errors and area of machines, and the options of the command that writes them."""

import json
import xml.etree.ElementTree as ET

import pytest

from vitruvian.cli import main
from vitruvian.common.charts import draw
from vitruvian.flows.asic import cells
from vitruvian.flows.asic.measure import Settings, measure
from vitruvian.flows.asic.synth import SynthesisRecipe
from vitruvian.flows.pages import site
from vitruvian.flows.pages.machines import results
from vitruvian.flows.pages.machines.costs import RuleCost, costs, unit_of
from vitruvian.golden.machines import find
from vitruvian.golden.machines.accuracy import DISTRIBUTIONS, Errors, listed
from vitruvian.hdl.catalogue.unit import Variant

ENTRIES = [e for e in listed() if e.row.stem in ("v100_mma_fp16_fp32", "xmx", "arm_bfdot_ebf1")]


def accuracy(scale=1.0):
    errors = {name: Errors(1.25 * scale, 1234.0 * scale, 3e-9, 0.0) for name in DISTRIBUTIONS}
    return [results.Accuracy(entry, errors) for entry in ENTRIES]


def test_the_table_of_errors():
    header, lines = results.accuracy_table(accuracy(), relative=False)
    assert header[4:6] == ["uniform, mean", "uniform, worst"] and len(header) == 12
    (line,) = (line for line in lines if line[0] == "v100")
    assert line[:4] == ["v100", "mma", "fp16 → fp32", "K 4, F 23 magnitude, RZ, floor -131"]
    assert line[4:6] == ["1.2", "1.2e3"]
    _, lines = results.accuracy_table(accuracy(), relative=True)
    assert lines[0][4:6] == ["3.0e-9", "0"]


def test_the_table_of_costs_says_where_there_is_no_unit():
    rows = [entry.row for entry in ENTRIES]
    costs = [
        RuleCost(rows[0], reason="none"),
        RuleCost(rows[1], unit="DotProduct", terms=4, figures=((10000, 4000.4, 4000.0),)),
        RuleCost(rows[1], unit="Phase", terms=16, steps=4, figures=((10000, 4000.4, 4000.0),)),
    ]
    entries = [*ENTRIES, ENTRIES[1]]
    header, lines = results.cost_table(list(zip(entries, costs, strict=True)))
    assert header[-3:] == ["µm² @10000", "µm²/MAC", "ns"]
    assert lines[0][4:] == ["no RTL", "", "", "", ""]
    assert lines[1][4:] == ["DotProduct", "4", "4000", "1000", "4.00"]
    assert lines[2][4:] == ["Phase", "16 in 4 steps", "4000", "1000", "4.00"]
    assert costs[0].as_json()["unit"] is None and costs[1].as_json()["targets"]["10000"]


def test_the_picture_has_a_bar_for_each_rule_and_is_the_same_every_time():
    picture = results.chart(accuracy())
    assert picture == results.chart(accuracy()) != results.chart(accuracy(2.0))
    text = "".join(ET.fromstring(draw(json.loads(picture))).itertext())
    assert "v100 mma fp16" in text and "arm" in text


def test_the_picture_of_costs_is_sorted_and_leaves_out_rows_without_a_unit():
    areas = {"v100_mma_fp16_fp32": 3000.0, "arm_bfdot_ebf1": 1000.0}
    entries = [
        (e, RuleCost(e.row, unit="X", terms=4, figures=((10000, areas[e.row.stem], 4000.0),)))
        for e in listed()
        if e.row.stem in areas
    ]
    missing = next(e for e in listed() if e.row.stem == "h100_mma_fp16_fp32")
    picture = results.cost_chart([*entries, (missing, RuleCost(missing.row, reason="none"))])
    text = "".join(ET.fromstring(draw(json.loads(picture))).itertext())
    assert 0 < text.index("arm bfdot_ebf1 bf16") < text.index("v100 mma fp16")
    assert "h100" not in text
    assert results.cost_chart([(missing, RuleCost(missing.row, reason="none"))])


def test_a_chain_is_as_long_as_its_steps_together():
    """AVX-512 adds two products one after the other; each takes one fused multiply-add."""
    row = find("avx512_vdpbf16ps")
    unit = unit_of(row)
    assert isinstance(unit, Variant)
    recipe = SynthesisRecipe(sweep=False)
    settings = Settings(library=cells.library("vt45"), targets_ps=(10000,), recipe=recipe)
    (apart,) = measure([unit], settings)
    top, step = sorted(apart.pieces, key=lambda piece: piece.count)
    assert step.count == 2
    (cost,) = costs([row], settings)
    ((_, area, delay),) = cost.figures
    each = step.timing[10000].delay_ps
    assert each and 1.8 * each < delay < 2.2 * each
    # The whole has buffers, and what the flushing of the operands takes.
    assert step.area_um2(10000) < area < 1.1 * step.area_um2(10000)
    assert top.count == 1


def test_a_plain_rule_has_a_unit_with_its_own_terms():
    unit = unit_of(find("v100_mma_fp16_fp32"))
    assert isinstance(unit, Variant) and unit.macs == 4
    unit.check()


def test_the_command_writes_tables_and_a_chart(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vitruvian.commands.machines_results._ROWS", 3)
    file = tmp_path / "x.json"
    words = ["machines", "avx512", "--errors", "--no-cache"]
    assert main([*words, "--out", str(tmp_path), "--json", str(file)]) == 0
    text = site.with_tables("[Table](data/machines_ulps_intel.csv)", tmp_path)
    assert "| avx512 " in text and len(text.strip().splitlines()) == 3
    (entry,) = json.loads(file.read_text())["accuracy"]
    assert entry["stem"] == "avx512_vdpbf16ps" and set(entry["errors"]) == set(DISTRIBUTIONS)
    assert (tmp_path / "machines_accuracy.json").exists()
    assert "vdpbf16ps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--liberty", "nangate45"], "--liberty must come with --area"),
        (["--errors", "--liberty", "nangate45"], "--liberty must come with --area"),
        (["--no-cache"], "--no-cache must come with --errors or --area"),
        (["--check", "--errors"], "--check must come without --errors and --area"),
        (["amx_tdpbssd", "--errors"], "NAME must be a row with floating point"),
        (["xmx", "--area"], "NAME must have a known rule, not xmx"),
    ],
)
def test_options_that_do_not_fit(words, message, capsys):
    assert main(["machines", *words]) == 2
    assert message in capsys.readouterr().err
