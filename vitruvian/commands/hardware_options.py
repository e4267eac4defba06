"""Options of the commands that measure and export hardware: allowed values and help texts."""

import argparse
import textwrap
from functools import partial
from typing import Any

from vitruvian.commands.options import (
    add_jobs,
    add_json,
    add_liberty,
    add_markdown,
    add_no_cache,
    add_seed,
    add_shapes,
    add_svg,
    at_least,
)
from vitruvian.commands.quantities import delay_ps, load_ff, period_ns
from vitruvian.common.files import output_path
from vitruvian.common.validate import refusal
from vitruvian.flows.asic.gates import LEAST
from vitruvian.flows.asic.measure import TARGETS_PS
from vitruvian.flows.asic.power.stimulus import STIMULI
from vitruvian.flows.fpga import mapping
from vitruvian.flows.fpga.board import board_names
from vitruvian.flows.units import UNITS, known
from vitruvian.hdl.catalogue.unit import Unit


def described(unit: Unit, width: int = 96) -> str:
    """Return a paragraph about a unit: its options, their allowed values and their defaults.

    Parameters
    ----------
    width : int
        Largest length of a line, characters.
    """
    lines = [f"{unit.name}: {unit.summary}"]
    defaults = unit.default({})
    for name, option in unit.options.items():
        switch, default = f"--{name.replace('_', '-')}", defaults.get(name)
        if option.flag:
            text = f"{option.help} (default: off)."
        else:
            # ``flows.units`` stores the multiplier booth as None.
            inherited = "booth" if name == "multiplier" else "given by the other options"
            known = inherited if default is None else default
            text = f"{option.help} (default: {known})."
        indent = " " * 6
        lines += textwrap.wrap(
            f"  {switch}: {text}", width, subsequent_indent=indent, break_on_hyphens=False
        )
    return "\n".join(lines)


def add_command(name: str, commands: Any) -> argparse.ArgumentParser:
    """Add the command ``name`` with its options to ``commands`` and return its parser."""
    text, example, adders = _COMMANDS[name]
    epilog = f"Example: vitruvian {name} {example}".rstrip()
    command: Any = commands.add_parser(name, description=text, epilog=epilog)
    for add in adders:
        add(command)
    if _add_unit_options in adders or _add_new_options in adders:
        place = "NAME UNIT" if name == "new" else "UNIT"
        command.explain = partial(_explain, command, f"vitruvian {name} {place} --help")
    return command


def _explain(command: argparse.ArgumentParser, line: str, given: argparse.Namespace) -> None:
    """Add to the help the options of the units before --help, or the list of units."""
    # The command ``new`` takes one unit, the others any number.
    unit: str | list[str] = given.unit or []
    names = [unit] if isinstance(unit, str) else list(dict.fromkeys(unit))
    units = known(line.split()[1])
    for name in names:
        if name not in units:
            command.error(refusal("unit", name, units))
    if names:
        text = "Options of the unit; they take one value, a list (4,8) or a range (0-3):\n\n"
        text += "\n".join(described(units[name]) for name in names)
    else:
        wide = max(map(len, units))
        listed = "\n".join(f"  {name:{wide}}  {unit.summary}" for name, unit in units.items())
        text = f"Units (`{line}` explains the options of one):\n\n{listed}"
    command.epilog = f"{text}\n\n{command.epilog}"


def _add_area_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--modules", action="store_true", help="Synthesise every module on its own."
    )


def _add_timing_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--path", action="store_true", help="Print the longest path cell by cell.")


def _add_fpga_options(command: argparse.ArgumentParser) -> None:
    # ``_variants`` reads this attribute, for which the command has no option.
    command.set_defaults(all=False)
    command.add_argument(
        "--family",
        metavar="NAME",
        help=f"Map onto these families: {', '.join(mapping.FAMILIES)} (default: all, with commas).",
    )
    command.add_argument(
        "--board",
        metavar="NAME",
        help="Place and route on these boards, or write a Vivado project and estimate: "
        f"{', '.join(board_names())} (with commas). Without a unit, take the board's own design; "
        "multipliers are dsp unless --multiplier says otherwise.",
    )
    command.add_argument(
        "--seed",
        type=at_least(0, 2**63 - 1),
        metavar="N",
        help="Start the placement at this seed (default: 1).",
    )
    command.add_argument(
        "--seeds",
        type=at_least(1, 100),
        metavar="N",
        help="Place with this many seeds, from --seed on, and take the fastest (default: 1).",
    )
    command.add_argument(
        "--clock",
        type=at_least(1, 400),
        metavar="MHZ",
        help="Route until this clock is reached, for large tiles on an ECP5; if it is not reached "
        "in 30 minutes, the exit code is 1.",
    )
    command.add_argument(
        "--bitstream",
        action="store_true",
        help="Store the bitstream, with the Verilog and the pins of the design.",
    )
    command.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the bitstream or the Vivado project into this folder (default: build/fpga).",
    )
    add_svg(command, "the floorplan", data=True)
    command.add_argument(
        "--path", action="store_true", help="Print the longest path of every routed design."
    )
    command.add_argument(
        "--element", action="store_true", help="Count one element of a tile, not all of them."
    )
    add_no_cache(command, "synthesise again")


