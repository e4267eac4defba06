"""cocotb bench of ``hdl.cube.MatrixUnit``: stalls, resets during operation, tiles back to back.

Parameters: ``preset``, ``changes`` (of the configuration), ``beats``.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.hdl.cube import BLACKWELL, CONFIGS, MatrixUnit, Start
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.sim.bench.stream_bench import StreamBench, random_resets, random_rounds

from .traffic import CubeTraffic, make_traffic

#: Stall rates of the rounds: each stream stalls in turn, and then all of them.
_ROUNDS: tuple[dict[str, Any], ...] = (
    {},
    {"o": 0.8},
    {"i": 0.7},
    {"c": 0.9},
    {"inputs": 0.3, "outputs": 0.3},
)


def configuration(values: Mapping[str, Any]) -> TileConfig:
    """Return the configuration that a bench's parameters describe."""
    return replace((CONFIGS | BLACKWELL)[values["preset"]], **values.get("changes", {}))


def unit_of(values: Mapping[str, Any]) -> MatrixUnit:
    """Return the component that a bench's parameters describe."""
    return MatrixUnit(config=configuration(values))


class CubeBench(StreamBench[CubeTraffic]):
    """A matrix unit; the result of a beat is expected from the time when the unit takes it.

    Attributes
    ----------
    emits : list of bool
        For each beat that the unit has taken: True if it sends its result.
    results : deque
        Results of the beats that the unit has not taken.
    """

    unit_of = staticmethod(unit_of)
    counted = "beats"

    def __init__(self, dut: Any, **stalls: float):
        super().__init__(dut, **stalls)
        self.quiet_cycles = 2 * self.config.latency_cycles + 40
        self.emits: list[bool] = []
        self.results: deque[Any] = deque()

    def stimuli(self, count: int | None = None, **options: Any) -> CubeTraffic:
        """Return random beats.

        With ``plain=True``, the traffic has only precisions that take a single step in each beat.
        """
        if options.pop("plain", False):
            options["precisions"] = [p for p in self.config.precisions if self.config.steps(p) == 1]
        seed = self.harness.rng.getrandbits(32)
        return make_traffic(self.config, beats=count or self.count, seed=seed, **options)

    def items(self, traffic: CubeTraffic) -> dict[str, Any]:
        """Return the beats and the fractals of C."""
        return {"i": map(traffic.beat, range(len(traffic))), "c": traffic.c.tolist()}

    def expect(self, traffic: CubeTraffic) -> None:
        """Keep the results until the unit takes their beats."""
        self.results.extend(traffic.d.tolist())

    def cycles(self) -> int:
        """Return the limit, which grows with the latency."""
        return super().cycles() * (self.config.latency_cycles + 1)

    def outstanding(self) -> int:
        """Return the number of results to come, also those of beats that wait."""
        return super().outstanding() + len(self.results)

    def offering(self, name: str, item: dict[str, Any]) -> None:
        """Expect the real parts of a complex beat, which may come before the beat is taken."""
        if name != "i" or not item["emit"]:
            return
        precision = self.config.precisions[item["precision"]]
        if precision in self.config.complex_precisions:
            self._expect_next(f"{precision} beat {len(self.emits)}, real parts", item)

    def take(self, name: str, item: dict[str, Any]) -> None:
        """Record a beat, and expect its result or its imaginary parts."""
        super().take(name, item)
        if name != "i":
            return
        if item["emit"]:
            precision = self.config.precisions[item["precision"]]
            start = Start(item["start"]).name
            self._expect_next(f"{precision} beat {len(self.emits)}, {start}", item)
        self.emits.append(bool(item["emit"]))

    def _expect_next(self, beat: str, item: dict[str, Any]) -> None:
        operation = f"{beat}, slot {item['slot']}"
        self.boards["o"].expect(self.results.popleft(), operation, a=item["a"], b=item["b"])

    def forget(self) -> None:
        """Drop the beats in the unit and their expected results."""
        super().forget()
        self.results.clear()
        self.emits.clear()

    async def run(self, traffic: CubeTraffic) -> None:
        """Start the unit, send traffic and compare all results."""
        await self.start()
        self.send(traffic)
        await self.drain()

    def check_latency(self, waits: int = 0) -> None:
        """Check that every result came exactly one latency after its beat, as without stalls.

        Parameters
        ----------
        waits : int
            Number of cycles that a beat may have waited in registers.
        """
        beats = zip(self.taken["i"], self.emits, strict=True)
        starts = [cycle for cycle, emits in beats if emits]
        latency = self.config.latency_cycles
        taken = {end - start for start, end in zip(starts, self.given["o"], strict=True)}
        assert min(taken) == latency, f"latencies were {sorted(taken)}"
        assert max(taken) <= latency + waits, f"latencies were {sorted(taken)}"

    def check_rate(self, beats: int, cycles: int, *, skip: int = 0) -> None:
        """Check that the unit took ``beats`` beats in every ``cycles`` cycles behind ``skip``."""
        # The first two beats that wait do so in registers, where they have been taken already.
        taken = self.taken["i"][skip + 2 * self.config.buffered :]
        spans = {b - a for a, b in zip(taken, taken[beats:], strict=False)}
        assert spans == {cycles}, f"{beats} beats went in {sorted(spans)} cycles, not {cycles}"


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send all kinds of beats while each stream stalls in turn."""
    await random_rounds(CubeBench, dut, _ROUNDS)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier result."""
    await random_resets(CubeBench(dut, i=0.1, c=0.2, o=0.5), cycles=(1, 60), count=50)


@cocotb.test()
async def tiles_back_to_back(dut: Any) -> None:
    """Check latency and rate for tiles of one beat that use the slots in turn."""
    bench = CubeBench(dut)
    slots = bench.config.slot_count
    turns = np.arange(bench.count) % slots
    await bench.run(bench.stimuli(slots=turns, lengths=(1,), emit_rate=1.0, plain=True))
    occupied = bench.config.occupied_cycles
    waits, minimum = 0, slots
    if bench.config.buffered:
        # Results leave every second cycle, so as many beats as there are slots and registers of the
        # input take twice as many cycles.
        waits = max(2 * (slots + 2) - bench.config.latency_cycles, 2 * (slots < occupied))
        minimum = 2 * slots
    bench.check_latency(waits=waits)
    bench.check_rate(slots, max(minimum, occupied), skip=slots * bench.config.buffered)


@cocotb.test()
async def accumulation_at_full_rate(dut: Any) -> None:
    """Check that long sums in pipeline + 1 slots take a beat in every cycle."""
    bench = CubeBench(dut)
    slots = min(bench.config.pipeline + 1, bench.config.slot_count)
    turns, lengths = np.arange(bench.count) % slots, (bench.count,)
    await bench.run(bench.stimuli(slots=turns, lengths=lengths, emit_rate=0.0, plain=True))
    bench.check_latency()
    bench.check_rate(slots, max(slots, bench.config.pipeline + 1))


@cocotb.test()
async def every_step_is_used(dut: Any) -> None:
    """Check that a long sum in a precision of several steps has no idle steps."""
    for precision in CubeBench(dut).config.wide:
        bench = CubeBench(dut)
        pairs = max(bench.config.slot_count // 2, 1)
        # A complex sum also uses the odd slot of its pair.
        turns, lengths = 2 * (np.arange(bench.count) % pairs), (bench.count,)
        await bench.run(
            bench.stimuli(slots=turns, lengths=lengths, emit_rate=0.0, precisions=[precision])
        )
        bench.check_rate(1, bench.config.steps(precision))
