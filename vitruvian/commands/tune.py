"""``tune``: the fastest tiling of a matrix product on DaVinci cores."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from vitruvian.cli import write_json
from vitruvian.commands.davinci import tell_compiling
from vitruvian.commands.options import add_json, at_least
from vitruvian.errors import UserError
from vitruvian.progress import Progress
from vitruvian.validate import one_of

if TYPE_CHECKING:
    from vitruvian.sim.kernels.search import Problem, Tuned

__all__ = ["register"]


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Simulate the tilings of a matrix product C (M × N) = A (M × K) · B (K × N) on "
        "DaVinci cores and print the ten fastest.",
        epilog="Example: vitruvian tune matmul 256 256 256 --method guided",
    )
    size = at_least(1, 10**12)  # its divisors are looked for
    parser.add_argument("kernel", metavar="KERNEL", help="The kernel must be matmul.")
    parser.add_argument("m", metavar="M", type=size, help="A and C have M rows.")
    parser.add_argument("k", metavar="K", type=size, help="A has K columns, B has K rows.")
    parser.add_argument("n", metavar="N", type=size, help="B and C have N columns.")
    parser.add_argument(
        "--chip",
        default="ascend310",
        help="The chip is one that comes along, or a TOML file (default: ascend310).",
    )
    parser.add_argument(
        "--cores",
        type=at_least(1),
        metavar="N",
        help="Use the first N cores (default: all cores of the chip).",
    )
    parser.add_argument(
        "--dtype",
        default="fp16",
        metavar="fp16|int8",
        help="The elements of A and B have this type (default: fp16).",
    )
    parser.add_argument(
        "--c-dtype",
        "--out",
        dest="out",
        metavar="fp16|fp32|int32",
        help="The elements of C have this type: fp16 or fp32 for fp16 operands (default: fp16), "
        "int32 for int8. --out is the former name of this option; it names no file.",
    )
    parser.add_argument(
        "--method",
        default="exhaustive",
        metavar="exhaustive|guided",
        help="Exhaustive times every tiling; guided times the 5 %% that look fastest and says "
        "whether the best of them is proved to be the optimum (default: exhaustive).",
    )
    parser.add_argument(
        "--any-integer",
        action="store_true",
        help="Try all numbers of tiles and of control flows, not only divisors and 1, 2, 4, 8.",
    )
    parser.add_argument(
        "--jobs",
        type=at_least(1),
        metavar="N",
        help="An exhaustive search uses N processes (default: as many as the machine has cores).",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="The workers of the Dask scheduler at this address, as tcp://host:8786, do an "
        "exhaustive search. Give only an address that you trust: a scheduler runs code here and "
        "on its workers.",
    )
    add_json(parser, "the table")
    parser.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> int:
    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.kernels.search import Problem
    from vitruvian.sim.kernels.tiling import DTYPES

    if options.kernel != "matmul":
        raise UserError(f"KERNEL must be matmul, not {options.kernel!r}")
    one_of("--dtype", options.dtype, DTYPES)
    if options.method == "guided" and (options.jobs not in (None, 1) or options.scheduler):
        given = "--scheduler" if options.scheduler else "--jobs"
        raise UserError(f"{given} must be for --method exhaustive: guided has one process")
    if options.jobs and options.scheduler:
        raise UserError("--jobs must not be given with --scheduler, whose workers do the search")
    outs = DTYPES[options.dtype][2]
    if options.out is not None and options.out not in outs:
        raise UserError(f"--c-dtype must be one of {', '.join(outs)}, not {options.out!r}")
    tell_compiling()
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
    from vitruvian.sim.kernels.search import tune

    with Progress("tilings") as progress:

        def watch(done: int, total: int) -> None:
            progress.update(done=done, total=total)

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
