"""The command line: ``python -m flows verilog | area | timing | fpga | cells``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from flows import baseline, cells, fpga, report, table35, verilog
from flows.cache import write_atomic
from flows.errors import UserError, choose
from flows.liberty import LibertyError
from flows.measure import TARGETS_PS, Row, Settings, measure
from flows.progress import Progress
from flows.synth import Recipe, SynthesisError
from flows.unit import Variant
from flows.units import UNITS, reported, variants


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (`{self.prog} --help` lists what is allowed)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed or different, 2 misused."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (UserError, LibertyError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SynthesisError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m flows", description="What a unit costs; its Verilog.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    area = commands.add_parser("area", help="area (and delay) of units, per module, as a table")
    timing = commands.add_parser("timing", help="longest paths by class, or cell by cell")
    emit = commands.add_parser("verilog", help="write units as Verilog")
    blocks = commands.add_parser("fpga", help="LUTs, carry cells, flip-flops and DSP blocks")
    listing = commands.add_parser("list", help="units, their options and reported configurations")
    for command in (area, timing, emit, blocks):
        _add_unit_options(command)
    for command in (area, timing):
        _add_measure_options(command)
    area.add_argument("--modules", action="store_true", help="synthesise every module on its own")
    timing.add_argument("--path", action="store_true", help="print the longest path cell by cell")
    emit.set_defaults(all=True)
    emit.add_argument("--folder", type=Path, default=Path("build/verilog"), help="where to write")
    emit.add_argument("--stdout", action="store_true", help="print instead of writing files")
    blocks.add_argument(
        "--family", default=",".join(fpga.FAMILIES), help="ecp5 | xilinx7; both if left out"
    )
    blocks.add_argument("--element", action="store_true", help="one element of a tile, not all")
    blocks.add_argument("--no-cache", action="store_true", help="synthesise even what is known")
    blocks.set_defaults(run=_fpga, all=False)
    area.set_defaults(run=_area)
    timing.set_defaults(run=_timing)
    emit.set_defaults(run=_verilog)
    listing.set_defaults(run=_list)
    docs = commands.add_parser("docs", help="write the generated parts of docs/units anew")
    docs.add_argument("--check", action="store_true", help="only say whether they are up to date")
    docs.set_defaults(run=_docs)
    library = commands.add_parser("cells", help="write the built-in cell library, or compare it")
    library.add_argument("--write", type=Path, metavar="FILE", help="write it as liberty")
    library.add_argument("--compare", action="store_true", help="against Nangate45 on our units")
    library.set_defaults(run=_cells, markdown=None)
    for command in (area, timing, emit, blocks, listing, library):
        command.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    library.add_argument("--markdown", type=Path, metavar="FILE", help="write the comparison")
    return parser


def _add_unit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unit", nargs="*", help=f"{', '.join(UNITS)}; every unit if left out")
    group = parser.add_argument_group(
        "configuration (comma-separated lists and ranges a-b allowed)"
    )
    helps: dict[str, dict[str, str]] = {}
    flags = set()
    for unit in UNITS.values():
        for name, option in unit.options.items():
            helps.setdefault(name, {})[option.help] = ""
            if option.flag:
                flags.add(name)
    for name, texts in helps.items():
        switch = f"--{name.replace('_', '-')}"
        text = "; ".join(texts).replace("%", "%%")
        if name in flags:
            group.add_argument(switch, dest=f"unit_{name}", action="store_true", help=text)
        else:
            group.add_argument(switch, dest=f"unit_{name}", metavar="…", help=text)


def _add_measure_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="also what is not reported unless its unit is named"
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="synthesise a unit in one piece: no path is cut",
    )
    parser.add_argument("--liberty", default=cells.BUILT_IN, help="vt45 | nangate45 | FILE")
    parser.add_argument(
        "--delay-target", type=int, action="append", help="delay target, ps (repeat)"
    )
    parser.add_argument("--driving-cell", default="BUF_X4", help="cell that drives every input")
    parser.add_argument("--load", type=float, default=5.0, help="load on every output, fF")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--no-cache", action="store_true", help="synthesise even what is known")
    parser.add_argument(
        "--baseline", action="store_true", help="difference from what is checked in"
    )
    parser.add_argument("--update-baseline", action="store_true", help="store these figures")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write bars as SVG")


def _variants(options: argparse.Namespace) -> list[Variant]:
    """Return the variants that the command line names."""
    given = {
        name.removeprefix("unit_"): value
        for name, value in vars(options).items()
        if name.startswith("unit_") and value not in (None, False)
    }
    having = [name for name, unit in UNITS.items() if given.keys() <= set(unit.options)]
    units = [choose("unit", name, UNITS) for name in options.unit] or having
    found = []
    for name in units:
        if not given:
            found += reported(name, everything=bool(options.unit) or options.all)
            continue
        known = UNITS[name].options
        values = {k: known[k].values(v) if k in known else [v] for k, v in given.items()}
        found += variants(name, values)
    return found


def _settings(options: argparse.Namespace) -> Settings:
    targets = tuple(dict.fromkeys(options.delay_target or TARGETS_PS))
    for name, value in (("delay target", min(targets)), ("jobs", options.jobs)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if options.load < 0:
        raise UserError(f"load must be 0 or more fF, not {options.load}")
    modules = getattr(options, "modules", False)
    if options.whole and (modules or options.baseline or options.update_baseline):
        raise UserError("--whole must come without --modules and baselines, which are of pieces")
    return Settings(
        library=cells.library(options.liberty, driving_cell=options.driving_cell),
        recipe=Recipe(driving_cell=options.driving_cell, load_ff=options.load),
        targets_ps=targets,
        cut="whole" if options.whole else "modules" if modules else "shared",
        cache=not options.no_cache,
        jobs=options.jobs,
    )


def _measure(options: argparse.Namespace) -> tuple[list[Row], Settings]:
    wanted = _variants(options)
    settings = _settings(options)
    with Progress() as progress:
        return measure(wanted, settings, progress=progress), settings


def _finish(options: argparse.Namespace, rows: list[Row], settings: Settings, table: Any) -> int:
    """Write the files that were asked for; compare with or store the baseline."""
    if options.json:
        document = {
            "library": {"name": settings.library.name, "sha256": settings.library.sha256},
            "recipe": vars(settings.recipe),
            "rows": [row.as_json() for row in rows],
        }
        _write_json(options.json, document)
    if options.markdown:
        write_atomic(options.markdown, report.markdown(table))
    if options.svg:
        write_atomic(options.svg, report.svg_bars(rows, library=settings.library.name))
    code = 0
    if options.baseline:
        differences = baseline.compare(rows, settings.library.name)
        changed = [d for d in differences if not d.same]
        if changed:
            report.show(baseline.table(changed), title="Different from the baseline")
            code = 1
        print(f"baseline: {len(differences) - len(changed)} figures equal, {len(changed)} not")
    if options.update_baseline:
        for path in baseline.update(rows, settings):
            print(f"wrote {path}")
        code = 0
    return code


def _area(options: argparse.Namespace) -> int:
    rows, settings = _measure(options)
    table = report.area_table(rows)
    report.show(table, title=f"Area, library {settings.library.name}", note=report.NOTE)
    if any(len(row.pieces) > 1 for row in rows):
        modules = report.module_table([row for row in rows if len(row.pieces) > 1])
        report.show(modules, title=f"Modules at {settings.targets_ps[0]} ps")
    for title, part in table35.tables(rows, settings.library.name, everything=not options.unit):
        report.show(part, title=title)
    return _finish(options, rows, settings, table)


def _timing(options: argparse.Namespace) -> int:
    rows, settings = _measure(options)
    table = report.timing_table(rows)
    title = f"Longest paths, ns, library {settings.library.name}"
    report.show(table, title=title, note=report.NOTE)
    if options.path:
        for row in rows:
            for target in row.targets_ps:
                name = f"{row.variant.unit.name} {row.variant.label} at {target} ps"
                report.show(report.path_table(row, target), title=name)
    return _finish(options, rows, settings, table)


def _verilog(options: argparse.Namespace) -> int:
    wanted = _variants(options)
    if options.stdout:
        texts = [verilog.emit(variant) for variant in wanted]
        print("\n".join(texts), end="")
        return 0
    written = []
    with Progress() as progress:
        for number, variant in enumerate(wanted):
            progress(f"write {variant.module}", number, len(wanted))
            written.append((variant, verilog.write(variant, options.folder)))
    for _, path in written:
        print(path)
    if options.json:
        document = [
            {"unit": v.unit.name, "label": v.label, "command": v.arguments, "file": str(path)}
            for v, path in written
        ]
        _write_json(options.json, document)
    return 0


def _fpga(options: argparse.Namespace) -> int:
    families = [choose("family", name, fpga.FAMILIES) for name in options.family.split(",")]
    wanted = _variants(options)
    with Progress() as progress:
        lines = fpga.table(
            wanted,
            families,
            element=options.element,
            cache=not options.no_cache,
            progress=progress,
        )
    header = ["unit", "label", "family", "lut", "carry", "ff", "dsp"]
    texts = [[str(line[name]) for name in header] for line in lines]
    header[1] = "configuration"
    report.show(
        (header, texts),
        title="Cells of one element" if options.element else "Cells",
        note=fpga.NOTE,
    )
    if options.json:
        _write_json(options.json, lines)
    return 0


def _list(options: argparse.Namespace) -> int:
    for unit in UNITS.values():
        print(f"{unit.name}: {unit.summary}")
        for name, option in unit.options.items():
            print(f"  --{name.replace('_', '-')}: {option.help}")
        for variant in reported(unit.name):
            print(f"  {variant.arguments}")
    if options.json:
        document = {name: [v.arguments for v in reported(name)] for name in UNITS}
        _write_json(options.json, document)
    return 0


def _docs(options: argparse.Namespace) -> int:
    from flows import docs

    stale = docs.update(check=options.check)
    for path in stale:
        print(f"{'out of date' if options.check else 'wrote'}: {path.name}")
    if options.check and stale:
        print("`python -m flows docs` writes them anew")
    return int(options.check and bool(stale))


def _cells(options: argparse.Namespace) -> int:
    from flows.cells import compare, writer

    if options.write:
        write_atomic(options.write, writer.liberty())
        print(options.write)
    if options.compare:
        with Progress() as progress:
            comparison = compare.compare(progress=progress)
        table = compare.table(comparison)
        report.show(
            table, title="Built-in cells against Nangate45", note=compare.summary(comparison)
        )
        if options.markdown:
            write_atomic(options.markdown, report.markdown(table))
        if options.json:
            _write_json(options.json, compare.as_json(comparison))
    if not options.write and not options.compare:
        library = cells.library()
        lines = [
            [cell.name, f"{cell.area_um2:.3f}", " ".join(sorted(cell.caps)), " ".join(cell.outputs)]
            for cell in library.cells.cells.values()
        ]
        table = (["cell", "µm²", "inputs", "outputs"], lines)
        report.show(table, title=f"{library.name}: {library.path}")
        if options.json:
            document = [dict(zip(table[0], line, strict=True)) for line in lines]
            _write_json(options.json, document)
    return 0


def _write_json(path: Path, document: Any) -> None:
    write_atomic(path, json.dumps(document, indent=1, default=str) + "\n")
