"""The command ``machines``: list the known matrix units, and compare them with results."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.machines_check import add_check, refuse_check_options, run_check
from vitruvian.commands.machines_results import add_results, refuse_results_options, run_results
from vitruvian.commands.options import add_json
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, write_all
from vitruvian.common.table import counted, open_console, print_table

if TYPE_CHECKING:
    from vitruvian.golden.machines import Machine

_DESCRIPTION = """\
List the matrix units whose arithmetic is known, one line for each instruction and result format,
with the rule and its evidence: S, measured on silicon; V, the vendor's model, executed; P, a
peer's model, executed; D, documentation. NAME is a machine (h100), a machine and an instruction
(h100_wgmma) or a whole row (h100_wgmma_e4m3_fp32); a row is printed with all parameters.

With --check, compare golden, and RTL where a unit has the rule, with sets of results, bit for bit.
NAME is then a set STEM.npz with the codes a, b, c and d, or a folder of such files. By default, the
sets in ../shared/data are compared if they are there, and otherwise samples of 139 sets that come
with the project.

With --c, write rules as C99 without dependencies, for other emulators: a function computes one
step.

With --errors, compute the errors of each rule on random operands, and with --area, measure the
area and the delay of its unit. Rows with the same rule are one line."""

_EPILOG = """\
Example: vitruvian machines h100
         vitruvian machines b200_nvf4_ue4m3_fp32
         vitruvian machines h100_mma_fp16_fp32 --c rules
         vitruvian machines --check measured/h100_wgmma_e4m3_fp32.npz
         vitruvian machines --errors --area --liberty nangate45 --out docs/results"""


def register(name: str, commands: Any) -> None:
    """Add the command ``machines`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="List only these rows, or compare these sets."
    )
    add_check(parser)
    add_results(parser)
    parser.add_argument(
        "--c",
        metavar="FOLDER",
        type=output_path(folder=True),
        help="Write the rule of each row as C99, a file and its header, into this folder.",
    )
    add_json(parser, "the rows")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vitruvian.golden.machines import grouped, machine_name, machines, missing, unknown

    wanted = options.errors or options.area
    if options.check and wanted:
        raise UserError("--check must come without --errors and --area")
    if not wanted:
        refuse_results_options(options)
    if options.check:
        return run_check(options)
    refuse_check_options(options)
    if options.c and (wanted or not options.names):
        raise UserError("--c must come with NAME, and without --errors and --area")
    rows = _chosen(options.names, list(machines().values()))
    if wanted:
        if options.names and not rows:
            raise UserError(f"NAME must have a known rule, not {', '.join(options.names)}")
        return run_results(options, rows)
    if options.c:
        return _write_c(Path(options.c), rows, options.json)
    # With --json -, standard output holds nothing but JSON.
    stream = sys.stderr if options.json == "-" else sys.stdout
    if len(rows) == 1:
        lines = _parameters(rows[0])
        console = open_console(stream)
        title = f"{rows[0].stem}: {rows[0].maker} {rows[0].title}; evidence {rows[0].evidence}"
        console.print(title, markup=False, soft_wrap=True)
        print_table(console, ("parameter", "value"), [(n, _word(v)) for n, v in lines.items()])
        records: list[dict[str, object]] = [{"stem": rows[0].stem, **_plain(lines)}]
    else:
        listed = {row.machine for row in rows} | {
            machine_name(name.lower()) for name in options.names
        }
        if not options.names:  # machines without any known rule, too
            listed |= {entry.machine for entry in missing().values()}
        records = grouped(rows) + unknown(listed)
        header = ("machine", "instruction", "formats", "result", "rule", "evidence")
        console = open_console(stream)
        cells = [[str(record[name]) for name in header] for record in records]
        many = counted(len({row.machine for row in rows}), "machine")
        count = f"{counted(len(rows), 'combination')} of {many}" if rows else None
        print_table(console, header, cells, note=count)
    if options.json:
        write_json(options.json, {"rows": records})
    return 0


def _write_c(folder: Path, rows: list["Machine"], json: str | None) -> int:
    """Write the rules of rows as C files."""
    from vitruvian.golden.machines.c99 import c_source, function_name

    if not rows:
        raise UserError("NAME must have a known rule")
    files: dict[Path, bytes | str] = {}
    written: list[dict[str, str]] = []
    for row in rows:
        files[folder / f"{row.stem}.h"], files[folder / f"{row.stem}.c"] = c_source(row)
        written.append({"stem": row.stem, "function": function_name(row)})
    write_all(files)
    stream = sys.stderr if json == "-" else sys.stdout
    for each in written:
        print(f"{folder / each['stem']}.c: {each['function']}", file=stream)
    if json:
        write_json(json, {"written": written})
    return 0


def _chosen(names: list[str], rows: list["Machine"]) -> list["Machine"]:
    """Return the rows that the names stand for, once each, or all rows if there are no names."""
    from vitruvian.golden.machines import matching

    if not names:
        return rows
    # A dict has each row once, in the order of the names.
    return list({row.stem: row for name in names for row in matching(name)}.values())


def _parameters(row: "Machine") -> dict[str, object]:
    """Return every parameter of a rule that is not at its default, by name."""
    from vitruvian.golden.machines.spec import changed_parameters

    found: dict[str, object] = {"kind": row.kind}
    if row.no_set:
        found["no set of results"] = row.no_set
    return found | changed_parameters(row.rule)


def _word(value: object) -> str:
    return f"{value:#x}" if isinstance(value, int) and value > 1 << 12 else str(value)


def _plain(parameters: dict[str, object]) -> dict[str, object]:
    """Return values that JSON has; a format becomes its name."""
    plain = (str, int, float, bool, type(None), tuple)
    return {name: v if isinstance(v, plain) else str(v) for name, v in parameters.items()}
