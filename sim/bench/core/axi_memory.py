"""Memory at an AXI4 master of the design, with latencies, pauses and errors."""

import random
from collections import deque
from types import SimpleNamespace
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiBus, AxiRam, AxiResp

from vitruvian.sim.bench.bus.axi_bench import AxiBench, pauses

#: A burst must not cross a multiple of so many bytes (AMBA IHI 0022, A3.4.1).
PAGE = 4096
_OFFERS = {
    "ar": ("id", "addr", "len", "size", "burst"),
    "aw": ("id", "addr", "len", "size", "burst"),
    "w": ("data", "strb", "last"),
}


class FailingRam(AxiRam):
    """Memory that answers some addresses with an error, and waits before it answers.

    Parameters
    ----------
    bad : set of int
        First bytes of the blocks of 32 bytes that have errors: SLVERR, or DECERR if bit 5 is set.
    rng : random.Random
    latency : int
        Most cycles before an answer.
    """

    def __init__(self, dut: Any, size: int, bad: set[int], rng: random.Random, latency: int):
        bus = AxiBus.from_prefix(dut, "m_axi")
        super().__init__(bus, dut.aclk, dut.aresetn, reset_active_level=False, size=size)
        self._bad, self._clock, self._rng, self._latency = bad, dut.aclk, rng, latency
        self._decode_error = False
        read, write = self.read_if, self.write_if
        assert read is not None and write is not None
        inner_read: Any = read._read
        inner_write = write._write

        async def reading(address: int, length: int) -> bytes:
            await self._wait()
            self._check(address)
            return await inner_read(address, length)

        async def writing(address: int, data: bytes) -> None:
            self._check(address)
            await inner_write(address, data)

        read._read, write._write = reading, writing
        for channel, name in ((read.r_channel, "rresp"), (write.b_channel, "bresp")):
            self._turn_errors(channel, name)

    def _check(self, address: int) -> None:
        block = address & ~31
        if block in self._bad:
            self._decode_error = bool(block & 32)
            raise ValueError("this block has an error")

    def _turn_errors(self, channel: Any, name: str) -> None:
        inner = channel.send

        async def send(item: Any) -> None:
            if name == "bresp":
                await self._wait()
            if getattr(item, name) != AxiResp.OKAY and self._decode_error:
                setattr(item, name, AxiResp.DECERR)
            await inner(item)

        channel.send = send

    async def _wait(self) -> None:
        if self._latency and self._rng.random() < 0.2:
            await ClockCycles(self._clock, self._rng.randrange(1, self._latency + 1))


class MasterBench(AxiBench):
    """A design with an AXI4 master, in front of a memory.

    Attributes
    ----------
    ram : FailingRam
    bursts : dict of str to list
        The bursts of ``ar`` and ``aw``: cycle, ID, first byte, beats.
    outstanding : int
        The most reads that were on their way at a time, in bursts.
    """

    def __init__(self, dut: Any, unit: Any, *, size: int, bad: set[int], rate: float, latency: int):
        core = SimpleNamespace(core=None) if not hasattr(unit, "core") else unit
        super().__init__(dut, core, counted="count", output="blocks", digits=64)
        self.unit = unit
        self.ram = FailingRam(dut, size, bad, random.Random(self.rng.random()), latency)
        read, write = self.ram.read_if, self.ram.write_if
        assert read is not None and write is not None
        channels = (read.ar_channel, read.r_channel, write.aw_channel)
        for channel in (*channels, write.w_channel, write.b_channel) if rate else ():
            channel.set_pause_generator(pauses(random.Random(self.rng.random()), rate))
        self.bursts: dict[str, list[tuple[int, int, int, int]]] = {"ar": [], "aw": []}
        self.outstanding = 0
        # Beats of the bursts to write, by their addresses and by their data, which may come first.
        self._announced: deque[int] = deque()
        self._written: deque[int] = deque()
        self._beats = 0
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """Check the rules that a master must follow."""
        open_reads = 0
        while True:
            if not await self.tick():
                open_reads = 0
                self._announced.clear()
                self._written.clear()
                self._beats = 0
                continue
            for channel, parts in _OFFERS.items():
                valid, ready = self.handshake(f"m_axi_{channel}", "")
                values = [getattr(self.dut, f"m_axi_{channel}{part}").value for part in parts]
                self.check_offer(channel, " ".join(map(str, values)) if valid else None, ready)
                if valid and ready:
                    if channel == "w":
                        self._beat(bool(int(self.dut.m_axi_wlast.value)))
                    else:
                        self._burst(channel)
                        open_reads += channel == "ar"
            if all(self.handshake("m_axi_r", "")) and int(self.dut.m_axi_rlast.value):
                open_reads -= 1
            self.outstanding = max(self.outstanding, open_reads)

    def _burst(self, channel: str) -> None:
        get = {
            part: int(getattr(self.dut, f"m_axi_{channel}{part}").value)
            for part in _OFFERS[channel]
        }
        beats, size = get["len"] + 1, 1 << get["size"]
        first, last = get["addr"], get["addr"] + beats * size - 1
        assert get["burst"] == 1 and 8 * size == len(self.dut.m_axi_wdata)
        assert first // PAGE == last // PAGE, f"a burst crosses 4 KiB: {first:x} to {last:x}"
        assert first % 32 == 0 and beats * size % 32 == 0
        self.bursts[channel].append((self.cycle, get["id"], first, beats))
        if channel == "aw":
            self._announced.append(beats)
            self._compare()

    def _beat(self, last: bool) -> None:
        self._beats += 1
        if last:
            self._written.append(self._beats)
            self._beats = 0
            self._compare()

    def _compare(self) -> None:
        while self._announced and self._written:
            told, came = self._announced.popleft(), self._written.popleft()
            assert told == came, f"a burst of {told} beats had wlast at beat {came}"
