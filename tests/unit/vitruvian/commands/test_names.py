"""Options that take names complete them, and the message about a wrong word has a near one."""

import argparse
from collections.abc import Iterator

import pytest

from vitruvian.cli import build_parser, main
from vitruvian.commands.completion import completed
from vitruvian.commands.listing import COMMANDS
from vitruvian.flows.units import known

#: Metavars of values that are no names: numbers, sizes, files, patterns.
FREE = {
    "N", "NS", "PS", "FF", "MHZ", "S", "R", "A", "W", "X", "AxBx…", "MxNxK", "A,B,…", "VERTEX",
    "WIDTHxHEIGHT",
    "FILE", "FOLDER", "PORT", "ADDRESS", "PATTERN", "NAME=VALUE", "NAME=FILE", "NAME[=VALUE]",
    ("FROM", "TO"),
}  # fmt: skip
#: Options whose names come from the input: a new name, a column, a function, a cell, a step.
FROM_INPUT = {
    *("new name", "cce entry", "assemble entry", "host entry", "graph weight", "sparse weight"),
    *("area driving_cell", "timing driving_cell", "power driving_cell", "roofline step"),
    "layout driving_cell",
    "ascendc kernel",
}
#: Options that a command needs before it reads the word, by command or by option.
NEEDED = {
    "new": ["x"],
    "host": ["matmul", "--port", "p"],
    "probe": ["write", "--out", "x"],
    "plans": ["list"],
    "machines liberty": ["--area"],
    "roofline chip": ["matmul"],
    "roofline core": ["matmul", "--size", "16x16x16"],
    "tune": ["matmul", "--size", "16x16x16"],
    "tune output_dtype": ["--dtype", "int8"],
    "help unit": ["verilog"],
    "silicon": ["x"],
    "assemble": ["x", "--out", "y"],
}
#: Options whose words are read only behind a file, which the test does not have.
BEHIND_A_FILE = {
    "silicon input", "silicon preset", "cce chip", "cce kind", "host precision", "probe input",
    "assemble chip", "assemble kind", "host chip", "host kind", "ascendc chip", "ascendc kind",
}  # fmt: skip


def misspelt(names: list[str]) -> tuple[str, str]:
    """Return the longest name, and the same without a letter in its middle."""
    name = max(names, key=len)
    wrong = (name[:k] + name[k + 1 :] for k in range(len(name) // 2, len(name)))
    return name, next((word for word in wrong if word and word not in names), f"{name}x")


def words(command: str, action: argparse.Action, unit: str | None = None) -> list[str]:
    """Return the names that an option or a positional argument takes."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    given = argparse.Namespace(command=command, unit=unit and [unit])
    return [word for word in map(str, completed("zzz", action, given)) if not word.isdigit()]


def actions(command: str) -> Iterator[argparse.Action]:
    """Yield the arguments of a command that have a value."""
    parser = build_parser([command]).commands[command]
    yield from (a for a in parser._actions if a.nargs != 0 and a.dest != "help")


def unit_with(command: str, action: argparse.Action) -> str | None:
    """Return a unit that has an option with names, or None if the option is not of a unit."""
    name = action.dest.removeprefix("unit_")
    if name == action.dest:
        return None
    units = [u for u, unit in known(command).items() if name in unit.options]
    units = ["serial"] if command == "board" else units
    return next((unit for unit in units if words(command, action, unit)), units[0])


def line_of(command: str, action: argparse.Action, unit: str | None, word: str) -> list[str]:
    """Return arguments that have a word as the value of an option, or as a positional argument."""
    every = list(actions(command))
    front = [*NEEDED.get(command, []), *NEEDED.get(f"{command} {action.dest}", [])]
    if not action.option_strings:
        if front:
            # The command's first argument has the word in place of the one that is needed.
            return [word, *front[1:]] if action.dest == every[0].dest else [*front, word]
        needed = (a for a in every if not a.option_strings)
        values = {a.dest: word if a.dest == action.dest else first_word(command, a) for a in needed}
        required = {action.dest, *(a.dest for a in every if a.nargs in (None, "+"))}
        return [value for dest, value in values.items() if dest in required]
    if unit is not None and command != "board":
        front.append(unit)
    elif not front:
        needed = (a for a in every if not a.option_strings and a.nargs in (None, "+"))
        front = [first_word(command, a) for a in needed]
    return [*front, action.option_strings[-1], word]


def first_word(command: str, action: argparse.Action) -> str:
    return next(iter(words(command, action)), "x")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_name_is_completed(command: str):
    for action in actions(command):
        key = f"{command} {action.dest}"
        if action.metavar in FREE or key in FROM_INPUT or action.dest.startswith("unit_"):
            continue
        assert words(command, action), f"no word is offered for {key}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelt_name_has_a_near_one(command: str, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    problems: list[str] = []
    for action in actions(command):
        key = f"{command} {action.dest}"
        unit = unit_with(command, action)
        names = words(command, action, unit)
        if not names or key in BEHIND_A_FILE:
            continue
        name, wrong = misspelt(names)
        line = [command, *line_of(command, action, unit, wrong)]
        try:
            code = main(line)
        except SystemExit as end:
            code = end.code
        error = capsys.readouterr().err
        if code != 2 or error.count("\n") != 1 or name not in error:
            problems.append(f"{' '.join(line)}: {code} {error}")
    assert not problems, "\n".join(problems)
