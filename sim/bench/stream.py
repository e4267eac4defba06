"""Agents for streams: drivers, which send items, and monitors, which receive them."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from vitruvian.sim.rtl.ports import Stream

from .bits import pack, unpack
from .harness import Harness


class _Stall:
    """Random idle cycles: mostly single ones, sometimes a long run that fills every buffer."""

    def __init__(self, harness: Harness, rate: float):
        if not 0 <= rate < 1:
            raise ValueError(f"stall rate must be within [0, 1), not {rate!r}")
        self.rng, self.rate, self.left = harness.rng, rate, 0

    def now(self) -> bool:
        if self.left:
            self.left -= 1
            return True
        if self.rng.random() >= self.rate:
            return False
        # Queues of a few items are never full if the stalls are single cycles only.
        if self.rng.random() < 1 / 32:
            self.left = self.rng.randrange(32)
        return True


class StreamDriver:
    """Agent that sends queued items into an input stream, with random stalls.

    An item that is offered stays until the unit takes it.

    Parameters
    ----------
    harness : Harness
        Frame of the bench; the agent adds itself to its agents.
    stream : Stream
        One of the interface's input streams.
    stall_rate : float
        Probability in [0, 1) of a cycle without a new offer.
    offering, taken : callable, optional
        Functions that are called with each item when it is first offered, and when the unit takes
        it.

    Raises
    ------
    ValueError
        If the stall rate is out of range.
    """

    def __init__(
        self,
        harness: Harness,
        stream: Stream,
        *,
        stall_rate: float = 0.0,
        offering: Callable[[Any], None] | None = None,
        taken: Callable[[Any], None] | None = None,
    ):
        self.harness, self.stream = harness, stream
        self.offering, self.taken = offering, taken
        self.stall = _Stall(harness, stall_rate if stream.valid else 0.0)
        self.queue: deque[Any] = deque()
        self.offered = False
        self.sent = 0
        harness.agents.append(self)

    def __str__(self) -> str:
        return f"{self.stream.name} took {self.sent}, {len(self.queue)} waiting"

    def send(self, items: Iterable[Any]) -> None:
        """Queue items in the form of ``sim.bench.bits.pack``."""
        self.queue.extend(items)

    def drive(self) -> None:
        """Offer the first item of the queue, or nothing, with random bits in the payload."""
        if not self.offered:
            self.offered = bool(self.queue) and not self.stall.now()
            if self.offered:
                payload = pack(self.stream.payload, self.queue[0])
                self.harness.put(self.stream.payload, payload, raw=True)
                if self.offering:
                    self.offering(self.queue[0])
            else:
                # A unit that looks at the payload without ``valid`` then gives wrong results.
                self.harness.noise(self.stream.payload)
        if self.stream.valid:
            getattr(self.harness.dut, self.stream.valid).value = int(self.offered)

    def sample(self) -> None:
        """Remove the offered item from the queue if the unit takes it."""
        ready = self.stream.ready is None or self.harness.bits(self.stream.ready)
        if self.offered and ready:
            item = self.queue.popleft()
            self.offered = False
            self.sent += 1
            if self.taken:
                self.taken(item)

    def reset(self) -> None:
        """Withdraw the offer and clear the queue."""
        self.queue.clear()
        self.offered = False
        if self.stream.valid:
            getattr(self.harness.dut, self.stream.valid).value = 0


class StreamMonitor:
    """Agent that receives items from an output stream, with random stalls.

    It also checks that the unit does not withdraw or change an item that it has offered.

    Parameters
    ----------
    harness : Harness
        Frame of the bench; the agent adds itself to its agents.
    stream : Stream
        One of the interface's output streams.
    stall_rate : float
        Probability in [0, 1) of not being ready in a cycle.
    received : callable
        Function that is called with (value, cycle) at each transfer, such as the method ``check``
        of a scoreboard.

    Raises
    ------
    ValueError
        If the stall rate is out of range.
    """

    def __init__(
        self,
        harness: Harness,
        stream: Stream,
        *,
        stall_rate: float = 0.0,
        received: Callable[[Any, int], None],
    ):
        self.harness, self.stream, self.received = harness, stream, received
        self.stall = _Stall(harness, stall_rate if stream.ready else 0.0)
        self.ready = False
        self.count = 0
        self.kept: int | None = None
        harness.agents.append(self)

    def __str__(self) -> str:
        return f"{self.stream.name} gave {self.count}"

    def drive(self) -> None:
        """Set ``ready``, or stall."""
        self.ready = not self.stall.now()
        if self.stream.ready:
            getattr(self.harness.dut, self.stream.ready).value = int(self.ready)

    def sample(self) -> None:
        """Receive the offered item if the agent is ready.

        Raises
        ------
        AssertionError
            If the unit has withdrawn or changed an offer that was not taken.
        """
        valid = self.stream.valid is None or self.harness.bits(self.stream.valid)
        bits = self.harness.bits(self.stream.payload.name) if valid else None
        if self.kept is not None and bits != self.kept:
            raise AssertionError(
                f"{self.stream.name} must keep its offer {self.kept:x} until it is taken, "
                f"not {'withdraw it' if bits is None else f'change it to {bits:x}'} in cycle "
                f"{self.harness.cycle} (seed {self.harness.seed})"
            )
        # An offer that is not taken must stay as it is in the next cycle.
        self.kept = bits if bits is not None and not self.ready else None
        if bits is not None and self.ready:
            self.count += 1
            self.received(unpack(self.stream.payload, bits), self.harness.cycle)

    def reset(self) -> None:
        """Clear ``ready``, and expect no offer from before the reset."""
        self.kept = None
        if self.stream.ready:
            getattr(self.harness.dut, self.stream.ready).value = 0
