"""The cocotb bench of the storage conversion unit as rows of ``make sim``."""

from vitruvian.sim.bench.simulated import SimulatedUnit, provider

from . import bench_scu

checks = provider(
    SimulatedUnit.each(
        [("scu-im2col", "scu.Im2Col", bench_scu, 10), ("scu-col2im", "scu.Col2Im", bench_scu, 10)],
        share=1 / 10_000,  # an instruction has about 50 rows of fractals
        minimum=8,
        what="memory, stalls, resets, rates",
    )
)
