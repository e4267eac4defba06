"""Place and route a unit on a board: Yosys, nextpnr and the packer of the bitstream.

All tools come from PyPI; ``flows.fpga.nextpnr`` runs those that place, route and pack.
"""

import base64
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any

from vitruvian.common import extras
from vitruvian.common.cache import ResultCache, digest
from vitruvian.flows.fpga import carry_chains, mapping, memory_addresses, nextpnr
from vitruvian.flows.fpga.board import FpgaBoard, TooSmall
from vitruvian.flows.fpga.dsp_registers import absorb
from vitruvian.flows.fpga.netlist import Step, changed
from vitruvian.flows.fpga.wrapper import TOP, Top, ports_of
from vitruvian.flows.verilog import emit
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described

#: Frequency that the placer aims at if the design is wrapped, MHz. It is out of reach, so that the
#: placer treats the longest paths as urgent.
_AIM_MHZ = 400

#: LUTs of which a large design on an ECP5 has more; it gets another placer and router.
_MANY_LUTS = 10_000

#: A design is refused at once if its modules, mapped one by one, take so many times what a board
#: has. In one piece, designs were smaller by up to a half.
HOPELESS = 3.0

#: Family -> kind of resource -> nextpnr's names of sites -> resources that a used site takes. The
#: first name is that of the sites that are counted as available.
SITES: dict[str, dict[str, dict[str, float]]] = {
    "ecp5": {
        "lut": {"TRELLIS_COMB": 1},
        "ff": {"TRELLIS_FF": 1},
        "dsp": {"MULT18X18D": 1},
        "bram": {"DP16KD": 1},
    },
    "ice40": {
        "lut": {"ICESTORM_LC": 1},
        "dsp": {"ICESTORM_DSP": 1},
        "bram": {"ICESTORM_RAM": 1},
    },
    "gowin": {
        "lut": {"LUT4": 1, "ALU": 1},
        "ff": {"DFF": 1},
        "dsp": {"MULT18X18": 1, "MULT9X9": 0.5, "MULT36X36": 4},
        "bram": {"BSRAM": 1},
    },
}

#: Ending of the bitstream's file.
ENDINGS = {"ecp5": ".bit", "ice40": ".bin", "gowin": ".fs"}

#: Family -> kinds of cells through which nextpnr has no delays, so that its frequency is a bound.
_UNTIMED = {"ecp5": (), "ice40": ("dsp",), "gowin": ("dsp", "bram")}

_NAMES = {"lut": "LUTs", "ff": "flip-flops", "dsp": "DSP blocks", "bram": "memory blocks"}


@dataclass(frozen=True, kw_only=True)
class BoardDesign:
    """A unit under a top module for a board.

    Members
    -------
    name : str
        Name for files.
    board : FpgaBoard
    unit_text, top_text : str
        Verilog of the unit, and of the top module ``board_top``.
    widths : dict of str to int
        Ports of the top module without the clock -> bits.
    wrapped : bool
        True if the unit is in a registered wrapper.
    own_luts, own_ffs : int
        LUTs and flip-flops of the wrapper.
    by_module : bool
        True if the modules are mapped one by one. Yosys would merge equal registers of the elements
        of a flat design, and the only one left would drive wires across the whole chip.
    dense : bool
        True if the design would not fit without ``Family.dense``. Modules with many instances are
        mapped once, and all others in one piece.
    """

    name: str
    board: FpgaBoard
    unit_text: str
    top_text: str
    widths: Mapping[str, int]
    wrapped: bool
    own_luts: int
    own_ffs: int
    by_module: bool = False
    dense: bool = False


@dataclass(frozen=True, kw_only=True)
class RoutedDesign:
    """A routed design.

    Members
    -------
    fmax_mhz : float or None
        Highest clock frequency after routing, in nextpnr's model of the slowest chips, or None if
        it has no delays of any path between registers, which happens on Gowin.
    seed : int
        Seed of the placement.
    sites : dict of str to list of int
        nextpnr's name of a kind of site -> sites that are used and that exist.
    placement : list
        (kind, x, y) of each placed cell; the kind is nextpnr's name.
    bitstream : bytes
    path : list
        (kind, ns, name) of each step of the longest path: "clk-to-q", "logic", "routing" or
        "setup", its delay, and the net of a routing or the cell of another step.
    """

    fmax_mhz: float | None
    seed: int
    sites: dict[str, list[int]]
    placement: list[tuple[str, int, int]]
    bitstream: bytes
    path: list[tuple[str, float, str]]

    def used(self, family: str) -> dict[str, tuple[int, int]]:
        """Return kind of resource -> how many of it are used, and how many exist."""
        return {
            kind: (
                ceil(sum(self.sites[name][0] * weight for name, weight in names.items())),
                self.sites[next(iter(names))][1],
            )
            for kind, names in SITES[family].items()
        }


