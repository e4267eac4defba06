"""cocotb bench of ``hdl.core.axi_master.AxiMaster`` with the memory of ``cocotbext-axi``.

Parameters: ``width`` and ``burst_blocks`` of the master, ``count``, the number of random runs of
blocks of each port, and ``starts``, the blocks of a page from which the aligned runs begin.
"""

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import cocotb
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly

from vitruvian.hdl.bus.clock import CLOCK_PORTS, use_clock
from vitruvian.hdl.core.axi_master import AxiMaster, connect_master, master_members
from vitruvian.hdl.core.ports import ReadPort, WritePort
from vitruvian.sim.bench.core.axi_memory import PAGE, MasterBench
from vitruvian.sim.bench.harness import parameters

_BLOCK = 32
_SIZE = 1 << 16
#: Cycles without a block after which the design counts as hung.
_LIMIT = 3000


class MasterAlone(wiring.Component):
    """The master with the port names of Vivado, and the ports of a core as they are."""

    if TYPE_CHECKING:
        aclk: Signal
        aresetn: Signal
        source: Signal
        hold: Signal

    def __init__(self, *, width: int, burst_blocks: int):
        self.master = AxiMaster(width=width, burst_blocks=burst_blocks)
        super().__init__(
            {
                **CLOCK_PORTS,
                **master_members(width, self.master.id_bits),
                "fetch": In(ReadPort()),
                "read": In(ReadPort()),
                "write": In(WritePort()),
                **{name: In(1) for name in ("source", "hold")},
                **{name: Out(1) for name in ("fetch_error", "read_error", "idle")},
                **{name: Out(2) for name in ("write_open", "write_error")},
            }
        )

    def elaborate(self, platform: object) -> Module:  # noqa: D102
        m = Module()
        use_clock(m, self.aclk, self.aresetn)
        m.submodules.master = master = self.master
        connect_master(m, self, master)
        for name in ("fetch", "read", "write"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(master, name))
        m.d.comb += [master.source.eq(self.source), master.hold.eq(self.hold)]
        for name in ("fetch_error", "read_error", "idle", "write_open", "write_error"):
            m.d.comb += getattr(self, name).eq(getattr(master, name))
        return m


def unit_of(values: dict[str, Any]) -> MasterAlone:
    """Return the component that a bench's parameters describe."""
    return MasterAlone(width=values["width"], burst_blocks=values["burst_blocks"])


