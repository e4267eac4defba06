"""The commands ``kernel``, ``trace`` and ``cce``: kernels on simulated DaVinci cores."""

import argparse
import gzip
import io
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_chip, add_json, add_seed, add_size, at_least, numbers
from vitruvian.common.errors import UserError
from vitruvian.common.files import open_whole, output_path
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console
from vitruvian.common.validate import listed, nearest, one_of, printable, shortened
from vitruvian.wings.ascend.cce import (
    DESCRIPTION,
    EXAMPLE,
    add_cce_options,
    cce_program,
)
from vitruvian.wings.ascend.cce_arrays import ExpectedArray
from vitruvian.wings.ascend.core import add_core, core_product_of, on_core
from vitruvian.wings.ascend.report_options import TRACE, add_pictures, add_strict
from vitruvian.wings.ascend.riscv import add_feed, check_feed

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.sim.davinci import Program, Report
    from vitruvian.sim.kernels import KernelInstance

_EXAMPLES = """Examples:
  vitruvian kernel matmul --size 256x256x256 --cube rtl
  vitruvian kernel softmax --chip ascend910 --cores 8 --timeline --gantt softmax.svg
  vitruvian kernel maxpool-im2col --strict --lines --csv counters"""

_SIZE = (
    "Take a problem of these sizes; `vitruvian list davinci` prints the sizes of each kernel and "
    "their defaults (default: the kernel's)."
)

CUBES = ("golden", "rtl", "fast", "none")

#: Largest number of multiply-accumulates by ``--cube``; more would take hours.
_PRODUCTS = {"rtl": 1 << 30}


def register(name: str, commands: Any) -> None:
    """Add the command ``kernel``, ``trace`` or ``cce`` to the parser."""
    registers = {"kernel": _register_kernel, "trace": _register_trace, "cce": _register_cce}
    registers[name](commands)


def _register_kernel(commands: Any) -> None:
    parser = commands.add_parser(
        "kernel",
        description="Run a kernel on simulated DaVinci cores, compare its result with golden, and\n"
        "print its times.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "problem",
        metavar="KERNEL",
        help="Run this DaVinci kernel; `vitruvian list davinci` prints the names.",
    )
    add_options(parser)
    _add_tiling(parser)
    add_json(parser, "the figures")
    parser.set_defaults(run=run)


def _register_trace(commands: Any) -> None:
    parser = commands.add_parser(
        "trace",
        description="Run a kernel on simulated DaVinci cores, and write its timeline to a file\n"
        "that ui.perfetto.dev shows.",
        epilog="Example: vitruvian trace matmul --size 256x256x256 --out matmul.json.gz",
    )
    parser.add_argument(
        "problem",
        metavar="KERNEL",
        help="Run this DaVinci kernel; `vitruvian list davinci` prints the names.",
    )
    add_options(parser, timeline="--out")
    _add_tiling(parser)
    add_json(parser, "the figures")
    parser.set_defaults(run=run)


def _register_cce(commands: Any) -> None:
    parser = commands.add_parser("cce", description=DESCRIPTION, epilog=EXAMPLE)
    add_cce_options(parser)
    add_arrays(parser)
    add_strict(parser)
    add_core(parser)
    add_feed(parser)
    add_pictures(parser)
    add_json(parser, "the figures")
    parser.set_defaults(run=_cce, no_checks=False)


def add_arrays(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--out`` of a kernel's arrays."""
    parser.add_argument(
        "--out",
        type=output_path(".npz"),
        metavar="FILE",
        help="Write the arrays that the kernel has written to this file (.npz).",
    )


def add_options(
    parser: argparse.ArgumentParser, *, size: str = _SIZE, timeline: str = "--trace"
) -> None:
    """Add the options of a program for DaVinci cores.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Parser of the command.
    size : str
        Help text of ``--size``.
    timeline : str
        Name of the option for the file with the timeline.
    """
    group = parser.add_argument_group("the simulated cores")
    add_chip(group)
    add_size(group, size)
    group.add_argument(
        "--cube",
        default="golden",
        metavar="HOW",
        help="Compute the products bit-exactly (golden), by the compiled RTL (rtl) or in FP32 "
        "(fast), or compute no data at all, only times (none; default: golden).",
    )
    group.add_argument(
        "--cores",
        type=at_least(1),
        metavar="N",
        help="Use the first N cores (default: all cores of the chip that have work).",
    )
    add_seed(group, default=0)
    group.add_argument(
        "--no-checks",
        action="store_true",
        help="Do not look for races, addresses out of bounds and reads of unwritten memory.",
    )
    add_strict(group)
    add_core(group)
    add_pictures(group, timeline=timeline)


def _add_tiling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tiling",
        type=numbers,
        metavar="A,B,…",
        help="Cut the product into these tiles: matmul takes mTiles,kTiles,nTiles,bNum; gemm takes "
        "down,across,m,k,n,stepK (default: a tiling that moves few bytes).",
    )


