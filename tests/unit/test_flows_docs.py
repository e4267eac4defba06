"""Generated documentation: up to date, and what is wrong is said."""

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from flows import docs
from flows.cli import main
from flows.errors import UserError
from hdl.cube import CONFIGS, MatrixUnit


def test_the_documentation_is_up_to_date():
    assert docs.update(check=True) == []
    assert main(["docs", "--check"]) == 0


def test_a_stale_table_is_found_and_written_anew(tmp_path, monkeypatch, capsys):
    file = tmp_path / "cube.md"
    file.write_text("# x\n<!-- configurations: hdl.cube -->\nold\n<!-- /configurations -->\nend\n")
    assert docs.update(tmp_path, check=True) == [file] and "old" in file.read_text()
    assert docs.update(tmp_path) == [file]
    text = file.read_text()
    assert "| `cube_davinci` | systolic | 16 × 16 × 16 |" in text and "old" not in text
    assert text.endswith("<!-- /configurations -->\nend\n") and docs.update(tmp_path) == []


def test_an_unknown_package_is_refused(tmp_path):
    (tmp_path / "x.md").write_text("<!-- ports: hdl.tea -->\n<!-- /ports -->\n")
    with pytest.raises(
        UserError, match=r"package must be one of hdl\.fp, hdl\.cube, not 'hdl.tea'"
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


def test_a_port_without_words_is_refused():
    component = Undescribed()
    setattr(component, "_MustUse__used", True)  # noqa: B010
    with pytest.raises(
        UserError, match="docstring of Undescribed must describe its ports a, d, not"
    ):
        docs.port_rows(component)
