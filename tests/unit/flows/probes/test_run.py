"""Functions and programs of the user are run on the operands, and become evidence of a rule."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.probes.run import run
from vitruvian.golden.machines import compute, find

MODULE = """
import numpy as np

from vitruvian import machines


def unit(a, b, c):
    return machines.run("rdna3_dot2_fp16_fp32", a, b, c)


def wrong(a, b, c):
    d = unit(a, b, c)
    d[5] ^= 1
    return d


def short(a, b, c):
    return c[:-1]


def wide(a, b, c):
    return c.astype(np.uint64) << np.uint64(1)


def failing(a, b, c):
    raise ValueError("out of order\\nand more")


number = 3
"""
#: A program that returns C plus one in the last place of zero, which no machine does.
PROGRAM = """
import sys

for line in sys.stdin:
    print(hex(int(line.split()[-1], 16) ^ 1))
"""
NAME = ["--instruction", "fp16_fp32_k2"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Change into a folder with a module and a program."""
    (tmp_path / "own_unit.py").write_text(MODULE)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_unit", raising=False)
    return tmp_path


def test_a_run_becomes_a_set_that_is_compared_again(here, capsys):
    assert main(["probe", "run", "own_unit:unit", *NAME, "--evidence", "sets"]) == 0
    out = capsys.readouterr().out
    assert "fp16_fp32_k2 (own_unit:unit)" in out and "rows as rdna3_dot2_fp16_fp32" in out
    (path,) = (here / "sets").iterdir()
    assert path.name == "rdna3_dot2_fp16_fp32.npz"
    with np.load(path) as file:
        header = json.loads(str(file["header"]))
        a, b, c, d = (file[name] for name in "abcd")
    assert (compute(find(path.stem).rule, a, b, c) == d).all()
    assert header["comparison"]["row"] == path.stem and header["comparison"]["wrong"] == 0
    assert "rdna35_dot2_fp16_fp32" in header["comparison"]["equal rows"]
    assert header["formats"] == {"a": "fp16", "b": "fp16", "d": "fp32"}
    check = ["machines", "--check", "sets", "--no-rtl", "--jobs", "1"]
    assert main(check) == 0
    d[7] ^= 1
    np.savez(path, a=a, b=b, c=c, d=d)
    assert main(check) == 1


def test_a_wrong_result_keeps_the_name_of_the_instruction(here, monkeypatch, capsys):
    from vitruvian.golden.machines import probe

    def infer(results, **options):
        raise UserError("no rule was looked for")

    monkeypatch.setattr(probe, "infer", infer)
    assert main(["probe", "run", "own_unit:wrong", *NAME, "--evidence", "sets"]) == 2
    assert not (here / "sets").exists()  # all files or none
    from vitruvian.flows.probes.evidence import evidence, paths

    (section,) = run("own_unit:wrong", NAME[1:], 1)
    name, data = evidence(section, "x", probe.name(section.cases))  # pyright: ignore
    assert name == "fp16_fp32_k2.npz"
    files = paths(here, [(name, data), (name, data)])
    assert [path.name for path in files] == [name, "fp16_fp32_k2.2.npz"]
    (here / name).write_bytes(data)
    with np.load(here / name) as file:
        header = json.loads(str(file["header"]))
    assert header["comparison"] == {
        "row": "rdna3_dot2_fp16_fp32",
        "wrong": 1,
        "first": 5,
        "equal rows": [],
    }


def test_a_program_reads_lines_and_prints_codes(here):
    (section,) = run(f"{sys.executable} program.py", ["bf16_fp32_k3"], 1)
    x = section.cases
    assert (x.d == x.c ^ 1).all() and x.a.shape == (len(x.c), 3)  # pyright: ignore


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("own_unit:absent", "own_unit:absent must be a function that can be imported, but Attr"),
        ("no_module:unit", "must be a function that can be imported, but ModuleNotFoundError"),
        ("own_unit:number", "own_unit:number must be a function, not int"),
        ("own_unit:short", "own_unit:short must return [0-9]+ codes, not uint32 of the shape"),
        ("own_unit:wide", "own_unit:wide must return codes of fp32, not 0x"),
        ("own_unit:failing", "must return the codes of D, but ValueError: out of order$"),
        ("./absent --option", "./absent must be a program that can be run: No such file"),
        (f"{sys.executable} absent.py", "must end with exit code 0, not 2"),
        (f"{sys.executable} -c print(3,4)", "must return [0-9]+ codes, not uint64 of the shape"),
        (f"{sys.executable} -c print('x')", "must print codes in hexadecimal, not 'x'"),
        ("a 'b", "a program must be a command line, but No closing quotation"),
        ("", "a program must be a command line or module:function, not ''"),
    ],
)
def test_a_mistake_is_one_line(target, message, here):
    with pytest.raises(UserError, match=message) as error:
        run(target.replace("'x'", "chr(120)"), NAME[1:], 1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", *NAME], "run must come with one function or program"),
        (["run", "x", "y", *NAME], "run must come with one function or program"),
        (["run", "own_unit:unit"], "a target of your own must come with --instruction"),
        (["run", "own_unit:unit", *NAME, "--target", "amx"], "--target must come with write"),
        (["run", "own_unit:unit", *NAME, "--input", "fp16"], "--input must come with read"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments, message, here, capsys):
    assert main(["probe", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not there")
def test_the_program_for_amx_compiles_and_its_bytes_are_these_instructions(tmp_path):
    folder = tmp_path / "kit"
    name = ["--instruction", "amx_tdpfp16ps"]
    assert main(["probe", "write", "--target", "amx", *name, "--out", str(folder)]) == 0
    flags = "CC=gcc -Wall -Wextra -Werror"
    done = subprocess.run(["make", "probe", flags], cwd=folder, capture_output=True, text=True)
    if "unrecognized command-line option" in done.stderr:
        pytest.skip("this gcc has no AMX")
    assert done.returncode == 0, done.stderr
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not there")
    text = subprocess.run(
        ["objdump", "-d", "probe"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    assert "tdpfp16ps %tmm2,%tmm1,%tmm0" in text
