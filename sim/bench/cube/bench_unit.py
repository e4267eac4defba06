"""cocotb bench of ``hdl.cube.MatrixUnit``: stalls, resets during operation, tiles back to back.

Parameters: ``preset``, ``changes`` (of the configuration), ``beats``.
"""

from collections import deque
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.hdl.cube import BLACKWELL, CONFIGS, MatrixUnit, MatrixUnitConfig, Start
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .traffic import Traffic, make_traffic


def configuration(values: dict[str, Any]) -> MatrixUnitConfig:
    """Return the configuration that a bench's parameters describe."""
    return replace((CONFIGS | BLACKWELL)[values["preset"]], **values.get("changes", {}))


class _Bench:
    def __init__(self, dut: Any, *, i: float = 0.0, c: float = 0.0, o: float = 0.0):
        values = parameters()
        self.config, self.beats = configuration(values), values["beats"]
        face = interface_of(MatrixUnit(config=self.config))
        self.harness = Harness(dut, face)
        self.board = Scoreboard("o", seed=self.harness.seed, digits=self.config.word_bits // 4)
        self.taken: list[int] = []  # cycle of each beat
        self.emits: list[bool] = []  # whether each beat emits
        self.result_cycles: list[int] = []  # cycle of each result
        streams = {stream.name: stream for stream in face.streams_in + face.streams_out}
        self.driver = StreamDriver(
            self.harness,
            streams["i"],
            stall_rate=i,
            offering=self.expect_real_parts,
            taken=self.expect,
        )
        self.c = StreamDriver(self.harness, streams["c"], stall_rate=c)
        self.monitor = StreamMonitor(
            self.harness, streams["o"], stall_rate=o, received=self.receive
        )
        self.results: deque[Any] = deque()

    def send(self, traffic: Traffic) -> None:
        """Queue traffic. The result of a beat is expected from the time when the unit takes it."""
        self.driver.send(traffic.beat(index) for index in range(len(traffic)))
        self.c.send(traffic.c.tolist())
        self.results.extend(traffic.d.tolist())

    def make(self, beats: int, **options: Any) -> Traffic:
        """Return new traffic from the bench's random numbers.

        With ``plain=True``, the traffic has only precisions that take a single step in each beat.
        """
        if options.pop("plain", False):
            options["precisions"] = [p for p in self.config.precisions if self.config.steps(p) == 1]
        seed = self.harness.rng.getrandbits(32)
        return make_traffic(self.config, beats=beats, seed=seed, **options)

    def expect_real_parts(self, item: dict[str, Any]) -> None:
        """Expect the real parts of a complex beat, which may come before the beat is taken."""
        precision = self.config.precisions[item["precision"]]
        if item["emit"] and precision in self.config.complex_precisions:
            operation = f"{precision} beat {len(self.taken)}, real parts, slot {item['slot']}"
            self.board.expect(self.results.popleft(), operation, a=item["a"], b=item["b"])

    def expect(self, item: dict[str, Any]) -> None:
        """Record a beat that the unit has taken, and expect its result or its imaginary parts."""
        self.taken.append(self.harness.cycle)
        self.emits.append(bool(item["emit"]))
        if item["emit"]:
            precision = self.config.precisions[item["precision"]]
            start = Start(item["start"]).name
            operation = f"{precision} beat {len(self.taken) - 1}, {start}, slot {item['slot']}"
            self.board.expect(self.results.popleft(), operation, a=item["a"], b=item["b"])

    def receive(self, value: Any, cycle: int) -> None:
        """Compare a result with the expected one."""
        self.result_cycles.append(cycle)
        self.board.check(value, cycle)

    def reset(self) -> None:
        """Drop the beats in the unit and their expected results."""
        self.board.forget()
        self.results.clear()
        self.taken.clear()
        self.emits.clear()
        self.result_cycles.clear()

    async def drain(self) -> None:
        """Run until all results have come, and then for cycles in which no result may come."""
        limit = 200 * (len(self.driver.queue) + 10) * (self.config.latency_cycles + 1)
        await self.harness.run_until(
            lambda: not (self.driver.queue or self.c.queue or self.board.queue), limit=limit
        )
        await self.harness.step(2 * self.config.latency_cycles + 40)

    def check_latency(self, waits: int = 0) -> None:
        """Check that every result came exactly one latency after its beat, as without stalls.

        Parameters
        ----------
        waits : int
            Number of cycles that a beat may have waited in registers.
        """
        starts = [cycle for cycle, emits in zip(self.taken, self.emits, strict=True) if emits]
        latency = self.config.latency_cycles
        taken = {end - start for start, end in zip(starts, self.result_cycles, strict=True)}
        assert min(taken) == latency, f"latencies were {sorted(taken)}"
        assert max(taken) <= latency + waits, f"latencies were {sorted(taken)}"

    def check_rate(self, beats: int, cycles: int, *, skip: int = 0) -> None:
        """Check that the unit took ``beats`` beats in every ``cycles`` cycles behind ``skip``."""
        # The first two beats that wait do so in registers, where they have been taken already.
        taken = self.taken[skip + 2 * self.config.buffered :]
        spans = {b - a for a, b in zip(taken, taken[beats:], strict=False)}
        assert spans == {cycles}, f"{beats} beats went in {sorted(spans)} cycles, not {cycles}"

    def finish(self, traffic: Traffic) -> None:
        """Check that all results of the traffic have been compared."""
        assert len(self.taken) == len(traffic) and len(self.result_cycles) == len(traffic.d)
        self.board.finish(at_least=len(traffic.d))


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send all kinds of beats while each stream stalls in turn."""
    for rates in (
        {},
        {"o": 0.8},
        {"i": 0.7},
        {"c": 0.9},
        {"i": 0.3, "c": 0.3, "o": 0.3},
    ):
        bench = _Bench(dut, **rates)
        await bench.harness.start()
        traffic = bench.make(bench.beats)
        bench.send(traffic)
        await bench.drain()
        bench.finish(traffic)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier result."""
    bench = _Bench(dut, i=0.1, c=0.2, o=0.5)
    await bench.harness.start()
    for _ in range(8):
        bench.send(bench.make(50))
        await bench.harness.step(bench.harness.rng.randrange(1, 60))
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        bench.reset()
    traffic = bench.make(bench.beats)
    bench.send(traffic)
    await bench.drain()
    bench.finish(traffic)
    assert bench.monitor.count > len(traffic.d), "some results must have come before the resets"


@cocotb.test()
async def tiles_back_to_back(dut: Any) -> None:
    """Check latency and rate for tiles of one beat that use the slots in turn."""
    bench = _Bench(dut)
    slots = bench.config.slot_count
    await bench.harness.start()
    traffic = bench.make(
        bench.beats, slots=np.arange(bench.beats) % slots, lengths=(1,), emit_rate=1.0, plain=True
    )
    bench.send(traffic)
    await bench.drain()
    bench.finish(traffic)
    occupied = bench.config.occupied_cycles
    waits, least = 0, slots
    if bench.config.buffered:
        # Results leave every second cycle, so as many beats as there are slots and registers of the
        # input take twice as many cycles.
        waits = max(2 * (slots + 2) - bench.config.latency_cycles, 2 * (slots < occupied))
        least = 2 * slots
    bench.check_latency(waits=waits)
    bench.check_rate(slots, max(least, occupied), skip=slots * bench.config.buffered)


@cocotb.test()
async def accumulation_at_full_rate(dut: Any) -> None:
    """Check that long sums in pipeline + 1 slots take a beat in every cycle."""
    bench = _Bench(dut)
    slots = min(bench.config.pipeline + 1, bench.config.slot_count)
    await bench.harness.start()
    traffic = bench.make(
        bench.beats,
        slots=np.arange(bench.beats) % slots,
        lengths=(bench.beats,),
        emit_rate=0.0,
        plain=True,
    )
    bench.send(traffic)
    await bench.drain()
    bench.finish(traffic)
    bench.check_latency()
    bench.check_rate(slots, max(slots, bench.config.pipeline + 1))


@cocotb.test()
async def every_step_is_used(dut: Any) -> None:
    """Check that a long sum in a precision of several steps has no idle steps."""
    for precision in _Bench(dut).config.wide:
        bench = _Bench(dut)
        pairs = max(bench.config.slot_count // 2, 1)
        await bench.harness.start()
        traffic = bench.make(
            bench.beats,
            # A complex sum also uses the odd slot of its pair.
            slots=2 * (np.arange(bench.beats) % pairs),
            lengths=(bench.beats,),
            emit_rate=0.0,
            precisions=[precision],
        )
        bench.send(traffic)
        await bench.drain()
        bench.finish(traffic)
        bench.check_rate(1, bench.config.steps(precision))
