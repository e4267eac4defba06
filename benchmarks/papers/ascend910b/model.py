"""The kernels of ``measured`` on a chip, and chip files without one of the causes of times."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.ascend910b.measured import Loads
from vitruvian.sim.davinci import Chip, Program, Unit
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered, lower_sequences
from vitruvian.sim.kernels.convolution.cube_core import lower_conv
from vitruvian.sim.kernels.convolution.shape import ConvShape
from vitruvian.sim.kernels.gemm import Blocking, lower_gemm
from vitruvian.sim.kernels.steps import cube_kind

#: Cube cores that load in ``loads``.
CORES = 24


@dataclass(frozen=True)
class Run:
    """The times of a kernel in microseconds.

    Attributes
    ----------
    total_us : float
        With the launch.
    busy_us : mapping of Unit to float
        Busy times of the units, as means over the cores.
    """

    total_us: float
    busy_us: Mapping[Unit, float]


def _run(chip: Chip, lowered: Lowered, streams: list[CoreStream]) -> Run:
    report = Report("910B", chip, lowered, streams, engine.run(lowered))
    busy = dict.fromkeys(Unit, 0.0)
    for row in report.units():
        busy[row.unit] += 1e6 * row.busy / len(streams)
    return Run(1e6 * report.total_s, busy)


def gemm(chip: Chip, m: int, k: int, n: int, blocking: Blocking | None = None) -> Run:
    """Run a matrix product."""
    return _run(chip, *lower_gemm(m, k, n, chip=chip, blocking=blocking))


def convolution(chip: Chip, size: tuple[int, int, int, int, int]) -> Run:
    """Run a convolution with the blocking of the published example."""
    images, channels, height, width, filters = size
    shape = ConvShape(
        images=images,
        channels=channels,
        height=height,
        width=width,
        filters=filters,
        kernel=(3, 3),
        pad=(1, 1, 1, 1),
    )
    return _run(chip, *lower_conv(shape, chip=chip))


def loads(chip: Chip, load: Loads) -> Run:
    """Run loads to two slots of L1 on all cores."""
    core = Program(chip, "loads").core(0, cube_kind(chip))
    x = core.program.tensor("x", (load.rows, load.columns), "fp16")
    slots = [core.allocate("L1", (x.size,), "fp16", "tile") for _ in "01"]
    for missed in ((-(-x.nbytes // load.sharers), load.sharers), (0, 1)):
        for slot in slots:
            core.nd2nz(slot, x, missed=missed)
    numbers = np.arange(load.tiles)
    found = numbers >= round(load.missing * load.tiles)
    sequence = numbers % 2 + 2 * found
    cores = {(core.kind.name, index): sequence for index in range(CORES)}
    return _run(chip, *lower_sequences(chip, core.instructions, cores))


def _without(*patterns: tuple[str, str]) -> Callable[[str], str]:
    """Return a function that replaces texts of a chip file, each of which must be there."""

    def change(text: str) -> str:
        for pattern, other in patterns:
            text, count = re.subn(pattern, other, text, flags=re.DOTALL)
            if not count:
                raise ValueError(f"chip file must contain {pattern!r}")
        return text

    return change


def with_fitted(text: str, latency_ns: float, launch_ns: float) -> str:
    """Return a chip file with other values of the two fitted numbers."""
    return _without(
        (r"(\[cache\]\nmib = \d+\nlatency_ns = )\d+", rf"\g<1>{latency_ns:g}"),
        (r"\nlaunch_ns = \d+", f"\nlaunch_ns = {launch_ns:g}"),
    )(text)


#: Changes of the chip file, each of which undoes one cause; the first undoes none.
CAUSES: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "MTE2 waits for the results before a flag": _without(
        (r"\nposted = \[[^\]]*\]", ""), (r', posted = "[^"]*"', "")
    ),
    "latency of `nd2nz` 96 ns": _without((r"\nlatency_ns = 239\n", "\nlatency_ns = 96\n")),
    "no cache": _without((r"\[cache\].*?\n\n", "")),
    "no bus to the memory": _without((r'(\[cache\].*?)bus = "hbm"', r'\g<1>bus = "memory"')),
    "reads and writes without losses": _without((r"4151", "4884"), (r"3246", "3818")),
    "no pipeline of M": _without((r"\ndrain_ns = 22\n", "\ndrain_ns = 0\n")),
    "FIX by bytes of L0C": _without((r'\ncounts = "written"', ""), (r'counts = "[^"]*", ', "")),
}
