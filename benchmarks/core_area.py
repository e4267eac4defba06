"""Measure the area of the parts of a core that are not units of the catalogue.

``python benchmarks/core_area.py tiny --out FILE.csv`` maps each part onto vt45 as ``vitruvian area
--whole`` does. Memories of more than 8192 bits are left out of the netlist, and stated as bits;
smaller ones, those of queues, become flip-flops. What feeds the tile of M, and queues, flags and
guards between the parts, are left out.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Instance, Module
from amaranth.lib.memory import Memory

from vitruvian.flows.asic import synth
from vitruvian.flows.asic.cells import library
from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.buffer import BankedMemory, BlockMemory
from vitruvian.hdl.core.config import CoreConfig
from vitruvian.hdl.core.core import Core, movers
from vitruvian.hdl.core.fetch import Fetcher
from vitruvian.hdl.core.images import ImageLoader
from vitruvian.hdl.core.ports import BLOCK_BYTES
from vitruvian.hdl.core.queue import UnitQueue
from vitruvian.hdl.core.scalar import ScalarUnit
from vitruvian.hdl.core.vector import LaneFeeder
from vitruvian.hdl.cube.unit import MatrixUnit
from vitruvian.hdl.elaborate import only_described, to_rtlil

#: Memories with more bits than this are macros.
_MOST_BITS = 8192


def parts(config: CoreConfig) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Return the parts by name: how many of them a core has, and a function that builds one."""

    def mover(unit: str) -> Callable[[], Any]:
        return lambda: movers(config)[unit]

    core = only_described(Core(config=config))
    return {
        "fetch and dispatch": (1, lambda: Fetcher(config=config)),
        "queue of a unit": (6, lambda: UnitQueue(depth=config.queue_words, code=1)),
        "M: tile": (1, lambda: MatrixUnit(config=config.tile)),
        "V: vector unit, feeder, Col2Im": (1, lambda: LaneFeeder(config=config)),
        "V: copies": (1, mover("V")),
        "MTE1: moves": (1, mover("MTE1")),
        "MTE1: Im2Col": (1, lambda: ImageLoader(blocks=config.l1 // BLOCK_BYTES)),
        "MTE2": (1, mover("MTE2")),
        "MTE3": (1, mover("MTE3")),
        "S, scalars": (1, ScalarUnit),
        "L1": (
            1,
            lambda: BlockMemory(
                blocks=config.l1 // BLOCK_BYTES, readers=1, writers=2, line=config.l1_blocks
            ),
        ),
        "UB": (
            1,
            lambda: BankedMemory(
                blocks=config.ub // BLOCK_BYTES,
                banks=config.ub_banks,
                readers=(1, 1, 1),
                writers=(1, 1, 1, 1),
            ),
        ),
        "L0A": (1, lambda: core.operands("L0A")),
        "L0B": (1, lambda: core.operands("L0B")),
        "L0C": (1, core.sums),
    }


@contextmanager
def without_macros(found: list[int]) -> Iterator[dict[str, str]]:
    """Replace large memories by instances while the block runs; collect their bits.

    Yields
    ------
    dict of str to str
        Name of a macro -> the RTLIL of its empty module.
    """
    original, macros = Memory.elaborate, {}

    def elaborate(self: Any, platform: Any) -> Any:
        width, depth = len(self.read_ports[0].data), self.depth
        if width * depth <= _MOST_BITS:
            return original(self, platform)
        found.append(width * depth)
        connections: dict[str, Any] = {}
        for n, port in enumerate(self.read_ports):
            connections |= {f"i_ra{n}": port.addr, f"i_re{n}": port.en, f"o_rd{n}": port.data}
        for n, port in enumerate(self.write_ports):
            connections |= {f"i_wa{n}": port.addr, f"i_we{n}": port.en, f"i_wd{n}": port.data}
        name = f"macro_{width}x{depth}"
        wires = [
            f"  wire width {len(value)} {'input' if key[0] == 'i' else 'output'} {n} \\{key[2:]}"
            for n, (key, value) in enumerate(connections.items(), start=1)
        ]
        macros[name] = "\n".join(["attribute \\blackbox 1", f"module \\{name}", *wires, "end"])
        m = Module()
        m.submodules.macro = Instance(name, **connections)
        return m

    Memory.elaborate = elaborate
    try:
        yield macros
    finally:
        Memory.elaborate = original


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("core", choices=CORES, help="Measure the parts of this core.")
    parser.add_argument("--out", metavar="FILE", help="Write the table to this file (CSV).")
    options = parser.parse_args()
    cells = library("vt45")
    rows = []
    for name, (count, build) in parts(CORES[options.core]).items():
        bits: list[int] = []
        with without_macros(bits) as macros:
            text = to_rtlil(build())
        text = "\n".join([*macros.values(), text])
        mapped = synth.synthesize(text, liberty=cells.path)
        areas = [round(each.area_um2) for each in mapped.values()]
        rows.append([name, count, *areas, sum(bits)])
        print(*rows[-1], sep=", ", flush=True)
    header = ["part", "number", "relaxed, µm²", "tight, µm²", "bits of macros"]
    with open(options.out, "w", newline="") if options.out else sys.stdout as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
