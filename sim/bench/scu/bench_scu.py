"""cocotb bench of ``Im2Col`` and ``Col2Im`` with a memory: stalls, resets, rates, hazards.

Parameters: ``unit``, a name in the catalogue; ``configuration``, a partial configuration of it, or
``sizes``, parameters of its ``ConversionConfig``; and ``count``, the number of instructions.
"""

from collections import deque
from itertools import chain, islice
from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.scu.patches import ROWS
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.scu import Col2Im, ConversionConfig
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .memory import Memory, number
from .traffic import Instruction, additions, bit_patterns, loads, overlapping

#: The stall rates of the streams in the rounds of a test, and the latency of the memory.
_ROUNDS: tuple[tuple[dict[str, float], int], ...] = (
    ({}, 1),
    ({"o": 0.7}, 2),
    ({"i": 0.8, "rows": 0.5}, 1),
    ({"fetch": 0.7}, 5),
    ({"i": 0.3, "o": 0.3, "fetch": 0.3, "rows": 0.3, "fractals": 0.5}, 3),
)


def unit_of(values: dict[str, Any]) -> Any:
    """Return the component that a bench's parameters describe."""
    unit = UNITS[values["unit"]]
    component, arguments = unit.component(unit.default(values.get("configuration", {})))
    if "sizes" in values:
        arguments["config"] = ConversionConfig(**values["sizes"])
    return component(**arguments)


