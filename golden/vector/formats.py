"""The formats of vector elements and the canonical NaN."""

from typing import Any, Final

import numpy as np

from vitruvian.common.validate import one_of

#: NumPy type of each format's elements; bf16 elements are held as codes
DTYPES: Final[dict[str, np.dtype[Any]]] = {
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
    """Return the NumPy type of a format's elements.

    Raises
    ------
    ValueError
        If ``name`` is not a key of ``DTYPES``.
    """
    one_of("format", name, DTYPES)
    return DTYPES[name]


def canonical(values: np.ndarray) -> np.ndarray:
    """Return the same numbers with every NaN replaced by the canonical NaN.

    The canonical NaN is quiet, with a clear sign and no other fraction bit set.

    Examples
    --------
    >>> canonical(np.float16([-np.nan, 1])).view(np.uint16).tolist()
    [32256, 15360]
    """
    nan = np.isnan(values)
    if nan.any():
        return np.where(nan, _NAN[values.dtype], values)
    return values


def codes(values: np.ndarray) -> np.ndarray:
    """Return the bit patterns of an array's elements as unsigned integers of the same width."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def check_floats(*arrays: np.ndarray) -> None:
    """Raise TypeError unless all arrays are float16 or all are float32."""
    dtypes = {a.dtype for a in arrays}
    if len(dtypes) != 1 or not dtypes <= _NAN.keys():
        names = ", ".join(sorted(map(str, dtypes)))
        raise TypeError(f"operands must be all float16 or all float32, not {names}")


def check_same(*arrays: np.ndarray) -> None:
    """Raise TypeError unless all arrays have the same type, one of the values of ``DTYPES``."""
    dtypes = {a.dtype for a in arrays}
    if len(dtypes) != 1 or not dtypes <= _TYPES:
        names = ", ".join(sorted(map(str, dtypes)))
        raise TypeError(f"operands must all have the same vector element type, not {names}")
