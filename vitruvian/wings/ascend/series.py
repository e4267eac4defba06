"""The command ``taylor``: Taylor series of many functions by Cube-fx on DaVinci cores."""

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


_EXAMPLES = """Examples:
  vitruvian taylor --functions sin,cos,tanh --input x.npy --out y.npy
  vitruvian taylor --functions sin,1:0:-0.5 --size 8192 --order 8 --gantt run.svg
  vitruvian taylor --functions exp --method horner --chip ascend910b --timeline"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Evaluate the Taylor series of many functions on simulated DaVinci cores, as\n"
        "one matrix product (Cube-fx) or by other methods, and compare them with golden.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--functions",
        default="sin,cos,tanh",
        metavar="F,G,…",
        help="Evaluate these functions: names, or the coefficients a0:a1:… of the powers 0, 1, … "
        "(default: %(default)s). An unknown name prints the list.",
    )
    parser.add_argument(
        "--input",
        metavar="FILE",
        help="Read the operands of the series from this file (.npy; default: random numbers).",
    )
    parser.add_argument(
        "--order",
        type=at_least(1),
        default=16,
        metavar="N",
        help="Take N coefficients of each series: powers 0 to N - 1 (default: %(default)s).",
    )
    parser.add_argument(
        "--method",
        default="cube",
        metavar="METHOD",
        help="Evaluate by this method: cube, horner, estrin, naive, motzkin or cordic "
        "(default: %(default)s).",
    )
    parser.add_argument(
        "--out",
        type=output_path(".npy"),
        metavar="FILE",
        help="Write the results to this file (.npy), in FP16.",
    )
    davinci.add_options(
        parser, size="Take random operands of this size, one number (default: 16384)."
    )
    add_json(parser, "the figures")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate the functions, print the report, and write the results.

    The exit code is 1 if a result differs from golden or a check finds something.

    Raises
    ------
    UserError
        If an option or the input is wrong.
    """
    from vitruvian.common.validate import one_of
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.kernels.series.functions import as_functions
    from vitruvian.sim.ops.reduction import ReductionPlan
    from vitruvian.sim.ops.series import built, divergence, inaccuracies

    one_of("--cube", options.cube, davinci.CUBES)
    davinci.refuse_unchecked(options)
    if options.out and options.cube == "none":
        raise UserError("--out must come without --cube none, which computes no data")
    davinci.check_outputs(options)
    try:
        chip = load_chip(options.chip)
        functions = as_functions([_function(text) for text in options.functions.split(",")])
        x = _inputs(options)
        flat, cores = x.ravel(), options.cores
        instance = built(functions, flat, options.order, options.method, chip, cores)
    except (ValueError, TypeError) as error:
        raise UserError(f"taylor: {_as_options(str(error))}") from None
    # CORDIC rotates, and has no series that could diverge.
    texts = divergence(functions, x, options.order) if options.method != "cordic" else []
    for text in texts:
        print(f"warning: {text}", file=sys.stderr)
    davinci.tell_compiling()
    try:
        code, report = davinci.show(options, instance)
    except (ValueError, Deadlock) as error:
        raise UserError(f"taylor: {error}") from None
    # Nothing was computed, or the checks stopped the run.
    if not report.outputs:
        return code
    y = instance.views["y"](report.outputs["y"])
    for text in inaccuracies(
        ReductionPlan.of(functions, flat, False), y, options.order, options.method
    ):
        print(f"warning: {text}", file=sys.stderr)
    if options.out:
        import numpy as np

        # One row of results for each function, in the shape of the inputs.
        y = y.reshape(len(functions), *x.shape)
        with open_whole(options.out) as file:
            np.save(file, y)
        shown = "×".join(map(str, y.shape))
        stream = sys.stderr if options.json == "-" else sys.stdout
        print(f"{options.out}: {shown} of float16", file=stream)
    return code


def _function(text: str) -> str | list[float]:
    """Return a name, or the coefficients that stand between colons."""
    text = text.strip()
    try:
        # The name of a function is no number, so that the attempt decides.
        return [float(part) for part in text.split(":")]
    except ValueError:
        return text


def _as_options(text: str) -> str:
    """Return a message of the library with its parameters written as command-line options."""
    for name in ("functions", "order", "method", "cores"):
        if text.startswith(f"{name} must"):
            return f"--{text}"
    # The library calls the inputs x.
    return text.replace("x must", "--input must", 1) if text.startswith("x must") else text


def _inputs(options: argparse.Namespace) -> "np.ndarray":
    """Return the inputs of a file in FP16, or random ones."""
    if options.input is None:
        from vitruvian.sim.kernels.cubefx.catalogue import COUNT, random_inputs

        return random_inputs(options.size or (COUNT,), options.seed)
    if options.size is not None:
        raise UserError("--size must come without --input, whose file has the inputs")
    return read_half("input", options.input)
