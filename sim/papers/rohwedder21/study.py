"""The experiments of Rohwedder 2021, ch. 5, on the simulated chip: InceptionV3 and strides.

References
----------
Rohwedder 2021, §5.1 with Fig. 5.2, and §5.2 with Fig. 5.3.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from vitruvian.common.collector import paused_collector
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip, Kind, Program, Unit, simulate
from vitruvian.sim.kernels.pooling.build import Pooling, timed
from vitruvian.sim.kernels.pooling.layers import MEASURED
from vitruvian.sim.kernels.pooling.plan import METHODS

#: The parts of Fig. 5.2: the form of the kernel.
FIGURES = {
    "forward": {"argmax": False, "backward": False},
    "forward with mask": {"argmax": True, "backward": False},
    "backward": {"argmax": False, "backward": True},
}

#: Published speedups of Im2Col and Col2Im over direct pooling at the largest input of Fig. 5.2.
PUBLISHED = {"forward": 3.2, "forward with mask": 5.0, "backward": 5.8}

#: The methods that Fig. 5.3 shows, by stride. "strided" is ours.
SHOWN = {
    1: ("direct", "im2col", "expansion"),
    2: ("direct", "im2col", "expansion", "xy"),
    3: ("direct", "im2col", "expansion"),
}


@dataclass(frozen=True)
class PoolingRun:
    """A run of a kernel, or what its busiest core does.

    Attributes
    ----------
    figure : str
        A key of ``FIGURES``.
    method : str
        A key of ``pooling.METHODS``.
    side, groups, stride : int
        Height and width of the input, its groups of 16 channels, and the stride.
    tiles : int
        Tiles of an image of 16 channels.
    cycles : int
        Cycles of the chip's clock from the end of the launch to the end of the last instruction.
    vector, scu : int
        Vector instructions (Col2Im is one of them), and Im2Col loads, of a core.
    repeats : int
        Repeats of the vector instructions, each a cycle if nothing else takes longer.
    barriers : int
        Barriers of the vector unit.
    gm_bytes, im2col_bytes : int
        Bytes that the core moves from and to global memory, and by Im2Col.
    busy : dict of str to int
        Cycles in which each unit of the core is busy.
    """

    figure: str
    method: str
    side: int
    groups: int
    stride: int
    tiles: int
    cycles: int
    vector: int
    scu: int
    repeats: int
    barriers: int
    gm_bytes: int
    im2col_bytes: int
    busy: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the run in types that JSON can hold."""
        return asdict(self)


def inception(chip: Chip, ties: str = "first") -> Iterator[PoolingRun]:
    """Yield the runs of Fig. 5.2: three inputs of InceptionV3, three forms, all methods.

    All channels are pooled, by as many cores as there are groups of 16 channels or cores.

    Parameters
    ----------
    ties : {"first", "all"}
        The largest pixels that the mask has.
    """
    for figure, form in FIGURES.items():
        for layer in MEASURED:
            for method in METHODS:
                backward, argmax = form["backward"], form["argmax"]
                pooling = Pooling(
                    layer.patches(), 1, layer.groups, "max", method, backward, argmax, ties=ties
                )
                yield _run(figure, pooling, chip)


def largest(chip: Chip, ties: str = "first") -> Iterator[PoolingRun]:
    """Yield the runs of the published speedups: direct and Im2Col at the largest input.

    Parameters
    ----------
    ties : {"first", "all"}
        The largest pixels that the mask has.
    """
    layer = MEASURED[-1]
    for figure, form in FIGURES.items():
        backward, argmax = form["backward"], form["argmax"]
        for method in ("direct", "im2col"):
            pooling = Pooling(
                layer.patches(), 1, layer.groups, "max", method, backward, argmax, ties=ties
            )
            yield _run(figure, pooling, chip)


def strides(chip: Chip, kernel: int = 3) -> Iterator[PoolingRun]:
    """Yield the runs of Fig. 5.3: one image of 16 channels on one core, without padding.

    For the strides 1, 2 and 3 and each method, the side grows in steps of two up to the largest at
    which one tile holds the image.
    """
    for stride in (1, 2, 3):
        for method in METHODS:
            for side in range(kernel, largest_side(chip, method, stride, kernel) + 1, 2):
                yield _run("forward", _square(method, side, stride, kernel), chip)


def largest_side(chip: Chip, method: str, stride: int, kernel: int = 3) -> int:
    """Return the largest odd side of an image that needs one tile: the tiling threshold.

    Parameters
    ----------
    kernel : int
        Odd.
    """
    side = kernel
    while len(_square(method, side + 2, stride, kernel).plan(chip).tiles) == 1:
        side += 2
    return side


def _square(method: str, side: int, stride: int, kernel: int) -> Pooling:
    patches = Patches(height=side, width=side, kernel=(kernel, kernel), stride=(stride, stride))
    return Pooling(patches, method=method)


def _run(figure: str, pooling: Pooling, chip: Chip) -> PoolingRun:
    with paused_collector():
        program = timed(pooling, chip)
        report = simulate(program, cube=None, checks=False)
    busiest = max(program, key=lambda core: len(core.instructions))
    work = [i for i in busiest.instructions if i.kind == Kind.NORMAL]
    vector = [i for i in work if i.unit == Unit.V]
    clock = float(chip.clock_hz)
    return PoolingRun(
        figure=figure,
        method=pooling.method,
        side=pooling.patches.height,
        groups=pooling.groups,
        stride=pooling.patches.stride[0],
        tiles=len(pooling.plan(chip).tiles),
        cycles=round((report.total_s - float(chip.launch_s)) * clock),
        vector=len(vector),
        scu=sum(i.op == "im2col" for i in work),
        repeats=sum(i.work.repeats for i in vector),
        barriers=_barriers(program, busiest.index),
        gm_bytes=sum(i.work.nbytes for i in work if "GM" in i.path),
        im2col_bytes=sum(i.work.nbytes for i in work if i.op == "im2col"),
        busy={
            unit.unit.name: round(unit.busy * clock)
            for unit in report.units()
            if unit.core == str(busiest) and unit.busy
        },
    )


def _barriers(program: Program, core: int) -> int:
    return sum(i.kind == Kind.BARRIER for i in program.core(core).instructions)
