"""Count the FPGA resources of a unit with Yosys: LUTs, carry cells, flip-flops, DSPs, memories.

Yosys reads the plain text of ``flows.verilog.emit``, in the order of the netlist, and runs its own
recipe for the FPGA family on the flattened design, or on one module after the other if the design
is large. Nothing is placed or routed: the counts are those of the netlist.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from math import ceil

from vitruvian.common.cache import ResultCache, digest
from vitruvian.common.errors import UserError
from vitruvian.flows.verilog import emit
from vitruvian.flows.yosys import SynthesisError, run_yosys
from vitruvian.hdl.catalogue.unit import Variant

NOTE = (
    "Yosys synth_ecp5, synth_ice40 -device u -dsp, synth_gowin and synth_xilinx -family xc7, "
    "not placed; flat, or by module where these take more than 110 000 LUTs; lut: LUT4, or LUT1 to "
    "LUT6 on xilinx7, with those that are memory or shift registers; carry: CCU2C (two LUT4 each), "
    "SB_CARRY, ALU or CARRY4; dsp: MULT18X18D, SB_MAC16, MULT9X9 to MULT36X36 or DSP48E1; bram: "
    "blocks of 18, 4, 18 and 36 Kbit"
)

#: LUTs, with the modules mapped one by one, above which a design stays mapped like that. In one
#: piece it would be smaller as a rule, but take long, and it fits on no board of ours.
MOST_FLAT = 110_000

#: The kinds of resources, in the order of the columns of a table.
KINDS = ("lut", "carry", "ff", "dsp", "bram")
#: Instances from which a dense design maps a module once for all of them.
MANY = 4
#: ABC's steps for few LUTs: those of Yosys with ``&syn3`` before, and ``-a`` (area) for ``&if``.
#: Yosys puts its own options into the braces.
_SMALL = "&scorr;&sweep;&dc2;&syn3;&syn3;&dch,-f,-r;&ps;&if,{{W}},{{D}},{{R}},-v,-a;&mfs"


@dataclass(frozen=True, kw_only=True)
class Family:
    """The Yosys recipe of an FPGA family and the cells that it maps to.

    Members
    -------
    recipe : str
        Yosys command, without the name of the top module.
    cells : dict
        Kind of resource -> cell name, or pattern of names, -> resources that each such cell takes.
    carry_luts : int
        LUTs inside a carry cell, or that a carry cell displaces.
    before : tuple of str
        Yosys commands that go before the recipe if it ends in an error without them.
    dense : tuple of str
        Steps that save LUTs in designs that nearly fill a chip, with ``{top}`` for the name of the
        top module. They take the delay of a path for less important than its LUTs.
    """

    recipe: str
    cells: dict[str, dict[str, float]]
    carry_luts: int = 0
    before: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()

    def commands(self, top: str, *, by_module: bool = False, dense: bool = False) -> list[str]:
        """Return the Yosys commands that map the module ``top``.

        They leave a flat netlist or, with ``by_module``, the hierarchy of modules: equal modules
        are mapped once, without looking across their borders. With ``dense``, they save LUTs, and
        modules with the attribute ``keep_hierarchy`` are left.
        """
        if dense and self.dense:
            return [step.format(top=top) for step in self.dense]
        if not by_module:
            return [f"{self.recipe} -top {top}"]
        flat = " -flatten"  # an option of synth_xilinx; the other recipes have its opposite
        known = self.recipe.removesuffix(flat)
        apart = known if self.recipe.endswith(flat) else f"{known} -noflatten"
        return [f"{apart} -top {top}"]

    def count(self, cells: Mapping[str, int]) -> dict[str, int]:
        """Return kind -> resources that the cells (name -> number) take."""
        counts: dict[str, int] = {}
        for kind in KINDS:
            patterns = self.cells.get(kind, {})
            taken = (
                number * weight
                for name, number in cells.items()
                for pattern, weight in patterns.items()
                if fnmatchcase(name, pattern)
            )
            counts[kind] = ceil(sum(taken))
        return counts


#: Family -> its recipe and cells.
FAMILIES: dict[str, Family] = {
    "ecp5": Family(
        recipe="synth_ecp5",
        cells={
            "lut": {"LUT4": 1, "TRELLIS_DPR16X4": 4},
            "carry": {"CCU2C": 1},
            "ff": {"TRELLIS_FF": 1},
            "dsp": {"MULT18X18D": 1},
            "bram": {"DP16KD": 1, "PDPW16KD": 1},
        },
        carry_luts=2,
        # Without multiplexers of the slices, which cost two LUTs; with a delay that each path has
        # time for, ABC takes the smaller one of two forms.
        dense=(
            "synth_ecp5 -nowidelut -top {top} -run begin:map_luts",
            f"abc9 -maxlut 4 -W 300 -D 60000 -script +{_SMALL}",
            "clean",
            "synth_ecp5 -nowidelut -top {top} -run map_cells:edif",
        ),
    ),
    "ice40": Family(
        recipe="synth_ice40 -device u -dsp",
        cells={
            "lut": {"SB_LUT4": 1},
            "carry": {"SB_CARRY": 1},
            "ff": {"SB_DFF*": 1},
            "dsp": {"SB_MAC16": 1},
            "bram": {"SB_RAM40_4K*": 1},
        },
        # Yosys 0.70 ends its process in `ice40_dsp` when a product of operands without registers of
        # their own goes through two registers. One of them then stays outside the block.
        before=(
            "proc",
            "opt_clean",
            "setattr -set keep 1 t:$mul %co:+[Y] w:* %i %co:+[D] t:$*ff* %i %co:+[Q] w:* %i",
        ),
    ),
    "gowin": Family(
        recipe="synth_gowin",
        cells={
            "lut": {"LUT[1-4]": 1, "RAM16SDP4": 8, "RAM16SDP2": 4, "RAM16SDP1": 2},
            "carry": {"ALU": 1},
            "ff": {"DFF*": 1},
            # Two 9 x 9 multipliers share a site of 18 x 18; one of 36 x 36 takes four of them.
            "dsp": {"MULT9X9": 0.5, "MULT18X18": 1, "MULT36X36": 4},
            "bram": {"SP": 1, "SPX9": 1, "SDPB": 1, "SDPX9B": 1, "DPB": 1, "DPX9B": 1, "pROM*": 1},
        },
        carry_luts=1,
    ),
    "xilinx7": Family(
        recipe="synth_xilinx -family xc7 -flatten",
        cells={
            "lut": {
                "LUT[1-6]": 1,
                "SRL16E": 1,
                "SRLC32E": 1,
                "RAM32M": 4,
                "RAM64M": 4,
                "RAM*X1D": 2,
                "RAM*X1S": 1,
            },
            "carry": {"CARRY4": 1},
            "ff": {"FD[RSCP]E": 1},
            "dsp": {"DSP48E1": 1},
            "bram": {"RAMB18E1": 0.5, "RAMB36E1": 1},
        },
    ),
}


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The FPGA cells that a unit needs.

    Members
    -------
    lut : int
        LUTs, with those that are memory or shift registers, without those inside carry cells.
    carry : int
        Carry cells.
    ff : int
        Flip-flops, without those inside DSP blocks.
    dsp : int
        Multipliers; on Gowin, sites of a multiplier of 18 × 18 bits.
    bram : int
        Blocks of memory.
    """

    lut: int
    carry: int
    ff: int
    dsp: int
    bram: int

    def all_luts(self, family: str) -> int:
        """Return the LUTs of ``family``, with those of the carry cells."""
        return self.lut + FAMILIES[family].carry_luts * self.carry


