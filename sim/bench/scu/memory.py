"""A memory with read ports for the benches of the storage conversion unit."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitruvian.hdl.scu import ConversionConfig
from vitruvian.sim.bench.harness import Harness
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor


def number(row: np.ndarray) -> int:
    """Return a row of elements as one number, with the first element in the lowest bits."""
    return int.from_bytes(np.ascontiguousarray(row).tobytes(), "little")


def row_of(value: int, config: ConversionConfig) -> np.ndarray:
    """Return a number as the bytes of a C0 row; the inverse of ``number``."""
    return np.frombuffer(value.to_bytes(config.c0_bytes, "little"), np.uint8)


class PixelMemory:
    """Agent that answers the requests of a unit from an array of C0 rows.

    It reads in the cycle of the request, and answers in order after ``latency`` cycles. Rows of
    pixels outside of the image are random bits.

    Parameters
    ----------
    harness : Harness
        Frame of the bench. The memory adds itself and its agents to it.
    streams : mapping of str to Stream
        Streams of the unit by name; ``fetch`` and ``rows`` are used.
    latency : int
        Cycles from a request to its answer, at least 1.
    stalls : mapping of str to float
        Stall rates by name of the stream.

    Attributes
    ----------
    content : (2**address_bits, c0_bytes) ndarray of uint8
    requests : list of int
        The cycle of each request.
    """

    def __init__(
        self,
        harness: Harness,
        config: ConversionConfig,
        streams: Any,
        *,
        latency: int,
        stalls: Any,
    ):
        self.harness, self.config, self.latency = harness, config, latency
        self.content = np.zeros((1 << config.address_bits, config.c0_bytes), np.uint8)
        self.pending: deque[tuple[int, list[int]]] = deque()
        self.requests: list[int] = []
        # Before its driver, so that an answer leaves in the cycle in which it is due.
        harness.agents.append(self)
        self.driver = StreamDriver(harness, streams["rows"], stall_rate=stalls.get("rows", 0.0))
        self.monitor = StreamMonitor(
            harness,
            streams["fetch"],
            stall_rate=stalls.get("fetch", 0.0),
            received=self.read,
        )

    def addresses(self, base: int, count: int) -> np.ndarray:
        """Return ``count`` addresses from ``base`` on, modulo the size of the memory."""
        return (base + np.arange(count)) % len(self.content)

    def store(self, base: int, image: np.ndarray) -> None:
        """Write an image (…, C0), whose first pixel is at ``base``."""
        rows = np.ascontiguousarray(image).view(np.uint8).reshape(-1, self.config.c0_bytes)
        self.content[self.addresses(base, len(rows))] = rows

    def load(self, base: int, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """Return an image of a shape without C0, whose first pixel is at ``base``."""
        rows = self.content[self.addresses(base, int(np.prod(shape)))]
        return rows.view(dtype).reshape(*shape, -1)

    def read(self, pixels: dict[str, list[int]], cycle: int) -> None:
        """Answer a request with the present content."""
        noise, bits = self.harness.rng.getrandbits, 8 * self.config.c0_bytes
        rows = [
            number(self.content[address]) if inside else noise(bits)
            for address, inside in zip(pixels["address"], pixels["inside"], strict=True)
        ]
        self.requests.append(cycle)
        self.pending.append((cycle + self.latency, rows))

    def write(self, item: dict[str, Any]) -> None:
        """Write the rows of the pixels that are inside of the image."""
        pixels = item["pixels"]
        for address, inside, row in zip(
            pixels["address"], pixels["inside"], item["rows"], strict=True
        ):
            if inside:
                self.content[address] = row_of(row, self.config)

    def drive(self) -> None:
        """Pass the answers that are due to the driver, which comes next."""
        while self.pending and self.pending[0][0] <= self.harness.cycle:
            self.driver.send([self.pending.popleft()[1]])

    def sample(self) -> None:
        """Do nothing; the monitor takes the requests."""

    def reset(self) -> None:
        """Forget all requests."""
        self.pending.clear()
        self.requests.clear()

    def __str__(self) -> str:
        return f"memory has {len(self.pending)} answers to give"
