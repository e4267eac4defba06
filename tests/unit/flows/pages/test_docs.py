"""The generated documentation is up to date, and mistakes in its markers are reported."""

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.pages import docs, figures
from vitruvian.flows.pages.machines import one_sum
from vitruvian.golden.m3xu.isa import Opcode
from vitruvian.hdl.cube import CONFIGS, MatrixUnit
from vitruvian.hdl.elaborate import only_described


def test_the_documentation_is_up_to_date():
    assert docs.update(check=True) == []
    assert main(["docs", "--check"]) == 0


def test_a_stale_table_is_reported_and_regenerated(tmp_path, monkeypatch, capsys):
    file = tmp_path / "cube.md"
    file.write_text("# x\n<!-- configurations: hdl.cube -->\nold\n<!-- /configurations -->\nend\n")
    assert docs.update(tmp_path, check=True) == [file] and "old" in file.read_text()
    assert docs.update(tmp_path) == [file]
    text = file.read_text()
    assert "| `cube_davinci` | systolic | 16 × 16 × 16 |" in text and "old" not in text
    assert text.endswith("<!-- /configurations -->\nend\n") and docs.update(tmp_path) == []


def test_a_picture_is_drawn_beside_a_file_that_shows_it(tmp_path, monkeypatch):
    monkeypatch.setitem(docs.PICTURES, "bars.svg", lambda: "<svg/>\n")
    file, picture = tmp_path / "x.md", tmp_path / "bars.svg"
    file.write_text("bars.svg\n")
    assert docs.update(tmp_path) == [] and not picture.exists()
    file.write_text("![Bars](bars.svg)\n")
    assert docs.update(tmp_path, check=True) == [picture] and not picture.exists()
    assert docs.update(tmp_path) == [picture] and picture.read_text() == "<svg/>\n"
    assert docs.update(tmp_path, check=True) == []
    picture.write_text("old")
    assert docs.update(tmp_path, check=True) == [picture]


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
    text = (docs.FOLDER / "m3xu.md").read_text()
    for opcode in Opcode:
        line = next(line for line in text.splitlines() if f"| `{opcode.mnemonic}` |" in line)
        cells = [cell.strip() for cell in line.split("|")]
        assert cells[2] == f"0x{opcode.code:02x}"
        assert cells[6] == ", ".join(str(opcode.fragment(x).registers) for x in "abcd")
        m, n, k = opcode.shape
        assert cells[3].endswith(f"{m} × {k}") and cells[4] == f"{k} × {n}"
        cycles, rate = int(cells[7].split()[0]), int(cells[8])
        assert cycles * rate == opcode.macs


def test_an_unknown_package_is_refused(tmp_path):
    (tmp_path / "x.md").write_text("<!-- ports: hdl.tea -->\n<!-- /ports -->\n")
    with pytest.raises(
        UserError,
        match=r"package must be one of hdl\.fp, .*, hdl\.scu, .*not 'hdl.tea'",
    ):
        docs.update(tmp_path)


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
    page = tmp_path / "verilog.md"
    page.write_text("<!-- excerpt: dot -->\nold\n<!-- /excerpt -->\n")
    monkeypatch.setattr(docs, "TUTORIALS", tmp_path)
    assert main(["docs", "--check"]) == 1 and "out of date: verilog.md" in capsys.readouterr().out


def test_the_picture_of_one_sum_has_the_results_of_the_models():
    found = one_sum.results()
    assert one_sum.exact() == 0.09912109375
    assert found["v100_mma_fp16_fp32"] == 0.046875 and found["a100_mma_fp16_fp32"] == 0.07421875
    assert len(set(found.values())) == 9, "eleven machines have nine results"
    text = one_sum.draw()
    assert text == one_sum.draw()
    for name, value in zip(one_sum.MACHINES.values(), found.values(), strict=True):
        assert f">{name}</text>" in text and f">{value:g}</text>" in text
