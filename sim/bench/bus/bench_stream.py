"""cocotb bench of ``hdl.bus.axi.StreamUnit`` with the protocol models of ``cocotbext-axi``.

Parameters: those of ``sim.bench.bus.cores.component_of``, and the number of ``commands``.
"""

import random
from itertools import pairwise
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge, SimTimeoutError, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from vitruvian.hdl.bus.axi import StreamUnit
from vitruvian.sim.bench.bus.axi_bench import PERIOD_NS, AxiBench, pauses
from vitruvian.sim.bench.bus.commands import Packets, command_word, make_packets, most_tiles
from vitruvian.sim.bench.bus.cores import component_of
from vitruvian.sim.bench.harness import parameters

#: Cycles within which a packet must come.
_LIMIT = 5000


def unit_of(values: dict[str, Any]) -> StreamUnit:
    """Return the component that a bench's parameters describe."""
    return component_of(values, "axi-stream")


class AxiStreamBench(AxiBench):
    """A unit between sources and sinks; the rates are those of the pauses of the ports."""

    def __init__(self, dut: Any, **rates: float):
        unit = unit_of(parameters())
        digits = unit.core.word_bits // 4
        super().__init__(dut, unit, counted="commands", output="m_axis_d", digits=digits)
        self.events = dict.fromkeys(self.unit.events, 0)
        #: Cycles of the transfers of each port.
        self.transfers: dict[str, list[int]] = {c.name: [] for c in self.unit.channels}
        self.sources: dict[str, AxiStreamSource] = {}
        self.sinks: dict[str, AxiStreamSink] = {}
        for channel in self.unit.channels:
            bus = AxiStreamBus.from_prefix(dut, channel.prefix)
            kind: Any = AxiStreamSource if channel.inward else AxiStreamSink
            model = kind(bus, dut.aclk, dut.aresetn, reset_active_level=False)
            rate = rates.get(channel.name, 0.0)
            if rate:
                model.set_pause_generator(pauses(random.Random(self.rng.random()), rate))
            (self.sources if channel.inward else self.sinks)[channel.name] = model
        self.sink = self.sinks["d"]
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """Count events and transfers; check that results stay until they are taken."""
        while True:
            if not await self.tick():
                continue
            for name in self.events:
                self.events[name] += int(getattr(self.dut, name).value)
            for channel in self.unit.channels:
                valid, ready = self.handshake(channel.prefix, "_t")
                if valid and ready:
                    self.transfers[channel.name].append(self.cycle)
                if channel.name == "d":
                    last = self.dut.m_axis_d_tlast.value
                    offer = f"{self.dut.m_axis_d_tdata.value} {last}" if valid else None
                    self.check_offer(channel.prefix, offer, ready)

    async def reset(self, cycles: int = 3) -> None:
        """Reset the unit; everything in it and in front of it is lost."""
        models = (*self.sources.values(), *self.sinks.values())
        self.dut.aresetn.value = 0
        for model in models:
            model.clear()
        await ClockCycles(self.dut.aclk, cycles)
        for model in models:
            model.clear()
        self.board.forget()
        self.dut.aresetn.value = 1
        await RisingEdge(self.dut.aclk)

    def send(self, packets: Packets) -> None:
        """Queue commands and packets, and expect their results."""
        for number, (word, d) in enumerate(zip(packets.commands, packets.d, strict=True)):
            self.sources["command"].send_nowait(word.to_bytes(4, "little"))
            operands = {name: parts[number] for name, parts in packets.inputs.items()}
            for name, part in operands.items():
                if part:
                    self.sources[name].send_nowait(part)
            self.board.expect(
                self.codes(d),
                f"command {word:08x}",
                **{name: list(part[:64]) for name, part in operands.items()},
            )

    def codes(self, octets: bytes) -> list[int]:
        """Return the elements of a packet of results."""
        return np.frombuffer(octets, f"<u{self.core.word_bits // 8}").tolist()

    async def packet(self, name: str = "d") -> bytes:
        """Return the next packet of an output."""
        try:
            received = self.sinks[name].recv()
            frame: AxiStreamFrame = await with_timeout(received, _LIMIT * PERIOD_NS, "ns")
        except SimTimeoutError:
            counts = {name: len(cycles) for name, cycles in self.transfers.items()}
            raise AssertionError(
                f"no packet within {_LIMIT} cycles, after {self.board.checked} packets and "
                f"the transfers {counts} (seed {self.seed})"
            ) from None
        return bytes(frame.tdata)

    async def receive(self) -> None:
        """Compare all expected packets; then check that nothing else comes."""
        for _ in range(len(self.board.queue)):
            self.board.check(self.codes(await self.packet()), self.cycle)
        await ClockCycles(self.dut.aclk, 2 * self.unit.latency + 40)
        assert self.sink.empty(), "there must be no more packets"

    def make(self, count: int, **options: Any) -> Packets:
        """Return new commands from the bench's random numbers."""
        return make_packets(self.core, count=count, seed=self.rng.getrandbits(31), **options)


