"""Measure the emitted Verilog as a text, and what Yosys makes of it, for decision 0028.

    python benchmarks/verilog_text.py [--area]

The first table has lines, longest lines, comments and modules of some units. With ``--area`` a
second table compares the cells of dot products: mapped from RTLIL, as ``vitruvian area`` does, from
the plain text in the order of the netlist, and from the text with equal lanes as instances.
"""

import argparse
import tempfile
from pathlib import Path

from vitruvian.flows.asic import cells
from vitruvian.flows.asic.report import markdown
from vitruvian.flows.asic.synth import synthesize
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import emit
from vitruvian.flows.yosys import run_yosys
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import to_rtlil

UNITS = {
    "dot": {"preset": ["a100"], "k": [8]},
    "cube": {"preset": ["tiny"]},
    "scu-im2col": {"rows": [1, 8]},
}
#: Pairs of the dot products whose cells are compared, and delay targets in ps.
PAIRS, TARGETS_PS = (4, 8), (10_000, 500)


def texts() -> str:
    """Return the table of lines, comments and modules."""
    rows = []
    for variant in (variant for name, given in UNITS.items() for variant in variants(name, given)):
        text = emit.emit(variant)
        lines = text.splitlines()
        counts = [
            len(lines),
            sum(len(line) > 120 for line in lines),
            max(map(len, lines)),
            sum("//" in line for line in lines),
            sum(line.startswith("module ") for line in lines),
        ]
        rows.append([variant.module, *map(str, counts)])
    columns = ["unit", "lines", "> 120", "longest", "with a comment", "modules"]
    return markdown((columns, rows))


def areas() -> str:
    """Return the table of area and delay of dot products, from three sources."""
    rows = []
    for k in PAIRS:
        (variant,) = variants("dot", {"preset": ["a100"], "k": [k]})
        sources = {
            "RTLIL": to_rtlil(variant.build(), name=variant.module),
            "plain text": _read(variant, emit.emit(variant, plain=True)),
            "text with lanes": _read(variant, emit.emit(variant)),
        }
        for source, rtlil in sources.items():
            library = cells.library().path
            mapped = synthesize(rtlil, top=variant.module, liberty=library, targets_ps=TARGETS_PS)
            row = [variant.module, source]
            for target in TARGETS_PS:
                row += [f"{mapped[target].area_um2:.1f}", f"{mapped[target].abc_delay_ps:.0f}"]
            rows.append(row)
    columns = ["unit", "from"]
    columns += [
        f"{word} at {t} ps" for t in TARGETS_PS for word in ("area, µm²", "ABC's delay, ps,")
    ]
    return markdown((columns, rows))


def _read(variant: Variant, text: str) -> str:
    """Return the RTLIL that Yosys reads from a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.v"
        path.write_text(text)
        script = [f"read_verilog {path}", f"hierarchy -top {variant.module}", "write_rtlil out.il"]
        return run_yosys("design.v", text, script, "out.il", task="read the text")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the emitted Verilog as a text.")
    parser.add_argument("--area", action="store_true", help="Map dot products, too.")
    options = parser.parse_args()
    print(texts())
    if options.area:
        print(areas())


if __name__ == "__main__":
    main()