def _add_verilog_options(command: argparse.ArgumentParser) -> None:
    # Writing Verilog takes little time even for units that are too large to measure by default.
    command.set_defaults(all=True)
    command.add_argument(
        "--out",
        type=output_path(folder=True, stdout=True),
        default="build/verilog",
        metavar="FOLDER",
        help="Write the files into this folder (- for standard output; default: %(default)s).",
    )
    add_no_cache(command, "generate the Verilog again")


def _add_bundle_options(command: argparse.ArgumentParser) -> None:
    # The golden vectors take long to import, and only this command needs them.
    from vitruvian.flows.verilog.bundle import VECTORS
    from vitruvian.sim.bench.vectors import LEAST

    command.set_defaults(all=True)
    command.add_argument(
        "--out",
        type=output_path(folder=True),
        default="build/bundle",
        metavar="FOLDER",
        help="Write a folder for each configuration into this folder (default: %(default)s).",
    )
    command.add_argument(
        "--vectors",
        type=at_least(LEAST, 100_000),
        default=VECTORS,
        metavar="N",
        help="Take about this many expected results (default: %(default)s).",
    )
    command.add_argument(
        "--force",
        action="store_true",
        help="Replace files of an earlier bundle that differ from those that are written.",
    )
    add_seed(command)


def _add_new_options(command: argparse.ArgumentParser) -> None:
    # ``_variants`` reads this attribute, for which the command has no option.
    command.set_defaults(all=False)
    command.add_argument(
        "name", metavar="NAME", help="Call the folder this; its Verilog module has _ for -."
    )
    command.add_argument(
        "unit",
        nargs="?",
        metavar="UNIT",
        help="Take this unit of the list below (default: cube --preset tiny).",
    )
    _add_switches(command)
    command.add_argument(
        "--out",
        type=output_path(folder=True),
        default=".",
        metavar="FOLDER",
        help="Write the new folder into this folder (default: the current one).",
    )
    command.add_argument(
        "--replace", action="store_true", help="Overwrite the files of an earlier folder."
    )


def _add_list_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "unit",
        nargs="*",
        metavar="UNIT",
        help=f"List these units: {', '.join(UNITS)} (default: every unit).",
    )


def _add_docs_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--check",
        action="store_true",
        help="Write nothing; report whether the files are up to date.",
    )


def _add_cells_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out",
        type=output_path(stdout=True),
        metavar="FILE",
        help="Write the library as liberty to this file (- for standard output).",
    )
    command.add_argument(
        "--compare", action="store_true", help="Compare with Nangate45 on our units."
    )
    add_markdown(command, "the comparison")


def _add_json(command: argparse.ArgumentParser) -> None:
    add_json(command, "the results")


def _add_unit_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "unit",
        nargs="*",
        metavar="UNIT",
        help="Take these units of the list below (default: every unit).",
    )
    _add_switches(command)


def _add_switches(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config",
        metavar="FILE",
        help="Take the unit and its options from this TOML file; other options add to them.",
    )
    flags: dict[str, bool] = {}
    for unit in known(command.prog.split()[-1]).values():
        for name, option in unit.options.items():
            # Several units have an option of the same name, but argparse accepts it only once.
            flags[name] = flags.get(name, False) or option.flag
    for name, is_flag in flags.items():
        switch, target = f"--{name.replace('_', '-')}", f"unit_{name}"
        hidden = argparse.SUPPRESS  # the epilog explains the options unit by unit
        if is_flag:
            command.add_argument(switch, dest=target, action="store_true", help=hidden)
        else:
            command.add_argument(switch, dest=target, metavar="…", help=hidden)


def _add_measure_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--all",
        action="store_true",
        help="Also measure the largest units, which are otherwise measured only by name.",
    )
    command.add_argument(
        "--whole",
        action="store_true",
        help="Synthesise each unit in one piece, so that no path is cut.",
    )
    command.add_argument(
        "--tile",
        action="store_true",
        help="Put the modules of each unit together, insert buffers between them, and time the "
        "whole unit.",
    )
    add_liberty(command)
    command.add_argument(
        "--delay-target",
        type=delay_ps,
        action="append",
        metavar="PS",
        help="Give ABC this delay target in ps; may be repeated "
        f"(default: {' and '.join(map(str, TARGETS_PS))}).",
    )
    _add_surroundings(command)
    add_jobs(command)
    add_no_cache(command, "synthesise again")
    command.add_argument(
        "--baseline", action="store_true", help="Compare with the checked-in figures."
    )
    command.add_argument(
        "--update-baseline", action="store_true", help="Replace the checked-in figures by these."
    )
    add_markdown(command, "the table")
    add_svg(command, "a bar chart")


