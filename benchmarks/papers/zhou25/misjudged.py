"""Two operators that the naive roofline misjudges, as counters and as simulated kernels.

In both, one component is busy all the time. The naive roofline reports 67 % and 33 % for its two
items, as each is idle while the other one runs. The component-based roofline reports 100 %.

The counters have no overheads, as in the figures. The kernels run on a chip, whose instructions
take some time to initialise, so their component reaches a little less than 100 %.

References
----------
Zhou et al. 2025, §2.3 (issues 2 and 3), Fig. 3, and the end of §4.2.
"""

from vitruvian.sim.davinci import Chip, Program, load_chip, simulate
from vitruvian.sim.roofline.components import components_of
from vitruvian.sim.roofline.counters import Count, Counters, counters_of


def two_transfers(chip: Chip | None = None, matrix_bytes: int = 1 << 20) -> Counters:
    """Return the counters of Fig. 3a: MTE-GM loads A to L0A and B to L0B, and A is twice as large.

    Parameters
    ----------
    chip : Chip, optional
        A chip on which both paths have the same bandwidth; by default the Ascend 910.
    matrix_bytes : int
        Bytes of B.
    """
    chip = load_chip("ascend910") if chip is None else chip
    engine = components_of(chip)["MTE2"]
    work = {"GM->L0A": 2.0 * matrix_bytes, "GM->L0B": 1.0 * matrix_bytes}
    busy = sum(nbytes / engine.ceilings[path] for path, nbytes in work.items())
    return Counters("two transfers", chip.name, "counters", busy, [Count(engine, work, busy)])


def mixed_precision(chip: Chip | None = None, operations: int = 1 << 30) -> Counters:
    """Return the counters of Fig. 3b: the Cube does as many operations in FP16 as in INT8.

    Parameters
    ----------
    chip : Chip, optional
        A chip whose Cube does twice as many INT8 operations per second; by default the Ascend 910.
    operations : int
        Operations of each precision.
    """
    chip = load_chip("ascend910") if chip is None else chip
    cube = components_of(chip)["M"]
    work = {"fp16": float(operations), "int8": float(operations)}
    busy = sum(count / cube.ceilings[precision] for precision, count in work.items())
    return Counters("mixed precision", chip.name, "counters", busy, [Count(cube, work, busy)])


def two_transfers_kernel(chip: Chip | None = None, rounds: int = 16) -> Counters:
    """Simulate Fig. 3a on one core: in every round 64 KiB go to L0A and 32 KiB to L0B.

    Parameters
    ----------
    chip : Chip, optional
        By default the Ascend 910.
    rounds : int
        Number of rounds.
    """
    chip = load_chip("ascend910") if chip is None else chip
    program = Program(chip, "two transfers, simulated")
    a = program.tensor("a", (32768,), "fp16")
    b = program.tensor("b", (16384,), "fp16")
    core = program.core()
    l0a = core.allocate("L0A", a.shape, "fp16", "a")
    l0b = core.allocate("L0B", b.shape, "fp16", "b")
    for _ in range(rounds):
        core.copy(l0a, a)
        core.copy(l0b, b)
    return counters_of(simulate(program, cube=None, checks=False))


def mixed_precision_kernel(chip: Chip | None = None, rounds: int = 16) -> Counters:
    """Simulate Fig. 3b on one core: in every round an FP16 and an INT8 product of the same size.

    Only times are computed, so the operands in L0A and L0B are never loaded.

    Parameters
    ----------
    chip : Chip, optional
        By default the Ascend 910.
    rounds : int
        Number of rounds.
    """
    chip = load_chip("ascend910") if chip is None else chip
    program = Program(chip, "mixed precision, simulated")
    core = program.core()
    # Each buffer holds an FP16 operand and an INT8 operand of half as many bytes.
    m, k, n = 128, 128, 128
    operands = {
        dtype: [core.allocate(buffer, (m * k,), dtype, f"{buffer} {dtype}") for buffer in _L0]
        for dtype in ("fp16", "int8")
    }
    sums = {
        "fp16": core.allocate("L0C", (m * n,), "fp32", "sums of FP16"),
        "int8": core.allocate("L0C", (m * n,), "int32", "sums of INT8"),
    }
    for _ in range(rounds):
        for dtype, (a, b) in operands.items():
            core.mmad(sums[dtype], a, b, m=m, k=k, n=n)
    return counters_of(simulate(program, cube=None, checks=False))


_L0 = ("L0A", "L0B")
