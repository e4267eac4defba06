"""cocotb bench of ``hdl.core.axi.CoreAxi``: programs started by registers, memory behind AXI4.

Parameters: ``core``, a preset, "least" or "fix", which has a unit FIX more; ``width`` of the
master; ``count``, the number of resets in the middle of a program; ``words`` of a program of all
units that ends in word 0 and writes 1536 bytes by MTE3; memory ``before`` and ``after`` it as
hexadecimal digits.
"""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from vitruvian.golden.core.encoding import BUFFERS, ENCODINGS, UNITS
from vitruvian.hdl.core import CORES, CoreConfig
from vitruvian.hdl.core.axi import CoreAxi
from vitruvian.hdl.core.faults import Fault
from vitruvian.hdl.core.registers import CORE_MAP, CORE_REGISTERS, IDENTITY
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.vector.config import VectorConfig
from vitruvian.sim.bench.bus.axi_bench import PERIOD_NS
from vitruvian.sim.bench.core.axi_memory import MasterBench
from vitruvian.sim.bench.harness import parameters

#: A core with little of everything, which builds fast.
LEAST = CoreConfig(
    tile=MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16",)),
    vector=VectorConfig(lanes=16, groups=("add",)),
    l1=4096,
    l0a=1024,
    l0b=1024,
    l0c=2048,
    ub=4096,
)
CONFIGS = {"least": LEAST, "fix": replace(LEAST, fix=True), **CORES}
_SIZE = 1 << 16
#: First byte of the program, and a block of which accesses fail.
_PROGRAM, _BAD = 1 << 15, (1 << 15) - 32
_LIMIT_NS = 30_000 * PERIOD_NS

Words = tuple[int, ...]


def unit_of(values: dict[str, Any]) -> CoreAxi:
    """Return the component that a bench's parameters describe."""
    return CoreAxi(config=CONFIGS[values["core"]], width=values["width"])


def copy(unit: str, dst: tuple[str, int], src: tuple[str, int]) -> Words:
    """Return the words of a copy of 64 bytes."""
    codes = {"unit": UNITS.index(unit), "bursts": 1, "burst_bytes": 64}
    for name, (buffer, place) in (("dst", dst), ("src", src)):
        codes |= {f"{name}.buffer": BUFFERS.index(buffer), name: place}
    return ENCODINGS["copy"].pack(codes)


class CoreBench(MasterBench):
    """A core that a processor starts."""

    def __init__(self, dut: Any, *, rate: float = 0, latency: int = 0):
        unit = unit_of(parameters())
        self.units = unit.config.units
        super().__init__(dut, unit, size=_SIZE, bad={_BAD}, rate=rate, latency=latency)
        bus = AxiLiteBus.from_prefix(dut, "s_axi")
        self.host: Any = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        given = parameters()
        self.words = given["words"]
        self.before, self.after = (
            np.frombuffer(bytes.fromhex(given[name]), np.uint8) for name in ("before", "after")
        )

    async def read(self, name: str) -> int:
        """Return the value of a register."""
        done = await with_timeout(self.host.read(CORE_MAP[name].offset, 4), _LIMIT_NS, "ns")
        assert done.resp == AxiResp.OKAY, f"{name} must be readable"
        return int.from_bytes(done.data, "little")

    async def write(self, name: str, value: int) -> None:
        """Write a register."""
        octets = value.to_bytes(4, "little")
        done = await with_timeout(self.host.write(CORE_MAP[name].offset, octets), _LIMIT_NS, "ns")
        assert done.resp == AxiResp.OKAY, f"{name} must be writable"

    async def status(self, bit: str) -> bool:
        """Return a bit of the status."""
        return bool(await self.read("status") & CORE_MAP["status"].field(bit).mask)

    async def start(self, words: list[int]) -> None:
        """Put a program and its data into memory, and start it."""
        self.ram.write(0, self.before.tobytes())
        self.ram.write(_PROGRAM, np.array(words, np.uint64).tobytes())
        await self.write("program", _PROGRAM)
        await self.write("enable", 1)
        assert await self.status("ready") and not await self.status("running")
        await self.write("control", 1)

    async def ended(self) -> None:
        """Wait for the interrupt, and clear it."""
        if not int(self.dut.interrupt.value):
            await with_timeout(RisingEdge(self.dut.interrupt), _LIMIT_NS, "ns")
        assert not await self.status("running")
        await self.write("interrupt", 1)
        assert not int(self.dut.interrupt.value)

    async def reset_core(self) -> None:
        """Reset the core by its register, and wait until it is ready."""
        await self.write("control", 2)
        for _ in range(200):
            if await self.status("ready"):
                return
        raise AssertionError(f"a reset must end (seed {self.seed})")

    async def check_program(self) -> None:
        """Run the legal program, and compare memory."""
        await self.start(self.words)
        await self.ended()
        assert not await self.status("fault") and not await self.status("bus")
        assert await self.status("ready")
        self.board.expect([])
        self.board.check(self.differing(), self.cycle)

    def differing(self) -> list[int]:
        """Return the first bytes of memory that are not as after the legal program."""
        raw: Any = self.ram.read(0, len(self.after))
        return np.flatnonzero(np.frombuffer(raw, np.uint8) != self.after)[:16].tolist()


