"""The command ``tune``, which searches the fastest tiling of a product on DaVinci cores."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_chip, add_jobs, add_json, add_size, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import nearest, one_of
from vitruvian.wings.ascend.davinci import tell_compiling

if TYPE_CHECKING:
    from vitruvian.sim.kernels.search import TilingSearch, Tuned

#: Largest M, K or N; the search lists the divisors of each.
_LONGEST = 10**12


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Simulate the tilings of a matrix product C (M × N) = A (M × K) · B (K × N)\n"
        "on DaVinci cores, and print the ten fastest.",
        epilog="Example: vitruvian tune matmul --size 256x256x256 --method guided",
    )
    parser.add_argument("kernel", metavar="KERNEL", help="Tune this kernel, which must be matmul.")
    add_size(
        parser,
        "Take these sizes M, K and N, such as 256x256x256; they must be given. A and C have M "
        "rows, A has K columns, B has K rows, and B and C have N columns.",
    )
    add_chip(parser)
    parser.add_argument(
        "--cores",
        type=at_least(1),
        metavar="N",
        help="Use the first N cores (default: all cores of the chip).",
    )
    parser.add_argument(
        "--dtype",
        default="fp16",
        metavar="TYPE",
        help="Take elements of this type for A and B (default: %(default)s).",
    )
    parser.add_argument(
        "--output-dtype",
        metavar="TYPE",
        help="Take elements of this type for C: fp16 or fp32 for fp16 operands (default: fp16), "
        "int32 for int8 operands.",
    )
    parser.add_argument(
        "--method",
        default="exhaustive",
        metavar="METHOD",
        help="Search by this method: exhaustive times every tiling; guided times the 5 %% that "
        "look fastest and says whether the best of them is proved to be the optimum "
        "(default: %(default)s).",
    )
    parser.add_argument(
        "--any-integer",
        action="store_true",
        help="Try all numbers of tiles and of control flows, not only divisors and 1, 2, 4, 8.",
    )
    add_jobs(parser, "Run N processes in an exhaustive search", known=False)
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of the Dask scheduler at this address, as tcp://host:8786, do an "
        "exhaustive search. Give only an address that you trust: a scheduler runs code here and "
        "on its workers.",
    )
    add_json(parser, "the table")
    parser.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> int:
    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.kernels.search import TilingSearch
    from vitruvian.sim.kernels.tiling import DTYPES

    if options.kernel != "matmul":
        hint = nearest(options.kernel, ("matmul",))
        raise UserError(f"KERNEL must be matmul, not {options.kernel!r}{hint}")
    one_of("--dtype", options.dtype, DTYPES)
    # A guided search times too few tilings for several processes.
    if options.method == "guided" and (options.jobs not in (None, 1) or options.scheduler):
        option = "--scheduler" if options.scheduler else "--jobs"
        raise UserError(f"{option} must be for --method exhaustive: guided has one process")
    if options.jobs and options.scheduler:
        raise UserError("--jobs must not be given with --scheduler, whose workers do the search")
    # The first dtype of the list is the default.
    outputs = DTYPES[options.dtype][2]
    output = one_of("--output-dtype", options.output_dtype or outputs[0], outputs)
    m, k, n = _lengths(options)
    tell_compiling()
    try:
        chip = load_chip(options.chip)
        problem = TilingSearch(
            m=m,
            k=k,
            n=n,
            chip=options.chip,
            cores=chip.kind().count if options.cores is None else options.cores,
            dtype=options.dtype,
            out=output,
            any_integer=options.any_integer,
        )
        # Wall time, as the processes of a search share the work.
        began = time.perf_counter()
        tuned = _search(options, problem)
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from None
    seconds = time.perf_counter() - began
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    # Of all cores of the chip, whatever number the product uses.
    peak = float(chip.peak_operations(options.dtype))
    rows = _rows(problem, tuned, peak)
    title = f"{m}×{k}×{n} on {problem.cores} cores of {chip.name}"
    header = ("", "mTiles", "kTiles", "nTiles", "bNum", "µs", "of peak")
    lines: list[tuple[str, ...]] = []
    for number, row in enumerate(rows, 1):
        counts = (str(row[x]) for x in ("m_tiles", "k_tiles", "n_tiles", "b_num"))
        lines.append((str(number), *counts, f"{row['us']:.3f}", f"{row['share_of_peak']:.2%}"))
    print_table(console, header, lines, title=title, right=header)
    duration = "from the cache" if tuned.cached else f"{seconds:.1f} s"
    proof = "the fastest there is" if tuned.proved else "the fastest not proved"
    console.print(f"{tuned.evaluated:,} of {tuned.space:,} tilings timed ({duration}); {proof}")
    if options.json:
        facts = {"evaluated": tuned.evaluated, "space": tuned.space, "proved": tuned.proved}
        write_json(
            options.json,
            {"m": m, "k": k, "n": n}
            | facts
            | {"chip": chip.name, "cores": problem.cores, "cached": tuned.cached, "best": rows},
        )
    return 0


def _lengths(options: argparse.Namespace) -> tuple[int, int, int]:
    """Return M, K and N."""
    lengths: tuple[int, ...] = options.size or ()
    if len(lengths) != 3 or min(lengths) < 1 or max(lengths) > _LONGEST:
        text = "x".join(map(str, lengths)) or "nothing"
        raise UserError(f"--size must be MxKxN like 256x256x256, not {text}")
    m, k, n = lengths
    return m, k, n


def _search(options: argparse.Namespace, problem: "TilingSearch") -> "Tuned":
    from vitruvian.sim.kernels.search import tune

    with Progress("tilings") as progress:

        def watch(done: int, total: int) -> None:
            progress.update(done=done, total=total)

        place = {"jobs": options.jobs, "scheduler": options.scheduler}
        return tune(problem, options.method, watch=watch, **place)


def _rows(problem: "TilingSearch", tuned: "Tuned", peak: float) -> list[dict[str, Any]]:
    # A multiplication and an addition each.
    operations = 2 * problem.m * problem.k * problem.n
    return [
        {
            "m_tiles": c.tiling.m_tiles,
            "k_tiles": c.tiling.k_tiles,
            "n_tiles": c.tiling.n_tiles,
            "b_num": c.tiling.b_num,
            "us": c.seconds * 1e6,
            "share_of_peak": operations / c.seconds / peak,
        }
        for c in tuned.best
    ]
