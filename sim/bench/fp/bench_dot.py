"""cocotb bench of ``hdl.fp.dot.DotProduct``: pipelining, gaps, and resets during operation.

Parameters: ``preset``, ``input``, ``output``, ``k``, ``pipeline``, ``count``.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import cocotb

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.bench.pipeline import PipelineAgent
from vitruvian.sim.bench.stream_bench import StreamBench, random_resets, random_rounds
from vitruvian.sim.rtl.ports import Stream


def spec_of(values: Mapping[str, Any]) -> DotSpec:
    """Return the specification that a bench's parameters describe."""
    return PRESETS[values["preset"]].spec(values["input"], values["output"], k=values["k"])


def unit(values: Mapping[str, Any]) -> DotProduct:
    """Return the component that a bench's parameters describe."""
    return DotProduct(spec=spec_of(values), pipeline=values["pipeline"])


class DotBench(StreamBench[list[dict[str, Any]]]):
    """A dot product behind an agent that sends a vector in every cycle, but for random gaps."""

    unit_of = staticmethod(unit)

    def surround(self, streams: Mapping[str, Stream]) -> None:
        """Add the agent, because the unit has no streams."""
        self.watch("d")
        self.drivers["vectors"] = PipelineAgent(
            self.harness,
            latency=self.unit.latency,
            gap_rate=self.rates["inputs"],
            received=partial(self.receive, "d"),
        )

    def stimuli(self, count: int | None = None) -> list[dict[str, Any]]:
        """Return random vectors, with golden's results as ``d``."""
        seed = self.harness.rng.getrandbits(32)
        a, b, c = dot_vectors(self.unit.spec, count or self.count, seed=seed)
        columns = (a, b, c, fused_dot(a, b, c, self.unit.spec))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [dict(zip("abcd", row, strict=True)) for row in rows]

    def items(self, traffic: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the operands of the vectors."""
        return {"vectors": [{name: vector[name] for name in "abc"} for vector in traffic]}

    def expect(self, traffic: list[dict[str, Any]]) -> None:
        """Expect a result for each vector."""
        for vector in traffic:
            operands = {name: vector[name] for name in "abc"}
            self.boards["d"].expect(vector["d"], f"fused dot K={self.unit.spec.k}", **operands)


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    """Send a vector in every cycle."""
    await random_rounds(DotBench, dut, [{}])


@cocotb.test()
async def with_gaps(dut: Any) -> None:
    """Check that random bits between the vectors change no result."""
    await random_rounds(DotBench, dut, [{"inputs": 0.5}])


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check the results after resets during operation."""
    bench = DotBench(dut, inputs=0.2)
    await random_resets(bench, cycles=(1, 40), count=bench.count // 4, resets=4)