@cocotb.test()
@cocotb.parametrize(rate=(0.0, 0.4), latency=(0, 30))
async def a_program(dut: Any, rate: float, latency: int) -> None:
    """Run a program of all units twice, and read the counters."""
    bench = CoreBench(dut, rate=rate, latency=latency)
    await bench.reset()
    assert await bench.read("identity") == IDENTITY
    for _ in range(2):
        await bench.check_program()
        written = {name: await bench.read(f"bytes_{name.lower()}") for name in UNITS}
        expected = {"V": 1536, "M": 1024, "MTE1": 1024, "MTE2": 1536, "MTE3": 1536}
        expected["FIX"] = 1024 if "FIX" in bench.units else 0
        assert written | expected == written, written
        assert written["S"] >= 8 * len(bench.words)
        busy = [await bench.read(f"busy_{name.lower()}") for name in bench.units]
        assert busy[0] == await bench.read("cycles") and all(busy), busy
    bench.board.finish(at_least=2)


def _faulty(units: tuple[str, ...]) -> dict[str, tuple[Words, str, int]]:
    """Return bad instructions, and the fault and the unit's code that the registers must name."""
    wait = {"unit": 1, "source": UNITS.index("M"), "target": 1, "register": 6}
    far = ("UB", 1 << 20)
    return {
        "bounds": (copy("MTE2", far, ("GM", 0)), "BOUNDS", UNITS.index("MTE2")),
        "read": (copy("MTE2", ("UB", 0), ("GM", _BAD)), "BUS", UNITS.index("MTE2")),
        "write": (copy("MTE3", ("GM", _BAD), ("UB", 0)), "BUS", UNITS.index("MTE3")),
        "code": ((0xF0 | 1 << 8 | 1 << 11,), "CODE", UNITS.index("V")),
        "unit": ((0x01 | len(units) << 8 | 1 << 11,), "UNIT", len(units)),
        "deadlock": (ENCODINGS["wait_flag"].pack(wait), "DEADLOCK", UNITS.index("V")),
    }


@cocotb.test()
@cocotb.parametrize(rate=(0.0, 0.4))
async def faults_and_recovery(dut: Any, rate: float) -> None:
    """Stop the core by every kind of fault; after a reset, the next program runs right."""
    bench = CoreBench(dut, rate=rate, latency=15)
    await bench.reset()
    barrier = ENCODINGS["pipe_barrier"].pack({})
    faulty = _faulty(bench.units)
    for name, (words, fault, unit) in faulty.items():
        good = bench.words[:-1]
        await bench.start([*good, *barrier, *words, *good, *barrier, 0])
        await bench.ended()
        assert await bench.status("fault") and not await bench.status("ready"), name
        told, pc = await bench.read("fault"), await bench.read("fault_pc")
        expected = Fault[fault].value | unit << 4 | (words[0] & 0xFF) << 8
        assert told == expected, f"{name}: fault must be {expected:#x}, not {told:#x}"
        assert pc == len(good) + len(barrier), f"{name}: word {pc}"
        for _ in range(200):
            if not await bench.status("bus"):
                break
        assert not await bench.status("bus"), f"{name}: the bus must come to rest"
        # What is before the barrier has ended.
        assert not bench.differing(), f"{name}: {bench.differing()}"
        if name == "deadlock":
            wait = await bench.read("wait_v")
            assert wait == 1 | UNITS.index("M") << 1 | 6 << 4 | pc << 8, hex(wait)
        await bench.write("control", 1)
        assert not await bench.status("running"), "a start needs a reset first"
        await bench.reset_core()
        await bench.check_program()
    bench.board.finish(at_least=len(faulty))


@cocotb.test()
async def resets_in_the_middle(dut: Any) -> None:
    """Reset by the register at any time: the bus ends what it began, the next program is right."""
    bench = CoreBench(dut, rate=0.3, latency=20)
    await bench.reset()
    for _ in range(bench.count):
        await bench.start(bench.words)
        await ClockCycles(dut.aclk, bench.rng.randrange(1, 600))
        await bench.reset_core()
        await bench.write("interrupt", 1)
        await bench.check_program()
    bench.board.finish(at_least=bench.count)


@cocotb.test()
async def every_register(dut: Any) -> None:
    """Check the access to every address."""
    bench = CoreBench(dut)
    await bench.reset()
    known = {register.offset: register for register in CORE_REGISTERS}
    for offset in range(0, 256, 4):
        register = known.get(offset)
        done = await bench.host.read(offset, 4)
        good = register is not None and register.readable
        assert done.resp == (AxiResp.OKAY if good else AxiResp.SLVERR), hex(offset)
        if register is not None and register.readable and register.reset is not None:
            bench.board.expect(register.reset, register.name)
            bench.board.check(int.from_bytes(done.data, "little"), bench.cycle)
        if register is None or not register.writable:
            assert (await bench.host.write(offset, bytes(4))).resp == AxiResp.SLVERR, hex(offset)
    bench.board.finish()
