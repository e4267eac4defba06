"""The bytes of a program: global memory, and the buffers of every core."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES, View


class FunctionalError(ValueError):
    """An instruction cannot be carried out; the message begins with its place in the source."""

    def __init__(self, instruction: Instruction, message: str):
        super().__init__(f"{instruction.position}: {instruction}: {message}")


class Memory:
    """All memory that a core can access.

    Attributes
    ----------
    buffers : mapping of str to (bytes,) ndarray of uint8
        "GM", which all cores share, and the core's own buffers.
    compared : (256,) ndarray of bool
        The register that comparisons write and selections read.
    total : (1,) ndarray
        The register of sums, which vcadd writes in place of memory.
    plans : dict
        Cache of the windows on the operands of vector instructions.
    words, singles : ndarray of uint16 and of float32
        The bytes of UB, if the core has that buffer.
    """

    def __init__(self, buffers: Mapping[str, np.ndarray]):
        self.buffers = dict(buffers)
        self.compared = np.zeros(256, bool)
        self.total = np.zeros(1, np.float32)
        self.plans: dict[tuple, Any] = {}
        if "UB" in self.buffers:
            self.words = self.buffers["UB"].view(np.uint16)
            self.singles = self.buffers["UB"].view(np.float32)

    def at(
        self, view: View, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str | None = None
    ) -> np.ndarray:
        """Return an array over the memory from the first byte of a view on.

        A write to the array is a write to the memory.

        Parameters
        ----------
        view : View
            Only its first byte and, without ``dtype``, its dtype are used.
        strides : tuple of int
            Bytes from element to element along each axis.
        dtype : str, optional

        Raises
        ------
        IndexError
            If an element is outside the buffer.
        """
        array = self.buffers.get(view.buffer)
        if array is None:
            raise IndexError(f"there is no {view.buffer} in this core")
        kind = DTYPES[dtype or view.dtype]
        return window(array, view.offset, shape, strides, kind)

    def elements(self, view: View) -> np.ndarray:
        """Return all elements of a view; a write to the array is a write to the memory."""
        return self.at(view, view.shape, view.strides)


def window(
    array: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype
) -> np.ndarray:
    """Return a strided array over bytes.

    Parameters
    ----------
    array : (bytes,) ndarray of uint8
    offset : int
        First byte.
    shape, strides, dtype
        As NumPy takes them.

    Raises
    ------
    IndexError
        If an element is outside the bytes.
    """
    try:
        return np.ndarray(shape, dtype, array, offset, strides)
    except (ValueError, TypeError, OverflowError):
        # Only the message needs the reach; NumPy has found the mistake at no cost.
        low = high = offset
        for count, stride in zip(shape, strides, strict=True):
            reach = (count - 1) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
        high += np.dtype(dtype).itemsize
        raise IndexError(f"bytes {low} to {high} are not all within {len(array)}") from None
