"""The command ``studies``: case studies on a matrix unit by several methods to multiply."""

import argparse
import math
import sys
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import (
    add_json,
    add_seed,
    add_size,
    at_least,
    compiling,
    lanes,
    refuse_others,
)
from vitruvian.common.errors import UserError
from vitruvian.common.extras import is_installed, missing
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import one_of, refusal

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.sim.studies import Cost, RunOptions, Study, StudyKernel, StudyRow


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Run numerical kernels with several methods to multiply matrices, and print\n"
        "errors, instructions and cycles.",
        epilog="Example: vitruvian studies sgemm --size 64 --methods FP16,FP32",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="*",
        metavar="KERNEL",
        help="Run the kernel of this name, or all that match a shell pattern (default: all).",
    )
    parser.add_argument("--list", action="store_true", help="List the kernels and stop.")
    add_size(
        parser, "Solve a problem of this size, one number (default: each kernel's, see --list)."
    )
    parser.add_argument(
        "--methods",
        metavar="A,B",
        help="Use these methods, separated by commas (default: those of the kernel).",
    )
    parser.add_argument(
        "--backend",
        default="golden",
        metavar="NAME",
        help="Compute the products on this back end: golden or rtl (default: %(default)s).",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="Compare products with golden; a backend other than golden always does.",
    )
    parser.add_argument(
        "--unit",
        type=lanes,
        metavar="MxNxK",
        help="Set the rows, columns and 16-bit lanes of the unit (default: the kernel's).",
    )
    parser.add_argument(
        "--multiplier-bits",
        type=at_least(4),
        metavar="W",
        help="Set the width of the unit's multipliers (default: the kernel's).",
    )
    parser.add_argument(
        "--preset",
        metavar="GPU",
        help="Give the one-step precisions the accuracy of this GPU (default: the kernel's).",
    )
    add_seed(parser)
    add_json(parser, "the tables")
    parser.set_defaults(run=_kernels)


def _kernels(options: argparse.Namespace) -> int:
    """Run the chosen kernels; return 1 if a checked product differs from golden."""
    from vitruvian.sim.studies import KERNELS

    chosen = [kernel for kernel in KERNELS.values() if fnmatchcase(kernel.name, options.name)]
    if not chosen:
        raise UserError(refusal("kernel", options.name, KERNELS, "match one of"))
    if options.list:
        refuse_others(
            options,
            ("size", "methods", "verify", "unit", "multiplier_bits", "preset", "json"),
        )
        for k in chosen:
            print(f"{k.name:10} {k.title}; size: {k.size}, {k.low} to {k.high} ({k.default})")
        return 0
    size: int | None = options.size[0] if options.size else None
    if options.size and len(options.size) > 1:
        raise UserError(f"--size must be one number, not {'x'.join(map(str, options.size))}")
    if size is not None and len(chosen) > 1:
        raise UserError(f"--size must come with one kernel, not {len(chosen)}")
    # All options are checked before the first kernel runs.
    runs = [_run_options(kernel, options) for kernel in chosen]
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    studies: list[Study] = []
    for kernel, run in zip(chosen, runs, strict=True):
        with compiling(f"the unit of {kernel.name}"):
            studies.append(_run(kernel, kernel.default if size is None else size, run))
        _print(studies[-1], console)
    if options.json:
        write_json(options.json, [asdict(study) for study in studies])
    differ = sum(row.mismatches for study in studies for row in study.rows)
    if any(run.check for run in runs):
        console.print(f"{differ:,} elements of products differ from golden")
    return 1 if differ else 0


