"""The command ``graph``: a problem on a graph or on points, solved on a SIMD² unit."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from vitruvian.commands.options import add_json, at_least, lanes
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.validate import one_of
from vitruvian.sim.graph_problems import GRAPH_PROBLEMS, NEAREST_NEIGHBOURS, PATH_PROBLEMS

#: Function that adds an option, given its name, its families, and the arguments of argparse.
_Add = Callable[..., None]

#: Families of problems: options of one family are refused for the others. The text is for errors.
_FAMILIES = {
    "paths": f"a graph of {', '.join(PATH_PROBLEMS)}",
    "knn": NEAREST_NEIGHBOURS,
    "model": "--model",
}

_EXAMPLES = """Examples:
  vitruvian graph apsp --graph roads.csv --route Bonn Ulm --out distances.csv
  vitruvian graph knn --graph points.mtx --neighbours 3
  vitruvian graph mst --model"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Solve a graph problem on a SIMD² matrix unit, and print the result with its\n"
        "instructions and cycles.",
        epilog=_EXAMPLES,
    )
    titles = ", ".join(f"{problem} ({title})" for problem, title in PATH_PROBLEMS.items())
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        help=f"Solve this problem: {titles}, or {NEAREST_NEIGHBOURS} (nearest neighbours).",
    )
    add_json(parser, "the figures")
    belongs = _add_options(parser)
    defaults: dict[str, Any] = {}
    # argparse has no public list of the options of a parser.
    for action in parser._actions:
        if action.dest in belongs:
            defaults[action.dest] = action.default
            # Without a default, an option has an attribute only if the user gave it.
            action.default = argparse.SUPPRESS
    parser.set_defaults(run=partial(_run, belongs=belongs, defaults=defaults))


def _run(
    options: argparse.Namespace, belongs: dict[str, tuple[str, ...]], defaults: dict[str, Any]
) -> int:
    """Refuse options that do not fit the problem, even with their defaults, then solve it.

    Parameters
    ----------
    belongs : dict of str to tuple of str
        Families that an option belongs to.
    defaults : dict of str to object
        Default of every option.
    """
    problem = one_of("PROBLEM", options.problem, GRAPH_PROBLEMS)
    given = [name for name in defaults if hasattr(options, name)]
    for name in defaults.keys() - set(given):
        setattr(options, name, defaults[name])
    family = "knn"
    if problem in PATH_PROBLEMS:
        family = "model" if options.model else "paths"
    for name in given:
        if family not in belongs[name]:
            raise UserError(_refused(name, belongs[name], family, problem))
    from vitruvian.commands.graph_run import run

    return run(options)


def _refused(name: str, allowed: tuple[str, ...], family: str, problem: str) -> str:
    """Return the message for an option that does not belong to the family of the problem."""
    # Only path problems have a model.
    if allowed == ("model",):
        allowed_text = ", ".join(PATH_PROBLEMS)
    else:
        allowed_text = ", or ".join(_FAMILIES[key] for key in allowed)
    other = "--model" if family == "model" else problem
    return f"--{name.replace('_', '-')} must come with {allowed_text}, not with {other}"


def _add_options(parser: argparse.ArgumentParser) -> dict[str, tuple[str, ...]]:
    """Add the options of graph problems, and return the families that each belongs to.

    A family is ``paths`` (a path problem on a graph), ``knn``, or ``model`` (with --model).
    """
    belongs: dict[str, tuple[str, ...]] = {}

    def add(name: str, families: str, **settings: Any) -> None:
        belongs[parser.add_argument(name, **settings).dest] = tuple(families.split())

    # The help lists the options in this order.
    _add_task(add)
    _add_computation(add)
    _add_reading(add)
    _add_results(add)
    return belongs


def _add_task(add: _Add) -> None:
    """Add the options that say what to compute: a graph's problem, or the model."""
    add(
        "--graph",
        "paths knn",
        metavar="FILE",
        help="Read the graph from this file: Matrix Market (.mtx, also .gz or .bz2), or a list of "
        "edges (.csv, .tsv, .edges, .txt). For knn, each row of the matrix is a point.",
    )
    add(
        "--model",
        "model",
        action="store_true",
        help="Print the modelled cycles for 1,024 to 16,384 vertices instead of solving a graph.",
    )


def _add_computation(add: _Add) -> None:
    """Add the options that say how to compute: back end, algorithm, operands and unit."""
    add(
        "--backend",
        "paths knn",
        default="golden",
        metavar="NAME",
        help="Compute on this back end: golden, or rtl, the compiled RTL (default: golden).",
    )
    add(
        "--algorithm",
        "paths model",
        metavar="NAME",
        help="Use this algorithm: bellman-ford, leyzorek or floyd-warshall (default: "
        "floyd-warshall above 128 vertices, else leyzorek).",
    )
    add(
        "--all-iterations",
        "paths",
        action="store_true",
        help="Run as many iterations as the worst graph needs, even if nothing changes any more.",
    )
    add(
        "--input",
        "paths knn model",
        metavar="FORMAT",
        help="Round the operands to fp16 or fp32 (default: fp16 if that loses nothing, and on the "
        "compiled RTL; else fp32).",
    )
    add(
        "--neighbours",
        "knn",
        type=at_least(1),
        default=5,
        metavar="N",
        help="Find this many neighbours of each point (default: 5).",
    )
    add(
        "--unit",
        "paths knn model",
        type=lanes,
        metavar="MxNxK",
        help="Set the rows, columns and terms per cycle of the unit (default: 4x4x4).",
    )


def _add_reading(add: _Add) -> None:
    """Add the options that say how to read the edges of a graph."""
    add(
        "--duplicates",
        "paths",
        metavar="RULE",
        help="Use this weight of an edge that is repeated: sum, min, max or first (default: such "
        "a graph is refused).",
    )
    add(
        "--undirected",
        "paths",
        action="store_true",
        help="Let every edge of a list lead both ways (default: only for mst).",
    )
    add(
        "--weight",
        "paths",
        metavar="NAME",
        help="Take the weights of a list of edges from the column of this name; none gives every "
        "edge the weight 1 (default: weight, or the third column).",
    )
    add(
        "--no-edge",
        "paths",
        type=_real,
        metavar="X",
        help="Read this entry of a dense matrix as no edge, such as 0 (default: infinity).",
    )


def _add_results(add: _Add) -> None:
    """Add the options that say which results to print or to write."""
    add(
        "--route",
        "paths",
        nargs=2,
        action="append",
        default=[],
        metavar=("FROM", "TO"),
        help="Print the value and the route between two vertices; may be repeated.",
    )
    add(
        "--out",
        "paths knn",
        type=output_path(".npy", ".csv", ".mtx"),
        metavar="FILE",
        help="Write the values of all pairs to this file (.npy, .csv or .mtx); for knn, the "
        "neighbours and the squares of their distances.",
    )


def _real(text: str) -> float:
    """Return the number that a text denotes; this function is an argument type."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None
