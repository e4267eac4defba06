"""Measure the cost of a unit and export it: Verilog, area reports and timing reports."""

import os

if __name__ != "vitruvian.flows":
    raise ImportError("import vitruvian.flows, not flows")

# Same names and same Verilog on every machine, whichever Yosys happens to be on PATH.
os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
