"""cocotb bench of ``ISCore``: stalls, resets, and the cycle of every beat and item.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-is`` in the catalogue;
and ``count``, the number of random beats of a round.
"""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.names import KINDS, PLUS, TIMES
from vitruvian.golden.sparse.rows import is_rows
from vitruvian.hdl.sparse import ISCore
from vitruvian.sim.bench.stream_bench import StreamBench, from_catalogue, random_rounds

from .traffic import RowBeats, rows

unit_of = from_catalogue("sparse-is", ISCore)


def _results(beats: RowBeats, start: np.ndarray, format: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what the beats read, and the results after them."""
    b = beats
    return is_rows(start, b.a, b.x, b.columns, b.present, b.kinds, b.plus, b.times, format)


def _round_of_lane(beats: RowBeats, t: int, lanes: int) -> np.ndarray:
    """Return how many products of a beat go to the bank of each lane before the lane's own."""
    bank = beats.columns[t] % lanes
    earlier = np.tri(lanes, k=-1, dtype=bool)
    return ((bank[:, None] == bank) & earlier & beats.present[t]).sum(axis=1)


class ISBench(StreamBench[RowBeats]):
    """A core of input-stationary products between a driver and a monitor.

    Attributes
    ----------
    results : ndarray
        Golden's results before the next beats. The first beats after a start write all of them.
    """

    unit_of = staticmethod(unit_of)

    def __init__(self, dut: Any, **stalls: float):
        super().__init__(dut, **stalls)
        self.results = np.zeros(self.config.lanes * self.config.depth, self.stimuli(0).a.dtype)

    def stimuli(self, count: int | None = None) -> RowBeats:
        """Return random beats between beats that write and read all columns."""
        c = self.config
        count = self.count if count is None else count
        return rows(self.rng, count, c.lanes, c.lanes * c.depth, c.format)

    def items(self, traffic: RowBeats) -> dict[str, Any]:
        """Return the beats."""
        lanes = {"a": traffic.a, "column": traffic.columns, "present": traffic.present}
        return {
            "i": [
                {
                    "lanes": {name: values[t].tolist() for name, values in lanes.items()},
                    "x": int(traffic.x[t]),
                    "kind": KINDS.index(traffic.kinds[t]),
                    "plus": PLUS.index(traffic.plus[t]),
                    "times": TIMES.index(traffic.times[t]),
                }
                for t in range(len(traffic.a))
            ]
        }

    def expect(self, traffic: RowBeats) -> None:
        """Expect an item for each beat that reads."""
        reads, _ = _results(traffic, self.results, self.config.format)
        for t, row in zip(np.flatnonzero(traffic.kinds == "read"), reads, strict=True):
            column = traffic.columns[t, :1]
            self.boards["o"].expect(row.tolist(), f"read in beat {t}", column=column)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send random beats while the input, the output or both stall."""
    await random_rounds(ISBench, dut)


def _written(beats: RowBeats, starts: list[int], last: int, lanes: int) -> RowBeats:
    """Return the part of beats whose products are written by the end of cycle ``last``."""
    present = np.zeros_like(beats.present)
    for t, start in enumerate(starts):
        # Stage 1 has the beat in the next cycle, and a product is written one cycle after its turn.
        written = start + 2 + _round_of_lane(beats, t, lanes) <= last
        present[t] = beats.present[t] & written
    return replace(beats, present=present)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset drops what is in flight, and leaves all results that were written.

    Beats that only write and add run until a reset in a random cycle. Then every column is read.
    """
    bench = ISBench(dut, inputs=0.1)
    await bench.start()
    lanes = bench.config.lanes
    groups, lost = bench.config.depth, 0
    for n in range(40):
        beats = bench.stimuli()
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
        bench.send(moving)
        earliest = 2 * groups if n == 0 else 1
        await bench.harness.step(earliest + bench.harness.rng.randrange(1, bench.count))
        end, starts = bench.harness.cycle, bench.taken["i"].copy()
        await bench.reset()
        # The harness withdraws its offers one cycle before the reset.
        done = _written(moving, starts, end + 1, lanes)
        lost += int(moving.present[: len(starts)].sum() - done.present.sum())
        _, bench.results = _results(done, bench.results, bench.config.format)
        tail = slice(len(beats.a) - groups, None)
        reads = {name: getattr(beats, name)[tail] for name in RowBeats.__dataclass_fields__}
        bench.send(RowBeats(**reads))
        await bench.drain()
        bench.forget()
    assert lost > 5, "some products must have been in flight at a reset"


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check the cycle in which the core takes each beat, and that of every item."""
    bench = ISBench(dut)
    await bench.start()
    beats = bench.stimuli()
    bench.send(beats)
    await bench.drain()
    lanes = bench.config.lanes
    cycle = bench.taken["i"][0]
    starts: list[int] = []
    ends: list[int] = []
    for t in range(len(beats.a)):
        starts.append(cycle)
        if beats.kinds[t] == "read":
            # A read waits in the first stage while the item of the read before is on its way.
            granted = max(cycle + 1, ends[-1] if ends else 0)
            ends.append(granted + bench.unit.latency - 1)
            cycle = granted
        else:
            largest = _round_of_lane(beats, t, lanes)[beats.present[t]].max(initial=0)
            cycle += 1 + int(largest)
    assert bench.taken["i"] == starts, "the core must take every beat in its cycle"
    assert bench.given["o"] == ends, "every item must come in its cycle"
