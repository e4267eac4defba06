"""What a unit takes on an FPGA: LUTs, carry cells, flip-flops and DSP blocks, by Yosys.

Yosys reads the Verilog that `flows.verilog` writes, the one that is shipped, and runs its own
recipe for the family, flat. Nothing is placed or routed: the counts are those of the netlist.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version

from vitruvian.cache import ResultCache, digest
from vitruvian.errors import UserError
from vitruvian.flows import verilog
from vitruvian.flows.unit import Variant

__all__ = ["FAMILIES", "NOTE", "Resources", "count", "resources", "table"]

NOTE = (
    "Yosys synth_ecp5 and synth_xilinx -family xc7, flat, not placed; lut: LUT4, or LUT1 to LUT6 "
    "and SRL; carry: CCU2C (two LUT4 each), or CARRY4; dsp: MULT18X18D, or DSP48E1"
)

#: By name: the recipe, and which cells are LUTs, carry cells, flip-flops and DSP blocks. A carry
#: cell of the ECP5 (CCU2C) has two LUT4 in it, one of the 7 series (CARRY4) stands beside LUTs.
FAMILIES: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "ecp5": (
        "synth_ecp5",
        {
            "lut": ("LUT4",),
            "carry": ("CCU2C",),
            "ff": ("TRELLIS_FF",),
            "dsp": ("MULT18X18D",),
        },
    ),
    "xilinx7": (
        "synth_xilinx -family xc7 -flatten",
        {
            "lut": ("LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "SRL16E", "SRLC32E"),
            "carry": ("CARRY4",),
            "ff": ("FDRE", "FDSE", "FDCE", "FDPE"),
            "dsp": ("DSP48E1",),
        },
    ),
}


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a unit takes.

    Members
    -------
    lut, carry, ff, dsp : int
        LUT4 and CCU2C, or LUT1 to LUT6 (and shift registers made of LUTs) and CARRY4; flip-flops;
        MULT18X18D or DSP48E1. Flip-flops inside DSP blocks are not counted.
    """

    lut: int
    carry: int
    ff: int
    dsp: int


def resources(
    variant: Variant, family: str, *, element: bool = False, cache: bool = True
) -> Resources:
    """Return what `variant`, or one element of a tile, takes on one of `FAMILIES`.

    Raises
    ------
    UserError
        An element is asked for, and the unit has none.
    """
    text, top = verilog.emit(variant), variant.module
    if element:
        found = re.search(r"(?m)^module (\w*element\w*)", text)
        if found is None:
            raise UserError(f"unit must be a tile with --element, not {variant.unit.name!r}")
        top = found[1]
    return count(text, top, family, cache=cache)


def count(text: str, top: str, family: str, *, cache: bool = True) -> Resources:
    """Return what the module `top` of a Verilog text takes on one of `FAMILIES`.

    Raises
    ------
    SynthesisError
        Yosys ended with an error.
    """
    recipe, kinds = FAMILIES[family]
    script = [
        "read_verilog design.v",
        f"{recipe} -top {top}",
        "tee -q -o stat.json stat -json",
    ]
    store = ResultCache(kind="fpga", enabled=cache)
    key = digest(text, *script, version("pyosys"), "1")
    cells = store.get(key)
    if cells is None:
        cells = _run(text, script)
        store.put(key, cells)
    found = {kind: sum(cells.get(name, 0) for name in names) for kind, names in kinds.items()}
    return Resources(**found)


def _run(text: str, script: list[str]) -> dict[str, int]:
    """Run the script and return the cells of the flat design."""
    stat = verilog.run_yosys("design.v", text, script, "stat.json", task="map the design")
    return {k: int(v) for k, v in json.loads(stat)["design"]["num_cells_by_type"].items()}


def table(
    variants: Iterable[Variant],
    families: Iterable[str],
    *,
    element: bool = False,
    cache: bool = True,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[dict[str, object]]:
    """Return a line for each variant and family: its names and `Resources`, as plain data."""
    wanted = [(variant, family) for variant in variants for family in families]
    lines: list[dict[str, object]] = []
    for number, (variant, family) in enumerate(wanted):
        progress(f"map {variant.module} for {family}", number, len(wanted))
        found = asdict(resources(variant, family, element=element, cache=cache))
        names = {"unit": variant.unit.name, "label": variant.label, "command": variant.arguments}
        lines.append({**names, "family": family, **found})
    return lines