class PortBench(MasterBench):
    """Units at the ports of a master: two that read and one that writes."""

    def __init__(self, dut: Any, *, rate: float = 0, bad: Iterable[int] = (), latency: int = 0):
        values = parameters()
        super().__init__(dut, unit_of(values), size=_SIZE, bad=set(bad), rate=rate, latency=latency)
        self.bad = set(bad)
        self.memory = bytearray(self.rng.randbytes(_SIZE))
        self.ram.write(0, bytes(self.memory))
        #: Blocks that a port has been granted and not been given: their addresses.
        self.waiting: dict[str, deque[int]] = {"fetch": deque(), "read": deque()}
        self.got: dict[str, int] = dict.fromkeys(("fetch", "read"), 0)
        self.failed_writes = [0, 0]
        #: Cycle and source of the last block to write that was granted.
        self.wrote = (0, 0)
        for name in ("fetch", "read", "write"):
            getattr(dut, f"{name}__request").value = 0
        dut.hold.value = 0
        dut.source.value = 0

    def expect_block(self, name: str) -> None:
        """Check the block that comes at a port in this cycle."""
        assert self.waiting[name], f"{name} gave a block that nobody asked for"
        address = self.waiting[name].popleft()
        error = int(getattr(self.dut, f"{name}_error").value)
        assert error == (address in self.bad), f"{name} at {address:x} had error {error}"
        if not error:
            value = int(getattr(self.dut, f"{name}__data").value)
            self.board.expect(int.from_bytes(self.memory[address : address + _BLOCK], "little"))
            self.board.check(value, self.cycle)
        self.got[name] += 1

    async def watch_ports(self) -> None:
        """Take blocks, and the answers to writes, in every cycle."""
        while True:
            await FallingEdge(self.dut.aclk)
            await ReadOnly()
            for name in ("fetch", "read"):
                if int(getattr(self.dut, f"{name}__valid").value):
                    self.expect_block(name)
            cycle, source = self.wrote
            if cycle and self.cycle == cycle + 1:
                busy = int(self.dut.write_open.value) >> source & 1
                assert busy, f"write_open must be set after a write in cycle {cycle}"
            errors = int(self.dut.write_error.value)
            for source in range(2):
                self.failed_writes[source] += errors >> source & 1

    async def ask(self, name: str, address: int) -> None:
        """Ask for a block at a port until the request is granted."""
        getattr(self.dut, f"{name}__address").value = address // _BLOCK
        getattr(self.dut, f"{name}__request").value = 1
        for _ in range(_LIMIT):
            await ReadOnly()
            granted = int(getattr(self.dut, f"{name}__grant").value)
            if granted:
                if name == "write":
                    self.wrote = self.cycle, address >> 12 & 1
                else:
                    self.waiting[name].append(address)
                break
            await FallingEdge(self.dut.aclk)
        else:
            raise AssertionError(f"{name} hangs (seed {self.seed})")
        await FallingEdge(self.dut.aclk)
        getattr(self.dut, f"{name}__request").value = 0

    async def run(self, name: str, addresses: Iterable[int], pause: float) -> None:
        """Ask for blocks one after the other, with random pauses."""
        await FallingEdge(self.dut.aclk)
        for address in addresses:
            while self.rng.random() < pause:
                await FallingEdge(self.dut.aclk)
            if name == "write":
                self.offer(address)
            await self.ask(name, address)

    def offer(self, address: int) -> None:
        """Set the data of a write, and change the expected memory."""
        kinds = ((1 << _BLOCK) - 1, self.rng.getrandbits(_BLOCK), 1 << self.rng.randrange(32), 0)
        enable, data = self.rng.choice(kinds), self.rng.randbytes(_BLOCK)
        self.dut.write__data.value = int.from_bytes(data, "little")
        self.dut.write__enable.value = enable
        self.dut.source.value = address >> 12 & 1  # every page has one source
        for n in range(_BLOCK):
            if enable >> n & 1 and address not in self.bad:
                self.memory[address + n] = data[n]

    async def settle(self) -> None:
        """Wait until nothing is on its way, and compare the memory."""
        for _ in range(_LIMIT):
            await FallingEdge(self.dut.aclk)
            await ReadOnly()
            if int(self.dut.idle.value):
                break
        assert int(self.dut.idle.value) and not int(self.dut.write_open.value), "the bus is busy"
        assert not any(self.waiting.values()), "blocks are missing"
        assert self.ram.read(0, _SIZE) == bytes(self.memory), f"memory differs (seed {self.seed})"


