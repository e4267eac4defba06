"""Draw where the units of the core work, in the hardware and as the simulator predicts.

``python benchmarks/core_figures.py --out docs/results/core_timeline.json`` runs a kernel on the
compiled core ``tiny`` and writes when each instruction begins and ends, as a chart that the site
draws. ``--area FILE`` draws the LUTs of the units from a table of docs/results/core.md.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitruvian.common.charts import write_figure

#: Unit, first cycle, and the cycle behind the last one.
Span = tuple[str, int, int]

_UNITS = ("MTE2", "MTE1", "M", "V", "MTE3")
_COLOURS = {
    "MTE2": "#4c9be8",
    "MTE1": "#1b4f8f",
    "M": "#e07b00",
    "V": "#2a9d4f",
    "MTE3": "#c2185b",
}
_KERNEL = "sim/kernels/text/scale_add.cce"
_TILES = 4


def hardware(tiles: int = _TILES) -> list[Span]:
    """Return the instructions of a kernel on the compiled core."""
    from vitruvian.sim.davinci.machine_code.core import run_on_core

    run = run_on_core(_program(tiles), "tiny", traced=True).run
    return [
        (unit, int(begin), int(end))
        for unit, spans in run.spans.items()
        for begin, end in spans.tolist()
    ]


def simulator(tiles: int = _TILES) -> list[Span]:
    """Return the instructions of the kernel as the event engine predicts them."""
    from vitruvian.sim.davinci.chip.model import ATTO
    from vitruvian.sim.davinci.isa.instruction import Kind, Unit
    from vitruvian.sim.davinci.machine_code.chip import core_chip
    from vitruvian.sim.davinci.timing.engine import run
    from vitruvian.sim.davinci.timing.lowering import lower

    chip = core_chip("tiny")
    lowered, _ = lower(_program(tiles), chip)
    times = run(lowered)
    cycle = ATTO / chip.clock_hz
    # A unit takes an instruction in the first cycle, and works from the next one on.
    return [
        (Unit(unit).name, round(begin / cycle) + 1, round(end / cycle))
        for unit, kind, begin, end in zip(
            *(x.tolist() for x in (lowered.unit, lowered.kind, times.start, times.end)), strict=True
        )
        if kind == Kind.NORMAL and unit != Unit.S
    ]


def _program(tiles: int) -> Any:
    import numpy as np

    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.davinci.cce import build, read_file

    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=2048 * tiles).astype(np.float16) for _ in range(2))
    arguments = {"a": a, "b": b, "y": np.zeros_like(a), "scale": 2.0, "tiles": tiles}
    chip = load_chip("ascend310")
    kernel = read_file(_KERNEL, entry=None, defines={}, include_path=[])
    return build(kernel, chip, arguments, kind=chip.kind(None).name, blocks=1, limit=1 << 20)[0]


def timeline(rows: Mapping[str, Sequence[Span]]) -> Any:
    """Return the function that draws lists of spans one above the other, on one axis of cycles.

    Parameters
    ----------
    rows : mapping of str to sequence of Span
        Name of a list -> its spans, the upper one first. Units without spans in all lists are left
        out.
    """
    used = [
        unit for unit in _UNITS if any(span[0] == unit for spans in rows.values() for span in spans)
    ]
    last = max(end for spans in rows.values() for _, _, end in spans)

    def fill(figure: Any) -> None:
        for number, (name, spans) in enumerate(rows.items(), start=1):
            axes = figure.add_subplot(len(rows), 1, number)
            for at, unit in enumerate(used):
                mine = [(begin, end) for owner, begin, end in spans if owner == unit]
                axes.barh(
                    [at] * len(mine),
                    [end - begin for begin, end in mine],
                    0.7,
                    [begin for begin, _ in mine],
                    color=_COLOURS[unit],
                    edgecolor="white",
                    linewidth=0.4,
                )
            axes.set_yticks(range(len(used)), used)
            axes.set_ylim(len(used) - 0.5, -0.5)
            axes.set_xlim(0, last)
            axes.set_title(name)
        axes.set_xlabel("cycles")

    return fill


def area(file: Path) -> Any:
    """Return the function that draws bars of LUTs by unit from a table."""
    with file.open() as lines:
        rows = [(row["part"], int(row["LUTs"].replace(" ", ""))) for row in csv.DictReader(lines)]
    rows = [row for row in rows if not row[0].startswith(("all", "ECP5"))]

    def fill(figure: Any) -> None:
        axes = figure.add_axes((0.32, 0.14, 0.62, 0.82))
        axes.barh(range(len(rows)), [count for _, count in rows], 0.7, color="#31688e")
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("LUTs on ECP5")

    return fill


def main() -> None:
    """Write the figures that the options name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", metavar="FILE", help="Write the timeline to this file.")
    parser.add_argument("--area", metavar="FILE", help="Write the areas to this file.")
    parser.add_argument(
        "--table",
        type=Path,
        default=Path("docs/results/data/core_fpga.csv"),
        metavar="FILE",
        help="Read the areas from this table (default: %(default)s).",
    )
    options = parser.parse_args()
    if options.out:
        write_figure(options.out, timeline({"RTL": hardware(), "simulator": simulator()}), 7.2, 3.8)
    if options.area:
        write_figure(options.area, area(options.table), 7.2, 3.4, layout=None)


if __name__ == "__main__":
    main()
