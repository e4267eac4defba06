"""The units behind AXI ports as rows of ``make sim``, with protocol models of another author.

The rows need the package ``cocotbext-axi`` and are left out without it.
"""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.sim.bench.simulated import SHARE_OF_BEATS, run_row
from vitruvian.sim.rtl.emit import to_verilog
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

#: Unit -> module with its bench, and the parameter that is its number of commands or beats.
_BENCHES = {
    "axi-stream": ("vitruvian.sim.bench.bus.bench_stream", "commands", "bus.StreamUnit"),
    "axi-lite": ("vitruvian.sim.bench.bus.bench_lite", "beats", "bus.LiteUnit"),
}
#: An AXI4-Lite access takes several cycles, and a beat many accesses.
_MOST = {"axi-stream": 1000, "axi-lite": 40}


def _run(unit: str, configuration: dict[str, Any], vectors: int, seed: int) -> Result:
    module, count, _ = _BENCHES[unit]
    parameters = {"unit": unit, "configuration": configuration}
    parameters[count] = min(max(int(vectors * SHARE_OF_BEATS), 20), _MOST[unit])
    catalogued = UNITS[unit]
    component = Variant(catalogued, catalogued.default(configuration)).build()
    return run_row(to_verilog(component), module, parameters, seed)


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration."""
    if find_spec("cocotbext") is None or find_spec("cocotbext.axi") is None:
        return
    for name, (_, _, row) in _BENCHES.items():
        unit = UNITS[name]
        for configuration in unit.checked:
            label = Variant(unit, unit.default(configuration)).label
            yield Check(
                unit=row,
                configuration=f"cocotbext-axi {label} pauses, resets, mistakes",
                run=partial(_run, name, dict(configuration)),
                weight=12,
            )
