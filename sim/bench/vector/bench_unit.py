"""cocotb bench of ``hdl.vector.VectorUnit``: stalls, resets during operation, rate and latency.

Parameters: ``lanes``, ``groups``, ``commands``.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import cocotb
import numpy as np

from vitruvian.hdl.vector import Format, Operation, VectorConfig, VectorUnit
from vitruvian.sim.bench.stream_bench import StreamBench, random_resets, random_rounds

from .expected import VectorCommand, VectorMachine
from .stimuli import make_commands

_REDUCTIONS = ("SUM", "LARGEST", "SMALLEST")


#: Stall rates of the rounds: each stream stalls in turn, and then all of them.
_ROUNDS: tuple[dict[str, Any], ...] = (
    {},
    *({stream: rate} for stream, rate in (("o", 0.8), ("command", 0.8), ("a", 0.7), ("b", 0.7))),
    {"inputs": 0.3, "outputs": 0.3},
)


def configuration(values: Mapping[str, Any]) -> VectorConfig:
    """Return the configuration that a bench's parameters describe."""
    return VectorConfig(lanes=values["lanes"], groups=tuple(values["groups"]))


def unit_of(values: Mapping[str, Any]) -> VectorUnit:
    """Return the component that a bench's parameters describe."""
    return VectorUnit(config=configuration(values))


class VectorBench(StreamBench[list[VectorCommand]]):
    """A vector unit beside golden's machine, which keeps the comparison bits between commands."""

    unit_of = staticmethod(unit_of)
    counted = "commands"
    quiet_cycles = 60

    def __init__(self, dut: Any, **stalls: float):
        super().__init__(dut, **stalls)
        self.machine = VectorMachine(self.config.lanes)

    def stimuli(self, count: int | None = None, **options: Any) -> list[VectorCommand]:
        """Return random commands."""
        seed = self.harness.rng.getrandbits(32)
        return make_commands(self.config, seed=seed, count=count or self.count, **options)

    def items(self, traffic: list[VectorCommand]) -> dict[str, Any]:
        """Return the commands and their blocks of operands."""
        blocks = {
            name: [
                int.from_bytes(block.tobytes(), "little")
                for command in traffic
                if getattr(command, name) is not None
                for block in getattr(command, name)
            ]
            for name in "ab"
        }
        return {"command": map(_item, traffic), **blocks}

    def expect(self, traffic: list[VectorCommand]) -> None:
        """Expect the blocks that the commands write."""
        for command in traffic:
            for write in self.machine.run(command):
                data = int.from_bytes(write.data.tobytes(), "little")
                packed = np.packbits(write.enable, bitorder="little")
                enable = int.from_bytes(packed.tobytes(), "little")
                label = f"{command.operation.name} {command.format.name}"
                self.boards["o"].expect(_kept(data, enable), label, scalar=command.scalar)

    def cycles(self) -> int:
        """Return the limit; the reductions of long blocks take many cycles."""
        return 2 * super().cycles()

    def compared(self, name: str, value: Any) -> tuple[int, int]:
        """Return a block; bytes that are not enabled do not count."""
        return _kept(value["data"], value["enable"])

    def forget(self) -> None:
        """Forget what the unit held, including the register of comparison bits."""
        super().forget()
        self.machine = VectorMachine(self.config.lanes)


def _kept(data: int, enable: int) -> tuple[int, int]:
    """Return the enabled bytes of a block, with zeros for the others, and the enable bits."""
    mask = 0
    for byte in range(enable.bit_length()):
        if enable >> byte & 1:
            mask |= 0xFF << 8 * byte
    return data & mask, enable


def _item(command: VectorCommand) -> dict[str, int]:
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
    await random_rounds(VectorBench, dut, _ROUNDS)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier result."""
    bench = VectorBench(dut, command=0.1, a=0.2, b=0.2, o=0.5)
    await random_resets(bench, cycles=(5, 60), count=20)


@cocotb.test()
async def one_repeat_in_every_cycle(dut: Any) -> None:
    """Check rate and latency of elementwise operations, within and between commands."""
    bench = VectorBench(dut)
    skipped = ("COMPARE", "LOAD_BITS", "DUP", "SELECT")
    plain = [
        op
        for op in bench.config.operations
        if op.name not in skipped and not op.name.startswith(_REDUCTIONS)
    ]
    await bench.start()
    # A command without repeats takes a cycle of its own.
    bench.send([c for c in bench.stimuli(operations=plain) if c.repeat])
    await bench.drain()
    taken, given = bench.taken["a"], bench.given["o"]
    assert {b - a for a, b in pairwise(taken)} == {1}, "a repeat was delayed"
    waits = {end - start for start, end in zip(taken, given, strict=True)}
    assert waits == {bench.unit.latency}, f"latencies were {sorted(waits)}"


@cocotb.test()
async def cycles_of_reductions(dut: Any) -> None:
    """Check the number of cycles from repeat to repeat of each reduction."""
    operations = VectorBench(dut).config.operations
    for op in (op for op in operations if op.name.startswith(_REDUCTIONS)):
        for format in Format:
            bench = VectorBench(dut)
            await bench.start()
            commands = bench.stimuli(8, operations=[op], formats=[format])
            bench.send([c for c in commands if c.repeat])
            await bench.drain()
            cycles = bench.unit.cycles(Operation[op.name], format)
            gaps = {b - a for a, b in pairwise(bench.taken["a"])}
            assert gaps <= {cycles}, f"{op.name} took {sorted(gaps)} cycles, not {cycles}"
