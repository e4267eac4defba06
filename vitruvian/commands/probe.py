"""The command ``probe``: write programs that probe a matrix unit, and read what they returned."""

import argparse
import io
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, reason_of, write_all
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table

if TYPE_CHECKING:
    from vitruvian.flows.probes.file import ProbeSection
    from vitruvian.golden.machines.probe import Inferred, Results

_TARGETS = ("cuda", "hip", "amx", "avx512", "python")
#: Names of the kinds of rules for people
_KINDS = {
    "ChainSpec": "a chain of rounded operations",
    "DotSpec": "a windowed sum",
    "IntDotSpec": "a sum of integers",
    "IntPhaseSpec": "a sum of integers in phases",
    "PhaseSpec": "a sum in phases",
    "RdnaSpec": "a step of RDNA",
}
_DESCRIPTION = """\
Find out what a matrix unit computes.

`write` writes a program for a target, its operands and a Makefile into a folder. On a machine with
the unit, `make` there runs each instruction on the operands and writes outputs.bin. The target
python is for a function, a simulator or a library of your own, with --instruction INPUT_OUTPUT_kK.

`read` compares such a file with the known machines and names those that return the same results.
If there is none, it infers the parameters of the rule and, with --out, writes a machine file. For
each parameter it prints the first row in which the neighbouring value would give another result.
FILE may also be an .npz file with the codes a, b, c and d; --input and the type of d say the
formats, unless the file has a header. A FILE has at most 256 MiB.

`run` needs no folder: FILE is module:function, a function of the arrays of codes A, B and C that
returns the codes of D, or a command line. The command reads a line for each dot product, with the
codes of A, of B and of C in hexadecimal, and prints a line with the code of D.

With --evidence, `read` and `run` write the operands and results of each instruction with their
comparison, for `vitruvian machines --check`.

The exit code is 1 if no rule fits the results of an instruction.
"""
_EPILOG = """\
Examples:
  vitruvian probe write --target cuda --out probe_cuda
  vitruvian probe write --target amx --instruction "*bf16*" --out probe_amx
  vitruvian probe write --target python --instruction fp16_fp32_k8 --out probe_mine
  vitruvian probe read probe_amx/outputs.bin --out machines
  vitruvian probe run "./simulator --option" --instruction fp16_fp32_k8 --evidence sets
"""