def _run_options(kernel: "StudyKernel", options: argparse.Namespace) -> "RunOptions":
    """Return the options of a run of a kernel; raise UserError for a mistake in the arguments."""
    from vitruvian.sim.studies import BACKENDS, as_method

    one_of("--backend", options.backend, BACKENDS)
    # The module is only looked for, because importing it takes seconds.
    if kernel.needs and not is_installed(kernel.needs):
        raise UserError(f"{kernel.name}: {missing(kernel.needs)}")
    lanes = dict(options.unit or {})
    for name in ("multiplier_bits", "preset"):
        if getattr(options, name) is not None:
            lanes[name] = getattr(options, name)
    changes: dict[str, Any] = {}
    try:
        if options.size is not None:
            kernel.check_size(options.size[0])
        if options.methods is not None:
            names = [as_method(name).name for name in options.methods.split(",")]
            # Each method once, in the order that was given.
            changes["methods"] = tuple(dict.fromkeys(names))
        return kernel.options(
            unit=replace(kernel.unit, **lanes),
            backend=options.backend,
            seed=options.seed,
            check=options.verify or options.backend != "golden",
            **changes,
        )
    except ValueError as error:
        raise UserError(f"{kernel.name}: {error}") from None


def _run(kernel: "StudyKernel", size: int, run: "RunOptions") -> "Study":
    """Run a kernel with a progress bar, which moves with every matrix product."""
    from vitruvian.sim.studies import METHODS

    # The bar moves by the products of a method, of which the split methods need several for each
    # one.
    weights = {name: len(METHODS[name].products) for name in run.methods}
    with Progress(kernel.name, sum(weights.values()), counts=False) as progress:
        started: list[str] = []
        products = 0

        def watch(method: str, cost: "Cost | None") -> None:
            nonlocal products
            if cost is None:
                # A method begins, so all methods that began earlier are finished.
                finished = sum(weights[name] for name in started)
                started.append(method)
                progress.update(f"{kernel.name}: {method}", done=finished)
            else:
                products += cost.products
                progress.update(note=f"{products / 1e6:.1f} M products")

        study = kernel.run(size, replace(run, watch=watch))
    if not run.left_out:
        return study
    note = f"left out, because the unit does not have them: {', '.join(run.left_out)}"
    return replace(study, notes=(*study.notes, note))


def _print(study: "Study", console: "Console") -> None:
    """Print the table of a study and its notes."""
    console.print(f"{study.kernel}: {study.title}", style="bold", markup=False)
    console.print(f"  {study.setting}\n  reference: {study.reference}", markup=False)
    console.print(f"  unit: {study.unit}; products by {study.backend}", markup=False)
    extras = list(study.rows[0].extras) if study.rows else []
    figures = ("max error", "mean error", *extras)
    measured = any(row.cost and row.cost.measured_cycles for row in study.rows)
    # Only the back end rtl measures cycles; its column would be empty for the others.
    counts = ("instructions", "cycles", "RTL cycles")[: 3 if measured else 2]
    header = ("method", *figures, "instruction", *counts)
    print_table(
        console,
        header,
        [_cells(row, extras)[: len(header)] for row in study.rows],
        right=(*figures, *counts),
        styles=["bold red" if row.mismatches else None for row in study.rows],
    )
    notes = list(study.notes)
    if measured:
        notes.append("RTL cycles: measured by hand-shakes, from reset to the last result")
    # FP16 overflows in several studies; that is a result, and needs a word.
    if not all(math.isfinite(row.max_error) for row in study.rows):
        notes.append("nan or inf: a value was too large for the method")
    notes.insert(0, "errors: differences from the reference, divided by its mean magnitude")
    for note in notes:
        console.print(f"  {note}", markup=False)
    console.print()


def _cells(row: "StudyRow", extras: list[str]) -> list[str]:
    """Return the cells of a row; the caller may leave out the last one, the measured cycles."""
    from vitruvian.sim.studies import INSTRUCTIONS

    cells = [row.method, f"{row.max_error:.1e}", f"{row.mean_error:.1e}"]
    cells += [f"{row.extras[name]:,.4g}" for name in extras]
    if row.cost is None:
        return [*cells, "-", "-", "-", "-"]
    shapes = [f"{name} {'×'.join(map(str, INSTRUCTIONS[name]))}" for name in row.costs]
    counts = row.cost.instructions, row.cost.model_cycles, row.cost.measured_cycles
    return [*cells, ", ".join(shapes), *(f"{count:,}" for count in counts)]
