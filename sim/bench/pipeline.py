"""Agent for units of fixed latency, which accept a vector in every cycle."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .harness import Harness


class PipelineAgent:
    """Agent that drives all inputs of a unit without hand-shakes and passes on each result.

    Parameters
    ----------
    harness : Harness
        Frame of the bench; the agent adds itself to its agents.
    latency : int
        Cycles from the inputs to the outputs.
    gap_rate : float
        Probability of a cycle with random bits on the inputs, whose result is ignored.
    received : callable
        Function that is called with (outputs, cycle) for each result. The outputs are a dict by
        name, or the value of the only output.
    """

    def __init__(
        self,
        harness: Harness,
        *,
        latency: int,
        gap_rate: float = 0.0,
        received: Callable[[Any, int], None],
    ):
        self.harness, self.latency = harness, latency
        self.gap_rate, self.received = gap_rate, received
        self.queue: deque[Mapping[str, Any]] = deque()
        self.in_flight: deque[bool] = deque()
        self.count = 0
        harness.agents.append(self)

    def __str__(self) -> str:
        return f"{self.count} results, {len(self.queue)} vectors waiting"

    @property
    def idle(self) -> bool:
        """True if the results of all vectors have come out."""
        return not self.queue and not any(self.in_flight)

    def send(self, vectors: Iterable[Mapping[str, Any]]) -> None:
        """Queue vectors, each a mapping with a value for every input port."""
        self.queue.extend(vectors)

    def drive(self) -> None:
        """Put the next vector, or random bits, on the inputs."""
        real = bool(self.queue) and self.harness.rng.random() >= self.gap_rate
        if real:
            self.harness.held(self.queue.popleft())
        else:
            for port in self.harness.interface.inputs:
                self.harness.noise(port)
        self.in_flight.append(real)

    def sample(self) -> None:
        """Read the outputs if they belong to a vector."""
        # The outputs of this cycle belong to the inputs of ``latency`` cycles ago.
        if len(self.in_flight) <= self.latency:
            return
        if self.in_flight.popleft():
            values = {p.name: self.harness.get(p) for p in self.harness.interface.outputs}
            self.count += 1
            value = next(iter(values.values())) if len(values) == 1 else values
            self.received(value, self.harness.cycle)

    def reset(self) -> None:
        """Drop the vectors in the queue and in the unit."""
        self.queue.clear()
        self.in_flight.clear()
