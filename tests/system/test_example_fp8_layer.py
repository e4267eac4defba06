"""The example of an FP8 layer: equal to mmaemu in every bit, and refused in one line otherwise."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

NEEDED = ("torch", "mmaemu")


def run(root: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the example after a line of Python."""
    arguments = [str(root / "examples" / "fp8_layer.py"), *words]
    code = f"import runpy, sys\n{before}\nsys.argv = {arguments!r}\n"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_without_mmaemu_the_example_says_what_to_install(root: Path):
    done = run(root, before="sys.modules['mmaemu'] = None")
    assert done.returncode == 2
    assert done.stderr == "error: mmaemu must be installed: pip install torch mmaemu\n"


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="needs PyTorch and mmaemu (pip install torch mmaemu)",
)
def test_the_layer_has_the_bits_of_mmaemu(root: Path):
    done = run(root, "--tokens", "16", "--inputs", "4096", "--outputs", "1024")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("16,384 results: 0 differ from mmaemu, ")
    assert "slices from 0, 1408, 2816" in done.stderr or "(published)" in done.stderr
    other = run(root, "--inputs", "40")
    assert other.returncode == 2 and "multiples of 16" in other.stderr
