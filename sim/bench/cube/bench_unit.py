"""cocotb bench of ``hdl.cube.MatrixUnit``: stalls, reset in mid-flight, tiles back to back.

Parameters: ``preset``, ``changes`` (of the configuration), ``beats``.
"""

from collections import deque
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig, Start
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .traffic import Traffic, make_traffic

__all__ = ["configuration"]


def configuration(given: dict[str, Any]) -> MatrixUnitConfig:
    """What a bench's parameters describe."""
    return replace(CONFIGS[given["preset"]], **given.get("changes", {}))


class _Bench:
    def __init__(self, dut: Any, *, i: float = 0.0, c: float = 0.0, o: float = 0.0):
        given = parameters()
        self.config, self.beats = configuration(given), given["beats"]
        face = interface_of(MatrixUnit(config=self.config))
        self.harness = Harness(dut, face)
        self.board = Scoreboard("o", seed=self.harness.seed, digits=self.config.word_bits // 4)
        self.taken: list[int] = []  # cycle of each beat
        self.wanted: list[bool] = []  # whether each beat emits
        self.given: list[int] = []  # cycle of each result
        streams = {stream.name: stream for stream in face.streams_in + face.streams_out}
        self.driver = StreamDriver(
            self.harness, streams["i"], stall_rate=i, offering=self.foresee, taken=self.expect
        )
        self.c = StreamDriver(self.harness, streams["c"], stall_rate=c)
        self.monitor = StreamMonitor(
            self.harness, streams["o"], stall_rate=o, received=self.receive
        )
        self.results: deque[Any] = deque()

    def send(self, traffic: Traffic) -> None:
        """Queue traffic; a beat's result is expected once the unit has taken the beat."""
        self.driver.send(traffic.beat(index) for index in range(len(traffic)))
        self.c.send(traffic.c.tolist())
        self.results.extend(traffic.d.tolist())

    def make(self, beats: int, **options: Any) -> Traffic:
        """Fresh traffic from the bench's own random numbers, one step a beat with ``plain``."""
        if options.pop("plain", False):
            options["precisions"] = [p for p in self.config.precisions if self.config.steps(p) == 1]
        seed = self.harness.rng.getrandbits(32)
        return make_traffic(self.config, beats=beats, seed=seed, **options)

    def foresee(self, item: dict[str, Any]) -> None:
        """Expect the real parts of a complex beat: they may come before the beat is taken."""
        precision = self.config.precisions[item["precision"]]
        if item["emit"] and precision in self.config.complex_precisions:
            operation = f"{precision} beat {len(self.taken)}, real parts, slot {item['slot']}"
            self.board.expect(self.results.popleft(), operation, a=item["a"], b=item["b"])

    def expect(self, item: dict[str, Any]) -> None:
        """Note a beat that the unit has taken, and what must (still) come of it."""
        self.taken.append(self.harness.cycle)
        self.wanted.append(bool(item["emit"]))
        if item["emit"]:
            precision = self.config.precisions[item["precision"]]
            start = Start(item["start"]).name
            operation = f"{precision} beat {len(self.taken) - 1}, {start}, slot {item['slot']}"
            self.board.expect(self.results.popleft(), operation, a=item["a"], b=item["b"])

    def receive(self, value: Any, cycle: int) -> None:
        """Check a result."""
        self.given.append(cycle)
        self.board.check(value, cycle)

    def reset(self) -> None:
        """Forget what was under way."""
        self.board.forget()
        self.results.clear()
        self.taken.clear()
        self.wanted.clear()
        self.given.clear()

    async def drain(self) -> None:
        """Until all beats went and all results came, and some cycles more in which none may."""
        limit = 200 * (len(self.driver.queue) + 10) * (self.config.latency_cycles + 1)
        await self.harness.run_until(
            lambda: not (self.driver.queue or self.c.queue or self.board.queue), limit=limit
        )
        await self.harness.step(2 * self.config.latency_cycles + 40)

    def check_latency(self) -> None:
        """With nothing in the way, every result came after the latency."""
        emitting = [cycle for cycle, wanted in zip(self.taken, self.wanted, strict=True) if wanted]
        waits = {given - taken for taken, given in zip(emitting, self.given, strict=True)}
        assert waits == {self.config.latency_cycles}, f"latencies were {sorted(waits)}"

    def check_rate(self, beats: int, cycles: int) -> None:
        """``beats`` beats went in every ``cycles`` cycles."""
        spans = {b - a for a, b in zip(self.taken, self.taken[beats:], strict=False)}
        assert spans == {cycles}, f"{beats} beats went in {sorted(spans)} cycles, not {cycles}"

    def finish(self, traffic: Traffic) -> None:
        """Everything that was sent has been checked."""
        assert len(self.taken) == len(traffic) and len(self.given) == len(traffic.d)
        self.board.finish(at_least=len(traffic.d))


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Every start, slots at random, precisions from beat to beat; each stream stalls in turn."""
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
    """A reset at any time leaves an empty unit: nothing comes out that was asked for before."""
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
    """Tiles of one beat in every slot in turn: each result after exactly the latency."""
    bench = _Bench(dut)
    slots = bench.config.slot_count
    await bench.harness.start()
    traffic = bench.make(
        bench.beats, slots=np.arange(bench.beats) % slots, lengths=(1,), emit_rate=1.0, plain=True
    )
    bench.send(traffic)
    await bench.drain()
    bench.finish(traffic)
    bench.check_latency()
    # A slot is free again one cycle after its result was taken.
    bench.check_rate(slots, max(slots, bench.config.latency_cycles + 1))


@cocotb.test()
async def accumulation_at_full_rate(dut: Any) -> None:
    """Long runs in pipeline + 1 slots in turn: a beat a cycle in either dataflow."""
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
    """In long runs of a precision of several steps a beat is taken every that many cycles."""
    for precision in _Bench(dut).config.wide:
        bench = _Bench(dut)
        pairs = max(bench.config.slot_count // 2, 1)
        await bench.harness.start()
        traffic = bench.make(
            bench.beats,
            slots=2 * (np.arange(bench.beats) % pairs),
            lengths=(bench.beats,),
            emit_rate=0.0,
            precisions=[precision],
        )
        bench.send(traffic)
        await bench.drain()
        bench.finish(traffic)
        bench.check_rate(1, bench.config.steps(precision))
