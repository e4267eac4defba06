"""Every barrier, flag and wait of the shipped kernels is deleted in turn; the checks notice it."""

import pytest

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.kernels import KERNELS

C310, C910B = load_chip("ascend310"), load_chip("ascend910b")

#: Kernels with their sizes, and the barriers that separate no dependent instructions: those around
#: measured instructions, that before the first piece or row, and that after the last.
SHIPPED = {
    "matmul": ((32, 32, 32), 0),
    "gemm": ((32, 48, 32), 0),
    "cubeKer": ((16, 32, 16), 0),
    "reluKer": ((3 * 4096,), 0),
    "cast-fp16-fp32": ((3 * 4096,), 0),
    "cast-fp32-fp16": ((3 * 4096,), 0),
    "cast-fp16-int32": ((3 * 4096,), 0),
    "cast-int8-fp16": ((3 * 4096,), 0),
    "softmax": ((3, 3), 1),
    "maxpool": ((3, 5, 2, 1), 0),
    "mte1A": ((2,), 1),
    "mte1B": ((2,), 1),
    "mte2": ((2, 1), 1),
    "mte3": ((2, 1), 1),
    "mte2+3Seq": ((2, 1), 6),
    "mte2+3Con": ((2, 1), 1),
    "cube": ((2,), 0),
    "cc2ub": ((2,), 0),
    "cc2ub+cast": ((2,), 0),
    "relu": ((2, 128), 0),
    "vadd": ((2, 128), 0),
    "vnot": ((2, 128), 0),
    "vmax": ((2, 128), 0),
    "cce-scale-add": ((3,), 0),
    "cce-softmax": ((3, 80), 4),
    "cce-cube": ((16, 16, 16), 0),
}
TILINGS = {"matmul": (2, 2, 2, 2), "gemm": (1, 1, 16, 16, 16, 2)}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_deleted_barrier_flag_or_wait_is_found(name):
    size, idle = SHIPPED[name]
    chip = C910B if name == "gemm" else C310
    tiling = TILINGS.get(name)
    program = KERNELS[name].build(size, chip=chip, cores=1, seed=1, tiling=tiling).program
    assert not check(program, strict=True)
    (core,) = (core for core in program if core.instructions)
    whole, unnoticed = list(core.instructions), []
    for i, instr in enumerate(whole):
        if instr.kind != Kind.NORMAL:
            core.instructions[:] = whole[:i] + whole[i + 1 :]
            if not check(program):
                unnoticed.append(instr.op)
    assert unnoticed == ["pipe_barrier"] * idle
