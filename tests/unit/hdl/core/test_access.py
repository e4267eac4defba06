"""The registers of a core: its memory word by word, the start, the state, and the counters."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from vitruvian.golden.core.encoding import VERSION as ENCODING
from vitruvian.hdl.core.access import CoreAccess
from vitruvian.hdl.core.buffer import BlockMemory
from vitruvian.hdl.core.faults import Fault
from vitruvian.hdl.core.serial_map import COUNTERS, IDENTITY, MAP, REGISTERS, WAITING


async def access(ctx, bus, name, word=None):
    """Read a register, or write a word; return the response."""
    ctx.set(bus.request.payload.address, MAP[name].address)
    ctx.set(bus.request.payload.write, word is not None)
    ctx.set(bus.request.payload.data, word or 0)
    ctx.set(bus.request.valid, 1)
    ctx.set(bus.response.ready, 1)
    await ctx.tick().until(bus.request.ready)
    ctx.set(bus.request.valid, 0)
    (value,) = await ctx.tick().sample(bus.response.payload).until(bus.response.valid)
    return value


def simulate(bench):
    m = Module()
    m.submodules.access = dut = CoreAccess(name="tiny", memory_bytes=256)
    m.submodules.memory = memory = BlockMemory(blocks=8, readers=2, writers=2)
    wiring.connect(m, dut.r, memory.r[1])
    wiring.connect(m, dut.w, memory.w[1])
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def run(ctx):
        await bench(ctx, dut, memory)

    simulator.add_testbench(run)
    simulator.run()


def test_words_of_memory_are_written_and_read():
    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 32, 19).tolist()

    async def bench(ctx, dut, memory):
        await access(ctx, dut.bus, "address", 20)
        for word in words:
            await access(ctx, dut.bus, "data", word)
        # A single word, whose neighbours keep their bytes.
        await access(ctx, dut.bus, "address", 36)
        await access(ctx, dut.bus, "data", 7)
        await access(ctx, dut.bus, "address", 20)
        read = [await access(ctx, dut.bus, "data") for _ in words]
        assert read == [*words[:4], 7, *words[5:]]

    simulate(bench)


def test_a_read_waits_for_a_port_that_another_unit_has():
    async def bench(ctx, dut, memory):
        await access(ctx, dut.bus, "data", 0x1234)
        await access(ctx, dut.bus, "address", 0)
        ctx.set(memory.r[0].request, 1)
        assert await access(ctx, dut.bus, "data") == 0x1234

    simulate(bench)


def test_what_describes_the_core_is_read():
    async def bench(ctx, dut, memory):
        read = {r.name: await access(ctx, dut.bus, r.name) for r in REGISTERS[:6]}
        name = b"".join(read[n].to_bytes(4, "little") for n in ("name_low", "name_high"))
        assert read["identity"] == IDENTITY == int.from_bytes(b"VITC", "big")
        assert read["encoding"] == ENCODING and read["memory_bytes"] == 256
        assert name.rstrip(b"\0") == b"tiny"

    simulate(bench)


def test_state_and_counters_are_read():
    async def bench(ctx, dut, memory):
        for n in range(len(COUNTERS)):
            ctx.set(dut.counters[n], 1000 + n)
        counters = [await access(ctx, dut.bus, name) for name in COUNTERS]
        assert counters == [1000 + n for n in range(len(COUNTERS))]
        assert await access(ctx, dut.bus, "status") == 0
        ctx.set(dut.running, 1)
        assert await access(ctx, dut.bus, "status") == 1
        ctx.set(dut.fault, Fault.VALUE)
        assert await access(ctx, dut.bus, "status") == Fault.VALUE.value << 4
        ctx.set(dut.origin, {"unit": 5, "opcode": 0x41, "pc": 77})
        assert await access(ctx, dut.bus, "status") == Fault.VALUE.value << 4 | 0x410500
        assert await access(ctx, dut.bus, "fault_pc") == 77
        for n, name in enumerate(WAITING):
            ctx.set(dut.waits[n], {"waits": 1, "source": n, "register": 7 - n, "pc": 500 + n})
            wait = await access(ctx, dut.bus, f"wait_{name}")
            assert wait == 1 | n << 1 | (7 - n) << 4 | (500 + n) << 8

    simulate(bench)


def test_control_starts_and_resets_for_one_cycle():
    async def bench(ctx, dut, memory):
        await access(ctx, dut.bus, "address", 96)
        pulses = {"start": [], "clear": []}
        for word in (1, 2):
            ctx.set(dut.bus.request.payload.address, MAP["control"].address)
            ctx.set(dut.bus.request.payload.write, 1)
            ctx.set(dut.bus.request.payload.data, word)
            ctx.set(dut.bus.request.valid, 1)
            for _ in range(5):
                taken = ctx.get(dut.bus.request.ready)
                pulses["start"].append(ctx.get(dut.start))
                pulses["clear"].append(ctx.get(dut.clear))
                assert ctx.get(dut.address) == 96
                await ctx.tick()
                if taken:
                    ctx.set(dut.bus.request.valid, 0)
        assert pulses["start"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        assert pulses["clear"] == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]

    simulate(bench)


def test_a_long_name_is_refused():
    with pytest.raises(ValueError, match="name must have at most 8 characters, not 'threedozen'"):
        CoreAccess(name="threedozen", memory_bytes=256)
