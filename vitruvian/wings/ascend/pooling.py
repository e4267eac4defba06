"""The command ``pooling``: the pooling experiments of Rohwedder 2021 on the simulated chip."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_chip, add_json
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, write_whole

_EPILOG = """\
Examples:
  vitruvian pooling
  vitruvian pooling --out docs/results

The second one writes the plots and the tables of docs/results/pooling.md anew.
"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Time max pooling in five implementations at the sizes of InceptionV3 and for "
        "three strides,\nand print the cycles beside the published speedups.",
        epilog=_EPILOG,
    )
    add_chip(parser)
    parser.add_argument(
        "--ties",
        choices=("first", "all"),
        metavar="WHICH",
        default="first",
        help="Mark the first largest pixel, or all as the paper does (default: %(default)s).",
    )
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the charts into this folder, and the tables into its pooling.md if it exists.",
    )
    add_json(parser, "the runs")
    # The thesis measured on an Ascend 910.
    parser.set_defaults(run=_pooling, chip="ascend910")


def _pooling(options: argparse.Namespace) -> int:
    from vitruvian.common.table import filled, open_console, print_table
    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.papers.rohwedder21 import pages, study

    started = time.monotonic()
    try:
        chip = load_chip(options.chip)
        runs, lines = list(study.inception(chip, options.ties)), list(study.strides(chip))
    except ValueError as error:
        raise UserError(str(error)) from None
    tables = {
        "inception": pages.inception_table(runs),
        "strides": pages.stride_table(lines),
        "counts": pages.counts_table(runs),
    }
    titles = {
        "inception": f"Cycles of max pooling 3×3, stride 2, on {chip.name}",
        "strides": "Cycles of max pooling 3×3 of 16 channels on one core",
        "counts": "The busiest core at the largest input",
    }
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    for key, (header, rows) in tables.items():
        print_table(console, header, rows, title=titles[key])
    print(f"{len(runs) + len(lines)} runs in {time.monotonic() - started:.0f} s", file=sys.stderr)
    if options.out:
        folder = Path(options.out)
        write_whole(folder / "pooling_inception.json", pages.inception_plot(runs))
        write_whole(folder / "pooling_strides.json", pages.stride_plot(lines))
        page = folder / "pooling.md"
        if page.exists():
            texts = {key: pages.markdown(table) for key, table in tables.items()}
            # Only the tables between the marks of the page are written anew.
            write_whole(page, filled(page.read_text(encoding="utf-8"), "pooling", texts))
    if options.json:
        write_json(
            options.json,
            {
                "chip": chip.name,
                "inception": [run.as_dict() for run in runs],
                "strides": [run.as_dict() for run in lines],
            },
        )
    return 0
