"""Measure the energy of a multiply-accumulate in a unit of another open project.

    python -m benchmarks.power_peers --sources DIR --csv docs/results/data/power_peers.csv

The fused multiply-add of cvfpu, FP16 products and an FP32 sum, is elaborated and mapped as
``benchmarks/area_peers.py`` does it. Its netlist then runs as in ``vitruvian power``: the operands
are those of our unit of one product (``dot`` with the preset ``ieee``), and golden's results must
come out. DIR is a clone of cvfpu; nothing of it belongs to this project.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np

from benchmarks.area_peers import PEERS, RECIPES, Peer, elaborate
from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.validate import one_of
from vitruvian.flows.asic import sta, synth
from vitruvian.flows.asic.cells import CellLibrary, library
from vitruvian.flows.asic.power import cells
from vitruvian.flows.asic.power.energy import energies
from vitruvian.flows.asic.power.measure import CYCLES, run
from vitruvian.flows.asic.power.network import build
from vitruvian.flows.asic.power.stimulus import STIMULI, PowerStimulus, stimulus
from vitruvian.flows.units import UNITS
from vitruvian.hdl.catalogue.unit import Variant

HEADER = ("unit", "recipe", "stimulus", "ns", "zero delay pJ", "timed pJ", "glitches")
_LABEL = "cvfpu FMA"
#: Outputs beside the result: flags of exceptions, what passes through, and handshakes.
_BESIDE = frozenset(
    f"{name}_o" for name in "status extension_bit tag mask aux out_valid in_ready busy".split()
)
#: Inputs that are 1 in every cycle: operands come and results are taken.
_ONES = ("rst_ni", "in_valid_i", "out_ready_i")


def operands(name: str, *, cycles: int, seed: int = 1) -> PowerStimulus:
    """Return the operands of a stimulus at the ports of cvfpu, and golden's results.

    A port has three words of 32 bits: the factors, whose upper halves are 1 because smaller formats
    lie in larger ones like this, and the summand.
    """
    ours = Variant(UNITS["dot"], UNITS["dot"].default({"preset": "ieee", "k": 1, "pipeline": 0}))
    drawn = stimulus(ours, name, cycles=cycles, seed=seed)
    a, b, c = (drawn.inputs[port] for port in "abc")
    boxed = np.ones_like(a)
    inputs = {port: np.ones((len(a), 1), np.uint8) for port in _ONES}
    inputs["operands_i"] = np.concatenate([a, boxed, b, boxed, c], axis=1)
    expected = {"result_o": drawn.expected["d"]}
    return PowerStimulus(inputs=inputs, expected=expected, unknown=_BESIDE)


def measure(
    peer: Peer, sources: Path, process: CellLibrary, names: Sequence[str], cycles: int
) -> list[list[object]]:
    """Return the rows of a peer: each recipe at the tight delay target, and each stimulus.

    Raises
    ------
    UserError
        If the sources or a stimulus are not there.
    WorkError
        If a result differs from golden.
    """
    for name in names:
        one_of("stimulus", name, STIMULI)
    rtlil, known = elaborate(peer, sources), cells.load(process.path)
    rows: list[list[object]] = []
    for title, recipe in RECIPES.items():
        design = synth.synthesize(
            rtlil,
            top=peer.top,
            liberty=process.path,
            targets_ps=(synth.TIGHT_PS,),
            recipe=recipe,
        )[synth.TIGHT_PS]
        drive = {"driving_cell": recipe.driving_cell, "load_ff": recipe.load_ff}
        path = sta.analyse(design.netlist, process.cells, **drive).delay_ps
        if path is None:
            raise WorkError(f"{peer.top!r} must have a path")
        mapped = build(design.netlist, process.cells, known, **drive)
        for name in names:
            counts = run(mapped, operands(name, cycles=cycles), label=f"{peer.top} {name}")
            period = 10.0 * ceil(path / 10)
            zero, timed = energies(mapped, known, counts, cycles=cycles, period_ps=period)
            share = 1 - zero.total_fj / timed.total_fj
            figures = [each.total_fj / peer.macs / 1000 for each in (zero, timed)]
            texts = [f"{figure:.2f}" for figure in (path / 1000, *figures)]
            rows.append([_LABEL, title, name, *texts, f"{100 * share:.0f} %"])
            print(*rows[-1], sep=", ", file=sys.stderr, flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 2 for a mistake of the user, and 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, default=Path(), help="Folder of the clone.")
    parser.add_argument("--liberty", default="nangate45", help="Cells (default: nangate45).")
    parser.add_argument("--stimulus", default=",".join(STIMULI), help="Stimuli, with commas.")
    parser.add_argument("--cycles", type=int, default=CYCLES, help="Cycles that are counted.")
    parser.add_argument("--csv", metavar="FILE", help="Write the table to this file.")
    options = parser.parse_args(arguments)
    try:
        if options.cycles < 1:
            raise UserError(f"cycles must be positive, not {options.cycles}")
        rows = measure(
            PEERS["cvfpu"][_LABEL],
            options.sources,
            library(options.liberty),
            options.stimulus.split(","),
            options.cycles,
        )
    except (UserError, ValueError, WorkError) as error:
        print(f"power_peers: {error}", file=sys.stderr)
        return 1 if isinstance(error, WorkError) else 2
    with open(options.csv, "w", newline="") if options.csv else sys.stdout as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
