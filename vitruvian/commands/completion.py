"""Words that a shell completes: names where an option takes a name, files where it takes a file.

Each function imports what it needs, because a shell waits for the answer.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vitruvian.commands.listing import COMMANDS, GROUPS
from vitruvian.common.wings import registered


def _problems() -> Iterable[str]:
    from vitruvian.sim.graph_problems import GRAPH_PROBLEMS

    return GRAPH_PROBLEMS


def _algorithms() -> Iterable[str]:
    from vitruvian.sim.simd2.graph import ALGORITHMS

    return ALGORITHMS


def _machines() -> Iterable[str]:
    from vitruvian.golden.machines.table import machines

    rows = machines()
    return [*dict.fromkeys(row.machine for row in rows.values()), *rows]


def _presets() -> Iterable[str]:
    from vitruvian.golden.machines import PRESETS

    return PRESETS


def _formats() -> Iterable[str]:
    from vitruvian.golden.fp.catalogue import table

    return [str(row["name"]) for row in table()]


def _units() -> Iterable[str]:
    from vitruvian.flows.units import UNITS

    return UNITS


def _laid_out() -> Iterable[str]:
    from vitruvian.flows.units import known

    return known("layout")


def _powered() -> Iterable[str]:
    from vitruvian.flows.units import POWERED

    return POWERED


def _stimuli() -> Iterable[str]:
    from vitruvian.flows.asic.power.stimulus import STIMULI

    return STIMULI


def _routed() -> Iterable[str]:
    from vitruvian.flows.units import ROUTED

    return ROUTED


def _rows() -> Iterable[str]:
    from vitruvian.sim.verify.run import collect

    return sorted({check.unit for check in collect()})


def _instructions() -> Iterable[str]:
    from vitruvian.hdl.mma.unit import UNITS

    return UNITS


def _board_cores() -> Iterable[str]:
    from vitruvian.commands.board_options import board_options

    return board_options()["core"].samples()


def _boards() -> Iterable[str]:
    from vitruvian.flows.fpga.board import board_names

    return board_names()


def _families() -> Iterable[str]:
    from vitruvian.flows.fpga.mapping import FAMILIES

    return FAMILIES


def _proofs() -> Iterable[str]:
    from vitruvian.flows.formal.catalogue import PROOFS

    return [proof.name for proof in PROOFS]


def _probed() -> Iterable[str]:
    from vitruvian.flows.probes.kit import TARGETS

    return TARGETS


def _libraries() -> Iterable[str]:
    from vitruvian.flows.asic.cells import DRIVERS

    return DRIVERS


def _tasks() -> Iterable[str]:
    from vitruvian.sim.bench.exhaustive import tasks

    return [task.name for task in tasks()]


def _duplicates() -> Iterable[str]:
    from vitruvian.sim.simd2.graph import DUPLICATES

    return DUPLICATES


def _precisions() -> Iterable[str]:
    from vitruvian.hdl.cube import CONFIGS

    return sorted({name for config in CONFIGS.values() for name in config.precisions})


#: Names by command and attribute, or by attribute alone; wings register more.
_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "graph problem": _problems,
    "help word": lambda: (*GROUPS, *COMMANDS),
    "help unit": _units,
    "graph algorithm": _algorithms,
    "graph input": lambda: ("fp16", "fp32"),
    "graph backend": lambda: ("golden", "rtl"),
    "graph duplicates": _duplicates,
    "exhaustive task": _tasks,
    "host accuracy": lambda: [name for name in _presets() if name != "exact"],
    "host precision": _precisions,
    "preset": _presets,
    "machines names": _machines,
    "conformance machine": _machines,
    "formats format": _formats,
    "input": _formats,
    "verify unit": _rows,
    "list unit": _rows,
    "mma units": _instructions,
    **{f"{command} unit": _units for command in ("area", "timing", "bundle")},
    **{f"{command} unit": _routed for command in ("fpga", "verilog")},
    "layout unit": _laid_out,
    **{f"{command} unit": _units for command in ("new", "units")},
    "power unit": _powered,
    "power stimulus": _stimuli,
    "fpga family": _families,
    "fpga board": _boards,
    "board unit_core": _board_cores,
    "liberty": _libraries,
    "formal proof": _proofs,
    "probe target": _probed,
}


#: Endings of the files that may stand in the place of a name
_FILES = {
    "machines names": "npz",
    "liberty": "lib",
    "graph graph": "mtx",
}


def completed(
    prefix: str, action: argparse.Action, parsed_args: argparse.Namespace, **_: Any
) -> Iterable[str]:
    """Return the words that may stand at the place of ``action``; argcomplete calls this.

    Parameters
    ----------
    prefix : str
        First letters of the word.
    action : Action
        The option or the positional argument.
    parsed_args : Namespace
        Options in front of the word.
    """
    from argcomplete.completers import FilesCompleter

    name = action.dest
    # A name under its command comes first.
    keys = (f"{getattr(parsed_args, 'command', None)} {name}", name)
    if name.startswith("unit_") and keys[0] not in _NAMES:
        return _values(name.removeprefix("unit_"), parsed_args)
    names, files = dict(_NAMES), dict(_FILES)
    for module in registered("completion"):
        names |= module.NAMES
        files |= module.FILES
    words = next((list(names[key]()) for key in keys if key in names), list[str]())
    ending = next((files[key] for key in keys if key in files), None)
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if ending:
        words += FilesCompleter((ending,))(prefix)
    # The name of the value in the help says that it is a path.
    elif not words and ("FILE" in metavar or metavar in ("FOLDER", "PORT")):
        words += FilesCompleter()(prefix)
    return words


def show_unit_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Let a shell offer the options of the units among ``words``, or of all units.

    Help texts leave these options out, and a shell would too.
    """
    actions = [action for action in parser._actions if action.dest.startswith("unit_")]
    if actions:
        units = _chosen(words)
        for action in actions:
            if any(action.dest.removeprefix("unit_") in unit.options for unit in units):
                # argcomplete leaves out options whose help is suppressed.
                action.help = "an option of a unit"


def _chosen(words: Sequence[str]) -> list[Any]:
    """Return the units among ``words``, or all units if there is none."""
    from vitruvian.flows.units import ROUTED, UNITS

    return [ROUTED[word] for word in words if word in ROUTED] or list(UNITS.values())


def _values(name: str, given: argparse.Namespace) -> list[str]:
    """Return the names that an option of the given units takes, or of all units that have it."""
    if name == "rule":
        return list(_machines())
    units: str | list[str] = getattr(given, "unit", None) or []
    found: dict[str, None] = {}
    for unit in _chosen([units] if isinstance(units, str) else units):
        option = unit.options.get(name)
        # The help of an option that takes a name lists the names; other words in it are remarks.
        if option is not None and " | " in option.help:
            found |= {word: None for word in option.help.split(" | ") if " " not in word}
    return list(found)
