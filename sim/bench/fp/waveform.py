"""Write the picture of docs/tutorials/verilog.md: ``python -m vitruvian.sim.bench.fp.waveform``.

Amaranth's simulator runs the dot product of the tutorial. The values just before every rising edge
are kept as JSON, which the site draws cycle by cycle.
"""

import sys
from pathlib import Path

from amaranth.sim import Simulator

from vitruvian.common.timing_diagram import WaveRow, text
from vitruvian.golden.fp import from_float, to_float
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.dot import DotProduct

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "tutorials" / "verilog_dot.json"

_SPEC = PRESETS["a100"].spec("fp16", "fp32", k=8)
_PIPELINE = 3
#: Value of all elements of ``a``, value of all elements of ``b``, and ``c``, cycle by cycle.
_OPERANDS = ((1, 1, 0), (2, 1, 0.5), (1, -3, 0), (0.5, 0.5, 10), (4, 4, -128), (0, 7, 1))


def simulate() -> list[dict[str, int | None]]:
    """Return the values of the ports in each cycle; the result has None before the first one."""
    unit = DotProduct(spec=_SPEC, pipeline=_PIPELINE)
    samples: list[dict[str, int | None]] = []

    async def bench(ctx) -> None:
        for cycle in range(len(_OPERANDS) + _PIPELINE):
            a, b, c = _OPERANDS[cycle] if cycle < len(_OPERANDS) else (0, 0, 0)
            codes = [int(from_float(float(x), "fp16")) for x in (a, b)]
            for port, code in zip((unit.a, unit.b), codes, strict=True):
                ctx.set(port, [code] * _SPEC.k)
            ctx.set(unit.c, int(from_float(float(c), "fp32")))
            out = int(ctx.get(unit.d)) if cycle >= _PIPELINE else None
            entered = cycle < len(_OPERANDS)
            named = {"a": codes[0], "b": codes[1], "c": int(from_float(float(c), "fp32"))}
            samples.append({k: v if entered else None for k, v in named.items()} | {"d": out})
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return samples


def rows(samples: list[dict[str, int | None]]) -> list[WaveRow]:
    """Return the rows of the picture for samples."""

    def words(port: str, form: str) -> list[str | None]:
        codes = [sample[port] for sample in samples]
        return [None if x is None else f"{float(to_float(x, form)):g}" for x in codes]

    return [
        WaveRow("a[0] … a[7]", words("a", "fp16")),
        WaveRow("b[0] … b[7]", words("b", "fp16")),
        WaveRow("c", words("c", "fp32")),
        WaveRow("d", words("d", "fp32")),
    ]


def main() -> int:
    """Write the rows of the picture and return the exit code."""
    PICTURE.write_text(text(rows(simulate())), encoding="utf-8")
    print(PICTURE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
