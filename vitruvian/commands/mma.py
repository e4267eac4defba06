"""The command ``mma``: the rates of matrix instructions that follow each other on the RTL."""

import argparse
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed, at_least, compiling, refuse_others
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table, print_text
from vitruvian.common.validate import one_of

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.sim.rtl.mma import IssueRate


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Run lists of matrix instructions without gaps on the compiled RTL, compare "
        "the results\nwith golden, and print cycles and rates.",
        epilog="Example: vitruvian mma m3xu --count 128",
    )
    parser.add_argument(
        "units", nargs="*", metavar="UNIT", help="Measure these units (default: all; see --list)."
    )
    parser.add_argument(
        "--list", action="store_true", help="List the units and their instructions, and stop."
    )
    parser.add_argument(
        "--count",
        type=at_least(2, 4096),
        default=64,
        metavar="N",
        help="Put this many instructions into a list (default: %(default)s).",
    )
    add_seed(parser)
    add_json(parser, "the rows")
    parser.set_defaults(run=_mma)


def _mma(options: argparse.Namespace) -> int:
    """Measure units; return 1 if a result differs from golden or a cycle is unexplained."""
    from vitruvian.hdl.mma.issue import opcodes_of
    from vitruvian.hdl.mma.unit import UNITS

    for name in options.units:
        one_of("unit", name, UNITS)
    chosen = list(dict.fromkeys(options.units)) or list(UNITS)
    if options.list:
        refuse_others(options, ("json",))
        console = open_console()
        for name in chosen:
            words = ", ".join(o.mnemonic for o in opcodes_of(UNITS[name]))
            print_text(console, f"{name:16} {words}", indent=17)
        return 0
    with compiling("the matrix units"):
        rates, baseline = _measure(chosen, options)
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    _print(rates, baseline, console)
    if options.json:
        write_json(
            options.json, [_row(u, rate, baseline) for u, rs in rates.items() for rate in rs]
        )
    differ = sum(rate.mismatches for rows in rates.values() for rate in rows)
    # Cycles that neither the steps of the instructions nor the fill of the pipeline explain.
    late = [(unit, rate) for unit, rows in rates.items() for rate in rows if rate.bubbles]
    console.print(f"{differ:,} results or fetches differ from golden")
    for unit, rate in late:
        text = f"{unit} {rate.name}: {rate.bubbles} cycles are neither steps nor latency"
        console.print(text, style="red", markup=False)
    return 1 if differ or late else 0


def _measure(
    units: list[str], options: argparse.Namespace
) -> "tuple[dict[str, list[IssueRate]], IssueRate]":
    """Return the rates of each unit, and the rate of FP16 as the baseline.

    The first rates of a unit are those of lists that repeat one instruction; the last one is that
    of a list of all instructions in random order.
    """
    import numpy as np

    from vitruvian.golden.m3xu.isa import Opcode
    from vitruvian.hdl.mma.issue import opcodes_of
    from vitruvian.hdl.mma.unit import UNITS
    from vitruvian.sim.rtl.mma import measure

    seed: int = options.seed
    count: int = options.count
    rates: dict[str, list[IssueRate]] = {}
    # One run for each instruction, and one with all of them mixed.
    with Progress(total=sum(len(opcodes_of(UNITS[unit])) + 1 for unit in units)) as progress:
        for unit in units:
            config, rows = UNITS[unit], rates.setdefault(unit, [])
            opcodes = opcodes_of(config)
            for opcode in opcodes:
                progress.update(f"{unit} {opcode.mnemonic}")
                name = opcode.mnemonic
                rows.append(measure(config, [opcode] * count, name=name, seed=seed))
                progress.advance()
            if len(opcodes) > 1:
                rng = np.random.default_rng(seed)
                order = [opcodes[int(n)] for n in rng.integers(len(opcodes), size=count)]
                rows.append(measure(config, order, name="mixed", seed=seed))
            progress.advance()
        known = [rate for rows in rates.values() for rate in rows]
        baseline = next((rate for rate in known if rate.name == Opcode.FP16.mnemonic), None)
        if baseline is None:
            # None of the chosen units has FP16, so it is measured on the unit that has it.
            opcodes = [Opcode.FP16] * count
            baseline = measure(UNITS["m3xu"], opcodes, name=Opcode.FP16.mnemonic, seed=seed)
    return rates, baseline


def _row(unit: str, rate: "IssueRate", baseline: "IssueRate") -> dict[str, Any]:
    """Return a row of the table for JSON, with unrounded numbers."""
    paper, source = _paper(rate)
    # The instructions of a mixed list do different amounts of work, so it has no rate of its own.
    mixed = rate.name == "mixed"
    return {
        "unit": unit,
        "instruction": rate.name,
        "instructions": rate.instructions,
        "cycles": rate.cycles,
        "steps": rate.steps,
        "fill": rate.fill,
        "bubbles": rate.bubbles,
        "cycles_per_instruction": float(rate.cycles_each),
        "shortest": min(rate.each),
        "longest": max(rate.each),
        "macs_per_cycle": None if mixed else float(rate.macs_per_cycle),
        "relative_to_fp16": None if mixed else float(rate.relative(baseline)),
        "paper": None if paper is None else float(paper),
        "source": source,
        "mismatches": rate.mismatches,
    }


def _paper(rate: "IssueRate") -> tuple[Fraction | None, str | None]:
    """Return the published rate relative to FP16 and its source; None if there is none."""
    from vitruvian.sim.rtl.mma import PAPER

    # A rate is named after its mnemonic, such as mma.16x8x8.fp32, and PAPER after its precision.
    return PAPER.get(rate.name.rpartition(".")[2], (None, None))


def _print(rates: "dict[str, list[IssueRate]]", baseline: "IssueRate", console: "Console") -> None:
    """Print a table for each unit."""
    from vitruvian.hdl.mma.unit import UNITS

    for unit, rows in rates.items():
        config = UNITS[unit]
        console.print(
            f"{unit}: {config.m}×{config.n} outputs, {config.k} lanes, {config.lane_bits}-bit "
            f"multipliers",
            style="bold",
            markup=False,
        )
        figures = ("in a list of", "cycles", "steps", "fill", "cycles each", "MACs/cycle")
        # The papers state rates relative to FP16's on the same unit.
        figures += ("of FP16",)
        lines: list[tuple[str, ...]] = []
        for rate in rows:
            paper, source = _paper(rate)
            mixed = rate.name == "mixed"
            lines.append(
                (
                    rate.name,
                    f"{rate.instructions}",
                    f"{rate.cycles:,}",
                    f"{rate.steps:,}",
                    f"{rate.fill}",
                    f"{float(rate.cycles_each):g}",
                    "" if mixed else f"{float(rate.macs_per_cycle):g}",
                    "" if mixed else str(rate.relative(baseline)),
                    "" if paper is None else f"{paper} {source}",
                )
            )
        print_table(
            console,
            ("instruction", *figures, "paper"),
            lines,
            right=figures,
            styles=["bold red" if rate.mismatches else None for rate in rows],
        )
