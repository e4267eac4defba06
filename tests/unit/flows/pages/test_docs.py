"""The generated documentation is up to date, and mistakes in its markers are reported."""

import csv
import re

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.pages import docs, figures, rooms
from vitruvian.flows.pages.machines import one_sum
from vitruvian.golden.m3xu.isa import Opcode
from vitruvian.hdl.catalogue import PARTS, UNITS
from vitruvian.hdl.cube import CONFIGS, MatrixUnit
from vitruvian.hdl.elaborate import only_described


def test_the_documentation_is_up_to_date():
    assert docs.update(check=True) == []
    assert main(["docs", "--check"]) == 0


def test_a_part_is_put_into_a_page():
    text = docs.filled("# x\n<!-- configurations: hdl.cube -->\nend\n")
    assert "| `cube_davinci` | systolic | 16 × 16 × 16 |" in text and text.endswith("end\n")
    assert docs.filled("<!-- other: hdl.cube -->\n") == "<!-- other: hdl.cube -->\n"


def test_every_part_of_every_page_can_be_made(root):
    """The pages hold the marks alone; what they stand for is not in Git."""
    marks = 0
    for page in (root / "docs").rglob("*.md"):
        found = docs._MARK.findall(page.read_text())
        marks += len(found)
        assert not re.search(r"<!-- /(ports|instructions|example|verilog|source)", page.read_text())
    assert marks > 30


