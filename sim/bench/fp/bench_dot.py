"""cocotb bench of ``hdl.fp.dot.DotProduct``: pipelining, gaps, and resets during operation.

Parameters: ``preset``, ``input``, ``output``, ``k``, ``pipeline``, ``count``.
"""

from typing import Any

import cocotb

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.pipeline import PipelineAgent
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.rtl.emit import interface_of


def spec_of(values: dict[str, Any]) -> DotSpec:
    """Return the specification that a bench's parameters describe."""
    return PRESETS[values["preset"]].spec(values["input"], values["output"], k=values["k"])


def unit(values: dict[str, Any]) -> DotProduct:
    """Return the component that a bench's parameters describe."""
    return DotProduct(spec=spec_of(values), pipeline=values["pipeline"])


class _Bench:
    def __init__(self, dut: Any, *, gap_rate: float):
        values = parameters()
        dot = unit(values)
        self.spec, self.count = dot.spec, values["count"]
        self.harness = Harness(dut, interface_of(dot))
        self.board = Scoreboard("d", seed=self.harness.seed)
        self.agent = PipelineAgent(
            self.harness, latency=dot.latency, gap_rate=gap_rate, received=self.board.check
        )

    def send(self, count: int) -> None:
        a, b, c = dot_vectors(self.spec, count, seed=self.harness.rng.getrandbits(32))
        d = fused_dot(a, b, c, self.spec)
        vectors = [
            {"a": x, "b": y, "c": z}
            for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        ]
        self.agent.send(vectors)
        for vector, value in zip(vectors, d.tolist(), strict=True):
            self.board.expect(value, f"fused dot K={self.spec.k}", **vector)

    async def drain(self) -> None:
        limit = 20 * len(self.agent.queue) + 100
        await self.harness.run_until(lambda: self.agent.idle, limit=limit)


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    """Send a vector in every cycle."""
    bench = _Bench(dut, gap_rate=0.0)
    await bench.harness.start()
    bench.send(bench.count)
    await bench.drain()
    bench.board.finish(at_least=bench.count)


@cocotb.test()
async def with_gaps(dut: Any) -> None:
    """Check that random bits between the vectors change no result."""
    bench = _Bench(dut, gap_rate=0.5)
    await bench.harness.start()
    bench.send(bench.count // 2)
    await bench.drain()
    bench.board.finish(at_least=bench.count // 2)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check the results after resets during operation."""
    bench = _Bench(dut, gap_rate=0.2)
    await bench.harness.start()
    for _ in range(4):
        bench.send(bench.count // 4)
        await bench.harness.step(bench.harness.rng.randrange(1, 40))
        bench.board.forget()
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
    bench.send(bench.count // 4)
    await bench.drain()
    bench.board.finish(at_least=bench.count // 4)
