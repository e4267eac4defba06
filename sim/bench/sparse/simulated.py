"""The cocotb benches of the sparse cores and of the OEI pipeline as rows of ``make sim``."""

from collections.abc import Iterator

from vitruvian.sim.bench.simulated import SimulatedUnit
from vitruvian.sim.verify.check import Check

from . import bench_control, bench_ewise, bench_is, bench_oei, bench_os

#: A round has as many columns, beats or steps as ``count`` says.
_CORES = [
    SimulatedUnit(
        unit=unit,
        label=label,
        bench=bench,
        share=1 / 2000,
        least=40,
        weight=10,
        what="stalls, resets, rates",
    )
    for unit, label, bench in (
        ("sparse-os", "sparse.OSCore", bench_os),
        ("sparse-ewise", "sparse.EwiseCore", bench_ewise),
        ("sparse-is", "sparse.ISCore", bench_is),
    )
]
#: A round has as many passes.
_PIPELINE = [
    SimulatedUnit(
        unit=unit,
        label=label,
        bench=bench,
        share=1 / 20_000,
        least=4,
        weight=weight,
        what="stalls, resets, refusals",
    )
    for unit, label, bench, weight in (
        ("sparse-control", "sparse.PipelineControl", bench_control, 5),
        ("sparse-oei", "sparse.OEIPipeline", bench_oei, 30),
    )
]


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    for unit in (*_CORES, *_PIPELINE):
        yield from unit.checks()
