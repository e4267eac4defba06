"""Count the cells of the parts of a core, with its memory and serial line, on an ECP5.

    python benchmarks/core_fpga.py tiny --csv docs/results/data/core_fpga.csv

Yosys maps the design as ``vitruvian fpga core --preset tiny --board ulx3s`` does, but each part by
itself. LUTs contain two for each carry cell and four for each memory of 16 × 4 bits.
"""

import argparse
import csv
import json
import re
import sys
from collections import Counter

from vitruvian.flows.fpga import mapping
from vitruvian.flows.fpga.board import load_board
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import emit
from vitruvian.hdl.core import CORES

#: Part -> the ending of its module's name. The cells of a part do not contain those of another.
PARTS = {
    "fetch and dispatch": "core_fetcher",
    "S: scalars": "core_scalar",
    "M: elements of the tile": "processing_element",
    "M: rest": "core_matrix",
    "V: slices": "_slice",
    "V: vector unit without its slices": "core_vector_plain_unit",
    "V: feeder, Col2Im": "core_vector_plain",
    "V: copies": "core_vector_special",
    "MTE1: moves": "mte1_plain",
    "MTE1: Im2Col": "mte1_special",
    "MTE2": "core_mte2",
    "MTE3": "core_mte3",
    "L1": "core_l1",
    "UB": "core_ub",
    "L0A": "core_l0a",
    "L0B": "core_l0b",
    "L0C": "core_l0c",
    "global memory, 128 KiB": "_memory",
    "queues, flags, choice of units, counters": "_core",
    "serial line and registers": "",
}
_BOARD = "ulx3s"


def modules(text: str, top: str) -> dict[str, str]:
    """Return part -> its module in a Verilog text.

    Raises
    ------
    ValueError
        If not exactly one module has the name of a part.
    """
    names = re.findall(r"(?m)^module (\w+)", text)
    found = {}
    for part, ending in PARTS.items():
        fitting = [name for name in names if name.endswith(ending)] if ending else [top]
        if len(fitting) != 1:
            raise ValueError(f"{part} must be one module, not {fitting}")
        found[part] = fitting[0]
    return found


def measure(preset: str) -> dict[str, mapping.Resources]:
    """Return part -> its cells, all instances together."""
    (variant,) = variants("core", {"preset": [preset]})
    text, top = emit.emit(variant, plain=True), variant.module
    parts = modules(text, top)
    family = mapping.FAMILIES["ecp5"]
    kept = [f"setattr -mod -set keep_hierarchy 1 {name}" for name in parts.values()]
    script = [*kept, *family.commands(top, dense=True), "tee -q -o stat.json stat -json"]
    stat = json.loads(mapping.run(text, script, "stat.json", "ecp5", task="map the core"))
    cells = {
        name.removeprefix("\\"): Counter(module["num_cells_by_type"])
        for name, module in stat["modules"].items()
    }
    numbers = _instances(cells, top)
    result = {}
    for part, module in parts.items():
        own = {kind: numbers[module] * count for kind, count in cells[module].items()}
        result[part] = mapping.Resources(**family.count(own))
    return result


def _instances(cells: dict[str, Counter[str]], top: str) -> Counter[str]:
    """Return module -> how many instances of it are below ``top``."""
    numbers: Counter[str] = Counter()
    left = [(top, 1)]
    while left:
        name, times = left.pop()
        numbers[name] += times
        left += [(kind, times * n) for kind, n in cells[name].items() if kind in cells]
    return numbers


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("core", choices=CORES, help="Map the parts of this core.")
    parser.add_argument("--csv", metavar="FILE", help="Write the table to this file (CSV).")
    options = parser.parse_args()
    found = measure(options.core)
    rows = [[part, r.all_luts("ecp5"), r.ff, r.dsp, r.bram] for part, r in found.items()]
    rows.append(
        ["all, part by part", *(sum(column) for column in list(zip(*rows, strict=True))[1:])]
    )
    board = load_board(_BOARD).resources
    rows.append(["ECP5-85F", *(board[kind] for kind in ("lut", "ff", "dsp", "bram"))])
    with open(options.csv, "w", newline="") if options.csv else sys.stdout as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["part", "LUTs", "FF", "DSP", "block RAM"], *rows])


if __name__ == "__main__":
    main()
