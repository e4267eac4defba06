"""The table of all commands, those of the core and those of the wings, and its texts."""

from collections.abc import Sequence

from vitruvian.common.wings import CliCommand, wings

#: Groups of commands, in the order of the help.
GROUPS = {
    "hardware": "units, their Verilog, area and proofs",
    "numbers": "formats, and the arithmetic of real matrix units",
    "cores": "simulated cores, their kernels and networks",
    "graphs": "problems on graphs and sparse matrices",
    "project": "this project's own pages",
}


def _core(module: str, group: str, text: str, *, main: bool = False) -> CliCommand:
    return CliCommand(module=f"vitruvian.commands.{module}", text=text, group=group, main=main)


def _commands() -> dict[str, CliCommand]:
    """Return the commands of the core and of the wings, group after group."""
    core = {
        "units": _core("hardware", "hardware", "list the units and their options", main=True),
        "verilog": _core("hardware", "hardware", "write units as Verilog", main=True),
        "new": _core(
            "hardware", "hardware", "write a folder to start from: Verilog, bench, board", main=True
        ),
        "area": _core("hardware", "hardware", "measure area and delay of units", main=True),
        "fpga": _core(
            "hardware", "hardware", "count cells on FPGAs, or make bitstreams", main=True
        ),
        "verify": _core("verify", "hardware", "compare compiled RTL with golden", main=True),
        "list": _core("verify", "hardware", "list the rows of verify, and the kernels"),
        "bundle": _core("hardware", "hardware", "write Verilog with golden vectors and a bench"),
        "timing": _core("hardware", "hardware", "measure the longest paths, cell by cell"),
        "power": _core("hardware", "hardware", "simulate gates with delays; energy and power"),
        "layout": _core("hardware", "hardware", "place and route a unit; GDS, checks, delay"),
        "cells": _core("hardware", "hardware", "list, write or compare the built-in cells"),
        "formal": _core("formal", "hardware", "prove properties of the RTL"),
        "exhaustive": _core("exhaustive", "hardware", "compare every input of the small units"),
        "mma": _core("mma", "hardware", "measure cycles and rates of matrix instructions"),
        "board": _core("host", "hardware", "simulate a board behind a pseudo-terminal"),
        "host": _core("host", "hardware", "solve a problem on a board at a serial port"),
        "machines": _core(
            "machines", "numbers", "list matrix units whose arithmetic is known", main=True
        ),
        "formats": _core(
            "formats", "numbers", "list number formats, or the values of one", main=True
        ),
        "probe": _core(
            "probe", "numbers", "write programs that probe a matrix unit; infer its rule", main=True
        ),
        "plans": _core("plans", "numbers", "list, record or fit how a GPU's library adds products"),
        "conformance": _core("conformance", "numbers", "write test vectors of a unit's rule"),
        "silicon": _core("silicon", "numbers", "compare golden and RTL with a GPU's outputs"),
        "graph": _core(
            "graph", "graphs", "solve a graph problem on a SIMD² matrix unit", main=True
        ),
        "help": _core("help", "project", "print this help; --all lists every command"),
        "docs": _core("hardware", "project", "write the generated parts of docs anew"),
    }
    every = dict(core)
    for wing in wings():
        every |= wing.commands
    # The sort is stable, so the commands of a group keep their order.
    order = list(GROUPS)
    return dict(sorted(every.items(), key=lambda item: order.index(item[1].group)))


#: Every command by name.
COMMANDS = _commands()


def overview() -> str:
    """Return the help of the whole command line: the main commands of each group, one screen."""
    lines = [
        "usage: vitruvian COMMAND …   (`vitruvian COMMAND --help` explains a command)",
        "",
        "Write, verify and measure matrix units; compute as GPUs do; simulate AI cores.",
        "",
    ]
    count = len(COMMANDS)
    main = {name: command for name, command in COMMANDS.items() if command.main}
    for group in GROUPS:
        names = [name for name, command in main.items() if command.group == group]
        for k, name in enumerate(names):
            lines.append(f"{'' if k else group:9} {name:9} {main[name].text}")
    lines += [
        "",
        f"`vitruvian help --all` lists all {count} commands, `vitruvian help GROUP` a group.",
        "Exit codes: 0 success, 1 a difference or a failed check, 2 a wrong argument,",
        "130 after Ctrl-C, 143 after SIGTERM. `vitruvian --version` prints the version.",
        "Example: vitruvian verify 'fp.*' --vectors 1000",
    ]
    return "\n".join(lines) + "\n"


def listing(groups: Sequence[str]) -> str:
    """Return the commands of ``groups``, keys of ``GROUPS``, a line each under their group."""
    wide = max(map(len, COMMANDS))
    parts = [
        "\n".join(
            [f"{group}: {GROUPS[group]}"]
            + [
                f"  {name:{wide}}  {command.text}"
                for name, command in COMMANDS.items()
                if command.group == group
            ]
        )
        for group in groups
    ]
    return "\n\n".join(parts) + "\n"
