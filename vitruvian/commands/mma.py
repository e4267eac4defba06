"""``mma``: matrix instructions back to back on the RTL, and the rates that come of it."""

import argparse
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed, at_least, compiling, refuse_others
from vitruvian.progress import Progress
from vitruvian.validate import one_of

if TYPE_CHECKING:
    from vitruvian.sim.rtl.mma import Rate

__all__ = ["register"]


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Run lists of matrix instructions back to back on the compiled RTL, compare "
        "the results\nwith golden, and print cycles and rates.",
        epilog="Example: vitruvian mma m3xu --count 128",
    )
    parser.add_argument(
        "units", nargs="*", metavar="UNIT", help="Units (default: all; see --list)."
    )
    parser.add_argument("--list", action="store_true", help="List units and instructions and stop.")
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
    from vitruvian.hdl.mma.issue import opcodes_of
    from vitruvian.sim.rtl.mma import UNITS

    for name in options.units:
        one_of("unit", name, UNITS)
    chosen = list(dict.fromkeys(options.units)) or list(UNITS)
    if options.list:
        refuse_others(options, ("json",))
        for name in chosen:
            print(f"{name:16} {', '.join(o.mnemonic for o in opcodes_of(UNITS[name]))}")
        return 0
    with compiling("the matrix units"):
        rates, baseline = _measure(chosen, options)
    console = Console(
        file=sys.stderr if options.json == "-" else sys.stdout,
        width=None if sys.stdout.isatty() else 120,
        highlight=False,
    )
    _print(rates, baseline, console)
    if options.json:
        write_json(
            options.json, [_row(u, rate, baseline) for u, rs in rates.items() for rate in rs]
        )
    differ = sum(rate.mismatches for found in rates.values() for rate in found)
    late = [(unit, rate) for unit, found in rates.items() for rate in found if rate.bubbles]
    console.print(f"{differ:,} results or fetches differ from golden")
    for unit, rate in late:
        text = f"{unit} {rate.name}: {rate.bubbles} cycles are neither steps nor latency"
        console.print(text, style="red", markup=False)
    return 1 if differ or late else 0


def _measure(units: list[str], options: argparse.Namespace) -> "tuple[dict[str, list[Rate]], Rate]":
    """Lists of one instruction each, then one of all of them in random order; and FP16's rate."""
    import numpy as np

    from vitruvian.golden.m3xu.isa import Opcode
    from vitruvian.hdl.mma.issue import opcodes_of
    from vitruvian.sim.rtl.mma import UNITS, measure

    given: dict[str, Any] = {"seed": options.seed}
    rates: dict[str, list[Rate]] = {}
    with Progress(total=sum(len(opcodes_of(UNITS[unit])) + 1 for unit in units)) as progress:
        for unit in units:
            config, found = UNITS[unit], rates.setdefault(unit, [])
            opcodes = opcodes_of(config)
            for opcode in opcodes:
                progress.update(f"{unit} {opcode.mnemonic}")
                name = opcode.mnemonic
                found.append(measure(config, [opcode] * options.count, name=name, **given))
                progress.advance()
            if len(opcodes) > 1:
                rng = np.random.default_rng(options.seed)
                order = [opcodes[n] for n in rng.integers(len(opcodes), size=options.count)]
                found.append(measure(config, order, name="mixed", **given))
            progress.advance()
        known = [rate for found in rates.values() for rate in found]
        baseline = next((rate for rate in known if rate.name == Opcode.FP16.mnemonic), None)
        if baseline is None:
            opcodes = [Opcode.FP16] * options.count
            baseline = measure(UNITS["m3xu"], opcodes, name=Opcode.FP16.mnemonic, **given)
    return rates, baseline


def _row(unit: str, rate: "Rate", baseline: "Rate") -> dict[str, Any]:
    """What the table has, with numbers as they are."""
    paper, source = _paper(rate)
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


def _paper(rate: "Rate") -> tuple[Fraction | None, str | None]:
    from vitruvian.sim.rtl.mma import PAPER

    return PAPER.get(rate.name.rpartition(".")[2], (None, None))


def _print(rates: "dict[str, list[Rate]]", baseline: "Rate", console: Console) -> None:
    from vitruvian.sim.rtl.mma import UNITS

    for unit, found in rates.items():
        config = UNITS[unit]
        console.print(
            f"{unit}: {config.m}×{config.n} outputs, {config.k} lanes, {config.lane_bits}-bit "
            f"multipliers",
            style="bold",
            markup=False,
        )
        table = Table()
        table.add_column("instruction", no_wrap=True)
        for name in ("in a list of", "cycles", "steps", "fill", "cycles each", "MACs/cycle"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("of FP16", justify="right", no_wrap=True)
        table.add_column("paper", no_wrap=True)
        for rate in found:
            paper, source = _paper(rate)
            mixed = rate.name == "mixed"
            table.add_row(
                rate.name,
                f"{rate.instructions}",
                f"{rate.cycles:,}",
                f"{rate.steps:,}",
                f"{rate.fill}",
                f"{float(rate.cycles_each):g}",
                "" if mixed else f"{float(rate.macs_per_cycle):g}",
                "" if mixed else str(rate.relative(baseline)),
                "" if paper is None else f"{paper} {source}",
                style="bold red" if rate.mismatches else None,
            )
        console.print(table)
