"""The command ``knn``: nearest neighbours of points by SelB-k-NN on DaVinci cores."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from vitruvian.commands.options import add_json, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import open_whole, output_path
from vitruvian.wings.ascend import davinci
from vitruvian.wings.ascend.half_arrays import read_half

if TYPE_CHECKING:
    import numpy as np

    from vitruvian.sim.davinci import Report
    from vitruvian.sim.kernels.kselection.shape import KnnShape

#: Name of the kernel.
_KERNEL = "selbknn"

#: Queries whose neighbours are printed.
_SHOWN = 4


_EXAMPLES = """Examples:
  vitruvian knn --train X.npy --query Q.npy --k 16 --out neighbours.npz
  vitruvian knn --size 32x4096x128x16 --metric cosine --refine 8
  vitruvian knn --train X.npy --query Q.npy --method bitonic --chip ascend910 --timeline"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Find the nearest neighbours of points on simulated DaVinci cores by\n"
        "SelB-k-NN, and compare them with golden.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="Search among the points of this file (.npy), one in each row (default: random "
        "directions).",
    )
    parser.add_argument(
        "--query",
        metavar="FILE",
        help="Search the neighbours of the points of this file (.npy).",
    )
    parser.add_argument(
        "--k",
        type=at_least(1),
        metavar="N",
        help="Return the N nearest points of each query (default: 8).",
    )
    parser.add_argument(
        "--metric",
        default="l2",
        metavar="NAME",
        help="Order the points by this distance: l2, cosine or cosine-product, which is "
        "1 - x·y with the product rounded to FP16 (default: %(default)s).",
    )
    parser.add_argument(
        "--method",
        default="selb",
        metavar="METHOD",
        help="Select the neighbours by selb, bitonic or heap, or by selb without hardware "
        "indexing, comparison or selection: an unknown name prints the list "
        "(default: %(default)s).",
    )
    parser.add_argument(
        "--refine",
        type=at_least(0),
        metavar="N",
        help="Select N more candidates than neighbours, and return the nearest of them by "
        "distances in FP32 (default: FP16 distances without candidates).",
    )
    parser.add_argument(
        "--out",
        type=output_path(".npz"),
        metavar="FILE",
        help="Write the indices and distances to this file (.npz).",
    )
    davinci.add_options(
        parser,
        size="Take random points of these sizes: queries, training points, features, and "
        "neighbours unless --k gives them (default: the kernel's).",
    )
    add_json(parser, "the figures")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search the neighbours, print the report, and write the results.

    The exit code is 1 if a result differs from golden or a check finds something.

    Raises
    ------
    UserError
        If an option or a file is wrong.
    """
    from vitruvian.common.validate import one_of
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.kernels.kernel import LIMITS
    from vitruvian.sim.kernels.selbknn.build import METHODS
    from vitruvian.sim.kernels.selbknn.catalogue import instance, needs
    from vitruvian.sim.ops.neighbours import search

    one_of("--method", options.method, METHODS)
    # Early exit follows the data, so that another rounding would take other branches than the
    # program was built for.
    one_of("--cube", options.cube, [cube for cube in davinci.CUBES if cube != "fast"])
    davinci.refuse_unchecked(options)
    if options.out and options.cube == "none":
        raise UserError("--out must come without --cube none, which computes no data")
    davinci.check_outputs(options)
    davinci.tell_compiling()
    try:
        chip = load_chip(options.chip)
        train, query, k = _points(options)
        shape, operands = search(train, query, k, options.metric, options.refine)
        needs(shape, chip, options.method).check(_KERNEL, LIMITS)
        data = options.cube != "none"
        settings = {"method": options.method, "cores": options.cores, "data": data}
        made = instance(shape, operands, chip, **settings)
        code, report = davinci.show(options, made)
    except (ValueError, TypeError, Deadlock) as error:
        raise UserError(f"knn: {_as_options(str(error))}") from None
    if report.outputs:
        _show(options, report, shape, (train, query, k))
    return code


def _show(
    options: argparse.Namespace,
    report: "Report",
    shape: "KnnShape",
    given: "tuple[np.ndarray, np.ndarray, int]",
) -> None:
    """Print the neighbours of the first queries, and write all of them."""
    import numpy as np

    from vitruvian.sim.kernels.selbknn.build import result
    from vitruvian.sim.kernels.selbknn.golden import in_order
    from vitruvian.sim.kernels.selbknn.operands import as_distances
    from vitruvian.sim.kernels.selbknn.refine import refined

    stream = sys.stderr if options.json == "-" else sys.stdout
    # Not every method returns the neighbours in order.
    index, products = in_order(result(report.outputs, shape))
    distances = as_distances(products, shape.metric)
    train, query, k = given
    if options.refine is not None:
        index, distances = refined(query, train, index, k, shape.metric)
    for q in range(min(_SHOWN, shape.queries)):
        near = zip(index[q, :8].tolist(), distances[q].tolist(), strict=False)
        dots = " …" if k > 8 else ""
        pairs = ", ".join(f"{number} ({distance:.4g})" for number, distance in near)
        print(f"query {q}: {pairs}{dots}", file=stream)
    if options.out:
        with open_whole(options.out) as file:
            np.savez(file, indices=index, distances=distances)
        shown = f"indices and distances of {shape.queries:,} queries × {k} neighbours"
        print(f"{options.out}: {shown}", file=stream)


def _as_options(text: str) -> str:
    """Return a message of the library with its parameters written as command-line options."""
    names = ("train", "query", "k", "metric", "method", "refine", "cores")
    return f"--{text}" if text.split(" must")[0] in names else text


def _points(options: argparse.Namespace) -> "tuple[np.ndarray, np.ndarray, int]":
    """Return the training points, the queries and the number of neighbours."""
    from vitruvian.sim.kernels import KERNELS
    from vitruvian.sim.kernels.selbknn.operands import random_points

    if (options.train is None) != (options.query is None):
        raise UserError("--train and --query must come together")
    # The fourth size is the number of neighbours.
    *sizes, k = options.size if len(options.size or ()) == 4 else KERNELS[_KERNEL].default
    if options.size and len(options.size) == 4 and options.k is not None:
        raise UserError("--k must come without a --size of four numbers, whose last one is k")
    k = k if options.k is None else options.k
    if options.train is not None:
        if options.size is not None:
            raise UserError("--size must come without --train, whose file has the points")
        return read_half("train", options.train), read_half("query", options.query), k
    if options.size is not None:
        if len(options.size) not in (3, 4) or min(options.size) < 1:
            names = "×".join(KERNELS[_KERNEL].sizes)
            shown = "×".join(map(str, options.size))
            raise UserError(f"--size must be {names}, each 1 or more, not {shown}")
        sizes = options.size[:3]
    queries, train, features = sizes
    # Two seeds, of the queries and of the points, that no other seed shares.
    start = 2 * options.seed
    return random_points(train, features, start + 1), random_points(queries, features, start), k
