"""The option ``--feed`` of the command ``cce``: unit S of the core as a RISC-V."""

import argparse
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.wings.ascend.cce import folders, kernel_arguments, macros

FEEDS = ("stream", "riscv")


def add_feed(parser: Any) -> None:
    """Add the option ``--feed`` to a parser."""
    parser.add_argument(
        "--feed",
        default="stream",
        metavar="HOW",
        help="Let unit S of the core fetch the unrolled program (stream), or be a RISC-V that runs "
        "the compiled kernel (riscv, which needs the package ziglang; default: %(default)s).",
    )


def check_feed(options: argparse.Namespace) -> None:
    """Check ``--feed``, and that its compiler is there.

    Raises
    ------
    UserError
        If not.
    """
    from vitruvian.sim.davinci.riscv.compiler import program

    one_of("--feed", options.feed, FEEDS)
    if options.feed == "riscv":
        if not options.core:
            raise UserError("--feed riscv must come with --core, which is missing")
        program()


def run_on_riscv(options: argparse.Namespace, program: Any) -> Any:
    """Compile the kernel of the command for the RISC-V, and run it on the core."""
    from vitruvian.sim.davinci.cce import read_file
    from vitruvian.sim.davinci.riscv.run import kernel_image, run_riscv
    from vitruvian.sim.rtl.core import core_config

    reading: dict[str, Any] = {
        "entry": options.entry,
        "defines": macros(options.define),
        "include_path": folders(options.include),
    }
    path = Path(options.file)
    parameters = read_file(path, **reading).parameters
    arguments = kernel_arguments(parameters, options.arg, seed=options.seed)
    memory_bytes = core_config(options.core).scalar_bytes
    image = kernel_image(program, path, arguments, memory_bytes=memory_bytes, **reading)
    return run_riscv(program, image, options.core)
