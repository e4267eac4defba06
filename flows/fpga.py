"""Count the FPGA resources of a unit with Yosys: LUTs, carry cells, flip-flops and DSP blocks.

Yosys reads the same Verilog that ``flows.verilog`` exports and runs its own recipe for the FPGA
family on the flattened design. Nothing is placed or routed: the counts are those of the netlist.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version

from vitruvian.cache import ResultCache, digest
from vitruvian.errors import UserError
from vitruvian.flows import verilog
from vitruvian.hdl.catalogue.unit import Variant

__all__ = ["FAMILIES", "NOTE", "Resources", "count", "resources", "table"]

NOTE = (
    "Yosys synth_ecp5 and synth_xilinx -family xc7, flat, not placed; lut: LUT4, or LUT1 to LUT6 "
    "and SRL; carry: CCU2C (two LUT4 each), or CARRY4; dsp: MULT18X18D, or DSP48E1"
)

#: Family -> (Yosys recipe, cell names of each kind of resource). A carry cell of the ECP5 (CCU2C)
#: contains two LUT4; a carry cell of the 7 series (CARRY4) is separate from the LUTs.
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
    """The FPGA cells that a unit needs.

    Members
    -------
    lut : int
        LUT4 (ECP5), or LUT1 to LUT6 and shift registers that are made of LUTs (7 series).
    carry : int
        CCU2C (ECP5) or CARRY4 (7 series).
    ff : int
        Flip-flops, without those inside DSP blocks.
    dsp : int
        MULT18X18D (ECP5) or DSP48E1 (7 series).
    """

    lut: int
    carry: int
    ff: int
    dsp: int


def resources(
    variant: Variant, family: str, *, element: bool = False, cache: bool = True
) -> Resources:
    """Return the FPGA resources of ``variant``.

    Parameters
    ----------
    variant : Variant
    family : str
        A key of ``FAMILIES``.
    element : bool
        If True, count one processing element of a tile instead of the whole unit.
    cache : bool
        If True, reuse a stored result and store a new one.

    Raises
    ------
    UserError
        If ``element`` is True and the unit has no processing elements.
    SynthesisError
        If Yosys ends with an error.
    """
    text, top = verilog.emit(variant), variant.module
    if element:
        # All elements of a tile are instances of one module.
        match = re.search(r"(?m)^module (\w*element\w*)", text)
        if match is None:
            raise UserError(f"unit must be a tile with --element, not {variant.unit.name!r}")
        top = match[1]
    return count(text, top, family, cache=cache)


def count(text: str, top: str, family: str, *, cache: bool = True) -> Resources:
    """Return the FPGA resources of the module ``top`` of a Verilog text.

    Parameters
    ----------
    text : str
        Verilog of the whole design.
    top : str
        Name of the module to map.
    family : str
        A key of ``FAMILIES``.
    cache : bool
        If True, reuse a stored result and store a new one.

    Raises
    ------
    SynthesisError
        If Yosys ends with an error.
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
    counts = {kind: sum(cells.get(name, 0) for name in names) for kind, names in kinds.items()}
    return Resources(**counts)


def _run(text: str, script: list[str]) -> dict[str, int]:
    """Run the script and return cell name -> number of cells in the flattened design."""
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
    """Return one line of plain data for each variant and family: its names and ``Resources``.

    Parameters
    ----------
    variants, families : iterable
        The combinations to map; families are keys of ``FAMILIES``.
    element : bool
        If True, count one processing element of each tile.
    cache : bool
        If True, reuse stored results and store new ones.
    progress : callable
        Called before each mapping with (description, mappings done, mappings in total).
    """
    jobs = [(variant, family) for variant in variants for family in families]
    lines: list[dict[str, object]] = []
    for number, (variant, family) in enumerate(jobs):
        progress(f"map {variant.module} for {family}", number, len(jobs))
        counts = asdict(resources(variant, family, element=element, cache=cache))
        names = {"unit": variant.unit.name, "label": variant.label, "command": variant.arguments}
        lines.append({**names, "family": family, **counts})
    return lines
