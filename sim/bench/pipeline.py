"""Agent for units of fixed latency: one vector a cycle in, its result a fixed time later out."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .harness import Harness

__all__ = ["PipelineAgent"]


class PipelineAgent:
    """Drives all inputs of a free-running unit and hands over each result with its cycle.

    Parameters
    ----------
    harness : Harness
        Registers itself there.
    latency : int
        Cycles from inputs to outputs.
    gap_rate : float
        Probability of a cycle with noise on the inputs, whose result nobody looks at.
    received : callable
        Called with (outputs, cycle), outputs by name, or the value of the only one.
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
        self.under_way: deque[bool] = deque()
        self.count = 0
        harness.agents.append(self)

    def __str__(self) -> str:
        return f"{self.count} results, {len(self.queue)} vectors waiting"

    @property
    def idle(self) -> bool:
        """Whether everything sent has come out."""
        return not self.queue and not any(self.under_way)

    def send(self, vectors: Iterable[Mapping[str, Any]]) -> None:
        """Queue vectors: a value per input port."""
        self.queue.extend(vectors)

    def drive(self) -> None:
        """Put the next vector, or noise, on the inputs."""
        real = bool(self.queue) and self.harness.rng.random() >= self.gap_rate
        if real:
            self.harness.held(self.queue.popleft())
        else:
            for port in self.harness.interface.inputs:
                self.harness.noise(port)
        self.under_way.append(real)

    def sample(self) -> None:
        """Read the outputs when they belong to a real vector."""
        if len(self.under_way) <= self.latency:
            return
        if self.under_way.popleft():
            values = {p.name: self.harness.get(p) for p in self.harness.interface.outputs}
            self.count += 1
            value = next(iter(values.values())) if len(values) == 1 else values
            self.received(value, self.harness.cycle)

    def reset(self) -> None:
        """Forget what is under way."""
        self.queue.clear()
        self.under_way.clear()
