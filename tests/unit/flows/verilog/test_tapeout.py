"""The folder of a project for Tiny Tapeout."""

import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.units import known, variants
from vitruvian.flows.verilog import tapeout
from vitruvian.hdl.bus.tapeout import TinyTapeoutDot

yaml = pytest.importorskip("yaml")

#: The pins of every project, by width and direction.
PINS = {
    "ui_in": ("In", 8), "uo_out": ("Out", 8), "uio_in": ("In", 8), "uio_out": ("Out", 8),
    "uio_oe": ("Out", 8), "ena": ("In", 1), "clk": ("In", 1), "rst_n": ("In", 1),
}  # fmt: skip


def test_the_pins_are_those_of_every_project():
    members = TinyTapeoutDot(k=4).signature.members
    assert {n: (m.flow.name, m.shape) for n, m in members.items()} == PINS


def test_the_project_has_all_files(tmp_path, capsys: pytest.CaptureFixture):
    assert main(["verilog", "tt_um_vitruvian", "--k", "4", "--out", str(tmp_path)]) == 0
    assert "Traceback" not in capsys.readouterr().err
    module = "tt_um_vitruvian_k4"
    project = tmp_path / module
    text = (project / "src" / f"{module}.v").read_text()
    assert text == (tmp_path / f"{module}.v").read_text()
    head = text[text.index(f"module {module} (") :].partition(");")[0]
    assert {line.split()[-1].rstrip(",") for line in head.splitlines()[1:] if line} == set(PINS)
    info = yaml.safe_load((project / "info.yaml").read_text())
    assert info["yaml_version"] == 6 and info["project"]["top_module"] == module
    assert info["project"]["tiles"] == "1x1" and info["project"]["clock_hz"] > 0
    assert info["project"]["source_files"] == [f"{module}.v"]
    assert all(info["project"][key] for key in ("title", "author", "description", "language"))
    assert list(info["pinout"]) == [f"{bus}[{n}]" for bus in ("ui", "uo", "uio") for n in range(8)]
    assert [info["pinout"][f"uio[{n}]"] for n in range(6)] == [
        "write", "clear", "select 0", "select 1", "ready", "",
    ]  # fmt: skip
    page = (project / "docs" / "info.md").read_text()
    assert all(f"## {part}\n" in page for part in ("How it works", "How to test"))


def test_every_k_has_a_size_that_tiny_tapeout_sells():
    assert [tapeout.tiles(k) for k in (1, 4, 5, 8)] == ["1x1", "1x1", "1x2", "1x2"]
    assert {tapeout.tiles(k) for k in range(1, 9)} <= tapeout.TILES_UM.keys()


def test_other_units_are_no_projects():
    (variant,) = variants("intdot", {"k": [4]})
    assert tapeout.files(variant, "") == {}


def test_a_wrong_k_is_refused():
    with pytest.raises(UserError, match="k must be a number from 1 to 8"):
        known("verilog")["tt_um_vitruvian"].options["k"].read("9")
    with pytest.raises(ValueError, match="k must be a number from 1 to 8, not 0"):
        TinyTapeoutDot(k=0)
    with pytest.raises(TypeError, match="k must be a number, not '4'"):
        TinyTapeoutDot(k="4")  # pyright: ignore[reportArgumentType]
