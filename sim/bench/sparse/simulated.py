"""The cocotb benches of the sparse cores and of the OEI pipeline as rows of ``make sim``."""

from vitruvian.sim.bench.simulated import SimulatedUnit, provider

from . import bench_control, bench_ewise, bench_is, bench_oei, bench_os

_CORES = SimulatedUnit.each(
    [
        ("sparse-os", "sparse.OSCore", bench_os, 10),
        ("sparse-ewise", "sparse.EwiseCore", bench_ewise, 10),
        ("sparse-is", "sparse.ISCore", bench_is, 10),
    ],
    share=1 / 2000,  # a round has as many columns, beats or steps as ``count`` says
    minimum=40,
    what="stalls, resets, rates",
)
_PIPELINE = SimulatedUnit.each(
    [
        ("sparse-control", "sparse.PipelineControl", bench_control, 5),
        ("sparse-oei", "sparse.OEIPipeline", bench_oei, 30),
    ],
    share=1 / 20_000,  # a round has as many passes
    minimum=4,
    what="stalls, resets, refusals",
)

checks = provider([*_CORES, *_PIPELINE])
