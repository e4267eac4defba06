"""The help of the command line: one screen first, everything on demand, near words everywhere."""

import json

import pytest

from vitruvian.cli import main
from vitruvian.commands.listing import COMMANDS, GROUPS
from vitruvian.flows.units import UNITS


def printed(arguments, capsys):
    """Return the exit code and what was printed on both streams."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_the_first_screen_is_one_screen(words, capsys):
    code, out, _ = printed(words, capsys)
    lines = out.splitlines()
    assert code == 0 and len(lines) <= 24 and max(map(len, lines)) <= 80
    table = lines[4 : lines.index("", 4)]
    shown = [line[10:].split()[0] for line in table]
    assert shown == [name for name, command in COMMANDS.items() if command.main]
    assert 10 <= len(shown) <= 15
    groups = [line[:9].strip() for line in table]
    assert [group for group in groups if group] == ["hardware", "numbers", "cores", "graphs"]


def test_all_commands_are_listed_on_demand(capsys):
    code, out, _ = printed(["help", "--all"], capsys)
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert code == 0 and listed == list(COMMANDS) and max(map(len, out.splitlines())) <= 80
    every = []
    for group in GROUPS:
        code, out, _ = printed(["help", group], capsys)
        lines = out.splitlines()
        assert code == 0 and lines[0].startswith(f"{group}: ")
        every += [line.split()[0] for line in lines[1:]]
    assert every == list(COMMANDS)
    _, out, _ = printed(["help", "--all", "--json", "-"], capsys)
    assert [row["command"] for row in json.loads(out)] == list(COMMANDS)


def test_help_of_a_command_is_its_help(capsys):
    for words in (["conformance"], ["verilog", "dot"]):
        assert printed(["help", *words], capsys) == printed([*words, "--help"], capsys)


@pytest.mark.parametrize("command", ["verilog", "area", "fpga", "bundle", "timing", "new"])
def test_help_behind_a_unit_shows_the_options_of_that_unit_only(command, capsys):
    name = ["x"] if command == "new" else []
    _, out, _ = printed([command, *name, "intdot", "--help"], capsys)
    own = {f"--{option.replace('_', '-')}:" for option in UNITS["intdot"].options}
    others = {
        f"--{option.replace('_', '-')}:" for unit in UNITS.values() for option in unit.options
    } - own
    words = set(out.split())
    assert own <= words and not others & words
    assert "\nintdot: " in out and "\n  blockdot" not in out


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("verilg", "verilog"),
        ("help cors", "cores"),
        ("help verilgo", "verilog"),
        ("verilog dott", "dot"),
        ("verilog dot --preste a100", "--preset"),
        ("units dott", "dot"),
        ("fpga --board ulx3", "ulx3s"),
        ("fpga --family ecp", "ecp5"),
        ("machines h10", "h100"),
        ("formats fp8e4m", "fp8e4m3"),
        ("formal cube.qeue", "cube.queue"),
        ("silicon x.npz --preset v10", "v100"),
        ("conformance h10", "h100"),
        ("mma m3x", "m3xu"),
        ("graph apps", "apsp"),
        ("graph apsp --model --algorithm leyzorec", "leyzorek"),
        ("sparse bfss x.mtx", "bfs"),
        ("network resnet5", "resnet50"),
        ("kernel matmull", "matmul"),
        ("taylor --functions sinn", "sin"),
        ("knn --metric cosin", "cosine"),
        ("probe reed x", "read"),
        ("area dot --liberty vt4", "vt45"),
    ],
)
def test_a_near_word_is_offered(line, near, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = printed(line.split(), capsys)
    assert code == 2 and err.count("\n") == 1
    assert near in err.replace(line, ""), err
