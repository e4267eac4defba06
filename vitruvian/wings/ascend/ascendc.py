"""The command ``ascendc``: kernels in AscendC, compiled and recorded."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from vitruvian.commands.options import add_json, add_seed, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.validate import one_of
from vitruvian.wings.ascend.cce import (
    add_expectations,
    add_launch_options,
    folders,
    kernel_arguments,
    macros,
)
from vitruvian.wings.ascend.cce_arrays import ExpectedArray, expectations
from vitruvian.wings.ascend.davinci import CUBES, add_arrays, add_pictures, add_strict, run_text

if TYPE_CHECKING:
    from vitruvian.sim.davinci import Program

_DESCRIPTION = """Compile a kernel in AscendC with g++, run it on the simulated cores of a chip, and
print its time, the findings of the checks, its own output, and the first values of its arrays. This
runs the kernel as native code. The exit code is 0, or 1 if the checks found something or a result
is not as expected, or 2 for a mistake in the kernel or the arguments."""

_EXAMPLE = r"""Example: vitruvian ascendc examples/ascendc_add.cpp --run-native --blocks 2 \
  --arg x=normal:fp16:2048 --arg y=normal:fp16:2048 --arg z=zeros:fp16:2048 --arg n=2048"""

#: The variable that stands for ``--run-native``.
_VARIABLE = "VITRUVIAN_RUN_NATIVE"


def register(name: str, commands: Any) -> None:
    """Add the command ``ascendc`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EXAMPLE)
    parser.add_argument("file", metavar="FILE", help="Compile the kernel of this source file.")
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        help="Run this function, with template arguments if it has any (default: the only "
        "__global__ one).",
    )
    parser.add_argument(
        "--run-native",
        action="store_true",
        help="Allow the kernel to run as native code, in a process with limits; use it only for "
        f"sources that you trust ({_VARIABLE}=1 is the same).",
    )
    parser.add_argument(
        "--headers",
        metavar="FOLDER",
        help="Compile with the headers of AscendC in this folder, such as a clone of asc-devkit "
        "(default: a small set of this project's own).",
    )
    parser.add_argument(
        "--seconds",
        type=at_least(1, 86400),
        default=20,
        metavar="S",
        help="Stop the kernel of a core after S seconds of CPU time (default: %(default)s).",
    )
    add_launch_options(parser)
    parser.add_argument(
        "--cube",
        default="golden",
        metavar="HOW",
        help="Compute the matrix products by golden, rtl or fast (default: %(default)s).",
    )
    add_seed(parser, default=0)
    add_expectations(parser)
    add_arrays(parser)
    add_strict(parser)
    add_pictures(parser)
    add_json(parser, "the figures")
    parser.set_defaults(run=_run, no_checks=False, core=None, chip="ascend910b")


def _run(options: argparse.Namespace) -> int:
    one_of("--cube", options.cube, CUBES[:3])
    if not options.run_native and os.environ.get(_VARIABLE) != "1":
        raise UserError(
            "--run-native must be given, because this command compiles the kernel and runs it as "
            f"native code (or set {_VARIABLE}=1)"
        )
    return run_text(options, _program)


def _program(options: argparse.Namespace) -> "tuple[Program, list[ExpectedArray]]":
    """Return the program of the kernel, and the arrays that it is compared with."""
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.davinci.ascendc import build, compile_kernel

    defines, include_path = macros(options.define), folders(options.include)
    try:
        chip = load_chip(options.chip)
        if options.kind is not None:
            one_of("--kind", options.kind, (*chip.kinds, "all"))
        settings: dict[str, Any] = {"kernel": options.kernel, "headers": options.headers}
        settings |= {"defines": defines, "include_path": include_path}
        with Progress("compiling the kernel", lines=False, counts=False, after_s=2.0):
            kinds = list(chip.kinds) if options.kind == "all" else [options.kind]
            compiled = [compile_kernel(options.file, chip, kind=k, **settings) for k in kinds]
        kernel = compiled[0]
        arguments = kernel_arguments(kernel.parameters, options.arg, seed=options.seed)
        tolerances = {"rtol": options.rtol, "atol": options.atol}
        expected = expectations(options.expect, kernel.parameters, arguments, **tolerances)
        # The limit is a tenth of the steps, as for CCE C.
        limits = {"limit": max(options.steps // 10, 10_000), "seconds": options.seconds}
        with Progress(f"running {kernel.name}", lines=False, counts=False, after_s=2.0):
            kernels = {each.kind: each for each in compiled}
            program, _ = build(kernels, chip, arguments, blocks=options.blocks, **limits)
    except (ValueError, Deadlock) as error:
        raise UserError(str(error)) from None
    return program, expected
