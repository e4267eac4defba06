"""The command ``conformance``: write test vectors of a matrix unit's rule."""

import argparse
import sys
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed, at_least
from vitruvian.common.files import output_path, write_whole
from vitruvian.common.table import open_console, print_table

_DESCRIPTION = """\
Write operands and results of a matrix unit, computed by golden, for tests of another
implementation. NAME is a row of `vitruvian machines` with floating-point formats. The rows aim at
the steps of the rule in named strata: where bits are cut, cancellation, addition of C, signs of
zero, overflow, subnormal numbers, infinities and NaNs.

A text file (.hex) has one row in each line, for $readmemh of Verilog, and a header that explains
the columns and the rule; a file .npz has the same rows as arrays. For RVBNA, the command then
counts the rows in which wrong implementations differ, and ends with exit code 1 if one passes."""

_EPILOG = """\
Example: vitruvian conformance rvbna_bf16_n8_fp32 --out rvbna_bf16_n8_fp32.hex
         vitruvian conformance rvbna_e4m3_n4_fp32 --vectors 500"""


def register(name: str, commands: Any) -> None:
    """Add the command ``conformance`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("machine", metavar="NAME", help="Take this row of the table of machines.")
    parser.add_argument(
        "--out",
        type=output_path(".hex", ".npz"),
        metavar="FILE",
        help="Write the vectors to this file (.hex, .npz).",
    )
    parser.add_argument(
        "--vectors",
        type=at_least(100, 1_000_000),
        default=2000,
        metavar="N",
        help="Take this many rows (default: %(default)s).",
    )
    add_seed(parser)
    add_json(parser, "the strata and the wrong implementations")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    import numpy as np

    from vitruvian.golden.machines import find
    from vitruvian.sim.conformance import (
        STRATA,
        checksum,
        make_vectors,
        to_npz,
        to_text,
        wrong_rules,
    )

    machine = find(options.machine)
    vectors = make_vectors(machine, options.vectors, options.seed)
    if options.out:
        is_text = options.out.lower().endswith(".hex")
        write_whole(options.out, to_text(vectors) if is_text else to_npz(vectors))
    # A stratum may be empty: not every format has subnormal numbers or infinities.
    counts = np.bincount(vectors.operands.stratum, minlength=len(STRATA)).tolist()
    strata = [{"stratum": name, "rows": count} for name, count in zip(STRATA, counts, strict=True)]
    wrong: list[dict[str, object]] = []
    for name, run in wrong_rules(machine).items():
        # Each wrong implementation runs on the same operands: vectors that none of its rows tells
        # apart are too weak.
        differs = np.flatnonzero(run(vectors.operands) != vectors.d)
        first = int(differs[0]) if differs.size else None
        wrong.append({"implementation": name, "rows": int(differs.size), "first": first})
    passing = [row["implementation"] for row in wrong if not row["rows"]]
    # Of the vectors and not of the file, whose form may change.
    digest = checksum(vectors)
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    line = f"{machine.stem}: {len(vectors.d)} rows, SHA-256 {digest}"
    console.print(line, markup=False, soft_wrap=True)
    cells = [[str(value) for value in row.values()] for row in strata]
    print_table(console, ("stratum", "rows"), cells)
    if wrong:
        header = ("wrong implementation", "rows that differ", "first")
        cells = [["-" if v is None else str(v) for v in row.values()] for row in wrong]
        note = f"{len(wrong) - len(passing)} of {len(wrong)} wrong implementations are noticed"
        print_table(console, header, cells, note=note)
    if options.json:
        facts = {"machine": machine.stem, "sha256": digest, "strata": strata, "wrong": wrong}
        write_json(options.json, facts)
    return int(bool(passing))
