"""The command ``ascendc``: kernels in AscendC, compiled and recorded."""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.validate import one_of, printable
from vitruvian.wings.ascend.cce import (
    add_expectations,
    add_launch_options,
    folders,
    kernel_arguments,
    macros,
)
from vitruvian.wings.ascend.cce_arrays import ExpectedArray, expectations
from vitruvian.wings.ascend.davinci import (
    CUBES,
    add_arrays,
    check_outputs,
    run_text,
    show_report,
    simulated,
    synchronise,
    tell_compiling,
)
from vitruvian.wings.ascend.report_options import add_pictures, add_strict

if TYPE_CHECKING:
    from vitruvian.sim.davinci import Chip, Program
    from vitruvian.sim.davinci.ascendc import NativeKernel
    from vitruvian.sim.davinci.ascendc.branches import Rerun
    from vitruvian.sim.davinci.report.report import Finding

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
        help="Compile with the headers of AscendC in this folder, such as a clone of asc-devkit, "
        "or of PTO's, a clone of pto-isa (default: a small set of this project's own).",
    )
    parser.add_argument(
        "--host",
        action="store_true",
        help="Run the file's own main in the current folder, and simulate each of its launches; it "
        "may read your files and write here.",
    )
    parser.add_argument(
        "--sources",
        action="append",
        default=[],
        metavar="FILE",
        help="Compile this file, or the C++ files of this folder, as a further part of the "
        "program (repeat it for more).",
    )
    parser.add_argument(
        "--seconds",
        type=at_least(1, 86400),
        default=20,
        metavar="S",
        help="Stop the kernel of a core after S seconds of CPU time (default: %(default)s).",
    )
    parser.add_argument(
        "--branches",
        type=at_least(0, 100_000),
        default=0,
        metavar="N",
        help="Run the kernel up to N more times with other values of what it reads by scalar "
        "accesses, so that it takes the other sides of its branches, and check the order of these "
        "runs (default: %(default)s).",
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
    parser.set_defaults(run=_run, no_checks=False, core=None, chip="ascend910b", scalar_flags=True)


def _run(options: argparse.Namespace) -> int:
    one_of("--cube", options.cube, CUBES[:3])
    if not options.run_native and os.environ.get(_VARIABLE) != "1":
        raise UserError(
            "--run-native must be given, because this command compiles the kernel and runs it as "
            f"native code (or set {_VARIABLE}=1)"
        )
    return _run_host(options) if options.host else run_text(options, _program)


def _compiled(options: argparse.Namespace, chip: "Chip") -> "list[NativeKernel]":
    """Return the kernel or the host program, compiled for each kind of core."""
    from vitruvian.sim.davinci.ascendc import compile_kernel
    from vitruvian.sim.davinci.ascendc.compile import kinds_of_file

    settings: dict[str, Any] = {"kernel": options.kernel, "headers": options.headers}
    settings |= {"defines": macros(options.define), "include_path": folders(options.include)}
    settings["sources"] = options.sources
    kind = options.kind
    if kind is None and options.host:
        kind = kinds_of_file(options.file, chip, settings["defines"])
    if kind is not None:
        one_of("--kind", kind, (*chip.kinds, "all"))
    kinds = list(chip.kinds) if kind == "all" else [kind]
    with Progress("compiling the kernel", lines=False, counts=False, after_s=2.0):

        def compiled(kind: "str | None") -> "NativeKernel":
            return compile_kernel(options.file, chip, kind=kind, host=options.host, **settings)

        with ThreadPoolExecutor(len(kinds)) as pool:  # g++ works for each kind at once
            return list(pool.map(compiled, kinds))


def _look_further(options: argparse.Namespace, rerun: "Rerun") -> None:
    """Let ``simulated`` run the kernel again for ``--branches``."""
    from vitruvian.sim.davinci.ascendc.branches import other_sides
    from vitruvian.sim.davinci.checks.check import check

    def checked(program: "Program") -> "list[Finding]":
        synchronise(options, program)
        return check(program, strict=options.strict)

    def further(program: "Program", known: "list[Finding]") -> "list[Finding]":
        with Progress("running other branches", lines=False, counts=False, after_s=2.0):
            done = other_sides(rerun, checked, program, known, runs=options.branches)
        print(f"--branches: {done.runs} of {done.possible} other runs made", file=sys.stderr)
        for line in done.failed:
            print(f"--branches: {printable(line)}", file=sys.stderr)
        return done.findings

    options.further = further


def _run_host(options: argparse.Namespace) -> int:
    """Run a host program, and print the report of each launch."""
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.davinci.ascendc.host import run_host

    check_outputs(options)
    tell_compiling()
    reports: list[Any] = []

    def finish(program: Any, functional: Any) -> Any:
        report = simulated(options, program, functional)
        reports.append(report)
        show_report(options, report, program)
        return report.outputs or functional.tensors()

    try:
        compiled = _compiled(options, chip := load_chip(options.chip))
        # The limit is a tenth of the steps, as for CCE C.
        limits: dict[str, Any] = {"limit": max(options.steps // 10, 10_000)}
        limits["seconds"] = options.seconds
        # Without a finding, these data are those of the report.
        limits["cube"] = options.cube if options.cube in ("golden", "fast") else "fast"
        kernels = {each.kind: each for each in compiled}
        if options.branches:
            limits["rerun"] = partial(_look_further, options)
        count = run_host(kernels, chip, finish, tell=_show_host, **limits)
    except (ValueError, Deadlock) as error:
        raise UserError(str(error)) from None
    if not count:
        raise UserError(f"{options.file}: its main must launch a kernel")
    if options.json:
        write_json(options.json, {"launches": [report.as_dict() for report in reports]})
    return 1 if any(report.findings for report in reports) else 0


def _show_host(text: str) -> None:
    """Print what the host program has printed after its last launch."""
    print("host:")
    for line in text.rstrip("\n").split("\n"):
        print(f"  {printable(line)}")


def _program(options: argparse.Namespace) -> "tuple[Program, list[ExpectedArray]]":
    """Return the program of the kernel, and the arrays that it is compared with."""
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.davinci.ascendc import build
    from vitruvian.sim.davinci.ascendc.branches import Rerun, ScalarReads

    try:
        compiled = _compiled(options, chip := load_chip(options.chip))
        kernel = compiled[0]
        arguments = kernel_arguments(
            kernel.parameters, options.arg, seed=options.seed, structures=True
        )
        tolerances = {"rtol": options.rtol, "atol": options.atol}
        expected = expectations(options.expect, kernel.parameters, arguments, **tolerances)
        # The limit is a tenth of the steps, as for CCE C.
        limits = {"limit": max(options.steps // 10, 10_000), "seconds": options.seconds}
        with Progress(f"running {kernel.name}", lines=False, counts=False, after_s=2.0):
            kernels = {each.kind: each for each in compiled}
            reads = ScalarReads() if options.branches else None
            record = partial(build, kernels, chip, arguments, blocks=options.blocks, **limits)
            program, _ = record(reads=reads)
        if reads is not None:
            _look_further(options, Rerun(lambda other: record(reads=other)[0], reads))
    except (ValueError, Deadlock) as error:
        raise UserError(str(error)) from None
    return program, expected
