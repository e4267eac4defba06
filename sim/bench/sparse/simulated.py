"""The cocotb benches of the sparse cores as rows of ``make sim``."""

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

from vitruvian.hdl.catalogue import UNITS
from vitruvian.sim.bench.simulated import run_row
from vitruvian.sim.rtl.alias import unit_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

from . import bench_ewise, bench_is, bench_os

#: Share of the requested vectors; a round has as many columns, beats or steps.
SHARE = 1 / 2000
#: The core of each unit in the names of rows, and its bench.
_BENCHES = {
    "sparse-os": ("OSCore", bench_os),
    "sparse-ewise": ("EwiseCore", bench_ewise),
    "sparse-is": ("ISCore", bench_is),
}


def _run(
    name: str, bench: ModuleType, parameters: dict[str, Any], vectors: int, seed: int
) -> Result:
    parameters = parameters | {"count": max(int(vectors * SHARE), 40)}
    unit = UNITS[name]
    component, arguments = unit.component(unit.default(parameters["configuration"]))
    return run_row(unit_verilog(component, **arguments), bench.__name__, parameters, seed)


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    for name, (core, bench) in _BENCHES.items():
        for configuration in UNITS[name].simulated:
            label = "".join(f" {key}={value}" for key, value in configuration.items())
            yield Check(
                unit=f"sparse.{core}",
                configuration=f"cocotb{label}: stalls, resets, rates",
                run=partial(_run, name, bench, {"configuration": configuration}),
                weight=10,
            )
