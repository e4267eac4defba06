"""Formats of vector elements, and the one NaN that there is."""

from typing import Final

import numpy as np

from vitruvian.validate import one_of

__all__ = ["DTYPES", "canonical", "codes", "dtype_of"]

#: NumPy type of the elements of each format; bf16 is held as its codes.
DTYPES: Final = {
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "fp32": np.dtype(np.float32),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "int16": np.dtype(np.int16),
    "uint16": np.dtype(np.uint16),
    "int32": np.dtype(np.int32),
    "uint32": np.dtype(np.uint32),
    "int64": np.dtype(np.int64),
    "uint64": np.dtype(np.uint64),
}

_TYPES = frozenset(DTYPES.values())

_NAN = {
    np.dtype(np.float16): np.array(0x7E00, np.uint16).view(np.float16)[()],
    np.dtype(np.float32): np.array(0x7FC00000, np.uint32).view(np.float32)[()],
}


def dtype_of(name: str) -> np.dtype:
    """The NumPy type of a format.

    Raises
    ------
    ValueError
        For a name that is not in ``DTYPES``.
    """
    one_of("format", name, DTYPES)
    return DTYPES[name]


def canonical(values: np.ndarray) -> np.ndarray:
    """The same numbers, every NaN the quiet one with a clear sign and no other fraction bit."""
    nan = np.isnan(values)
    if nan.any():
        return np.where(nan, _NAN[values.dtype], values)
    return values


def codes(values: np.ndarray) -> np.ndarray:
    """The bits of floating-point numbers, as unsigned integers."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def check_floats(*arrays: np.ndarray) -> None:
    """Raise TypeError unless all arrays are float16, or all float32."""
    found = {a.dtype for a in arrays}
    if len(found) != 1 or not found <= _NAN.keys():
        names = ", ".join(sorted(map(str, found)))
        raise TypeError(f"operands must be all float16 or all float32, not {names}")


def check_same(*arrays: np.ndarray) -> None:
    """Raise TypeError unless all arrays have one type that vectors have."""
    found = {a.dtype for a in arrays}
    if len(found) != 1 or not found <= _TYPES:
        names = ", ".join(sorted(map(str, found)))
        raise TypeError(f"operands must be of one type of a vector element, not {names}")
