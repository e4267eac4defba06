"""cocotb bench of ``Im2Col`` and ``Col2Im`` with a memory: stalls, resets, rates, hazards.

Parameters: ``unit``, a name in the catalogue; ``configuration``, a partial configuration of it, or
``sizes``, parameters of its ``ConversionConfig``; and ``count``, the number of instructions.
"""

from collections import deque
from collections.abc import Mapping
from itertools import chain, islice
from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.scu.patches import ROWS
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.scu import Col2Im, ConversionConfig
from vitruvian.sim.bench.harness import parameters
from vitruvian.sim.bench.stream_bench import StreamBench, random_resets, random_rounds
from vitruvian.sim.rtl.ports import Stream

from .memory import PixelMemory, number
from .traffic import ConversionInstruction, additions, bit_patterns, loads, overlapping

#: The stall rates of the streams in the rounds of a test, and the latency of the memory.
_ROUNDS: tuple[dict[str, Any], ...] = (
    {},
    {"o": 0.7, "latency": 2},
    {"i": 0.8, "rows": 0.5},
    {"fetch": 0.7, "latency": 5},
    {"i": 0.3, "o": 0.3, "fetch": 0.3, "rows": 0.3, "fractals": 0.5, "latency": 3},
)


def unit_of(values: Mapping[str, Any]) -> Any:
    """Return the component that a bench's parameters describe."""
    unit = UNITS[values["unit"]]
    component, arguments = unit.component(unit.default(values.get("configuration", {})))
    if "sizes" in values:
        arguments["config"] = ConversionConfig(**values["sizes"])
    return component(**arguments)


class ConversionBench(StreamBench[list[ConversionInstruction]]):
    """A unit between a memory, drivers of commands and fractals, and a monitor of ``o``.

    Parameters
    ----------
    latency : int
        Cycles from a request to the memory to its answer.

    Attributes
    ----------
    golden : (2**address_bits, c0_bytes) ndarray of uint8
        What the memory must hold after all instructions that were sent.
    waiting : deque of (Instruction, list)
        The instructions that the unit has not taken, and their beats.
    """

    unit_of = staticmethod(unit_of)
    elsewhere = frozenset({"fetch", "rows"})
    quiet_cycles = 60

    def __init__(self, dut: Any, *, latency: int = 1, **stalls: float):
        self.latency = latency
        super().__init__(dut, **stalls)
        self.adds = isinstance(self.unit, Col2Im)
        self.dtype = np.dtype(np.uint16)
        if self.adds:
            self.dtype = np.dtype(f"f{self.unit.format.storage_bits // 8}")
        self.channels = self.config.c0_bytes // self.dtype.itemsize
        size = (len(self.memory.content), self.channels)
        self.memory.store(0, bit_patterns(self.rng, size, self.dtype))
        self.golden = self.memory.content.copy()
        self.waiting: deque[tuple[ConversionInstruction, list[Any]]] = deque()

    def surround(self, streams: Mapping[str, Stream]) -> None:
        """Add the memory, which answers before a beat of the same cycle is written to it."""
        self.memory = PixelMemory(
            self.harness, self.config, streams, latency=self.latency, stalls=self.rates
        )

    def stimuli(self, count: int | None = None) -> list[ConversionInstruction]:
        """Return random instructions."""
        count = count or self.count
        if not self.adds:
            return list(loads(self.config, count, self.rng))
        parts = additions(self.config, count, self.rng)
        return [*overlapping(self.rng), *islice(chain.from_iterable(parts), count)]

    def send(self, traffic: list[ConversionInstruction]) -> None:
        """Queue instructions with their fractals, and keep the beats that golden expects."""
        for instruction in traffic:
            rows = self._added(instruction) if self.adds else self._loaded(instruction)
            step = self.config.rows
            beats = [rows[n : n + step] for n in range(0, len(rows), step)]
            self.waiting.append((instruction, beats))
            self.drivers["i"].send([instruction.command()])

    def _loaded(self, instruction: ConversionInstruction) -> list[Any]:
        """Return the rows of fractals of an Im2Col load."""
        image = self.memory.load(instruction.base, instruction.shape, self.dtype)
        return [number(row) for row in instruction.fractals(image)]

    def _added(self, instruction: ConversionInstruction) -> list[Any]:
        """Send the fractals of a Col2Im and return its writes, (address, row) or None."""
        rows = bit_patterns(self.rng, (ROWS * instruction.repeat, self.channels), self.dtype)
        payload = [number(row) for row in rows]
        step = self.config.rows
        self.drivers["fractals"].send(payload[n : n + step] for n in range(0, len(payload), step))
        held, self.memory.content = self.memory.content, self.golden
        image = self.memory.load(instruction.base, instruction.shape, self.dtype)
        self.memory.store(instruction.base, instruction.added(image, rows))
        self.memory.content = held
        walk = instruction.walk(self.config.address_bits)
        places = zip(walk.address.tolist(), walk.inside.tolist(), strict=True)
        return [(a, number(self.golden[a])) if inside else None for a, inside in places]

    def outstanding(self) -> int:
        """Return the number of beats to come, also those of instructions that wait."""
        return super().outstanding() + sum(len(beats) for _, beats in self.waiting)

    def busy(self) -> bool:
        """Return True while instructions wait, or beats are still to come."""
        return bool(self.waiting or self.boards["o"].queue)

    def take(self, name: str, item: Any) -> None:
        """Expect the beats of a command that the unit has taken."""
        super().take(name, item)
        if name == "i":
            instruction, beats = self.waiting.popleft()
            for beat in beats:
                self.boards["o"].expect(beat, f"{instruction}")

    def compared(self, name: str, value: Any) -> Any:
        """Return a beat; one of a Col2Im is written to the memory first."""
        if not self.adds:
            return value
        self.memory.write(value)
        pixels = value["pixels"]
        writes = zip(pixels["address"], pixels["inside"], value["rows"], strict=True)
        return [(address, row) if inside else None for address, inside, row in writes]

    def forget(self) -> None:
        """Forget what was sent; the memory keeps the writes that were done."""
        super().forget()
        self.waiting.clear()
        self.golden = self.memory.content.copy()

    async def drain(self) -> None:
        """Run until all beats have come, and then for cycles in which none may come."""
        await super().drain()
        assert (self.memory.content == self.golden).all(), "the memory must be as golden's"


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Send random instructions while each stream stalls in turn."""
    await random_rounds(ConversionBench, dut, _ROUNDS)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier beat."""
    bench = ConversionBench(dut, i=0.1, o=0.3, rows=0.2, latency=2)
    await random_resets(bench, cycles=(1, 90), count=6)


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check latency and rate with every latency of the memory that ``ahead`` covers."""
    config = unit_of(parameters()).config
    for latency in range(1, config.ahead):
        bench = ConversionBench(dut, latency=latency)
        await bench.start()
        instructions = bench.stimuli()
        bench.send(instructions)
        await bench.drain()
        # The queue hides one cycle of the memory.
        wait = bench.unit.latency + latency - 1
        start = bench.taken["i"][0]
        expected: list[int] = []
        starts: list[int] = []
        for instruction in instructions:
            starts.append(start)
            beats = instruction.repeat * config.beats
            expected += range(start + wait, start + wait + beats)
            # Loads follow each other without a gap; a Col2Im waits for the writes before it.
            start += wait + beats if bench.adds else beats
        assert bench.given["o"] == expected, "every beat must come in its cycle"
        if bench.adds:
            assert bench.taken["i"] == starts, "a command must be taken after the last write"
