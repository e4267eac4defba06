"""cocotb test with two tiles, whose waveform ``sim.bench.cube.waveform`` draws."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.fp import from_float
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, Start
from vitruvian.sim.bench.harness import Harness
from vitruvian.sim.rtl.emit import interface_of

#: A unit with one precision, which is built faster and gives the same picture.
CONFIG = replace(CONFIGS["tiny"], precisions=("fp16",))
CYCLES = 15

A = np.array([[1, 2], [3, 4]])
B = np.array([[1, 0], [0, 1]])
C = np.full((2, 2), 0.5)
#: First cycle with an item on ``c``, and the cycles in which ``o`` is ready.
C_FROM, O_READY = 4, (7, 11, 12, 13, 14)


def _bus(rows: np.ndarray) -> list[int]:
    return [int(x) | int(y) << 16 for x, y in from_float(rows, "fp16").tolist()]


class _WaveformScript:
    """Agent that sends three beats and a C, and receives the results in fixed cycles."""

    def __init__(self, harness: Harness, streams: dict[str, Any]):
        self.harness, self.streams = harness, streams
        sums = ((Start.ZERO, 0, 0), (Start.ACCUMULATE, 0, 1), (Start.FROM_C, 1, 1))
        self.beats = [
            {
                "a": _bus(A),
                "b": _bus(B.T),
                "precision": CONFIG.precisions.index("fp16"),
                "start": start.value,
                "slot": slot,
                "emit": emit,
            }
            for start, slot, emit in sums
        ]
        self.c = [from_float(C, "fp32").tolist()]
        self.results: list[Any] = []
        harness.agents.append(self)

    def _offer(self, name: str, items: list[Any], now: bool) -> None:
        stream = self.streams[name]
        getattr(self.harness.dut, stream.valid).value = bool(items and now)
        if items:
            self.harness.put(stream.payload, items[0])

    def drive(self) -> None:
        """Offer the items of this cycle."""
        self._offer("i", self.beats, True)
        self._offer("c", self.c, self.harness.cycle >= C_FROM)
        self.harness.dut.o__ready.value = self.harness.cycle in O_READY

    def sample(self) -> None:
        """Record the transfers of this cycle."""
        if self._moved("i"):
            self.beats.pop(0)
        if self._moved("c"):
            self.c.pop(0)
        if self._moved("o"):
            self.results.append(self.harness.get(self.streams["o"].payload))

    def _moved(self, name: str) -> bool:
        stream = self.streams[name]
        return all(self.harness.bits(signal) for signal in (stream.valid, stream.ready))

    def reset(self) -> None:
        """Offer nothing."""
        self._offer("i", self.beats, False)
        self._offer("c", self.c, False)
        self.harness.dut.o__ready.value = 0


@cocotb.test()
async def two_tiles(dut: Any) -> None:
    """Send a sum of two beats in slot 0, and one that starts from C in slot 1; stall ``o``."""
    interface = interface_of(MatrixUnit(config=CONFIG))
    harness = Harness(dut, interface)
    script = _WaveformScript(
        harness, {s.name: s for s in interface.streams_in + interface.streams_out}
    )
    await harness.start()
    await harness.step(CYCLES)
    expected = [from_float(2 * A, "fp32").tolist(), from_float(A + C, "fp32").tolist()]
    assert script.results == expected
