"""The cocotb benches of the sparse cores as rows of ``make sim``."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from vitruvian.hdl.catalogue import UNITS
from vitruvian.sim.bench.simulated import run_row
from vitruvian.sim.rtl.alias import unit_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

from . import bench_os

__all__ = ["checks"]

#: Share of the requested vectors; a round has as many columns.
SHARE = 1 / 2000


def _run_os(parameters: dict[str, Any], vectors: int, seed: int) -> Result:
    parameters = parameters | {"count": max(int(vectors * SHARE), 40)}
    unit = UNITS["sparse-os"]
    component, arguments = unit.component(unit.default(parameters["configuration"]))
    return run_row(unit_verilog(component, **arguments), bench_os.__name__, parameters, seed)


def checks() -> Iterator[Check]:
    """Yield a row for every configuration of the catalogue that is simulated cycle by cycle."""
    for configuration in UNITS["sparse-os"].simulated:
        label = "".join(f" {key}={value}" for key, value in configuration.items())
        yield Check(
            unit="sparse.OSCore",
            configuration=f"cocotb{label}: stalls, resets, rates",
            run=partial(_run_os, {"configuration": configuration}),
            weight=10,
        )
