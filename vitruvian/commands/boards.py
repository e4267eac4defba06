"""The part of the command ``fpga`` that places and routes designs on boards."""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_all
from vitruvian.common.progress import Progress
from vitruvian.common.validate import one_of
from vitruvian.flows.asic import report
from vitruvian.flows.fpga import floorplan, mapping, nextpnr, place, vivado
from vitruvian.flows.fpga.board import FpgaBoard, TooSmall, board_names, load_board
from vitruvian.flows.fpga.default_design import default_design, ranks_note, suited
from vitruvian.hdl.catalogue.unit import Variant

#: The largest seed that nextpnr reads.
_MOST_SEED = 2**31 - 1

_NOTE = (
    "each unit is in a registered wrapper, whose LUTs and flip-flops the columns `of it` count, "
    "unless its ports are on pins; %: of the board, after routing where the board is routed; "
    "fmax: MHz after routing, nextpnr's model of the slowest chips; ≤: paths through DSP or "
    "memory blocks have no delays in that model; -: not routed, or no path has delays"
)


def refuse_without_board(options: argparse.Namespace) -> None:
    """Raise UserError if an option is given that only routed designs have."""
    for name in ("bitstream", "seeds", "svg", "out", "seed", "clock", "path"):
        if getattr(options, name) not in (None, False):
            raise UserError(f"--{name} must come with --board, which it is about")


def run(
    options: argparse.Namespace,
    selected: Sequence[Variant],
    given: Collection[str],
    write: Callable[[str, str, argparse.Namespace], None],
    store: Callable[[Any, argparse.Namespace], None],
) -> int:
    """Place and route the variants on the boards of ``--board``, and print the table.

    The exit code that is returned is 1 if a design on the pins of a board is slower than its clock.

    Parameters
    ----------
    selected : sequence of Variant
        The units; if there are none, each board gets its default design.
    given : collection of str
        The options of units that the user has chosen.
    write, store : callable
        Write an output file, and the results as JSON.
    """
    # A name that is given twice counts once.
    names = dict.fromkeys(options.board.split(","))
    boards = [load_board(one_of("board", name, board_names())) for name in names]
    seeds = _seeds(options, boards)
    others = [board.name for board in boards if board.family != "ecp5"]
    if options.clock and others:
        raise UserError(f"--clock must come with boards that have an ECP5, not {others[0]}")
    jobs: list[tuple[Variant, FpgaBoard]] = []
    notes = [_NOTE]
    for variant in selected:
        for board in boards:
            fitted = suited(variant, board, given)
            jobs.append((fitted, board))
            notes += filter(None, [ranks_note(variant, fitted, board)])
    # Without a unit, the design that a board is meant for.
    jobs = jobs or [(default_design(board), board) for board in boards]
    if options.svg and (len(jobs) > 1 or not boards[0].routed):
        raise UserError("--svg must come with one unit and one board that is routed")
    if options.element or options.family:
        other = "element" if options.element else "family"
        raise UserError(f"--board must come without --{other}, which counts cells alone")
    for board in boards:
        if board.routed:
            nextpnr.check_tools(board.family)
    lines: list[dict[str, Any]] = []
    small: list[TooSmall] = []
    files: dict[Path, bytes | str] = {}
    with Progress() as progress:
        for number, (variant, board) in enumerate(jobs):
            # The defaults bind this turn's values: the function outlives the turn.
            def say(step: str, done: int = number, name: str = board.name) -> None:
                progress(f"{name}: {step}", done, len(jobs))

            try:
                line, made, plan = _job(variant, board, seeds, options, say)
            except TooSmall as error:
                small.append(error)
                line, made, plan = {"too_small": str(error)}, {}, None
            names_of = {"unit": variant.unit.name, "label": variant.label}
            lines.append({**names_of, "command": variant.arguments, "board": board.name, **line})
            files |= made
            if plan is not None:
                write(options.svg, plan, options)
    # One design that does not fit is a note; if none fits, the command has failed.
    if len(small) == len(jobs):
        raise small[0]
    write_all(files)
    report.show(_table(lines), title="Designs on boards", note="\n".join(notes))
    for line in lines if options.path else ():
        _show_path(line)
    for error in small:
        print(f"left out: {error}")
    for path in files:
        print(path)
    store(lines, options)
    return int(_warn_of_slow(lines))


def _warn_of_slow(lines: Sequence[dict[str, Any]]) -> bool:
    """Print a warning for each design that misses its board's clock; return if there is one."""
    slow = [line for line in lines if line.get("meets_clock") is False]
    for line in slow:
        clock = load_board(line["board"]).clock_mhz
        print(
            f"warning: {line['unit']} {line['label']} must reach the clock of {line['board']}, "
            f"{clock:g} MHz, not {line['fmax_mhz']:.1f} MHz",
            file=sys.stderr,
        )
    return bool(slow)


def _show_path(line: dict[str, Any]) -> None:
    """Print the longest path of a routed design, with the time that each step ends at."""
    if not line.get("path"):
        return
    end = 0.0
    rows: list[list[str]] = []
    for kind, delay, name in line["path"]:
        end += delay
        rows.append([kind, f"{delay:.2f}", f"{end:.2f}", name])
    title = f"Longest path of {line['unit']} {line['label']} on {line['board']}, ns"
    report.show((["step", "delay", "end", "net or cell"], rows), title=title)


