"""The registers of a core behind AXI4-Lite: start, end, interrupt, reset, and every value."""

from amaranth.sim import Simulator

from vitruvian.hdl.core.faults import Fault
from vitruvian.hdl.core.registers import CORE_MAP, CORE_REGISTERS, IDENTITY, CoreRegisters
from vitruvian.hdl.core.serial_map import COUNTERS


async def access(ctx, dut, name, word=None):
    """Read a register, or write a word; return the response."""
    request, response = dut.bus.request, dut.bus.response
    ctx.set(request.payload.address, CORE_MAP[name].address)
    ctx.set(request.payload.write, word is not None)
    ctx.set(request.payload.data, word or 0)
    ctx.set(request.valid, 1)
    ctx.set(response.ready, 1)
    await ctx.tick().until(request.ready)
    ctx.set(request.valid, 0)
    (value,) = await ctx.tick().sample(response.payload).until(response.valid)
    return value


def simulate(bench):
    dut = CoreRegisters()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def run(ctx):
        ctx.set(dut.resting, 1)
        await bench(ctx, dut)

    simulator.add_testbench(run)
    simulator.run()


def test_every_value_is_at_its_register():
    async def bench(ctx, dut):
        ctx.set(dut.fault, Fault.BUS)
        ctx.set(dut.origin, {"unit": 4, "opcode": 0x41, "pc": 77})
        for n in range(len(COUNTERS) - 1):
            ctx.set(dut.busy[n], 100 + n)
            ctx.set(dut.bytes[n], 200 + n)
            ctx.set(dut.waits[n], {"waits": 1, "source": n, "register": 7 - n, "pc": 500 + n})
        assert await access(ctx, dut, "identity") == IDENTITY == int.from_bytes(b"CORE", "big")
        assert await access(ctx, dut, "fault") == Fault.BUS.value | 4 << 4 | 0x41 << 8
        assert await access(ctx, dut, "fault_pc") == 77
        for n, name in enumerate(COUNTERS[1:]):
            assert await access(ctx, dut, f"busy_{name}") == 100 + n
            assert await access(ctx, dut, f"bytes_{name}") == 200 + n
            wait = 1 | n << 1 | (7 - n) << 4 | (500 + n) << 8
            assert await access(ctx, dut, f"wait_{name}") == wait
        for register in CORE_REGISTERS:
            if not register.readable:
                assert await access(ctx, dut, register.name) == 0

    simulate(bench)


def test_an_end_interrupts_if_it_is_enabled():
    async def bench(ctx, dut):
        await access(ctx, dut, "program", 0x1240)
        assert ctx.get(dut.address) == 0x1240 and await access(ctx, dut, "program") == 0x1240
        ctx.set(dut.running, 1)
        await ctx.tick().repeat(5)
        assert await access(ctx, dut, "status") == 2
        ctx.set(dut.running, 0)
        await ctx.tick().repeat(2)
        assert await access(ctx, dut, "interrupt") == 1 and not ctx.get(dut.interrupt)
        await access(ctx, dut, "enable", 1)
        assert ctx.get(dut.interrupt)
        await access(ctx, dut, "interrupt", 0)
        assert ctx.get(dut.interrupt), "only a 1 clears"
        await access(ctx, dut, "interrupt", 1)
        assert not ctx.get(dut.interrupt) and await access(ctx, dut, "cycles") > 5

    simulate(bench)


def test_a_start_needs_a_core_that_is_ready():
    async def bench(ctx, dut):
        seen = []

        async def control(word):
            request = dut.bus.request
            ctx.set(request.payload.address, CORE_MAP["control"].address)
            ctx.set(request.payload.write, 1)
            ctx.set(request.payload.data, word)
            ctx.set(request.valid, 1)
            ctx.set(dut.bus.response.ready, 1)
            assert ctx.get(request.ready)
            seen.append(ctx.get(dut.start))
            await ctx.tick()
            ctx.set(request.valid, 0)
            await ctx.tick()

        await control(1)
        ctx.set(dut.running, 1)
        await control(1)
        ctx.set(dut.running, 0)
        ctx.set(dut.fault, Fault.CODE)
        await control(1)
        ctx.set(dut.fault, Fault.NONE)
        await control(3)  # a reset goes before a start
        assert seen == [1, 0, 0, 0]

    simulate(bench)


def test_a_reset_waits_for_the_bus():
    async def bench(ctx, dut):
        ctx.set(dut.resting, 0)
        await access(ctx, dut, "control", 2)
        for _ in range(5):
            assert ctx.get(dut.hold) and not ctx.get(dut.clear)
            await ctx.tick()
        assert await access(ctx, dut, "status") == 0b11000
        ctx.set(dut.resting, 1)
        assert ctx.get(dut.clear)
        await ctx.tick()
        assert not ctx.get(dut.hold) and not ctx.get(dut.clear)
        assert await access(ctx, dut, "status") == 1

    simulate(bench)
