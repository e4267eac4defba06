"""``kernels``: case studies on a matrix unit, by several ways to multiply."""

import argparse
import importlib.util
import math
import re
import sys
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed, at_least, compiling, lanes, refuse_others
from vitruvian.errors import UserError
from vitruvian.progress import Progress
from vitruvian.validate import one_of

if TYPE_CHECKING:
    from vitruvian.sim.studies import Cost, Kernel, Row, Setting, Study

__all__ = ["register"]


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Run numerical kernels with every way to multiply matrices, and print errors,\n"
        "instructions and cycles.",
        epilog="Example: vitruvian kernels sgemm --size 64 --methods FP16,FP32",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="*",
        metavar="KERNEL",
        help="A kernel or a shell pattern of kernels (default: all).",
    )
    parser.add_argument("--list", action="store_true", help="List the kernels and stop.")
    parser.add_argument(
        "--size",
        type=_size,
        metavar="N",
        help="Solve a problem of this size, a number or 2**N (default: each kernel's, see --list).",
    )
    parser.add_argument(
        "--methods",
        metavar="A,B",
        help="Multiply in these ways, separated by commas (default: all of the kernel's).",
    )
    parser.add_argument(
        "--backend",
        default="golden",
        help="Compute the products by golden or by rtl (default: %(default)s).",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Compare products with golden; a backend other than golden always does.",
    )
    parser.add_argument(
        "--unit",
        type=lanes,
        metavar="MxNxK",
        help="Rows, columns and 16-bit lanes of the unit (default: the kernel's).",
    )
    parser.add_argument(
        "--multiplier-bits",
        type=at_least(4),
        metavar="W",
        help="Width of the unit's multipliers (default: the kernel's).",
    )
    parser.add_argument(
        "--preset", help="GPU whose accuracy the one-step precisions have (default: the kernel's)."
    )
    add_seed(parser)
    add_json(parser, "the tables")
    parser.set_defaults(run=_kernels)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})|2(?:\*\*|\^)(\d{1,2})", text.replace("_", ""))
    if not found:
        raise argparse.ArgumentTypeError(f"must be a whole number or 2**N, not {text!r}")
    return int(found[1]) if found[1] else 1 << int(found[2])


def _kernels(options: argparse.Namespace) -> int:
    from vitruvian.sim.studies import KERNELS

    chosen = [kernel for kernel in KERNELS.values() if fnmatchcase(kernel.name, options.name)]
    if not chosen:
        raise UserError(f"kernel must match one of: {', '.join(KERNELS)}; not {options.name!r}")
    if options.list:
        refuse_others(
            options,
            ("size", "methods", "check", "unit", "multiplier_bits", "preset", "json"),
        )
        for k in chosen:
            print(f"{k.name:10} {k.title}; size: {k.size}, {k.low} to {k.high} ({k.default})")
        return 0
    if options.size is not None and len(chosen) > 1:
        raise UserError(f"--size must come with one kernel, not {len(chosen)}")
    settings = [_setting(kernel, options) for kernel in chosen]
    console = Console(
        file=sys.stderr if options.json == "-" else sys.stdout, width=_width(), highlight=False
    )
    studies = []
    for kernel, setting in zip(chosen, settings, strict=True):
        with compiling(f"the unit of {kernel.name}"):
            studies.append(_run(kernel, options.size or kernel.default, setting))
        _print(studies[-1], console)
    if options.json:
        write_json(options.json, [asdict(study) for study in studies])
    differ = sum(row.mismatches for study in studies for row in study.rows)
    if any(setting.check for setting in settings):
        console.print(f"{differ:,} elements of products differ from golden")
    return 1 if differ else 0


def _width() -> int | None:
    return None if sys.stdout.isatty() else 120


