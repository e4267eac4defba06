"""Area and longest path of the extension of the vector unit, part by part.

    python benchmarks/vector_extension.py

The area flow maps every part onto the cells of vt45, for small area.
"""

from typing import Any

from vitruvian.flows.asic import sta
from vitruvian.flows.asic.cells import library
from vitruvian.flows.asic.synth import RELAXED_PS, SynthesisRecipe, synthesize
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.elaborate import to_rtlil
from vitruvian.hdl.fp.fma import FusedMultiplyAdd
from vitruvian.hdl.vector.config import VectorConfig
from vitruvian.hdl.vector.divsqrt import DivSqrt
from vitruvian.hdl.vector.integer import IntegerWord
from vitruvian.hdl.vector.recurrence import DigitRecurrence
from vitruvian.hdl.vector.slice import Slice


def measure(name: str, component: Any, count: int = 1) -> None:
    """Print a row: the area of ``count`` parts in um2, and the longest path in ns."""
    cells, recipe = library("vt45"), SynthesisRecipe()
    mapped = synthesize(
        to_rtlil(component), liberty=cells.path, targets_ps=(RELAXED_PS,), recipe=recipe
    )[RELAXED_PS]
    timing = sta.analyse(
        mapped.netlist,
        cells.cells,
        driving_cell=recipe.driving_cell,
        load_ff=recipe.load_ff,
    )
    area = count * mapped.area_um2
    print(f"{name:46} {area:9,.0f} um2 {(timing.delay_ps or 0) / 1000:6.2f} ns", flush=True)


if __name__ == "__main__":
    measure("divide: one recurrence", DigitRecurrence())
    for engines in (1, 4, 8):
        measure(f"divide: DivSqrt, {engines} recurrences", DivSqrt(engines=engines))
    measure("integer: 8 words", IntegerWord(), 8)
    for name, lanes in (("fp16", 8), ("fp32", 4)):
        spec = PRESETS["ieee"].spec(name, name, k=1)
        measure(f"fused: {lanes} lanes of {name}", FusedMultiplyAdd(spec=spec, pipeline=2), lanes)
    measure("slices: 8, all groups of the vector unit", Slice(config=VectorConfig(lanes=16)), 8)
