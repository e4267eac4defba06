"""The command ``run``: a graph problem on a SIMD² unit, or a kernel on DaVinci cores."""

import argparse
from functools import partial
from typing import Any

from vitruvian.commands import davinci, graphs, neighbours, series
from vitruvian.commands.options import add_json
from vitruvian.common.errors import UserError
from vitruvian.sim.graph_problems import GRAPH_PROBLEMS, PATH_PROBLEMS

#: Families of problems: options of one family are refused for the others. The text is for errors.
_FAMILIES = {
    "paths": f"a graph of {', '.join(PATH_PROBLEMS)}",
    "knn": "knn",
    "model": "--model",
    "kernel": "a DaVinci kernel",
    "series": series.PROBLEM,
    "neighbours": neighbours.PROBLEM,
}

_EXAMPLE = """Examples:
  vitruvian run apsp --graph roads.csv --route Bonn Ulm --out distances.csv
  vitruvian run matmul --size 256x256x256 --chip ascend310
  vitruvian run cubefx --functions sin,cos,tanh --input x.npy --out y.npy
  vitruvian run selbknn --train X.npy --query Q.npy --k 16 --out neighbours.npz"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Solve a graph problem on a SIMD² unit, or run a kernel on simulated DaVinci\n"
        "cores, and print the result with its cycles.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "problem",
        metavar="KERNEL",
        help=f"Run this graph problem ({', '.join(GRAPH_PROBLEMS)}), {series.PROBLEM} (Taylor "
        f"series of many functions), {neighbours.PROBLEM} (nearest neighbours), or DaVinci kernel; "
        "`vitruvian list` prints the names.",
    )
    add_json(parser, "the figures")
    belongs = graphs.add_options(parser)
    belongs |= series.add_options(parser)
    belongs |= neighbours.add_options(parser)
    belongs["method"] += ("neighbours",)
    belongs["out"] += ("neighbours",)
    davinci.add_options(parser)
    defaults: dict[str, Any] = {}
    # argparse has no public list of the options of a parser.
    for action in parser._actions:
        if action.option_strings and action.dest not in ("help", "json"):
            others = () if action.dest == "tiling" else ("series", "neighbours")
            belongs.setdefault(action.dest, ("kernel", *others))
            defaults[action.dest] = action.default
            action.help = (action.help or "").replace("%(default)s", str(action.default))
            # Without a default, an option has an attribute only if the user gave it.
            action.default = argparse.SUPPRESS
    parser.set_defaults(run=partial(_run, belongs=belongs, defaults=defaults))


def _run(
    options: argparse.Namespace, belongs: dict[str, tuple[str, ...]], defaults: dict[str, Any]
) -> int:
    """Refuse options of another family, then run the problem or the kernel.

    Parameters
    ----------
    belongs : dict of str to tuple of str
        Families that an option belongs to.
    defaults : dict of str to object
        Default of every option.
    """
    given = [name for name in defaults if hasattr(options, name)]
    for name in defaults.keys() - set(given):
        setattr(options, name, defaults[name])
    family = _family(options)
    if family == "neighbours":
        for name in neighbours.DEFAULTS.keys() - set(given):
            setattr(options, name, neighbours.DEFAULTS[name])
    if family:
        for name in given:
            if family not in belongs[name]:
                raise UserError(_refused(name, belongs[name], family, options.problem))
    archive = bool(options.out) and options.out.lower().endswith(".npz")
    if options.out and archive != (family == "neighbours"):
        endings = ".npz" if family == "neighbours" else ".npy, .csv or .mtx"
        raise UserError(f"--out of {options.problem} must end in {endings}, not {options.out!r}")
    runners = {"": davinci, "kernel": davinci, "series": series, "neighbours": neighbours}
    return runners.get(family, graphs).run(options)


def _family(options: argparse.Namespace) -> str:
    """Return the family of the problem; empty for an unknown kernel, which is refused later."""
    if options.problem in PATH_PROBLEMS:
        return "model" if options.model else "paths"
    if options.problem in GRAPH_PROBLEMS:
        return options.problem
    if options.problem == series.PROBLEM:
        return "series"
    if options.problem == neighbours.PROBLEM:
        return "neighbours"
    from vitruvian.sim.kernels import KERNELS

    return "kernel" if options.problem in KERNELS else ""


def _refused(name: str, allowed: tuple[str, ...], family: str, problem: str) -> str:
    """Return the message for an option that does not belong to the family of the problem."""
    if allowed == ("model",):
        allowed_text = ", ".join(PATH_PROBLEMS)
    else:
        # The problems of these families are DaVinci kernels, too.
        kernels = ("series", "neighbours") if "kernel" in allowed else ()
        allowed_text = ", or ".join(_FAMILIES[key] for key in allowed if key not in kernels)
    other = "--model" if family == "model" else problem
    return f"--{name.replace('_', '-')} must come with {allowed_text}, not with {other}"
