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

#: Repetitions of the two instructions of a kernel
_ROUNDS = 16


def two_transfers(chip: Chip | None = None) -> Counters:
    """Return the counters of Fig. 3a: MTE-GM loads A to L0A and B to L0B, and A is twice as large.

    Parameters
    ----------
    chip : Chip, optional
        A chip on which both paths have the same bandwidth; by default the Ascend 910.
    """
    nbytes = float(1 << 20)  # of B
    return _busy("two transfers", "MTE2", {"GM->L0A": 2 * nbytes, "GM->L0B": nbytes}, chip)


def mixed_precision(chip: Chip | None = None) -> Counters:
    """Return the counters of Fig. 3b: the Cube does as many operations in FP16 as in INT8.

    Parameters
    ----------
    chip : Chip, optional
        A chip whose Cube does twice as many INT8 operations per second; by default the Ascend 910.
    """
    operations = float(1 << 30)
    return _busy("mixed precision", "M", {"fp16": operations, "int8": operations}, chip)


def _busy(name: str, component: str, work: dict[str, float], chip: Chip | None) -> Counters:
    """Return the counters of an operator in which one component works all the time."""
    chip = load_chip("ascend910") if chip is None else chip
    part = components_of(chip)[component]
    busy = sum(amount / part.ceilings[item] for item, amount in work.items())
    return Counters(name, chip.name, "counters", busy, [Count(part, work, busy)])


def two_transfers_kernel(chip: Chip | None = None) -> Counters:
    """Simulate Fig. 3a on one core: in every round 64 KiB go to L0A and 32 KiB to L0B.

    Parameters
    ----------
    chip : Chip, optional
        By default the Ascend 910.
    """
    chip = load_chip("ascend910") if chip is None else chip
    program = Program(chip, "two transfers, simulated")
    a = program.tensor("a", (32768,), "fp16")
    b = program.tensor("b", (16384,), "fp16")
    core = program.core()
    l0a = core.allocate("L0A", a.shape, "fp16", "a")
    l0b = core.allocate("L0B", b.shape, "fp16", "b")
    for _ in range(_ROUNDS):
        core.copy(l0a, a)
        core.copy(l0b, b)
    return counters_of(simulate(program, cube=None, checks=False))


def mixed_precision_kernel(chip: Chip | None = None) -> Counters:
    """Simulate Fig. 3b on one core: in every round an FP16 and an INT8 product of the same size.

    Only times are computed, so the operands in L0A and L0B are never loaded.

    Parameters
    ----------
    chip : Chip, optional
        By default the Ascend 910.
    """
    chip = load_chip("ascend910") if chip is None else chip
    program = Program(chip, "mixed precision, simulated")
    core = program.core()
    # Each buffer holds an FP16 operand and an INT8 operand of half as many bytes.
    m, k, n = 128, 128, 128
    operands = {
        dtype: [
            core.allocate(buffer, (m * k,), dtype, f"{buffer} {dtype}") for buffer in ("L0A", "L0B")
        ]
        for dtype in ("fp16", "int8")
    }
    sums = {
        "fp16": core.allocate("L0C", (m * n,), "fp32", "sums of FP16"),
        "int8": core.allocate("L0C", (m * n,), "int32", "sums of INT8"),
    }
    for _ in range(_ROUNDS):
        for dtype, (a, b) in operands.items():
            core.mmad(sums[dtype], a, b, m=m, k=k, n=n)
    return counters_of(simulate(program, cube=None, checks=False))
