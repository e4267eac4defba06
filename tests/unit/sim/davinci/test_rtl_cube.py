"""The compiled matrix unit as the Cube of DaVinci cores: golden's results, its own cycles."""

import numpy as np
import pytest

from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.kernels import matmul
from vitruvian.sim.kernels.tiling import Tiling
from vitruvian.sim.rtl.davinci import RtlCube

CHIP = load_chip("ascend310")

#: A smaller tile with the same number of terms per step: the same sums in more steps.
CONFIG = MatrixUnitConfig(m=2, n=2, k=16, precisions=("fp16", "int8"))


@pytest.fixture(scope="module")
def cube():
    return RtlCube(CONFIG)


@pytest.mark.parametrize(("dtype", "out"), [("fp16", "fp16"), ("fp16", "fp32"), ("int8", "int32")])
def test_products_are_golden_to_the_bit(cube, dtype, out):
    data = matmul.operands(40, 90, 50, dtype=dtype, seed=3)
    options = {"dtype": dtype, "out": out, "data": data, "tiling": Tiling(2, 2, 2, 2)}
    before = cube.products
    report = simulate(matmul.build(40, 90, 50, **options), cube=cube)
    assert not report.findings
    result = matmul.result(report.outputs["c"], 40, 50)
    assert result.tobytes() == matmul.expected(*data, out=out).tobytes()
    assert cube.products - before == 2 * 2 * 2 and cube.cycles > 0


def test_bit_patterns_of_every_kind(cube):
    rng = np.random.default_rng(11)
    a, b = (rng.integers(0, 1 << 16, (32, 32), np.uint16).view(np.float16) for _ in "ab")
    program = matmul.build(32, 32, 32, out="fp32", data=(a, b), cores=1)
    result = simulate(program, cube=cube).outputs["c"]
    golden = simulate(program).outputs["c"]
    assert np.isnan(golden).any() and result.tobytes() == golden.tobytes()


def test_time_is_that_of_the_hand_shake(cube):
    program = matmul.build(64, 64, 64, tiling=Tiling(1, 2, 1, 1), cores=1)
    instr = next(i for i in program.core().instructions if i.op == "mmad")
    seconds = cube.period_s(instr, CHIP)
    assert CHIP.cube is not None
    cycles = (seconds - CHIP.cube.init_s) * CHIP.clock_hz
    # One beat per cycle, since there are more tiles (32 · 32 of 2 × 2, 2 beats each) than stages.
    steps = 32 * 32 * 2
    assert cycles.denominator == 1 and steps <= cycles < steps + 32
    report = simulate(program, cube=cube, checks=False)
    slow = [
        report.times.end[n] - report.times.start[n]
        for n, _, i in report.instructions()
        if i.op == "mmad"
    ]
    assert {int(t) for t in slow} == {round(seconds * 10**18)}


def test_what_the_unit_cannot_do_is_said(cube):
    with pytest.raises(ValueError, match="dtype of mmad must be one of fp16, int8"):
        cube._precision("bf16")
    wrong = RtlCube(MatrixUnitConfig(m=2, n=2, k=4, precisions=("fp16",)))
    program = Program(CHIP)
    core = program.core()
    a, b = core.allocate("L0A", (256,), "fp16"), core.allocate("L0B", (256,), "fp16")
    instr = core.mmad(core.allocate("L0C", (256,), "fp32"), a, b, m=16, k=16, n=16, init="zero")
    assert instr.unit == Unit.M
    with pytest.raises(ValueError, match="unit must have 16 terms of fp16"):
        wrong.period_s(instr, CHIP)