def _seeds(options: argparse.Namespace, boards: Sequence[FpgaBoard]) -> list[int]:
    """Return the seeds of the placement that the options ask for."""
    # A seed may be 0.
    first, count = options.seed if options.seed is not None else 1, options.seeds or 1
    for name in ("seed", "seeds"):
        if getattr(options, name) is not None and not any(board.routed for board in boards):
            raise UserError(f"--{name} must come with a board that is routed, not {boards[0].name}")
    if first + count - 1 > _MOST_SEED:
        raise UserError(f"seed must be at most {_MOST_SEED} for a placement, not {first}")
    return list(range(first, first + count))


def _job(
    variant: Variant,
    board: FpgaBoard,
    seeds: Sequence[int],
    options: argparse.Namespace,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], dict[Path, bytes | str], str | None]:
    """Return the figures of one design, the files to write, and the floorplan if it is wanted."""
    cache = not options.no_cache
    folder = Path(options.out or "build/fpga")
    say(f"write {variant.module}")
    work = place.design(variant, board)
    say(f"map {variant.module}")
    counts, netlist = place.synth(work, cache=cache)
    place.check_fit(counts, work)
    line: dict[str, Any] = {**asdict(counts), "wrapped": work.wrapped}
    # The wrapper's cells are stated apart, because a unit in a design does not have them.
    line |= {"wrapper_lut": work.own_luts, "wrapper_ff": work.own_ffs}
    files: dict[Path, bytes | str] = {}
    if not board.routed:
        # No open tool routes this family, so that cells stand for sites.
        used = {k: [line[k], board.resources[k]] for k in board.resources}
        line |= {"sites": used, "fmax_mhz": None}
        return line, {folder / p: text for p, text in vivado.project(work).items()}, None
    tries: list[place.RoutedDesign] = []
    for number, seed in enumerate(seeds, start=1):
        say(f"place and route {variant.module}, seed {seed}")

        def step(text: str) -> None:
            say(f"{variant.module}, {text}")

        try:
            tries.append(
                place.route(
                    work,
                    counts,
                    netlist,
                    seed=seed,
                    clock_mhz=options.clock,
                    cache=cache,
                    progress=step,
                )
            )
        except TooSmall:
            # Whether a nearly full board has wires for a placement is a matter of luck.
            if number == len(seeds) and not tries:
                raise
    # Placement is random: results of equal designs differ by some percent from seed to seed.
    best = max(tries, key=lambda routed: routed.fmax_mhz or 0.0)
    speeds = [routed.fmax_mhz for routed in tries if routed.fmax_mhz is not None]
    line |= {
        "sites": best.used(board.family),
        "fmax_mhz": best.fmax_mhz,
        "fmax_is_bound": place.is_bound(work, counts),
        "fmax_lowest_mhz": min(speeds, default=None),
        "meets_clock": _meets_clock(work, best, counts),
        "seed": best.seed,
        "seeds": len(tries),
        "path": best.path,
    }
    if options.bitstream:
        ending = place.ENDINGS[board.family]
        pins = place.constraints(work, options.clock)
        files = {
            folder / f"{work.name}{ending}": best.bitstream,
            folder / f"{work.name}.v": f"{work.unit_text}\n{work.top_text}",
            folder / f"{work.name}.pins": pins,
        }
    return line, files, _picture(work, best, options) if options.svg else None


def _picture(
    work: place.BoardDesign, routed: place.RoutedDesign, options: argparse.Namespace
) -> str:
    """Return the floorplan as SVG, or its data if the name of the file ends in ``.json``."""
    document = floorplan.plan(work, routed)
    data = options.svg.lower().endswith(".json")
    return floorplan.text(document) if data else floorplan.draw(document)


def _meets_clock(
    work: place.BoardDesign, routed: place.RoutedDesign, counts: mapping.Resources
) -> bool | None:
    """Return whether a design reaches the clock of its board, or None if that is not known.

    A wrapped unit is not meant to run, and a frequency that is only a bound may be too high.
    """
    if work.wrapped or routed.fmax_mhz is None:
        return None
    fast = routed.fmax_mhz >= work.board.clock_mhz
    return None if fast and place.is_bound(work, counts) else fast


def _table(lines: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the designs that fit."""
    header = ["unit", "configuration", "board"]
    for kind in mapping.KINDS:
        header += [kind, "of it"] if kind in ("lut", "ff") else [kind]
    header += ["lut %", "ff %", "dsp %", "bram %", "fmax"]
    seeds = max((line.get("seeds", 1) for line in lines), default=1)
    header += ["lowest", "best seed"] if seeds > 1 else []
    rows: list[list[str]] = []
    for line in lines:
        if "too_small" in line:
            continue
        row = [line["unit"], line["label"], line["board"]]
        for kind in mapping.KINDS:
            row += [str(line[kind])]
            row += [str(line[f"wrapper_{kind}"])] if kind in ("lut", "ff") else []
        for kind in ("lut", "ff", "dsp", "bram"):
            used, available = line["sites"].get(kind, (0, 0))
            row.append(f"{100 * used / available:.1f}" if available else "-")
        fmax = line["fmax_mhz"]
        bound = "≤ " if line.get("fmax_is_bound") else ""
        row.append("-" if fmax is None else f"{bound}{fmax:.1f}")
        if seeds > 1:
            row += (
                ["-", "-"]
                if fmax is None
                else [
                    f"{line['fmax_lowest_mhz']:.1f}",
                    str(line["seed"]),
                ]
            )
        rows.append(row)
    return header, rows