def run(options: argparse.Namespace) -> int:
    """Run or trace a kernel and return the exit code.

    The exit code is 1 if a result differs from golden or a check finds something.

    Raises
    ------
    UserError
        If an option is wrong, or the program deadlocks.
    """
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.kernels import KERNELS, LIMITS

    name = options.problem
    if name not in KERNELS:
        # The list is long, so it is printed only in part.
        names, hint = f"{listed(KERNELS)}, `vitruvian list davinci` prints them", ""
        if near := nearest(name, KERNELS):
            names, hint = f"{len(KERNELS)} names", near
        raise UserError(f"KERNEL must be one of {names}, not {shortened(name)}{hint}")
    one_of("--cube", options.cube, CUBES)
    refuse_unchecked(options)
    if options.command == "trace" and options.trace is None:
        try:
            options.trace = TRACE(f"{name}.json")
        except argparse.ArgumentTypeError as error:
            raise UserError(f"--out {error}") from None
    check_outputs(options)
    tell_compiling()
    try:
        chip = load_chip(options.chip)
        settings = {"cores": options.cores, "seed": options.seed, "tiling": options.tiling}
        limits = replace(LIMITS, products=_PRODUCTS.get(options.cube, LIMITS.products))
        settings |= {"data": options.cube != "none", "limits": limits}
        with _progress(f"building {name}"):
            instance = KERNELS[name].build(options.size, chip=chip, **settings)
        if options.cube in ("rtl", "fast") and not _multiplies(instance.program):
            raise UserError(
                f"--cube must be golden or none for {name}, which has no product, "
                f"not {options.cube!r}"
            )
        return show(options, instance)[0]
    except OSError:
        raise  # the message has the name of the file
    except (ValueError, Deadlock) as error:
        raise UserError(f"{name}: {error}") from None


def refuse_unchecked(options: argparse.Namespace) -> None:
    """Raise an error if an option needs the checks, and there are none."""
    for name in ("strict", "advise"):
        if getattr(options, name) and options.no_checks:
            raise UserError(f"--{name} must come without --no-checks")


def _multiplies(program: "Program") -> bool:
    return any(instr.op == "mmad" for core in program for instr in core.instructions)


@cache
def tell_compiling() -> None:
    """Print a line on standard error when Numba compiles a part of the simulator.

    Compiling all parts takes some 20 seconds; the next run loads them from Numba's cache.
    """
    from vitruvian.common.compiling import tell_compiling as tell

    tell(lambda part: print(f"compiling the simulator (once): {part}", file=sys.stderr, flush=True))


def simulated(options: argparse.Namespace, program: Any, computed: Any = None) -> "Report":
    """Simulate a program with the barriers, checks and products that the options name.

    ``computed`` has the data after the program, if it has been carried out already.
    """
    from vitruvian.sim.davinci import simulate

    cube: Any = None if options.cube == "none" else options.cube
    if options.core:
        cube = core_product_of(options)
    if options.auto_sync:
        with _progress("inserting barriers"):
            count, flags = synchronise(options, program)
        barriers = "barrier" if count == 1 else "barriers"
        print(f"--auto-sync: {count:,} {barriers} of V inserted", file=sys.stderr)
        if flags is not None:
            print(f"--auto-sync: {flags:,} flags before scalar accesses", file=sys.stderr)
    with _progress("simulating") as progress:
        settings: dict[str, Any] = {"checks": not options.no_checks, "strict": options.strict}
        report = simulate(program, cube=cube, progress=progress, computed=computed, **settings)
    further = getattr(options, "further", None)
    if further is not None:  # other runs of the kernel
        report.findings += further(program, report.findings)
    return report