def _setting(kernel: "Kernel", options: argparse.Namespace) -> "Setting":
    """What the arguments ask of a kernel; a mistake is found before anything runs."""
    from vitruvian.sim.studies import BACKENDS, as_method

    one_of("--backend", options.backend, BACKENDS)
    if kernel.needs and importlib.util.find_spec(kernel.needs) is None:
        raise UserError(f"{kernel.name} needs scikit-learn; pip install scikit-learn")
    lanes = dict(options.unit or {})
    for name in ("multiplier_bits", "preset"):
        if getattr(options, name) is not None:
            lanes[name] = getattr(options, name)
    changes: dict[str, Any] = {}
    try:
        if options.size is not None:
            kernel.check_size(options.size)
        if options.methods is not None:
            names = [as_method(name).name for name in options.methods.split(",")]
            changes["methods"] = tuple(dict.fromkeys(names))
        return kernel.setting(
            unit=replace(kernel.unit, **lanes),
            backend=options.backend,
            seed=options.seed,
            check=options.check or options.backend != "golden",
            **changes,
        )
    except ValueError as error:
        raise UserError(f"{kernel.name}: {error}") from None


def _run(kernel: "Kernel", size: int, setting: "Setting") -> "Study":
    """Run a kernel with a bar that moves with every product of matrices."""
    from vitruvian.sim.studies import METHODS

    weights = {name: len(METHODS[name].products) for name in setting.methods}
    with Progress(kernel.name, sum(weights.values()), counts=False) as progress:
        begun: list[str] = []
        products = 0

        def watch(method: str, cost: "Cost | None") -> None:
            nonlocal products
            if cost is None:
                finished = sum(weights[name] for name in begun)
                begun.append(method)
                progress.update(f"{kernel.name}: {method}", done=finished)
            else:
                products += cost.products
                progress.update(note=f"{products / 1e6:.1f} M products")

        study = kernel.run(size, replace(setting, watch=watch))
    if not setting.left_out:
        return study
    note = f"left out, for the unit does not have them: {', '.join(setting.left_out)}"
    return replace(study, notes=(*study.notes, note))


def _print(study: "Study", console: Console) -> None:
    console.print(f"{study.kernel}: {study.title}", style="bold", markup=False)
    console.print(f"  {study.setting}\n  reference: {study.reference}", markup=False)
    console.print(f"  unit: {study.unit}; products by {study.backend}", markup=False)
    table = Table()
    table.add_column("method", no_wrap=True)
    extras = list(study.rows[0].extras) if study.rows else []
    for name in ("max error", "mean error", *extras):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("instruction", no_wrap=True)
    measured = any(row.cost and row.cost.clocks for row in study.rows)
    for name in ("instructions", "cycles", "RTL cycles")[: 3 if measured else 2]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in study.rows:
        cells = _cells(row, extras)
        style = "bold red" if row.mismatches else None
        table.add_row(*cells if measured else cells[:-1], style=style)
    console.print(table)
    notes = list(study.notes)
    if measured:
        notes.append("RTL cycles: by the unit's hand-shakes, from reset to the last result")
    if not all(math.isfinite(row.max_error) for row in study.rows):
        notes.append("nan or inf: a value was too large for the method")
    notes.insert(0, "errors: differences from the reference, over the reference's mean magnitude")
    for note in notes:
        console.print(f"  {note}", markup=False)
    console.print()


def _cells(row: "Row", extras: list[str]) -> list[str]:
    from vitruvian.sim.studies import INSTRUCTIONS

    cells = [row.method, f"{row.max_error:.1e}", f"{row.mean_error:.1e}"]
    cells += [f"{row.extras[name]:,.4g}" for name in extras]
    if row.cost is None:
        return [*cells, "-", "-", "-", "-"]
    shapes = [f"{name} {'×'.join(map(str, INSTRUCTIONS[name]))}" for name in row.costs]
    counts = row.cost.instructions, row.cost.cycles, row.cost.clocks
    return [*cells, ", ".join(shapes), *(f"{count:,}" for count in counts)]