def resources(
    variant: Variant, family: str, *, element: bool = False, cache: bool = True
) -> Resources:
    """Return the FPGA resources of ``variant``.

    Parameters
    ----------
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
    text, top = emit.emit(variant, plain=True), variant.module
    if element:
        # All elements of a tile are instances of one module.
        match = re.search(r"(?m)^module (\w*element\w*)", text)
        if match is None:
            raise UserError(f"unit must be a tile with --element, not {variant.unit.name!r}")
        top = match[1]
    counts = apart(text, top, family, cache=cache)
    if counts is not None and is_large(counts, family):
        return counts
    return count(text, top, family, cache=cache)


def repeated(text: str) -> list[str]:
    """Return the modules of a Verilog text that have ``MANY`` instances or more."""
    names = Counter(match[1] for match in re.finditer(r"(?m)^\s+(\w+) (?:#\(.*\) )?\w+ \(", text))
    return [m for m in re.findall(r"(?m)^module (\w+)", text) if names[m] >= MANY]


def apart(text: str, top: str, family: str, *, cache: bool = True) -> Resources | None:
    """Return the resources with the modules mapped one by one, or None if there is only one.

    This is quick, and an upper estimate of the design in one piece. The parameters and errors are
    those of ``count``.
    """
    modules = re.findall(r"(?m)^module (\w+)", text)
    instances = re.findall(rf"(?m)^\s+(?:{'|'.join(modules)}) (?:#\(.*\) )?\w+ \(", text)
    if len(instances) < 2:  # a top module around a unit that is one module counts as one, too
        return None
    return count(text, top, family, by_module=True, cache=cache)


def is_large(counts: Resources, family: str) -> bool:
    """Return whether a design with these resources, mapped by modules, should stay like that."""
    return counts.all_luts(family) > MOST_FLAT


def count(
    text: str, top: str, family: str, *, by_module: bool = False, cache: bool = True
) -> Resources:
    """Return the FPGA resources of the module ``top`` of a Verilog text.

    Parameters
    ----------
    text : str
        Verilog of the whole design.
    top : str
        Name of the module to map.
    family : str
        A key of ``FAMILIES``.
    by_module : bool
        If True, map equal modules once, which is faster for a tile and finds less to simplify.
    cache : bool
        If True, reuse a stored result and store a new one.

    Raises
    ------
    SynthesisError
        If Yosys ends with an error.
    """
    known = FAMILIES[family]
    script = [*known.commands(top, by_module=by_module), "tee -q -o stat.json stat -json"]
    store = ResultCache(kind="fpga", enabled=cache)
    key = digest(text, "read_verilog design.v", *script, version("pyosys"), "1")
    cells = store.get(key)
    if cells is None:
        cells = _cells(run(text, script, "stat.json", family, task="map the design"))
        store.put(key, cells)
    return Resources(**known.count(cells))


def run(text: str, script: Sequence[str], result: str, family: str, *, task: str) -> str:
    """Run a script on a Verilog text and return the text of the file that it writes.

    If Yosys ends with an error, the script runs once more behind ``Family.before``.

    Parameters
    ----------
    text : str
        Verilog of the whole design.
    script : sequence of str
        Commands of a ``Family``, and the command that writes ``result``.
    result : str
        Name of the file that the script writes.
    family : str
        A key of ``FAMILIES``.
    task : str
        Completes the error message "Yosys could not …".

    Raises
    ------
    SynthesisError
        If Yosys ends with an error.
    """
    read = "read_verilog design.v"
    try:
        return run_yosys("design.v", text, [read, *script], result, task=task)
    except SynthesisError:
        if not FAMILIES[family].before:
            raise
    script = [read, *FAMILIES[family].before, *script]
    return run_yosys("design.v", text, script, result, task=task)


def _cells(stat: str) -> dict[str, int]:
    """Return cell name -> number of cells in the whole design, by the text of ``stat -json``.

    The instances of modules that are left are among the names.
    """
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
