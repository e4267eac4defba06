"""The commands that measure and export hardware, from ``area`` to ``cells``."""

import argparse
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands import boards
from vitruvian.commands.hardware_options import add_command, described
from vitruvian.common.errors import UserError
from vitruvian.common.extras import check
from vitruvian.common.files import output_path, write_whole
from vitruvian.common.progress import Progress
from vitruvian.common.validate import one_of, shortened
from vitruvian.flows.asic import adders, baseline, cells, gates, report
from vitruvian.flows.asic.measure import TARGETS_PS, AreaRow, Settings, measure
from vitruvian.flows.asic.synth import SynthesisRecipe
from vitruvian.flows.fpga import mapping
from vitruvian.flows.pages import table35
from vitruvian.flows.units import UNITS, known, reported, variants
from vitruvian.flows.verilog import emit, register_files, sv_package, tapeout, unit_file
from vitruvian.hdl.catalogue.unit import Variant

#: Options whose value is an output file.
_OUTPUTS = ("json", "markdown", "svg", "out")


def register(name: str, commands: Any) -> None:
    """Add the command ``name``, a key of ``_COMMANDS``, to the parser."""
    command = add_command(name, commands)
    command.set_defaults(run=partial(_run, _COMMANDS[name]))


def _run(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a command; if one output is standard output, print everything else on standard error."""
    _check_outputs(options)
    options.stdout_file = sys.stdout
    if any(getattr(options, name, None) == "-" for name in _OUTPUTS):
        # Tables are printed too, but standard output must hold only the document.
        with redirect_stdout(sys.stderr):
            return command(options)
    return command(options)


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise UserError if two outputs name the same file."""
    given = {name: getattr(options, name, None) for name in _OUTPUTS}
    owners: dict[str, str] = {}  # file -> option that writes it
    for name, path in given.items():
        if path is None:
            continue
        file = path if path == "-" else str(Path(path).resolve())
        if file in owners:
            raise UserError(f"--{owners[file]} and --{name} must be different, not both {path!r}")
        owners[file] = name


def _write(path: str, text: str, options: argparse.Namespace) -> None:
    """Write one output file; the path ``-`` stands for standard output."""
    if path == "-":
        options.stdout_file.write(text)
        options.stdout_file.flush()
    else:
        write_whole(Path(path), text)


def _store(document: Any, options: argparse.Namespace) -> None:
    """Write the result of a command as JSON if ``--json`` names a file."""
    if options.json:
        write_json(options.json, document, stdout=options.stdout_file)


def _variants(options: argparse.Namespace) -> list[Variant]:
    """Return the variants that the command line selects.

    Raises
    ------
    UserError
        If no unit has all the given options, or if a variant cannot be built.
    """
    # An option without a value is None, or False if it is a flag. Values are still texts here, so
    # that "0" is not equal to False.
    given = {
        name.removeprefix("unit_"): value
        for name, value in vars(options).items()
        if name.startswith("unit_") and value not in (None, False)
    }
    if options.config is not None:
        unit, kept = unit_file.read(options.config)
        _agree(options, unit, kept, given)
        options.unit, given = [unit], {**kept, **given}
    # Without names, the options select every unit that has all of them.
    named = known(options.command)
    candidates = [
        name for name, unit in UNITS.items() if name in named and given.keys() <= set(unit.options)
    ]
    units = list(dict.fromkeys(one_of("unit", name, named) for name in options.unit)) or candidates
    if not units:
        switches = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UserError(f"options must be those of one unit: no unit has all of {switches}")
    selected: list[Variant] = []
    for name in units:
        if not given:
            selected += reported(name, everything=bool(options.unit) or options.all)
            continue
        own = named[name].options
        values = {k: own[k].values(v) if k in own else [v] for k, v in given.items()}
        selected += variants(name, values)
    for variant in selected:  # build all before the first output is written
        variant.check()
    return selected


def _agree(
    options: argparse.Namespace, unit: str, kept: dict[str, str | bool], given: dict[str, Any]
) -> None:
    """Raise UserError if the command line contradicts the configuration file."""
    if options.unit and options.unit != [unit]:
        words = " ".join(options.unit)
        raise UserError(f"unit must be {unit}, as in {options.config}, not {shortened(words)}")
    for name, value in given.items():
        if name in kept and kept[name] != value:
            switch, text = f"--{name.replace('_', '-')}", shortened(str(value))
            raise UserError(f"{switch} must be {kept[name]}, as in {options.config}, not {text}")


def _settings(options: argparse.Namespace) -> Settings:
    targets = tuple(dict.fromkeys(options.delay_target or TARGETS_PS))
    modules = getattr(options, "modules", False)
    if options.whole and (modules or options.baseline or options.update_baseline):
        raise UserError(
            "--whole must come without --modules and baselines, which measure single pieces"
        )
    if options.whole and options.tile:
        raise UserError("--tile must come without --whole, which leaves nothing to put together")
    if options.tile and (options.baseline or options.update_baseline) and modules:
        raise UserError("--tile must come without --modules for baselines")
    for given in ("adders", "clock_gates"):
        if getattr(options, given) and (options.baseline or options.update_baseline):
            switch = f"--{given.replace('_', '-')}"
            raise UserError(f"{switch} must come without baselines, which have the usual recipe")
    library, recipe = _conditions(options)
    return Settings(
        library=library,
        recipe=recipe,
        targets_ps=targets,
        cut="whole" if options.whole else "modules" if modules else "shared",
        tile=options.tile,
        cache=not options.no_cache,
        jobs=options.jobs,
    )


def _conditions(options: argparse.Namespace) -> tuple[cells.CellLibrary, SynthesisRecipe]:
    """Return the library and the recipe that the options name."""
    cell = options.driving_cell or cells.DRIVERS.get(options.liberty, "BUF_X4")
    library = cells.library(options.liberty, driving_cell=cell)
    if options.adders:
        adders.check(library.cells)
    if options.clock_gates:
        gates.clock_gates(library.cells)
    return library, SynthesisRecipe(
        driving_cell=cell,
        load_ff=options.load,
        adders=options.adders,
        clock_gates=gates.LEAST if options.clock_gates else 0,
    )


def _measure(options: argparse.Namespace) -> tuple[list[AreaRow], Settings]:
    selected = _variants(options)
    settings = _settings(options)
    check("pyosys")
    # Measuring can take minutes, so a folder that cannot be written to is refused before it.
    if options.update_baseline:
        _writable(baseline.FOLDER)
    with Progress() as progress:
        return measure(selected, settings, progress=progress), settings


def _finish(
    options: argparse.Namespace, rows: list[AreaRow], settings: Settings, table: Any
) -> int:
    """Write the requested files, compare the rows with the baseline or store them in it.

    The exit code that is returned is 1 if a row differs from the baseline.
    """
    if options.json:
        document = {
            "library": {"name": settings.library.name, "sha256": settings.library.sha256},
            "recipe": settings.recipe.as_dict(),
            "rows": [row.as_json() for row in rows],
        }
        _store(document, options)
    if options.markdown:
        _write(options.markdown, report.document(table, options.markdown), options)
    if options.svg:
        _write(options.svg, report.svg_bars(rows, library=settings.library.name), options)
    code = 0
    if options.baseline:
        differences = baseline.compare(rows, settings.library.name, tile=settings.tile)
        changed = [d for d in differences if not d.same]
        if changed:
            report.show(baseline.table(changed), title="Different from the baseline")
            code = 1
        print(f"baseline: {len(differences) - len(changed)} figures equal, {len(changed)} not")
    if options.update_baseline:
        for path in baseline.update(rows, settings):
            print(f"wrote {path}")
        # The stored figures are now those of the rows, so a difference is no failure.
        code = 0
    return code


def _area(options: argparse.Namespace) -> int:
    rows, settings = _measure(options)
    table = report.area_table(rows)
    note = report.note(settings)
    report.show(table, title=f"Area, library {settings.library.name}", note=note)
    _show_tiles(rows)
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
    report.show(table, title=title, note=report.note(settings))
    _show_tiles(rows)
    if options.path:
        for row in rows:
            for target in row.targets_ps:
                name = f"{row.variant.unit.name} {row.variant.label} at {target} ps"
                report.show(report.path_table(row, target), title=name)
    return _finish(options, rows, settings, table)


def _power(options: argparse.Namespace) -> int:
    from vitruvian.flows.asic.power import cells as power_cells
    from vitruvian.flows.asic.power import measure as power
    from vitruvian.flows.asic.power import report as power_report

    selected = _variants(options)
    library, recipe = _conditions(options)
    settings = power.PowerSettings(
        library=library,
        recipe=recipe,
        period_ps=None if options.period is None else 1000 * options.period,
        stimuli=options.stimulus.split(","),
        cycles=options.cycles,
        seed=options.seed,
        idle=options.idle,
        targets_ps=tuple(dict.fromkeys(options.delay_target or TARGETS_PS[-1:])),
        cache=not options.no_cache,
    )
    check("pyosys")
    with Progress() as progress:
        rows = power.measure_power(selected, settings, progress=progress)
    table = power_report.table(rows)
    known_power = power_cells.load(library.path)
    note = power_report.note(rows, known_power, seed=options.seed)
    report.show(table, title=f"Power, library {library.name}", note=note)
    if options.markdown:
        _write(options.markdown, report.document(table, options.markdown), options)
    document = {
        "library": {
            "name": library.name,
            "sha256": library.sha256,
            "volts": known_power.volts,
            "internal_power": known_power.has_internal,
            "leakage": known_power.has_leakage,
        },
        "recipe": settings.recipe.as_dict(),
        "seed": options.seed,
        "rows": [row.as_json() for row in rows],
    }
    _store(document, options)
    return 0


def _layout(options: argparse.Namespace) -> int:
    from vitruvian.commands import layouts

    return layouts.run(options, _variants(options), _conditions, _store)


def _show_tiles(rows: list[AreaRow]) -> None:
    """Print the buffers and the parts of the longest path of every unit that was put together."""
    if any(row.tiles for row in rows):
        report.show(report.tile_table(rows), title="Whole units, with buffers between modules")


def _writable(folder: Path) -> None:
    """Raise UserError if no file can be written into ``folder``."""
    try:
        output_path(folder=True)(str(folder))
    except argparse.ArgumentTypeError as error:
        raise UserError(f"folder {error}") from None


def _verilog(options: argparse.Namespace) -> int:
    selected = _variants(options)
    to_stdout = options.out == "-"
    folder = Path(options.out)
    document: list[dict[str, str | None]] = []
    with Progress() as progress:
        for number, variant in enumerate(selected):
            progress(f"write {variant.module}", number, len(selected))
            text = emit.stored(variant, enabled=not options.no_cache)
            path = folder / f"{variant.module}.v"
            if to_stdout:
                # An empty line separates the designs.
                _write("-", text if number == len(selected) - 1 else f"{text}\n", options)
            else:
                write_whole(path, text)
                print(path)
                more = sv_package.files(variant) | register_files.register_files(variant)
                more |= tapeout.files(variant, text)
                for name, content in more.items():
                    write_whole(folder / name, content)
                    print(folder / name)
            document.append(
                {
                    "unit": variant.unit.name,
                    "label": variant.label,
                    "command": variant.arguments,
                    "file": None if to_stdout else str(path),
                }
            )
    _store(document, options)
    return 0


def _bundle(options: argparse.Namespace) -> int:
    from vitruvian.flows.verilog import bundle

    selected = _variants(options)
    document: list[dict[str, Any]] = []
    # Existing folders come first, so that a file that must not be replaced is found before any
    # other bundle is written.
    selected.sort(key=lambda variant: not (Path(options.out) / variant.module).exists())
    settings = {"vectors": options.vectors, "seed": options.seed, "replace": options.force}
    with Progress() as progress:
        for number, variant in enumerate(selected):
            progress(f"write {variant.module}", number, len(selected))
            folder = Path(options.out) / variant.module
            paths = bundle.write(variant, folder, **settings)
            print(folder)
            document.append(
                {
                    "unit": variant.unit.name,
                    "label": variant.label,
                    "command": variant.arguments,
                    "folder": str(folder),
                    "files": list(paths),
                }
            )
    _store(document, options)
    return 0


def _new(options: argparse.Namespace) -> int:
    from vitruvian.flows.verilog import new_unit

    new_unit.identifier(options.name)
    options.unit = [options.unit] if options.unit else []
    if not options.unit and options.config is None:
        options.unit, options.unit_preset = ["cube"], options.unit_preset or "tiny"
    selected = _variants(options)
    if len(selected) != 1 and len(options.unit) == 1 and not _given(options):
        # A unit without options stands for its first configuration, not for all that are reported.
        selected = selected[:1]
    if len(selected) != 1:
        raise UserError(f"new must have one configuration of one unit, not {len(selected)}")
    paths = new_unit.write(selected[0], options.name, Path(options.out), replace=options.replace)
    folder = Path(options.out) / options.name
    print(f"{folder}: {', '.join(sorted(paths))}")
    print(f"next: make -C {folder} sim; make -C {folder} fpga BOARD=ulx3s")
    _store({"folder": str(folder), "command": selected[0].arguments, "files": [*paths]}, options)
    return 0


def _given(options: argparse.Namespace) -> bool:
    """Return whether the command line or a file sets an option of a unit."""
    values = (value for name, value in vars(options).items() if name.startswith("unit_"))
    return options.config is not None or any(value not in (None, False) for value in values)


def _fpga(options: argparse.Namespace) -> int:
    if options.board is not None:
        return _fpga_boards(options)
    boards.refuse_without_board(options)
    names = dict.fromkeys((options.family or ",".join(mapping.FAMILIES)).split(","))
    families = [one_of("family", name, mapping.FAMILIES) for name in names]
    selected = _variants(options)
    with Progress() as progress:
        lines = mapping.table(
            selected,
            families,
            element=options.element,
            cache=not options.no_cache,
            progress=progress,
        )
    header = ["unit", "label", "family", *mapping.KINDS]
    texts = [[str(line[name]) for name in header] for line in lines]
    header[1] = "configuration"
    title = "Cells of one element on FPGAs" if options.element else "Cells on FPGAs"
    report.show((header, texts), title=title, note=mapping.NOTE)
    _store(lines, options)
    return 0


def _fpga_boards(options: argparse.Namespace) -> int:
    """Run the command ``fpga`` with ``--board``."""
    given = [
        name.removeprefix("unit_")
        for name, value in vars(options).items()
        if name.startswith("unit_") and value not in (None, False)
    ]
    selected = _variants(options) if options.unit or given or options.config is not None else []
    return boards.run(options, selected, given, _write, _store)


def _units(options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(one_of("unit", name, UNITS) for name in options.unit)) or UNITS
    for name in names:
        print(described(UNITS[name]))
        for variant in reported(name):
            print(f"  {variant.arguments}")
    _store({name: [v.arguments for v in reported(name)] for name in names}, options)
    return 0


def _docs(options: argparse.Namespace) -> int:
    from vitruvian.flows.pages import docs, notebooks

    stale = docs.update(check=options.check)
    stale += notebooks.update(docs.TUTORIALS, check=options.check)
    for path in stale:
        print(f"{'out of date' if options.check else 'wrote'}: {path.name}")
    if options.check and stale:
        print("`vitruvian docs` regenerates them")
    return int(options.check and bool(stale))


def _cells(options: argparse.Namespace) -> int:
    from vitruvian.flows.asic.cells import compare, writer

    if options.markdown and not options.compare:
        raise UserError("--markdown must come with --compare, whose table it writes")
    if options.json and options.out and not options.compare:
        raise UserError("--json must come without --out, which has no result to store")
    if options.out:
        _write(options.out, writer.liberty(), options)
        if options.out != "-":
            print(options.out)
    if options.compare:
        with Progress() as progress:
            comparison = compare.compare(progress=progress)
        table = compare.table(comparison)
        report.show(
            table, title="Built-in cells against Nangate45", note=compare.summary(comparison)
        )
        if options.markdown:
            _write(options.markdown, report.document(table, options.markdown), options)
        _store(compare.as_json(comparison), options)
    if not options.out and not options.compare:
        library = cells.library()
        lines = [
            [cell.name, f"{cell.area_um2:.3f}", " ".join(sorted(cell.caps)), " ".join(cell.outputs)]
            for cell in library.cells.cells.values()
        ]
        table = (["cell", "µm²", "inputs", "outputs"], lines)
        report.show(table, title=f"{library.name}: {library.path}")
        _store([dict(zip(table[0], line, strict=True)) for line in lines], options)
    return 0


_COMMANDS = {
    "area": _area,
    "timing": _timing,
    "power": _power,
    "layout": _layout,
    "verilog": _verilog,
    "bundle": _bundle,
    "fpga": _fpga,
    "new": _new,
    "units": _units,
    "docs": _docs,
    "cells": _cells,
}
