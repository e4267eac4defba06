"""Write the picture of docs/units/cube.md: ``python -m vitruvian.sim.bench.cube.waveform``.

The unit ``tiny`` runs ``sim.bench.cube.bench_waveform``. The simulator writes a VCD file, whose
values just before every rising edge are kept as JSON, which the site draws cycle by cycle.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from vitruvian.common.timing_diagram import WaveRow, text
from vitruvian.golden.fp import to_float
from vitruvian.hdl.cube import MatrixUnit, Start
from vitruvian.sim.bench.bits import unpack
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.rtl.emit import interface_of

from .bench_waveform import CONFIG, CYCLES

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "units" / "cube_tiles.json"

_START = {Start.ZERO.value: "zero", Start.FROM_C.value: "C", Start.ACCUMULATE.value: "accum."}


def read_vcd(text: str, clock: str = "clk") -> list[dict[str, int]]:
    """Return the values of all signals just before every rising edge of a clock.

    Parameters
    ----------
    text : str
        Contents of a VCD file.
    clock : str
        Name of the clock.

    Returns
    -------
    samples : list of dict
        Values by path below the top module, one dict for each rising edge. Undefined bits are 0.
    """
    names: dict[str, list[str]] = {}
    scope: list[str] = []
    head, _, body = text.partition("$enddefinitions $end")
    for words in (line.split() for line in head.splitlines()):
        if words[:1] == ["$scope"]:
            scope.append(words[2])
        elif words[:1] == ["$upscope"]:
            scope.pop()
        elif words[:1] == ["$var"]:
            # Verilator adds the scope TOP around the top module.
            match = re.fullmatch(r"(?:TOP\.)?top\.(.*)", ".".join([*scope, words[4]]))
            if match:
                # Signals that always have the same value may share a code.
                names.setdefault(words[3], []).append(match[1])
    values: dict[str, int] = {path: 0 for paths in names.values() for path in paths}
    clocks = {code for code, paths in names.items() if clock in paths}
    samples: list[dict[str, int]] = []
    before = dict(values)  # values at the end of the previous time step
    for line in body.split("\n"):
        if line.startswith("#"):
            before = dict(values)
        elif line[:1] in ("0", "1", "x", "z", "b"):
            bits, code = line[1:].split() if line[0] == "b" else (line[0], line[1:].strip())
            number = int(re.sub("[xz]", "0", bits), 2)
            if code in clocks and number and not before[clock]:
                # Changes that the edge causes have its time, so the values before it are taken.
                samples.append(before)
            for path in names.get(code, ()):
                values[path] = number
    return samples


def simulate() -> list[dict[str, int]]:
    """Run the bench and return the samples of its cycles, without the reset.

    Raises
    ------
    RuntimeError
        If the bench fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        waves = Path(folder) / "tiles.vcd"
        result = run_bench(
            MatrixUnit(config=CONFIG), "vitruvian.sim.bench.cube.bench_waveform", waves=waves
        )
        if not result.passed:
            raise RuntimeError(f"the bench must pass, not {result.failures}")
        samples = read_vcd(waves.read_text())
    last = max(n for n, sample in enumerate(samples) if sample["rst"])
    return samples[last + 1 : last + 1 + CYCLES]


def rows(samples: list[dict[str, int]]) -> list[WaveRow]:
    """Return the rows of the picture for samples."""
    interface = interface_of(MatrixUnit(config=CONFIG))
    streams = {stream.name: stream for stream in interface.streams_in + interface.streams_out}

    def payload(name: str, sample: dict[str, int]) -> Any:
        if not sample[f"{name}__valid"]:
            return None
        return unpack(streams[name].payload, sample[f"{name}__payload"])

    def bit(name: str) -> WaveRow:
        return WaveRow(name.replace("__", "."), [sample[name] for sample in samples])

    beats = [payload("i", sample) for sample in samples]
    return [
        bit("i__valid"),
        bit("i__ready"),
        WaveRow("i.payload.start", [b and _START[b["start"]] for b in beats]),
        WaveRow("i.payload.slot", [b and str(b["slot"]) for b in beats]),
        WaveRow("i.payload.emit", [b and str(b["emit"]) for b in beats]),
        bit("c__valid"),
        bit("c__ready"),
        WaveRow("busy of slot 0", [str(sample["sequencer.busy0"]) for sample in samples]),
        WaveRow("busy of slot 1", [str(sample["sequencer.busy1"]) for sample in samples]),
        WaveRow("slots that are owed", [_owed(sample) for sample in samples]),
        bit("o__valid"),
        bit("o__ready"),
        WaveRow("o.payload[0][0]", [_first(payload("o", sample)) for sample in samples]),
        WaveRow("o.payload[1][1]", [_first(payload("o", sample), 1) for sample in samples]),
    ]


def _owed(sample: dict[str, int]) -> str | None:
    return (
        ", ".join(str(s) for s in range(CONFIG.slot_count) if sample[f"sequencer.owed{s}"]) or None
    )


def _first(fractal: Any, at: int = 0) -> str | None:
    return None if fractal is None else f"{float(to_float(fractal[at][at], 'fp32')):g}"


def main() -> int:
    """Write the rows of the picture and return the exit code."""
    PICTURE.write_text(text(rows(simulate())), encoding="utf-8")
    print(PICTURE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
