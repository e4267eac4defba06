"""The command ``sparse``: run a sparse application, and simulate it on SIDA."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.commands.options import add_json
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.progress import Progress
from vitruvian.common.validate import one_of
from vitruvian.wings.sparse import mxm
from vitruvian.wings.sparse.options import (
    add_application,
    add_machine,
    given,
    made,
    refuse_machine,
    vertex,
)

if TYPE_CHECKING:
    from vitruvian.sparse import MatrixProduct, Result
    from vitruvian.sparse.matrices import Given

_DESCRIPTION = """\
Run a sparse application on the golden models, and simulate the run on SIDA, a machine
that reads the matrix once for two iterations (Zhang 2024, ch. 4). APPLICATION is one of
pagerank, kcore, bfs, sssp, kmeans, knn, labelprop, gcn, gmres, cg, bicgstab and
components; or triangles, which counts them, or mxm, which multiplies two matrices, both
without the machine. An element (i, j) of the matrix is an edge from vertex i to vertex j.
Vertices count from 0."""

_EPILOG = """\
Example: vitruvian sparse pagerank GRAPH.mtx --reorder windowed --blocked 16 --out pagerank
         vitruvian sparse sssp ROADS.csv --weight km --source rome --values distances.csv
         vitruvian sparse cg SYSTEM.mtx --right-side b.txt --tolerance 1e-10
         vitruvian sparse gcn GRAPH.mtx --size 32x16x8 --json -
         vitruvian sparse mxm A.mtx B.mtx --semiring minplus --values product.csv"""

#: Seconds of work after which a terminal shows the progress
_AFTER_S = 2.0


def register(name: str, commands: Any) -> None:
    """Add the command ``sparse`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("application", metavar="APPLICATION", help="Run this application.")
    parser.add_argument(
        "matrix",
        metavar="FILE",
        help="Read the matrix from this Matrix Market file (.mtx, also .gz or .bz2), or from this "
        "list of edges (.csv, .tsv, .edges, .txt), which has one edge in a line: source, target "
        "and weight, or columns that a header names.",
    )
    parser.add_argument(
        "other", nargs="?", metavar="FILE", help="Read the second matrix of mxm from this file."
    )
    parser.add_argument(
        "--weight",
        metavar="NAME",
        help="Take the weights of a list of edges from this column (default: weight); none gives "
        "1 to all edges.",
    )
    add_machine(parser.add_argument_group("machine"))
    add_application(parser.add_argument_group("application"))
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the plots of bandwidth and buffer over time, and the values, into this folder; "
        "for a list of edges also the names of the vertices in the order of the values.",
    )
    parser.add_argument(
        "--values",
        type=output_path(".csv"),
        metavar="FILE",
        help="Write the values with the vertices' names or numbers to this file (.csv); of mxm the "
        "elements with their rows and columns.",
    )
    add_json(parser, "the figures")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vitruvian.sim.sparse.pattern import BLOCK_SIDES
    from vitruvian.sim.sparse.reordering import ORDERS
    from vitruvian.sparse import Result
    from vitruvian.sparse.options import OPTIONS

    one_of("APPLICATION", options.application, (*OPTIONS, mxm.NAME))
    one_of("--reorder", options.reorder, ORDERS)
    if options.blocked not in BLOCK_SIDES:
        raise UserError(
            f"--blocked must be one of {', '.join(map(str, BLOCK_SIDES))}, not {options.blocked}"
        )
    mxm.check(options)
    # Recorded, so that each warning is one line even if Python is told to hide warnings.
    with (
        warnings.catch_warnings(record=True) as caught,
        Progress(options.application, bar=False, counts=False, after_s=_AFTER_S) as progress,
    ):
        warnings.simplefilter("always", UserWarning)
        try:
            outcome = _computed(options, progress)
        except (ValueError, TypeError) as error:
            raise UserError(str(error)) from None
    for warning in caught:
        print(
            # The library's message names its parameter; a user of the command knows the option.
            f"warning: {warning.message}".replace("weight=None", "--weight none"),
            file=sys.stderr,
        )
    if not isinstance(outcome, Result):
        mxm.show(options, outcome)
        return 0
    from vitruvian.wings.sparse.output import show

    show(options, outcome)
    # A run that has not converged is a result; a breakdown of the method is not.
    return 1 if outcome.failure else 0


def _computed(options: argparse.Namespace, progress: Progress) -> "Result | MatrixProduct":
    """Return the result of an application or a product."""
    from vitruvian.sparse.options import OPTIONS

    if options.application != mxm.NAME:
        return _solved(options, OPTIONS[options.application], progress)
    refuse_machine(options)
    given(options, {})
    return mxm.multiplied(options, progress)


def _solved(options: argparse.Namespace, allowed: dict[str, Any], progress: Progress) -> "Result":
    """Return the result of an application."""
    from vitruvian.sim.sparse.architecture import load_architecture
    from vitruvian.sparse import solve
    from vitruvian.sparse.options import TRIANGLES

    has_machine = options.application != TRIANGLES
    machine: dict[str, Any] = {}
    if has_machine:
        loaded = load_architecture(options.arch) if options.arch else load_architecture()
        machine = {"simulate": True, "architecture": loaded}
        machine |= {"reorder": options.reorder, "block": options.blocked}
        machine["memory"] = None if options.memory == "none" else options.memory
        # A name that is none is refused before the matrix is read.
        if not Path(options.memory).suffix:
            one_of("--memory", options.memory, ("none", "hbm2", "a TOML file"))
        machine["dram_simulator"] = options.dram_simulator
    else:
        refuse_machine(options)
    arguments = given(options, allowed)
    progress.update(note=f"reads {options.matrix}")
    matrix = _matrix(options)
    for name in ("source", "first"):
        if name in arguments:
            arguments[name] = vertex(f"--{name}", arguments[name], matrix)
    # Solvers and networks need operands for which most users have no file.
    arguments |= made(options, allowed, matrix.matrix, arguments)
    return solve(
        options.application,
        matrix,
        progress=lambda text: progress.update(note=text),
        **machine,
        **arguments,
    )


def _matrix(options: argparse.Namespace) -> "Given":
    """Return the matrix of the file."""
    from vitruvian.sparse.solving import conventions

    return mxm.read(options, options.matrix, **conventions(options.application))
