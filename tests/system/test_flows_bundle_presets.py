"""The bundle of every preset passes on Icarus Verilog, and Verilator finds nothing to warn of."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from vitruvian.flows.units import UNITS, reported
from vitruvian.flows.verilog import bundle
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.sim.rtl import toolchain

#: Seconds after which a preset is too long for one tool.
LIMIT_S = 600
#: Presets whose simulation on Icarus takes longer. Verilator's lint is checked all the same.
TOO_LONG = {"cube_cube_davinci", "vector_128_all"}


def presets():
    """Return every preset of every unit as a parameter."""
    return [pytest.param(v, id=v.module) for name in UNITS for v in reported(name)]


def run(folder: Path, target: str) -> str:
    """Run a target of a bundle's Makefile and return what it prints, with its exit code."""
    tool = toolchain.verilator()
    done = subprocess.run(
        ["make", f"VERILATOR={' '.join(tool.command)}", target],
        cwd=folder,
        env={**os.environ, **dict(tool.environment)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    return f"{done.stdout}{done.stderr}exit {done.returncode}"


@pytest.mark.long
@pytest.mark.parametrize("variant", presets())
def test_the_bundle_of_a_preset_passes(variant: Variant, tmp_path: Path):
    bundle.write(variant, tmp_path, vectors=100)
    lint = run(tmp_path, "lint")
    assert lint.endswith("exit 0") and "warning" not in lint.lower(), lint
    if variant.module in TOO_LONG:
        pytest.skip(f"Icarus takes more than {LIMIT_S} s")
    if not shutil.which("iverilog"):
        pytest.skip("needs Icarus Verilog (iverilog)")
    out = run(tmp_path, "icarus")
    assert out.endswith("exit 0") and "PASS" in out, out
    assert "MISMATCH" not in out and "warning" not in out.lower(), out
