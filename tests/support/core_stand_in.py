"""A board with a core as a host sees it: frames in, frames out, and a program that runs."""

import numpy as np

from vitruvian.common.errors import WorkError
from vitruvian.golden.core.encoding import VERSION as ENCODING
from vitruvian.hdl.core.serial_map import COUNTERS, IDENTITY, MAP, VERSION
from vitruvian.sim.host.frames import Response, crc

_NAMES = {register.address: name for name, register in MAP.items()}


class StandIn:
    """A line to registers of a core that a function computes.

    Parameters
    ----------
    run : callable
        Receives global memory and the byte of a program; changes the memory, and returns the
        counters of cycles, with other registers and ``unit`` and ``opcode`` of a fault, and the
        fault; or None if the program never ends.
    memory_bytes, name, encoding : optional
        What the board says of itself.
    cut_after : int, optional
        Bytes to the board after which the line is cut.
    """

    def __init__(
        self, run=None, *, memory_bytes=1 << 16, name="tiny", encoding=ENCODING, cut_after=None
    ):
        self.memory = np.zeros(memory_bytes, np.uint8)
        self.resets, self.received, self._run, self._cut = 0, 0, run, cut_after
        self._back, self._address, self._running, self._fault = bytearray(), 0, False, 0
        code = name.encode().ljust(8, b"\0")
        self._values = dict.fromkeys(MAP, 0) | {
            "identity": IDENTITY,
            "version": VERSION,
            "encoding": encoding,
            "name_low": int.from_bytes(code[:4], "little"),
            "name_high": int.from_bytes(code[4:], "little"),
            "memory_bytes": memory_bytes,
        }

    def write(self, data):
        self.received += len(data)
        if self._cut is not None and self.received > self._cut:
            raise WorkError("/dev/ttyX has gone: Input/output error")
        sequence, command, address = data[1], data[2], data[3]
        assert crc(data[1:-2]) == data[-2:]
        payload = np.frombuffer(data[4:-2], "<u4").tolist()
        words = [0] * (command & 0x3F)
        for n in range(len(words)):
            name = _NAMES[address + n * bool(command & 0x40)]
            if command & 0x80:
                self._put(name, payload[n])
            else:
                words[n] = self._get(name)
        read = () if command & 0x80 else tuple(words)
        self._back += bytes(Response(sequence=sequence, words=read))

    def _put(self, name, word):
        if name == "address":
            self._address = word
        elif name == "data":
            self.memory[self._address : self._address + 4] = np.array([word], "<u4").view(np.uint8)
            self._address += 4
        elif name == "control" and word & 2:
            self.resets += 1
            self._running = False
        elif name == "control" and word & 1:
            assert self._run is not None, "the stand-in was built without a program to run"
            outcome = self._run(self.memory, self._address)
            self._running = outcome is None
            if outcome is not None:
                counters, self._fault = outcome
                self._values |= counters

    def _get(self, name):
        if name == "data":
            self._address += 4
            return int(self.memory[self._address - 4 : self._address].view("<u4")[0])
        if name == "status":
            place = self._values.get("unit", 0) << 8 | self._values.get("opcode", 0) << 16
            return int(self._running) | self._fault << 4 | place
        if name == "cycles" and self._running:
            self._values["cycles"] += 60_000  # time passes, and no unit works
        return self._values[name]

    def read(self, seconds):
        data = bytes(self._back)
        self._back.clear()
        return data

    def close(self):
        pass


def counters(cycles, **busy):
    return dict.fromkeys(COUNTERS, 0) | {"cycles": cycles, **busy}
