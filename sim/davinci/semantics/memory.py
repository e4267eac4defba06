"""The bytes of a program: global memory, and the buffers of every core."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES, View

__all__ = ["FunctionalError", "Memory", "window"]


class FunctionalError(ValueError):
    """An instruction that cannot be carried out; the message begins with its place."""

    def __init__(self, instruction: Instruction, message: str):
        super().__init__(f"{instruction.position}: {instruction}: {message}")


class Memory:
    """What a core can touch.

    Attributes
    ----------
    buffers : mapping of str to (bytes,) ndarray of uint8
        "GM", which all cores share, and the core's own.
    compared : (256,) ndarray of bool
        The register that comparisons write and selections read.
    plans : dict
        How operands of vector instructions lie in memory, for those that come again.
    words, singles : ndarray of uint16 and of float32
        The bytes of UB, if there is one.
    """

    def __init__(self, buffers: Mapping[str, np.ndarray]):
        self.buffers = dict(buffers)
        self.compared = np.zeros(256, bool)
        self.plans: dict[tuple, Any] = {}
        if "UB" in self.buffers:
            self.words = self.buffers["UB"].view(np.uint16)
            self.singles = self.buffers["UB"].view(np.float32)

    def at(
        self, view: View, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str | None = None
    ) -> np.ndarray:
        """Elements from the first byte of a view on, with byte strides; writing them writes memory.

        Raises
        ------
        IndexError
            When some are outside the buffer.
        """
        array = self.buffers.get(view.buffer)
        if array is None:
            raise IndexError(f"there is no {view.buffer} in this core")
        kind = DTYPES[dtype or view.dtype]
        return window(array, view.offset, shape, strides, kind)

    def elements(self, view: View) -> np.ndarray:
        """All elements of a view."""
        return self.at(view, view.shape, view.strides)


def window(
    array: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype
) -> np.ndarray:
    """A strided array over bytes.

    Raises
    ------
    IndexError
        When it reaches outside them.
    """
    try:
        return np.ndarray(shape, dtype, array, offset, strides)
    except (ValueError, TypeError, OverflowError):
        low = high = offset
        for count, stride in zip(shape, strides, strict=True):
            reach = (count - 1) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
        high += np.dtype(dtype).itemsize
        raise IndexError(f"bytes {low} to {high} are not all within {len(array)}") from None
