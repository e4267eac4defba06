"""cocotb bench of the design for Tiny Tapeout: a chip tester on its pins. Parameters: k, count.

The tester knows the sum by ``golden.fp.int_dot``. It drives the pins after a falling edge, and
reads all outputs before the next rising edge.
"""

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

from vitruvian.golden.fp import int_dot
from vitruvian.sim.bench.harness import parameters, seed_of

WRITE, CLEAR, READY = 1, 2, 16


class ChipTester:
    """The pins of a chip, and the sum that it must have."""

    def __init__(self, dut: Any, k: int) -> None:
        self.dut, self.k = dut, k
        self.rng = random.Random(seed_of())
        self.total, self.sent = 0, 0

    async def start(self) -> None:
        """Start the clock and reset the chip, which begins with a sum of any value."""
        for pin, value in (("ena", 1), ("ui_in", 0), ("uio_in", 0), ("rst_n", 0), ("clk", 1)):
            getattr(self.dut, pin).value = value
        Clock(self.dut.clk, 10, unit="ns").start()
        await self.edge(3)
        self.dut.rst_n.value = 1
        await self.read()

    async def edge(self, count: int = 1) -> None:
        """Wait for rising edges, and for the falling one behind them."""
        for _ in range(count):
            await FallingEdge(self.dut.clk)

    async def cycle(self, byte: int, control: int, ena: int = 1) -> None:
        """Hold the pins for a rising edge."""
        self.dut.ui_in.value = byte
        self.dut.uio_in.value = control
        self.dut.ena.value = ena
        await self.edge()
        self.dut.uio_in.value = 0
        self.dut.ena.value = 1

    async def send(self, values: list[int]) -> None:
        """Send bytes with pauses, in which other bytes are on the pins."""
        for value in values:
            while self.rng.random() < 0.3:
                # Bytes without write, or for another design, do not count.
                control, ena = ((0, 1), (WRITE | CLEAR, 0))[self.rng.random() < 0.5]
                await self.cycle(self.rng.getrandbits(8), control, ena)
            await self.cycle(value, WRITE)
            self.sent = (self.sent + 1) % (2 * self.k)

    async def multiply(self, a: list[int], b: list[int]) -> None:
        """Send two vectors, and note what they add to the sum."""
        await self.send([*a, *b])
        self.total = int(int_dot(a, b, self.total))

    async def clear(self) -> None:
        """Clear the sum and the bytes that wait, while a byte comes."""
        await self.cycle(self.rng.getrandbits(8), WRITE | CLEAR)
        self.total, self.sent = 0, 0

    async def read(self) -> None:
        """Compare the four bytes of the sum, the ready pin, and the directions of the pins."""
        await self.edge()
        found = 0
        for number in range(4):
            self.dut.uio_in.value = number << 2
            await Timer(1, "ns")
            found |= int(self.dut.uo_out.value) << (8 * number)
        self.dut.uio_in.value = 0
        expected = self.total & 0xFFFFFFFF
        assert found == expected, f"sum must be {expected:#010x} by golden, not {found:#010x}"
        ready = bool(int(self.dut.uio_out.value) & READY)
        assert ready == (self.sent == 0), f"ready must be {self.sent == 0}, not {ready}"
        assert int(self.dut.uio_oe.value) == READY


@cocotb.test()
async def random_vectors(dut: Any) -> None:
    k = parameters()["k"]
    tester = ChipTester(dut, k)
    await tester.start()
    for number in range(parameters()["count"]):
        a, b = ([tester.rng.getrandbits(8) for _ in range(k)] for _ in range(2))
        await tester.multiply(a, b)
        if number % 3 == 0:
            await tester.read()
        if number % 40 == 17:
            await tester.send(a[: tester.rng.randrange(1, k + 1)])
            await tester.read()
            await tester.clear()
            await tester.read()
    await tester.read()


@cocotb.test()
async def extremes_and_wrap(dut: Any) -> None:
    """Add the largest dot product until the sum wraps, without a pause between the bytes."""
    k = parameters()["k"]
    tester = ChipTester(dut, k)
    await tester.start()
    for a, b in ((0x80, 0x80), (0x7F, 0x80), (0xFF, 0x01), (0x80, 0x7F)):
        for _ in range(5):
            for byte in [a] * k + [b] * k:
                await tester.cycle(byte, WRITE)
            tester.total = int(int_dot([a] * k, [b] * k, tester.total))
        await tester.read()