def runs(rng: Any, count: int, first: int, size: int) -> list[int]:
    """Return the addresses of runs of consecutive blocks within some bytes."""
    found: list[int] = []
    for _ in range(count):
        length = rng.choice((1, 1, 2, 3, 7, 8, 9, 20))
        start = rng.randrange(size // _BLOCK - length)
        found += [first + _BLOCK * (start + n) for n in range(length)]
    return found


@cocotb.test()
@cocotb.parametrize(rate=(0.0, 0.5), latency=(0, 40))
async def random_runs(dut: Any, rate: float, latency: int) -> None:
    """Read and write runs of blocks; program and data lie in pages that are not written."""
    bench = PortBench(dut, rate=rate, latency=latency)
    await bench.reset()
    cocotb.start_soon(bench.watch_ports())
    quarter = _SIZE // 4
    for pause in (0.0, 0.6):
        places = {"fetch": 0, "read": quarter, "write": 2 * quarter}
        tasks = [
            cocotb.start_soon(bench.run(name, runs(bench.rng, bench.count, first, quarter), pause))
            for name, first in places.items()
        ]
        for task in tasks:
            await task
        await bench.settle()
    assert bench.outstanding > 1, "reads must overlap"
    longest = max(beats for *_, beats in bench.bursts["ar"])
    assert longest == bench.unit.master.burst_blocks * bench.unit.master.beats
    bench.board.finish(at_least=2 * bench.count)


@cocotb.test()
async def every_place_in_a_page(dut: Any) -> None:
    """Begin a run at every block of a page, so that every distance to its end occurs."""
    bench = PortBench(dut)
    await bench.reset()
    cocotb.start_soon(bench.watch_ports())
    most = bench.unit.master.burst_blocks
    starts = parameters()["starts"]
    for start in range(PAGE // _BLOCK - starts, PAGE // _BLOCK):
        for length in (1, 2, most, most + 1):
            for name in ("fetch", "read", "write"):
                base = PAGE * {"fetch": 0, "read": 4, "write": 8}[name]
                addresses = [base + _BLOCK * (start + n) for n in range(length)]
                await bench.run(name, addresses, 0)
        await bench.settle()
    bench.board.finish(at_least=2 * starts)


@cocotb.test()
async def errors_come_with_their_blocks(dut: Any) -> None:
    """Answer some blocks with SLVERR or DECERR: these have errors, all others have none."""
    bad = {_BLOCK * n for n in range(3, _SIZE // _BLOCK, 5)}
    bench = PortBench(dut, rate=0.3, bad=bad, latency=10)
    await bench.reset()
    cocotb.start_soon(bench.watch_ports())
    quarter = _SIZE // 4
    reads = {
        name: runs(bench.rng, bench.count, first, quarter)
        for name, first in (("fetch", 0), ("read", quarter))
    }
    # A burst has one answer, so each of these writes has one block.
    writes = [2 * quarter + 64 * bench.rng.randrange(quarter // 64) for _ in range(4 * bench.count)]
    tasks = [
        cocotb.start_soon(bench.run(n, a, 0.3)) for n, a in (*reads.items(), ("write", writes))
    ]
    for task in tasks:
        await task
    await bench.settle()
    # A block without enabled bytes is never refused by this memory, so count at most.
    most = [sum(a in bad and a >> 12 & 1 == s for a in writes) for s in range(2)]
    assert all(n <= m for n, m in zip(bench.failed_writes, most, strict=True))
    assert sum(bench.failed_writes) > 0
    bench.board.finish(at_least=bench.count)


@cocotb.test()
async def program_and_data_take_turns(dut: Any) -> None:
    """Let both ports ask all the time: their bursts alternate."""
    bench = PortBench(dut)
    await bench.reset()
    cocotb.start_soon(bench.watch_ports())
    # Blocks that do not follow each other, so that every block is a burst.
    addresses = [64 * n for n in range(60)]
    tasks = [cocotb.start_soon(bench.run(name, addresses, 0)) for name in ("fetch", "read")]
    for task in tasks:
        await task
    await bench.settle()
    order = [number for _, number, *_ in bench.bursts["ar"]][4:-4]
    assert all(a != b for a, b in pairwise(order)), order
    bench.board.finish(at_least=100)


@cocotb.test()
async def hold_ends_in_order(dut: Any) -> None:
    """Hold in the middle of traffic: no request is granted, and all that was granted is ended."""
    bench = PortBench(dut, rate=0.4, latency=20)
    await bench.reset()
    cocotb.start_soon(bench.watch_ports())
    quarter = _SIZE // 4
    for _ in range(6):
        places = {"fetch": 0, "read": quarter, "write": 2 * quarter}
        tasks = [
            cocotb.start_soon(bench.run(name, runs(bench.rng, 8, first, quarter), 0.1))
            for name, first in places.items()
        ]
        await ClockCycles(dut.aclk, bench.rng.randrange(5, 60))
        await FallingEdge(dut.aclk)
        dut.hold.value = 1
        before = dict(bench.got)
        for _ in range(_LIMIT):
            await FallingEdge(dut.aclk)
            await ReadOnly()
            for name in places:
                assert not int(getattr(dut, f"{name}__grant").value), f"{name} was granted"
            if int(dut.idle.value):
                break
        assert int(dut.idle.value) and not any(bench.waiting.values())
        assert sum(bench.got.values()) >= sum(before.values())
        await FallingEdge(dut.aclk)
        dut.hold.value = 0
        for task in tasks:
            await task
    await bench.settle()
    bench.board.finish(at_least=50)
