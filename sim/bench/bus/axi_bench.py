"""The base of the benches of AXI units: clock, reset, pauses, and offers that must stay."""

import logging
import random
from collections.abc import Iterator
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from vitruvian.sim.bench.harness import parameters, seed_of
from vitruvian.sim.bench.scoreboard import Scoreboard

PERIOD_NS = 10


def pauses(rng: random.Random, rate: float) -> Iterator[bool]:
    """Yield for each cycle whether a channel pauses: mostly single cycles, at times long runs."""
    while True:
        if rng.random() >= rate:
            yield False
        else:
            # One pause in 32 is long, up to 31 cycles, so that the queues behind it can fill.
            yield from [True] * (rng.randrange(32) if rng.random() < 1 / 32 else 1)


class AxiBench:
    """An AXI unit with a running clock, in reset.

    Parameters
    ----------
    dut
        cocotb's handle of the top module.
    unit : Component
        The unit, which has a ``core``.
    counted : str
        Name of the parameter with the amount of traffic.
    output : str
        Name of the output that the scoreboard checks.
    digits : int
        Hexadecimal digits of a result.

    Attributes
    ----------
    cycle : int
        Number of clock cycles so far, which ``tick`` counts.
    """

    def __init__(self, dut: Any, unit: Any, *, counted: str, output: str, digits: int = 8):
        self.dut, self.unit, self.core = dut, unit, unit.core
        self.seed = seed_of()
        self.rng = random.Random(self.seed)
        self.count: int = parameters()[counted]
        self.board = Scoreboard(output, seed=self.seed, digits=digits)
        self.cycle = 0
        # The offer of each channel that was not taken in the cycle before.
        self._kept: dict[str, str | None] = {}
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        dut.aresetn.value = 0
        Clock(dut.aclk, PERIOD_NS, unit="ns").start()

    async def tick(self) -> bool:
        """Wait for the next clock edge, and return True unless the unit is in reset."""
        await RisingEdge(self.dut.aclk)
        self.cycle += 1
        if not int(self.dut.aresetn.value):
            self._kept.clear()
            return False
        return True

    def handshake(self, channel: str, prefix: str) -> tuple[bool, bool]:
        """Return ``valid`` and ``ready`` of a channel in this cycle."""
        valid, ready = (getattr(self.dut, f"{channel}{prefix}{x}") for x in ("valid", "ready"))
        return bool(int(valid.value)), bool(int(ready.value))

    def check_offer(self, channel: str, offer: str | None, ready: bool) -> None:
        """Check that an offer of the cycle before is still there if it was not taken.

        Parameters
        ----------
        channel : str
            Name of the channel, for messages.
        offer : str, optional
            What the channel offers in this cycle; None if it offers nothing.
        ready : bool
            True if the offer is taken in this cycle.
        """
        before = self._kept.get(channel)
        assert before is None or offer == before, (
            f"{channel} must keep its offer {before}, not change it to {offer}, "
            f"in cycle {self.cycle} (seed {self.seed})"
        )
        self._kept[channel] = None if ready else offer

    async def reset(self, cycles: int = 3) -> None:
        """Reset the unit; everything in it is lost."""
        self.dut.aresetn.value = 0
        await ClockCycles(self.dut.aclk, cycles)
        self.dut.aresetn.value = 1
        await RisingEdge(self.dut.aclk)
