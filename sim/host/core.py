"""A board with a core: its memory, and programs that run on it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.common.errors import UserError, WorkError
from vitruvian.golden.core.encoding import VERSION as ENCODING
from vitruvian.hdl.bus.registers import Register
from vitruvian.hdl.core.serial_map import COUNTERS, IDENTITY, MAP, VERSION, WAITING
from vitruvian.sim.rtl.core_stop import Stop, stop_of

from .client import Client, recognise
from .frames import MOST_WORDS

_DESCRIBING = 6  # registers from ``identity`` on that describe the core
_BLOCK = 32
#: Seconds between two looks at a core that runs.
_PAUSE_S = 0.02
#: Cycles without work of any unit but S after which a core counts as waiting for ever.
_QUIET = 100_000


class CoreStoppedError(WorkError):
    """A core that has stopped before the end of a program, or that waits for ever."""


@dataclass(frozen=True)
class CoreOnBoard:
    """A board with a core that has been recognised.

    Parameters
    ----------
    client : Client
        The registers of the board.
    name : str
        Name of the preset.
    memory_bytes : int
        Bytes of global memory.
    """

    client: Client
    name: str
    memory_bytes: int

    @classmethod
    def find(cls, client: Client) -> "CoreOnBoard":
        """Read what the board is, and reset its core.

        Raises
        ------
        UserError
            If nothing answers, if what answers is not a core, or if its registers or its machine
            code have another version.
        """
        names = list(MAP)[:_DESCRIBING]
        values = recognise(client, names, identity=IDENTITY, version=VERSION, a_core=True)
        if values["encoding"] != ENCODING:
            raise UserError(
                f"board must run machine code of version {ENCODING}, not {values['encoding']} "
                f"({client.name})"
            )
        raw = b"".join(values[name].to_bytes(4, "little") for name in ("name_low", "name_high"))
        name = raw.rstrip(b"\0").decode("ascii", "replace")
        board = cls(client, name, values["memory_bytes"])
        board._write("control", MAP["control"].field("reset").mask)
        return board

    def load(self, byte: int, data: np.ndarray, progress: Callable[[int], object]) -> None:
        """Write bytes to global memory.

        Parameters
        ----------
        byte : int
            The first byte, a multiple of 4.
        data : ndarray of uint8
            A whole number of words.
        progress : callable
            Receives the number of bytes that have been written.
        """
        words = data.view("<u4").tolist()
        self._write("address", byte)
        for begin in range(0, len(words), MOST_WORDS):
            part = tuple(words[begin : begin + MOST_WORDS])
            self.client.transfer(MAP["data"].address, len(part), part)
            progress(4 * (begin + len(part)))

    def read(self, byte: int, count: int, progress: Callable[[int], object]) -> np.ndarray:
        """Return bytes of global memory; the parameters are those of ``load``."""
        words: list[int] = []
        self._write("address", byte)
        for begin in range(0, count, 4 * MOST_WORDS):
            part = min(MOST_WORDS, (count - begin) // 4)
            words += self.client.transfer(MAP["data"].address, part)
            progress(4 * len(words))
        return np.array(words, "<u4").view(np.uint8)

    def run(self, byte: int) -> dict[str, int]:
        """Run the program at a byte of global memory, and return the counters of cycles by name.

        Raises
        ------
        CoreStoppedError
            If the core stops with a fault, or all its units wait.
        """
        self._write("address", byte)
        self._write("control", MAP["control"].field("start").mask)
        status = MAP["status"]
        before: dict[str, int] = {}
        while True:
            (state,) = self.client.transfer(status.address, 1)
            fault = status.field("fault")
            if state & fault.mask:
                raise CoreStoppedError(f"{self.client.name}: {self._stop(state)}")
            counters = self._counters()
            if not state & status.field("running").mask:
                return counters
            works = any(counters[n] != before.get(n) for n in COUNTERS[2:])
            if works:
                before = counters
            elif counters["cycles"] - before["cycles"] > _QUIET:
                self._write("control", MAP["control"].field("reset").mask)
                raise CoreStoppedError(
                    f"{self.client.name}: no unit of the core has had work for "
                    f"{counters['cycles'] - before['cycles']:,} cycles: all its queues wait"
                )
            time.sleep(_PAUSE_S)

    def _stop(self, state: int) -> Stop:
        """Return where a core has stopped whose status is known."""

        def fields(register: Register, word: int) -> dict[str, int]:
            return {part.name: (word & part.mask) >> part.low for part in register.fields}

        place = fields(MAP["status"], state)
        names = ["fault_pc", *(f"wait_{name}" for name in WAITING)]
        first = MAP[names[0]].address
        pc, *words = self.client.transfer(first, len(names), increment=True)
        waits = {}
        for name, word in zip(WAITING, words, strict=True):
            wait = fields(MAP[f"wait_{name}"], word)
            waits[name.upper()] = wait | {"register": wait["flag"]}
        unit, opcode = place["unit"], place["opcode"]
        return stop_of(place["fault"], unit=unit, opcode=opcode, pc=pc, waits=waits)

    def _counters(self) -> dict[str, int]:
        first = MAP[COUNTERS[0]].address
        values = self.client.transfer(first, len(COUNTERS), increment=True)
        return dict(zip(COUNTERS, values, strict=True))

    def _write(self, register: str, word: int) -> None:
        self.client.transfer(MAP[register].address, 1, (word,))


@dataclass(frozen=True, kw_only=True)
class BoardRun:
    """What a program did on a board.

    Attributes
    ----------
    memory : (bytes,) ndarray of uint8
        Global memory at the end.
    counters : dict of str to int
        Cycles of the program and of the units.
    seconds : float
        Time from the first byte of the image to the last byte of the result.
    """

    memory: np.ndarray
    counters: dict[str, int]
    seconds: float


def run_program(
    board: CoreOnBoard,
    memory: np.ndarray,
    words: Sequence[int] | np.ndarray,
    *,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> BoardRun:
    """Load a memory image and a program behind it, run it, and read the memory back.

    Parameters
    ----------
    memory : (bytes,) ndarray of uint8
        Global memory at the start.
    words : sequence of int
        The program, with the word 0 at its end.
    progress : callable
        Receives the bytes that have gone over the line, and those of all transfers.

    Raises
    ------
    UserError
        If the image is larger than the memory.
    CoreStoppedError
        As ``CoreOnBoard.run``.
    WorkError
        If the board stops answering.
    """
    start = -(-len(memory) // _BLOCK) * _BLOCK
    size = start + -(-8 * len(words) // _BLOCK) * _BLOCK
    if size > board.memory_bytes:
        raise UserError(
            f"memory and program must have at most {board.memory_bytes:,} bytes for this board, "
            f"not {len(memory):,} + {8 * len(words):,}"
        )
    image = np.zeros(size, np.uint8)
    image[: len(memory)] = memory
    image[start : start + 8 * len(words)] = np.asarray(words, "<u8").view(np.uint8)
    began, total = time.monotonic(), size + start
    board.load(0, image, lambda done: progress(done, total))
    counters = board.run(start)
    after = board.read(0, start, lambda done: progress(size + done, total))
    return BoardRun(
        memory=after[: len(memory)], counters=counters, seconds=time.monotonic() - began
    )
