"""Measure the compiled models of Im2Col, Col2Im and the vector unit, without stalls, on one core.

The time is the processor time of this process, so that other jobs on the machine change it little.
It includes the transfer of the data between NumPy and the model.

Run: ``python benchmarks/compiled_streams.py [--json FILE]``
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from vitruvian.golden.scu import Patches
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.scu import Im2Col
from vitruvian.hdl.vector.operations import Format, Operation
from vitruvian.sim.bench.scu.batch import run_col2im, run_im2col
from vitruvian.sim.bench.scu.traffic import conversion
from vitruvian.sim.bench.vector.batch import as_streams
from vitruvian.sim.bench.vector.expected import VectorCommand
from vitruvian.sim.rtl import compile_unit

#: A pooling layer of InceptionV3 with one group of channels: 71 × 71 pixels, kernel 3, stride 2.
LAYER = Patches(height=71, width=71, kernel=(3, 3), stride=(2, 2))
UNITS_MEASURED = (
    ("scu-im2col", {"rows": 1}),
    ("scu-im2col", {"rows": 8}),
    ("scu-col2im", {"rows": 1}),
    ("scu-col2im", {"rows": 8, "channels": 4}),
)
VECTORS_MEASURED: tuple[dict[str, int | str], ...] = (
    {"lanes": 8, "groups": "add-multiply-compare"},
)
#: Repeats of each command.
REPEAT = 100


def processor_seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the processor time of the fastest of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return best


def measure_vector(options: dict[str, int | str]) -> dict[str, float | str]:
    """Add and compare FP16 blocks with every lane enabled, and return the rates."""
    unit = UNITS["vector"]
    component, arguments = unit.component(unit.default(options))
    config = arguments["config"]
    model = compile_unit(component, **arguments)
    rng = np.random.default_rng(1)
    commands = [
        VectorCommand(
            operation=operation,
            format=Format.FP16,
            mask=np.ones(config.lanes, bool),
            repeat=REPEAT,
            a=rng.integers(0, 256, (REPEAT, 2 * config.lanes), np.uint8),
            b=rng.integers(0, 256, (REPEAT, 2 * config.lanes), np.uint8),
        )
        for operation in (Operation.ADD, Operation.MAX) * 100
    ]
    streams, count = as_streams(config, commands), REPEAT * len(commands)
    seconds = processor_seconds(lambda: model.stream(inputs=streams, outputs={"o": count}))
    label = " ".join(f"{key} {value}" for key, value in options.items())
    return {
        "unit": f"vector {label}",
        "rows_per_second": config.lanes * count / seconds,
        "cycles_per_second": count / seconds,
    }


def measure(name: str, options: dict[str, int]) -> dict[str, float | str]:
    """Convert the layer and return the rates of a configuration."""
    unit = UNITS[name]
    component, arguments = unit.component(unit.default(options))
    config = arguments["config"]
    model = compile_unit(component, **arguments)
    steps = conversion(LAYER, 1)
    # A repeat is a fractal of 16 rows.
    rows = 16 * sum(step.repeat for step in steps)
    c0 = config.c0_bytes // 2
    rng = np.random.default_rng(1)
    if component is Im2Col:
        image = rng.integers(0, 1 << 16, (1, LAYER.height, LAYER.width, c0), np.uint16)
        images = [image] * len(steps)

        def run() -> object:
            return run_im2col(model, config, steps, images)
    else:
        codes = [rng.integers(0, 1 << 15, (16 * s.repeat, c0)).astype(np.uint16) for s in steps]
        added = [code.view(np.float16) for code in codes]

        def run() -> object:
            return run_col2im(model, config, steps, added, added)

    seconds = processor_seconds(run)
    label = " ".join(f"{key} {value}" for key, value in options.items())
    return {
        "unit": f"{name} {label}",
        "rows_per_second": rows / seconds,
        "cycles_per_second": rows / config.rows / seconds,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the results to this file")
    options = parser.parse_args()
    results = [measure(name, given) for name, given in UNITS_MEASURED]
    results += [measure_vector(given) for given in VECTORS_MEASURED]
    table = Table("unit", "thousand rows or elements a second", "thousand cycles a second")
    for result in results:
        figures = (result["rows_per_second"], result["cycles_per_second"])
        table.add_row(str(result["unit"]), *(f"{float(x) / 1e3:.0f}" for x in figures))
    Console().print(table)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
