"""``vitruvian formal --balance``: the registers on every path of the units' pipelines."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vitruvian.cli import write_json
from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import one_of

if TYPE_CHECKING:
    from vitruvian.hdl.catalogue.unit import Unit, Variant

_HEADER = ("unit", "configurations", "depths", "unbalanced", "s")
_MUTANTS = ("crossings lost", "noticed", "without influence")
_NAMES = "values that are counted only"
_COVERED = ("unit", "values with a row", "counted only", "refused", _NAMES)
_SHOWN = 16  # values of an option in a cell


def count(options: argparse.Namespace) -> int:
    """Print a row for each unit; return 1 if a path is unbalanced or a lost register unnoticed."""
    from vitruvian.flows.formal.balance import NO_PIPELINE, findings, mutants, sweep
    from vitruvian.hdl.catalogue import UNITS

    for name in ("out", "no_cache"):
        if getattr(options, name):
            raise UserError(f"--balance must come without --{name.replace('_', '-')}")
    # Units without a pipeline are listed, but have nothing to count.
    known = [name for name in UNITS if options.list or name not in NO_PIPELINE]
    names = [one_of("unit", name, known) for name in options.proof] or known
    if options.list:
        _print(options, _COVERED, [_covered(UNITS[name]) for name in names])
        return 0
    lines: list[list[str]] = []
    failures = 0
    with Progress() as progress:
        for number, name in enumerate(names):
            progress(f"count {name}", number, len(names))
            began = time.monotonic()
            variants = sweep(UNITS[name], every=options.every)
            bad = [finding for finding in findings(variants) if finding.unbalanced]
            for finding in bad:
                print(f"{finding.variant.arguments}: {finding.unbalanced[0]}", file=sys.stderr)
            failures += len(bad)
            seconds = f"{time.monotonic() - began:.0f}"
            line = [name, f"{len(variants)}", _depths(variants), f"{len(bad)}", seconds]
            if options.mutations:
                outcome = mutants(_deepest(variants))
                for crossing in outcome.missed:
                    print(f"{outcome.variant.arguments}: {crossing} is missed", file=sys.stderr)
                failures += len(outcome.missed)
                lost = len(outcome.caught) + len(outcome.missed)
                line += [f"{lost}", f"{len(outcome.caught)}", f"{len(outcome.idle)}"]
            lines.append(line)
    _print(options, [*_HEADER, *(_MUTANTS if options.mutations else ())], lines)
    return int(failures > 0)


def _print(options: argparse.Namespace, header: Sequence[str], lines: list[list[str]]) -> None:
    """Print a table, and write it where the options want it."""
    from vitruvian.flows.asic.report import document

    to_stdout = "-" in (options.json, options.markdown)
    console = open_console(sys.stderr if to_stdout else None)
    right = [name for name in header[1:] if name != _NAMES]
    print_table(console, header, lines, right=right)
    if options.markdown == "-":
        sys.stdout.write(document((list(header), lines), "-"))
    elif options.markdown:
        write_whole(options.markdown, document((list(header), lines), options.markdown))
    if options.json:
        write_json(options.json, [dict(zip(header, line, strict=True)) for line in lines])


def _covered(unit: "Unit") -> list[str]:
    """Return how many values of a unit's options have a row of ``make sim``, and the others."""
    from vitruvian.flows.formal.balance import coverage

    found = coverage(unit)
    counted: dict[str, list[str]] = {}
    for (option, value), kind in found.items():
        if kind == "balance":
            counted.setdefault(option, []).append(value)
    others = [
        f"{option}: {', '.join(values) if len(values) <= _SHOWN else f'{len(values)} values'}"
        for option, values in counted.items()
    ]
    kinds = list(found.values())
    numbers = [f"{kinds.count(kind)}" for kind in ("row", "balance", "refused")]
    return [unit.name, *numbers, "; ".join(others) or "–"]


def _depths(variants: "Sequence[Variant]") -> str:
    """Return the range of the depths of some configurations."""
    depths = [_depth(variant) for variant in variants if "pipeline" in variant.configuration]
    return f"{min(depths)} to {max(depths)}" if depths else "–"


def _depth(variant: "Variant") -> int:
    """Return the depth of a configuration's pipeline, 0 without such an option."""
    return variant.configuration.get("pipeline") or 0


def _deepest(variants: "Sequence[Variant]") -> "Variant":
    """Return the first of the deepest configurations, with DSP multipliers if there are some."""
    return max(variants, key=lambda v: (_depth(v), v.configuration.get("multiplier") == "dsp"))
