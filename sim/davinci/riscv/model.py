"""A core whose unit S is golden's RISC-V: every word is carried out as soon as it is complete.

So a kernel can be compared with the simulator without any hardware: its words with those of the
unrolled program, and its results.
"""

import numpy as np

from vitruvian.golden.core import memory_map
from vitruvian.golden.core.encoding import ENCODINGS
from vitruvian.golden.core.riscv import Hart
from vitruvian.sim.davinci.machine_code.decode import decode, split
from vitruvian.sim.davinci.program.program import Core, Program
from vitruvian.sim.davinci.semantics import Functional

_LENGTH = ENCODINGS["set_flag"].places["length"]
#: Instructions of the RISC-V after which a kernel counts as endless.
MOST_STEPS = 50_000_000


class ScalarModel:
    """Unit S as golden's hart, with the memories of the functional simulator.

    Parameters
    ----------
    image : (bytes,) ndarray of uint8
        The kernel with its arguments.
    functional : Functional
        Global memory at the start, and the buffers of the core.
    program : Program
        Its chip says what the core has.
    memory_bytes : int
        The memory of the processor.

    Attributes
    ----------
    words : list of int
        The words that have been passed, with the word 0 at the end.
    ended : bool
        The kernel has passed the word 0.
    hart : Hart
    """

    def __init__(
        self, image: np.ndarray, functional: Functional, program: Program, memory_bytes: int
    ):
        self.functional = functional
        self.core: Core = Program(program.chip).core()
        own = np.zeros(memory_bytes, np.uint8)
        own[: len(image)] = image
        buffers = functional.memory(self.core).buffers
        self._memories = {"UB": buffers["UB"], "OWN": own, "GM": functional.gm}
        self.words: list[int] = []
        self._pending: list[int] = []
        self._lower = 0
        self.ended = False
        self.hart = Hart(self, memory_map.CODE)

    def run(self) -> None:
        """Run the kernel to its end.

        Raises
        ------
        IndexError
            If it reads or writes where no memory is.
        RuntimeError
            If it does not end.
        """
        while not self.ended:
            self.hart.step()
            if self.hart.count > MOST_STEPS:
                raise RuntimeError(f"a kernel must end within {MOST_STEPS} instructions of S")

    def load(self, address: int, size: int) -> int:
        """Return bytes of a memory as an integer."""
        memory, place = self._place(address, size)
        return int.from_bytes(memory[place : place + size].tobytes(), "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Write bytes, or half a word of an instruction."""
        value &= (1 << 8 * size) - 1
        if address == memory_map.QUEUE:
            self._lower = value
        elif address == memory_map.QUEUE + 4:
            self._commit(value << 32 | self._lower)
        else:
            memory, place = self._place(address, size)
            memory[place : place + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)

    def _place(self, address: int, size: int) -> tuple[np.ndarray, int]:
        region = address >> memory_map.REGION_LOW
        for name, memory in self._memories.items():
            first, last = memory_map.REGIONS[name]
            place = address - (first << memory_map.REGION_LOW)
            if first <= region <= last and place + size <= len(memory):
                return memory, place
        raise IndexError(f"S reads or writes {address:#010x} at {self.hart.pc:#010x}: no memory")

    def _commit(self, word: int) -> None:
        self.words.append(word)
        self.ended = not word and not self._pending
        if self.ended:
            return
        self._pending.append(word)
        length = self._pending[0] >> _LENGTH.low & (1 << _LENGTH.bits) - 1
        if len(self._pending) == length:
            ((_, encoding, words),) = split([*self._pending, 0])
            self._pending.clear()
            self.functional.execute(self.core, decode(encoding, words, self.core))
