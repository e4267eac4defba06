"""The bench of a unit with streams: drivers on its inputs, monitors and scoreboards on its outputs.

A module of cocotb tests derives its bench from ``StreamBench``, gives the hooks ``stimuli``,
``items`` and ``expect``, and calls ``random_rounds`` and ``random_resets`` in two tests. Checks of
rates and latencies are particular to a unit; they read ``taken`` and ``given``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np
from amaranth.lib import wiring

from vitruvian.hdl.catalogue import UNITS
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of
from vitruvian.sim.rtl.ports import Stream

C = TypeVar("C", bound=wiring.Component)
T = TypeVar("T")

#: Stall rates of a test's rounds: no stream stalls, the inputs do, the outputs do, or all do.
ROUNDS: tuple[dict[str, float], ...] = (
    {},
    {"inputs": 0.7},
    {"outputs": 0.7},
    {"inputs": 0.4, "outputs": 0.4},
)


def from_catalogue(name: str, component: type[C]) -> Callable[[Mapping[str, Any]], C]:
    """Return a function that builds a unit of the catalogue from a bench's parameters.

    The parameter ``configuration`` is a partial configuration of the unit.

    Parameters
    ----------
    name : str
        Name of the unit in the catalogue.
    component : type
        The class that the unit must have.
    """

    def unit_of(values: Mapping[str, Any]) -> C:
        unit = UNITS[name]
        built = unit.build(unit.default(values.get("configuration", {})))
        assert isinstance(built, component)
        return built

    return unit_of


class StreamBench(Generic[T]):
    """A unit between drivers and monitors; a subclass says what is sent and what must come.

    Parameters
    ----------
    dut
        cocotb's handle of the top module.
    inputs, outputs : float
        Stall rates of the input and of the output streams.
    **stalls
        Stall rates of single streams by name.

    Attributes
    ----------
    unit_of : callable
        Returns the component that the parameters of a bench describe; a subclass gives it.
    counted : str
        Name of the parameter with the amount of traffic of a round.
    quiet_cycles : int
        Cycles after the last expected result in which no other result may come.
    elsewhere : frozenset of str
        Streams that belong to the surroundings of the unit, such as a memory.
    drivers, boards : dict
        Driver of each input stream and scoreboard of each output stream, by the stream's name.
    taken, given : dict of str to list of int
        The cycle of each item of each input stream, and of each output stream, since the reset.
    """

    unit_of: Callable[[Mapping[str, Any]], Any]
    counted = "count"
    quiet_cycles = 40
    elsewhere: frozenset[str] = frozenset()

    def __init__(self, dut: Any, *, inputs: float = 0.0, outputs: float = 0.0, **stalls: float):
        values = parameters()
        self.unit = type(self).unit_of(values)
        self.count: int = values[self.counted]
        self.rates = {"inputs": inputs, "outputs": outputs, **stalls}
        interface = interface_of(self.unit)
        self.harness = Harness(dut, interface)
        self.drivers: dict[str, Any] = {}
        self.boards: dict[str, Scoreboard] = {}
        self.taken: dict[str, list[int]] = {}
        self.given: dict[str, list[int]] = {}
        streams = {s.name: s for s in (*interface.streams_in, *interface.streams_out)}
        self.surround(streams)
        for name in [s.name for s in interface.streams_in if s.name not in self.elsewhere]:
            self.taken[name] = []
            self.drivers[name] = StreamDriver(
                self.harness,
                streams[name],
                stall_rate=stalls.get(name, inputs),
                offering=partial(self.offering, name),
                taken=partial(self.take, name),
            )
        for name in [s.name for s in interface.streams_out if s.name not in self.elsewhere]:
            # The widest field of an item is a number that messages show.
            bits = max(leaf.width for leaf in streams[name].payload.leaves)
            self.watch(name, digits=-(-bits // 4))
            StreamMonitor(
                self.harness,
                streams[name],
                stall_rate=stalls.get(name, outputs),
                received=partial(self.receive, name),
            )

    @property
    def config(self) -> Any:
        """The parameters of the unit."""
        return self.unit.config

    @cached_property
    def rng(self) -> np.random.Generator:
        """Source of the random traffic, seeded by the harness."""
        return np.random.default_rng(self.harness.rng.getrandbits(32))

    # Hooks

    def stimuli(self, count: int | None = None) -> T:
        """Return new random traffic: ``self.count`` operations, or ``count``."""
        raise NotImplementedError

    def items(self, traffic: T) -> Mapping[str, Iterable[Any]]:
        """Return the items of each input stream by its name."""
        raise NotImplementedError

    def expect(self, traffic: T) -> None:
        """Put golden's results of the traffic on the scoreboards."""
        raise NotImplementedError

    def cycles(self) -> int:
        """Return the number of cycles after which a unit hangs that has not sent its results."""
        waiting = sum(len(driver.queue) for driver in self.drivers.values())
        return 200 * (waiting + self.outstanding() + 20)

    def compared(self, name: str, value: Any) -> Any:
        """Return what is compared with golden's result of an item of an output stream."""
        return value

    def surround(self, streams: Mapping[str, Stream]) -> None:
        """Add agents that stand around the unit. They drive and sample ahead of the others."""

    def offering(self, name: str, item: Any) -> None:
        """Note that a driver offers an item for the first time."""

    def take(self, name: str, item: Any) -> None:
        """Record the cycle in which the unit takes an item."""
        self.taken[name].append(self.harness.cycle)

    def outstanding(self) -> int:
        """Return the number of results that are still to come."""
        return sum(len(board.queue) for board in self.boards.values())

    def busy(self) -> bool:
        """Return True while items wait, or results are still to come."""
        return bool(self.outstanding() or any(driver.queue for driver in self.drivers.values()))

    # What tests call

    def watch(self, name: str, *, digits: int = 8) -> None:
        """Add a scoreboard for an output whose numbers have some hexadecimal digits."""
        self.given[name] = []
        self.boards[name] = Scoreboard(name, seed=self.harness.seed, digits=digits)

    def receive(self, name: str, value: Any, cycle: int) -> None:
        """Record the cycle of an item of an output stream, and compare it with golden's."""
        self.given[name].append(cycle)
        self.boards[name].check(self.compared(name, value), cycle)

    def send(self, traffic: T) -> None:
        """Queue the items of traffic, and expect its results."""
        for name, items in self.items(traffic).items():
            self.drivers[name].send(items)
        self.expect(traffic)

    async def start(self) -> None:
        """Start the clock and reset the unit."""
        await self.harness.start()

    async def drain(self) -> None:
        """Run until all results have come, and then for cycles in which none may come."""
        await self.harness.run_until(lambda: not self.busy(), limit=self.cycles())
        await self.harness.step(self.quiet_cycles)
        for board in self.boards.values():
            board.finish(at_least=0)
        assert self.checked, "at least one result must have been compared"

    async def reset(self) -> None:
        """Reset the unit for some cycles and forget all that it was to do."""
        await self.harness.reset(cycles=self.harness.rng.randrange(1, 4))
        self.forget()

    def forget(self) -> None:
        """Expect nothing any more, after a reset."""
        for board in self.boards.values():
            board.forget()
        for moments in (*self.taken.values(), *self.given.values()):
            moments.clear()

    @property
    def checked(self) -> int:
        """Number of results that were compared, also before a reset."""
        return sum(board.checked for board in self.boards.values())


