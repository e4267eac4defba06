"""vsel with other bits for each repeat: chips that have it, and the finding on the others."""

import re

import numpy as np
import pytest

from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.chip.file import CHIPS, ChipError, read_chip
from vitruvian.sim.davinci.semantics.functional import COMPILE_AFTER

TEXT = (CHIPS / "ascend910.toml").read_text(encoding="utf-8")


def selection(chip, repeat):
    """Return a program that selects by comparisons with bits in memory, at two lines."""
    program = Program(chip, "selection")
    core = program.core()
    a, b, y = (core.allocate("UB", (256,), "fp16") for _ in range(3))
    bits = core.allocate("UB", (32,), "uint8")
    core.vdup(a, 1.0)
    core.vdup(b, 2.0)
    core.pipe_barrier(Unit.V)
    core.vcmpv(bits, a, b, "lt", repeat=2)
    core.pipe_barrier(Unit.V)
    for _ in range(3):
        core.vsel(y, a, b, bits=bits, repeat=repeat)
        core.pipe_barrier(Unit.V)
    core.vsel(y, a, b, bits=bits, repeat=repeat)
    return program


@pytest.mark.parametrize("chip", ["ascend310", "ascend910"])
def test_bits_for_each_repeat_are_unsupported_on_early_chips(chip):
    findings = check(selection(load_chip(chip), 2))
    assert [f.check for f in findings] == ["unsupported"] * 2, "once for each line"
    assert re.search(
        rf"^unsupported: vsel.* at {re.escape(__file__)}:28 on V takes other bits for each repeat "
        rf"from memory; all repeats on {chip} must use the mask register$",
        findings[0].message,
    )
    # set_cmpmask, which this stands for, loads the bits of one repeat.
    assert not check(selection(load_chip(chip), 1))


@pytest.mark.parametrize("chip", ["ascend310p", "ascend910b"])
def test_later_chips_have_the_form(chip):
    chip = load_chip(chip)
    assert chip.kinds[list(chip.kinds)[-1]].vsel_from_memory
    if chip.name == "ascend310p":
        assert not check(selection(chip, 2))


def test_mistakes_in_the_key():
    for value in ('"no"', "0"):
        text = TEXT.replace("vsel_from_memory = false", f"vsel_from_memory = {value}")
        with pytest.raises(
            ChipError, match=r"core\.aicore\.vsel_from_memory must be true or false"
        ):
            read_chip(text)
    text = re.sub(r", vsel_from_memory = \"[^\"]*\"", "", TEXT)
    with pytest.raises(ChipError, match="a text for each number, also for vsel_from_memory"):
        read_chip(text)
    assert read_chip(text.replace("vsel_from_memory = false\n", "")).kind().vsel_from_memory


def test_vcmp_after_many_vector_instructions():
    """The compiled functions, which take over after a thousand instructions, leave vcmp alone."""
    program = Program(load_chip("ascend910"), "many")
    core = program.core()
    out = program.tensor("y", (128,), "fp16")
    a, b, y = (core.allocate("UB", (128,), "fp16") for _ in range(3))
    core.copy(a, program.tensor("x", (128,), "fp16", np.ones(128, np.float16)))
    core.set_flag(Unit.MTE2, Unit.V, 0)
    core.wait_flag(Unit.MTE2, Unit.V, 0)
    for _ in range(COMPILE_AFTER):
        core.vdup(b, 2.0)
        core.pipe_barrier(Unit.V)
    core.vcmp(a, b, "lt")
    core.vsel(y, a, b)
    core.set_flag(Unit.V, Unit.MTE3, 0)
    core.wait_flag(Unit.V, Unit.MTE3, 0)
    core.copy(out, y)
    report = simulate(program)
    assert not report.findings
    assert np.array_equal(report.outputs["y"], np.ones(128, np.float16))
