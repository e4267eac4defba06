"""The cocotb benches of the OEI pipeline and of its control as rows of ``make sim``."""

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

from vitruvian.hdl.catalogue import UNITS
from vitruvian.sim.bench.simulated import run_row
from vitruvian.sim.rtl.alias import unit_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

from . import bench_control, bench_oei

#: Share of the requested vectors; a round has as many passes.
SHARE = 1 / 20000

_BENCHES = (
    ("sparse-control", "sparse.PipelineControl", bench_control, 5),
    ("sparse-oei", "sparse.OEIPipeline", bench_oei, 30),
)


def _run(
    name: str, bench: ModuleType, parameters: dict[str, Any], vectors: int, seed: int
) -> Result:
    parameters = parameters | {"count": max(int(vectors * SHARE), 4)}
    unit = UNITS[name]
    component, arguments = unit.component(unit.default(parameters["configuration"]))
    return run_row(unit_verilog(component, **arguments), bench.__name__, parameters, seed)


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    for name, label, bench, weight in _BENCHES:
        for configuration in UNITS[name].simulated:
            text = "".join(f" {key}={value}" for key, value in configuration.items())
            yield Check(
                unit=label,
                configuration=f"cocotb{text}: stalls, resets, refusals",
                run=partial(_run, name, bench, {"configuration": configuration}),
                weight=weight,
            )
