"""Every barrier, flag and wait of the shipped kernels is deleted in turn; the checks notice it."""

from collections import Counter, defaultdict, deque

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


def superfluous_pairs(program):
    """Count the sets that can go with their waits, and all of them, by source and target."""
    free, every = Counter(), Counter()
    for core in program:
        whole, sets = list(core.instructions), defaultdict(deque)
        for i, instr in enumerate(whole):
            triple = tuple(instr.fields.values()) if instr.kind in (Kind.SET, Kind.WAIT) else ()
            if instr.kind == Kind.SET:
                sets[triple].append(i)
            elif instr.kind == Kind.WAIT:
                j = sets[triple].popleft()
                units = f"{instr.fields['source'].name} to {instr.fields['target'].name}"
                core.instructions[:] = [x for n, x in enumerate(whole) if n not in (i, j)]
                every[units] += 1
                free[units] += not check(program, strict=True)
        core.instructions[:] = whole
    return free, every


#: The pairs that mark a buffer as full, and those that mark one as free again.
FULL = ("MTE2 to MTE1", "MTE1 to M", "M to V", "V to MTE3")
AGAIN = ("MTE1 to MTE2", "M to MTE1", "V to M", "MTE3 to V")


def test_pairs_of_a_set_and_its_wait_can_go_where_no_buffer_is_used_again():
    """The figures of docs/units/davinci_kernels.md: without a pair, the flags still match."""
    program = KERNELS["matmul"].build((96, 64, 80), chip=C310, data=False).program
    free, every = superfluous_pairs(program)
    assert every == dict.fromkeys(FULL, 2) | dict.fromkeys(AGAIN, 6)
    assert +free == Counter(dict.fromkeys(AGAIN, 6))  # 24 of 32
    tiling = (2, 2, 2, 2)
    program = KERNELS["matmul"].build((32, 32, 32), chip=C310, data=False, tiling=tiling).program
    free, every = superfluous_pairs(program)
    assert every == dict(zip((*FULL, *AGAIN), (8, 8, 4, 4, 12, 12, 8, 8), strict=True))
    assert +free == Counter(dict.fromkeys(AGAIN, 8))  # 32 of 64
