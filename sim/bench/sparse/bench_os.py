"""cocotb bench of ``OSCore``: stalls, resets, and the cycle of every output.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-os`` in the catalogue;
and ``count``, the number of columns of a round.
"""

from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.cores import os_columns
from vitruvian.golden.sparse.operators import PLUS, TIMES
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse import OSCore
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .traffic import Beats, columns, lengths

#: The stall rates of the input and the output in the rounds of a test.
_ROUNDS = ((0.0, 0.0), (0.7, 0.0), (0.0, 0.7), (0.4, 0.4))


def unit_of(values: dict[str, Any]) -> OSCore:
    """Return the core that a bench's parameters describe."""
    unit = UNITS["sparse-os"]
    core = unit.build(unit.default(values.get("configuration", {})))
    assert isinstance(core, OSCore)
    return core


class _Bench:
    """A core between a driver and a monitor."""

    def __init__(self, dut: Any, stalls: tuple[float, float]):
        self.unit, self.count = unit_of(parameters()), parameters()["count"]
        self.config = self.unit.config
        face = interface_of(self.unit)
        self.harness = Harness(dut, face)
        self.rng = np.random.default_rng(self.harness.rng.getrandbits(32))
        digits = self.config.number.storage_bits // 4
        self.board = Scoreboard("o", seed=self.harness.seed, digits=digits)
        self.starts: list[int] = []  # the cycle in which the core took each beat
        self.ends: list[int] = []  # the cycle of each output
        self.driver = StreamDriver(
            self.harness,
            face.streams_in[0],
            stall_rate=stalls[0],
            taken=lambda _: self.starts.append(self.harness.cycle),
        )
        self.monitor = StreamMonitor(
            self.harness, face.streams_out[0], stall_rate=stalls[1], received=self.receive
        )

    def send(self, count: int) -> Beats:
        """Queue the beats of random columns, and what golden expects of them."""
        lanes = self.config.lanes
        beats = columns(self.rng, lengths(self.rng, count, lanes), lanes, self.config.format)
        values, beat, lane = os_columns(
            beats.a, beats.b, beats.present, beats.last, beats.plus, beats.times, self.config.format
        )
        lanes_of = {k: getattr(beats, k).tolist() for k in ("a", "b", "present", "last")}
        for t in range(len(beats.last)):
            names = {"plus": PLUS.index(beats.plus[t]), "times": TIMES.index(beats.times[t])}
            self.driver.send(
                [{"lanes": {k: v[t] for k, v in lanes_of.items()}, **names}],
            )
            if beats.last[t].any():
                row: list[int | None] = [None] * lanes
                for n in np.flatnonzero(beat == t):
                    row[lane[n]] = int(values[n])
                self.board.expect(
                    row,
                    f"{beats.plus[t]}-{beats.times[t]} in beat {t}",
                    a=beats.a[t],
                    b=beats.b[t],
                    present=beats.present[t],
                    last=beats.last[t],
                )
        return beats

    def receive(self, value: Any, cycle: int) -> None:
        """Compare the columns of an output; the values of other lanes are undefined."""
        self.ends.append(cycle)
        pairs = zip(value["value"], value["last"], strict=True)
        self.board.check([code if last else None for code, last in pairs], cycle)

    async def drain(self) -> None:
        """Run until all outputs have come, and then for cycles in which none may come."""
        waiting = len(self.board.queue)
        limit = 100 * (len(self.driver.queue) + 20)
        await self.harness.run_until(lambda: not self.board.queue, limit=limit)
        await self.harness.step(40)
        self.board.finish(at_least=waiting)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send random columns while the input, the output or both stall."""
    for stalls in _ROUNDS:
        bench = _Bench(dut, stalls)
        await bench.harness.start()
        bench.send(bench.count)
        await bench.drain()


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset leaves an empty core, without the part of a column that was open."""
    bench = _Bench(dut, (0.1, 0.3))
    await bench.harness.start()
    for _ in range(8):
        bench.send(bench.count)
        await bench.harness.step(bench.harness.rng.randrange(1, 60))
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        bench.board.forget()
    assert bench.ends, "some outputs must have come before the resets"
    bench.send(bench.count)
    await bench.drain()


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check that the core takes a beat in every cycle, and the latency of every output."""
    bench = _Bench(dut, (0.0, 0.0))
    await bench.harness.start()
    beats = bench.send(bench.count)
    await bench.drain()
    first = bench.starts[0]
    assert bench.starts == list(range(first, first + len(beats.last)))
    ends = np.flatnonzero(beats.last.any(axis=1)) + first + bench.unit.latency
    assert bench.ends == ends.tolist(), "every output must come in its cycle"