def synchronise(options: argparse.Namespace, program: Any) -> tuple[int, int | None]:
    """Insert what the device's compiler does, and return the numbers of barriers and flags.

    Without ``--auto-sync``, the program stays as it is; the number of flags is None for commands
    that have none.
    """
    if not options.auto_sync:
        return 0, None
    from vitruvian.sim.davinci.checks.autosync import insert_barriers, insert_scalar_flags

    count = insert_barriers(program)
    return count, insert_scalar_flags(program) if getattr(options, "scalar_flags", False) else None


def _progress(task: str) -> Progress:
    """Return a bar that appears on a terminal if the work takes more than two seconds."""
    return Progress(task, lines=False, counts=False, after_s=2.0)


def show(options: argparse.Namespace, instance: "KernelInstance") -> "tuple[int, Report]":
    """Run a kernel, print its report, and write the files that the options name.

    Parameters
    ----------
    options : Namespace
        Those of ``add_options``.

    Returns
    -------
    code : int
        1 if a result differs from golden or a check finds something, otherwise 0.
    report : Report
    """
    report = simulated(options, instance.program)
    console = _output(options, report, instance.program)
    figures: dict[str, Any] = {"cube": options.cube, **report.as_dict()}
    peak = float(report.chip.peak_operations())
    # Only products in FP16 compare with the peak that data sheets state.
    done = report.operations().get(("M", "fp16"), 0)
    if done and peak:
        share = done / report.total_s / peak
        figures["share_of_peak"] = share
        console.print(
            f"{done / report.total_s / 1e12:.3f} of {peak / 1e12:.3f} TFLOPS of the chip: "
            f"{share:.1%}",
            markup=False,
        )
    code = 1 if report.findings else 0
    if options.core and report.outputs:
        figures["core"] = on_core(options, instance.program, report, console)
        code = 1 if figures["core"]["differ"] else code
    elif options.cube == "none":
        console.print("data not computed (--cube none)")
    elif not report.outputs:
        console.print("data not computed: see what the checks found")
    else:
        with _progress("computing the golden result"):
            count, wrong = instance.compare(report.outputs)
        figures |= {"elements": count, "differ": wrong}
        console.print(f"{count:,} elements compared with golden: {wrong:,} differ")
        # The products of ``fast`` are rounded in another order, so they may differ from golden.
        code = 1 if wrong and options.cube != "fast" else code
    if options.json:
        write_json(options.json, figures)
    return code, report


def check_outputs(options: argparse.Namespace) -> None:
    """Raise UserError if two options name the same file."""
    taken: dict[Path, str] = {}
    # The option for the timeline is --trace in two commands and --out in the command trace.
    names = {"trace": "out"} if options.command == "trace" else {}
    for attribute in ("json", "out", "trace", "gantt", "csv"):
        name, text = names.get(attribute, attribute), getattr(options, attribute, None)
        path = Path(text).resolve() if text and text != "-" else None
        # A device such as /dev/null may receive several outputs.
        if path is None or (path.exists() and not path.is_file()):
            continue
        if path in taken:
            raise UserError(f"--{taken[path]} and --{name} must be two files, not both {text!r}")
        taken[path] = name


def _output(options: argparse.Namespace, report: "Report", program: Any) -> "Console":
    """Print the report, write the trace and the chart, and return the console."""
    from vitruvian.sim.davinci.report.counting import write_counters
    from vitruvian.sim.davinci.report.trace import gantt, timeline, write_trace

    console = _console(options)
    console.print(report.text(options.lines or 0), markup=False, soft_wrap=True)
    if options.advise:
        from vitruvian.sim.roofline.advice import advise

        with _progress("advising") as progress:
            advice = advise(program, report, strict=options.strict, progress=progress)
        report.advice = advice.as_dict()
        console.print(advice.text(), markup=False, soft_wrap=True)
    if options.timeline:
        console.print(timeline(report), markup=False, soft_wrap=True)
    if options.trace:
        with open_whole(options.trace) as file:
            # The header of the gzip file gets no name and no time, so that equal runs write equal
            # bytes.
            zipped = options.trace.lower().endswith(".gz")
            packed = gzip.GzipFile("", "wb", 3, file, 0) if zipped else file
            with io.TextIOWrapper(packed, "utf-8") as text:  # pyright: ignore[reportArgumentType]
                count = write_trace(report, text)
        console.print(f"{options.trace}: {count:,} events, for ui.perfetto.dev", markup=False)
    if options.csv:
        for path in write_counters(report, options.csv):
            console.print(str(path), markup=False)
    if options.gantt:
        gantt(report, options.gantt)
        console.print(options.gantt, markup=False)
    return console


