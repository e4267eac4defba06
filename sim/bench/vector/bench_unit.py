"""cocotb bench of ``hdl.vector.VectorUnit``: stalls, resets during operation, rate and latency.

Parameters: ``lanes``, ``groups``, ``commands``.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cocotb
import numpy as np

from vitruvian.hdl.vector import Format, Operation, VectorConfig, VectorUnit
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .expected import Command, Machine
from .stimuli import make_commands

_REDUCTIONS = ("SUM", "LARGEST", "SMALLEST")


def configuration(values: dict[str, Any]) -> VectorConfig:
    """Return the configuration that a bench's parameters describe."""
    return VectorConfig(lanes=values["lanes"], groups=tuple(values["groups"]))


class _Bench:
    def __init__(self, dut: Any, **rates: float):
        values = parameters()
        self.config, self.commands = configuration(values), values["commands"]
        face = interface_of(VectorUnit(config=self.config))
        self.harness = Harness(dut, face)
        digits = 4 * self.config.lanes
        self.board = Scoreboard("o", seed=self.harness.seed, digits=digits)
        streams = {stream.name: stream for stream in face.streams_in + face.streams_out}
        self.taken: list[int] = []  # cycle in which each block of a was taken
        self.result_cycles: list[int] = []
        self.drivers = {
            name: StreamDriver(
                self.harness,
                streams[name],
                stall_rate=rates.get(name, 0.0),
                taken=self.take if name == "a" else None,
            )
            for name in ("command", "a", "b")
        }
        self.monitor = StreamMonitor(
            self.harness, streams["o"], stall_rate=rates.get("o", 0.0), received=self.receive
        )
        self.machine = Machine(self.config.lanes)

    def take(self, item: Any) -> None:
        """Record that the unit has taken a block of a."""
        del item
        self.taken.append(self.harness.cycle)

    def receive(self, value: dict[str, Any], cycle: int) -> None:
        """Compare a result block with the expected one; bytes that are not enabled do not count."""
        self.result_cycles.append(cycle)
        self.board.check(_kept(value["data"], value["enable"]), cycle)

    def make(self, **options: Any) -> list[Command]:
        """Return new commands from the bench's random numbers."""
        seed = self.harness.rng.getrandbits(32)
        return make_commands(self.config, seed=seed, **{"count": self.commands, **options})

    def send(self, commands: Sequence[Command]) -> int:
        """Queue commands and expect their results; return the number of results."""
        results = 0
        for command in commands:
            self.drivers["command"].send([_item(command)])
            for name in "ab":
                blocks = getattr(command, name)
                if blocks is not None:
                    self.drivers[name].send(int.from_bytes(b.tobytes(), "little") for b in blocks)
            for write in self.machine.run(command):
                data = int.from_bytes(write.data.tobytes(), "little")
                packed = np.packbits(write.enable, bitorder="little")
                enable = int.from_bytes(packed.tobytes(), "little")
                label = f"{command.operation.name} {command.format.name}"
                self.board.expect(_kept(data, enable), label, scalar=command.scalar)
                results += 1
        return results

    async def drain(self) -> None:
        """Run until all results have come, and then for cycles in which no result may come."""
        waiting = sum(len(driver.queue) for driver in self.drivers.values())
        await self.harness.run_until(
            lambda: not (self.board.queue or any(d.queue for d in self.drivers.values())),
            limit=400 * (waiting + 10),
        )
        await self.harness.step(60)

    def reset(self) -> None:
        """Forget what the unit held, including the register of comparison bits."""
        self.board.forget()
        self.machine = Machine(self.config.lanes)
        self.taken.clear()
        self.result_cycles.clear()


def _kept(data: int, enable: int) -> tuple[int, int]:
    """Return the enabled bytes of a block, with zeros for the others, and the enable bits."""
    mask = 0
    for byte in range(enable.bit_length()):
        if enable >> byte & 1:
            mask |= 0xFF << 8 * byte
    return data & mask, enable


def _item(command: Command) -> dict[str, int]:
    packed = np.packbits(command.mask, bitorder="little")
    return {
        "operation": command.operation.value,
        "format": command.format.value,
        "condition": command.condition.value,
        "rounding": command.rounding.value,
        "from_scalar": int(command.from_scalar),
        "scalar": command.scalar,
        "repeat": command.repeat,
        "mask": int.from_bytes(packed.tobytes(), "little"),
    }


@cocotb.test()
async def random_commands(dut: Any) -> None:
    """Send all operations while each stream stalls in turn."""
    for rates in (
        {},
        {"o": 0.8},
        {"command": 0.8},
        {"a": 0.7},
        {"b": 0.7},
        {"command": 0.3, "a": 0.3, "b": 0.3, "o": 0.3},
    ):
        bench = _Bench(dut, **rates)
        await bench.harness.start()
        count = bench.send(bench.make())
        await bench.drain()
        bench.board.finish(at_least=count)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier result."""
    bench = _Bench(dut, command=0.1, a=0.2, b=0.2, o=0.5)
    await bench.harness.start()
    for _ in range(8):
        bench.send(bench.make(count=20))
        await bench.harness.step(bench.harness.rng.randrange(5, 60))
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        bench.reset()
    count = bench.send(bench.make())
    await bench.drain()
    bench.board.finish(at_least=count)
    assert bench.monitor.count > count, "some results must have come before the resets"


@cocotb.test()
async def one_repeat_in_every_cycle(dut: Any) -> None:
    """Check rate and latency of elementwise operations, within and between commands."""
    bench = _Bench(dut)
    skipped = ("COMPARE", "LOAD_BITS", "DUP", "SELECT")
    plain = [
        op
        for op in bench.config.operations
        if op.name not in skipped and not op.name.startswith(_REDUCTIONS)
    ]
    await bench.harness.start()
    # A command without repeats takes a cycle of its own.
    commands = [c for c in bench.make(operations=plain) if c.repeat]
    count = bench.send(commands)
    await bench.drain()
    bench.board.finish(at_least=count)
    taken, given = bench.taken, bench.result_cycles
    assert {b - a for a, b in pairwise(taken)} == {1}, "a repeat was delayed"
    latency = VectorUnit(config=bench.config).latency
    waits = {end - start for start, end in zip(taken, given, strict=True)}
    assert waits == {latency}, f"latencies were {sorted(waits)}"


@cocotb.test()
async def cycles_of_reductions(dut: Any) -> None:
    """Check the number of cycles from repeat to repeat of each reduction."""
    for op in (op for op in _Bench(dut).config.operations if op.name.startswith(_REDUCTIONS)):
        for format in Format:
            bench = _Bench(dut)
            await bench.harness.start()
            commands = bench.make(operations=[op], formats=[format], count=8)
            count = bench.send([c for c in commands if c.repeat])
            await bench.drain()
            bench.board.finish(at_least=count)
            cycles = VectorUnit(config=bench.config).cycles(Operation[op.name], format)
            gaps = {b - a for a, b in pairwise(bench.taken)}
            assert gaps <= {cycles}, f"{op.name} took {sorted(gaps)} cycles, not {cycles}"
