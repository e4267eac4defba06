"""The chips' times of Im2Col and Col2Im are the cycles of the compiled RTL after initialisation."""

import numpy as np
import pytest

from vitruvian.golden.scu import Patches
from vitruvian.hdl.scu import Col2Im, ConversionConfig, Im2Col
from vitruvian.sim.bench.scu.batch import run_col2im, run_im2col
from vitruvian.sim.bench.scu.traffic import ConversionInstruction
from vitruvian.sim.davinci import Program, View, load_chip
from vitruvian.sim.rtl import compile_unit

PATCHES = Patches(height=30, width=20, kernel=(3, 2), stride=(2, 1), pad=(1, 1, 1, 0))
REPEATS = (1, 2, 7, 18)


def sized(rows):
    """Return the parameters of a unit with narrow C0 rows; its control is that of a wide one."""
    return ConversionConfig(rows=rows, c0_bytes=8)


def rtl_cycles(unit, rows, repeat):
    """Return the cycles from a command to the end of its last beat, of a unit that waits for none.

    For Col2Im, that is the cycle in which it could take the next command.
    """
    config = sized(rows)
    instruction = ConversionInstruction(
        patches=PATCHES,
        groups=1,
        base=0,
        position=PATCHES.corner(0),
        kernel_position=(1, 0),
        channel=0,
        repeat=repeat,
    )
    if unit is Im2Col:
        image = np.zeros((*instruction.shape, 4), np.uint16)
        model = compile_unit(Im2Col, config=config)
        result = run_im2col(model, config, [instruction], [image])
    else:
        zeros = [np.zeros((16 * repeat, 4), np.float16)]
        model = compile_unit(Col2Im, config=config, format="fp16", pipeline=2)
        result = run_col2im(model, config, [instruction], zeros, zeros)
    return int(result.output_cycles["o"][-1] - result.input_cycles["i"][0]) + 1


def view(buffer):
    return View(buffer, 0, "fp16", (), ())


@pytest.mark.parametrize(
    ("chip_name", "target", "rows"),
    [
        ("ascend310", "L0A", 8),
        ("ascend310", "UB", 4),
        ("ascend910", "L0B", 8),
        ("ascend910", "UB", 4),
        ("ascend310p", "L0B", 8),
        ("ascend310p", "UB", 4),
        ("ascend910b", "L0A", 4),
    ],
)
def test_loads(chip_name, target, rows):
    chip = load_chip(chip_name)
    core = Program(chip).core()
    for repeat in REPEATS:
        instr = core.im2col(view(target), view("L1"), PATCHES, repeat=repeat, mode=1)
        route = chip.route("L1", target, "im2col")
        cycles = (chip.timing(instr).period / 10**18 - float(route.init_s)) * float(chip.clock_hz)
        wanted = rtl_cycles(Im2Col, rows, repeat)
        # On the 910B the cycles until the first row overlap with the load before.
        hidden = Im2Col(config=sized(rows)).latency
        assert cycles == pytest.approx(wanted - hidden * (chip_name == "ascend910b"), rel=1e-9)


@pytest.mark.parametrize("chip_name", ["ascend310", "ascend310p", "ascend910"])
def test_additions(chip_name):
    chip = load_chip(chip_name)
    core = Program(chip).core()
    initial = chip.vector[""].init_s
    for repeat in REPEATS:
        instr = core.col2im(view("UB"), view("UB"), PATCHES, repeat=repeat)
        cycles = (chip.timing(instr).period / 10**18 - float(initial)) * float(chip.clock_hz)
        # The 310's measured vector rate, 174.06 GB/s, is 0.9999 of 256 bytes a cycle.
        assert cycles == pytest.approx(rtl_cycles(Col2Im, 8, repeat), rel=2e-4)