def show_report(options: argparse.Namespace, report: "Report", program: Any) -> "Console":
    """Print a report and the output of the kernel, and return the console."""
    console = _output(options, report, program)
    _show_prints(console, program)
    return console


def _console(options: argparse.Namespace) -> "Console":
    """Open a console on standard output, or on standard error if JSON goes to standard output."""
    return open_console(sys.stderr if options.json == "-" else sys.stdout)


def _show_prints(console: "Console", program: Any) -> None:
    """Print the output of a kernel's ``printf``, with the name of the core on each line."""
    # Texts that follow each other belong to one line until one of them ends it.
    for core, texts in groupby(program.prints, lambda pair: pair[0]):
        text = "".join(text for _, text in texts)
        for line in text.removesuffix("\n").split("\n"):
            console.print(f"{core}: {printable(line, keep=chr(9))}", markup=False, soft_wrap=True)


def _cce(options: argparse.Namespace) -> int:
    one_of("--cube", options.cube, CUBES[:3])
    check_feed(options)
    return run_text(options, cce_program)


def run_text(
    options: argparse.Namespace,
    build: "Callable[[argparse.Namespace], tuple[Program, list[ExpectedArray]]]",
) -> int:
    """Run the kernel of a source file, print its report, and return the exit code.

    Parameters
    ----------
    options : Namespace
        Those of the command ``cce``.
    build : callable
        Function that returns the program of the kernel, and the arrays that it is compared with.

    Raises
    ------
    UserError
        If the kernel or an option is wrong, or the program deadlocks.
    """
    import numpy as np

    from vitruvian.sim.davinci import Deadlock

    check_outputs(options)
    tell_compiling()
    program, expected = build(options)
    try:
        report = simulated(options, program)
    except (ValueError, Deadlock) as error:
        # The output of the kernel until the error helps to find its cause.
        _show_prints(_console(options), program)
        raise UserError(str(error)) from None
    console = show_report(options, report, program)
    for name, array in report.outputs.items():
        flat = array.ravel()
        shown = " ".join(f"{x:g}" for x in flat[:8].tolist())
        dots = " …" if flat.size > 8 else ""
        console.print(f"{name} ({flat.size:,} {array.dtype}): {shown}{dots}", markup=False)
    results = [(e, *_compared(e, report)) for e in expected]
    for _, _, line in results:
        console.print(line, markup=False, soft_wrap=True)
    core = on_core(options, program, report, console) if options.core and report.outputs else {}
    if options.out:
        with open_whole(options.out) as file:
            np.savez(file, **report.outputs)  # pyright: ignore[reportArgumentType]
        console.print(str(Path(options.out)), markup=False)
    if options.json:
        prints = [{"core": core, "text": text} for core, text in program.prints]
        figures = {"cube": options.cube, **report.as_dict(), "prints": prints}
        figures["expect"] = [
            {"name": e.name, "file": e.file, "elements": e.values.size, "differ": differ}
            for e, differ, _ in results
        ]
        figures |= {"core": core} if core else {}
        write_json(options.json, figures)
    wrong = core.get("differ", 0) or any(differ for _, differ, _ in results)
    return 1 if report.findings or wrong else 0


def _compared(expected: ExpectedArray, report: "Report") -> tuple[int, str]:
    """Return the number of elements that differ from those expected, and a line that says so."""
    if expected.name in report.outputs:
        return expected.compare(report.outputs[expected.name])
    missing = "data not computed: see what the checks found"
    return expected.values.size, f"{expected.name}: not compared with {expected.file}: {missing}"