@cocotb.test()
@cocotb.parametrize(pausing=("none", "d", "command", "a", "b", "c", "all"))
async def random_commands(dut: Any, pausing: str) -> None:
    """Send all kinds of commands while one of the ports pauses, or all of them."""
    names = ("d", "command", "a", "b", "c", "index")
    bench = AxiStreamBench(
        dut, **(dict.fromkeys(names, 0.3) if pausing == "all" else {pausing: 0.8})
    )
    await bench.reset()
    bench.send(bench.make(bench.count))
    await bench.receive()
    bench.board.finish(at_least=bench.count)
    assert not any(bench.events.values()), f"events must be 0, not {bench.events}"


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Check that a reset at any time leaves an empty unit, which returns no earlier result."""
    bench = AxiStreamBench(dut, d=0.5, a=0.2, c=0.3)
    came = 0
    for _ in range(8):
        await bench.reset(bench.rng.randrange(1, 4))
        bench.send(bench.make(12))
        await ClockCycles(dut.aclk, bench.rng.randrange(1, 80))
        came += bench.sink.count()
    await bench.reset()
    bench.send(bench.make(bench.count))
    await bench.receive()
    bench.board.finish(at_least=bench.count)
    assert came, "some results must have come before the resets"


@cocotb.test()
async def every_cycle_takes_a_beat(dut: Any) -> None:
    """Check that a beat is taken in every cycle if there are enough tiles, and the latency."""
    bench = AxiStreamBench(dut)
    await bench.reset()
    tiles = most_tiles(bench.core)
    for beats in (12, 1):
        for moments in bench.transfers.values():
            moments.clear()
        packets = bench.make(6, tiles=tiles, beats=beats, plain=True)
        bench.send(packets)
        await bench.receive()
        taken, results = bench.transfers["a"], bench.transfers["d"]
        assert len(taken) == sum(packets.beats)
        steady = {b - a for a, b in pairwise(taken)}
        # With too few slots, a beat must wait until a result has left its slot.
        if bench.core.results_held < bench.core.latency:
            continue
        assert steady == {1}, f"{len(taken)} beats took {taken[-1] - taken[0] + 1} cycles"
    latencies = {d - a for a, d in zip(taken, results, strict=True)}
    assert latencies == {bench.unit.latency}, f"latencies were {sorted(latencies)}"
    bench.board.finish()


@cocotb.test()
async def mistakes_set_events(dut: Any) -> None:
    """Check the events of wrong commands and of tlast, and that the unit goes on."""
    bench = AxiStreamBench(dut)
    core = bench.core
    await bench.reset()
    wrong = [
        command_word(operation=len(core.operations)),
        command_word(precision=max(len(core.precisions), 1)),
        command_word(start=2),
        command_word(tiles=most_tiles(core) + 1),
    ]
    for word in wrong:
        bench.sources["command"].send_nowait(word.to_bytes(4, "little"))
    bench.send(bench.make(3))
    await bench.receive()
    names = tuple(bench.events)
    assert bench.events == dict.fromkeys(names, 0) | {"event_command_invalid": len(wrong)}
    # One packet for two commands, and two packets for one command.
    packets = bench.make(3, tiles=1, beats=2)
    size = len(packets.inputs["a"][2]) // 2
    joined = packets.inputs["a"]
    bench.send(packets)
    bench.sources["a"].clear()
    for part in (joined[0] + joined[1], joined[2][:size], joined[2][size:]):
        bench.sources["a"].send_nowait(part)
    await bench.receive()
    assert bench.events["event_tlast_missing"] == 1
    assert bench.events["event_tlast_unexpected"] == 1
    bench.board.finish()