def design(variant: Variant, board: FpgaBoard, *, text: str | None = None) -> BoardDesign:
    """Return ``variant``, whose Verilog is ``text`` if that is known, under a top for ``board``."""
    text = emit.emit(variant, plain=True) if text is None else text
    component = only_described(variant.build())
    ports = ports_of(component)
    header = re.search(rf"(?s)^module {variant.module}\b.*?;", text, re.MULTILINE)
    assert header is not None
    controls = set(re.findall(r"\b(?:clk|rst)\b", header[0]))
    top = Top(module=variant.module, ports=ports, board=board, controls=controls)
    return BoardDesign(
        name=f"{variant.module}_{board.name}".replace("-", "_"),
        board=board,
        unit_text=text,
        top_text=top.text(),
        widths={name: len(signal) for name, signal in top.pins.items()},
        wrapped=top.wrapped,
        own_luts=top.own_luts,
        own_ffs=top.own_ffs,
        by_module=getattr(getattr(component, "config", None), "buffered", False),
        dense=getattr(component, "dense", False),
    )


def synth(work: BoardDesign, *, cache: bool = True) -> tuple[mapping.Resources, str]:
    """Return the resources of a design with its top module, and its netlist as JSON text.

    The modules of a large design are mapped one by one (``mapping.is_large``).

    Raises
    ------
    TooSmall
        If the board is too small for a design of that size.
    SynthesisError
        If Yosys ends with an error.
    """
    family = mapping.FAMILIES[work.board.family]
    text = f"{work.top_text}\n{work.unit_text}"
    if not (work.by_module or work.dense):
        counts = mapping.apart(text, TOP, work.board.family, cache=cache)
        if counts is not None:
            check_fit(counts, work, factor=HOPELESS)
            work = replace(work, by_module=mapping.is_large(counts, work.board.family))
    recipe = family.commands(TOP, by_module=work.by_module, dense=work.dense)
    if work.dense and family.dense:
        # A module with many instances is mapped once; the registers around it gain little else.
        many = " ".join(mapping.repeated(text))
        if many:
            recipe.insert(0, f"setattr -mod -set keep_hierarchy 1 {many}")
            recipe.append(f"setattr -mod -unset keep_hierarchy {many}")
    if work.by_module or work.dense:
        recipe += ["flatten", "opt_clean"]
    script = [*recipe, "write_json netlist.json"]
    store = ResultCache(kind="netlist", enabled=cache)
    passes = "4" if work.dense else "2"
    key = digest(text, "read_verilog design.v", *script, version("pyosys"), passes)
    netlist = store.get(key)
    if netlist is None:
        task = f"map {work.name}"
        netlist = mapping.run(text, script, "netlist.json", work.board.family, task=task)
        if work.board.family == "ecp5":
            netlist = changed(netlist, TOP, _steps(work))
        store.put(key, netlist)
    return mapping.Resources(**family.count(_cells(netlist))), netlist


def _steps(work: BoardDesign) -> list[Step]:
    """Return what is done on the netlist of a design for an ECP5 before nextpnr gets it."""
    steps: list[Step] = [absorb] if work.by_module or work.dense else []
    return [*steps, carry_chains.close, memory_addresses.tie] if work.dense else steps


def _cells(netlist: str) -> dict[str, int]:
    """Return cell name -> number of cells in the top module of a flat netlist."""
    cells: dict[str, int] = {}
    for cell in json.loads(netlist)["modules"][TOP]["cells"].values():
        cells[cell["type"]] = cells.get(cell["type"], 0) + 1
    return cells


def check_fit(counts: mapping.Resources, work: BoardDesign, *, factor: float = 1.0) -> None:
    """Raise TooSmall if these counts are more than ``factor`` times what the board has."""
    board = work.board
    needed = asdict(counts) | {"lut": counts.all_luts(board.family)}
    for kind, available in board.resources.items():
        if needed[kind] > factor * available:
            raise TooSmall(
                f"{board.name} must have {needed[kind]} {_NAMES[kind]} for {work.name}, not "
                f"{available}: {needed[kind] - available} too few"
            )