def _add_surroundings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--driving-cell",
        metavar="CELL",
        help="Drive every input with this cell (default: BUF_X4, sg13g2: sg13g2_buf_4).",
    )
    command.add_argument(
        "--load",
        type=load_ff,
        default=5.0,
        metavar="FF",
        help="Load every output with this capacitance in fF (default: 5).",
    )
    command.add_argument(
        "--adders",
        action="store_true",
        help="Use the full adders of the library, which the usual recipe does not.",
    )
    command.add_argument(
        "--clock-gates",
        action="store_true",
        help=f"Gate the clock of registers with an enable, if at least {LEAST} share it.",
    )


def _add_power_options(command: argparse.ArgumentParser) -> None:
    # ``_variants`` reads this attribute, for which the command has no option.
    command.set_defaults(all=False)
    add_liberty(command)
    command.add_argument(
        "--delay-target",
        type=delay_ps,
        action="append",
        metavar="PS",
        help=f"Give ABC this delay target in ps; may be repeated (default: {TARGETS_PS[-1]}).",
    )
    _add_surroundings(command)
    command.add_argument(
        "--period",
        type=period_ns,
        metavar="NS",
        help="Clock the unit with this period in ns (default: its longest path).",
    )
    command.add_argument(
        "--stimulus",
        default="uniform,relu",
        metavar="NAME",
        help=f"Take these operands: {', '.join(STIMULI)} (default: %(default)s, with commas).",
    )
    command.add_argument(
        "--cycles",
        type=at_least(1, 1_000_000),
        default=1000,
        metavar="N",
        help="Count the energy of N cycles (default: %(default)s).",
    )
    command.add_argument(
        "--idle",
        type=at_least(0, 99),
        default=0,
        metavar="N",
        help="Leave N percent of the cycles without new operands (default: %(default)s).",
    )
    add_seed(command)
    add_no_cache(command, "synthesise again")
    add_markdown(command, "the table")


def _add_layout_options(command: argparse.ArgumentParser) -> None:
    command.set_defaults(all=True)
    add_shapes(command)
    command.add_argument(
        "--delay-target",
        type=delay_ps,
        action="append",
        metavar="PS",
        help=f"Give ABC this delay target in ps (default: {TARGETS_PS[-1]}).",
    )
    _add_surroundings(command)
    command.add_argument(
        "--utilisation",
        type=at_least(10, 95),
        default=70,
        metavar="N",
        help="Fill the rows with cells to N percent (default: %(default)s).",
    )
    command.add_argument(
        "--out",
        type=output_path(folder=True),
        default="build/layout",
        metavar="FOLDER",
        help="Write DEF, GDS, picture and figures into this folder (default: %(default)s).",
    )
    command.add_argument(
        "--power",
        action="store_true",
        help="Simulate the energy of a dot product with the wires, too.",
    )
    add_no_cache(command, "synthesise again")


#: Command -> (description, arguments of an example, functions that add its options).
_COMMANDS = {
    "area": (
        "Measure area and delay of units, module by module.",
        "dot --preset a100 --k 4,8 --pipeline 0-3",
        (_add_unit_options, _add_measure_options, _add_area_options, _add_json),
    ),
    "timing": (
        "Measure the longest paths of units by class, or cell by cell.",
        "intdot --k 16 --path",
        (_add_unit_options, _add_measure_options, _add_timing_options, _add_json),
    ),
    "power": (
        "Simulate the gates of dot products with their delays, and add up the energy.",
        "dot --preset a100 --k 8 --pipeline 3 --liberty nangate45",
        (_add_unit_options, _add_power_options, _add_json),
    ),
    "layout": (
        "Place and route one unit in Nangate45 or SG13G2, write DEF and GDS, and check the GDS.",
        "intdot --k 4 --out build/layout",
        (_add_unit_options, _add_layout_options, _add_json),
    ),
    "fpga": (
        "Count the cells of units on FPGAs, or place and route them on boards.",
        "dot --k 8 --multiplier booth,dsp",
        (_add_unit_options, _add_fpga_options, _add_json),
    ),
    "verilog": (
        "Write units as Verilog.",
        "cube --preset tiny --m 4",
        (_add_unit_options, _add_verilog_options, _add_json),
    ),
    "bundle": (
        "Write units as Verilog with golden vectors and a bench that needs no Python.",
        "dot --preset a100 --k 4",
        (_add_unit_options, _add_bundle_options, _add_json),
    ),
    "new": (
        "Write a folder to start from: configuration, Verilog, golden vectors, bench, board top.",
        "my-unit cube --m 4 --n 4 --k 4 --precisions fp16-int8",
        (_add_new_options, _add_json),
    ),
    "units": (
        "List units, their options and the configurations that are reported.",
        "dot",
        (_add_list_options, _add_json),
    ),
    "cells": (
        "List the built-in cells, write them as liberty, or compare them.",
        "--compare",
        (_add_cells_options, _add_json),
    ),
    "docs": (
        "Regenerate the generated parts of docs/units, and the generated pages of docs/api.",
        "--check",
        (_add_docs_options,),
    ),
}
