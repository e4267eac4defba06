"""Place and route the presets that fit on boards, for the tables of docs/results/fpga.md.

    python benchmarks/fpga_presets.py [--out PAGE] [--only UNIT,…] [--tables TABLE,…] [--hours H]

Each preset is in a registered wrapper. Products are in DSP blocks where the unit has that choice.
A quick mapping of the modules one by one tells first how many LUTs a preset takes. Presets go by
their size, so the hours given (by default 24) go to the small ones first; results are kept in the
cache.
The SIMD² units are measured with the matrix product alone and with all operations. Presets keep the
register ranks of the catalogue; the table "ranks" has the numbers that were tried for the boards.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitruvian.common.errors import WorkError
from vitruvian.common.table import csv_text, filled
from vitruvian.common.validate import one_of
from vitruvian.flows.asic import report
from vitruvian.flows.fpga import mapping, place
from vitruvian.flows.fpga.board import FpgaBoard, TooSmall, load_board
from vitruvian.flows.fpga.default_design import default_design, suited
from vitruvian.flows.units import UNITS, reported, variants
from vitruvian.flows.verilog import emit
from vitruvian.hdl.catalogue.unit import Variant

#: Boards that are routed, and one for the estimates of Xilinx 7.
BOARDS = ("ulx3s", "icebreaker", "tangnano9k", "arty-100t")

#: Boards with a default design.
DESIGNS = ("ulx3s", "orangecrab", "icebreaker", "tangnano9k")

Table = tuple[list[str], list[list[str]]]
HEADER = ["unit", "configuration", "board", "LUT", "LUTs of the wrapper", "carry", "FF"]
HEADER += ["FFs of the wrapper", "DSP", "BRAM", "Fmax, MHz"]

#: Presets that ``reported`` lacks, as they are made for FPGAs.
FOR_FPGAS = ("int8_8x8_dsp", "fp16_4x4x4_a100_dsp")

#: Units with an option for their operations; only "mma" and "all" are presets here.
SEMIRINGS = ("simd2", "simd2-int")

#: A clock that the router must reach, MHz, for presets that have a goal.
CLOCKS = {"int8-8x8-dsp-dsp": 120.0, "fp16-4x4x4-a100-dsp-dsp": 90.0}


#: Boards, unit, options, and the register ranks to try: what ``FpgaBoard.ranks`` comes from.
RANKED: tuple[tuple[tuple[str, ...], str, dict[str, Any], tuple[int, ...]], ...] = (
    (("ulx3s",), "intdot", {"k": 16}, (1, 2, 3, 4, 5, 6, 7)),
    (("orangecrab",), "intdot", {"k": 16}, (3, 4)),
    (("ulx3s", "orangecrab"), "dot", {"k": 4}, (11,)),
    (("ulx3s",), "dot", {"k": 8}, (10, 11)),
    (("ulx3s",), "dot", {"preset": "ieee", "k": 4}, (10, 11)),
    (("ulx3s",), "blockdot", {}, (9,)),
)

TABLES = ("presets", "ranks", "multipliers", "designs")

#: Tables that the page shows from a CSV file; the others stand in its Markdown.
FILES = {
    "presets": "fpga_routed",
    "left out": "fpga_left_out",
    "ranks": "fpga_ranks",
    "multipliers": "fpga_dsp",
}


@dataclass(frozen=True)
class Preset:
    """A preset and the cells that it takes on an ECP5, mapped by modules and without a wrapper.

    ``text`` is its Verilog.
    """

    variant: Variant
    text: str
    estimate: mapping.Resources

    @property
    def name(self) -> str:
        """Name of the unit and the configuration."""
        return f"{self.variant.unit.name} {self.variant.label}"

    @property
    def luts(self) -> int:
        """LUT4, with those of the carry cells."""
        return self.estimate.all_luts("ecp5")


def presets(only: set[str]) -> Iterator[Variant]:
    """Yield the presets of all units, or of some, each once."""
    board = load_board("ulx3s")
    seen: set[str] = set()
    for name in UNITS:
        if only and name not in only:
            continue
        own = list(reported(name))
        if name == "cube":
            unit = UNITS[name]
            own += [Variant(unit, unit.default({"preset": preset})) for preset in FOR_FPGAS]
        for variant in own:
            fitted = suited(variant, board, ("pipeline",))
            fewer = name in SEMIRINGS and fitted.configuration["operations"] not in ("mma", "all")
            if fitted.module not in seen and not fewer:
                seen.add(fitted.module)
                yield fitted


def routed(variant: Variant, board: FpgaBoard, text: str | None) -> list[str]:
    """Return the cells of a table's row, or raise ``TooSmall``."""
    start = time.monotonic()
    work = place.design(variant, board, text=text)
    counts, netlist = place.synth(work)
    say(f"{variant.module} on {board.name}: {counts.all_luts(board.family)} LUTs with the wrapper")
    place.check_fit(counts, work)
    row = [variant.unit.name, variant.label, board.name, str(counts.lut), str(work.own_luts)]
    row += [str(counts.carry), str(counts.ff), str(work.own_ffs), str(counts.dsp), str(counts.bram)]
    fmax = "–"
    if board.routed:
        clock = CLOCKS.get(variant.label) if board.family == "ecp5" else None
        result = place.route(work, counts, netlist, clock_mhz=clock)
        bound = "≤ " if place.is_bound(work, counts) else ""
        fmax = "–" if result.fmax_mhz is None else f"{bound}{result.fmax_mhz:.1f}"
    say(f"{variant.module} on {board.name}: {time.monotonic() - start:.0f} s")
    return [*row, fmax]


