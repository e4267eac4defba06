"""The command ``formal``, which proves properties of the RTL."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_jobs, add_json, add_markdown, add_no_cache
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, write_whole
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table

if TYPE_CHECKING:
    from vitruvian.flows.formal.run import ProofRow

_FOLDER = "build/formal"


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Prove properties of the RTL: contracts of the streams without a bound on "
        "time, the assignment of\nlimbs, and the equality of small floating-point units with "
        "word-level references.\nA property that does not hold gives a waveform.",
        epilog="Example: vitruvian formal 'cube.*' --mutations",
    )
    parser.add_argument(
        "proof",
        nargs="*",
        metavar="PROOF",
        help="Run the proofs of these names, or all that match shell patterns (default: all).",
    )
    parser.add_argument(
        "--mutations",
        action="store_true",
        help="Run each proof on mutations of the RTL, too, which it must catch.",
    )
    parser.add_argument("--list", action="store_true", help="List the proofs and stop.")
    parser.add_argument(
        "--balance",
        action="store_true",
        help="Count instead the registers on every path of the pipelines of the units PROOF "
        "(default: all) at every depth. With --mutations, take the registers from each crossing "
        "of a boundary in turn, which the count must notice. With --list, say which values of the "
        "options rows of verify compare with golden, and which are counted only.",
    )
    parser.add_argument(
        "--every",
        action="store_true",
        help="With --balance, take every configuration of the catalogue and every value of each "
        "option, which takes an hour.",
    )
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the waveforms of broken properties and of caught mutations into this folder "
        f"(default: broken properties only, into {_FOLDER}).",
    )
    add_no_cache(parser, "run every prover again")
    add_markdown(parser, "the table")
    add_jobs(parser)
    add_json(parser, "the rows")
    parser.set_defaults(run=_formal)


def _formal(options: argparse.Namespace) -> int:
    from vitruvian.flows.asic.report import document
    from vitruvian.flows.formal.catalogue import matching
    from vitruvian.flows.formal.engine import check_packages
    from vitruvian.flows.formal.run import HEADER, cells, run

    if options.markdown and options.markdown == options.json:
        raise UserError(f"--markdown and --json must be different, not both {options.json!r}")
    if options.balance:
        from vitruvian.commands.balance import count

        return count(options)
    if options.every:
        raise UserError("--every must come with --balance")
    proofs = matching(options.proof)
    # The table then goes to standard error, so that the document can be piped.
    to_stdout = "-" in (options.json, options.markdown)
    console = open_console(sys.stderr if to_stdout else None)
    if options.list:
        for name in ("mutations", "out", "json", "markdown", "no_cache"):
            if getattr(options, name):
                raise UserError(f"--list must come without --{name.replace('_', '-')}")
        lines = [[p.name, p.component, p.method, p.claim] for p in proofs]
        print_table(console, ["property", "component", "method", "claim"], lines)
        return 0
    # A missing prover is an error now, and not after an hour.
    check_packages(proof.method for proof in proofs)
    rows: list[ProofRow] = []
    with Progress() as progress:
        for row in run(
            proofs,
            mutations=options.mutations,
            cache=not options.no_cache,
            jobs=options.jobs,
            progress=progress,
        ):
            rows.append(row)
            _report(row, options.out)
    print_table(console, HEADER, cells(rows, proofs), right=("seconds",))
    total = sum(row.outcome.seconds for row in rows)
    # A row of a mutation passes if the proof fails.
    held = sum(row.passed for row in rows if row.mutation is None)
    caught = sum(row.passed for row in rows if row.mutation is not None)
    text = f"{held} of {len(proofs)} properties hold"
    if options.mutations:
        text += f", {caught} of {len(rows) - len(proofs)} mutations are caught"
    console.print(f"{text}; {total:.0f} s of proof")
    if options.markdown:
        text = document((list(HEADER), cells(rows, proofs)), options.markdown)
        if options.markdown == "-":
            sys.stdout.write(text)
        else:
            write_whole(options.markdown, text)
    if options.json:
        write_json(options.json, [row.as_json() for row in rows])
    return int(not all(row.passed for row in rows))


def _report(row: "ProofRow", out: str | None) -> None:
    """Write the waveform of a row, and say in a line what happened if it was not expected."""
    from vitruvian.flows.formal.run import write_waveform

    # Waveforms of caught mutations are many, and of interest only on request.
    if row.outcome.vcd and (out or row.mutation is None):
        path = write_waveform(row, Path(out or _FOLDER))
        print(f"{row.line()}; waveform: {path}", file=sys.stderr)
    elif not row.passed:
        print(row.line(), file=sys.stderr)
