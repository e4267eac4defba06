"""cocotb bench of ``ISCore``: stalls, resets, and the cycle of every beat and item.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-is`` in the catalogue;
and ``count``, the number of random beats of a round.
"""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.operators import PLUS, TIMES
from vitruvian.golden.sparse.rows import KINDS, is_rows
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse import ISCore
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .traffic import RowBeats, rows

#: The stall rates of the input and the output in the rounds of a test.
_ROUNDS = ((0.0, 0.0), (0.7, 0.0), (0.0, 0.7), (0.4, 0.4))


def unit_of(values: dict[str, Any]) -> ISCore:
    """Return the core that a bench's parameters describe."""
    unit = UNITS["sparse-is"]
    core = unit.build(unit.default(values.get("configuration", {})))
    assert isinstance(core, ISCore)
    return core


def _results(beats: RowBeats, start: np.ndarray, format: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what the beats read, and the results after them."""
    b = beats
    return is_rows(start, b.a, b.x, b.columns, b.present, b.kinds, b.plus, b.times, format)


def _round_of_lane(beats: RowBeats, t: int, lanes: int) -> np.ndarray:
    """Return how many products of a beat go to the bank of each lane before the lane's own."""
    bank = beats.columns[t] % lanes
    earlier = np.tri(lanes, k=-1, dtype=bool)
    return ((bank[:, None] == bank) & earlier & beats.present[t]).sum(axis=1)


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
        self.ends: list[int] = []  # the cycle of each item
        self.driver = StreamDriver(
            self.harness,
            face.streams_in[0],
            stall_rate=stalls[0],
            taken=lambda _: self.starts.append(self.harness.cycle),
        )
        self.monitor = StreamMonitor(
            self.harness, face.streams_out[0], stall_rate=stalls[1], received=self.receive
        )

    @property
    def zeros(self) -> np.ndarray:
        """Results for golden to start with; the first beats write all of them."""
        size = self.config.lanes * self.config.depth
        return np.zeros(size, self.random(0).a.dtype)

    def random(self, count: int) -> RowBeats:
        """Return random beats between beats that write and read all columns."""
        c = self.config
        return rows(self.rng, count, c.lanes, c.lanes * c.depth, c.format)

    def send(self, beats: RowBeats, start: np.ndarray) -> None:
        """Queue beats, and what golden expects them to read."""
        reads, _ = _results(beats, start, self.config.format)
        self.driver.send(
            {
                "lanes": {
                    "a": beats.a[t].tolist(),
                    "column": beats.columns[t].tolist(),
                    "present": beats.present[t].tolist(),
                },
                "x": int(beats.x[t]),
                "kind": KINDS.index(beats.kinds[t]),
                "plus": PLUS.index(beats.plus[t]),
                "times": TIMES.index(beats.times[t]),
            }
            for t in range(len(beats.a))
        )
        for t, row in zip(np.flatnonzero(beats.kinds == "read"), reads, strict=True):
            self.board.expect(row.tolist(), f"read in beat {t}", column=beats.columns[t, :1])

    def receive(self, value: Any, cycle: int) -> None:
        """Compare an item."""
        self.ends.append(cycle)
        self.board.check(value, cycle)

    async def drain(self) -> None:
        """Run until all items have come, and then for cycles in which none may come."""
        waiting = len(self.board.queue)
        limit = 100 * (len(self.driver.queue) + 20)
        await self.harness.run_until(lambda: not self.board.queue, limit=limit)
        await self.harness.step(40)
        self.board.finish(at_least=waiting)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send random beats while the input, the output or both stall."""
    for stalls in _ROUNDS:
        bench = _Bench(dut, stalls)
        await bench.harness.start()
        bench.send(bench.random(bench.count), bench.zeros)
        await bench.drain()


def _written(beats: RowBeats, starts: list[int], last: int, lanes: int) -> RowBeats:
    """Return the part of beats whose products are written by the end of cycle ``last``."""
    present = np.zeros_like(beats.present)
    for t, start in enumerate(starts):
        # Rank 1 has the beat in the next cycle, and a product is written in the one after its turn.
        written = start + 2 + _round_of_lane(beats, t, lanes) <= last
        present[t] = beats.present[t] & written
    return replace(beats, present=present)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset drops what is in flight, and leaves all results that were written.

    Beats that only write and add run until a reset in a random cycle. Then every column is read.
    """
    bench = _Bench(dut, (0.1, 0.0))
    await bench.harness.start()
    lanes = bench.config.lanes
    groups, results, lost = bench.config.depth, bench.zeros, 0
    for n in range(40):
        beats = bench.random(bench.count)
        count = len(beats.a) - groups
        kinds = np.where(beats.kinds == "read", "add", beats.kinds)[:count]
        if n:
            # Results from before the last reset stay, so the first beats need not write all.
            kinds[:groups] = "add"
        moving = RowBeats(
            a=beats.a[:count],
            x=beats.x[:count],
            columns=beats.columns[:count],
            present=beats.present[:count],
            kinds=kinds,
            plus=beats.plus[:count],
            times=beats.times[:count],
        )
        bench.starts.clear()
        bench.send(moving, results)
        least = 2 * groups if n == 0 else 1
        await bench.harness.step(least + bench.harness.rng.randrange(1, bench.count))
        end = bench.harness.cycle
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        # The harness withdraws its offers one cycle before the reset.
        done = _written(moving, bench.starts, end + 1, lanes)
        lost += int(moving.present[: len(bench.starts)].sum() - done.present.sum())
        _, results = _results(done, results, bench.config.format)
        tail = slice(len(beats.a) - groups, None)
        reads = RowBeats(
            **{name: getattr(beats, name)[tail] for name in RowBeats.__dataclass_fields__}
        )
        bench.send(reads, results)
        await bench.drain()
    assert lost > 5, "some products must have been in flight at a reset"


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check the cycle in which the core takes each beat, and that of every item."""
    bench = _Bench(dut, (0.0, 0.0))
    await bench.harness.start()
    beats = bench.random(bench.count)
    bench.send(beats, bench.zeros)
    await bench.drain()
    lanes = bench.config.lanes
    cycle = bench.starts[0]
    starts: list[int] = []
    ends: list[int] = []
    for t in range(len(beats.a)):
        starts.append(cycle)
        if beats.kinds[t] == "read":
            # A read waits in rank 1 while the item of the read before is on its way.
            granted = max(cycle + 1, ends[-1] if ends else 0)
            ends.append(granted + bench.unit.latency - 1)
            cycle = granted
        else:
            most = _round_of_lane(beats, t, lanes)[beats.present[t]].max(initial=0)
            cycle += 1 + int(most)
    assert bench.starts == starts, "the core must take every beat in its cycle"
    assert bench.ends == ends, "every item must come in its cycle"
