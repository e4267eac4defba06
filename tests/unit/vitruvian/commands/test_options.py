"""All commands keep the same conventions for options, and refuse a wrong value in one line."""

import argparse
import re
import shlex
from collections import defaultdict

import pytest

from vitruvian.cli import COMMANDS, build_parser, main
from vitruvian.commands.options import numbers
from vitruvian.common.validate import nearest, refusal

#: Names that an option had, or might get, beside the name that the commands agree on.
BANNED = {
    "--output": "--out",
    "--save": "--out",
    "--folder": "--out",
    "--write": "--out",
    "--stdout": "--out -",
    "--shape": "--size",
    "--inputs": "--input",
    "--processes": "--jobs",
    "--threads": "--jobs",
    "--workers": "--jobs",
    "--random-seed": "--seed",
    "--no-check": "--no-checks",
}

#: Commands with options of one name that may differ in the text for the value.
#: ``--input`` is the format of the operands, but in ``taylor`` their file. ``--core`` is a core in
#: hardware, but in ``roofline`` one of the simulated cores, which are known after the run.
MAY_DIFFER = {("--out", "metavar"), ("--input", "metavar"), ("--core", "type")}


def actions():
    """Return (command, action) for every argument; the options of hardware units are left out."""
    parser = build_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    assert list(commands.choices) == list(COMMANDS)
    return [
        (name, action)
        for name, command in commands.choices.items()
        for action in command._actions
        if action.dest != "help" and not action.dest.startswith("unit_")
    ]


ACTIONS = actions()
OPTIONS = [(name, action) for name, action in ACTIONS if action.option_strings]


def kind(action):
    """Return what a user sees of an option: how many values it takes, of what type and name."""
    return {
        "action": type(action).__name__,
        "nargs": action.nargs,
        "type": getattr(action.type, "__qualname__", None),
        "metavar": action.metavar,
    }


def differences(options):
    """Return the options whose kind is not the same in all commands."""
    kinds = defaultdict(dict)
    for name, action in options:
        for what, value in kind(action).items():
            kinds[action.option_strings[0], what].setdefault(value, name)
    return {
        key: values for key, values in kinds.items() if len(values) > 1 and key not in MAY_DIFFER
    }


def test_an_option_is_of_one_kind_in_all_commands():
    assert len(OPTIONS) > 100
    assert not differences(OPTIONS)


def test_an_option_of_two_kinds_is_found():
    parser = argparse.ArgumentParser()
    one, two = parser.add_argument("--one", type=int), parser.add_argument("--two", metavar="N")
    two.option_strings = ["--one"]
    assert set(differences([("a", one), ("b", two)])) == {("--one", "type"), ("--one", "metavar")}


@pytest.mark.parametrize(("name", "action"), ACTIONS, ids=lambda x: getattr(x, "dest", x))
def test_an_option_has_a_name_a_value_and_a_help_text(name, action):
    for option in action.option_strings:
        assert option not in BANNED, f"{name}: {option} is called {BANNED[option]}"
        assert re.fullmatch(r"--[a-z]+(-[a-z]+)*|-[A-Z]", option), option
    text = action.help or ""
    assert re.match(r"[A-Z][a-z]+ ", text) and text.endswith("."), f"{name}: {text!r}"
    assert not re.match(r"(The|A|An|This) ", text), f"{name}: {text!r} must begin with a verb"
    if action.nargs != 0:
        assert action.metavar, f"{name} {action.option_strings} must have a metavar"
    if action.default not in (None, False, []) and action.default != argparse.SUPPRESS:
        assert "default: " in text, f"{name}: {text!r} must say the default"


@pytest.mark.parametrize(("name", "action"), OPTIONS, ids=lambda x: getattr(x, "dest", x))
def test_files_that_are_written_are_checked_before_the_work(name, action):
    """The parser refuses a file that cannot be written."""
    writes = re.match(r"(Write|Draw|Record) ", action.help or "") and action.nargs != 0
    checked = getattr(action.type, "__qualname__", "").startswith("output_path")
    assert bool(writes) == checked, f"{name} {action.option_strings}: {action.help}"


def test_the_shared_options_mean_the_same():
    starts = {
        "--json": r"Write .+ to this file as JSON \(- for standard output\)\.",
        "--jobs": r"Run N processes.* \(default: one for each core, here \d+\)\.",
        "--seed": r"Start the (random operands|placement) at this seed "
        r"\(default: (%\(default\)s|\d)\)\.",
        "--size": r"(Take|Solve) .*sizes?.*\.",
        "--out": r"Write .+ (to|into) this (file|folder).*\.",
        "--chip": r"Simulate the chip of this name.*\(default: (%\(default\)s|ascend310)\)\.",
        "--no-cache": r"Ignore the cache.*\.",
        "--preset": r".+ this GPU.*\.",
        "--input": r".* (operands) .*\.",
    }
    owners = defaultdict(set)  # the commands that have each option
    for name, action in OPTIONS:
        option = action.option_strings[0]
        if option in starts:
            owners[option].add(name)
            assert re.fullmatch(starts[option], action.help or ""), f"{name}: {action.help}"
    assert set(owners) == set(starts)
    assert owners["--json"] == set(COMMANDS) - {"docs"}
    assert owners["--jobs"] == {
        *("verify", "exhaustive", "tune", "area", "timing", "formal", "machines")
    }


