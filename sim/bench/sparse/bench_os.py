"""cocotb bench of ``OSCore``: stalls, resets, and the cycle of every output.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-os`` in the catalogue;
and ``count``, the number of columns of a round.
"""

from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.cores import os_columns
from vitruvian.golden.sparse.names import PLUS, TIMES
from vitruvian.hdl.sparse import OSCore
from vitruvian.sim.bench.stream_bench import (
    StreamBench,
    from_catalogue,
    random_resets,
    random_rounds,
)

from .traffic import Beats, columns, lengths

unit_of = from_catalogue("sparse-os", OSCore)


class OSBench(StreamBench[Beats]):
    """A core of output-stationary products between a driver and a monitor."""

    unit_of = staticmethod(unit_of)

    def stimuli(self, count: int | None = None) -> Beats:
        """Return the beats of random columns."""
        lanes = self.config.lanes
        lasting = lengths(self.rng, count or self.count, lanes)
        return columns(self.rng, lasting, lanes, self.config.format)

    def items(self, traffic: Beats) -> dict[str, Any]:
        """Return the beats."""
        lanes = {k: getattr(traffic, k).tolist() for k in ("a", "b", "present", "last")}
        return {
            "i": [
                {
                    "lanes": {k: v[t] for k, v in lanes.items()},
                    "plus": PLUS.index(traffic.plus[t]),
                    "times": TIMES.index(traffic.times[t]),
                }
                for t in range(len(traffic.last))
            ]
        }

    def expect(self, traffic: Beats) -> None:
        """Expect an output for each beat in which a column ends."""
        b = traffic
        values, beat, lane = os_columns(
            b.a, b.b, b.present, b.last, b.plus, b.times, self.config.format
        )
        for t in np.flatnonzero(b.last.any(axis=1)).tolist():
            row: list[int | None] = [None] * self.config.lanes
            for n in np.flatnonzero(beat == t):
                row[lane[n]] = int(values[n])
            operands = {name: getattr(b, name)[t] for name in ("a", "b", "present", "last")}
            self.boards["o"].expect(row, f"{b.plus[t]}-{b.times[t]} in beat {t}", **operands)

    def compared(self, name: str, value: Any) -> list[int | None]:
        """Return the columns of an output; the values of other lanes are undefined."""
        pairs = zip(value["value"], value["last"], strict=True)
        return [code if last else None for code, last in pairs]


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send random columns while the input, the output or both stall."""
    await random_rounds(OSBench, dut)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset leaves an empty core, without the part of a column that was open."""
    await random_resets(OSBench(dut, inputs=0.1, outputs=0.3), cycles=(1, 60))


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check that the core takes a beat in every cycle, and the latency of every output."""
    bench = OSBench(dut)
    await bench.start()
    beats = bench.stimuli()
    bench.send(beats)
    await bench.drain()
    starts = bench.taken["i"]
    assert starts == list(range(starts[0], starts[0] + len(beats.last)))
    # Nothing stalls, so beat t enters t cycles after the first one.
    ends = np.flatnonzero(beats.last.any(axis=1)) + starts[0] + bench.unit.latency
    assert bench.given["o"] == ends.tolist(), "every output must come in its cycle"
