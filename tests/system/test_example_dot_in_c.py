"""The example in C is linked with a rule, and prints the code that golden has."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vitruvian import gemm
from vitruvian.cli import main

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("g++")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that the comment of the example says how to build."""
    if COMPILER is None:
        pytest.skip("this machine has no C compiler")
    folder = tmp_path_factory.mktemp("dot")
    assert main(["machines", "h100_mma_fp16_fp32", "--c", str(folder)]) == 0
    source = Path(__file__).parents[2] / "examples" / "dot_in_c.c"
    language = ["-x", "c"] if COMPILER.endswith("g++") else []
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{folder}", *language]
    files = [str(source), str(folder / "h100_mma_fp16_fp32.c")]
    subprocess.run([COMPILER, *options, *files, "-o", str(folder / "dot")], check=True)
    return folder / "dot"


def element(i: np.ndarray) -> np.ndarray:
    """Return the codes of the elements, which the example has as well."""
    codes = np.where(i % 3 == 0, 0x8000, 0) | (12 - i % 8) << 10 | (i * 37 & 0x3FF)
    return np.where(i == 0, 0x3C00, codes).astype(np.uint16)


@pytest.mark.parametrize("terms", [16, 64, 4096])
def test_the_program_prints_what_golden_computes(program, terms):
    done = subprocess.run([program, str(terms)], capture_output=True, text=True, check=True)
    places = np.arange(terms)
    a, b = (element(p).view(np.float16) for p in (places, places + 5))
    sum = np.asarray(gemm(a[None], b[:, None], machine="h100"))
    assert done.stdout == f"{sum.view(np.uint32)[0, 0]:08X}\n"
    assert sum[0, 0] != a.astype(np.float32) @ b.astype(np.float32) or terms == 16


@pytest.mark.parametrize("line", [[], ["15"], ["0"], ["16x"], ["16", "16"], ["99999999"]])
def test_other_numbers_are_refused(program, line):
    done = subprocess.run([program, *line], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "error: the terms must be a multiple of 16 up to 1048576\n"
