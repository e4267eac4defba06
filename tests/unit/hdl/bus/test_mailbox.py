"""The mailbox on Amaranth's simulator: beats give golden's results; misuse sets error bits."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator

from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.mailbox import Mailbox
from vitruvian.hdl.bus.registers import MAP, constants
from vitruvian.hdl.cube import CONFIGS
from vitruvian.sim.bench.cube.traffic import make_traffic

CONFIG = replace(CONFIGS["tiny"], m=1, n=2, k=3, precisions=("int8", "fp8e4m3"), pipeline=0)


class Driver:
    """The initiator of a register bus in a test bench of Amaranth's simulator."""

    def __init__(self, ctx, bus):
        self.ctx, self.bus = ctx, bus

    async def access(self, name, data=None, address=None):
        request = self.bus.request
        address = MAP[name].address if address is None else address
        self.ctx.set(
            request.payload, {"write": data is not None, "address": address, "data": data or 0}
        )
        self.ctx.set(request.valid, 1)
        await self.ctx.tick().until(request.ready)
        self.ctx.set(request.valid, 0)
        self.ctx.set(self.bus.response.ready, 1)
        (value,) = (
            await self.ctx.tick().sample(self.bus.response.payload).until(self.bus.response.valid)
        )
        self.ctx.set(self.bus.response.ready, 0)
        return value

    async def words(self, name, values):
        for value in values:
            await self.access(name, int(value))

    async def status(self, name):
        return bool(await self.access("status") & MAP["status"].field(name).mask)

    async def errors(self):
        value = await self.access("errors")
        await self.access("errors", value)
        return {f.name for f in MAP["errors"].fields if value & f.mask}


def run(bench, core=None):
    unit = Mailbox(core=core or BusCore(config=CONFIG))

    async def testbench(ctx):
        await bench(Driver(ctx, unit.bus))

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def padded(codes):
    octets = np.ascontiguousarray(codes).tobytes()
    return np.frombuffer(octets + bytes(-len(octets) % 4), "<u4")


def command(**fields):
    return sum(value << MAP["command"].field(name).low for name, value in fields.items())


def test_beats_give_goldens_results():
    traffic = make_traffic(CONFIG, beats=6, seed=3)

    async def bench(driver):
        c, d = iter(traffic.c), iter(traffic.d)
        for i in range(len(traffic)):
            await driver.words("a_data", padded(traffic.a[i]))
            await driver.words("b_data", padded(traffic.b[i]))
            fields = {
                name: int(getattr(traffic, name)[i])
                for name in ("precision", "start", "emit", "slot")
            }
            if fields["start"] == 1:
                await driver.words("c_data", padded(next(c)))
            await driver.access("command", command(**fields))
            if fields["emit"]:
                while not await driver.status("d_valid"):
                    pass
                expected = padded(next(d))
                got = [await driver.access("d_data") for _ in expected]
                assert got == expected.tolist()
        assert not await driver.errors() and not await driver.status("d_valid")

    run(bench)


def test_the_constants_describe_the_unit():
    async def bench(driver):
        for name, value in constants(BusCore(config=CONFIG)).items():
            assert await driver.access(name) == value

    run(bench)


def test_misuse_sets_an_error_and_has_no_other_effect():
    async def bench(driver):
        await driver.access("a_data", 1)
        await driver.access("command", 0)
        assert await driver.errors() == {"incomplete"} and await driver.status("ready")
        await driver.access("a_data", 2)
        await driver.access("command", command(precision=2))
        await driver.access("command", command(slot=CONFIG.slot_count))
        assert await driver.errors() == {"code"}
        assert await driver.access("d_data") == 0
        assert await driver.errors() == {"empty"}
        # A beat that starts from C waits for it, and its operands cannot change in the meantime.
        await driver.access("command", command(start=1, emit=1))
        assert not await driver.status("ready")
        for name in ("command", "a_data", "b_data"):
            await driver.access(name, 5)
            assert await driver.errors() == {"refused"}
        await driver.words("c_data", [7, 8])
        while not await driver.status("d_valid"):
            pass
        assert await driver.status("ready")
        await driver.words("c_data", [7, 8])
        await driver.access("c_data", 9)
        assert await driver.errors() == {"refused"}
        assert [await driver.access("d_data") for _ in range(2)] == [7, 8]

    run(bench)


@pytest.mark.parametrize("write", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_address_that_is_not_allowed_sets_an_error(write):
    readable = {*range(0x00, 0x20, 4), 0x24, 0x28, 0x3C}
    writable = {0x20, 0x28, 0x2C, 0x30, 0x34, 0x38}
    allowed = {offset // 4 for offset in (writable if write else readable)}

    async def bench(driver):
        for address in range(256):
            if address == MAP["errors"].address or (write and address in allowed):
                continue
            value = await driver.access("", 0 if write else None, address=address)
            errors = await driver.errors()
            assert ("address" in errors) == (address not in allowed), hex(address)
            assert address in allowed or value == 0

    run(bench)


def test_a_reset_drops_operands_and_results():
    async def bench(driver):
        await driver.words("c_data", [1, 2])
        await driver.access("command", command(start=1, emit=1))
        await driver.words("c_data", [3])
        await driver.access("a_data", 4)
        await driver.access("control", 1)
        # The first access after the reset must not be lost.
        await driver.words("c_data", [5, 6])
        assert not await driver.status("d_valid") and not await driver.status("c_ready")
        await driver.access("command", command(start=1, emit=1))
        assert not await driver.errors()
        while not await driver.status("d_valid"):
            pass
        assert [await driver.access("d_data") for _ in range(2)] == [5, 6]

    run(bench)
