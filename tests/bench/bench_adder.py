"""cocotb bench of the toy ``StreamAdder``, an example of a stream bench. Parameter: ``count``."""

from typing import Any

import cocotb

from tests.support.toys import StreamAdder
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

BIAS = 7


class Bench:
    def __init__(self, dut: Any, *, stall_in: float, stall_out: float):
        face = interface_of(StreamAdder())
        self.harness = Harness(dut, face)
        self.board = Scoreboard("o", seed=self.harness.seed, digits=5)
        self.driver = StreamDriver(
            self.harness, face.streams_in[0], stall_rate=stall_in, taken=self.expect
        )
        self.monitor = StreamMonitor(
            self.harness, face.streams_out[0], stall_rate=stall_out, received=self.board.check
        )

    def expect(self, item: dict[str, Any]) -> None:
        self.board.expect(item["x"] + sum(item["y"]) + BIAS, "sum", **item)

    def send(self, count: int) -> None:
        rng = self.harness.rng
        self.driver.send(
            {"x": rng.getrandbits(16), "y": [rng.getrandbits(12), rng.getrandbits(12)]}
            for _ in range(count)
        )

    async def start(self) -> None:
        await self.harness.start()
        self.harness.held({"bias": BIAS})

    async def drain(self) -> None:
        """Run until all results have come, and some cycles more, in which none may come."""
        wanted = self.driver.sent + len(self.driver.queue)
        await self.harness.run_until(
            lambda: self.driver.sent >= wanted and not self.board.queue, limit=60 * wanted + 200
        )
        await self.harness.step(20)


@cocotb.test()
async def full_speed(dut: Any) -> None:
    bench = Bench(dut, stall_in=0, stall_out=0)
    await bench.start()
    bench.send(parameters()["count"])
    await bench.drain()
    bench.board.finish(at_least=parameters()["count"])
    assert bench.harness.cycle < parameters()["count"] + 30


@cocotb.test()
async def stalls_everywhere(dut: Any) -> None:
    for stall_in, stall_out in ((0.5, 0.5), (0.0, 0.8), (0.8, 0.0)):
        bench = Bench(dut, stall_in=stall_in, stall_out=stall_out)
        await bench.start()
        bench.send(parameters()["count"])
        await bench.drain()
        bench.board.finish(at_least=parameters()["count"])


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    bench = Bench(dut, stall_in=0.2, stall_out=0.6)
    await bench.start()
    for _ in range(5):
        bench.send(50)
        await bench.harness.step(bench.harness.rng.randrange(5, 60))
        bench.board.forget()
        await bench.harness.reset()
    bench.send(50)
    await bench.drain()
    bench.board.finish(at_least=50)
