"""The part of the command ``run`` for Taylor series of many functions on DaVinci cores."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from vitruvian.commands import davinci
from vitruvian.commands.half_arrays import read_half
from vitruvian.commands.options import at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import open_whole

if TYPE_CHECKING:
    import numpy as np

#: Name of the problem.
PROBLEM = "cubefx"


def add_options(parser: argparse.ArgumentParser) -> dict[str, tuple[str, ...]]:
    """Add the options of series, and return the families that each belongs to."""
    group = parser.add_argument_group("Taylor series on DaVinci cores (cubefx)")
    belongs: dict[str, tuple[str, ...]] = {}
    for name, settings in {
        "--functions": {
            "metavar": "F,G,…",
            "default": "sin,cos,tanh",
            "help": "Evaluate these functions: names, or the coefficients a0:a1:… of the powers 0, "
            "1, … (default: sin,cos,tanh). An unknown name prints the list.",
        },
        "--order": {
            "type": at_least(1),
            "default": 16,
            "metavar": "N",
            "help": "Take N coefficients of each series: powers 0 to N - 1 (default: 16).",
        },
        "--method": {
            "default": "cube",
            "metavar": "METHOD",
            "help": "Evaluate by this method: cube, horner, estrin, naive, motzkin or cordic "
            "(default: cube). For selbknn, select the neighbours by selb, bitonic or heap "
            "(default: selb).",
        },
    }.items():
        options: dict[str, Any] = settings
        belongs[group.add_argument(name, **options).dest] = ("series",)
    return belongs


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
    from vitruvian.sim.ops.reduction import Plan
    from vitruvian.sim.ops.series import built, divergence, inaccuracies

    one_of("--cube", options.cube, davinci.CUBES)
    if options.strict and options.no_checks:
        raise UserError("--strict must come without --no-checks")
    if options.out and not options.out.endswith(".npy"):
        raise UserError(f"--out must end in .npy for {PROBLEM}, not {options.out!r}")
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
        raise UserError(f"{PROBLEM}: {_as_options(str(error))}") from None
    texts = divergence(functions, x, options.order) if options.method != "cordic" else []
    for text in texts:
        print(f"warning: {text}", file=sys.stderr)
    davinci.tell_compiling()
    try:
        code, report = davinci.show(options, instance)
    except (ValueError, Deadlock) as error:
        raise UserError(f"{PROBLEM}: {error}") from None
    if not report.outputs:
        return code
    y = instance.views["y"](report.outputs["y"])
    for text in inaccuracies(Plan.of(functions, flat, False), y, options.order, options.method):
        print(f"warning: {text}", file=sys.stderr)
    if options.out:
        import numpy as np

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
        return [float(part) for part in text.split(":")]
    except ValueError:
        return text


def _as_options(text: str) -> str:
    """Return a message of the library with its parameters written as command-line options."""
    for name in ("functions", "order", "method", "cores"):
        if text.startswith(f"{name} must"):
            return f"--{text}"
    return text.replace("x must", "--input must", 1) if text.startswith("x must") else text


def _inputs(options: argparse.Namespace) -> "np.ndarray":
    """Return the inputs of a file in FP16, or random ones."""
    if options.input is None:
        from vitruvian.sim.kernels.cubefx.registered import COUNT, random_inputs

        return random_inputs(options.size or (COUNT,), options.seed)
    if options.size is not None:
        raise UserError("--size must come without --input, whose file has the inputs")
    return read_half("input", options.input)
