"""The cocotb bench of the storage conversion unit as rows of ``make sim``."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from vitruvian.hdl.catalogue import UNITS
from vitruvian.sim.bench.simulated import run_row
from vitruvian.sim.rtl.alias import unit_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

from . import bench_scu

#: Share of the requested vectors; an instruction has about 50 rows of fractals.
SHARE = 1 / 10_000


def run_bench_row(parameters: dict[str, Any], vectors: int, seed: int) -> Result:
    """Run the bench on a unit; see ``bench_scu`` for the parameters."""
    parameters = parameters | {"count": max(int(vectors * SHARE), 8)}
    unit = UNITS[parameters["unit"]]
    component, arguments = unit.component(unit.default(parameters["configuration"]))
    design = unit_verilog(component, **arguments)
    return run_row(design, bench_scu.__name__, parameters, seed)


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    for name in ("scu-im2col", "scu-col2im"):
        unit = UNITS[name]
        for configuration in unit.simulated:
            component, _ = unit.component(unit.default(configuration))
            label = "".join(f" {key}={value}" for key, value in configuration.items())
            yield Check(
                unit=f"scu.{component.__name__}",
                configuration=f"cocotb{label}: memory, stalls, resets, rates",
                run=partial(run_bench_row, {"unit": name, "configuration": configuration}),
                weight=10,
            )