def fitting(
    variant: Variant,
    boards: Sequence[str],
    end: float,
    text: str | None = None,
    luts: int = 0,
) -> list[list[str]]:
    """Return the rows of the boards on which a variant fits; measure none after ``end``.

    ``luts`` is the number of LUTs on an ECP5 with the modules mapped one by one, if it is known.
    Boards that are hopeless by this number are not even mapped for.
    """
    rows: list[list[str]] = []
    for name in boards:
        board = load_board(name)
        if time.monotonic() > end:
            break
        if luts > place.HOPELESS * board.resources["lut"]:
            continue
        try:
            rows.append(routed(variant, board, text))
        except (TooSmall, WorkError) as error:
            say(f"left out: {error}")
    return rows


def compared() -> list[Variant]:
    """Return dot products with both kinds of multipliers."""
    multipliers = {"multiplier": [None, "dsp"]}
    return [v for unit in ("intdot", "dot") for v in variants(unit, {"k": [4], **multipliers})]


def preset_tables(presets: Sequence[Preset], end: float) -> dict[str, Table]:
    """Return the tables of the presets that have rows, and of the others."""
    rows: list[list[str]] = []
    left: list[list[str]] = []
    for preset in presets:
        own = fitting(preset.variant, BOARDS, end, preset.text, preset.luts)
        rows += own
        if not own:
            counts = (preset.luts, preset.estimate.ff, preset.estimate.dsp)
            left.append([preset.name, *map(str, counts)])
    return {
        "presets": (HEADER, rows),
        "left out": (["preset", "LUT on ECP5", "FF", "DSP"], left),
    }


def by_size(only: str) -> list[Preset]:
    """Return the presets of the units in a list with commas, or of all, the small ones first."""
    found: list[Preset] = []
    for variant in presets({name for name in only.split(",") if name}):
        start = time.monotonic()
        text = emit.emit(variant)
        estimate = mapping.count(text, variant.module, "ecp5", by_module=True)
        found.append(Preset(variant, text, estimate))
        say(f"{found[-1].name}: {found[-1].luts} LUTs, {time.monotonic() - start:.0f} s")
    return sorted(found, key=lambda each: each.luts)


def rank_rows(end: float) -> list[list[str]]:
    """Return the rows of dot products with more ranks than the catalogue gives them."""
    rows: list[list[str]] = []
    for boards, unit, options, ranks in RANKED:
        tried = {name: [value] for name, value in options.items()}
        for variant in variants(unit, {**tried, "pipeline": list(ranks)}):
            fitted = suited(variant, load_board(boards[0]), ("pipeline",))
            rows += fitting(fitted, boards, end)
    return rows


def main() -> int:
    """Measure, and print the tables or write them into the page."""
    parser = argparse.ArgumentParser(description="Place and route every preset that fits.")
    parser.add_argument("--out", type=Path, help="write the tables into this page")
    parser.add_argument("--only", default="", help="names of units, joined by commas")
    parser.add_argument("--tables", default="", help=f"some of {','.join(TABLES)}; else all")
    parser.add_argument("--hours", type=float, default=24.0, help="start nothing after these")
    options = parser.parse_args()
    end = time.monotonic() + 3600 * options.hours
    names = options.tables.split(",") if options.tables else TABLES
    wanted = [one_of("table", name, TABLES) for name in names]
    tables: dict[str, Table] = {}
    if "presets" in wanted:
        tables |= preset_tables(by_size(options.only), end)
    if "ranks" in wanted:
        tables["ranks"] = (HEADER, rank_rows(end))
    if "multipliers" in wanted:
        pairs = [row for variant in compared() for row in fitting(variant, BOARDS, end)]
        tables["multipliers"] = (HEADER, pairs)
    if "designs" in wanted:
        own = [row for n in DESIGNS for row in fitting(default_design(load_board(n)), [n], end)]
        tables["designs"] = (HEADER, own)
    texts = {name: f"\n{report.markdown(table)}\n" for name, table in tables.items()}
    if options.out:
        page = options.out.read_text(encoding="utf-8")
        for name in FILES.keys() & tables.keys():
            file = options.out.parent / "data" / f"{FILES[name]}.csv"
            file.write_text(csv_text(*tables[name]), encoding="utf-8")
        options.out.write_text(filled(page, "fpga", texts), encoding="utf-8")
    else:
        print(*texts.values(), sep="\n")
    return 0


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
