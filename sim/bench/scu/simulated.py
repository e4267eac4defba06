"""The cocotb bench of the storage conversion unit as rows of ``make sim``."""

from collections.abc import Iterator

from vitruvian.sim.bench.simulated import SimulatedUnit
from vitruvian.sim.verify.check import Check

from . import bench_scu

#: An instruction has about 50 rows of fractals.
_UNITS = [
    SimulatedUnit(
        unit=unit,
        label=label,
        bench=bench_scu,
        share=1 / 10_000,
        least=8,
        weight=10,
        what="memory, stalls, resets, rates",
    )
    for unit, label in (("scu-im2col", "scu.Im2Col"), ("scu-col2im", "scu.Col2Im"))
]


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    for unit in _UNITS:
        yield from unit.checks()