class _Bench:
    """A unit between a memory, drivers of commands and fractals, and a monitor of ``o``."""

    def __init__(self, dut: Any, stalls: dict[str, float], latency: int):
        self.unit, self.count = unit_of(parameters()), parameters()["count"]
        self.config: ConversionConfig = self.unit.config
        face = interface_of(self.unit)
        streams = {stream.name: stream for stream in face.streams_in + face.streams_out}
        self.harness = Harness(dut, face)
        self.rng = np.random.default_rng(self.harness.rng.getrandbits(32))
        self.board = Scoreboard("o", seed=self.harness.seed, digits=2 * self.config.c0_bytes)
        self.memory = Memory(self.harness, self.config, streams, latency=latency, stalls=stalls)
        self.commands = StreamDriver(
            self.harness, streams["i"], stall_rate=stalls.get("i", 0.0), taken=self.taken
        )
        self.fractals = None
        self.dtype = np.dtype(np.uint16)
        if isinstance(self.unit, Col2Im):
            self.dtype = np.dtype(f"f{self.unit.format.storage_bits // 8}")
            rate = stalls.get("fractals", 0.0)
            self.fractals = StreamDriver(self.harness, streams["fractals"], stall_rate=rate)
        self.monitor = StreamMonitor(
            self.harness,
            streams["o"],
            stall_rate=stalls.get("o", 0.0),
            received=self.receive,
        )
        self.channels = self.config.c0_bytes // self.dtype.itemsize
        size = (len(self.memory.content), self.channels)
        self.memory.store(0, bit_patterns(self.rng, size, self.dtype))
        # What the memory must hold after all instructions that were sent.
        self.golden = self.memory.content.copy()
        self.waiting: deque[tuple[Instruction, list[Any]]] = deque()
        self.starts: list[int] = []  # the cycle in which each command was taken
        self.ends: list[int] = []  # the cycle of each item of ``o``

    def instructions(self, count: int) -> list[Instruction]:
        """Return new random instructions for the unit."""
        if self.fractals is None:
            return list(loads(self.config, count, self.rng))
        parts = additions(self.config, count, self.rng)
        return [*overlapping(self.rng), *islice(chain.from_iterable(parts), count)]

    def send(self, instructions: list[Instruction]) -> None:
        """Queue instructions, with their fractals, and with what golden expects of them."""
        for instruction in instructions:
            rows = self._added(instruction) if self.fractals else self._loaded(instruction)
            step = self.config.rows
            beats = [rows[n : n + step] for n in range(0, len(rows), step)]
            self.waiting.append((instruction, beats))
            self.commands.send([instruction.command()])

    def _loaded(self, instruction: Instruction) -> list[Any]:
        """Return the rows of fractals of an Im2Col load."""
        image = self.memory.load(instruction.base, instruction.shape, self.dtype)
        return [number(row) for row in instruction.fractals(image)]

    def _added(self, instruction: Instruction) -> list[Any]:
        """Send the fractals of a Col2Im and return its writes, (address, row) or None."""
        assert self.fractals is not None
        rows = bit_patterns(self.rng, (ROWS * instruction.repeat, self.channels), self.dtype)
        payload = [number(row) for row in rows]
        step = self.config.rows
        self.fractals.send(payload[n : n + step] for n in range(0, len(payload), step))
        held, self.memory.content = self.memory.content, self.golden
        image = self.memory.load(instruction.base, instruction.shape, self.dtype)
        self.memory.store(instruction.base, instruction.added(image, rows))
        self.memory.content = held
        walk = instruction.walk(self.config.address_bits)
        places = zip(walk.address.tolist(), walk.inside.tolist(), strict=True)
        return [(a, number(self.golden[a])) if inside else None for a, inside in places]

    def taken(self, _command: dict[str, int]) -> None:
        """Expect the beats of a command that the unit has taken."""
        instruction, beats = self.waiting.popleft()
        self.starts.append(self.harness.cycle)
        for beat in beats:
            self.board.expect(beat, f"{instruction}")

    def receive(self, value: Any, cycle: int) -> None:
        """Compare a beat with the expected one, and write it to the memory if it is a write."""
        self.ends.append(cycle)
        if self.fractals is not None:
            self.memory.write(value)
            pixels = value["pixels"]
            writes = zip(pixels["address"], pixels["inside"], value["rows"], strict=True)
            value = [(address, row) if inside else None for address, inside, row in writes]
        self.board.check(value, cycle)

    def reset(self) -> None:
        """Forget what was sent; the memory keeps the writes that were done."""
        self.board.forget()
        self.waiting.clear()
        self.starts.clear()
        self.ends.clear()
        self.golden = self.memory.content.copy()

    async def drain(self) -> None:
        """Run until all beats have come, and then for cycles in which none may come."""
        beats = sum(len(beats) for _, beats in self.waiting) + len(self.board.queue)
        await self.harness.run_until(
            lambda: not (self.waiting or self.board.queue), limit=100 * (beats + 20)
        )
        await self.harness.step(60)
        self.board.finish(at_least=beats)
        assert (self.memory.content == self.golden).all(), "the memory must be as golden's"


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send random instructions while each stream stalls in turn."""
    for stalls, latency in _ROUNDS:
        bench = _Bench(dut, stalls, latency)
        await bench.harness.start()
        bench.send(bench.instructions(bench.count))
        await bench.drain()


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier beat."""
    bench = _Bench(dut, {"i": 0.1, "o": 0.3, "rows": 0.2}, 2)
    await bench.harness.start()
    for _ in range(8):
        bench.send(bench.instructions(6))
        await bench.harness.step(bench.harness.rng.randrange(1, 90))
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        bench.reset()
    bench.send(bench.instructions(bench.count))
    await bench.drain()
    assert bench.monitor.count > len(bench.ends), "some beats must have come before the resets"


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check latency and rate with every latency of the memory that ``ahead`` covers."""
    config = unit_of(parameters()).config
    for latency in range(1, config.ahead):
        bench = _Bench(dut, {}, latency)
        await bench.harness.start()
        instructions = bench.instructions(bench.count)
        bench.send(instructions)
        await bench.drain()
        # The queue hides one cycle of the memory.
        wait = bench.unit.latency + latency - 1
        start = bench.starts[0]
        expected: list[int] = []
        starts: list[int] = []
        for instruction in instructions:
            starts.append(start)
            beats = instruction.repeat * config.beats
            expected += range(start + wait, start + wait + beats)
            # Loads follow each other without a gap; a Col2Im waits for the writes before it.
            start += beats if bench.fractals is None else wait + beats
        assert bench.ends == expected, "every beat must come in its cycle"
        if bench.fractals is not None:
            assert bench.starts == starts, "a command must be taken after the last write"
