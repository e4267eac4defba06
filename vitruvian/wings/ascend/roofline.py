"""The command ``roofline``: which component bounds an operator, and what to do about it."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_size, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.table import open_console, print_table, print_text
from vitruvian.common.validate import one_of
from vitruvian.wings.ascend.davinci import tell_compiling

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.sim.davinci import Chip, Program
    from vitruvian.sim.papers.zhou25 import CaseStudy
    from vitruvian.sim.roofline import Analysis, Counters

_CHIP = "ascend310"

_DESCRIPTION = """\
Classify an operator by the component-based roofline: bound by a compute unit or a
transfer engine, insufficient parallelism, or an inefficient unit. TARGET is a kernel
for DaVinci cores or a case study, whose steps are compared with published figures."""

_EPILOG = """\
Example: vitruvian roofline matmul --size 512x512x512 --out matmul.svg
         vitruvian roofline add_relu
         vitruvian roofline depthwise --step ITG --out depthwise.svg
         vitruvian roofline --counters counters.csv --chip ascend910"""


def register(name: str, commands: Any) -> None:
    """Add the command ``roofline`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="Simulate this kernel (`vitruvian list davinci`) or this case study.",
    )
    parser.add_argument(
        "--step",
        metavar="STEP",
        help="Analyse this step of a case study, given by its number from 0 or by its name, or "
        "compare all of them (default: all, unless a kernel has the name of the case study).",
    )
    parser.add_argument(
        "--chip",
        metavar="CHIP",
        help="Simulate the chip of this name, or of a TOML file that describes it; a case study "
        f"may have another default (default: {_CHIP}).",
    )
    add_size(parser, "Take a problem of these sizes (default: those of the kernel or case).")
    parser.add_argument(
        "--cores",
        type=at_least(1),
        metavar="N",
        help="Use the first N cores (default: all cores of the chip that have work).",
    )
    parser.add_argument(
        "--core",
        default="busiest",
        metavar="CORE",
        help="Analyse this core, such as 'aicore 0', the busiest one, or all of them together "
        "(default: %(default)s).",
    )
    parser.add_argument(
        "--counters",
        metavar="FILE",
        help="Read counters from this file (op_summary.csv of msprof is one), or from the files of "
        "msprof op in this folder, instead of simulating; docs/units/roofline.md describes the "
        "columns.",
    )
    parser.add_argument(
        "--naive",
        action="store_true",
        help="Print the utilisations of the naive roofline too, for contrast.",
    )
    parser.add_argument(
        "--out",
        type=output_path(".svg", ".png", ".json"),
        metavar="FILE",
        help="Write the roofline plot to this file (.svg, .png, or .json for its data).",
    )
    add_json(parser, "the figures")
    parser.set_defaults(run=_run)


def analysis_of(program: "Program", core: str = "busiest") -> "Analysis":
    """Simulate the times of a program, and analyse them with what each component could save.

    Parameters
    ----------
    core : str
        The core; see ``counters_of``.
    """
    from vitruvian.sim.davinci import simulate
    from vitruvian.sim.roofline import analyse, counters_of
    from vitruvian.sim.roofline.doubled import savings

    # Times do not depend on data, so none are computed.
    report = simulate(program, cube=None, checks=False)
    analysis = analyse(counters_of(report, core))
    return replace(analysis, savings=savings(report, analysis))


def _run(options: argparse.Namespace) -> int:
    from vitruvian.sim.davinci import Deadlock, load_chip

    if (options.target is None) == (options.counters is None):
        raise UserError("roofline must have a TARGET or --counters FILE, and not both")
    try:
        chip = load_chip(options.chip or _CHIP)
        if options.counters is not None:
            return _file(options, chip)
        tell_compiling()
        return _simulate(options, chip)
    except (ValueError, Deadlock) as error:
        raise UserError(str(error)) from None


def _file(options: argparse.Namespace, chip: "Chip") -> int:
    """Analyse the counters of a file: one operator in full, several as a table."""
    from vitruvian.sim.roofline import analyse
    from vitruvian.sim.roofline.msprof import read_msprof
    from vitruvian.sim.roofline.profile import read_profile
    from vitruvian.sim.roofline.summary import is_summary, read_summary

    for name in ("step", "size", "cores"):
        if getattr(options, name) is not None:
            raise UserError(f"--counters must come without --{name}")
    if Path(options.counters).is_dir():
        analyses = [analyse(counters) for counters in read_msprof(options.counters, chip)]
        # The core whose busiest component works longest stands for the operator.
        analyses = [max(analyses, key=lambda a: a.longest.active_s)]
    else:
        read = read_summary if is_summary(options.counters) else read_profile
        analyses = [analyse(counters) for counters in read(options.counters, chip)]
    if len(analyses) == 1:
        return _show(options, analyses[0])
    if options.out:
        raise UserError(f"--out must be for one operator, not for {len(analyses)}")
    console = _console(options)
    _print_operators(console, analyses)
    if options.json:
        write_json(options.json, [a.as_dict() for a in analyses])
    return 0


def _simulate(options: argparse.Namespace, chip: "Chip") -> int:
    from vitruvian.sim.kernels import KERNELS
    from vitruvian.sim.papers.zhou25 import CASES

    name = options.target
    # Some kernels have the name of a case study; a step says that the case study is meant.
    if name in CASES and (options.step is not None or name not in KERNELS):
        if options.cores is not None:
            raise UserError("--cores must be absent for a case study, which uses one core")
        return _case(options, CASES[name], chip if options.chip else None)
    one_of("TARGET", name, [*CASES, *KERNELS])
    if options.step is not None:
        raise UserError(f"--step must be for one of {', '.join(CASES)}, not for {name!r}")
    instance = KERNELS[name].build(options.size, chip=chip, cores=options.cores, data=False)
    return _show(options, analysis_of(instance.program, options.core))


def _case(options: argparse.Namespace, case: "CaseStudy", chip: "Chip | None") -> int:
    """Analyse a step of a case study, or print a row for each."""
    from vitruvian.sim.papers.zhou25.rooflines import case_rows, case_table

    if options.step not in (None, "all"):
        step = int(options.step) if options.step.isdecimal() else options.step
        # Without a seed there are no data, only times.
        program = case.build(step, chip, seed=None, size=options.size).program
        return _show(options, analysis_of(program, options.core))
    if options.out:
        raise UserError("--out must be for one step of a case study: add --step N")
    rows = case_rows(case, chip, size=options.size, core=options.core)
    console = _console(options)
    header, cells = case_table(case, rows)
    print_table(
        console,
        header,
        cells,
        title=f"{case.name}: {case.title} on {rows[0].analysis.counters.chip}",
        note=f"pub.: published, Zhou et al. 2025 {case.section}; U({case.metric}): utilisation",
    )
    # The speedup is that of all steps together, as the paper states it.
    first, last = rows[0].analysis.counters.total_s, rows[-1].analysis.counters.total_s
    published = rows[-1].published_speedup
    shown = f"; published {published:.2f}×" if published else ""
    console.print(f"speedup {first / last:.2f}×{shown}", markup=False)
    for row in rows:
        print_text(console, f"{row.step.name}: {row.step.change}", indent=2)
    if options.json:
        write_json(options.json, [row.as_dict() for row in rows])
    return 0


def _console(options: argparse.Namespace) -> "Console":
    # With --json -, standard output has the figures alone, so that other programs can read them.
    return open_console(sys.stderr if options.json == "-" else sys.stdout)


def _show(options: argparse.Namespace, analysis: "Analysis") -> int:
    """Print the verdict, the components and the advice, and write the plot."""
    from vitruvian.common.charts import write_figure
    from vitruvian.sim.roofline.plot import draw
    from vitruvian.sim.roofline.strategies import advice

    console = _console(options)
    print_text(console, analysis.verdict())
    header = (
        "component",
        "work",
        "ideal",
        "active",
        "utilisation",
        "=",
        "efficiency",
        "× time ratio",
    )
    cells = [_cells(row) for row in analysis.rows]
    if (saved := analysis.savings) is not None:
        header = (*header, "2× saves")
        shares = (f"{saved.alone[row.component.name] * 100:.1f} %" for row in analysis.rows)
        cells = [(*each, share) for each, share in zip(cells, shares, strict=True)]
    # Utilisation = efficiency × time ratio, which the heads of the columns spell out.
    right = ("ideal", "active", "utilisation", "efficiency", "× time ratio", "2× saves")
    note = "2× saves: share of the time that the component would save if it were twice as fast"
    print_table(console, header, cells, right=right, note=note if saved else None)
    if analysis.counters.lacks:
        print_text(console, f"note: {analysis.counters.lacks}", indent=2)
    if options.naive:
        _print_naive(console, analysis.counters)
    strategies = advice(analysis)
    console.print(f"To mitigate {analysis.bound.value}, look for:", markup=False)
    for s in strategies:
        line = f"  {s.key} ({s.name}, §{s.section}): {s.symptom} {s.action}"
        print_text(console, line, indent=4)
    if options.out:
        write_figure(options.out, lambda figure: draw(figure.subplots(), analysis))
        console.print(options.out, markup=False)
    if options.json:
        keys = [s.key for s in strategies]
        write_json(options.json, {**analysis.as_dict(), "advice": keys})
    return 0


def _cells(row: Any) -> tuple[str, ...]:
    from vitruvian.sim.roofline.components import ComponentKind

    compute = row.component.kind == ComponentKind.COMPUTE
    # Moves have paths such as GM->L1, and are counted in bytes; the rest are operations.
    work = ", ".join(
        f"{amount:,.0f} {'bytes ' if '->' in item else ''}{item}"
        for item, amount in row.work.items()
    )
    rate = f"{row.ideal / 1e9:,.4g} {'G/s' if compute else 'GB/s'}" if row.total else "–"
    shares = (f"{x * 100:.2f} %" for x in (row.utilisation, row.efficiency, row.time_ratio))
    used, efficiency, ratio = shares
    if not row.total:
        # A component without work has no rate to compare with.
        used = efficiency = "–"
    active = f"{row.active_s * 1e6:,.3f} µs"
    return row.component.title, work or "–", rate, active, used, "=", efficiency, f"× {ratio}"


def _print_naive(console: "Console", counters: "Counters") -> None:
    from vitruvian.sim.roofline.naive import naive_points, naive_utilisations

    count = len(naive_points(counters))
    shown = ", ".join(f"{k} {v * 100:.2f} %" for k, v in naive_utilisations(counters).items())
    print_text(console, f"naive roofline ({count} points): {shown}", indent=2)


def _print_operators(console: "Console", analyses: "list[Analysis]") -> None:
    from vitruvian.sim.papers.zhou25.rooflines import distribution

    print_table(
        console,
        # The blank tells the two columns of components apart, whose names must differ.
        ("operator", "µs", "utilisation", "component", "time ratio", "component ", "class"),
        [
            (
                a.counters.name,
                f"{a.counters.total_s * 1e6:,.3f}",
                f"{a.highest.utilisation * 100:.2f} %" if a.highest.total else "–",
                a.highest.component.title if a.highest.total else "–",
                f"{a.longest.time_ratio * 100:.2f} %",
                a.longest.component.title,
                a.label,
            )
            for a in analyses
        ],
    )
    shares = distribution([a.bound for a in analyses])
    shown = ", ".join(f"{bound.value} {share * 100:.2f} %" for bound, share in shares.items())
    console.print(f"{len(analyses)} operators: {shown}", markup=False)
    for lacks in dict.fromkeys(a.counters.lacks for a in analyses if a.counters.lacks):
        print_text(console, f"note: {lacks}", indent=2)
