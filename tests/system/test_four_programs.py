"""The commands ``graph``, ``kernel``, ``knn`` and ``taylor``, which were one command ``run``."""

import re

import pytest

from vitruvian.cli import main

PROGRAMS = ("graph", "kernel", "knn", "taylor")

#: An option of each program, which the other three do not have.
OWN = {"graph": "--route", "kernel": "--tiling", "knn": "--refine", "taylor": "--functions"}


def ended(arguments, capsys):
    """Return the exit code, and what was printed on both streams."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_has_its_own_options_and_three_examples(program, capsys):
    code, text, _ = ended([program, "--help"], capsys)
    assert code == 0
    examples = text[text.index("Examples:") :].splitlines()[1:]
    assert len(examples) == 3
    for line in examples:
        assert line.startswith(f"  vitruvian {program} ")
        used = re.findall(r" (--[a-z-]+)", line)
        assert used and all(f"  {option}" in text for option in used), line
    assert [name for name, option in OWN.items() if f"  {option}" in text] == [program]


@pytest.mark.parametrize("words", [["run"], ["run", "matmul"], ["run", "--help"], ["run", "apsp"]])
def test_run_names_the_four_programs(words, capsys):
    code, out, err = ended(words, capsys)
    assert code == 2 and not out and err.count("\n") == 1
    assert all(f"{program} (" in err for program in PROGRAMS), err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["graph", "matmull"], None),
        (["graph", "apps"], "apsp"),
        (["kernel", "matmull"], "matmul"),
        (["kernel", "apps"], None),
        (["taylor", "--method", "hornr"], "horner"),
        (["knn", "--method", "bitnic"], "bitonic"),
    ],
)
def test_a_wrong_word_is_told_a_near_name_of_the_program(words, near, capsys):
    code, _, err = ended(words, capsys)
    assert code == 2 and err.count("\n") == 1
    found = re.search(r"did you mean (\S+)\?", err)
    assert (found[1] if found else None) == near, err
