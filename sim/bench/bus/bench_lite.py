"""cocotb bench of ``hdl.bus.lite.LiteUnit`` with the AXI4-Lite master of ``cocotbext-axi``.

Parameters: those of ``sim.bench.bus.cores.component_of``, and the number of products, ``beats``.
"""

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from vitruvian.hdl.bus.lite import LiteUnit
from vitruvian.hdl.bus.registers import MAP, constants, registers_of
from vitruvian.sim.bench.bus.axi_bench import PERIOD_NS, AxiBench, pauses
from vitruvian.sim.bench.bus.beats import BusBeat, make_beats
from vitruvian.sim.bench.bus.cores import component_of
from vitruvian.sim.bench.harness import parameters

#: Polls of status after which a result must have come.
_POLLS = 200


def unit_of(values: dict[str, Any]) -> LiteUnit:
    """Return the component that a bench's parameters describe."""
    return component_of(values, "axi-lite")


class AxiLiteBench(AxiBench):
    """A unit behind an AXI4-Lite master whose channels pause at random."""

    def __init__(self, dut: Any, rate: float):
        super().__init__(dut, unit_of(parameters()), counted="beats", output="d_data")
        #: Cycles from the transfer of an address to the value of a read.
        self.latencies: set[int] = set()
        bus = AxiLiteBus.from_prefix(dut, "s_axi")
        self.master: Any = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        write, read = self.master.write_if, self.master.read_if
        writing = (write.aw_channel, write.w_channel, write.b_channel)
        for channel in (*writing, read.ar_channel, read.r_channel) if rate else ():
            channel.set_pause_generator(pauses(random.Random(self.rng.random()), rate))
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """Measure the latencies of reads; check that a response stays until it is taken."""
        asked = 0
        while True:
            running = await self.tick()
            if all(self.handshake("s_axi_ar", "")):
                asked = self.cycle
            elif asked and int(self.dut.s_axi_rvalid.value):
                self.latencies.add(self.cycle - asked)
                asked = 0
            for channel in ("b", "r") if running else ():
                valid, ready = self.handshake(f"s_axi_{channel}", "")
                reply = getattr(self.dut, f"s_axi_{channel}resp").value
                offer = f"{reply} {self.dut.s_axi_rdata.value if channel == 'r' else ''}"
                self.check_offer(channel, offer if valid else None, ready)

    async def write(self, name: str, value: int) -> None:
        """Write a register, which must be allowed."""
        assert await self.write_at(MAP[name].offset, value.to_bytes(4, "little")) == AxiResp.OKAY

    async def write_at(self, address: int, octets: bytes) -> AxiResp:
        """Write bytes to an address and return the response."""
        done = self.master.write(address, octets)
        return (await with_timeout(done, 5000 * PERIOD_NS, "ns")).resp

    async def read_at(self, address: int) -> tuple[int, AxiResp]:
        """Return the value at an address, and the response."""
        done = await with_timeout(self.master.read(address, 4), 5000 * PERIOD_NS, "ns")
        return int.from_bytes(done.data, "little"), done.resp

    async def read(self, name: str) -> int:
        """Return the value of a register, which must be allowed."""
        value, reply = await self.read_at(MAP[name].offset)
        assert reply == AxiResp.OKAY, f"{name} must be readable"
        return value

    async def until(self, bit: str) -> None:
        """Poll the status until a bit is set."""
        for _ in range(_POLLS):
            if await self.read("status") & MAP["status"].field(bit).mask:
                return
        raise AssertionError(f"{bit} must be set after {_POLLS} reads (seed {self.seed})")

    def beats(self, **options: Any) -> list[BusBeat]:
        """Return random beats from the bench's random numbers."""
        return make_beats(self.core, self.rng, count=self.count, **options)

    async def send(self, beat: BusBeat) -> None:
        """Send a beat as a driver does, and read its results."""
        for name, words in beat.words.items():
            await self.until("c_ready" if name == "c" else "ready")
            for word in words:
                await self.write(f"{name}_data", word)
        await self.until("ready")
        await self.write("command", beat.command)
        for result in beat.results:
            await self.until("d_valid")
            # A reset may end this function before all words have been read.
            got = [await self.read("d_data") for _ in result]
            self.board.expect(result, f"command {beat.command:08x}", **beat.words)
            self.board.check(got, self.cycle)


@cocotb.test()
@cocotb.parametrize(rate=(0.0, 0.4))
async def random_beats(dut: Any, rate: float) -> None:
    """Send beats and read their results, without and with pauses of all channels."""
    bench = AxiLiteBench(dut, rate)
    await bench.reset()
    beats = bench.beats()
    for beat in beats:
        await bench.send(beat)
    assert await bench.read("errors") == 0
    assert not await bench.read("status") & MAP["status"].field("d_valid").mask
    assert bench.latencies == {3}, f"latencies of reads were {bench.latencies}"
    bench.board.finish(at_least=bench.count)


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Check that nothing of a beat is left after a reset of the port or of the unit."""
    bench = AxiLiteBench(dut, 0.2)
    await bench.reset()
    for index, beat in enumerate(bench.beats(beats=1)):
        task = cocotb.start_soon(bench.send(beat))
        await ClockCycles(dut.aclk, bench.rng.randrange(1, 150))
        if index % 2:
            if not task.done():
                task.cancel()
            await bench.reset()
        else:
            await task
            await bench.write("control", 1)
    await bench.reset()
    for beat in bench.beats():
        await bench.send(beat)
    assert await bench.read("errors") == 0
    bench.board.finish(at_least=bench.count)


@cocotb.test()
async def every_address_answers(dut: Any) -> None:
    """Check the response of every address, and that of every set of strobes."""
    bench = AxiLiteBench(dut, 0.2)
    await bench.reset()
    for name, value in constants(bench.core).items():
        assert await bench.read(name) == value, name
    registers = {register.offset: register for register in registers_of(bench.core)}
    for offset in range(0, 1024, 4):
        register = registers.get(offset)
        good = register is not None and register.readable
        value, reply = await bench.read_at(offset)
        assert reply == (AxiResp.OKAY if good else AxiResp.SLVERR), hex(offset)
        assert good or value == 0
        # Writing to other registers would change the unit.
        if register is None or not register.writable:
            assert await bench.write_at(offset, bytes(4)) == AxiResp.SLVERR, hex(offset)
            assert await bench.read("errors") & MAP["errors"].field("address").mask
            await bench.write("errors", 0x3F)
    address = MAP["errors"].offset
    for first in range(4):
        for last in range(first + 1, 5):
            whole = last - first == 4
            reply = await bench.write_at(address + first, b"\xff" * (last - first))
            assert reply == (AxiResp.OKAY if whole else AxiResp.SLVERR)
    bench.board.expect(0)
    bench.board.check(await bench.read("errors"), bench.cycle)
    bench.board.finish()


@cocotb.test()
async def reads_and_writes_at_once(dut: Any) -> None:
    """Check that reads and writes that overlap all get their responses."""
    bench = AxiLiteBench(dut, 0.3)
    await bench.reset()
    constant = constants(bench.core)

    async def reads() -> None:
        for name in [*constant] * 4:
            bench.board.expect(constant[name], name)
            bench.board.check(await bench.read(name), bench.cycle)

    async def writes() -> None:
        for number in range(32):
            await bench.write("errors" if number % 2 else "a_data", number)

    tasks = [cocotb.start_soon(job()) for job in (reads, writes)]
    for task in tasks:
        await task
    bench.board.finish()