@pytest.mark.parametrize(
    ("name", "action"),
    [(name, action) for name, action in OPTIONS if action.type],
    ids=lambda x: getattr(x, "dest", x),
)
def test_a_wrong_value_is_one_line_and_exit_code_2(name, action, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, action.option_strings[0], "/proc/no/such"])
    (line,) = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2
    assert line.startswith(f"error: argument {action.option_strings[0]}: must be ")
    assert "not '/proc/no/such'" in line


def test_the_jobs_of_a_measurement_are_those_of_the_commands(monkeypatch):
    from vitruvian.flows.asic import cells
    from vitruvian.flows.asic.measure import Settings

    monkeypatch.setattr("os.cpu_count", lambda: 7)
    assert Settings(library=cells.library()).jobs == 7


def examples():
    """Return the command lines in the epilogs of all commands."""
    parser = build_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    epilogs = [parser.epilog, *(command.epilog for command in commands.choices.values())]
    texts = [(text or "").replace("\\\n", " ") for text in epilogs]
    return [line for text in texts for line in re.findall(r"(?m) (vitruvian .+)$", text)]


def test_every_command_has_an_example_that_it_accepts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(example)[1:] for example in examples()]
    for line in lines:
        assert callable(build_parser().parse_args(line).run)
    assert {line[0] for line in lines} == set(COMMANDS)


@pytest.mark.parametrize("text", ["999999999x1", "2**29x1", "2^3x1_000"])
def test_sizes_up_to_the_limit_are_numbers(text):
    assert numbers(text)[0] in (999_999_999, 1 << 29, 8)


@pytest.mark.parametrize(
    "text", ["99999999999", "1000000000", "1x2**30", "2**99", "9" * 9999, "2**" + "9" * 99]
)
def test_a_size_that_is_too_large_is_told_so(text):
    """Regression: the message was "must be numbers like 256x256x256", as for words."""
    with pytest.raises(argparse.ArgumentTypeError, match="must be numbers up to 999,999,999, not "):
        numbers(text)


@pytest.mark.parametrize("text", ["", "x", "1x", "1.5", "-1", "3**2", "٣", "1e9"])
def test_a_size_that_is_no_number_is_told_so(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be numbers like 256x256x256"):
        numbers(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verfy"], "invalid choice: 'verfy' (did you mean verify?) (`vitruvian --help`"),
        (["verify", "--vectrs", "3"], "--vectrs (did you mean --vectors?) (`vitruvian verify"),
        (["verify", "--zzz"], "unrecognized arguments: --zzz (`vitruvian verify --help`"),
        (["kernel", "matmull"], "KERNEL must be one of "),
        (["kernel", "matmull"], " names, not 'matmull' (did you mean matmul?)"),
        (["kernel", "Matmul", "--chip", "x"], "not 'Matmul' (did you mean matmul?)"),
        (["kernel", "matmul", "--chip", "ascend301"], "not 'ascend301' (did you mean ascend310?)"),
        (["area", "dott"], "not 'dott' (did you mean dot?)"),
        (["area", "dot", "--preset", "a10"], "not 'a10' (did you mean a100?)"),
        (["verify", "fp.DotProdct"], "not 'fp.DotProdct' (did you mean fp.DotProduct?)"),
        (["roofline", "matmull"], "(did you mean matmul?)"),
        (["studies", "sgem"], "(did you mean sgemm?)"),
        (["probe", "write", "--target", "cudda", "--out", "new"], "(did you mean cuda?)"),
    ],
)
def test_a_name_that_is_near_is_told(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2 and message in line and len(line) < 200


def test_a_long_list_is_left_out_only_if_a_name_is_near():
    names = [f"name{n:03}" for n in range(100)]
    assert refusal("x", "nam007", names) == (
        "x must be one of 100 names, not 'nam007' (did you mean name007?)"
    )
    assert ", name099, not 'zzz'" in refusal("x", "zzz", names)
    assert (
        refusal("x", "ba", ["bar", "foo"])
        == "x must be one of bar, foo, not 'ba' (did you mean bar?)"
    )
    assert nearest("a" * 9999, ["a" * 9998]) == "" and refusal("x", 3, [1, 2]).endswith(", not 3")