async def random_rounds(
    bench: type[StreamBench[Any]], dut: Any, rounds: Sequence[Mapping[str, Any]] = ROUNDS
) -> None:
    """Send random traffic once for each round.

    Parameters
    ----------
    bench : type
        The bench of the unit.
    dut
        cocotb's handle of the top module.
    rounds : sequence of mapping
        Arguments of the bench, such as its stall rates.
    """
    for arguments in rounds:
        one = bench(dut, **arguments)
        await one.start()
        one.send(one.stimuli())
        await one.drain()


async def random_resets(
    bench: StreamBench[Any], *, cycles: tuple[int, int], count: int | None = None, resets: int = 8
) -> None:
    """Reset the unit at random times, and then check that it works as an empty one.

    Parameters
    ----------
    bench : StreamBench
        A bench that has not started.
    cycles : tuple of int
        Range of the number of cycles from traffic to a reset, without its end.
    count : int, optional
        Amount of the traffic that is reset.
    resets : int
        Number of resets.
    """
    await bench.start()
    for _ in range(resets):
        bench.send(bench.stimuli(count))
        await bench.harness.step(bench.harness.rng.randrange(*cycles))
        await bench.reset()
    assert bench.checked, "some results must have come before the resets"
    bench.send(bench.stimuli())
    await bench.drain()
