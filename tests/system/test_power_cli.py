"""The command ``power``: its printed and written results, and its answers to misuse."""

import json
from pathlib import Path

import pytest

from tests.unit.flows.asic.gated_library import built_in
from vitruvian.cli import main
from vitruvian.flows.asic.power import measure

SMALL = ["intdot", "--k", "2", "--pipeline", "1", "--cycles", "40"]


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:  # argparse
        return int(stop.code or 0)


def test_power_prints_and_writes_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown")}
    options = [f"--{kind}={path}" for kind, path in files.items()]
    assert run("power", *SMALL, *options, "--stimulus", "relu,uniform", "--period", "5") == 0
    out = capsys.readouterr().out
    document = json.loads(files["json"].read_text())
    assert [row["stimulus"] for row in document["rows"]] == ["relu", "uniform"]
    for row in document["rows"]:
        line = f"| {row['stimulus']} | 5.00 | {row['zero_delay_pj_per_mac']:.2f} | "
        assert line + f"{row['pj_per_mac']:.2f} | " in files["markdown"].read_text()
        assert row["settled_ps"] <= row["longest_path_ps"] <= row["period_ps"] == 5000
    assert not document["library"]["internal_power"] and not document["library"]["leakage"]
    words = " ".join(out.split())
    assert "the library has no internal_power and no leakage" in words


def test_the_load_of_the_outputs_costs_energy(tmp_path: Path):
    figures = []
    for load in ("5", "50"):
        path = tmp_path / f"{load}.json"
        line = [*SMALL, "--load", load, "--stimulus", "uniform", "--json", str(path)]
        assert run("power", *line) == 0
        figures.append(json.loads(path.read_text())["rows"][0]["timed_fj"]["combinational"])
    # 32 outputs with at least 45 fF more, of which a part changes in a cycle.
    assert figures[1] > figures[0] + 45 * 0.5 * 1.1**2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*SMALL, "--stimulus", "rel"], "stimulus must be one of uniform, normal, relu, not 'rel'"),
        ([*SMALL, "--period", "0.1"], "period must be at least the longest path of k2-p1, "),
        ([*SMALL, "--period", "0"], "argument --period: must be above 0"),
        ([*SMALL, "--cycles", "0"], "argument --cycles: must be a whole number"),
        ([*SMALL, "--driving-cell", "BUF_X3"], "driving cell must be one of"),
        (["cube"], "unit must be one of dot, intdot, element, not 'cube'"),
        ([*SMALL, "--clock-gates"], "--clock-gates must have a library with clock gates"),
        ([*SMALL, "--idle", "100"], "argument --idle: must be a whole number from 0 to 99"),
        (["element", "--gated", "--pipeline", "0"], "gated must be False without registers"),
        (["--preset", "a100", "--saturate"], "no unit has all of"),
        (["element", "--mode", "bf16"], "precision must be one of fp16, int8, not 'bf16'"),
        (["dot", "--low-power", "--pipeline", "9"], "pipeline must be one of 0, 1, 2, 3"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture
):
    assert run("power", *arguments) == 2
    (line,) = [text for text in capsys.readouterr().err.splitlines() if text.startswith("error")]
    assert words in line


def test_a_netlist_that_differs_from_golden_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    original = measure.stimulus

    def wrong(*arguments: object, **options: object):
        drawn = original(*arguments, **options)  # pyright: ignore[reportArgumentType]
        drawn.expected["d"][7, 3] ^= 1
        return drawn

    monkeypatch.setattr(measure, "stimulus", wrong)
    assert run("power", *SMALL) == 1
    assert "d[3] of the netlist differs from golden in 1 of 41 cycles" in capsys.readouterr().err


def test_idle_precisions_and_cycles_with_clock_gates(tmp_path: Path):
    """The clock of registers that are not in use takes no energy, and no more results count."""
    library = tmp_path / "gated.lib"
    library.write_text(built_in())
    line = ["element", "--precisions", "fp8e4m3-int8", "--preset", "ieee", "--k", "1"]
    line += ["--pipeline", "1", "--cycles", "80", "--stimulus", "uniform", "--isolated"]
    found = {}
    for name, more in (
        ("plain", ["--mode", "fp8e4m3,int8"]),
        ("gated", ["--mode", "fp8e4m3,int8", "--gated", "--clock-gates"]),
        ("idle", ["--mode", "int8", "--gated", "--clock-gates", "--idle", "60"]),
        ("held", ["--mode", "int8", "--idle", "60"]),
    ):
        path = tmp_path / f"{name}.json"
        options = ["--liberty", str(library), "--json", str(path)]
        assert run("power", *line, *more, *options) == 0
        found[name] = json.loads(path.read_text())["rows"]
    assert all(row["idle_share"] > 0 for row in found["plain"])
    for plain, gated in zip(found["plain"], found["gated"], strict=True):
        assert gated["idle_share"] < 0.6 * plain["idle_share"]
        assert gated["timed_fj"]["clock"] < 0.8 * plain["timed_fj"]["clock"]
    idle, held = found["idle"][0], found["held"][0]
    assert "busy_share" not in found["gated"][1]
    assert 0.3 < idle["busy_share"] == held["busy_share"] < 0.5
    assert idle["timed_fj"]["clock"] < 0.7 * found["gated"][1]["timed_fj"]["clock"]
    for row in (idle, held):
        each = row["timed_fj"]["total"] / row["macs"] / row["busy_share"] / 1000
        assert row["pj_per_mac"] == pytest.approx(each, rel=1e-3)
    # Without gates the clock does not stop, and an operation takes more of it.
    assert held["timed_fj"]["clock"] == pytest.approx(
        found["plain"][1]["timed_fj"]["clock"], rel=0.1
    )
    assert held["pj_per_mac"] > idle["pj_per_mac"]
