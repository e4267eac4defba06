"""``tune``: the fastest tiling of a matrix product on DaVinci cores."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sim.cli import UserError, write_json

from .options import add_json, at_least

if TYPE_CHECKING:
    from sim.kernels.davinci.search import Problem, Tuned

__all__ = ["register"]


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("tune", help="search for the fastest tiling of a matrix product")
    parser.add_argument("kernel", metavar="KERNEL", help="matmul")
    parser.add_argument("m", metavar="M", type=at_least(1))
    parser.add_argument("k", metavar="K", type=at_least(1))
    parser.add_argument("n", metavar="N", type=at_least(1))
    parser.add_argument("--chip", default="ascend310", help="name or TOML file (ascend310)")
    parser.add_argument("--cores", type=at_least(1), help="all of the chip by default")
    parser.add_argument("--dtype", default="fp16", help="of A and B: fp16 or int8 (fp16)")
    parser.add_argument("--out", help="dtype of C: fp16, fp32; int32 of int8")
    parser.add_argument(
        "--method", default="exhaustive", help="exhaustive, or guided: 5 %% of the tilings"
    )
    parser.add_argument(
        "--any-integer", action="store_true", help="all numbers of tiles, not only divisors"
    )
    parser.add_argument("--jobs", type=at_least(1), help="processes; as many as cores by default")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler")
    add_json(parser, "the table")
    parser.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> int:
    from sim.davinci import load_chip
    from sim.kernels.davinci.search import Problem
    from sim.kernels.davinci.tiling import DTYPES

    if options.kernel != "matmul":
        raise UserError(f"KERNEL must be matmul, not {options.kernel!r}")
    if options.dtype not in DTYPES:
        raise UserError(f"--dtype must be one of {', '.join(DTYPES)}, not {options.dtype!r}")
    outs = DTYPES[options.dtype][2]
    if options.out is not None and options.out not in outs:
        raise UserError(f"--out must be one of {', '.join(outs)}, not {options.out!r}")
    try:
        chip = load_chip(options.chip)
        problem = Problem(
            m=options.m,
            k=options.k,
            n=options.n,
            chip=options.chip,
            cores=chip.kind().count if options.cores is None else options.cores,
            dtype=options.dtype,
            out=options.out or outs[0],
            any_integer=options.any_integer,
        )
        began = time.perf_counter()
        found = _search(options, problem)
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from None
    seconds = time.perf_counter() - began
    console = Console(
        file=sys.stderr if options.json == "-" else sys.stdout, width=120, highlight=False
    )
    peak = float(chip.peak_operations(options.dtype))
    rows = _rows(problem, found, peak)
    title = f"{options.m}×{options.k}×{options.n} on {problem.cores} cores of {chip.name}"
    table = Table("", "mTiles", "kTiles", "nTiles", "bNum", "µs", "of peak", title=title)
    for column in table.columns:
        column.justify = "right"
    for number, row in enumerate(rows, 1):
        counts = (str(row[x]) for x in ("m_tiles", "k_tiles", "n_tiles", "b_num"))
        table.add_row(str(number), *counts, f"{row['us']:.3f}", f"{row['share_of_peak']:.2%}")
    console.print(table)
    how = "from the cache" if found.cached else f"{seconds:.1f} s"
    sure = "the fastest there is" if found.proved else "the fastest not proved"
    console.print(f"{found.evaluated:,} of {found.space:,} tilings timed ({how}); {sure}")
    if options.json:
        facts = {"evaluated": found.evaluated, "space": found.space, "proved": found.proved}
        write_json(
            options.json,
            {"m": options.m, "k": options.k, "n": options.n}
            | facts
            | {"chip": chip.name, "cores": problem.cores, "cached": found.cached, "best": rows},
        )
    return 0


def _search(options: argparse.Namespace, problem: "Problem") -> "Tuned":
    from sim.kernels.davinci.search import tune

    screen = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    every = *columns, TimeElapsedColumn()
    with Progress(*every, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        line = bar.add_task("tilings", total=None)

        def watch(done: int, total: int) -> None:
            bar.update(line, completed=done, total=total)

        how = {"jobs": options.jobs, "scheduler": options.scheduler}
        return tune(problem, options.method, watch=watch, **how)


def _rows(problem: "Problem", found: "Tuned", peak: float) -> list[dict[str, Any]]:
    work = 2 * problem.m * problem.k * problem.n
    return [
        {
            "m_tiles": c.tiling.m_tiles,
            "k_tiles": c.tiling.k_tiles,
            "n_tiles": c.tiling.n_tiles,
            "b_num": c.tiling.b_num,
            "us": c.seconds * 1e6,
            "share_of_peak": work / c.seconds / peak,
        }
        for c in found.best
    ]