def route(
    work: BoardDesign,
    counts: mapping.Resources,
    netlist: str,
    *,
    seed: int = 1,
    clock_mhz: float | None = None,
    cache: bool = True,
    progress: Callable[[str], None] = lambda step: None,
) -> RoutedDesign:
    """Place and route a netlist and pack the bitstream.

    Parameters
    ----------
    counts, netlist : Resources, str
        Result of ``synth``.
    seed : int
        Seed of the placement.
    clock_mhz : float, optional
        Clock of an ECP5 that the router must reach. It takes wires apart until it does.
    cache : bool
        If True, reuse a stored result and store a new one.
    progress : callable
        Called with the name of each step.

    Raises
    ------
    TooSmall
        If nextpnr finds no site for a cell.
    WorkError
        If a tool ends with an error, or the router does not reach the clock in time.
    """
    nextpnr.check_tools(work.board.family)
    aim = _AIM_MHZ if work.wrapped else work.board.clock_mhz
    pins = constraints(work, clock_mhz)
    versions = nextpnr.versions(work.board.family)
    part = sorted(work.board.part.items())
    placing, options = _options(work, counts, reach=clock_mhz is not None)
    if placing:
        extras.check("scipy", "fpga")
    # Without a run that places, the key is what it was before there were such runs.
    ways = [list(options), list(placing)] if placing else list(options)
    key = digest(netlist, pins, part, seed, aim, versions, ways, "3" if placing else "2")
    store = ResultCache(kind="routed", enabled=cache)
    found: dict[str, Any] | None = store.get(key)
    if found is None:
        with tempfile.TemporaryDirectory(prefix="route-") as folder:
            try:
                found = nextpnr.place_and_route(
                    work.name,
                    work.board,
                    netlist,
                    pins,
                    folder=Path(folder),
                    seed=seed,
                    aim_mhz=aim,
                    options=options,
                    placing=placing,
                    progress=progress,
                )
            except TooSmall as error:  # it took as long as a success
                found = {"too_small": str(error)}
        store.put(key, found)
    if "too_small" in found:
        raise TooSmall(found["too_small"])
    data = base64.b64decode(found["bitstream"])
    placement = [(kind, x, y) for kind, x, y in found["placement"]]
    return RoutedDesign(
        fmax_mhz=found["fmax_mhz"],
        seed=seed,
        sites=found["sites"],
        placement=placement,
        bitstream=data,
        path=[(kind, delay, name) for kind, delay, name in found["path"]],
    )


def _options(
    work: BoardDesign, counts: mapping.Resources, *, reach: bool
) -> tuple[Sequence[str], Sequence[str]]:
    """Return nextpnr's options of a run that only places, none without one, and of the other run.

    For large designs, nextpnr's electrostatic placer takes half of the time and leaves shorter
    wires, and router2 does not stop at crowded places (docs/decisions/0021-dsp-registers.md). Small
    designs get the default. With ``reach``, the clock must be reached.
    """
    family = work.board.family
    more = nextpnr.RIPUP if reach else ()
    if work.dense and family == "ecp5":
        placing, routing = nextpnr.DENSE
        return placing, (*routing, *more)
    large = reach or work.by_module or counts.all_luts(family) > _MANY_LUTS
    return (), (*nextpnr.LARGE, *more) if large and family == "ecp5" else ()


def constraints(work: BoardDesign, clock_mhz: float | None = None) -> str:
    """Return the pins and the clock of the design in the notation of the family's tools.

    The clock is that of the board unless ``clock_mhz`` is given.
    """
    lines: list[str] = []
    mhz = f"{clock_mhz or work.board.clock_mhz:g}"
    for bit, (pin, standard) in work.board.located(work.widths).items():
        lines += {
            "ecp5": [
                f'LOCATE COMP "{bit}" SITE "{pin}";',
                f'IOBUF PORT "{bit}" IO_TYPE={standard};',
            ],
            "ice40": [f"set_io {bit} {pin}"],
            "gowin": [f'IO_LOC "{bit}" {pin};', f'IO_PORT "{bit}" IO_TYPE={standard};'],
            "xilinx7": [
                f"set_property -dict {{PACKAGE_PIN {pin} IOSTANDARD {standard}}} "
                f"[get_ports {{{bit}}}]"
            ],
        }[work.board.family]
    if work.board.family == "xilinx7":
        period = f"{1000 / work.board.clock_mhz:g}"
        lines.append(f"create_clock -period {period} -name clk [get_ports {{clk}}]")
    elif work.board.family == "ecp5":
        lines.append(f'FREQUENCY PORT "clk" {mhz} MHZ;')
    return "\n".join(lines) + "\n"


def is_bound(work: BoardDesign, counts: mapping.Resources) -> bool:
    """Return whether nextpnr's frequency is only an upper bound for this design.

    It has no delays of iCE40's and Gowin's multipliers, nor of Gowin's memory blocks.
    """
    return any(asdict(counts)[kind] for kind in _UNTIMED[work.board.family])
