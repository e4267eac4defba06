"""The storage of variables: slots and bytes of a frame, and bytes that outlive a call.

A frame is a Python list: the machine, the address of the frame's bytes in the machine's memory, the
result, and one slot for each number or pointer whose address is never taken. Other variables are
bytes in memory.
"""

from collections.abc import Callable

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.language.types import Type

MACHINE_SLOT, ADDRESS_SLOT, RESULT_SLOT, _FIRST_SLOT = 0, 1, 2, 3

_ALIGNMENT = 16  # bytes; at least that of every type


class FrameLayout:
    """The slots and bytes that one function needs for its variables.

    Attributes
    ----------
    slots : int
        The number of slots, with that of the result.
    bytes : int
        The size of the variables in memory.
    """

    def __init__(self):
        self.slots, self.bytes = 1, 0

    def new_slot(self) -> int:
        """Return the index of an unused slot of the frame."""
        self.slots += 1
        return _FIRST_SLOT + self.slots - 2

    def new_bytes(self, type: Type) -> int:
        """Return the offset of unused bytes for a value of ``type``."""
        offset = _aligned(self.bytes)
        self.bytes = offset + type.size
        return offset


class Globals:
    """The memory of variables that outlive a call, and of strings.

    Attributes
    ----------
    size : int
        The bytes in use from address 0. The first 64 bytes stay unused, so that no variable has
        the address of a null pointer.
    initialisers : list of callable
        Functions of a frame that write the initial values, in source order.
    """

    def __init__(self):
        self.size = 64
        self.initialisers: list[Callable] = []
        self._strings: dict[bytes, int] = {}

    def reserve(self, type: Type) -> int:
        """Return the address of unused bytes for a value of ``type``."""
        address = _aligned(self.size)
        self.size = address + type.size
        return address

    def string(self, content: bytes) -> int:
        """Return the address of constant bytes; equal contents share one address."""
        if content not in self._strings:
            address = _aligned(self.size)
            self.size = address + len(content)

            def write(f):
                f[MACHINE_SLOT].memory[address : address + len(content)] = content

            self._strings[content] = address
            self.initialisers.append(write)
        return self._strings[content]


def _aligned(size: int) -> int:
    return round_up(size, _ALIGNMENT)
