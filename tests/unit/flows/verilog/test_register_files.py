"""The C header and the Python constants compile, agree, and describe the hardware."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from vitruvian.cli import main
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import register_files
from vitruvian.hdl.bus.registers import REGISTERS, constants

CASES = {
    "axi-lite": {"preset": ["m3xu"]},
    "serial": {},
}


def compiler() -> str:
    """Return a compiler of C or C++."""
    for name in ("cc", "gcc", "g++", "c++", "clang"):
        if shutil.which(name):
            return name
    pytest.skip("needs a compiler of C, as the simulations do")


@pytest.mark.parametrize("unit", CASES)
def test_the_header_compiles_and_agrees_with_python(unit, tmp_path: Path):
    (variant,) = variants(unit, CASES[unit])
    header, python = register_files.register_files(variant).values()
    (tmp_path / "registers.h").write_text(header)
    names = re.findall(r"(?m)^#define (\w+) \S", header)
    lines = "\n".join(f'  printf("%s %u\\n", "{name}", {name});' for name in names)
    source = tmp_path / "print.c"
    # Including it twice, and beside the header of another unit, must work.
    (other,) = variants("axi-lite", {"core": ["simd2-int"]})
    (tmp_path / "other.h").write_text(next(iter(register_files.register_files(other).values())))
    source.write_text(
        '#include <stdio.h>\n#include "registers.h"\n#include "registers.h"\n#include "other.h"\n'
        f"int main(void) {{\n{lines}\n  return 0;\n}}\n"
    )
    program = tmp_path / "print"
    command = [compiler(), "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    in_c = {name: int(value) for name, value in map(str.split, printed.splitlines())}

    in_python: dict = {}
    exec(python, in_python)
    in_python = {name: value for name, value in in_python.items() if name.isupper()}
    ours = {"VITRUVIAN_", f"{variant.module.upper()}_"}
    stripped = {
        name.removeprefix(prefix): value
        for name, value in in_c.items()
        for prefix in ours
        if name.startswith(prefix)
    }
    assert stripped == in_python and len(in_python) == len(names)
    # They are the values of the hardware.
    core = getattr(variant.build(), "core")  # noqa: B009
    for name, value in constants(core).items():
        assert in_python[f"{name.upper()}_VALUE"] == value
    for register in REGISTERS:
        assert in_python[f"{register.name.upper()}_OFFSET"] == register.offset


def test_the_map_is_consistent():
    offsets = [register.offset for register in REGISTERS]
    assert offsets == sorted(set(offsets)) and all(offset % 4 == 0 for offset in offsets)
    for register in REGISTERS:
        masks = [field.mask for field in register.fields]
        assert sum(masks) < 1 << 32
        assert all(not a & b for i, a in enumerate(masks) for b in masks[:i]), register.name


def test_units_without_registers_have_no_such_files(tmp_path: Path, capsys):
    for unit in ("axi-stream", "minmax"):
        (variant,) = variants(unit, {})
        assert register_files.register_files(variant) == {}
    assert main(["verilog", "axi-lite", "--core", "simd2-int", "--m", "1", "--n", "1", "--k", "2",
                 "--out", str(tmp_path)]) == 0  # fmt: skip
    stem = "axi_lite_simd2_int_m1_n1_k2"
    names = {f"{stem}.v", f"{stem}_registers.h", f"{stem}_registers.py"}
    names.add(f"{stem}_pkg.sv")  # the codes of the responses
    assert {path.name for path in tmp_path.iterdir()} == names
    assert capsys.readouterr().out.split() == [
        str(tmp_path / name)
        for name in (f"{stem}.v", f"{stem}_pkg.sv", f"{stem}_registers.h", f"{stem}_registers.py")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--core", "tea"], "core must be one of cube, simd2-int, mma, not 'tea'"),
        (["--core", "mma", "--preset", "tiny"], "preset of mma must be one of "),
        (["--preset", "fp64"], "preset of cube must be one of "),
        (["--width", "16"], "--width must come with --core simd2-int, not with --core cube"),
        (
            ["--core", "simd2-int", "--slots", "4"],
            "--slots must come with --core cube or mma, not with --core simd2-int",
        ),
    ],
)
def test_options_of_another_core_are_refused(arguments, message, tmp_path: Path, capsys):
    assert main(["verilog", "axi-stream", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())
