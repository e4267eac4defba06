"""The Verilog of the storage conversion, vector, sparse and bus units is lint-clean."""

import os
import subprocess
from pathlib import Path

import pytest

from vitruvian.flows.verilog import emit
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.sim.rtl import toolchain

#: Units of which every configuration in the catalogue is checked.
UNITS_WITH_ALL = (
    "scu-im2col", "scu-col2im", "vector", "sparse-os", "sparse-ewise", "sparse-is",
    "sparse-buffer", "sparse-control", "sparse-oei",
    "axi-stream", "axi-lite",
)  # fmt: skip
#: Labels of the configurations for which Verilator takes 1 to 150 seconds. docs/results/speed.md
#: has the command that checks them too.
LARGE = {
    "r16-a7-c4",
    "fp16-r8-a4-p2",
    "fp16-r8-a4-p2-c4",
    "4-add-compare-logic-reduce",
    "4-all-p2",
    "8-add-multiply-compare",
    "16-add-multiply-compare",
    "16-all",
    "128-all",
    "8-fp16",
    "8-fp32",
    "16-fp32",
    "32-fp32",
    "8-16-64-fp16",
    "8-16-64-fp32",
    "16-16-64-fp32",
    "16-32-128-fp16",
    "4-64-fp16",
    "8-64-fp16",
    "8-64-fp32",
    "16-64-fp32",
    "8-r64-8-256-16-fp32",
    "4-r32-8-128-4-bf16",
    "8-r64-8-256-16-fp32-16-64",
    "4-r32-8-128-4-bf16-32-128",
    "2-r16-2-32-2-fp16-16-64",
}


def catalogued() -> list:
    """Return every configuration in the catalogue but the large ones."""
    variants = {}
    for name in UNITS_WITH_ALL:
        unit = UNITS[name]
        for given in [*unit.rows(), *unit.more(), *unit.checked, *unit.simulated]:
            variant = Variant(unit, unit.default(given))
            variants[variant.module] = variant
    assert {variant.label for variant in variants.values()} >= LARGE
    return [
        pytest.param(variant, id=module)
        for module, variant in variants.items()
        if variant.label not in LARGE
    ]


def lint(path: Path) -> str:
    """Return the warnings of Verilator."""
    tool = toolchain.verilator()
    command = [*tool.command, "--lint-only", "-Wall", str(path)]
    environment = {**os.environ, **dict(tool.environment)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    output = done.stderr + done.stdout
    assert bool(done.returncode) == ("%Warning" in output), output
    return output if done.returncode else ""


@pytest.mark.parametrize("variant", catalogued())
def test_every_configuration_is_lint_clean_and_has_no_escaped_name(variant, tmp_path: Path):
    path = emit.write(variant, tmp_path)
    text = path.read_text()
    assert "\\" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert not lint(path)


def test_the_lint_sees_a_mistake(tmp_path: Path):
    """Show that the check can fail: a register gets a value in its declaration and another one."""
    unit = UNITS["scu-im2col"]
    path = emit.write(Variant(unit, unit.default({})), tmp_path)
    text = path.read_text()
    changed = text.replace("  reg [14:0] s1_base;", "  reg [14:0] s1_base = 15'h0000;")
    assert changed != text
    path.write_text(changed)
    assert "PROCASSINIT" in lint(path)
