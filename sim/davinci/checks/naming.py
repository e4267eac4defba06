"""The instructions of all cores by number, and their names in messages."""

from dataclasses import dataclass, field

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered


@dataclass
class Numbers:
    """The instructions of all cores by their index in the lowered arrays.

    Attributes
    ----------
    lowered : Lowered
    streams : list of CoreStream
    flat : list of Instruction
    column : (8 · streams,) ndarray of int64
        Scratch of ``checks.memory``: a number for each queue.
    """

    lowered: Lowered
    streams: list[CoreStream]
    flat: list[Instruction] = field(init=False)
    column: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.column = np.zeros(8 * len(self.streams), np.int64)
        self.flat = [instr for stream in self.streams for instr in stream.instructions]

    def core(self, number: int) -> int:
        """Return the number of the core of an instruction, in the order of the streams."""
        return int(np.searchsorted(self.lowered.first, number, side="right")) - 1

    def text(self, number: int) -> str:
        """Return an instruction with its place in the source, its unit and its core."""
        instr = self.flat[number]
        on = f" of {self.streams[self.core(number)]}" if len(self.streams) > 1 else ""
        return f"{instr} at {instr.position} on {instr.unit.name}{on}"