def test_a_stale_table_of_rooms_is_reported_and_regenerated(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    for name, words in (("golden", "Models."), ("hdl", "Hardware.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f'"""{words}\n\nMore.\n"""\n')
    (tmp_path / "hdl" / "a.py").write_text("from vitruvian.golden.b import c\n")
    file, picture = tmp_path / "x.md", tmp_path / "overview.svg"
    file.write_text("# x\n<!-- rooms -->\nformer\n<!-- /rooms -->\nend\n")
    assert docs.update(tmp_path, check=True) == [file, picture] and "former" in file.read_text()
    assert docs.update(tmp_path) == [file, picture]
    text = file.read_text()
    assert "| `golden` | 0 | Models |  |\n| `hdl` | 1 | Hardware |  |\n" in text
    assert "former" not in text
    assert text.endswith("<!-- /rooms -->\nend\n") and docs.update(tmp_path) == []


def test_a_package_below_the_second_level_stands_in_the_row_of_its_outer_one(tmp_path):
    for name in ("sim", "sim/bench", "sim/bench/cube", "sim/bench/fp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f'"""The package {name}."""\n')
    (tmp_path / "sim" / "bench" / "fp" / "a.py").write_text(
        "from vitruvian.sim.bench.cube import c\n"
    )
    last = rooms.table(tmp_path).splitlines()[-1]
    assert last == "| `sim/bench` | 0 | The package sim/bench | `cube` 0, `fp` 1 |"


def test_packages_that_import_in_a_cycle_have_no_floor(tmp_path):
    for name, other in (("golden", "hdl"), ("hdl", "golden")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('"""X."""\n')
        (tmp_path / name / "a.py").write_text(f"from vitruvian.{other} import b\n")
    with pytest.raises(ValueError, match="packages must not import in a cycle: golden → hdl"):
        rooms.floors(tmp_path)


def test_a_decision_without_its_number_is_refused(tmp_path):
    folder = tmp_path / "docs" / "decisions"
    folder.mkdir(parents=True)
    (folder / "0001-a.md").write_text("# 0001 Why A\n")
    assert "| 0001 | [Why A](decisions/0001-a.md) |" in rooms.decisions(folder)
    (folder / "0002-b.md").write_text("# Why B\n")
    with pytest.raises(ValueError, match=r"0002-b\.md must begin with '# 0002 ', not '# Why B'"):
        rooms.decisions(folder)


def test_the_area_picture_shows_the_stored_ratios(monkeypatch, tmp_path):
    text = figures.m3xu_area()
    assert text == figures.m3xu_area(), "the same every time"
    ratios = figures.m3xu_ratios()
    for value in (*ratios.values(), *figures.PUBLISHED.values()):
        assert f">{value:.2f}</text>" in text
    monkeypatch.setattr(figures.baseline, "FOLDER", tmp_path)
    with pytest.raises(UserError, match="baseline of m3xu must have baseline, not "):
        figures.m3xu_area()


def test_the_instruction_table_agrees_with_the_opcodes():
    with (docs.FOLDER / "units" / "m3xu_instructions.csv").open(encoding="utf-8") as file:
        rows = {row[0]: row for row in csv.reader(file)}
    for opcode in Opcode:
        cells = rows[f"`{opcode.mnemonic}`"]
        assert cells[1] == f"0x{opcode.code:02x}"
        assert cells[5] == ", ".join(str(opcode.fragment(x).registers) for x in "abcd")
        m, n, k = opcode.shape
        assert cells[2].endswith(f"{m} × {k}") and cells[3] == f"{k} × {n}"
        cycles, rate = int(cells[6].split()[0]), int(cells[7])
        assert cycles * rate == opcode.macs


def test_an_unknown_package_is_refused():
    with pytest.raises(
        UserError,
        match=r"package must be one of hdl\.fp, .*, hdl\.scu, .*not 'hdl.tea'",
    ):
        docs.filled("<!-- ports: hdl.tea -->\n")


@pytest.mark.parametrize("package", sorted({each.package for each in (*UNITS.values(), *PARTS)}))
def test_every_package_has_a_table_of_ports(package):
    assert "| port |" in docs.generate("ports", package)


def test_rows_of_streams_show_their_fields():
    rows = {row[0]: row[1:4] for row in docs.port_rows(MatrixUnit(config=CONFIGS["cube_4x4x4"]))}
    assert rows["`i`"][:2] == ["in, stream", "519"]
    assert rows["`i.payload.a`"] == ["in", "256", "4 × 64"]
    assert rows["`i.payload.start`"] == ["in", "2", "0 ZERO, 1 FROM_C, 2 ACCUMULATE"]
    assert rows["`o`"][:2] == ["out, stream", "512"]


class Undescribed(wiring.Component):
    """A component.

    Members
    -------
    a : In(8)
        An operand.
    """

    a: In(8)  # pyright: ignore
    d: Out(8)  # pyright: ignore


def test_a_port_without_a_description_is_refused():
    component = Undescribed()
    only_described(component)
    with pytest.raises(
        UserError, match="docstring of Undescribed must describe its ports a, d, not"
    ):
        docs.port_rows(component)


def test_an_excerpt_has_the_header_the_ports_and_registers(tmp_path):
    text = docs.generate("excerpt", "dot")
    assert text.startswith("\n```verilog\n// dot_a100_fp16_fp32_k8_p3:")
    assert "\n  output wire [31:0] d\n);\n  // ...\n  always @(posedge clk) begin\n" in text
    assert " <= " in text and len(text.splitlines()) < 60
    with pytest.raises(UserError, match=r"unit must be one of .*, not 'tea'"):
        docs.generate("excerpt", "tea")


def test_the_tutorials_are_checked(monkeypatch, tmp_path, capsys):
    (tmp_path / "verilog.md").write_text("Text.\n<!-- excerpt: dot -->\n")
    monkeypatch.setattr(docs, "TUTORIALS", tmp_path)
    assert main(["docs", "--check"]) == 1
    assert "out of date: verilog.ipynb" in capsys.readouterr().out
    assert main(["docs"]) == 0 and "module dot" in (tmp_path / "verilog.ipynb").read_text()


def test_the_picture_of_one_sum_has_the_results_of_the_models():
    found = one_sum.results()
    assert one_sum.exact() == 0.09912109375
    assert found["v100_mma_fp16_fp32"] == 0.046875 and found["a100_mma_fp16_fp32"] == 0.07421875
    assert len(set(found.values())) == 9, "eleven machines have nine results"
    text = one_sum.draw()
    assert text == one_sum.draw()
    for name, value in zip(one_sum.MACHINES.values(), found.values(), strict=True):
        assert f">{name}</text>" in text and f">{value:g}</text>" in text