def register(name: str, commands: Any) -> None:
    """Add the command ``probe`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "action",
        choices=("write", "read", "run"),
        metavar="ACTION",
        help="Do this: write, read or run.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="Read these files of results, or run this function or program.",
    )
    parser.add_argument(
        "--target", metavar="TARGET", help=f"Probe a device of this kind: {', '.join(_TARGETS)}."
    )
    parser.add_argument(
        "--instruction",
        action="append",
        metavar="PATTERN",
        help="Take only instructions with such names; * and ? stand for any text.",
    )
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the program, or the machine files of inferred rules, into this folder.",
    )
    parser.add_argument(
        "--evidence",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write an .npz file with operands, results and comparison into this folder.",
    )
    parser.add_argument(
        "--input",
        metavar="FORMAT",
        help="Read operands of this format, or of two joined by _, in an .npz file.",
    )
    parser.add_argument(
        "--infer",
        action="store_true",
        help="Infer the parameters of known machines as well, with the rows they rest on.",
    )
    add_seed(parser)
    add_json(parser, "what was found")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.action == "write":
        return _write(options)
    return _report(options, _execute(options) if options.action == "run" else _read(options))


def _write(options: argparse.Namespace) -> int:
    from vitruvian.flows.probes.kit import chosen, write

    if options.files:
        raise UserError(f"write must come without FILE, not with {options.files[0]!r}")
    for name in ("target", "out"):
        if getattr(options, name) is None:
            allowed = f" {'|'.join(_TARGETS)}" if name == "target" else " FOLDER"
            raise UserError(f"write must come with --{name}{allowed}")
    for name in ("input", "infer", "evidence"):
        if getattr(options, name):
            raise UserError(f"--{name} must come with read")
    if options.seed >= 1 << 63:
        raise UserError(f"seed must be below 2^63, not {options.seed!r}")
    # A wrong pattern is an error before the bar appears.
    chosen(options.target, options.instruction or [])
    with Progress("operands", 1, after_s=2.0) as progress:
        try:
            done = write(
                options.target, options.instruction or [], Path(options.out), options.seed, progress
            )
        except OSError as error:
            raise UserError(
                f"--out must be a folder that can be written: {reason_of(error)}"
            ) from None
    stream = _stream(options)
    line = f"{options.out}: {len(done)} instructions; run make there, and read outputs.bin"
    print(line, file=stream)
    if options.json:
        names = [each.name for each in done]
        write_json(options.json, {"target": options.target, "instructions": names})
    return 0


_Found = list[tuple[str, str, list["ProbeSection"]]]


def _read(options: argparse.Namespace) -> _Found:
    """Return the files with their devices and instructions."""
    for option in ("target", "instruction"):
        if getattr(options, option):
            raise UserError(f"--{option} must come with write")
    if not options.files:
        raise UserError("read must come with at least one FILE")
    return [(path, *_load(Path(path), options.input)) for path in options.files]


def _execute(options: argparse.Namespace) -> _Found:
    """Return what a function or a program of the user computes."""
    from vitruvian.flows.probes.run import run

    for option in ("target", "input"):
        if getattr(options, option):
            raise UserError(
                f"--{option} must come with {'write' if option == 'target' else 'read'}"
            )
    if len(options.files) != 1:
        raise UserError("run must come with one function or program, in quotes if it has options")
    (target,) = options.files
    return [(target, target, run(target, options.instruction or [], options.seed))]


def _report(options: argparse.Namespace, found: _Found) -> int:
    """Name or infer the rules of results, and write what was asked for."""
    from vitruvian.flows.probes.evidence import evidence, paths
    from vitruvian.flows.probes.file import results_of
    from vitruvian.golden.machines.probe import infer, machine_file, name

    records: list[dict[str, object]] = []
    files: dict[Path, bytes | str] = {}
    sets: list[tuple[str, bytes]] = []
    console = open_console(_stream(options))
    total = sum(len(sections) for _, _, sections in found)
    fits = True
    with Progress("infer", total, after_s=2.0) as progress:
        for path, device, sections in found:
            for section in sections:
                results = results_of(section)
                progress(section.name, len(records), total)
                step = partial(_show_step, progress)
                # All are equally good; that of the same name comes first.
                matches = sorted(name(results), key=lambda m: m.machine.stem != section.name)
                known = bool(matches) and not matches[0].wrong
                if options.evidence:
                    sets.append(evidence(section, device, matches))
                record: dict[str, object] = {
                    "file": path,
                    "device": device,
                    "instruction": section.name,
                    "rows": len(results.d),
                    "machines": [m.machine.stem for m in matches] if known else [],
                }
                if options.infer or not known:
                    inferred = infer(results, known=known, progress=step)
                    # A rule that some rows contradict is printed, but is no success.
                    fits = fits and not inferred.wrong
                    record |= _record(inferred, results, matches)
                    if not inferred.wrong and options.out:
                        text = machine_file(
                            inferred.rule, results, machine="unknown", instruction=section.name
                        )
                        files[Path(options.out) / f"{section.name}.toml"] = text
                records.append(record)
    # Files are written when all instructions have been inferred: all or none.
    written = paths(Path(options.evidence), sets) if options.evidence else {}
    write_all(files | written)
    for record in records:
        _print(console, record)
    for path in (*files, *written):
        what = (
            "operands, results and comparison" if path in written else "the rule as a machine file"
        )
        print(f"{path}: {what}", file=console.file)
    if options.json:
        write_json(options.json, {"instructions": records})
    return int(not fits)


def _show_step(progress: Progress, step: str, tried: int) -> None:
    progress.update(note=f"{step}, {tried:,} comparisons")


def _load(path: Path, input: str | None) -> tuple[str, list["ProbeSection"]]:
    from vitruvian.flows.probes.file import read
    from vitruvian.flows.probes.npz import read_npz

    try:
        with path.open("rb") if path.is_file() else io.BytesIO() as file:
            # The signature of a zip archive, which an .npz file is, whatever its name.
            zipped = file.read(2) == b"PK"
    except (OSError, ValueError):
        zipped = False  # ``read`` says why
    return read_npz(path, input) if zipped else read(path)


def _record(inferred: "Inferred", results: "Results", matches: Any) -> dict[str, object]:
    """Return what was inferred, in values that JSON has."""
    closest = [m.machine.stem for m in matches[:1]]
    basis = [
        {
            "parameter": b.name,
            "value": _word(b.value),
            "not determined": _range(b.same),
            "row": b.row,
            "instead": None if b.row is None else _word(b.other),
            "operands": None if b.row is None else _operands(results, b.row),
        }
        for b in inferred.basis
    ]
    return {
        "kind": type(inferred.rule).__name__,
        "rule": {name: _word(value) for name, value in _parameters(inferred.rule).items()},
        "wrong": inferred.wrong,
        "first": inferred.first,
        "closest": closest[0] if closest else None,
        "closest wrong": matches[0].wrong if closest else None,
        "nan codes": [f"{code:#x}" for code in inferred.nan_codes],
        "basis": basis,
    }


def _parameters(rule: object) -> dict[str, object]:
    from vitruvian.golden.fp import DotSpec

    if isinstance(rule, DotSpec):
        return rule.parameters()
    return {name: getattr(rule, name) for name in getattr(rule, "__dataclass_fields__", {})}


def _word(value: object) -> str:
    # Large numbers of rules are masks and NaN codes.
    if isinstance(value, int) and not isinstance(value, bool) and value > 1 << 12:
        return f"{value:#x}"
    name = getattr(value, "name", None)
    return str(value) if name is None else str(name)


def _range(same: tuple[object, ...]) -> str:
    """Return values as text, an interval by its ends."""
    numbers = sorted(v for v in same if isinstance(v, int) and not isinstance(v, bool))
    # In Python True is 1, and in a list of numbers, too.
    others = [_word(v) for v in same if v not in numbers or isinstance(v, bool)]
    if len(numbers) > 2:
        others.insert(0, f"{numbers[0]} to {numbers[-1]}")
    else:
        others = [*map(str, numbers), *others]
    return ", ".join(others)


def _operands(results: "Results", row: int) -> str:
    """Return the terms of a row that are not zero, as the pages on machines print them."""
    a, b = results.a[row], results.b[row]
    # Codes of +0 only: a −0 is of interest.
    kept = [k for k in range(len(a)) if a[k] and b[k]]
    shown = ", ".join(f"[{k}] {a[k]:#x} {b[k]:#x}" for k in kept[:4])
    shown += ", …" if len(kept) > 4 else ""
    return f"a, b = {shown or 'zeros'}; c = {results.c[row]:#x}; d = {results.d[row]:#x}"


def _unfit(record: dict[str, object]) -> str:
    near = f"; of the known machines, {record['closest']} is closest ({record['closest wrong']})"
    return (
        f"no rule fits; {record['wrong']} of {record['rows']} rows differ from the closest, "
        f"{_KINDS[str(record['kind'])]}, first row {record['first']}"
        f"{near if record['closest'] else ''}"
    )


def _stream(options: argparse.Namespace) -> TextIO:
    """Return the stream of lines: standard error if JSON goes to standard output."""
    return sys.stderr if options.json == "-" else sys.stdout


def _print(console: Any, record: dict[str, object]) -> None:
    where = f" ({record['device']})" if record["device"] else ""
    machines: Any = record["machines"]
    if machines:
        text = f"{record['rows']} rows as {', '.join(machines)}"
    elif record["wrong"]:
        text = _unfit(record)
    else:
        text = f"no known machine; {record['rows']} rows fit"
    print(f"{record['instruction']}{where}: {text}", file=console.file)
    basis: Any = record.get("basis")
    if basis:
        header = ("parameter", "value", "not determined", "row", "instead", "operands")
        cells = [["" if b[h] is None else str(b[h]) for h in header] for b in basis]
        print_table(console, header, cells)
