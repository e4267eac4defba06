"""The frame of a cocotb bench: clock, reset, random numbers, and agents on the ports.

Agents drive inputs after a falling edge of the clock. They sample outputs in the same time step,
after the design has settled, and so before the rising edge that acts on the inputs. Therefore no
bench depends on the order in which a simulator runs callbacks and registers.
"""

import json
import os
import random
from collections.abc import Callable, Mapping
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, Timer

from vitruvian.sim.rtl.ports import Interface, Port

from .bits import pack, unpack

_PERIOD_NS = 10


def parameters() -> dict[str, Any]:
    """Return the ``parameters`` of ``sim.bench.runner.run_bench``, inside the simulation."""
    return json.loads(os.environ.get("VITRUVIAN_BENCH", "{}"))


def seed_of() -> int:
    """Return the seed of the bench, inside the simulation."""
    return int(os.environ.get("VITRUVIAN_SEED", "1"))


class Harness:
    """A unit in a simulation.

    Parameters
    ----------
    dut
        cocotb's handle of the top module.
    interface : Interface
        Ports of the unit, from ``sim.rtl.emit.interface_of``.

    Attributes
    ----------
    cycle : int
        Number of clock cycles so far.
    seed : int
        Seed of ``rng``.
    rng : random.Random
        Source of all random numbers of the bench.
    agents : list
        Objects with the methods ``drive()`` and ``sample()``, which are called in this order in
        every cycle, and ``reset()``.
    """

    def __init__(self, dut: Any, interface: Interface):
        self.dut = dut
        self.interface = interface
        self.seed = seed_of()
        self.rng = random.Random(self.seed)
        self.cycle = 0
        self.agents: list[Any] = []
        self.has_clock = hasattr(dut, "clk")
        self.has_reset = hasattr(dut, "rst")
        self._resetting = False

    async def start(self) -> None:
        """Start the clock and reset the unit."""
        if self.has_clock:
            self.dut.clk.value = 1
            Clock(self.dut.clk, _PERIOD_NS, unit="ns").start()
        for port in self.interface.inputs:
            self.put(port, 0, raw=True)
        await self.reset()

    async def reset(self, cycles: int = 2) -> None:
        """Reset the unit and all agents. Transfers during the reset do not count."""
        self._resetting = True
        for agent in self.agents:
            agent.reset()
        await self._fall()
        if self.has_reset:
            self.dut.rst.value = 1
        for _ in range(cycles):
            await self._fall()
        if self.has_reset:
            self.dut.rst.value = 0
        self._resetting = False

    async def step(self, count: int = 1) -> None:
        """Run cycles, in which all agents drive, the design settles, and all agents sample."""
        for _ in range(count):
            for agent in self.agents:
                agent.drive()
            # Outputs that depend combinationally on inputs have settled after this.
            await ReadOnly()
            for agent in self.agents:
                agent.sample()
            self.cycle += 1
            await self._fall()

    async def run_until(self, done: Callable[[], bool], *, limit: int) -> None:
        """Step until ``done()`` returns True.

        Raises
        ------
        AssertionError
            If ``limit`` cycles are not enough, because the unit hangs.
        """
        for _ in range(limit):
            if done():
                return
            await self.step()
        states = ", ".join(str(agent) for agent in self.agents)
        raise AssertionError(
            f"not done within {limit} cycles, at cycle {self.cycle} (seed {self.seed}): {states}"
        )

    async def _fall(self) -> None:
        if self.has_clock:
            await FallingEdge(self.dut.clk)
        else:
            # A combinational unit has no clock, so a cycle is only a time.
            await Timer(_PERIOD_NS, unit="ns")

    def put(self, port: Port, value: Any, *, raw: bool = False) -> None:
        """Drive a port.

        Parameters
        ----------
        value : int or object
            A value in the form of ``sim.bench.bits.pack``.
        raw : bool
            If True, ``value`` is a number with the bits of the port.
        """
        getattr(self.dut, port.name).value = value if raw else pack(port, value)

    def get(self, port: Port) -> Any:
        """Return the value of a port in the form of ``sim.bench.bits.unpack``."""
        return unpack(port, self.bits(port.name))

    def bits(self, name: str) -> int:
        """Return the bits of a port as a number.

        Raises
        ------
        AssertionError
            If a bit is undefined.
        """
        value = getattr(self.dut, name).value
        try:
            # cocotb returns another type for a port of one bit, which has no such method.
            return value.to_unsigned() if hasattr(value, "to_unsigned") else int(value)
        except ValueError:
            raise AssertionError(
                f"{name} must be 0s and 1s in cycle {self.cycle}, not {value}"
            ) from None

    def noise(self, port: Port) -> None:
        """Drive random bits in cycles in which the unit must ignore the port."""
        self.put(port, self.rng.getrandbits(port.width), raw=True)

    def held(self, values: Mapping[str, Any]) -> None:
        """Drive plain ports, which keep these values; ``values`` maps names to values."""
        by_name = {port.name: port for port in self.interface.inputs}
        for name, value in values.items():
            self.put(by_name[name], value)
