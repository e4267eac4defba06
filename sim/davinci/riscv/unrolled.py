"""An unrolled program as code of the RISC-V, made without a compiler: for comparisons.

It passes the words of the program one after the other, so a core whose S is a RISC-V can run every
program of a core whose S fetches.
"""

from collections.abc import Sequence

import numpy as np

from vitruvian.golden.core.memory_map import (
    ARGUMENT_BYTES,
    HEAD_BYTES,
    IMMEDIATE,
    JAL,
    LUI,
    QUEUE,
    STORE,
)
from vitruvian.sim.davinci.machine_code.decode import split

from .compiler import MOST_ARGUMENTS

#: Registers: the address of the queue, and the half of a word.
_ADDRESS, _VALUE = 5, 6
#: Operations whose effect would be that of loads and stores of S.
_REFUSED = ("scalar_load", "scalar_store")
_BLOCK = 32


def image_of_words(words: Sequence[int]) -> np.ndarray:
    """Return the image of a kernel that passes these words; the last one is 0.

    Raises
    ------
    ValueError
        If a word belongs to a scalar load or store.
    """
    for at, encoding, _ in split(words):
        if encoding.op in _REFUSED:
            raise ValueError(f"word {at} must be no {encoding.op}: S carries it out itself")
    code = [*_constant(_ADDRESS, QUEUE)]
    last = None
    for word in words:
        for half in range(2):
            value = word >> 32 * half & 0xFFFFFFFF
            if value != last:
                code += _constant(_VALUE, value)
            last = value
            code.append(_store(_ADDRESS, _VALUE, 4 * half))
    code.append(JAL)  # a jump to itself
    start = HEAD_BYTES + MOST_ARGUMENTS * ARGUMENT_BYTES
    blocks = -(-(start + 4 * len(code)) // _BLOCK)
    image = np.zeros(blocks * _BLOCK // 4, np.uint32)
    image[0], image[1] = _jump(start), blocks
    image[start // 4 : start // 4 + len(code)] = code
    return image.view(np.uint8)


def _constant(register: int, value: int) -> list[int]:
    """Return the instructions that give a register a value: lui and addi."""
    lower = value & 0xFFF
    upper = (value + 0x800) >> 12 & 0xFFFFF  # addi extends the sign
    add = lower << 20 | register << 7 | IMMEDIATE
    if not upper:
        return [add]
    return [upper << 12 | register << 7 | LUI, *([add | register << 15] if lower else [])]


def _store(base: int, register: int, offset: int) -> int:
    return register << 20 | base << 15 | 2 << 12 | offset << 7 | STORE


def _jump(distance: int) -> int:
    """Return a jump forward by less than 2048 bytes."""
    return (distance >> 1 & 0x3FF) << 21 | (distance >> 11 & 1) << 20 | JAL
